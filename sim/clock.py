"""Virtual time: a queue of planned actions, ordered by time and by the order of planning."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

__all__ = ["Clock"]

Action = Callable[[Any], None]


class Clock:
    """A heap of actions. `now` is in ns and never goes back; `done` counts executed actions."""

    __slots__ = ("_heap", "_planned", "done", "now")

    def __init__(self) -> None:
        self.now = 0
        self.done = 0
        self._planned = 0
        self._heap: list[tuple[int, int, Action, Any]] = []

    def after(self, ns: int, action: Action, subject: object) -> None:
        """Plan ``action(subject)`` for `ns` nanoseconds from now; 0 means later in this instant."""
        self._planned += 1
        heapq.heappush(self._heap, (self.now + ns, self._planned, action, subject))

    @property
    def next_time(self) -> int | None:
        """The time of the next action, in ns; None if nothing is planned."""
        return self._heap[0][0] if self._heap else None

    def run_due(self) -> None:
        """Execute all actions that are due now, including those that are planned for now
        meanwhile."""
        heap, now = self._heap, self.now
        while heap and heap[0][0] <= now:
            _, _, action, subject = heapq.heappop(heap)
            action(subject)
            self.done += 1
