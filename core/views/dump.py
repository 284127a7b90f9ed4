"""The state dump as a text, and what the resource manager adds to it (2.13)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from quadriga.si import StateDumpPlugin

__all__ = ["NO_DIAGNOSTICS", "as_text", "diagnostics_of"]

#: what is said where the resource manager has nothing to add
NO_DIAGNOSTICS: Final[Mapping[str, str]] = {"empty": "Resource Manager did not register callback"}


#: levels of what a resource manager says of itself
_DEEPEST = 100


def diagnostics_of(callbacks: Mapping[str, object]) -> dict[str, Any]:
    """What resource managers, by rmID, say of themselves (I4): the one that is a
    ``StateDumpPlugin``, or, if several are, each under its rmID.

    For the driver: a resource manager is outside, and may take its time.
    """
    said = {
        rm_id: _ask(callback)
        for rm_id, callback in sorted(callbacks.items())
        if isinstance(callback, StateDumpPlugin)
    }
    if not said:
        return dict(NO_DIAGNOSTICS)
    return said if len(said) > 1 else next(iter(said.values()))


def _ask(plugin: StateDumpPlugin) -> dict[str, Any]:
    """Its dump; if it fails, or is not a JSON object, that."""
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
    """Whether it could not be spelled with everything else around it."""
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
    """Pretty JSON, keys in the order in which they were put together."""
    return json.dumps(dump, indent=2, ensure_ascii=False) + "\n"
