"""The time limits of states, as a heap of timers. It has no clock: the caller says what time it is.

``Timers.fire`` is ``Lifecycle.fire`` with the time. An entity that enters a state with a limit gets a
timer, and loses the one of the state that it left. ``due`` returns the triggers to fire, in a total order:
by instant, and within one instant in the order in which the timers were started.

Entities are told apart by lifecycle and key, so a stored entity may be another object each time that it
is loaded. Composites have timers of their own, from when they are entered until they are left.

The scheduler of ``quadriga.core`` has a heap of its own (``core.runtime.timers``). Its entities count their
entries themselves, and it has timers that outlast states. A mapping by key, which this module needs for
entities that have nothing but a state and a key, would cost the scheduler time at every transition.
See D201.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any, Final

from quadriga.base.pacing import doubled
from quadriga.fsm.firing import Outcome
from quadriga.fsm.lifecycle import Lifecycle
from quadriga.fsm.table import Edge, Effect, Entity, State, Trigger

#: The time limit (ns) of a state for this entity, if it has one of its own; else ``None``.
OwnLimit = Callable[[Lifecycle, Any, Any], int | None]

#: below this size of the heap dead timers are not removed early
_SMALL: Final = 1024


@dataclass(frozen=True, slots=True)
class Due:
    """An entity that has been in its state for as long as the table allows."""

    #: the instant at which the time was up
    when: int
    lifecycle: Lifecycle
    #: the object that entered the state
    entity: Any
    #: the state, or the composite, that the entity is in for too long
    state: Any
    #: what to fire; ``None`` if the table names no trigger, so that the entity can only be reported
    trigger: Any
    #: how often the trigger was due before in this stay: more than 0 only with ``backoff_to``
    earlier: int

    @property
    def key(self) -> str:
        """The entity's key, to load it by."""
        return str(self.entity.key)


@dataclass(slots=True, eq=False)
class _Timer:
    when: int
    delay: int
    earlier: int
    lifecycle: Lifecycle
    entity: Any
    state: Any
    name: tuple[str, str, str]


def _name(lifecycle: Lifecycle, entity: Any, state: str) -> tuple[str, str, str]:
    """An entity has one timer for the state that it is in, and one for each composite around that."""
    return lifecycle.name, entity.key, state if state in lifecycle.composites else ""


class Timers:
    """The timers of any number of entities, of one lifecycle or of several.

    All instants and delays are integer nanoseconds of one clock, whichever the caller chooses.
    ``own_limit(lifecycle, entity, state)`` may give an entity another limit than the table's; with 0 it is
    due at once. It is called when the state has changed, so it must not fail.
    """

    def __init__(self, own_limit: OwnLimit | None = None) -> None:
        self._own_limit = own_limit
        self._heap: list[tuple[int, int, _Timer]] = []
        self._started = 0
        #: the timer of the present stay of each entity; those in the heap that are not here are dead
        self._living: dict[tuple[str, str, str], _Timer] = {}

    def fire(
        self,
        lifecycle: Lifecycle[State, Trigger],
        entity: Entity[State],
        trigger: Trigger,
        now: int,
        /,
        **info: Any,
    ) -> tuple[Effect, ...]:
        """``lifecycle.fire``, and the timer of the state that the entity enters by that.

        Raises what ``fire`` raises; then neither the entity nor its timer has changed.
        """
        step = lifecycle.take(entity, trigger, info)
        if step.entered:
            self._follow(lifecycle, entity, step.edge, now)
        return step.effects

    def follow(self, lifecycle: Lifecycle, outcome: Outcome, now: int) -> None:
        """The timers after a trigger that was fired elsewhere, for example at a model of a machine: call it
        from ``lifecycle.watch``, or with what ``lifecycle.step`` returns."""
        if outcome.entered:
            source, trigger, target = outcome.source, outcome.trigger, outcome.target
            edge = Edge(lifecycle.name, source, trigger, target)
            self._follow(lifecycle, outcome.entity, edge, now)

    def _follow(self, lifecycle: Lifecycle, entity: Any, edge: Edge, now: int) -> None:
        self._enter(lifecycle, entity, now, edge.target)
        if lifecycle.composites:
            left, entered = lifecycle.crossed(edge)
            for composite in left:
                self._living.pop(_name(lifecycle, entity, composite), None)
            for composite in entered:
                self._enter(lifecycle, entity, now, composite)

    def entered(self, lifecycle: Lifecycle, entity: Any, now: int) -> None:
        """The entity has entered its state at the instant ``now``: its timer starts, if there is a limit.

        The timer of an earlier stay ends. Call it for an entity that is new, and for one that was not
        fired with ``Timers.fire``. It has entered all composites around the state as well.
        """
        self._enter(lifecycle, entity, now, entity.state)
        for composite in lifecycle.around(entity.state):
            self._enter(lifecycle, entity, now, composite)

    def _enter(self, lifecycle: Lifecycle, entity: Any, now: int, state: Any) -> None:
        """The timer of the state, or of a composite around it, starts."""
        limit = lifecycle.timed.get(state)
        if limit is None:
            self._living.pop(_name(lifecycle, entity, state), None)
            return
        own = self._own_limit(lifecycle, entity, state) if self._own_limit else None
        delay = limit.ns if own is None else max(0, own)
        self._start(now + delay, delay, 0, lifecycle, entity, state)

    def resume(self, lifecycle: Lifecycle, entity: Any, when: int, state: Any = None) -> None:
        """Continue the entity's stay in its state, whose time is up at the instant ``when``.

        This is for an entity that was stored with its ``deadline``, and for a trigger that failed and is
        to be fired later. A state without a time limit has no timer. ``state`` may be a composite around
        the state.
        """
        state = entity.state if state is None else state
        limit = lifecycle.timed.get(state)
        if limit is None:
            self._living.pop(_name(lifecycle, entity, state), None)
        else:
            self._start(when, limit.ns, 0, lifecycle, entity, state)

    def stop(self, lifecycle: Lifecycle, entity: Any) -> None:
        """End the entity's timers, if it has any: the entity was deleted, or is out of reach."""
        for state in ("", *lifecycle.composites):
            self._living.pop(_name(lifecycle, entity, state), None)

    def due(self, now: int) -> Iterator[Due]:
        """What is due at the instant ``now``, one after the other.

        Each is determined when it is asked for, so what was fired for one decides about the next: an
        entity that has left its state meanwhile is not due any more. Fire it with ``Timers.fire``.

        With ``backoff_to`` the timer starts again at once, with twice the delay up to that one; it ends when
        the entity enters a state.
        """
        while (timer := self._first()) is not None and timer.when <= now:
            heappop(self._heap)
            lifecycle, state = timer.lifecycle, timer.state
            limit = lifecycle.timed[state]
            if limit.backoff_to is None:
                del self._living[timer.name]
            else:
                delay = max(1, doubled(timer.delay, limit.backoff_to))
                self._start(now + delay, delay, timer.earlier + 1, lifecycle, timer.entity, state)
            yield Due(timer.when, lifecycle, timer.entity, state, limit.then, timer.earlier)

    def next_deadline(self) -> int | None:
        """The earliest instant at which something is due, or ``None``."""
        timer = self._first()
        return None if timer is None else timer.when

    def describe_next(self) -> str:
        """The state, lifecycle and key that are due at ``next_deadline``, for reports."""
        timer = self._first()
        if timer is None:
            return "none"
        return f"of state {timer.state} of {timer.lifecycle.name} {timer.entity.key}"

    def deadline(self, lifecycle: Lifecycle, entity: Any, state: Any = None) -> int | None:
        """The instant at which the time of this entity is up, or ``None`` if it has no timer.

        ``state`` may be a composite around its state.
        """
        state = entity.state if state is None else state
        timer = self._living.get(_name(lifecycle, entity, state))
        return timer.when if timer is not None and _is_there(timer, entity, state) else None

    def __len__(self) -> int:
        """How many timers there are."""
        return len(self._living)

    def _start(
        self, when: int, delay: int, earlier: int, lifecycle: Lifecycle, entity: Any, state: Any
    ) -> None:
        name = _name(lifecycle, entity, state)
        timer = self._living[name] = _Timer(when, delay, earlier, lifecycle, entity, state, name)
        self._started += 1
        heappush(self._heap, (when, self._started, timer))
        if len(self._heap) >= max(_SMALL, 2 * len(self._living)):
            # at most half of a large heap is dead; the order in which timers fire does not change
            self._heap = [entry for entry in self._heap if self._is_living(entry[2])]
            heapify(self._heap)

    def _first(self) -> _Timer | None:
        heap = self._heap
        while heap:
            timer = heap[0][2]
            if self._is_living(timer):
                if _is_there(timer, timer.entity, timer.state):
                    return timer
                del self._living[timer.name]  # the state was changed elsewhere
            heappop(heap)
        return None

    def _is_living(self, timer: _Timer) -> bool:
        return self._living.get(timer.name) is timer


def _is_there(timer: _Timer, entity: Any, state: str) -> bool:
    """Whether this is the timer of the state, and the entity is in it."""
    composite = timer.lifecycle.composites.get(state)
    return timer.state == state and entity.state in (composite.leaves if composite else (state,))
