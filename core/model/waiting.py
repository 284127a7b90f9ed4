"""What waits in a partition, beyond the heaps of its queues and applications.

The data stands here, since the accounting and the queues mark it. The machinery, which decides who
asks again and when, is ``scheduling.waiting``; the methods here are the face that it shows to the
model.
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
        "deferred_reservations",
        "demand_epoch",
        "exhausted_at",
        "give_up_timer",
        "interrupted",
        "outgrown",
        "retries",
        "short_ledgers",
        "short_of_quota",
        "stranded",
        "undecided",
    )

    def __init__(self) -> None:
        #: reservations that may have become allocations since they were last tried
        self.retries = ReservationsToRetry()
        #: of these, the ones that lacked only quota, or a slot under maxapplications
        self.short_of_quota: dict[Reservation, None] = {}
        #: asks, and reservations, that predicates refused, until the next call of ``schedule``
        self.deferred_asks: dict[Ask, None] = {}
        self.deferred_reservations: dict[Reservation, None] = {}
        #: groups of asks that are larger than any placeholder that they could take over (X37), each
        #: with the epoch at which it was last tried
        self.outgrown: dict[AskGroup, int] = {}
        #: allocations of parked asks whose placeholder is gone and for which no open node has room
        #: (X39), each with the epoch at which it was last tried
        self.stranded: dict[Allocation, int] = {}
        #: ledgers that have no room for a shape
        self.short_ledgers: dict[Shape, dict[Ledger, None]] = {}
        #: runs while there are reservations that may be given up
        self.give_up_timer: Timer | None = None
        #: grows whenever an ask may newly get a node: a new ask, a new node, room, quota
        self.demand_epoch = 0
        #: grows whenever the allocations on a node change
        self.allocation_epoch = 0
        #: number of the next ask in the order of arrival
        self.arrivals = 0
        #: the last round that decided nothing tried all asks with a lower number
        self.exhausted_at = 0
        #: the last call for decisions ended at its limit: more can be decided
        self.interrupted = False
        #: some asks may not have been tried by any round yet
        self.undecided = False
        #: some queue has ``application.sort.policy`` properties that back off (2.2.2)
        self.backs_off = False

    @property
    def epoch(self) -> int:
        """Grows with every change that may make a failed attempt worth another try."""
        return self.demand_epoch + self.allocation_epoch

    def add(self, ask: Ask) -> None:
        """The ask waits to be allocated."""
        raise NotImplementedError

    def remove(self, ask: Ask) -> None:
        """The ask waits no longer."""
        raise NotImplementedError

    def defer(self, ask: Ask) -> None:
        """The ask waits for the next call of ``schedule``: predicates refuse it."""
        raise NotImplementedError

    def refresh(self, app: Application) -> None:
        """What the application may be served with has changed: its state, its lane, its demand."""
        raise NotImplementedError

    def refresh_group(self, group: AskGroup) -> None:
        """What the group of asks demands has changed."""
        raise NotImplementedError

    def offer_replacements(self, app: Application) -> None:
        """Asks of the gang's members may take over a placeholder, or must no longer wait for one."""
        raise NotImplementedError

    def retry_short_of_quota(self) -> None:
        """A quota, or a slot under maxapplications, became free: reservations that lacked only that
        are tried again."""
        raise NotImplementedError
