"""What waits in a partition, beyond the heaps of its queues and applications.

The data is here because the accounting and the queues mark it. ``scheduling.waiting`` decides which asks
are retried and when; it implements the methods here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from quadriga.base.times import FOREVER
from quadriga.core.resources.shapes import RETRY_RESERVATION

if TYPE_CHECKING:
    from quadriga.core.model.account import Ledger, QuotaPlan
    from quadriga.core.model.allocation import Allocation, Reservation
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask, AskGroup
    from quadriga.core.model.node import Node
    from quadriga.core.model.queue import Queue
    from quadriga.core.model.timer import Timer
    from quadriga.core.resources.shapes import Shape
    from quadriga.si.predicates import KnownRefusals, Revision


class ReservationsToRetry:
    """A set of reservations, by leaf and application."""

    __slots__ = ("_leaves",)

    def __init__(self) -> None:
        self._leaves: dict[Queue, dict[Application, dict[Reservation, None]]] = {}

    def __bool__(self) -> bool:
        return bool(self._leaves)

    def __iter__(self) -> Iterator[Reservation]:
        return (each for apps in self._leaves.values() for own in apps.values() for each in own)

    def __contains__(self, reservation: Reservation) -> bool:
        app = reservation.ask.app
        return reservation in self._leaves.get(app.queue, {}).get(app, {})

    def add(self, reservation: Reservation) -> None:
        """Add the reservation, unless its node has no room and must gain some first.

        The room does not matter if the ask requires the node, because the ask may preempt there.
        """
        ask = reservation.ask
        group = ask.group
        if group is not None and not ask.required_node:
            if not group.shape.fits(reservation.node.available):
                return
        app = ask.app
        leaf = app.queue
        apps = self._leaves.get(leaf)
        if apps is None:
            apps = self._leaves[leaf] = {}
            leaf.announce(None, RETRY_RESERVATION)
        apps.setdefault(app, {})[reservation] = None

    def update(self, reservations: Iterable[Reservation]) -> None:
        """Add several reservations."""
        for each in reservations:
            self.add(each)

    def discard(self, reservation: Reservation) -> None:
        """Remove a reservation that was tried or has ended."""
        app = reservation.ask.app
        leaf = app.queue
        apps = self._leaves.get(leaf, {})
        own = apps.get(app, {})
        if reservation not in own:
            return
        del own[reservation]
        if not own:
            del apps[app]
            if not apps:
                del self._leaves[leaf]
                leaf.withdraw(None, RETRY_RESERVATION)

    def demand_of(self, leaf: Queue) -> int:
        """The demand bit of the leaf if it has reservations to retry, else 0."""
        return RETRY_RESERVATION if leaf in self._leaves else 0

    def first_in(self, leaf: Queue) -> Application:
        """The first submitted application with reservations to retry; the leaf must have one."""
        return min(self._leaves[leaf], key=lambda app: app.seq)

    def of(self, app: Application) -> Iterable[Reservation]:
        return self._leaves.get(app.queue, {}).get(app, ())


@dataclass(slots=True, eq=False)
class Refusal:
    """What predicates said of an ask, or of the first ask of each group of a gang."""

    asks: Sequence[Ask]
    #: the refused nodes of each ask, in the order of ``node_ids``; ``None`` if they are not known
    known: list[KnownRefusals | None]
    node_ids: tuple[str, ...]
    #: when to try again even if nothing is known to have changed (ns)
    again: int

    @property
    def outdated(self) -> int:
        """For how many of the asks the predicates may say something else now."""
        return sum(known is not None and known.outdated for known in self.known)


class Waiting:
    """Asks and reservations of one partition that wait for something other than their turn."""

    __slots__ = (
        "again",
        "allocation_epoch",
        "arrivals",
        "backs_off",
        "deferred_asks",
        "deferred_gangs",
        "deferred_reservations",
        "demand_epoch",
        "exhausted_at",
        "gangs",
        "give_up_timer",
        "grown",
        "interrupted",
        "look_at_quotas",
        "protect_from",
        "protected",
        "quota_counts",
        "quota_look",
        "quota_plans",
        "reopened",
        "rest_on",
        "retries",
        "short_ledgers",
        "short_of_members",
        "short_of_quota",
        "short_quotas",
        "stranded",
        "to_look_at",
        "to_score",
        "too_large_to_replace",
        "undecided",
    )

    def __init__(self) -> None:
        #: reservations that may succeed since they were last tried
        self.retries = ReservationsToRetry()
        #: reservations that lacked only quota or a slot under maxapplications when last tried
        self.short_of_quota: dict[Reservation, None] = {}
        #: asks, gangs and reservations that predicates refused, or that wait for an answer; without a
        #: refusal they are tried again in the next call of ``schedule`` (``scheduling.refused``)
        self.deferred_asks: dict[Ask, Refusal | None] = {}
        self.deferred_gangs: dict[Application, Refusal | None] = {}
        self.deferred_reservations: dict[Reservation, None] = {}
        #: those of them that the present look at all has not reached, the next one last, and the nodes that
        #: gained room before it began
        self.to_look_at: list[Any] = []
        self.grown: list[Node] = []
        #: what the refusals rest on, and the earliest instant at which one is tried again (ns), 0 for the next call
        self.rest_on: dict[Revision, None] = {}
        self.again = FOREVER
        #: groups of asks that are larger than any placeholder that they could replace (X37), with the
        #: epoch of the last attempt
        self.too_large_to_replace: dict[AskGroup, int] = {}
        #: allocations of parked asks that lost their placeholder and fit on no open node (X39), with
        #: the epoch of the last attempt
        self.stranded: dict[Allocation, int] = {}
        #: gangs that lack nodes or asks (Q2), the one whose start is planned, and from when (ns) to look for one (Q9)
        self.gangs: dict[Application, None] = {}
        self.protected: Application | None = None
        self.protect_from = FOREVER
        #: quotas and limits that had no room for some ask or gang, when to look next (ns) for what waits longest for
        #: them, a look that goes on, and those that are kept for it (Q12)
        self.short_quotas: dict[Queue | Ledger, None] = {}
        self.look_at_quotas = 0
        self.quota_look: Iterator[bool] | None = None
        self.quota_plans: dict[Queue | Ledger, QuotaPlan] = {}
        #: the counts of the budgets of all quotas and limits (`GatherBudget.counts`)
        self.quota_counts: Counter[str] = Counter()
        #: running gangs that lost placeholders before all members ran; while one of them lacks members,
        #: no gang keeps nodes
        self.short_of_members: dict[Application, None] = {}
        #: a heap of the applications in queues of the policy ``expected``: when the score is computed again
        #: (ns), number of the application, application
        self.to_score: list[tuple[int, int, Application]] = []
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
    def protected_is_due(self) -> bool:
        """Whether the protected gang is to be tried before all others."""
        return self.protected is not None and not self.protected.gang.lacks

    @property
    def epoch(self) -> int:
        """Grows with every change that may make a failed attempt worth another try."""
        return self.demand_epoch + self.allocation_epoch

    def defer_gang(self, app: Application, refusal: Refusal | None = None) -> None:
        """Predicates refused a member of the gang, or their answer is pending."""
        self.deferred_gangs[app] = refusal
        self.await_change(refusal)

    def await_change(self, refusal: Refusal | None) -> None:
        """Look at the refusal again when it may have ended; without one that is in the next call."""
        if refusal is None:
            self.again = 0
            return
        self.again = min(self.again, refusal.again)
        for known in refusal.known:
            if known is None or known.revisions is None:
                self.again = 0
            else:
                self.rest_on.update(dict.fromkeys(known.revisions))

    def forget_refusals(self) -> None:
        """Other predicates answer from now on: try again all that was refused."""
        self.deferred_asks = dict.fromkeys(self.deferred_asks)
        self.deferred_gangs = dict.fromkeys(self.deferred_gangs)
        self.again = 0

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

    def defer(self, ask: Ask, refusal: Refusal | None = None) -> None:
        """Predicates refused the ask, or their answer is pending: it leaves its group."""
        raise NotImplementedError

    def refresh(self, app: Application) -> None:
        """Recompute the demand of the application after a change of its state or lane."""
        raise NotImplementedError

    def refresh_group(self, group: AskGroup) -> None:
        """Recompute the demand of the group."""
        raise NotImplementedError

    def offer_replacements(self, app: Application, task_group: str = "") -> None:
        """Recompute which asks of gang members, or of one task group, wait for a placeholder."""
        raise NotImplementedError

    def retry_short_of_quota(self) -> None:
        """Retry the reservations that lacked only quota or a slot under maxapplications."""
        raise NotImplementedError
