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


@pytest.mark.parametrize(
    ("lifecycle", "triggers", "states"),
    [
        pytest.param(
            SHIM_APPLICATION,
            "submit accept try_reserve update_reservation run complete",
            "Submitted Accepted Reserving Reserving Running Completed",
            id="a gang",
        ),
        pytest.param(
            SHIM_APPLICATION,
            "submit accept try_reserve resume task_completed run",
            "Submitted Accepted Reserving Resuming Resuming Running",
            id="a gang that goes on without placeholders",
        ),
        pytest.param(
            SHIM_APPLICATION,
            "submit accept try_reserve release_ask release_allocation fail fail",
            "Submitted Accepted Reserving Running Running Failing Failed",
            id="x8 releases before the update",
        ),
        pytest.param(
            SHIM_TASK,
            "init submit allocate bind kill die complete",
            "Pending Scheduling Allocated Bound Killing Killed Completed",
            id="a placeholder",
        ),
    ],
)
def test_a_life(lifecycle: Lifecycle, triggers: str, states: str) -> None:
    thing = Thing(lifecycle.initial)
    lived = []
    for trigger in triggers.split():
        lifecycle.fire(thing, trigger)
        lived.append(thing.state)
    assert lived == states.split()
