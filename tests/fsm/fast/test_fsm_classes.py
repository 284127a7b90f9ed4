"""Every class of machines that the library has does what ``fire`` does: same states, effects and refusals."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from fsm_entities import MACHINES, Model
from transitions import MachineError
from transitions.extensions import GraphMachine, MachineFactory
from transitions.extensions.asyncio import AsyncMachine
from transitions.extensions.markup import MarkupMachine

from quadriga.fsm import (
    LIFECYCLES,
    NODE,
    STAYS,
    DefinitionError,
    Effect,
    Fired,
    InvalidTransition,
    Lifecycle,
    history,
    row,
    unbounded,
    within,
)
from quadriga.fsm.lifecycles.effects import CloseNode, OpenNode
from quadriga.fsm.table import Info, text_of

#: by name
CLASSES = {cls.__name__: cls for cls in MACHINES}


@dataclass(frozen=True, slots=True)
class Did(Effect):
    what: str
    state: str


def did(what: str) -> Callable[[Any, Fired], Iterator[Effect]]:
    def emit(oven: Any, fired: Fired) -> Iterator[Effect]:
        assert oven.state == fired.source  # the old one still
        yield Did(f"{what} by {fired.trigger}", fired.target)

    emit.__name__ = what
    return emit


def is_allowed(oven: Any, info: Info) -> bool:
    return bool(info.get("allowed"))


# fmt: off
HEATER = Lifecycle(
    "heater",
    initial="Cold",
    final=(),
    lasts={
        "Cold": within(60, then="warm"),
        "Warm": unbounded("cool"),
        "Hot":  within(5, then="cool"),
    },
    rows=(
        row("warm",  "Cold",            "Warm",      when=is_allowed),
        row("warm",  "Cold",            STAYS,       emit=did("complain")),
        row("warm",  "Warm",            "Hot"),
        row("cool",  ("Warm", "Hot"),   "Cold",      emit=did("blow")),
    ),
    on_enter={"Hot": did("beep")},
    on_exit={"Hot": did("rest")},
)
OVEN = Lifecycle(
    "oven",
    initial="Off",
    final=("Broken",),
    lasts={"Off": unbounded("switch"), "On": unbounded("switch"), "Open": unbounded("shut")},
    rows=(
        row("switch", "Off",            "On",                    emit=did("shine")),
        row("switch", "On",             "Off"),
        row("open",   "On",             "Open"),
        row("shut",   "Open",           history("On", deep=True)),
        row("reset",  "On",             "On"),
        row("look",   ("Off", "Open"),  STAYS,                   emit=did("smell")),
        row("drop",   ("Off", "Open"),  "Broken"),
    ),
    inside={"On": HEATER},
    on_exit={"On": did("cool_down")},
)
# fmt: on
TABLES: dict[str, Lifecycle] = {**LIFECYCLES, "oven": OVEN}
#: graphs are slow
PAIRS = [(c, t) for c in CLASSES for t in TABLES if "Graph" not in c or t in ("node", "oven")]


@pytest.mark.parametrize(("cls", "name"), PAIRS)
def test_a_machine_does_what_fire_does(cls: str, name: str, born: Any, steer: Any) -> None:
    if "Graph" in cls:
        pytest.importorskip("graphviz")
    table, machine_cls = TABLES[name], CLASSES[cls]
    machine = table.make_machine(machine_cls=machine_cls)

    async def fire(model: Any, trigger: str, info: dict[str, Any]) -> None:
        done = model.trigger(trigger, **info)
        assert (await done if isinstance(done, Awaitable) else done) is True

    async def scene() -> int:
        moves = 0
        dice = random.Random(f"{cls} {name}")
        for _ in range(10):
            life, model = born(table.initial), Model()
            machine.add_model(model)
            entity: Any = _History(life) if table is OVEN else life
            for _ in range(12):
                legal = table.triggers(life.state) if dice.random() < 0.8 else ()
                trigger = dice.choice(legal or table.triggers())
                rows = table.rows_from(life.state, trigger)
                info = steer(life, dice.choice(rows)) if rows and table is not OVEN else {}
                if table is OVEN:
                    info = {"allowed": dice.random() < 0.8}
                for fact in type(life).__slots__:
                    if fact not in ("state", "key"):
                        setattr(model, fact, getattr(life, fact))
                model.key, model.heard = life.key, ()
                before = life.state
                try:
                    effects = table.fire(entity, trigger, **info)
                except InvalidTransition:
                    with pytest.raises(MachineError):
                        await fire(model, text_of(trigger), info)
                    effects = ()
                else:
                    await fire(model, text_of(trigger), info)
                    moves += life.state != before
                assert (model.state, model.heard) == (life.state, effects), (before, trigger)
                if table is OVEN:
                    assert model.history == entity.history
        return moves

    assert asyncio.run(scene()) > 10
    assert issubclass(machine_cls, AsyncMachine) == ("Async" in cls)


class _History:
    """An entity that remembers where it was inside of a state."""

    def __init__(self, life: Any) -> None:
        self.life = life
        self.key = life.key
        self.history: dict[str, str] = {}

    @property
    def state(self) -> str:
        return str(self.life.state)

    @state.setter
    def state(self, state: str) -> None:
        self.life.state = state


class Server:
    state: str

    def __init__(self, key: str = "n-1") -> None:
        self.key = key
        self.heard: list[Any] = []

    def on_effects(self, effects: Any) -> None:
        self.heard.append((self.state, effects))


def test_a_graph_machine() -> None:
    pytest.importorskip("graphviz")
    server: Any = Server()
    NODE.make_machine(server, GraphMachine, show_conditions=True)
    server.accept()
    source = server.get_graph().source
    assert all(state in source for state in NODE.states)
    assert "created_draining" in source


def test_the_shared_machine_takes_models(twin: Any) -> None:
    node = twin(NODE)
    server: Any = Server()
    node.machine.add_model(server)
    assert server.state == "New"
    assert server.may_accept()
    assert not server.may_drain()
    assert server.accept(draining=True)
    assert server.is_Draining()
    assert server.trigger("schedule")
    assert server.heard == [("Draining", (CloseNode(),)), ("Schedulable", (OpenNode(),))]
    with pytest.raises(InvalidTransition, match="node 'n-1' cannot 'accept' in state Schedulable"):
        server.accept()
    node.machine.remove_model(server)


def test_the_shared_machine_is_one_for_all_entities(twin: Any, born: Any) -> None:
    node = twin(NODE)
    for _ in range(3):
        node.fire(born("New"), "accept")
    assert node.machine.models == []


def test_the_shared_machine_knows_its_states_and_triggers(lifecycle: Lifecycle) -> None:
    machine = lifecycle.machine
    assert tuple(machine.states) == lifecycle.states
    # only newer versions of the library know of it for states that are not final
    final = (s.name for s in machine.states.values() if getattr(s, "final", False))
    assert tuple(final) == lifecycle.final
    assert machine.initial == lifecycle.initial
    for state in lifecycle.states:
        assert set(machine.get_triggers(state)) == set(lifecycle.triggers(state))


def test_a_table_can_be_exported_as_markup(lifecycle: Lifecycle) -> None:
    markup: Any = lifecycle.make_machine(None, MarkupMachine).markup  # type: ignore[attr-defined]
    assert markup["name"] == lifecycle.name
    assert markup["initial"] == lifecycle.initial
    assert [state["name"] for state in markup["states"]] == list(lifecycle.states)
    exported = {
        (t["source"], t["trigger"], t.get("dest"), tuple(t.get("conditions", ())))
        for t in markup["transitions"]
    }
    built = {
        (r.source, r.trigger, r.target, (r.guard.__name__,) if r.guard else ())
        for r in lifecycle.rows
    }
    assert exported == built


class Lockable:
    key = "n-1"
    state: str

    def __init__(self) -> None:
        self.lock = asyncio.Lock()


def name_of(effects: Any) -> str:
    (effect,) = effects
    return type(effect).__name__


ONE_BY_ONE = "begin OpenNode, end OpenNode, begin CloseNode, end CloseNode"


@pytest.mark.parametrize(
    ("options", "locked", "delivered"),
    [
        ({}, False, "begin OpenNode, begin CloseNode, end CloseNode"),
        ({"queued": "model"}, False, ONE_BY_ONE),
        ({}, True, ONE_BY_ONE),
    ],
)
def test_a_trigger_interrupts_a_delivery_unless_triggers_of_a_model_wait_for_each_other(
    options: dict[str, Any], locked: bool, delivered: str
) -> None:
    heard: list[str] = []

    async def scene() -> None:
        begun = asyncio.Event()

        async def deliver(model: Any, effects: Any) -> None:
            heard.append(f"begin {name_of(effects)}")
            begun.set()
            for _ in range(9):
                await asyncio.sleep(0)
            heard.append(f"end {name_of(effects)}")

        server: Any = Lockable()
        NODE.make_machine(server, AsyncMachine, deliver=deliver, **options)

        async def fire(trigger: str) -> bool:
            async with AsyncExitStack() as stack:
                if locked:
                    await stack.enter_async_context(server.lock)
                return bool(await server.trigger(trigger))

        first = asyncio.create_task(fire("accept"))
        await begun.wait()
        results = await asyncio.gather(fire("drain"), first)
        assert server.state == "Draining"
        assert results == [True, bool(options) or locked]  # what was cancelled returns False

    asyncio.run(scene())
    assert ", ".join(heard) == delivered


@dataclass(frozen=True, slots=True)
class Lit(Effect):
    state: str


def lit(lamp: Any, fired: Fired) -> tuple[Effect, ...]:
    return (Lit(fired.target),)


# fmt: off
LAMP = Lifecycle(
    "lamp",
    initial="Off",
    final=(),
    lasts={"Off": unbounded("press"), "On": unbounded("press")},
    rows=(row("press", "Off", "On", emit=lit), row("press", "On", "Off", emit=lit)),
)
# fmt: on


async def is_charged(lamp: Any, info: Any) -> bool:
    await asyncio.sleep(0)
    return bool(info["charge"])


async def beep(lamp: Any, fired: Fired) -> AsyncIterator[Effect]:
    await asyncio.sleep(0)
    assert lamp.state == fired.source
    yield Lit(f"beep {fired.target}")


async def glow(lamp: Any, fired: Fired) -> tuple[Effect, ...]:
    await asyncio.sleep(0)
    if fired.info.get("broken"):
        raise OSError("the lamp is broken")
    return (Lit(fired.target),)


# fmt: off
TORCH = Lifecycle(
    "torch",
    initial="Off",
    final=(),
    lasts={"Off": unbounded("switch"), "Lit": unbounded("switch")},
    rows=(
        row("switch", "Off", "Lit", when=is_charged, emit=(beep, lit, glow)),
        row("switch", "Off", STAYS,                  emit=beep),
        row("switch", "Lit", "Off"),
    ),
    inside={"Lit": LAMP.extend(name="level")},
    on_exit={"Lit": beep},
)
# fmt: on


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("nested", [False, True])
def test_asynchronous_machines_await_guards_and_emitters(nested: bool, graph: bool) -> None:
    if graph:
        pytest.importorskip("graphviz")
    machine_cls = MachineFactory.get_predefined(asyncio=True, nested=nested, graph=graph)

    class Told(Model):
        async def on_effects(self, effects: tuple[Effect, ...]) -> None:  # type: ignore[override]
            await asyncio.sleep(0)
            self.heard = effects

    async def scene() -> None:
        torch: Any = Told()
        TORCH.make_machine(torch, machine_cls)
        assert await torch.switch(charge=0)
        assert (torch.state, torch.heard) == ("Off", (Lit("beep Off"),))
        with pytest.raises(OSError, match="the lamp is broken"):
            await torch.switch(charge=1, broken=True)
        assert (torch.state, torch.heard) == ("Off", (Lit("beep Off"),))
        assert await torch.switch(charge=1)
        assert torch.state == "Lit_Off"
        assert torch.heard == (Lit("beep Lit_Off"), Lit("Lit_Off"), Lit("Lit_Off"))
        assert await torch.press()  # the lamp inside
        assert torch.state == "Lit_On"
        assert await torch.switch()
        assert (torch.state, torch.heard) == ("Off", (Lit("beep Off"),))

    asyncio.run(scene())


def test_every_class_that_cannot_await_refuses_an_asynchronous_guard() -> None:
    for locked, nested in ((False, False), (True, False), (False, True), (True, True)):
        torch: Any = Lockable.__new__(Lockable)
        TORCH.make_machine(torch, MachineFactory.get_predefined(locked=locked, nested=nested))
        with pytest.raises(DefinitionError, match="is_charged is async; only an asynchronous"):
            torch.switch(charge=1)
        assert torch.state == "Off"
