"""Every table with states as its keys has all states of their lifecycle, wherever it is."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from types import ModuleType
from typing import get_args

import pytest

from quadriga.fsm import ALLOCATION, APPLICATION, LIFECYCLES, QUEUE, DefinitionError, Lifecycle
from quadriga.fsm import allocation as allocation_fsm
from quadriga.fsm import application as application_fsm
from quadriga.fsm import node as node_fsm
from quadriga.sim import lifecycles as simulated
from quadriga.sim.lifecycles import LIFECYCLES as SIMULATED

EVERY = (*LIFECYCLES.values(), *SIMULATED.values())

#: tables that leave states out, and why that is right
PARTIAL = {
    "quadriga.core.events.producers._ENTERED": "a rejection is recorded where it is made",
    "quadriga.core.scheduling.ending._AFTER_REMOVAL": "AFTER_REMOVAL without the states of no trigger",
}


def modules() -> Iterator[ModuleType]:
    for package in ("fsm", "core", "diagrams", "sim", "web", "cli"):
        top = import_module(f"quadriga.{package}")
        yield top
        for found in pkgutil.walk_packages(top.__path__, f"{top.__name__}."):
            if not found.name.endswith("__main__"):
                yield import_module(found.name)


def tables(found: Iterable[ModuleType]) -> Iterator[tuple[str, Mapping[str, object], Lifecycle]]:
    """The tables at the top of these modules whose keys are states, with the lifecycle that fits."""
    for module in found:
        for name, table in vars(module).items():
            if isinstance(table, Mapping) and len(table) > 1:
                fitting = [each for each in EVERY if set(table) <= set(each.states)]
                if fitting:
                    best = min(fitting, key=lambda each: len(set(each.states) - set(table)))
                    yield f"{module.__name__}.{name}", table, best


def lacking(found: Iterable[ModuleType]) -> dict[str, list[str]]:
    return {
        name: missing
        for name, table, lifecycle in tables(found)
        if (missing := [state for state in lifecycle.states if state not in table])
    }


@pytest.mark.interpreted  # a compiled module keeps its private tables to itself
def test_every_table_by_state_is_total() -> None:
    every = list(modules())
    assert set(lacking(every)) == set(PARTIAL)
    known = {name for name, _, _ in tables(every)}
    assert known >= {
        "quadriga.fsm.application.AFTER_REMOVAL",
        "quadriga.fsm.application.TONES",
        "quadriga.fsm.application.YUNIKORN_STATES",
        "quadriga.core.runtime.dialect.EVENT_DETAIL",
        "quadriga.web.metrics.yunikorn._LABELS",
        "quadriga.web.pages.data.applications._RANK",
    }


# -- sets that divide the states ---------------------------------------------------------------------


def test_an_application_lives_or_has_ended_and_a_missing_state_is_found() -> None:
    assert sorted((*application_fsm.LIVING, *application_fsm.ENDED)) == sorted(APPLICATION.states)
    assert application_fsm.ENDED - set(application_fsm.RECORDED) == set(APPLICATION.final)
    living = {state for state, way in application_fsm.TO_ITS_END.items() if way}
    assert living == set(application_fsm.LIVING)
    module = ModuleType("colours")
    module.BY_STATE = {"Active": "green", "Draining": "grey", "Stopped": "red"}  # type: ignore[attr-defined]
    module.BY_NAME = {"Active": "green", "other": "grey"}  # type: ignore[attr-defined]
    assert lacking([module]) == {"colours.BY_STATE": ["Removed"]}


def test_the_triggers_to_an_end_lead_there_and_those_after_a_removal_are_legal() -> None:
    for state, way in application_fsm.TO_ITS_END.items():
        here = {state}
        for trigger in way:
            assert all(APPLICATION.allows(each, trigger) for each in here)
            rows = [row for each in here for row in APPLICATION.rows_from(each, trigger)]
            here = {row.target for row in rows if row.target is not None}
        # an application that is killed with nothing left goes on to Killed by itself
        assert here & (application_fsm.ENDED | {application_fsm.KILLING}), state
    for state, trigger in application_fsm.AFTER_REMOVAL.items():
        assert trigger is None or APPLICATION.allows(state, trigger)


def test_the_states_of_allocations_and_nodes_are_divided() -> None:
    held, never = allocation_fsm.ONCE_HELD, allocation_fsm.NEVER_HELD
    assert sorted((*held, *never)) == sorted(ALLOCATION.states)
    assert set(held) >= allocation_fsm.HELD
    sets = (node_fsm.OPEN, node_fsm.CLOSED, node_fsm.GONE)
    assert sorted(state for each in sets for state in each) == sorted(
        set(node_fsm.NODE.states) - {node_fsm.NODE.initial}
    )


# -- names -------------------------------------------------------------------------------------------


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
