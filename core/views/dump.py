"""The state dump as a text, and the diagnostics that resource managers add to it (2.13)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from quadriga.core.runtime.stepwise import Steps
from quadriga.core.views.applications import application_object
from quadriga.core.views.nodes import node_object
from quadriga.si import StateDumpPlugin

#: the diagnostics if no resource manager provides any
NO_DIAGNOSTICS: Final[Mapping[str, str]] = {"empty": "Resource Manager did not register callback"}


#: largest nesting depth of the diagnostics
_DEEPEST = 100


class StatePart(NamedTuple):
    """A key of the state with its value, or a ``member`` of the list that came last under this key: the
    snapshot of an application or a node, or a partition whose ``nodesInfo`` follow."""

    key: str
    value: Any
    member: bool = False


def collected(parts: Iterator[StatePart | None]) -> Steps[dict[str, Any]]:
    """The state of these parts, in steps."""
    state: dict[str, Any] = {}
    for part in parts:
        if part is None:
            pass
        elif not part.member:
            state[part.key] = part.value
        elif part.key == "nodesInfo":
            state["nodes"][-1]["nodesInfo"].append(part.value)
        else:
            state[part.key].append(part.value)
        yield
    return state


def formatted(state: dict[str, Any]) -> dict[str, Any]:
    """The state with objects instead of snapshots."""
    nodes = [
        {**each, "nodesInfo": list(map(node_object, each["nodesInfo"]))} for each in state["nodes"]
    ]
    return {
        **state,
        "applications": list(map(application_object, state["applications"])),
        "nodes": nodes,
    }


def diagnostics_of(callbacks: Mapping[str, object]) -> dict[str, Any]:
    """The diagnostics of resource managers that are a ``StateDumpPlugin`` (I4): of one, or of several by
    rmID.

    Called by the driver outside of the scheduler, because a resource manager may need a while.
    """
    found = {
        rm_id: _ask(callback)
        for rm_id, callback in sorted(callbacks.items())
        if isinstance(callback, StateDumpPlugin)
    }
    if not found:
        return dict(NO_DIAGNOSTICS)
    return found if len(found) > 1 else next(iter(found.values()))


def _ask(plugin: StateDumpPlugin) -> dict[str, Any]:
    """The dump of one resource manager, or the error if it is none."""
    try:
        found = json.loads(plugin.get_state_dump(), parse_constant=_not_json)
    except Exception as error:
        return {"error": f"state dump of the resource manager failed: {error!r}"}
    if not isinstance(found, dict):
        return {"error": "state dump of the resource manager is not a JSON object"}
    if _is_deep(found):
        return {"error": f"state dump of the resource manager has more than {_DEEPEST} levels"}
    return found


def _not_json(text: str) -> object:
    raise ValueError(f"{text} is not JSON")


def _is_deep(value: object) -> bool:
    """Whether the value is nested too deeply for the encoder."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [
            inside
            for each in level
            if isinstance(each, dict | list)
            for inside in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return False
    return True


def as_text(dump: Mapping[str, Any]) -> str:
    """Indented JSON; keys keep their order."""
    return json.dumps(dump, indent=2, ensure_ascii=False) + "\n"
