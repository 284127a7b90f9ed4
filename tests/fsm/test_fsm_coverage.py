"""What is counted: machines of the library too, and whether effects are read."""

import asyncio
import copy
import gc
import json
import pickle
from dataclasses import dataclass
from typing import Any
from weakref import ref

import pytest
from fsm_entities import switch
from transitions import Machine
from transitions.extensions import (
    GraphMachine,
    HierarchicalMachine,
    LockedHierarchicalGraphMachine,
    LockedMachine,
)
from transitions.extensions.asyncio import AsyncMachine, HierarchicalAsyncMachine
from transitions.extensions.markup import MarkupMachine

from quadriga.fsm import STAYS, Effect, FastMachine, Fired, Lifecycle, row, unbounded
from quadriga.fsm.coverage import Coverage


@dataclass(frozen=True, slots=True)
class Ring(Effect):
    """The bell rings."""


@dataclass(frozen=True, slots=True)
class Shut(Effect):
    """The door falls shut."""


class Door:
    def __init__(self, state: str = "Closed", *, heavy: bool = False) -> None:
        self.key = "front"
        self.state = state
        self.heavy = heavy


def is_heavy(door: Any, info: Any) -> bool:
    return bool(door.heavy)


def ring(door: Any, fired: Fired) -> list[Effect]:
    return [Ring()]


def ring_and_shut(door: Any, fired: Fired) -> list[Effect]:
    return [Ring(), Shut()]


def make_door(**more: Any) -> Lifecycle:
    return Lifecycle(
        "door",
        initial="Closed",
        final=(),
        lasts={"Closed": unbounded("open"), "Open": unbounded("close")},
        rows=(
            row("open", "Closed", STAYS, when=is_heavy, why="it does not move"),
            row("open", "Closed", "Open", emit=ring),
            row("close", "Open", "Closed", emit=ring_and_shut),
            row("knock", ("Closed", "Open"), STAYS, emit=ring, why="the door is knocked at"),
        ),
        **more,
    )


def opened_once(*rows: Any) -> Lifecycle:
    lasts = {"Closed": unbounded("open")}
    return Lifecycle("door", initial="Closed", final=("Open",), lasts=lasts, rows=rows)


def counts(coverage: Coverage, name: str = "door") -> list[int]:
    return [each["count"] for each in coverage.report()[name]["rows"]]


MACHINES = (
    *(Machine, FastMachine, LockedMachine, HierarchicalMachine, MarkupMachine, GraphMachine),
    *(LockedHierarchicalGraphMachine, AsyncMachine, HierarchicalAsyncMachine),
)


def drive(door: Any, *triggers: str) -> None:
    """Fire at a model, whether its machine is asynchronous or not."""

    async def awaited(result: Any) -> None:
        await result

    for trigger in triggers:
        result = getattr(door, trigger)()
        if not isinstance(result, bool):
            asyncio.run(awaited(result))


@pytest.mark.parametrize("machine_cls", MACHINES, ids=lambda cls: cls.__name__)
def test_machines_of_the_library_are_counted(machine_cls: Any) -> None:
    door, coverage = make_door(), Coverage()
    first, second, heavy = Door(), Door(), Door(heavy=True)
    before = door.make_machine(first, machine_cls)
    coverage.add(door)
    after = door.make_machine(second, machine_cls)
    after.add_model(heavy)
    drive(first, "open", "close")
    drive(second, "open", "knock")
    drive(heavy, "open")
    assert counts(coverage) == [1, 2, 1, 0, 1]
    coverage.stop()
    drive(first, "open")
    drive(second, "close")
    assert counts(coverage) == [1, 2, 1, 0, 1]
    for machine in (before, after):  # nothing is left of it
        for event in machine.events.values():
            for transitions in event.transitions.values():
                assert not any("execute" in each.__dict__ for each in transitions)


def test_the_asynchronous_answers_of_guards_and_emitters_are_awaited() -> None:
    async def is_locked(door: Any, info: Any) -> bool:
        await asyncio.sleep(0)
        return bool(door.heavy)

    async def ring(door: Any, fired: Fired) -> list[Effect]:
        await asyncio.sleep(0)
        return [Ring()]

    table = opened_once(
        row("open", "Closed", STAYS, when=is_locked, why="it is locked"),
        row("open", "Closed", "Open", emit=ring),
    )
    coverage = Coverage(effects=True)
    coverage.add(table)
    door, locked = Door(), Door(heavy=True)
    delivered: list[Any] = []
    machine = table.make_machine(door, AsyncMachine, deliver=lambda m, e: delivered.extend(e))
    machine.add_model(locked)
    drive(locked, "open")
    drive(door, "open")
    assert delivered == [Ring()]
    assert counts(coverage) == [1, 1]
    assert [(each.true, each.false) for each in coverage.guards("door")] == [(1, 1)]
    assert coverage.effects_percent == 100


@pytest.mark.parametrize("machine_cls", [None, Machine, FastMachine, AsyncMachine])
def test_a_transition_that_fails_is_not_counted(machine_cls: Any) -> None:
    def broken(door: Any, fired: Fired) -> list[Effect]:
        raise KeyError

    table = opened_once(row("open", "Closed", "Open", emit=broken))
    coverage = Coverage()
    coverage.add(table)
    door = Door()
    if machine_cls is not None:
        table.make_machine(door, machine_cls)
    with pytest.raises(KeyError):
        drive(door, "open") if machine_cls else table.fire(door, "open")
    assert (door.state, counts(coverage)) == ("Closed", [0])


def test_a_row_counts_although_its_effects_are_lost_and_what_is_added_is_left_alone() -> None:
    def fails(model: Any, effects: Any) -> None:
        raise OSError("the line is dead")

    table, coverage, door = make_door(), Coverage(), Door()
    coverage.add(table)
    table.make_machine(door, deliver=fails)
    with pytest.raises(OSError, match="dead"):
        drive(door, "open")
    assert door.state == "Open"
    assert counts(coverage) == [0, 1, 0, 0, 0]
    table, coverage, door = make_door(), Coverage(), Door()
    machine = table.make_machine(door)
    coverage.add(table)
    machine.add_transition("open", "Open", None)
    machine.add_transition("repaint", "Closed", None)
    drive(door, "repaint", "open", "open")
    assert counts(coverage) == [0, 1, 0, 0, 0]
    coverage.stop()
    drive(door, "open")


def test_states_that_are_lifecycles_are_counted_by_the_state_inside() -> None:
    inner = switch("inner", "Low", "up", "High", "down")
    lamp = Lifecycle(
        "lamp",
        initial="Off",
        final=(),
        lasts={"Off": unbounded("press"), "On": unbounded("press")},
        rows=(row("press", "Off", "On"), row("press", "On", "Off", emit=ring)),
        inside={"On": inner},
    )
    fired, made = Coverage(), Coverage()
    steps = ("press", "up", "press", "press", "press")

    fired.add(lamp)
    it = Door("Off")
    for trigger in steps:
        lamp.fire(it, trigger)
    fired.stop()

    for machine_cls in (Machine, HierarchicalMachine, HierarchicalAsyncMachine):
        made = Coverage()
        made.add(lamp)
        model = Door("Off")
        lamp.make_machine(model, machine_cls)
        drive(model, *steps)
        made.stop()
        assert made.counts() == fired.counts()
    assert sum(each["count"] for each in fired.report()["lamp"]["rows"]) == len(steps)


# -- nothing else changes --------------------------------------------------------------------------


def test_the_observation_shows_in_no_markup_and_keeps_no_machine() -> None:
    table = make_door()
    machine: Any = table.make_machine(None, MarkupMachine)
    plain = json.dumps(machine.markup, default=str)
    coverage = Coverage()
    coverage.add(table)
    machine._needs_update = True
    assert json.dumps(machine.markup, default=str) == plain
    table, coverage = make_door(), Coverage()
    coverage.add(table)
    machine = ref(table.make_machine(Door()))
    gc.collect()
    assert machine() is None


@pytest.mark.parametrize("machine_cls", [Machine, FastMachine])
def test_copies_of_an_observed_machine_work_and_are_not_observed(machine_cls: Any) -> None:
    table, coverage, door = make_door(), Coverage(), Door()
    coverage.add(table)
    machine = table.make_machine(door, machine_cls)
    for again in (copy.deepcopy(machine), pickle.loads(pickle.dumps(machine))):
        (model,) = again.models
        drive(model, "open", "close")
        assert model.state == "Closed"
    assert counts(coverage) == [0, 0, 0, 0, 0]
    drive(door, "open")
    assert counts(coverage) == [0, 1, 0, 0, 0]


# -- effects ---------------------------------------------------------------------------------------


def unread(coverage: Coverage) -> list[tuple[str, int]]:
    """The kinds of effects that nothing has read, with the lines of their rows."""
    return [(each.effect, each.line) for each in coverage.effects_read("door") if not each.read]


@pytest.fixture
def watched() -> tuple[Lifecycle, Coverage]:
    table, coverage = make_door(), Coverage(effects=True)
    coverage.add(table)
    return table, coverage


def test_an_effect_that_nothing_has_read_is_named(watched: tuple[Lifecycle, Coverage]) -> None:
    table, coverage = watched
    door = Door()
    table.fire(door, "open")
    assert table.fire(door, "close") == (Ring(), Shut())
    assert unread(coverage) == [("Ring", 1)]
    assert coverage.effects_percent == pytest.approx(200 / 3)
    (ring,) = table.fire(door, "open")
    assert ring == Ring()
    assert unread(coverage) == []
    assert coverage.effects_percent == 100
    (first, *_) = coverage.effects_read("door")
    assert (first.returned, first.read) == (2, 1)


READS: dict[str, Any] = {
    "compared": lambda effects: effects == (Ring(),),
    "compared from the right": lambda effects: (Ring(),) == effects,
    "unequal": lambda effects: effects != (),
    "first": lambda effects: effects[0],
    "a part": lambda effects: effects[:1],
    "contains": lambda effects: Ring() in effects,
    "loop": lambda effects: [each for each in effects],  # noqa: C416
    "list": list,
    "tuple": tuple,
    "set": set,
    "star": lambda effects: print(*effects),
    "sum": lambda effects: () + effects + (),  # noqa: RUF005
    "extended": lambda effects: [].extend(effects),
    "count": lambda effects: effects.count(Ring()),
    "index": lambda effects: effects.index(Ring()),
    "twice": lambda effects: effects * 2,
    "reversed": lambda effects: list(reversed(effects)),
    "pickled": pickle.dumps,
}
NO_READS: dict[str, Any] = {"length": len, "truth": bool, "text": repr, "hash": hash, "none": id}


@pytest.mark.parametrize("name", [*READS, *NO_READS])
def test_what_reads_effects(name: str, watched: tuple[Lifecycle, Coverage]) -> None:
    table, coverage = watched
    effects = table.fire(Door(), "open")
    (READS | NO_READS)[name](effects)
    assert unread(coverage) == ([("Ring", 1)] if name in NO_READS else [])


def test_effects_are_what_they_are(watched: tuple[Lifecycle, Coverage]) -> None:
    table, _ = watched
    plain = make_door().fire(Door("Open"), "close")
    effects = table.fire(Door("Open"), "close")
    assert isinstance(effects, tuple)
    assert (effects, hash(effects), repr(effects)) == (plain, hash(plain), repr(plain))
    assert (*effects, *effects) == effects * 2 == effects + plain == plain + effects
    match effects:
        case (Ring(), Shut()):
            pass
        case _:
            pytest.fail("they do not match")
    for again in (pickle.loads(pickle.dumps(effects)), copy.copy(effects), copy.deepcopy(effects)):
        assert type(again) is tuple
        assert again == plain


def test_a_model_reads_what_it_receives(watched: tuple[Lifecycle, Coverage]) -> None:
    class Idle(Door):
        def on_effects(self, effects: Any) -> None:
            self.received = effects

    table, coverage = watched
    idle, shared = Idle(), Idle()
    table.make_machine(idle)
    drive(idle, "open")
    assert unread(coverage) == [("Ring", 1)]
    assert idle.received == (Ring(),)
    assert unread(coverage) == []
    table.machine.add_model(shared)
    drive(shared, "knock")
    assert unread(coverage) == [("Ring", 3)]
    assert shared.received == (Ring(),)
    assert unread(coverage) == []


def test_effects_are_plain_unless_asked_for_and_two_that_observe_both_notice(
    watched: tuple[Lifecycle, Coverage],
) -> None:
    table, first = watched
    second = Coverage(effects=True)
    second.add(table)
    effects = table.fire(Door(), "open")
    assert unread(first) == unread(second) == [("Ring", 1)]
    assert effects == (Ring(),)
    assert unread(first) == unread(second) == []
    table, coverage = make_door(), Coverage()
    coverage.add(table)
    assert type(table.fire(Door(), "open")) is tuple
    assert coverage.effects_read("door") == ()
    assert coverage.effects_percent == 100


def test_the_readings_of_several_processes_are_added() -> None:
    mine, theirs = Coverage(effects=True), Coverage(effects=True)
    table = make_door()
    theirs.add(table)
    table.fire(Door(), "open")
    assert table.fire(Door("Open"), "close")[0] == Ring()
    sent = json.loads(json.dumps(theirs.counts()))
    for _ in range(2):
        mine.merge(sent)
    assert unread(mine) == [("Ring", 1)]
    assert [each["returned"] for each in mine.report()["door"]["effects"]] == [2, 2, 2]
