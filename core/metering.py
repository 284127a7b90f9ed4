"""What a driver tells somebody who measures it.

The core has no clock, and decides nothing by what is measured here. Whoever measures brings a steady
clock of its own; without a meter nothing is timed.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from quadriga.core.scheduler import Scheduler

__all__ = ["Meter"]


class Meter(Protocol):
    """All of it is called on the thread that owns the scheduler; times are ns of ``clock``.

    The journal is a ring: a meter that follows it looks at it in ``scheduled`` and ``worked``.
    """

    def clock(self) -> int:
        """A clock that only runs forward, of no particular beginning."""
        ...

    def scheduled(self, scheduler: Scheduler, took: int, rounds: int, messages: int) -> None:
        """A call of ``schedule`` has made so many rounds (5.2), and said so much."""
        ...

    def worked(self, scheduler: Scheduler, took: int) -> None:
        """One piece of work from outside is done: a request, or somebody's look."""
        ...

    def asked(self, took: int) -> None:
        """The resource manager's predicates have answered for one ask and node (I36)."""
        ...

    def measure(self, name: str) -> AbstractContextManager[object]:
        """To be entered around something inside of one decision (``Scheduler.set_measure``)."""
        ...
