"""The pictures of the lifecycles that the pages draw.

A picture joins a lifecycle's table with the coordinates in ``data/layouts.json``. graphviz computed
these at development time (``quadriga.web.pages.layout``), so a running server needs no graphviz.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files
from typing import Any

from quadriga.base.times import HOUR, MINUTE, SECOND
from quadriga.fsm import Lifecycle
from quadriga.fsm.table import Unbounded, Within


@lru_cache(maxsize=1)
def layouts() -> dict[str, Any]:
    """The committed coordinates, by the lifecycle's name."""
    text = files("quadriga.web.pages.data").joinpath("layouts.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)["lifecycles"]
    return found


def picture(lifecycle: Lifecycle) -> dict[str, Any]:
    """The lifecycle with the coordinates of its states, edges and labels.

    Raises ``KeyError`` for a lifecycle without a layout, and for a state without coordinates in it.
    """
    layout = layouts()[lifecycle.name]
    positions = {state["name"]: state["at"] for state in layout["states"]}
    return {
        "name": lifecycle.name,
        "initial": lifecycle.initial,
        "width": layout["width"],
        "height": layout["height"],
        "box": layout["box"],
        "states": [
            {
                "name": state,
                "x": positions[state][0],
                "y": positions[state][1],
                "final": state in lifecycle.final,
                "lasts": _lasts(lifecycle, state),
            }
            for state in lifecycle.states
        ],
        "edges": layout["edges"],
    }


def _lasts(lifecycle: Lifecycle, state: str) -> str:
    match lifecycle.lasts.get(state):
        case Within(ns, then):
            return f"at most {_duration(ns)}" + (f", then {then}" if then else "")
        case Unbounded(ends):
            return f"until {ends.replace('_', ' ')}"
    return "for good"


def _duration(ns: int) -> str:
    size, unit = next(
        (size, unit)
        for size, unit in ((HOUR, "h"), (MINUTE, "min"), (SECOND, "s"), (1, "ns"))
        if ns % size == 0
    )
    return f"{ns // size} {unit}"
