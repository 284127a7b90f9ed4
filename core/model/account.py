"""Accounts: the usage and the limits of a user or a group, by queue (2.5).

An account has a *ledger* for every leaf with its applications, and for every queue above with a limit
for it. Only ledgers are charged for an allocation; the usage in other queues is a sum. Like a queue, a
ledger remembers the shapes that it has no room for and the levels that it blocked because of them; it
unblocks them when it gets resources back. ``QuotaChanges`` collects what the next quota events must examine:
the entities mark their changes while their resource manager tracks events.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from quadriga.core.resources.demand import EVERY_BIT
from quadriga.core.resources.vectors import Totals, Vector, add, left_of

if TYPE_CHECKING:
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import AskGroup
    from quadriga.core.model.gather_budget import GatherBudget
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.queue import LeafQueue, Queue
    from quadriga.core.model.timer import Timer
    from quadriga.core.resources.demand import Level
    from quadriga.core.resources.shapes import Shape

#: in a limit: each user without a limit of their own in that queue, or all other groups together
WILDCARD: Final = "*"


@dataclass(frozen=True, slots=True)
class Limit:
    """The limit of a queue for each of some users, or each of some groups.

    ``resources`` are pairs (type, amount) as in ``Queue.limits``. ``applications`` is the number that
    may run; 0 is unlimited.
    """

    label: str = ""
    max: dict[str, int] | None = None
    resources: tuple[tuple[int, int], ...] = ()
    applications: int = 0


@dataclass(frozen=True, slots=True)
class Holding:
    """The usage of an account in one queue and below, for views (2.14).

    ``usage`` includes placeholders. ``running`` has the ids of the applications that count.
    ``children`` are the queues below with usage or a limit of the account, by name.
    """

    path: str
    usage: Vector
    running: tuple[str, ...]
    limit: Limit | None
    wildcard: bool
    children: tuple[Holding, ...]


class QuotaPlan:
    """When what has waited longest for a quota or a limit is expected to start (Q12): a single ask of the group, or
    without one all members of a gang. It holds nothing: others use the quota if they are expected to end before, or
    fit beside."""

    __slots__ = (
        *("again", "app", "beside", "group", "need", "order", "pending", "promised"),
        *("stale", "start", "timer"),
    )

    def __init__(
        self, app: Application, group: AskGroup | None, need: dict[int, int], order: tuple[int, ...]
    ) -> None:
        self.app = app
        self.group = group
        #: its place among all that wait: the negated priority, since when (ns), the number of its application
        self.order = order
        #: what it needs of the quota, by type, and what is left of each of them from the start on
        self.need = need
        self.beside: dict[int, int] = {}
        #: what its application asked for
        self.pending = tuple(app.pending)
        #: instant (ns) from which it fits, and that of the first plan
        self.start = self.promised = 0
        #: something came back since it was made, and the instant (ns) from which it may be made again
        self.stale = False
        self.again = 0
        #: runs until the start, or until its patience ends
        self.timer: Timer | None = None

    def like(self, shape: Shape) -> bool:
        """Whether an ask of the shape is like the one that waits."""
        return self.group is not None and self.group.shape is shape

    def lends(self, shape: Shape, now: int) -> bool:
        """Whether an allocation of the shape is expected to end before the start."""
        return 0 < shape.runtime <= self.start - now

    def leaves(self, need: Iterable[tuple[int, int]]) -> bool:
        """Whether these amounts fit beside it from its start on."""
        return all(value <= self.beside.get(at, value) for at, value in need)

    def admits(self, shape: Shape, now: int) -> bool:
        """Whether an ask of the shape may have what is free. Of asks like the one that waits the order decides."""
        return self.like(shape) or self.lends(shape, now) or self.leaves(shape.need)


def with_room(
    quota: Queue | Ledger, partition: Partition, limits: tuple[tuple[int, int], ...], used: Totals
) -> list[Shape]:
    """The shapes that a quota or a limit was short of and has room for now, after one look at all of them."""
    if not quota.short_of:
        return []
    fitting = partition.node_index.may_fit(left_of(limits, used)) & quota.short_bits
    if not fitting:
        return []
    return [each for each in quota.short_of if each.allocate & fitting and quota.has_room(each)]


class Ledger:
    """One account in one queue: its usage there and below, and its limit if it has one.

    ``running`` are the applications that count, in the order in which they began to count.
    """

    __slots__ = (
        "account",
        "bound",
        "budget",
        "gated",
        "limit",
        "max_applications",
        "plan",
        "queue",
        "resources",
        "running",
        "short_bits",
        "short_of",
        "shut",
        "usage",
        "wildcard",
    )

    def __init__(self, account: Account, queue: Queue) -> None:
        self.account = account
        self.queue = queue
        self.usage: Totals = queue.partition.registry.zeros()
        self.running: dict[Application, None] = {}
        #: number of applications, in any state, that charge this ledger; at 0 it is removed
        self.bound = 0
        #: shapes that the limit has no room for, with the levels blocked because of them
        self.short_of: dict[Shape, dict[Level, None]] = {}
        #: their bits for a node now (``Shape.allocate``)
        self.short_bits = 0
        #: gangs that wait until the limit has room for all their members (Q2)
        self.gated: dict[Application, None] = {}
        #: what waits longest for the limit, and the budget for what is kept idle for it (Q12)
        self.plan: QuotaPlan | None = None
        self.budget: GatherBudget | None = None
        #: levels blocked by the limit on the number of applications
        self.shut: dict[Level, None] = {}
        self.limit, self.wildcard = account.granted(queue)
        self.resources = self.limit.resources if self.limit is not None else ()
        self.max_applications = self.limit.applications if self.limit is not None else 0

    def has_room(self, shape: Shape) -> bool:
        """Whether one more allocation of this shape stays within the limit, and delays no plan (Q12)."""
        if not shape.stays_within(self.resources, self.usage):
            return False
        return self.plan is None or self.plan.admits(shape, self.queue.partition.node_index.now)

    def is_short(self, shape: Shape) -> bool:
        """Whether the limit has no room for asks of this shape."""
        return not self.has_room(shape)

    def admits(self) -> bool:
        """Whether the limit admits one more application."""
        limit = self.max_applications
        return not limit or len(self.running) + 1 <= limit

    def run_short(self, shape: Shape, level: Level) -> None:
        """Block this shape below ``level`` until the limit has room for it."""
        self.short_of.setdefault(shape, {})[level] = None
        self.short_bits |= shape.allocate
        self._mark_changed(shape)
        waiting = self.queue.partition.waiting
        waiting.short_quotas[self] = None
        waiting.short_ledgers.setdefault(shape, {})[self] = None
        level.block(shape.bits)

    def _mark_changed(self, shape: Shape) -> None:
        if (changes := self.queue.partition.quota_changes) is not None:
            changes.shapes[shape] = None

    def regained(self) -> None:
        """The ledger got resources back: unblock the shapes that may have room now."""
        if self.plan is not None:
            self.plan.stale = True
        for shape in with_room(self, self.queue.partition, self.resources, self.usage):
            self.queue.partition.waiting.reopened[self, shape] = None
            self.forget(shape)
        if self.gated:
            gangs = list(self.gated)
            self.gated.clear()
            for app in gangs:
                app.gang.try_again()

    def forget(self, shape: Shape) -> None:
        """Unblock the levels that were blocked because of this shape."""
        self._mark_changed(shape)
        self.short_bits &= ~shape.allocate
        short = self.queue.partition.waiting.short_ledgers
        del short[shape][self]
        if not short[shape]:
            del short[shape]
        for level in self.short_of.pop(shape):
            if level.blocked != EVERY_BIT:
                level.unblock(shape.bits)

    def run_full(self, level: Level) -> None:
        """Block ``level``: no application below it starts until another one no longer counts."""
        self.shut[level] = None
        level.block(EVERY_BIT)
        if (changes := self.queue.partition.quota_changes) is not None:
            changes.ledgers[self] = None

    def left(self) -> None:
        """An application no longer counts: unblock the levels that wait for that."""
        if self.admits():
            if (changes := self.queue.partition.quota_changes) is not None:
                changes.ledgers[self] = None
            stopped, self.shut = self.shut, {}
            if stopped:
                self.queue.partition.waiting.reopened[self, None] = None
            for level in stopped:
                level.unblock(EVERY_BIT)
            self.queue.partition.waiting.retry_short_of_quota()

    def abandon(self, level: Level) -> None:
        """Forget a level that is no longer used."""
        self.shut.pop(level, None)
        for shape in [shape for shape, levels in self.short_of.items() if level in levels]:
            del self.short_of[shape][level]
            if not self.short_of[shape]:
                self.forget(shape)

    def headroom(self) -> dict[int, int]:
        """The headroom by type; types without a limit are absent."""
        return {index: limit - self.usage[index] for index, limit in self.resources}

    def __repr__(self) -> str:
        return f"<Ledger {self.account.kind} {self.account.name} in {self.queue.path}>"


class Account:
    """A user or a group in one partition.

    ``ledgers`` are by queue path. ``applications`` have not ended and charge this account.
    """

    __slots__ = ("applications", "is_group", "ledgers", "name")

    def __init__(self, name: str, *, is_group: bool) -> None:
        self.name = name
        self.is_group = is_group
        self.ledgers: dict[str, Ledger] = {}
        self.applications: dict[Application, None] = {}

    @property
    def kind(self) -> str:
        return "group" if self.is_group else "user"

    def ledger(self, queue: Queue) -> Ledger:
        """Its ledger of this queue, created if missing."""
        found = self.ledgers.get(queue.path)
        if found is None:
            found = self.ledgers[queue.path] = Ledger(self, queue)
        return found

    def granted(self, queue: Queue) -> tuple[Limit | None, bool]:
        """Its limit in this queue, and whether that is the limit of the wildcard.

        The wildcard's limit applies to each user without a limit of their own, separately. The wildcard
        of groups is an account of its own, shared by all groups without a limit of their own (2.5).
        """
        limits = queue.group_limits if self.is_group else queue.user_limits
        if not limits:
            return None, False
        own = limits.get(self.name)
        if own is not None or self.is_group:
            return own, own is not None and self.name == WILDCARD
        shared = limits.get(WILDCARD)
        return shared, shared is not None

    def write_to(self, leaf: Queue) -> tuple[Ledger, ...]:
        """The ledgers to charge for an allocation in this leaf: the leaf's own first, then those above
        with a limit."""
        above = [q for q in leaf.lineage[1:] if self.granted(q)[0] is not None]
        return tuple(self.ledger(queue) for queue in (leaf, *above))

    # -- reading -----------------------------------------------------------------------------------

    @property
    def usage(self) -> Totals:
        """Its usage in the partition, placeholders included."""
        total: Totals = []
        for ledger in self.ledgers.values():
            if ledger.queue.leaf:
                total = total or [0] * len(ledger.usage)
                add(total, ledger.usage)
        return total


class QuotaChanges:
    """Changes in one partition since its last quota events. Each mapping is an ordered set."""

    __slots__ = ("applications", "capacity", "groups", "leaves", "ledgers", "queues", "shapes")

    def __init__(self) -> None:
        #: the capacity of the nodes is another one
        self.capacity = False
        #: groups with new asks, or of an application that changed its lane or state
        self.groups: dict[AskGroup, None] = {}
        #: shapes that a quota has blocked or unblocked
        self.shapes: dict[Shape, None] = {}
        #: applications with other allocated resources
        self.applications: dict[Application, None] = {}
        #: queues with another quota
        self.queues: dict[Queue, None] = {}
        #: leaves and ledgers with another number of counted applications, or another limit of it
        self.leaves: dict[LeafQueue, None] = {}
        self.ledgers: dict[Ledger, None] = {}
