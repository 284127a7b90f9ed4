"""Every class of machines that the library has does what ``fire`` does: same states, effects and refusals."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from fsm_entities import MACHINES, Model
from transitions import MachineError
from transitions.extensions.asyncio import AsyncMachine

from quadriga.fsm import (
    LIFECYCLES,
    STAYS,
    Effect,
    Fired,
    InvalidTransition,
    Lifecycle,
    history,
    row,
    unbounded,
    within,
)
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
