"""The names of states and triggers: as types, and as keys of tables."""

from __future__ import annotations

from importlib import import_module
from typing import get_args

import pytest

from quadriga.fsm import LIFECYCLES, QUEUE, DefinitionError, Lifecycle
from quadriga.sim import lifecycles as simulated

TYPES = {
    **{
        table: (module.State, module.Trigger)
        for name, table in LIFECYCLES.items()
        for module in [import_module(f"quadriga.fsm.{name}")]
    },
    simulated.SHIM_APPLICATION: (simulated.ApplicationState, simulated.ApplicationTrigger),
    simulated.SHIM_TASK: (simulated.TaskState, simulated.TaskTrigger),
}


@pytest.mark.parametrize("table", TYPES, ids=lambda each: each.name)
def test_the_types_name_every_state_and_trigger_of_the_table(table: Lifecycle) -> None:
    states, triggers = TYPES[table]
    assert sorted(get_args(states)) == sorted(table.states)
    assert sorted(get_args(triggers)) == sorted(table.triggers())


def test_a_table_with_every_state_is_total_and_any_other_names_what_is_wrong() -> None:
    colours = {"Removed": 4, "Active": 1, "Draining": 2, "Stopped": 3}
    found = QUEUE.total("colours", colours)
    assert found == colours
    assert list(found) == list(colours)
    assert found is not colours
    with pytest.raises(DefinitionError, match=r"^queue: colours lacks Draining, Removed$"):
        QUEUE.total("colours", {"Active": 1, "Stopped": 3})
    colours = dict.fromkeys([*QUEUE.states, "Parked"], 1)
    with pytest.raises(DefinitionError, match=r"^queue: colours has unknown Parked$"):
        QUEUE.total("colours", colours)  # type: ignore[arg-type]
