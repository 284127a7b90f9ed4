"""Virtual time: a queue of planned actions, ordered by time and by the order of planning."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

Action = Callable[[Any], None]


class Clock:
    """A heap of actions. `now` is in ns and never goes back; `done` counts executed actions.

    `planned` has the actions that are not executed yet, the next one first: its time in ns, its number,
    the action and the subject.
    """

    __slots__ = ("_number", "done", "now", "planned")

    def __init__(self) -> None:
        self.now = 0
        self.done = 0
        self._number = 0
        self.planned: list[tuple[int, int, Action, Any]] = []

    def after(self, ns: int, action: Action, subject: object) -> None:
        """Plan ``action(subject)`` for `ns` nanoseconds from now; 0 means later in this instant."""
        self._number += 1
        heapq.heappush(self.planned, (self.now + ns, self._number, action, subject))

    def run_due(self) -> None:
        """Execute all actions that are due now, including those that are planned for now
        meanwhile."""
        heap, now = self.planned, self.now
        while heap and heap[0][0] <= now:
            _, _, action, subject = heapq.heappop(heap)
            action(subject)
            self.done += 1
