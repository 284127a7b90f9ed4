"""Virtual time: what is to happen, in order of (time, order in which it was planned)."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

__all__ = ["Clock"]

Action = Callable[[Any], None]


class Clock:
    """A heap of actions. `now` is in ns and never goes back; `done` counts the actions done."""

    __slots__ = ("_heap", "_planned", "done", "now")

    def __init__(self) -> None:
        self.now = 0
        self.done = 0
        self._planned = 0
        self._heap: list[tuple[int, int, Action, Any]] = []

    def after(self, ns: int, action: Action, subject: object) -> None:
        """Plan ``action(subject)`` for `ns` nanoseconds from now; 0 is later in this instant."""
        self._planned += 1
        heapq.heappush(self._heap, (self.now + ns, self._planned, action, subject))

    @property
    def next_time(self) -> int | None:
        """When the next action is due, in ns; None when nothing is planned."""
        return self._heap[0][0] if self._heap else None

    def run_due(self) -> None:
        """Do all that is due now, also what that plans for now."""
        heap, now = self._heap, self.now
        while heap and heap[0][0] <= now:
            _, _, action, subject = heapq.heappop(heap)
            action(subject)
            self.done += 1
