"""Where each lifecycle's states stand, and which way its edges go, on the pages.

The pages draw without graphviz. What there is to draw comes from the tables in ``quadriga.fsm``; only
the places are ours, and a state or an edge without one is an error (which a test would find). States
stand on a grid, edges are lines along it that leave and enter a box at a side: ``r`` is the middle of
its right side, ``b-20`` 20 to the left of the middle of its lower one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from quadriga.fsm import (
    ALLOCATION,
    APPLICATION,
    ASK,
    NODE,
    QUEUE,
    RESOURCE_MANAGER,
    Lifecycle,
    allocation,
    application,
    ask,
    node,
    queue,
    resource_manager,
)
from quadriga.fsm.table import HOUR, MINUTE, SECOND, Unbounded, Within

__all__ = ["BOX", "PICTURES", "Picture", "drawn"]

Point = tuple[float, float]

#: width and height of a state
BOX: Final = (124.0, 54.0)

#: from one row of the grid to the next
_ROW: Final = 112.0
#: around the picture, for labels and for lines
_LEFT: Final = 30.0
_TOP: Final = 10.0

_SIDE: Final = re.compile(r"([lrtb])([+-]\d+)?")


@dataclass(frozen=True, slots=True)
class Picture:
    """``places`` are columns and rows. A way is the side it leaves at and the side it enters at and,
    where both are upper or both lower ones, the row of the lane between them: ``"t-20 t -0.5"``;
    between a right and a left one that lane is a column, by default halfway.
    ``column`` is how far it is from one column to the next: the labels stand in between."""

    places: dict[str, tuple[float, float]]
    ways: dict[tuple[str, str], str]
    column: float = 244.0


def drawn(lifecycle: Lifecycle, picture: Picture) -> dict[str, Any]:
    """The lifecycle with all its coordinates: states, and edges as points, with their triggers."""
    triggers: dict[tuple[str, str], list[str]] = {}
    for row in lifecycle.rows:
        if row.target is not None and row.trigger not in (
            known := triggers.setdefault((row.source, row.target), [])
        ):
            known.append(row.trigger)
    rows = [row for _, row in picture.places.values()]
    lanes = [
        float(way.split()[2]) for way in picture.ways.values() if re.match(r"[tb]\S* \S+ ", way)
    ]
    top = min((*rows, *(lane + 0.25 for lane in lanes)))
    bottom = max((*rows, *(lane - 0.25 for lane in lanes)))
    columns = [column for column, _ in picture.places.values()]

    def centre(place: str | Point) -> Point:
        column, row = picture.places[place] if isinstance(place, str) else place
        return (
            _LEFT + BOX[0] / 2 + column * picture.column,
            _TOP + BOX[1] / 2 + (row - top) * _ROW,
        )

    return {
        "name": lifecycle.name,
        "initial": lifecycle.initial,
        "width": 2 * _LEFT + BOX[0] + max(columns) * picture.column,
        "height": 2 * _TOP + BOX[1] + (bottom - top) * _ROW,
        "box": list(BOX),
        "states": [
            {
                "name": state,
                "x": centre(state)[0],
                "y": centre(state)[1],
                "final": state in lifecycle.final,
                "lasts": _lasts(lifecycle, state),
            }
            for state in lifecycle.states
        ],
        "edges": [
            {
                "source": source,
                "target": target,
                "triggers": names,
                "points": _points(centre, source, target, picture.ways[source, target]),
            }
            for (source, target), names in triggers.items()
        ],
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


def _points(
    centre: Callable[[str | Point], Point], source: str, target: str, way: str
) -> list[list[float]]:
    """From the border of one box to that of the other, with every corner in between."""
    leave, enter, *lane = way.split()
    start, end = _at(centre(source), leave), _at(centre(target), enter)
    upright_start, upright_end = leave[0] in "tb", enter[0] in "tb"
    corners: list[Point] = []
    if lane and upright_start:
        _, height = centre((0, float(lane[0])))
        corners = [(start[0], height), (end[0], height)]
    elif lane:
        across, _ = centre((float(lane[0]), 0))
        corners = [(across, start[1]), (across, end[1])]
    elif upright_start != upright_end:
        corners = [(start[0], end[1]) if upright_start else (end[0], start[1])]
    elif upright_start and start[0] != end[0]:
        middle = (start[1] + end[1]) / 2
        corners = [(start[0], middle), (end[0], middle)]
    elif not upright_start and start[1] != end[1]:
        middle = (start[0] + end[0]) / 2
        corners = [(middle, start[1]), (middle, end[1])]
    return [[x, y] for x, y in (start, *corners, end)]


def _at(centre: Point, side: str) -> Point:
    found = _SIDE.fullmatch(side)
    if found is None:
        raise ValueError(f"{side!r} is no side of a box")
    away = float(found[2] or 0)
    (x, y), (width, height) = centre, BOX
    return {
        "l": (x - width / 2, y + away),
        "r": (x + width / 2, y + away),
        "t": (x + away, y - height / 2),
        "b": (x + away, y + height / 2),
    }[found[1]]


# fmt: off
PICTURES: Final[dict[str, Picture]] = {
    APPLICATION.name: Picture(
        places={
            application.NEW:       (0, 1),
            application.ACCEPTED:  (1, 1),
            application.STARTING:  (2, 0),
            application.RUNNING:   (3, 1),
            application.WAITING:   (4, 1),
            application.RESUMING:  (1, 0),
            application.KILLING:   (4, 2),
            application.COMPLETED: (5, 1),
            application.KILLED:    (5, 2),
            application.REJECTED:  (5, 0),
            application.EXPIRED:   (6, 1),
        },
        ways={
            (application.NEW, application.ACCEPTED):      "r l",
            (application.NEW, application.REJECTED):      "t-24 t -0.42",
            (application.ACCEPTED, application.RESUMING): "t-24 b-24",
            (application.RESUMING, application.ACCEPTED): "b+24 t+24",
            (application.ACCEPTED, application.STARTING): "r-14 l",
            (application.ACCEPTED, application.RUNNING):  "r l",
            (application.ACCEPTED, application.WAITING):  "b+30 b-30 1.45",
            (application.STARTING, application.RUNNING):  "r+14 t",
            (application.STARTING, application.WAITING):  "r-10 t",
            (application.RUNNING, application.WAITING):   "r-12 l-12",
            (application.WAITING, application.RUNNING):   "l+12 r+12",
            (application.WAITING, application.COMPLETED): "r l",
            (application.NEW, application.KILLING):       "b l",
            (application.ACCEPTED, application.KILLING):  "b-10 l",
            (application.STARTING, application.KILLING):  "b l",
            (application.RUNNING, application.KILLING):   "b l",
            (application.WAITING, application.KILLING):   "b+10 t+10",
            (application.RESUMING, application.KILLING):  "r+8 l 1.39",
            (application.KILLING, application.KILLED):    "r l",
            (application.COMPLETED, application.EXPIRED): "r l",
            (application.KILLED, application.EXPIRED):    "r b",
            (application.REJECTED, application.EXPIRED):  "r t",
        },
        column=202.0,
    ),
    ASK.name: Picture(
        places={
            ask.INITIAL:   (0, 0),
            ask.PENDING:   (1, 0),
            ask.ALLOCATED: (2, 0),
            ask.REJECTED:  (0, 1),
            ask.PARKED:    (1, 1),
        },
        ways={
            (ask.INITIAL, ask.PENDING):   "r l",
            (ask.INITIAL, ask.REJECTED):  "b t",
            (ask.PENDING, ask.REJECTED):  "l+16 r-14",
            (ask.PARKED, ask.REJECTED):   "l+12 r+12",
            (ask.PENDING, ask.ALLOCATED): "r l",
            (ask.PARKED, ask.PENDING):    "t+24 b+24",
            (ask.PARKED, ask.ALLOCATED):  "r b",
            (ask.PENDING, ask.PARKED):    "b-24 t-24",
        },
    ),
    ALLOCATION.name: Picture(
        places={
            allocation.PLANNED:   (0, 0),
            allocation.ALLOCATED: (1, 0),
            allocation.RELEASING: (2, 0),
            allocation.DISCARDED: (0, 1),
            allocation.COMPLETED: (1, 1),
            allocation.REPLACED:  (3, 0),
            allocation.PREEMPTED: (3, 1),
            allocation.EXPIRED:   (3, 2),
        },
        ways={
            (allocation.PLANNED, allocation.ALLOCATED):   "r l",
            (allocation.PLANNED, allocation.DISCARDED):   "b t",
            (allocation.ALLOCATED, allocation.COMPLETED): "b t",
            (allocation.RELEASING, allocation.COMPLETED): "b-24 r",
            (allocation.ALLOCATED, allocation.RELEASING): "r l",
            (allocation.RELEASING, allocation.EXPIRED):   "b+24 l",
            (allocation.RELEASING, allocation.PREEMPTED): "r+14 l",
            (allocation.RELEASING, allocation.REPLACED):  "r l",
        },
    ),
    NODE.name: Picture(
        places={
            node.NEW:         (0, 0),
            node.SCHEDULABLE: (1, 0),
            node.REMOVED:     (2, 0),
            node.REJECTED:    (0, 1),
            node.DRAINING:    (1, 1),
        },
        ways={
            (node.NEW, node.DRAINING):         "r+14 l",
            (node.NEW, node.SCHEDULABLE):      "r l",
            (node.NEW, node.REJECTED):         "b t",
            (node.SCHEDULABLE, node.DRAINING): "b-24 t-24",
            (node.DRAINING, node.SCHEDULABLE): "t+24 b+24",
            (node.SCHEDULABLE, node.REMOVED):  "r l",
            (node.DRAINING, node.REMOVED):     "r b",
        },
    ),
    RESOURCE_MANAGER.name: Picture(
        places={
            resource_manager.INIT:    (0, 0),
            resource_manager.RUNNING: (1, 0),
            resource_manager.PAUSED:  (2, 0),
            resource_manager.STOPPED: (2, 1),
        },
        ways={
            (resource_manager.INIT, resource_manager.RUNNING):    "r l",
            (resource_manager.STOPPED, resource_manager.RUNNING): "l-12 b+24",
            (resource_manager.RUNNING, resource_manager.RUNNING): "t-24 t+24 -0.42",
            (resource_manager.PAUSED, resource_manager.RUNNING):  "l+12 r+12",
            (resource_manager.RUNNING, resource_manager.PAUSED):  "r-12 l-12",
            (resource_manager.PAUSED, resource_manager.STOPPED):  "b-24 t-24",
            (resource_manager.RUNNING, resource_manager.STOPPED): "b-24 l+12",
        },
    ),
    QUEUE.name: Picture(
        places={
            queue.ACTIVE:   (0, 0),
            queue.DRAINING: (1, 0),
            queue.STOPPED:  (0, 1),
            queue.REMOVED:  (1, 1),
        },
        ways={
            (queue.ACTIVE, queue.DRAINING):  "r-12 l-12",
            (queue.DRAINING, queue.ACTIVE):  "l+12 r+12",
            (queue.ACTIVE, queue.STOPPED):   "b-24 t-24",
            (queue.STOPPED, queue.ACTIVE):   "t+24 b+24",
            (queue.DRAINING, queue.REMOVED): "b t",
            (queue.STOPPED, queue.REMOVED):  "r l",
        },
    ),
}
# fmt: on
