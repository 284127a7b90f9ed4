"""Whose turn it is to preempt: an ask may try after its queue's delay, then every 15 s (5.9).

Nothing here costs anything for asks that may not preempt others. For those that may, each group
keeps two heaps: who may try later, by the instant, and who may try now, by arrival. A timer tells
the group when the first of the former joins the latter. Asks that are gone, or whose instant has
moved, are dropped when they come up.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

from quadriga.core.preemption.failed_preemptions import RETRY

if TYPE_CHECKING:
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask, AskGroup
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.timer import Timer
    from quadriga.core.runtime.kernel import Kernel

__all__ = ["ATTEMPTS", "Turns", "enter", "is_due", "reconsider", "refresh", "tried"]

#: most attempts in one leaf and round
ATTEMPTS: Final = 10


class Turns:
    """The asks of one group that may preempt others, now or later."""

    __slots__ = ("_later", "_now", "timer")

    def __init__(self) -> None:
        self._later: list[tuple[int, int, Ask]] = []
        self._now: list[tuple[int, Ask]] = []
        self.timer: Timer | None = None

    def enter(self, ask: Ask, when: int, now: int) -> None:
        """The ask may try from ``when`` on (ns)."""
        if when <= now:
            heappush(self._now, (ask.seq, ask))
        else:
            heappush(self._later, (when, ask.seq, ask))

    def first(self, group: AskGroup) -> int:
        """The place in the order of arrival of the ask whose turn it is, or of the last of all."""
        while self._now:
            seq, ask = self._now[0]
            if ask.group is group and not ask.preempted:
                return seq
            self._drop(group)
        return next(reversed(group.asks))

    def _drop(self, group: AskGroup) -> None:
        """The first of those who may try now is gone, or its instant has moved."""
        _, ask = heappop(self._now)
        if ask.turns is self and ask.group is not group:
            ask.turns = None  # it enters anew if it comes back

    def due(self, group: AskGroup, now: int) -> Ask | None:
        """The first ask that may try now."""
        later, ready = self._later, self._now
        while later and later[0][0] <= now:
            _, seq, ask = heappop(later)
            heappush(ready, (seq, ask))
        while ready:
            ask = ready[0][1]
            if ask.group is group and not ask.preempted and ask.preempt_from <= now:
                return ask
            self._drop(group)
        return None

    def next(self, group: AskGroup) -> int | None:
        """The instant at which the next ask may try that may not yet."""
        later = self._later
        while later:
            when, _, ask = later[0]
            if ask.group is group and not ask.preempted:
                return when
            heappop(later)
            if ask.turns is self and ask.group is not group:
                ask.turns = None
        return None

    def stop(self) -> None:
        """The group is forgotten."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


def enter(kernel: Kernel, ask: Ask) -> None:
    """The ask waits (again): if it may preempt others it takes its turn (5.9).

    One that requires a node preempts there and nowhere else (2.8).
    """
    if not ask.terms.allow_preempt_other or ask.preempted or ask.required_node:
        return
    group = ask.group
    if group is None or not ask.app.partition.config.preemption_enabled:
        return
    if group.turns is None:
        group.turns = Turns()
    if ask.turns is group.turns:
        return  # it was away, and its turn is as it was
    ask.turns = group.turns
    when = max(ask.created + ask.app.queue.properties.preemption_delay, ask.preempt_from)
    group.turns.enter(ask, when, kernel.now)
    refresh(kernel, group)


def is_due(ask: Ask, now: int) -> bool:
    """Whether it is the ask's turn now."""
    if ask.turns is None or ask.preempted or ask.preempt_from > now:
        return False
    return ask.created + ask.app.queue.properties.preemption_delay <= now


def tried(kernel: Kernel, ask: Ask) -> None:
    """The ask has tried: not again before some time has passed, or never if it succeeded.

    Where ``vain`` remembers that its leaf need not try, this is not needed.
    """
    group, turns = ask.group, ask.turns
    ask.preempt_from = kernel.now + RETRY
    if group is None or turns is None:
        return
    if ask.preempted:
        ask.turns = None
    else:
        turns.enter(ask, ask.preempt_from, kernel.now)
    refresh(kernel, group)


def refresh(kernel: Kernel, group: AskGroup) -> None:
    """Make known whether somebody in the group may preempt now, and look again when that changes."""
    turns = group.turns
    if turns is None:
        return
    preempting = turns.due(group, kernel.now) is not None
    when = None if preempting else turns.next(group)
    if turns.timer is None or turns.timer.when != when:
        turns.stop()
        if when is not None:
            left = when - kernel.now
            turns.timer = kernel.timers.start(kernel.now, left, "group.preempt", group)
    if preempting != group.preempting:
        group.preempting = preempting
        partition = group.app.partition
        partition.refresh_group(group)
        if preempting and partition.vain.known:
            known = partition.vain.known.get((group.app.queue, group.shape))
            if known is not None and known.priority < group.priority:
                partition.vain.drop(known)


def reconsider(kernel: Kernel, partition: Partition) -> None:
    """Delays, or whether there is preemption at all, may be others now (2.2)."""
    partition.vain.all_may_try_again()
    for app in partition.applications.values():
        for group in list(app.groups.values()):
            if group.turns is not None:
                group.turns.stop()
                group.turns = None
                group.preempting = False
                partition.refresh_group(group)
            _enter_all(kernel, app, group)


def _enter_all(kernel: Kernel, app: Application, group: AskGroup) -> None:
    for ask in list(group.asks.values()):
        if ask.terms.allow_preempt_other:
            ask.turns = None
            enter(kernel, ask)
