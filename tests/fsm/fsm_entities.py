"""Entities, models, effects and a small table that several tests of lifecycles use."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from quadriga.fsm import Effect, Fired, Lifecycle, row, unbounded


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
    """A model of the library that keeps the effects of its last trigger."""

    state: str

    def __init__(self, key: str = "oven") -> None:
        self.key = key
        self.history: dict[str, str] = {}
        self.heard: tuple[Effect, ...] = ()

    def on_effects(self, effects: tuple[Effect, ...]) -> None:
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
