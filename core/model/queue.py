"""Queues: the tree in which applications wait, and its quotas.

A parent's children are queues, a leaf's are applications, in two lanes: those that are served, and
those that need a slot under maxapplications first; applications under user or group limits have
lanes of their own (``order.lanes``). What a quota has no room for is *blocked* at the queue whose
quota it is, and freed when that queue gets something back; nobody asks again meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from quadriga.core.config import ACL, ChildTemplate, Properties, QueueConfig
from quadriga.core.model.account import Limit
from quadriga.core.model.demand import EVERY_BIT, Key, Level, bits_of
from quadriga.core.model.resources import Totals
from quadriga.core.model.shapes import Shape
from quadriga.fsm import queue as queue_fsm

if TYPE_CHECKING:
    from quadriga.core.model.application import Application
    from quadriga.core.model.failed_preemptions import FailedPreemption
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.timer import Timer

__all__ = ["Contender", "LeafQueue", "ParentQueue", "Queue", "first_of", "goes_before"]

#: an application with its rank, which no other of the leaf has
Contender = tuple[Key, "Application"]

_name = attrgetter("name")
#: so many applications of a leaf are not looked at one by one
_MANY: Final = 32
_LOWEST, _HIGHEST = -(2**31), 2**31 - 1


class Queue(Level):
    """What leaf and parent have in common: quotas, books, counts.

    ``path`` is dotted from root. ``allocated`` includes placeholders (G59) and what is being asked
    back; ``reserved_headroom`` is what started gangs below still lack (X16).
    """

    __slots__ = (
        "_barred",
        "_denominators",
        "above_guarantee",
        "above_max_since",
        "admin_acl",
        "admitted",
        "allocated",
        "allocated_upwards",
        "children",
        "entries",
        "fair",
        "gated",
        "group_limits",
        "guaranteed",
        "guaranteed_by_type",
        "limits",
        "lineage",
        "managed",
        "max",
        "max_applications",
        "name",
        "parent",
        "partition",
        "path",
        "pending",
        "pending_upwards",
        "preempting",
        "priorities",
        "priority",
        "quota_timer",
        "reserved_headroom",
        "properties",
        "raw_properties",
        "released",
        "reserving",
        "running",
        "share",
        "short_of",
        "state",
        "submit_acl",
        "template",
        "urgency",
        "user_limits",
    )

    leaf = False

    def __init__(self, partition: Partition, parent: Queue | None, name: str) -> None:
        super().__init__()
        self.partition = partition
        self.parent = parent
        self.above = parent
        self.name = name
        self.path: str = f"{parent.path}.{name}" if parent else name
        #: itself, its parent, and so on up to root
        self.lineage: tuple[Queue, ...] = (self, *parent.lineage) if parent else (self,)
        self.children: dict[str, Queue] = {}
        self.state: queue_fsm.State = queue_fsm.ACTIVE
        self.entries = 0
        #: it is, or was, in the configuration; placement made it otherwise (2.9)
        self.managed = True
        #: what leafs that placement makes below it get
        self.template: ChildTemplate | None = None
        self.max: dict[str, int] | None = None
        self.limits: tuple[tuple[int, int], ...] = ()
        self.guaranteed: dict[str, int] | None = None
        self.guaranteed_by_type: dict[int, int] = {}
        self.max_applications = 0
        #: what this queue grants users and groups, by name in the order of the configuration (2.5)
        self.user_limits: dict[str, Limit] = {}
        self.group_limits: dict[str, Limit] = {}
        self.properties = Properties()
        #: whether a leaf sorts its applications by share
        self.fair = False
        self.raw_properties: dict[str, str] = {}
        self.submit_acl = ACL()
        self.admin_acl = ACL()
        self.allocated: Totals = partition.registry.zeros()
        self.pending: Totals = partition.registry.zeros()
        self.reserved_headroom: Totals = partition.registry.zeros()
        #: the same totals of this queue and all above
        self.allocated_upwards: tuple[Totals, ...] = (self.allocated,)
        self.pending_upwards: tuple[Totals, ...] = (self.pending,)
        if parent is not None:
            self.allocated_upwards += parent.allocated_upwards
            self.pending_upwards += parent.pending_upwards
        #: preemptions that failed because it would have been above its guarantee or its max (5.9)
        self.above_guarantee: dict[FailedPreemption, None] = {}
        #: runs while it uses more than its max and is to give it back (2.8), and since when
        self.quota_timer: Timer | None = None
        self.above_max_since = 0
        #: what is allocated here and was asked back to make room for others (2.8)
        self.preempting: Totals = partition.registry.zeros()
        self.running = 0
        #: allocations that are over, of applications that have left it
        self.released = 0
        #: Accepted gangs whose placeholders are being allocated count like running ones (2.9)
        self.admitted: dict[Application, None] = {}
        #: applications of a leaf that have nodes reserved, and how many
        self.reserving: dict[Application, int] = {}
        #: shapes that this queue's quota has no room for
        self.short_of: dict[Shape, None] = {}
        #: gangs that wait for room for the whole of them, here (X16)
        self.gated: dict[Application, None] = {}
        self.priority: int | None = None
        self.priorities: dict[int, int] = {}
        #: what ``reported`` counts for in the order of queues: less is earlier
        self.urgency = -_LOWEST
        self._denominators: tuple[tuple[int, int], ...] | None = None
        #: types of which it may use nothing
        self._barred: tuple[int, ...] = ()
        #: the fair share that its rank has rounded: how much it uses, and of how much
        self.share = 0, 1

    def configure(self, config: QueueConfig) -> None:
        """Take over what the configuration says about this queue itself."""
        reported = self.reported
        self.set_amounts(config.max, config.guaranteed)
        self.max_applications = config.max_applications
        self._set_limits(config)
        self.properties = config.properties
        self.fair = config.properties.sort_policy == "fair"
        self._set_urgency()
        if self.properties.backoff:
            self.partition.waiting.backs_off = True
        self.raw_properties = config.raw_properties
        self.submit_acl = config.submit_acl
        self.admin_acl = config.admin_acl
        self.template = config.child_template
        if self.parent is not None and reported != self.reported:
            self.parent.report_priority(reported, self.reported)

    def set_amounts(self, max: dict[str, int] | None, guaranteed: dict[str, int] | None) -> None:
        """Its quota and what is guaranteed to it; whoever calls this lets those who wait look again."""
        registry = self.partition.registry
        self.max = max
        self.limits = registry.limits(max) if max else ()
        self.guaranteed = guaranteed
        self.guaranteed_by_type = dict(registry.limits(guaranteed or {}))
        self.partition.failed_preemptions.allow_all_retries()

    def _set_limits(self, config: QueueConfig) -> None:
        self.user_limits, self.group_limits = {}, {}
        for each in config.limits:
            resources = self.partition.registry.limits(each.max_resources or {})
            limit = Limit(each.label, each.max_resources, resources, each.max_applications)
            self.user_limits.update(dict.fromkeys(each.users, limit))
            self.group_limits.update(dict.fromkeys(each.groups, limit))

    @property
    def key(self) -> str:
        return f"{self.partition.key}/{self.path}"

    @property
    def closed_by(self) -> Queue | None:
        """The queue, it or one above, that keeps new applications out, as it drains (X33)."""
        return next((queue for queue in self.lineage if queue.state not in queue_fsm.ADMITS), None)

    @property
    def stateaware(self) -> bool:
        """Whether a leaf lets in one application after the other (2.9)."""
        return self.properties.sort_policy == "stateaware"

    @property
    def sorts_priority(self) -> bool:
        return self.properties.sort_priority

    def walk(self) -> Iterator[Queue]:
        """This queue and all below, parents first, children by name."""
        yield self
        for name in sorted(self.children):
            yield from self.children[name].walk()

    def may_submit(self, user: str, groups: tuple[str, ...]) -> bool:
        """Submit or admin rights here or at any ancestor (2.17)."""
        return any(
            queue.submit_acl.allows(user, groups) or queue.admin_acl.allows(user, groups)
            for queue in self.lineage
        )

    # -- quota -----------------------------------------------------------------------------------

    def has_room(self, shape: Shape) -> bool:
        """Whether one more allocation of this shape stays within this queue's own max (5.3)."""
        return shape.stays_within(self.limits, self.allocated)

    def is_short(self, shape: Shape) -> bool:
        """Whether its quota keeps asks of this shape waiting, or would."""
        return bool(self.limits) and (shape in self.short_of or not self.has_room(shape))

    def run_short(self, shape: Shape) -> None:
        """Its quota has no room for this shape: nobody below asks for it until it has.

        They may still preempt, which can make room under the quota as well (5.6).
        """
        self.short_of[shape] = None
        self._mark_changed(shape)
        self.block(shape.quota)

    def _mark_changed(self, shape: Shape) -> None:
        if self.partition.quota_changes is not None:
            self.partition.quota_changes.shapes[shape] = None

    def regained(self) -> None:
        """It got something back, or its quota grew: let those ask again who may have room now."""
        if self.short_of:
            for shape in [shape for shape in self.short_of if self.has_room(shape)]:
                del self.short_of[shape]
                self._mark_changed(shape)
                if not self._closed:
                    self.unblock(shape.quota)
        if self.above_guarantee:
            self.shrunk()
        if self.gated:
            gangs = list(self.gated)
            self.gated.clear()
            for app in gangs:
                app.gang.gated = False
                self.partition.waiting.refresh(app)
        self.partition.waiting.retry_short_of_quota()

    def shrunk(self) -> None:
        """It uses less than before: who would have been above its guarantee may be within it."""
        for failed in self.above_guarantee:
            self.partition.failed_preemptions.allow_retry(failed)
        self.above_guarantee.clear()

    @property
    def _closed(self) -> bool:
        return self.blocked == EVERY_BIT

    def close(self) -> None:
        """Serve nobody below (Stopped)."""
        self.block(EVERY_BIT)

    def open(self) -> None:
        """Serve again; what was short of quota is found out anew."""
        self.short_of.clear()
        self.unblock(EVERY_BIT)

    def admits(self) -> bool:
        """Whether one more application may start here (maxapplications, this level only)."""
        limit = self.max_applications
        return not limit or self.running + len(self.admitted) + 1 <= limit

    # -- order ---------------------------------------------------------------------------------

    def make_rank(self) -> Key:
        """Priority and the 1.6+ fair share (5.4).

        Correctly rounded quotients are in the order of the exact ones, but two that differ a little
        may be equal; ``first_of`` decides between those, and between equals, by ``share``.
        """
        share, most, of = 0.0, 0, 1
        allocated = self.allocated
        whole: Any  # the quotient of what is known to be integers is rounded twice where compiled
        for index, whole in self._denominators or self._denominator():
            used = allocated[index]
            this: float = used / whole
            if this > share or (this == share and used * of > most * whole):
                share, most, of = this, used, whole
        for index in self._barred:
            if allocated[index] > 0 and most < of:
                share, most, of = 1.0, 1, 1
        self.share = most, of
        parent = self.parent
        sorts = parent is None or parent.properties.sort_priority
        rank: Key = (self.urgency, share) if sorts else (share, self.urgency)
        self.rank = rank
        return rank

    def _denominator(self) -> tuple[tuple[int, int], ...]:
        """For each type what its share is a share of: guaranteed, else the most it may ever use. Of
        what it may use nothing of, anything is all there is."""
        if self._denominators is None:
            # a type that no node has is no part of root's max
            most = {at: whole for at, whole in enumerate(self.partition.capacity) if whole}
            for queue in reversed(self.lineage[:-1]):
                most.update(queue.limits)
            most.update(self.guaranteed_by_type)
            known = sorted(most.items())
            self._denominators = tuple([(at, whole) for at, whole in known if whole > 0])
            self._barred = tuple([at for at, whole in known if whole <= 0])
        return self._denominators

    def touch(self) -> None:
        self.rank = None
        parent = self.parent
        if parent is not None and parent.few is None:
            parent.rerank(self, self.demand)

    def capacity_changed(self) -> None:
        """Nodes came, went or changed, or a quota did: shares are shares of something else."""
        self._denominators = None
        self.touch()
        if self.partition.quota_changes is not None:
            self.partition.quota_changes.queues[self] = None

    def report_priority(self, old: int | None, new: int | None) -> None:
        """A child's reported priority changed; ``None`` is no pending ask at all (5.4)."""
        counts = self.priorities
        if old is not None:
            counts[old] -= 1
            if not counts[old]:
                del counts[old]
        if new is not None:
            counts[new] = counts.get(new, 0) + 1
        now = max(counts) if counts else None
        if now != self.priority:
            before = self.reported
            self.priority = now
            self._set_urgency()
            self.touch()
            if self.parent is not None and before != self.reported:
                self.parent.report_priority(before, self.reported)

    def _set_urgency(self) -> None:
        reported = self.reported
        self.urgency = -(reported if reported is not None else _LOWEST)

    @property
    def reported(self) -> int | None:
        """The priority by which its parent knows it; ``None`` without a pending ask (5.4)."""
        if self.priority is None:
            return None
        offset = self.properties.priority_offset
        if self.properties.priority_policy == "fence":
            return offset
        return max(_LOWEST, min(_HIGHEST, offset + self.priority))


class ParentQueue(Queue):
    """Its children are queues, always in fair order."""

    __slots__ = ()

    def best(self, feasible: int) -> Any:
        """As for every level; exactly equal shares are decided by more pending, then the name."""
        wanted = self.demand & feasible
        if not wanted:
            return None
        children = self._candidates(wanted) if self.few is None else self.few
        return first_of([child for child in children if child.demand & wanted])

    def rivals(self, feasible: int) -> list[Queue] | None:
        """Among whom ``best`` decides, as long as nobody starts or stops to wait; ``None`` where it
        had better be asked each time."""
        wanted = self.demand & feasible
        return [child for child in self.few if child.demand & wanted] if self.few else None

    def _candidates(self, wanted: int) -> Iterable[Queue]:
        """Children among which the best is: for each bit the first and its equals, or, where there
        are more bits than children, simply all."""
        children = self.children
        if wanted.bit_count() < len(children):
            return dict.fromkeys(
                child for bit in bits_of(wanted) for child in self.waiting[bit].tied(2)
            )
        return children.values()


def first_of(queues: list[Any]) -> Any:
    """The first of some queues beside one another."""
    if len(queues) == 1:
        return queues[0]
    best: Any = None
    head: Key = ()
    tied: list[Queue] | None = None
    for queue in queues:
        rank = queue.rank or queue.make_rank()
        if best is None or rank < head:
            best, head, tied = queue, rank, None
        elif rank == head:
            tied = [best] if tied is None else tied
            tied.append(queue)
    return best if tied is None else _first_of_tied(tied)


def goes_before(one: Queue, other: Queue) -> bool:
    """Whether a queue comes before one beside it (5.4)."""
    return first_of([one, other]) is one


def _first_of_tied(tied: list[Queue]) -> Queue:
    """The first of queues with equal keys: least share without rounding, most pending, name."""
    least = [tied[0]]
    most, of = tied[0].share
    for queue in tied[1:]:
        used, whole = queue.share
        if used * of < most * whole:
            least, most, of = [queue], used, whole
        elif used * of == most * whole:
            least.append(queue)
    return least[0] if len(least) == 1 else _most_pending(least)


def _most_pending(queues: list[Queue]) -> Queue:
    """First of a stable sort by name in which a queue with strictly more pending goes before another.

    "More" is a partial order over several types, so the order of names counts (5.4).
    """
    if len(queues) == 2:
        first, second = queues
        if second.name < first.name:
            first, second = second, first
        return second if _asks_for_more(second.pending, first.pending) else first
    ordered: list[Queue] = []
    for queue in sorted(queues, key=_name):
        at = len(ordered)
        while at and _asks_for_more(queue.pending, ordered[at - 1].pending):
            at -= 1
        ordered.insert(at, queue)
    return ordered[0]


def _asks_for_more(left: Totals, right: Totals) -> bool:
    return left != right and not any(map(int.__lt__, left, right))


class Lane(Level):
    """Some of a leaf's applications, in order."""

    __slots__ = ()


class LeafQueue(Queue):
    """Its children are applications, in two lanes.

    ``serving`` has those that run or need no permission, ``admission`` those that a free slot under
    maxapplications must let in; that lane is closed while there is none, here or above. ``limited``
    is empty, or the same two for applications that limits of users or groups apply to.
    """

    __slots__ = ("admission", "apps", "limited", "serving", "turn")

    leaf = True

    def __init__(self, partition: Partition, parent: Queue | None, name: str) -> None:
        super().__init__(partition, parent, name)
        self.apps: dict[str, Application] = {}
        self.serving = Lane()
        self.admission = Lane()
        for lane in (self.serving, self.admission):
            lane.above = self
        self.limited: tuple[Level, ...] = ()
        #: stateaware: the one application that is not running yet and may be served (2.9)
        self.turn: Application | None = None

    def configure(self, config: QueueConfig) -> None:
        super().configure(config)
        if not self.stateaware:
            self.turn = None

    @property
    def lanes(self) -> tuple[Level, ...]:
        return (self.serving, self.admission, *self.limited)

    def best(self, feasible: int) -> Any:
        feasible &= ~self.blocked
        lanes = (self.serving, self.admission) if not self.limited else self.lanes
        best = None
        for lane in lanes:
            if lane.demand & feasible:
                app = lane.best(feasible)
                if best is None or (app.rank or app.make_rank()) < (best.rank or best.make_rank()):
                    best = app
        return best

    def contenders(self, feasible: int) -> list[Contender] | None:
        """Who would be served for these bits, in order, if no lane stopped it; ``None`` where they are
        many, and ``best`` had better be asked each time."""
        if len(self.apps) > _MANY:
            return None
        wanting = [app for app in self.apps.values() if app.demand & feasible]
        return sorted([(app.rank or app.make_rank(), app) for app in wanting])

    def announce(self, child: Any, bits: int) -> None:
        self._add_demand(bits)

    def withdraw(self, child: Any, bits: int) -> None:
        other = self.admission if child is self.serving else self.serving
        gone = bits & self.demand_below & ~other.demand
        if self.limited:
            for lane in self.lanes:
                if lane is not child:
                    gone &= ~lane.demand
        self._drop_demand(gone)

    def refresh_admission(self) -> None:
        """Open or close the lanes of applications that need a slot under maxapplications."""
        if self.partition.quota_changes is not None:
            self.partition.quota_changes.leaves[self] = None
        entering = (self.admission, *self.limited[1:])
        if all(queue.admits() for queue in self.lineage):
            for lane in entering:
                lane.unblock(EVERY_BIT)
            self.partition.waiting.retry_short_of_quota()
        else:
            for lane in entering:
                lane.block(EVERY_BIT)

    def reorder(self) -> None:
        for lane in self.lanes:
            lane.reorder()

    def headroom(self, *, with_root: bool = True) -> dict[int, int]:
        """What is left under every quota on the path, by type; types without one are absent.

        Root's max is what the nodes have; without it this is the maximal headroom (5.3).
        """
        room: dict[int, int] = {}
        for queue in self.lineage if with_root else self.lineage[:-1]:
            for index, limit in queue.limits:
                left = limit - queue.allocated[index]
                room[index] = min(left, room.get(index, left))
        return room
