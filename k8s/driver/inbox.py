"""The queue of all inputs of the shim, in the order of their arrival (K3, K15).

Any thread puts inputs, the shim's loop takes them. The queue is unbounded, but its sources are bounded: a watch
is not read while too many inputs wait.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

from quadriga.k8s.shim.inputs import BindEnded, Changed, CoreAnswered, CreateEnded, Input
from quadriga.k8s.tuning import TUNING


def described(input: object) -> str:
    """Return what the loop handles, for the watchdog: the input with the name of its object."""
    if isinstance(input, Changed):
        meta, kind = input.object.metadata, input.object.__class__.__name__.lower()
        where = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
        return f"{kind} {where} ({input.change})"
    if isinstance(input, CoreAnswered):
        return f"{input.message.__class__.__name__} of the core"
    if isinstance(input, BindEnded):
        return f"the end of the bind of pod {input.uid}"
    if isinstance(input, CreateEnded):
        return f"placeholder {input.name} of application {input.application_id}"
    return input if isinstance(input, str) else input.__class__.__name__


class Inbox:
    """The queue of inputs. Create it on the shim's loop. ``clock`` gives ns and never goes back.

    It measures how long inputs wait: `delay` is that of the first waiting one; ``taken`` and ``waited`` are the
    number of all inputs that were taken and the sum of their times (ns).
    """

    def __init__(
        self, most: int = TUNING.inputs_waiting, clock: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._waiting: deque[Input] = deque()
        self._clock = clock
        #: when each of them arrived
        self._arrived: deque[int] = deque()
        self.taken = 0
        self.waited = 0
        self._most = most
        self._loop = asyncio.get_running_loop()
        self._rung = asyncio.Event()
        self._has_capacity = asyncio.Event()
        self._has_capacity.set()
        #: the loop has been woken, or need not be
        self._called = False
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, input: Input) -> None:
        """Put an input, from the loop's own thread."""
        self._arrived.append(self._clock())
        self._waiting.append(input)
        self._rung.set()

    def put_from_thread(self, input: Input) -> None:
        """Put an input, from any thread. After the loop has ended it has no effect."""
        self._arrived.append(self._clock())
        self._waiting.append(input)
        if not self._called:
            self._called = True
            try:
                self._loop.call_soon_threadsafe(self._ring)
            except RuntimeError:
                return  # the loop is closed

    def _ring(self) -> None:
        # Reset before the queue is read, so that a later input rings again.
        self._called = False
        self._rung.set()

    def ring(self) -> None:
        """End a wait, from the loop's own thread."""
        self._rung.set()

    async def wait(self, seconds: float) -> None:
        """Return when an input waits, or after this time at the latest."""
        if not self._waiting:
            self._ring_by(self._loop.time() + seconds)
            await self._rung.wait()
        self._rung.clear()

    def _ring_by(self, when: float) -> None:
        """Ring at this time. A timer that rings earlier is kept, so that not every wait needs a new one."""
        timer = self._timer
        if timer is None or timer.when() > when:
            if timer is not None:
                timer.cancel()
            self._timer = self._loop.call_at(when, self._time_is_up)

    def _time_is_up(self) -> None:
        self._timer = None
        self._rung.set()

    def take(self, most: int) -> list[Input]:
        """Take the first inputs, at most ``most``."""
        waiting = self._waiting
        taken = [waiting.popleft() for _ in range(min(most, len(waiting)))]
        if taken:
            now, arrived = self._clock(), self._arrived
            self.taken += len(taken)
            self.waited += sum(max(0, now - arrived.popleft()) for _ in taken)
        if waiting:
            self._rung.set()
        if not self._has_capacity.is_set() and len(waiting) <= self._most:
            self._has_capacity.set()
        return taken

    def delay(self) -> int:
        """Return how long (ns) the first input has waited. Thread-safe."""
        try:
            return max(0, self._clock() - self._arrived[0])
        except IndexError:
            return 0

    async def wait_for_capacity(self) -> None:
        """Wait until the number of waiting inputs is within the bound (K15)."""
        if len(self._waiting) > self._most:
            self._has_capacity.clear()
            await self._has_capacity.wait()
