"""The time limits of states on asyncio: ``AsyncTimers`` drives ``Timers`` with a clock, and fires.

``quadriga.fsm`` does not import this module, so that it need not import asyncio.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from inspect import isawaitable
from typing import Any, Final, NoReturn

from quadriga.base.times import SECOND
from quadriga.fsm.firing import Outcome
from quadriga.fsm.lifecycle import Lifecycle
from quadriga.fsm.table import Effect, Entity, State, Trigger
from quadriga.fsm.timers import Due, OwnLimit, Timers

#: how long (s) a clock that is not the event loop's is trusted to go on
_LOOKS_EVERY: Final = 0.02


class AsyncTimers:
    """Fires triggers of any number of entities, by call and by time, and hands on their effects.

    ``deliver(entity, effects)`` receives the effects of each transition that has some. ``overdue(due)``
    receives entities that outstay a state whose limit names no trigger. ``failed(due, error)`` receives
    the errors of triggers that were fired by time; without it they end ``run``. These three may be
    coroutine functions.

    ``fire(due, entity)``, which may be a coroutine function too, fires the trigger of a time limit in another
    way than ``AsyncTimers.fire``: ``lambda due, model: model.trigger(due.trigger)`` for models of machines of
    the library. The machine then has its own ``deliver``. ``follow`` starts the timers of such models.

    ``load(due)`` returns the entity to fire at, for a program that stores entities and loads them when it
    needs them, or ``None`` if there is none any more. Without it this is the object that entered the state.
    ``clock`` returns the time in ns; without it the clock is that of the event loop. A clock may be set, so
    ``run`` looks at it every 20 ms while something is to become due, and at once after ``wake``.

    The triggers of time limits are fired while ``run`` runs::

        async with asyncio.TaskGroup() as group:
            running = group.create_task(timers.run())
            await timers.fire(ORDER, order, "pay")
            ...
            running.cancel()
    """

    def __init__(
        self,
        deliver: Callable[[Any, tuple[Effect, ...]], object] | None = None,
        *,
        fire: Callable[[Due, Any], object] | None = None,
        overdue: Callable[[Due], object] | None = None,
        failed: Callable[[Due, Exception], object] | None = None,
        load: Callable[[Due], Any] | None = None,
        clock: Callable[[], int] | None = None,
        own_limit: OwnLimit | None = None,
    ) -> None:
        self._timers = Timers(own_limit)
        self._deliver = deliver
        self._fire = fire
        self._overdue = overdue
        self._failed = failed
        self._load = load
        self._clock = clock
        self._earlier: asyncio.Event | None = None  # while ``run`` runs: something is due earlier
        self._sleeps_until: int | None = None

    def now(self) -> int:
        """The present instant (ns) of the clock."""
        if self._clock is not None:
            return self._clock()
        return round(asyncio.get_running_loop().time() * SECOND)

    async def fire(
        self,
        lifecycle: Lifecycle[State, Trigger],
        entity: Entity[State],
        trigger: Trigger,
        /,
        **info: Any,
    ) -> tuple[Effect, ...]:
        """Fire, start the timer of the state that is entered, and hand on the effects.

        Returns the effects when they have been delivered. Raises what ``Lifecycle.fire`` and ``deliver``
        raise. The state and the timer change at once; only the delivery may be waited for.
        """
        effects = self._timers.fire(lifecycle, entity, trigger, self.now(), **info)
        self._wake()
        await self._hand_on(entity, effects)
        return effects

    def entered(self, lifecycle: Lifecycle, entity: Any) -> None:
        """The entity has just entered its state, for example because it is new (``Timers.entered``)."""
        self._timers.entered(lifecycle, entity, self.now())
        self._wake()

    def follow(self, lifecycle: Lifecycle) -> Callable[[], None]:
        """Start and end the timers of all entities that are fired at from now on in any way, those of the
        machines of ``make_machine`` included. Returns a function that ends this."""

        def seen(outcome: Outcome) -> None:
            self._timers.follow(lifecycle, outcome, self.now())
            self._wake()

        return lifecycle.watch(seen)

    def resume(self, lifecycle: Lifecycle, entity: Any, when: int, state: Any = None) -> None:
        """Continue the stay of a stored entity, whose time is up at ``when`` (``Timers.resume``)."""
        self._timers.resume(lifecycle, entity, when, state)
        self._wake()

    def stop(self, lifecycle: Lifecycle, entity: Any) -> None:
        """End the timer of the entity (``Timers.stop``)."""
        self._timers.stop(lifecycle, entity)

    def deadline(self, lifecycle: Lifecycle, entity: Any, state: Any = None) -> int | None:
        """The instant at which the time of the entity is up (``Timers.deadline``)."""
        return self._timers.deadline(lifecycle, entity, state)

    def wake(self) -> None:
        """Let ``run`` look at the clock, because it has been set."""
        if self._earlier is not None:
            self._earlier.set()

    async def run(self) -> NoReturn:
        """Fire what is due, one after the other, until the task is cancelled.

        Without ``failed`` an error ends it; then it may be called again. A trigger that a guard or an
        emitter prevented is due again.
        """
        if self._earlier is not None:
            raise RuntimeError("AsyncTimers.run is running already")
        self._earlier = asyncio.Event()
        try:
            while True:
                for due in self._timers.due(self.now()):
                    try:
                        await self._handle(due)
                    except Exception as error:
                        if self._failed is None:
                            raise
                        await _finish(self._failed(due, error))
                await self._sleep(self._earlier)
        finally:
            self._earlier = None

    async def _handle(self, due: Due) -> None:
        if due.trigger is None:
            if self._overdue is not None:
                await _finish(self._overdue(due))
            return
        entity = due.entity
        effects: tuple[Effect, ...] = ()
        try:
            if self._load is not None:
                entity = self._load(due)
            if entity is None:
                self._timers.stop(due.lifecycle, due.entity)
            elif not due.lifecycle.is_in(entity, due.state):
                return  # it was stored in another state meanwhile
            elif self._fire is not None:
                await _finish(self._fire(due, entity))
            else:
                effects = self._timers.fire(due.lifecycle, entity, due.trigger, self.now())
        except Exception:
            if self._failed is None and due.lifecycle.is_in(due.entity, due.state):
                self._timers.resume(due.lifecycle, due.entity, due.when, due.state)
            raise
        await self._hand_on(entity, effects)

    async def _hand_on(self, entity: Any, effects: tuple[Effect, ...]) -> None:
        if effects and self._deliver is not None:
            await _finish(self._deliver(entity, effects))

    async def _sleep(self, earlier: asyncio.Event) -> None:
        earlier.clear()
        self._sleeps_until = until = self._timers.next_deadline()
        alarm = None
        if until is not None:
            seconds = max(0, until - self.now()) / SECOND
            if self._clock is not None:
                seconds = min(seconds, _LOOKS_EVERY)
            alarm = asyncio.get_running_loop().call_later(seconds, earlier.set)
        try:
            await earlier.wait()
        finally:
            if alarm is not None:
                alarm.cancel()

    def _wake(self) -> None:
        """Let ``run`` look again if something is due earlier than what it waits for."""
        if self._earlier is not None:
            first, until = self._timers.next_deadline(), self._sleeps_until
            if first is not None and (until is None or first < until):
                self._earlier.set()


async def _finish(result: object) -> None:
    if isawaitable(result):
        await result
