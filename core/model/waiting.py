"""What waits in a partition, beyond the heaps of its queues and applications.

The data is here because the accounting and the queues mark it. ``scheduling.waiting`` decides which asks
are retried and when; it implements the methods here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.core.model.retries import ReservationsToRetry

if TYPE_CHECKING:
    from quadriga.core.model.account import Ledger
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask, AskGroup
    from quadriga.core.model.reservation import Reservation
    from quadriga.core.model.shapes import Shape
    from quadriga.core.model.timer import Timer

__all__ = ["Waiting"]


class Waiting:
    """Asks and reservations of one partition that wait for something other than their turn."""

    __slots__ = (
        "allocation_epoch",
        "arrivals",
        "backs_off",
        "deferred_asks",
        "deferred_gangs",
        "deferred_reservations",
        "demand_epoch",
        "exhausted_at",
        "gangs",
        "gatherer",
        "give_up_timer",
        "interrupted",
        "outgrown",
        "reopened",
        "retries",
        "short_ledgers",
        "short_of_members",
        "short_of_quota",
        "stranded",
        "undecided",
    )

    def __init__(self) -> None:
        #: reservations that may succeed since they were last tried
        self.retries = ReservationsToRetry()
        #: reservations that lacked only quota or a slot under maxapplications when last tried
        self.short_of_quota: dict[Reservation, None] = {}
        #: asks and reservations that predicates refused, until the next call of ``schedule``
        self.deferred_asks: dict[Ask, None] = {}
        self.deferred_reservations: dict[Reservation, None] = {}
        #: gangs for which predicates refused a member, until the next call of ``schedule``
        self.deferred_gangs: dict[Application, None] = {}
        #: groups of asks that are larger than any placeholder that they could replace (X37), with the
        #: epoch of the last attempt
        self.outgrown: dict[AskGroup, int] = {}
        #: allocations of parked asks that lost their placeholder and fit on no open node (X39), with
        #: the epoch of the last attempt
        self.stranded: dict[Allocation, int] = {}
        #: gangs that lack nodes or asks (Q2), and the one that keeps nodes (Q3)
        self.gangs: dict[Application, None] = {}
        self.gatherer: Application | None = None
        #: running gangs that lost placeholders before all members ran; while one of them lacks members,
        #: no gang keeps nodes
        self.short_of_members: dict[Application, None] = {}
        #: ledgers that have no room for a shape
        self.short_ledgers: dict[Shape, dict[Ledger, None]] = {}
        #: runs while reservations exist that may be given up
        self.give_up_timer: Timer | None = None
        #: grows whenever an ask may succeed for a new reason: a new ask or node, more room or quota
        self.demand_epoch = 0
        #: grows whenever the allocations on a node change
        self.allocation_epoch = 0
        #: number of the next ask in the order of arrival
        self.arrivals = 0
        #: the last round without a decision tried all asks with a lower number
        self.exhausted_at = 0
        #: what stopped asks, and has room again since the last round that tried all asks: limits by the shape,
        #: or by ``None`` their number of applications
        self.reopened: dict[tuple[Ledger, Shape | None], None] = {}
        #: the last call for decisions stopped at its limit; more decisions may be possible
        self.interrupted = False
        #: some asks may not have been tried by any round yet
        self.undecided = False
        #: some queue has ``application.sort.policy`` properties that back off (2.2.2)
        self.backs_off = False

    @property
    def epoch(self) -> int:
        """Grows with every change that may make a failed attempt worth another try."""
        return self.demand_epoch + self.allocation_epoch

    def exhausted(self) -> None:
        """A round has tried all asks and decided nothing."""
        self.exhausted_at = self.arrivals
        if self.reopened:
            self.reopened.clear()

    def add(self, ask: Ask) -> None:
        """The ask waits to be allocated."""
        raise NotImplementedError

    def remove(self, ask: Ask) -> None:
        """The ask no longer waits."""
        raise NotImplementedError

    def defer(self, ask: Ask) -> None:
        """The ask waits for the next call of ``schedule``, because predicates refused it."""
        raise NotImplementedError

    def refresh(self, app: Application) -> None:
        """Recompute the demand of the application after a change of its state or lane."""
        raise NotImplementedError

    def refresh_group(self, group: AskGroup) -> None:
        """Recompute the demand of the group."""
        raise NotImplementedError

    def offer_replacements(self, app: Application) -> None:
        """Recompute which asks of gang members wait for a placeholder."""
        raise NotImplementedError

    def retry_short_of_quota(self) -> None:
        """Retry the reservations that lacked only quota or a slot under maxapplications."""
        raise NotImplementedError
