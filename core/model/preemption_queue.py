"""The asks of one group that may preempt, in two heaps: by instant and by arrival."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quadriga.core.model.ask import Ask, AskGroup
    from quadriga.core.model.timer import Timer

__all__ = ["PreemptionQueue"]


class PreemptionQueue:
    """The asks of one group that may preempt now (by arrival) or later (by instant).

    Asks that have left the group or have another instant now are dropped when they surface.
    """

    __slots__ = ("_later", "_ready", "timer")

    def __init__(self) -> None:
        self._later: list[tuple[int, int, Ask]] = []
        self._ready: list[tuple[int, Ask]] = []
        #: fires when the first of the later asks may preempt
        self.timer: Timer | None = None

    def add(self, ask: Ask, when: int, now: int) -> None:
        """The ask may preempt from the instant ``when`` on (ns)."""
        if when <= now:
            heappush(self._ready, (ask.seq, ask))
        else:
            heappush(self._later, (when, ask.seq, ask))

    def first_seq(self, group: AskGroup) -> int:
        """The sequence number of the first ask that may preempt, or that of the group's last ask."""
        while self._ready:
            seq, ask = self._ready[0]
            if ask.group is group and not ask.preempted:
                return seq
            self._drop(group)
        return next(reversed(group.asks))

    def first_due(self, group: AskGroup, now: int) -> Ask | None:
        """The first ask that may preempt now."""
        later, ready = self._later, self._ready
        while later and later[0][0] <= now:
            _, seq, ask = heappop(later)
            heappush(ready, (seq, ask))
        while ready:
            ask = ready[0][1]
            if ask.group is group and not ask.preempted and ask.preempt_from <= now:
                return ask
            self._drop(group)
        return None

    def next_due(self, group: AskGroup) -> int | None:
        """The instant (ns) from which the next of the later asks may preempt."""
        later = self._later
        while later:
            when, _, ask = later[0]
            if ask.group is group and not ask.preempted:
                return when
            heappop(later)
            if ask.preemption_queue is self and ask.group is not group:
                ask.preemption_queue = None
        return None

    def _drop(self, group: AskGroup) -> None:
        """Drop the first of the ready asks: it left the group, or its instant changed."""
        _, ask = heappop(self._ready)
        if ask.preemption_queue is self and ask.group is not group:
            ask.preemption_queue = None  # it enters again when it returns to a group

    def cancel_timer(self) -> None:
        """Cancel the timer, if one runs."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
