"""What the scripts of the pages know of states, as a module for them.

``python -m quadriga.web.pages.states`` prints it; web/pages/static/states.js is that output.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping

from quadriga.fsm import APPLICATION, NODE
from quadriga.fsm.lifecycles import allocation as allocation_fsm
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.fsm.lifecycles import ask as ask_fsm
from quadriga.fsm.lifecycles import node as node_fsm
from quadriga.fsm.lifecycles import queue as queue_fsm
from quadriga.fsm.lifecycles import resource_manager as resource_manager_fsm
from quadriga.fsm.table import Tone

_HEAD = """\
// What the pages know of states, from the files of the lifecycles.
// Made by `python -m quadriga.web.pages.states`.
"""


def merged(tables: Iterable[Mapping[str, Tone]]) -> dict[str, Tone]:
    """One tone for each name of a state, whatever has it. Raises ``ValueError`` where two differ."""
    found: dict[str, Tone] = {}
    for table in tables:
        for state, tone in table.items():
            if found.setdefault(state, tone) != tone:
                raise ValueError(f"{state} is shown as {found[state]} and as {tone}")
    return found


def script() -> str:
    """The module: tones by the name of a state, and sets of states in the order of their tables."""
    lifecycles = (
        application_fsm,
        ask_fsm,
        allocation_fsm,
        node_fsm,
        queue_fsm,
        resource_manager_fsm,
    )
    idle = [s for s in application_fsm.LIVING if s in application_fsm.IDLE]
    shown = [s for s in APPLICATION.states if s not in idle and s not in APPLICATION.final]
    constants = {
        "TONES": merged(dict(each.TONES.items()) for each in lifecycles),
        "APPLICATION": {
            "living": list(application_fsm.LIVING),
            "idle": idle,
            "running": [s for s in APPLICATION.states if s in application_fsm.RUNS_FREELY],
            "others": shown,
        },
        "NODE": {
            "present": [s for s in NODE.states if s in node_fsm.OPEN | node_fsm.CLOSED],
            "closed": [s for s in NODE.states if s in node_fsm.CLOSED],
        },
    }
    lines = (f"export const {name} = {json.dumps(each)};\n" for name, each in constants.items())
    return _HEAD + "".join(lines)


if __name__ == "__main__":
    sys.stdout.write(script())
