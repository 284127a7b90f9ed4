"""The tables of the simulated resource manager: every row, every illegal pair."""

from __future__ import annotations

import pytest

from quadriga.fsm import InvalidTransition, Lifecycle
from quadriga.fsm.lifecycle import Row
from quadriga.sim import LIFECYCLES, SHIM_APPLICATION, SHIM_TASK

ROWS = [(each, row) for each in LIFECYCLES.values() for row in each.rows]
ILLEGAL = [
    (each, state, trigger)
    for each in LIFECYCLES.values()
    for state in each.states
    for trigger in each.triggers()
    if not each.allows(state, trigger)
]


class Thing:
    key = "thing"

    def __init__(self, state: str) -> None:
        self.state = state


@pytest.mark.parametrize(("lifecycle", "row"), ROWS, ids=lambda value: str(value))
def test_every_row_leads_where_it_says(lifecycle: Lifecycle, row: Row) -> None:
    thing = Thing(row.source)
    lifecycle.fire(thing, row.trigger)
    assert thing.state == (row.target or row.source)


@pytest.mark.parametrize(("lifecycle", "state", "trigger"), ILLEGAL, ids=str)
def test_everything_else_is_refused(lifecycle: Lifecycle, state: str, trigger: str) -> None:
    thing = Thing(state)
    with pytest.raises(InvalidTransition):
        lifecycle.fire(thing, trigger)
    assert thing.state == state


def walk(lifecycle: Lifecycle, *triggers: str) -> list[str]:
    thing = Thing(lifecycle.initial)
    states = []
    for trigger in triggers:
        lifecycle.fire(thing, trigger)
        states.append(thing.state)
    return states


def test_life_of_a_gang() -> None:
    triggers = "submit accept try_reserve update_reservation run complete".split()
    assert walk(SHIM_APPLICATION, *triggers) == [
        "Submitted", "Accepted", "Reserving", "Reserving", "Running", "Completed",
    ]  # fmt: skip


def test_gang_that_goes_on_without_placeholders() -> None:
    triggers = "submit accept try_reserve resume task_completed run".split()
    assert walk(SHIM_APPLICATION, *triggers)[3:] == ["Resuming", "Resuming", "Running"]


def test_x8_releases_before_the_update() -> None:
    triggers = "submit accept try_reserve release_ask release_allocation fail fail".split()
    assert walk(SHIM_APPLICATION, *triggers)[3:] == ["Running", "Running", "Failing", "Failed"]


def test_life_of_a_placeholder() -> None:
    triggers = "init submit allocate bind kill die complete".split()
    assert walk(SHIM_TASK, *triggers) == [
        "Pending", "Scheduling", "Allocated", "Bound", "Killing", "Killed", "Completed",
    ]  # fmt: skip
