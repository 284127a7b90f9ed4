"""A lifecycle as JSON for other programs: complete, with the names that the code uses."""

from __future__ import annotations

import json
from typing import Any

from quadriga.diagrams.paint import Paint
from quadriga.diagrams.wording import function_name
from quadriga.fsm import Lifecycle, Unbounded, Within

__all__ = ["json_document"]


def json_document(lifecycle: Lifecycle, coverage: Paint | None = None) -> str:
    """The lifecycle as a JSON document. Times are in ns; a null target means that the state stays.

    Effects of entering and leaving are with the states; of a nested lifecycle, whose rows are flat here,
    they are with the rows. With coverage every row has the number of times that it was taken.
    """
    flat = lifecycle.nesting is not None
    document = {
        "name": lifecycle.name,
        "initial": lifecycle.initial,
        "final": list(lifecycle.final),
        "states": [
            {"name": state, "lasts": _lasts(lifecycle, state), **_actions(lifecycle, state)}
            for state in lifecycle.states
        ],
        "rows": [
            {
                "line": row.line,
                "trigger": row.trigger,
                "source": row.source,
                "target": row.target,
                "guard": function_name(row.guard) if row.guard else None,
                "emit": [
                    function_name(emitter) for emitter in (row.emit if flat else row.own_emit)
                ],
                "why": row.why,
                **({"count": coverage.row(row).count} if coverage else {}),
            }
            for row in lifecycle.rows
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _actions(lifecycle: Lifecycle, state: str) -> dict[str, list[str]]:
    """The emitters for entering and for leaving the state, if there are any."""
    if lifecycle.nesting:
        return {}
    found = {"on_enter": lifecycle.on_enter.get(state), "on_exit": lifecycle.on_exit.get(state)}
    return {what: [function_name(each) for each in emit] for what, emit in found.items() if emit}


def _lasts(lifecycle: Lifecycle, state: str) -> dict[str, Any] | None:
    """The time limit of the state; null for a final state."""
    lasts = lifecycle.lasts.get(state)
    if isinstance(lasts, Unbounded):
        return {"unbounded": lasts.ends}
    if isinstance(lasts, Within):
        return {"within": lasts.ns, "then": lasts.then, "backoff_to": lasts.backoff_to}
    return None
