"""The scheduler runs on the machines of its lifecycles: on those of the library too, and on changed ones."""

from typing import Any

import pytest
from core_steps import on_nodes, run, serve, submit
from transitions import Machine

from quadriga.core import Options
from quadriga.core.events.records import message_of
from quadriga.fsm import LIFECYCLES, DefinitionError, FastMachine, InvalidTransition, Lifecycle
from quadriga.sim.scripted.script import Script
from tests.core.scheduling.test_core_batch import World
from tests.core.scheduling.test_core_everything import history

Said = tuple[list[Any], list[Any], list[Any]]


def life_of_a_gang(script: Script) -> Script:
    """Placeholders, members that take them over, the end of the application."""
    script.node("n1", memory=20)
    script.app("g", gang={"memory": 2}, style="Hard")
    serve(script, "g", "p0", "p1", group="tg", placeholder=True, memory=1)
    serve(script, "g", "m0", "m1", group="tg", memory=1)
    script.confirm()
    script.schedule()
    for uuid in list(script.scheduler.partition().applications["g"].allocations):
        script.release("g", uuid)
    script.advance(60)
    return script


@pytest.fixture
def on_stock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Options without an engine name the stock one."""
    initialise = Options.__init__

    def stock(self: Any, *args: Any, **settings: Any) -> None:
        initialise(self, *args, **{**settings, "engine": "stock"})

    monkeypatch.setattr(Options, "__init__", stock)


def said_in_a_world(seed: int) -> Said:
    world = World(7000 + seed, (1, 10)[seed % 2])
    for _ in range(25):
        world.step()
    scheduler = world.scheduler
    records = scheduler.events.batch(0, 10**9).records
    return world.said, list(scheduler.journal), [message_of(each) for each in records]


def said_in_a_history(seed: int) -> Said:
    life = history(8000 + seed, 60, curious=False)
    records = life.scheduler.events.batch(0, 10**9).records
    return list(life.log), list(life.scheduler.journal), [message_of(each) for each in records]


@pytest.mark.interpreted
@pytest.mark.parametrize("say", [said_in_a_world, said_in_a_history])
@pytest.mark.parametrize("seed", range(2))
def test_the_stock_engine_says_the_same(say: Any, seed: int, request: Any) -> None:
    fast = say(seed)
    request.getfixturevalue("on_stock")
    stock = say(seed)
    assert fast == stock
    assert len(fast[1]) > 50


def test_the_stock_engine_runs_on_the_class_of_the_library() -> None:
    kernel = Script(options=Options(engine="stock")).scheduler._kernel
    assert kernel.lifecycles is not None and list(kernel.lifecycles) == list(LIFECYCLES)
    for name, lifecycle in kernel.lifecycles.items():
        assert isinstance(lifecycle.machine, Machine)
        assert not isinstance(lifecycle.machine, FastMachine)
        assert lifecycle.rows == LIFECYCLES[name].rows
    assert Script().scheduler._kernel.lifecycles in (None, kernel.lifecycles)  # tox -e stock


@pytest.mark.parametrize("engine", ["fast", "stock"])
def test_observers_of_the_shared_lifecycles_see_every_engine(engine: str) -> None:
    script, seen = Script(options=Options(journal_size=None, engine=engine)), list[Any]()
    stops = [lifecycle.watch(seen.append) for lifecycle in LIFECYCLES.values()]
    try:
        life_of_a_gang(script)
    finally:
        for stop in stops:
            stop()
    assert moves_of(script)[1:] == [
        (f"{o.lifecycle}/{o.entity.key}", o.trigger, o.source, o.target)
        for o in seen
        if o.source != o.target
    ]


def moves_of(script: Script) -> list[tuple[str, str, str, str]]:
    """The journal's changes of state."""
    return [
        (r.key, r.trigger, r.source, r.target)
        for r in script.scheduler.journal
        if r.source != r.target
    ]


def copies() -> dict[str, Lifecycle]:
    return {name: lifecycle.copy() for name, lifecycle in LIFECYCLES.items()}


def test_in_a_gangs_life_the_machines_of_the_lifecycles_decide() -> None:
    """A machine of the library made every change of state in the journal; and nothing else is different."""
    own, told = copies(), list[Any]()
    for name, lifecycle in own.items():

        def tell(data: Any, name: str = name) -> None:
            one = data.transition
            if one.dest not in (None, one.source):
                told.append((f"{name}/{data.model.key}", data.event.name, one.source, one.dest))

        lifecycle.machine.after_state_change.append(tell)
    script = life_of_a_gang(Script(options=Options(journal_size=None, lifecycles=own)))
    assert told == moves_of(script)
    states = [target for key, _, _, target in told if key == "application/g"]
    assert states == ["Accepted", "Running", "Waiting", "Completed"]
    assert script.log == life_of_a_gang(Script(options=Options(journal_size=None))).log


@pytest.mark.parametrize(("settled", "state"), [(False, "Waiting"), (True, "Completed")])
def test_a_condition_added_to_the_application_keeps_it_from_completing(
    settled: bool, state: str
) -> None:
    own = copies()
    for each in own["application"].machine.get_transitions("complete"):
        each.conditions.append(each.condition_cls(lambda data: settled))
    script = on_nodes(options=Options(lifecycles=own), n1={"memory": 20})
    run(script, "a", "x", memory=1)
    script.release("a", "x-0")
    script.advance(60)
    assert script.scheduler.application("a").state == state


@pytest.mark.parametrize("where", ["before", "after", "condition", "observer"])
def test_what_fails_in_an_added_callback_changes_no_decision_and_is_noted(where: str) -> None:
    """Half of an allocation would stay in the queues for good."""

    def fails(*seen: Any) -> bool:
        raise OSError("no line to the pager")

    own, stop = copies(), None
    for lifecycle in own.values():
        machine: Any = lifecycle.machine
        if where == "condition":
            for each in (one for t in lifecycle.triggers() for one in machine.get_transitions(t)):
                each.conditions.append(each.condition_cls(fails))
        elif where != "observer":
            getattr(machine, f"{where}_state_change").append(fails)
    if where == "observer":
        own, stop = {}, LIFECYCLES["application"].watch(fails)
    script = life_of_a_gang(Script(options=Options(journal_size=None, lifecycles=own)))
    if stop is not None:
        stop()
    plain = life_of_a_gang(Script(options=Options(journal_size=None)))
    assert (script.log, moves_of(script)) == (plain.log, moves_of(plain))
    assert script.scheduler.check() == []
    (*_, (_, note)) = script.scheduler.notes
    assert note.startswith("what was added to a lifecycle failed, and its own table was followed: ")
    assert "no line to the pager" in note


def test_a_transition_removed_from_the_machine_is_refused() -> None:
    own = copies()
    own["application"].machine.remove_transition("run", source="Accepted")
    script = on_nodes(options=Options(lifecycles=own), n1={"memory": 20})
    submit(script, "a", "x", memory=1)
    with pytest.raises(InvalidTransition, match="'a' cannot 'run' in state Accepted") as e:
        script.schedule()
    assert any("New --ask--> Accepted" in note for note in e.value.__notes__)


def test_own_lifecycles_stand_for_shared_ones() -> None:
    """Those cannot be changed by accident."""
    for lifecycle in LIFECYCLES.values():
        with pytest.raises(DefinitionError, match=r"lifecycle\.copy\(\)"):
            lifecycle.machine.add_states("Asleep")
    with pytest.raises(ValueError, match="^engine is 'slow', not one of fast, stock$"):
        Options(engine="slow")
    other = LIFECYCLES["node"].copy()
    with pytest.raises(ValueError, match="^lifecycles has the unknown name 'server', not one of "):
        Options(lifecycles={"server": other})
    with pytest.raises(ValueError, match=r"^lifecycles\['ask'\] is named 'node'$"):
        Options(lifecycles={"ask": other})
    other.machine.add_states("Asleep")
    with pytest.raises(ValueError, match="other states than the scheduler knows: Asleep$"):
        Options(lifecycles={"node": other})
