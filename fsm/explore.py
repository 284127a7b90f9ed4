"""Paths through a table: to a state, and over every row.

Guards are not called: a path lists the rows to take, and the caller has to arrange the facts so that
the guards agree. All results are deterministic; among equal paths the earlier row wins.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from quadriga.fsm.errors import unknown_state
from quadriga.fsm.lifecycle import Lifecycle
from quadriga.fsm.table import Row, State, Trigger

Path = tuple[Row[State, Trigger], ...]


def path_to(
    lifecycle: Lifecycle[State, Trigger, Any], state: State, start: State | None = None
) -> Path[State, Trigger]:
    """The shortest path to ``state`` from ``start`` (by default the initial state), as the rows to take.

    It is empty if ``start`` is ``state``. A path to a composite ends in the nearest state inside. Raises ``ValueError`` for a state that the lifecycle does not
    have, or that cannot be reached.
    """
    here = _known(lifecycle, start)
    composite = lifecycle.composites.get(str(state))
    goals: tuple[Any, ...] = composite.leaves if composite else (_known(lifecycle, state),)
    for found, path in _ways(lifecycle, here):
        if found in goals:
            return path
    raise ValueError(f"{lifecycle.name} cannot get from {here} to {state}")


def reachable(
    lifecycle: Lifecycle[State, Trigger, Any], start: State | None = None
) -> tuple[State, ...]:
    """The states that can follow ``start`` (by default the initial state), nearest first. ``start`` itself
    is the first one.

    Raises ``ValueError`` for a state that the lifecycle does not have.
    """
    return tuple(state for state, _ in _ways(lifecycle, _known(lifecycle, start)))


def tour(lifecycle: Lifecycle[State, Trigger, Any]) -> tuple[Path[State, Trigger], ...]:
    """Walks from the initial state that together take every row, including rows that stay.

    Each walk continues to the nearest row that was not taken yet, and ends when none can be reached.
    """
    missing = dict.fromkeys(lifecycle.rows)
    walks: list[Path[State, Trigger]] = []
    while missing:
        walk: Path[State, Trigger] = ()
        here = lifecycle.initial
        while ahead := _nearest(lifecycle, here, missing):
            walk += ahead
            here = _end(ahead[-1])
            for taken in ahead:
                missing.pop(taken, None)
        walks.append(walk)
    return tuple(walks)


def _nearest(
    lifecycle: Lifecycle[State, Trigger, Any], here: State, missing: dict[Row[State, Trigger], None]
) -> Path[State, Trigger]:
    """The path to the next missing row and over it; rows that do not change the state come first."""
    for state, path in _ways(lifecycle, here):
        candidates = [row for row in missing if row.source == state]
        if candidates:
            staying = [row for row in candidates if _end(row) == state]
            going_on = [row for row in candidates if row.target not in lifecycle.final]
            return (*path, (staying or going_on or candidates)[0])
    return ()


def _ways(
    lifecycle: Lifecycle[State, Trigger, Any], start: State
) -> Iterator[tuple[State, Path[State, Trigger]]]:
    """Every reachable state with a shortest path to it, nearest first."""
    ways: dict[State, Path[State, Trigger]] = {start: ()}
    queue = [start]
    for state in queue:
        yield state, ways[state]
        for row in lifecycle.rows_from(state):
            if _end(row) not in ways:
                ways[_end(row)] = (*ways[state], row)
                queue.append(_end(row))


def _end(row: Row[State, Trigger]) -> State:
    return row.source if row.target is None else row.target


def _known(lifecycle: Lifecycle[State, Trigger, Any], state: State | None) -> State:
    if state is None:
        return lifecycle.initial
    if state not in lifecycle.states:
        raise ValueError(f"{lifecycle.name}: {unknown_state(state, lifecycle.states)}")
    return state
