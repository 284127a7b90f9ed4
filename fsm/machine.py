"""The machine of a lifecycle, and guards and emitters as callbacks of any machine of the library.
See D203."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

from transitions import EventData

from quadriga.fsm.errors import DefinitionError, impure, library_name
from quadriga.fsm.fast.events import FastEvent
from quadriga.fsm.fast.machine import FastMachine
from quadriga.fsm.fast.tracking import Marker, follow, marker_of, parts_of
from quadriga.fsm.firing import effects_of, emit
from quadriga.fsm.table import Effect, Emitter, Fired, Guard, Row, name_of

#: Receives the effects after a transition of an embedder's machine. Its result goes to the library: an
#: asynchronous machine awaits it.
Deliver = Callable[[Any, tuple[Effect, ...]], Any]


class LifecycleEvent(FastEvent):
    """A trigger of the machine of a lifecycle."""

    def trigger(self, model: Any, *args: Any, **info: Any) -> bool:
        """The library's own way to fire (``model.run()`` after ``machine.add_model(model)``).

        The effects go to the model's ``on_effects``, if it has one.
        """
        if args:
            raise TypeError(f"{self.machine.name}{self.name} takes its information by name")
        machine = self.machine
        step = machine.lifecycle.take(model, machine.written.get(self.name, self.name), info)
        if step.effects:
            deliver_to_model(model, step.effects)
        return step.row is not None


class _Marker(Marker):
    """Refuses every change of a protected machine, and tells the lifecycle of the others."""

    @property
    def refuses(self) -> bool:
        machine = self.machine()
        return machine is not None and machine.protected

    def before(self) -> None:
        if self.alive:
            self.machine().check_open()
        super().before()

    def after(self) -> None:
        super().after()
        if self.alive:
            self.machine().forget()


class LifecycleMachine(FastMachine):
    """The machine of a lifecycle. Where its parts change, the lifecycle reads it again.

    If it is protected, all of its parts refuse to be changed.
    """

    event_cls = LifecycleEvent
    protected = False
    marker_cls = _Marker
    #: the ``Lifecycle`` whose machine it is
    lifecycle: Any
    #: the triggers as they are written in the table, by the library's names
    written: Mapping[str, Any] = {}

    def __setattr__(self, name: str, value: Any) -> None:
        self.check_open()
        if name == "send_event" and not value:
            raise DefinitionError(f"{self.name}guards and emitters need send_event=True")
        super().__setattr__(name, value)
        self.forget()

    def check_open(self) -> None:
        """Raise ``DefinitionError`` if the machine is protected."""
        if self.protected:
            raise DefinitionError(
                f"{self.name}the shared machine is complete; to extend one, use the machine of "
                "lifecycle.copy(), or one from lifecycle.make_machine()"
            )

    def forget(self) -> None:
        """Let the lifecycle read its machine again."""
        lifecycle = self.__dict__.get("lifecycle")
        if lifecycle is not None:
            lifecycle.forget()

    def follow(self) -> None:
        """Notice every change of the parts that the machine has now."""
        follow(marker_of(self), *parts_of(self))

    # checked first, or a part of the change would be made

    def add_states(self, *library: Any, **options: Any) -> None:
        self.check_open()
        super().add_states(*library, **options)

    def add_transition(self, *library: Any, **options: Any) -> None:
        self.check_open()
        super().add_transition(*library, **options)

    def remove_transition(self, *library: Any, **options: Any) -> None:
        self.check_open()
        super().remove_transition(*library, **options)


LifecycleMachine._fast_class = LifecycleMachine


# -- guards and emitters as the library calls them ---------------------------------------------


class _Named:
    """A callback with the name of the function in it, which graphs and markup of the library print."""

    def __init__(self, function: Guard | Emitter | Row | Deliver) -> None:
        self.__name__ = name_of(function)


class Asking(_Named):
    def __init__(self, guard: Guard) -> None:
        super().__init__(guard)
        self.guard = guard

    def __call__(self, data: EventData) -> Any:
        # the library compares the result with True, but a guard may return any truthy value
        state = _state_before(data)
        answer = self.guard(data.model, data.kwargs)
        _require_state(data, state)
        return _awaited(self, answer, data) if inspect.isawaitable(answer) else bool(answer)

    async def finish(self, answer: Any, data: EventData) -> bool:
        return bool(await answer)


class Emitting(_Named):
    """Runs before the state changes, so an emitter that raises leaves it unchanged."""

    def __init__(self, row: Row) -> None:
        super().__init__(row)
        self.__name__ = "+".join(name_of(emitter) for emitter in row.emit)
        self.row = row
        self.waits = any(map(is_async, row.emit))

    def row_for(self, data: EventData) -> Row:
        """The row with the emitters that are to be called now."""
        row, transition = self.row, cast(Any, data.transition)
        if getattr(transition, "row", None) is not row:
            return row
        dest: Any = transition.dest or None
        if dest != (None if row.target is None else library_name(row.target)):  # changed since
            row = replace(row, target=dest and data.machine.get_state(dest).value)
        return row

    def __call__(self, data: EventData) -> Any:
        row = self.row_for(data)
        if self.waits:
            return _awaited(self, row, data)
        state = _state_before(data)
        data.effects = emit(data.model, row, data.kwargs)  # type: ignore[attr-defined]
        _require_state(data, state)
        return None

    async def finish(self, row: Row, data: EventData) -> None:
        effects: list[Effect] = []
        fired = Fired(row.trigger, row.source, row.target or row.source, data.kwargs)
        for emitter in row.emit:
            made: Any = emitter(data.model, fired)
            if inspect.isawaitable(made):
                made = await made
            if inspect.isasyncgen(made):
                async for effect in cast(Any, made):
                    effects.append(effect)
            else:
                effects += effects_of(emitter, made)
        data.effects = tuple(effects)  # type: ignore[attr-defined]


def _state_before(data: EventData) -> Any:
    """The state of the model. Raises ``TypeError`` if the caller passes information without a name."""
    machine, event = cast(Any, data.machine), cast(Any, data.event)
    if data.args:
        raise TypeError(f"{machine.name}{event.name} takes its information by name")
    return getattr(data.model, machine.model_attribute)


def _require_state(data: EventData, state: Any) -> None:
    machine, event = cast(Any, data.machine), cast(Any, data.event)
    now = getattr(data.model, machine.model_attribute)
    if now != state:
        name = machine.name.removesuffix(": ")
        raise impure(name, data.model, event.name, state, now)


class Handing(_Named):
    """Runs after the state has changed, because the effects must not be visible before."""

    def __init__(self, deliver: Deliver) -> None:
        super().__init__(deliver)
        self.deliver = deliver

    def __call__(self, data: EventData) -> Any:
        tell = getattr(data, "tell", None)  # of an observed machine
        effects = tell() if tell else getattr(data, "effects", ())
        return self.deliver(data.model, effects) if effects else None


def is_async(function: object) -> bool:
    """Whether a guard or an emitter is made by ``async def``."""
    for each in (function, getattr(function, "__call__", None)):  # noqa: B004  # of an object
        if inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each):
            return True
    return False


def _awaited(callback: Asking | Emitting, begun: Any, data: EventData) -> Any:
    """A coroutine for an asynchronous machine; another one cannot await it."""
    from transitions.extensions.asyncio import AsyncMachine

    if isinstance(data.machine, AsyncMachine):
        return callback.finish(begun, data)
    if inspect.iscoroutine(begun):
        begun.close()
    row = getattr(data.transition, "row", None)
    where = f"{data.machine.name}{row}: " if row else data.machine.name
    raise DefinitionError(
        f"{where}{callback.__name__} is async; only an asynchronous machine awaits it: "
        "lifecycle.make_machine(model, AsyncMachine)"
    )


def deliver_to_model(model: Any, effects: tuple[Effect, ...]) -> Any:
    receive = getattr(model, "on_effects", None)
    return receive(effects) if receive else None
