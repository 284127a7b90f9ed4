"""Reads of the scheduler in slices, between which it decides and takes requests (D344).

A read is a function of the scheduler that returns a generator. This yields after each step, ``None`` or a
part of what is read, and returns the rest. What it reads between two steps is of one moment. Everything may
change at a ``yield``, so it keeps no iterator over what the scheduler changes.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from quadriga.core.scheduler import Scheduler

T = TypeVar("T")

#: s of the owner's thread; a slice ends with the step that takes it over this
SLICE: Final = 0.003

#: the scheduler's time (ns), and the number of transitions that it had made
Instant = tuple[int, int]


class Slices(Generic[T]):
    """A read that is under way. ``begin`` may also return something else than a generator: the value itself.

    ``began`` and ``ended`` are the instants between which it has read, ``cost`` the time (s by ``clock``) that
    this took the owner.
    """

    def __init__(
        self,
        begin: Callable[[Scheduler], Generator[Any, None, T] | T],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._begin = begin
        self._clock = clock
        self._steps: Generator[Any, None, T] | None = None
        self.began: Instant | None = None
        self.ended: Instant = (0, 0)
        self.cost = 0.0
        self.over = False
        #: it takes more than one slice
        self.further = False
        self._value: T

    @property
    def value(self) -> T:
        """What the generator has returned; it must be ``over``."""
        return self._value

    def next(self, scheduler: Scheduler) -> list[Any]:
        """Read one slice, in the owner's thread, and return its parts. Raises what the read raises.

        A slice makes thousands of objects, among which a garbage collection would find nothing.
        """
        collects = gc.isenabled()
        gc.disable()
        begin = self._clock()
        try:
            self.ended = scheduler.now, scheduler.journal.count
            self.began = self.began or self.ended
            return self._slice(scheduler, begin + SLICE)
        finally:
            self.cost += self._clock() - begin
            if collects:
                gc.enable()

    def _slice(self, scheduler: Scheduler, end: float) -> list[Any]:
        if self._steps is None:
            made = self._begin(scheduler)
            if not isinstance(made, Generator):
                self._value, self.over = made, True
                return []
            self._steps = made
        parts = []
        try:
            while True:
                part = next(self._steps)
                if part is not None:
                    parts.append(part)
                if self._clock() > end:
                    self.further = True
                    break
        except StopIteration as stop:
            self._value, self.over = stop.value, True
        return parts


class Reads(Protocol):
    """What a service offers for reads."""

    @property
    def is_owner(self) -> bool: ...

    def read_later(
        self, reader: Callable[[Scheduler], Any], rm_id: str = "", *, in_turn: bool = False
    ) -> Future[Any]: ...


def read_in_slices(service: Reads, slices: Slices[T], rm_id: str = "") -> Future[T]:
    """Have the owner read all slices, the first one after earlier requests of this resource manager, and get what
    the read returns or raises; parts are dropped. The owner itself, and a service without a thread, reads them at
    once. Raises ``RuntimeError`` if the service has been stopped."""
    answer: Future[T] = Future()
    answer.set_running_or_notify_cancel()  # the caller cannot cancel it

    def all_slices(scheduler: Scheduler) -> None:
        while not slices.over:
            slices.next(scheduler)

    def done(read: Future[Any]) -> None:
        error = read.exception()
        if error is None and not slices.over:
            try:
                service.read_later(slices.next, in_turn=True).add_done_callback(done)
            except RuntimeError as stopped:
                answer.set_exception(stopped)
        elif error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(slices.value)

    first = all_slices if service.is_owner else slices.next
    service.read_later(first, rm_id).add_done_callback(done)
    return answer
