"""The budget of a partition for capacity that is kept idle for gangs (Q10). See D321."""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, Final, Protocol

from quadriga.base.times import HOUR, SECOND
from quadriga.core.config.properties import WHOLE

if TYPE_CHECKING:
    from quadriga.core.config import Properties
    from quadriga.core.model.timer import Timer
    from quadriga.core.resources.vectors import Registry, Totals

#: what was charged longer ago is forgotten (ns), and the parts in which it is forgotten
WINDOW: Final = 7 * 86_400 * SECOND
_PART: Final = WINDOW // 42

#: it is this many times as large for a gang that tells its run time, if told ends alone decide when it starts
_TOLD_TIMES: Final = 4

#: what is counted: gangs that began to gather, that started, that gave their nodes back, and that were
#: due while the budget was spent
BEGUN: Final = "begun"
STARTED: Final = "started"
GIVEN_UP: Final = "given up"
REFUSED: Final = "refused"
GATHERINGS: Final = (BEGUN, STARTED, GIVEN_UP, REFUSED)
#: what was charged since the start (ns times millionths)
CHARGED: Final = "charged"
#: allocations that were lent nodes of a planned start, of these those that ran too long, and those preempted for it
LENT: Final = "lent"
OVERRAN: Final = "overran"
PREEMPTED: Final = "preempted"
LENDING: Final = (LENT, OVERRAN, PREEMPTED)


class HasNow(Protocol):
    """What knows the time of the scheduler (ns)."""

    now: int


class HasAvailable(Protocol):
    """A node: what it has free, by type."""

    available: Totals


class HasAllocated(Protocol):
    """Root: what is allocated, by type, and the size of the budget."""

    allocated: Totals
    properties: Properties


class HasCapacity(Protocol):
    """A partition: the sum of what its nodes have, by type, and its root."""

    capacity: Totals
    registry: Registry

    @property
    def root(self) -> HasAllocated: ...


class GatherBudget:
    """The budget of a partition for capacity that is kept idle for gangs (Q10).

    What the nodes that a gang keeps have free is charged for as long as they have it. The unit is a time: a
    quarter of the partition that is kept idle for four hours is one hour of the whole partition. What was
    charged in the last seven days is compared with a share of these days. It starts at zero with the process.

    Charged is the scarcest resource: what is kept of each resource, as a share of the partition, counts as
    far as others have none of it left, and the resource that counts most is the charge. So memory that nobody
    lacks costs little, and an idle core of a full cluster costs a core.

    A change costs the same however many nodes there are or are kept: the sum of what they have free is kept
    up to date node by node.
    """

    __slots__ = (
        "_idle",
        "_kept",
        "_needs",
        "_partition",
        "_parts",
        "_rate",
        "_recent",
        "_since",
        "_time",
        "_whole",
        "counts",
        "is_spent",
        "longest_run",
        "refused",
        "timer",
    )

    def __init__(self, partition: HasCapacity, counts: Counter[str] | None = None) -> None:
        """With ``counts``, which it shares with others, it is the budget of a quota or a limit (Q12)."""
        self._partition = partition
        self._whole = "cluster" if counts is None else "quota"
        self._time: HasNow | None = None
        #: what each node had idle of what is kept there when it last changed, and the sum by type
        self._kept: dict[HasAvailable, tuple[int, ...]] = {}
        self._needs: dict[HasAvailable, Totals] = {}
        self._idle: list[int] = []
        #: millionths of the partition that are charged since an instant (ns)
        self._rate = 0
        self._since = 0
        #: charges (ns times millionths) of the window by the number of their part, and their sum
        self._parts: deque[tuple[int, int]] = deque()
        self._recent = 0
        #: whether it was spent when it was last asked
        self.is_spent = False
        #: how often gangs did each of `GATHERINGS`, and allocations each of `LENDING`, and all that was charged
        self.counts: Counter[str] = Counter() if counts is None else counts
        #: the key of the application whose start at a quota was refused last, as it was spent
        self.refused = ""
        #: the longest run (ns) of an allocation that has ended
        self.longest_run = 0
        #: runs while gangs wait for the budget
        self.timer: Timer | None = None

    # -- charging ------------------------------------------------------------------------------------

    def keep(self, node: HasAvailable, amounts: Totals, time: HasNow) -> None:
        """These amounts of the node are kept for the protected gang from now on."""
        self._time = time
        self._needs[node] = amounts
        self._kept.setdefault(node, ())
        self.changed(node)

    def drop(self, node: HasAvailable) -> None:
        """The node is no longer kept."""
        if node in self._kept:
            self._settle()
            self._count(self._kept.pop(node), ())
            self._rate = self._charged()

    def changed(self, node: HasAvailable) -> None:
        """What a node has free has changed."""
        before = self._kept.get(node)
        if before is None:
            return
        after = tuple(map(min, node.available, self._needs[node]))
        if after != before:
            self._settle()
            self._kept[node] = after
            self._count(before, after)
            self._rate = self._charged()

    def keep_share(self, share: int, time: HasNow | None = None) -> None:
        """This share of a quota, in millionths, is kept idle from now on (Q12)."""
        self._time = time or self._time
        self._settle()
        self._rate = share

    def _count(self, before: tuple[int, ...], after: tuple[int, ...]) -> None:
        idle = self._idle
        idle.extend([0] * (len(after) - len(idle)))
        for at, value in enumerate(before):
            idle[at] -= max(0, value)
        for at, value in enumerate(after):
            idle[at] += max(0, value)

    def _charged(self) -> int:
        """The charge per time, in millionths of the partition."""
        most = 0
        capacity, used = self._partition.capacity, self._partition.root.allocated
        hidden = self._partition.registry.hidden
        for at, idle in enumerate(self._idle):
            whole = capacity[at]
            if idle > 0 and whole > 0 and at not in hidden:
                gone = min(whole, used[at] + idle)
                most = max(most, idle * WHOLE * gone // (whole * whole))
        return min(most, WHOLE)

    def _settle(self) -> None:
        """Charge what was kept since the last change."""
        if self._time is None:
            return
        now = self._time.now
        while self._rate and self._since < now:
            part = self._since // _PART
            until = min(now, (part + 1) * _PART)
            self._add(part, self._rate * (until - self._since))
            self._since = until
        self._since = now

    def _add(self, part: int, amount: int) -> None:
        if self._parts and self._parts[-1][0] == part:
            amount_before = self._parts.pop()[1]
            self._parts.append((part, amount_before + amount))
        else:
            self._parts.append((part, amount))
        self._recent += amount
        self.counts[CHARGED] += amount

    # -- what is left --------------------------------------------------------------------------------

    def _allowed(self, told: bool) -> int:
        share = self._partition.root.properties.gang_gather_budget
        return share * WINDOW * (_TOLD_TIMES if told else 1)

    def spent(self, now: int, told: bool = False) -> bool:
        """Whether no gang may begin to gather, and the one that gathers may keep no more nodes. ``told``: for a gang
        that tells its run time, whose start depends on told ends alone."""
        if self._rate:
            self._settle()
        parts, first = self._parts, (now - WINDOW) // _PART
        while parts and parts[0][0] < first:
            self._recent -= parts.popleft()[1]
        allowed = self._allowed(told)
        self.is_spent = self._recent > allowed or not allowed
        return self.is_spent

    def again(self, now: int, told: bool = False) -> int:
        """The instant (ns) at which a spent budget allows a gang to gather, if nothing more is charged."""
        recent, allowed = self._recent, self._allowed(told)
        for part, amount in self._parts:
            recent -= amount
            if recent <= allowed:
                return max(now + 60 * SECOND, (part + 1) * _PART + WINDOW)
        return now + WINDOW

    def left(self, told: bool = False) -> int:
        """The time (ns) of the whole partition that may still be kept idle."""
        first = (self._now - WINDOW) // _PART
        recent = sum(amount for part, amount in self._parts if part >= first)
        return max(0, self._allowed(told) - recent - self._open) // WHOLE

    def words(self, told: bool = False) -> str:
        """What is left, as the end of a sentence."""
        left = self.left(told) / HOUR
        if not left:
            return "but the budget for idle capacity is spent"
        return (
            f"and the budget for idle capacity has {left:.2f} hours of the whole {self._whole} left"
        )

    @property
    def kept_idle(self) -> int:
        """The time (ns) of the whole partition that was kept idle since the start."""
        return (self.counts[CHARGED] + self._open) // WHOLE

    @property
    def _now(self) -> int:
        return 0 if self._time is None else self._time.now

    @property
    def _open(self) -> int:
        """What is not charged yet."""
        return self._rate * max(0, self._now - self._since)
