"""Accounts: what a user or a group holds, queue by queue, and what it may hold at most (2.5).

An account has a *ledger* for every leaf in which its applications are, and for every queue above with
a limit for it. Only those are written on each allocation; what it holds elsewhere is a sum. Like a
queue, a ledger remembers which shapes it has no room for and who was stopped because of that, so
nobody asks again until it gets something back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from quadriga.core.model.demand import EVERY_BIT
from quadriga.core.model.resources import Totals, Vector, add

if TYPE_CHECKING:
    from quadriga.core.model.application import Application
    from quadriga.core.model.demand import Level
    from quadriga.core.model.queue import Queue
    from quadriga.core.model.shapes import Shape

__all__ = ["WILDCARD", "Account", "Holding", "Ledger", "Limit"]

#: in a limit: every user without a limit of his own in that queue, or all other groups together
WILDCARD: Final = "*"


@dataclass(frozen=True, slots=True)
class Limit:
    """What a queue grants each of some users, or each of some groups.

    ``resources`` are pairs (type, limit) as in ``Queue.limits``; ``applications`` 0 is unlimited.
    """

    label: str = ""
    max: dict[str, int] | None = None
    resources: tuple[tuple[int, int], ...] = ()
    applications: int = 0


@dataclass(frozen=True, slots=True)
class Holding:
    """What an account holds in one queue and below, for those who show it (2.14).

    ``usage`` includes placeholders. ``running`` are the applications that count, by id. ``children``
    are the queues below in which it holds or is granted anything, by path.
    """

    path: str
    usage: Vector
    running: tuple[str, ...]
    limit: Limit | None
    wildcard: bool
    children: tuple[Holding, ...]


class Ledger:
    """One account in one queue: its usage there and below, and its limit, where it has one.

    ``running`` are the applications that count, in the order in which they began to.
    """

    __slots__ = (
        "account",
        "bound",
        "limit",
        "max_applications",
        "queue",
        "resources",
        "running",
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
        #: applications, of whatever state, that write here; without any it is forgotten
        self.bound = 0
        #: shapes that the limit has no room for, and whom that stopped
        self.short_of: dict[Shape, dict[Level, None]] = {}
        #: those whom the number of applications stopped
        self.shut: dict[Level, None] = {}
        self.limit, self.wildcard = account.granted(queue)
        self.resources = self.limit.resources if self.limit is not None else ()
        self.max_applications = self.limit.applications if self.limit is not None else 0

    def has_room(self, shape: Shape) -> bool:
        """Whether one more allocation of this shape stays within the limit."""
        return shape.stays_within(self.resources, self.usage)

    def is_short(self, shape: Shape) -> bool:
        """Whether the limit keeps asks of this shape waiting, or would."""
        return not self.has_room(shape)

    def admits(self) -> bool:
        """Whether one more application may start to count."""
        limit = self.max_applications
        return not limit or len(self.running) + 1 <= limit

    def run_short(self, shape: Shape, level: Level) -> None:
        """It has no room for this shape: nobody below ``level`` asks for it until it has."""
        self.short_of.setdefault(shape, {})[level] = None
        self._mark_changed(shape)
        self.queue.partition.waiting.short_ledgers.setdefault(shape, {})[self] = None
        level.block(shape.bits)

    def _mark_changed(self, shape: Shape) -> None:
        if (changes := self.queue.partition.quota_changes) is not None:
            changes.shapes[shape] = None

    def regained(self) -> None:
        """It got something back: let those ask again who may have room now."""
        for shape in [shape for shape in self.short_of if self.has_room(shape)]:
            self.forget(shape)

    def forget(self, shape: Shape) -> None:
        """Stop nobody because of this shape any longer."""
        self._mark_changed(shape)
        short = self.queue.partition.waiting.short_ledgers
        del short[shape][self]
        if not short[shape]:
            del short[shape]
        for level in self.short_of.pop(shape):
            if level.blocked != EVERY_BIT:
                level.unblock(shape.bits)

    def run_full(self, level: Level) -> None:
        """It admits no further application: nobody below ``level`` starts until one has left."""
        self.shut[level] = None
        level.block(EVERY_BIT)
        if (changes := self.queue.partition.quota_changes) is not None:
            changes.ledgers[self] = None

    def left(self) -> None:
        """An application counts no longer: another may start."""
        if self.admits():
            if (changes := self.queue.partition.quota_changes) is not None:
                changes.ledgers[self] = None
            stopped, self.shut = self.shut, {}
            for level in stopped:
                level.unblock(EVERY_BIT)
            self.queue.partition.waiting.retry_short_of_quota()

    def abandon(self, level: Level) -> None:
        """The level is not used any more."""
        self.shut.pop(level, None)
        for shape in [shape for shape, levels in self.short_of.items() if level in levels]:
            del self.short_of[shape][level]
            if not self.short_of[shape]:
                self.forget(shape)

    def headroom(self) -> dict[int, int]:
        """What is left, by type; types without a limit are absent."""
        return {index: limit - self.usage[index] for index, limit in self.resources}

    def __repr__(self) -> str:
        return f"<Ledger {self.account.kind} {self.account.name} in {self.queue.path}>"


class Account:
    """A user (``is_group`` false) or a group in one partition.

    ``ledgers`` are by queue path; ``applications`` are the living ones that are bound to it.
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
        """Its ledger of this queue, which becomes known by asking."""
        found = self.ledgers.get(queue.path)
        if found is None:
            found = self.ledgers[queue.path] = Ledger(self, queue)
        return found

    def granted(self, queue: Queue) -> tuple[Limit | None, bool]:
        """Its limit in this queue, and whether it is the wildcard's.

        A user who is not named has the wildcard's limit, all to himself. The wildcard of groups is
        an account of its own, which all groups share that are not named (2.5).
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
        """The ledgers that an allocation in this leaf is written to: the leaf's own, first, and
        those above that have a limit."""
        above = [q for q in leaf.lineage[1:] if self.granted(q)[0] is not None]
        return tuple(self.ledger(queue) for queue in (leaf, *above))

    # -- reading -----------------------------------------------------------------------------------

    @property
    def usage(self) -> Totals:
        """All that it holds in the partition, placeholders included."""
        total: Totals = []
        for ledger in self.ledgers.values():
            if ledger.queue.leaf:
                total = total or [0] * len(ledger.usage)
                add(total, ledger.usage)
        return total

    def running_in(self, queue: Queue) -> list[Application]:
        """The applications that count in this queue and below, in order of submission."""
        leaves = [ledger for ledger in self.ledgers.values() if ledger.queue.leaf]
        found = [app for each in leaves if queue in each.queue.lineage for app in each.running]
        return sorted(found, key=lambda app: app.seq)

    def holding(self, root: Queue) -> Holding:
        """What it holds and may hold in this queue and below. Only queues where it has an
        application or a limit of its own name are among the children."""
        named = "group_limits" if self.is_group else "user_limits"
        known = {
            above: _Sum(root.partition.registry.zeros(), [])
            for queue in root.walk()
            if queue.path in self.ledgers or self.name in getattr(queue, named)
            for above in queue.lineage
        }
        for ledger in self.ledgers.values():
            if ledger.queue.leaf:
                for queue in ledger.queue.lineage:
                    add(known[queue].usage, ledger.usage)
                    known[queue].running.extend(app.app_id for app in ledger.running)
        return self._holding(root, known)

    def _holding(self, queue: Queue, known: dict[Queue, _Sum]) -> Holding:
        limit, wildcard = self.granted(queue)
        own = known.get(queue) or _Sum(queue.partition.registry.zeros(), [])
        children = [child for _, child in sorted(queue.children.items()) if child in known]
        return Holding(
            queue.path,
            tuple(own.usage),
            tuple(sorted(own.running)),
            limit,
            wildcard,
            tuple(self._holding(child, known) for child in children),
        )


class _Sum(NamedTuple):
    usage: Totals
    running: list[str]
