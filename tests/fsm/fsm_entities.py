"""Entities, models, effects and a small table that several tests of lifecycles use."""

import inspect
from dataclasses import dataclass, field
from typing import Any

from transitions import Machine
from transitions.extensions import factory

from quadriga.fsm import Effect, FastMachine, Fired, Lifecycle, row, unbounded
from quadriga.fsm.fast.locked import FastLockedMachine

#: what the library's factory combines, and the fast ones
MACHINES: list[type[Machine]] = [FastMachine, FastLockedMachine]
MACHINES += [
    cls
    for _, cls in sorted(vars(factory).items())
    if inspect.isclass(cls) and issubclass(cls, Machine)
]


@dataclass(frozen=True, slots=True)
class Note(Effect):
    text: str


def note(it: Any, fired: Fired) -> tuple[Effect, ...]:
    return (Note(f"{fired.trigger}: {fired.source} to {fired.target}"),)


@dataclass(slots=True, eq=False)
class Device:
    key: str = "oven"
    state: str = "Off"
    history: dict[str, str] = field(default_factory=dict)


class Model:
    state: str

    def __init__(self, key: str = "oven") -> None:
        self.key = key
        self.history: dict[str, str] = {}
        self.heard: tuple[Effect, ...] = ()

    def on_effects(self, effects: tuple[Effect, ...]) -> None:
        assert effects, "only where there is something to tell"
        self.heard = effects


def switch(name: str, first: str, there: str, second: str, back: str, **more: Any) -> Lifecycle:
    """Two states, ``there`` and ``back``, and whatever else."""
    return Lifecycle(
        name,
        initial=first,
        final=(),
        lasts={first: unbounded(there), second: unbounded(back), **more.pop("lasts", {})},
        rows=(row(there, first, second), row(back, second, first), *more.pop("rows", ())),
        **more,
    )
