"""The seven tables as the design states them, written down a second time."""

import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from types import ModuleType
from typing import get_args

import pytest

from quadriga.fsm import ALLOCATION, APPLICATION, LIFECYCLES, QUEUE, DefinitionError, Lifecycle
from quadriga.fsm.lifecycles import allocation as allocation_fsm
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.fsm.lifecycles import node as node_fsm
from quadriga.sim import lifecycles as simulated
from quadriga.sim.lifecycles import LIFECYCLES as SIMULATED

DESIGN = {
    "application": """
        New reject Rejected
        New,Waiting ask Accepted,Running
        Accepted,Starting,Running,Resuming ask =
        Accepted run Accepted|Starting|Running
        Starting run Starting|Running
        Waiting run Waiting|Running
        Running run =
        Accepted wait Accepted|Waiting
        Starting wait Starting|Waiting
        Running wait Running|Waiting
        Waiting complete Waiting|Completed
        Accepted placeholder_timeout Accepted|Killing|Resuming
        Starting,Running,Waiting,Resuming,Killing placeholder_timeout =
        Resuming resumed Resuming|Accepted
        New,Accepted,Starting,Running,Waiting,Resuming kill Killing
        Killing kill =
        Killing killed Killing|Killed
        Completed,Killed,Rejected expire Expired
    """,
    "gang": """
        Queued gather Gathering
        Gathering abandon Gathering|Queued
        Queued,Gathering place Placed
        Placed place =
        Queued requeue =
        Gathering,Placed requeue Queued
        Queued,Gathering,Placed end Ended
    """,
    "ask": """
        Initial submit Pending
        Initial,Pending,Parked reject Rejected
        Pending allocate Pending|Allocated
        Pending park Parked
        Parked allocate Pending|Allocated
        Parked unpark Pending
        Pending,Parked update =
    """,
    "allocation": """
        Planned allocate Allocated
        Planned discard Discarded
        Allocated,Releasing complete Completed
        Allocated release Releasing
        Releasing release =
        Releasing confirm Expired|Preempted|Replaced
    """,
    "node": """
        New accept Schedulable|Draining
        New reject Rejected
        Schedulable drain Draining
        Draining drain =
        Draining schedule Schedulable
        Schedulable,Draining update =
        Schedulable,Draining decommission Removed
    """,
    "resource_manager": """
        Init,Running,Paused,Stopped register Running
        Running disconnect Paused
        Paused reconnect Running
        Paused timeout Stopped
        Running,Paused shutdown Stopped
    """,
    "queue": """
        Active remove Draining
        Draining remove =
        Active stop Stopped
        Stopped stop =
        Stopped start Active
        Active start =
        Draining restore Active
        Draining,Stopped removed Removed
    """,
}
FINAL = {
    "application": {"Expired"},
    "gang": {"Ended"},
    "ask": {"Allocated", "Rejected"},
    "allocation": {"Discarded", "Completed", "Preempted", "Expired", "Replaced"},
    "node": {"Rejected", "Removed"},
    "resource_manager": set(),
    "queue": {"Removed"},
}


def _stated(text: str) -> set[tuple[str, str, str]]:
    found = set()
    for line in text.split("\n"):
        if not line.strip():
            continue
        sources, trigger, targets = line.split()
        several = sources.split(",")
        # "New,Waiting ask Accepted,Running" pairs them; alternatives have a bar
        pairs = zip(several, targets.split(","), strict=True) if "," in targets else None
        for source, target in pairs or [(s, targets) for s in several]:
            for each in target.split("|"):
                found.add((source, trigger, source if each == "=" else each))
    return found


@pytest.mark.parametrize("name", LIFECYCLES)
def test_the_table_is_the_one_of_the_design(name: str) -> None:
    lifecycle = LIFECYCLES[name]
    built = {(r.source, r.trigger, r.target or r.source) for r in lifecycle.rows}
    assert built == _stated(DESIGN[name])
    assert set(lifecycle.final) == FINAL[name]


def test_the_design_has_seven_tables_and_states_are_divided() -> None:
    assert set(LIFECYCLES) == set(DESIGN) == set(FINAL)
    held, never = allocation_fsm.ONCE_HELD, (allocation_fsm.PLANNED, allocation_fsm.DISCARDED)
    assert sorted((*held, *never)) == sorted(ALLOCATION.states)
    assert set(held) >= allocation_fsm.HELD
    sets = (node_fsm.OPEN, node_fsm.CLOSED, node_fsm.GONE)
    assert sorted(state for each in sets for state in each) == sorted(
        set(node_fsm.NODE.states) - {node_fsm.NODE.initial}
    )


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
        "quadriga.fsm.lifecycles.application.AFTER_REMOVAL",
        "quadriga.fsm.lifecycles.application.TONES",
        "quadriga.fsm.lifecycles.application.YUNIKORN_STATES",
        "quadriga.core.runtime.dialect.EVENT_DETAIL",
        "quadriga.web.metrics.yunikorn._LABELS",
        "quadriga.web.pages.data.applications._RANK",
    }


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


TYPES = {
    **{
        table: (module.State, module.Trigger)
        for name, table in LIFECYCLES.items()
        for module in [import_module(f"quadriga.fsm.lifecycles.{name}")]
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
