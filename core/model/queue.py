"""Queues: the tree in which applications wait, and its quotas.

The children of a parent are queues. The children of a leaf are applications in two lanes: those that
are served, and those that first need a slot under maxapplications. Applications under user or group
limits have lanes of their own (``ordering.lanes``). A shape that a quota has no room for is *blocked* at
the queue with that quota until the queue gets resources back; its asks are not tried meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from quadriga.core.config import ACL, ChildTemplate, Properties, QueueConfig
from quadriga.core.model.account import Limit, with_room
from quadriga.core.resources.demand import EVERY_BIT, MAX_COMPARED, Key, Level, bits_of
from quadriga.core.resources.shapes import Shape
from quadriga.core.resources.tied import FirstOfTied, Gathered, Siblings, Tied, first_of
from quadriga.core.resources.vectors import Totals
from quadriga.fsm.lifecycles import queue as queue_fsm

if TYPE_CHECKING:
    from quadriga.core.model.account import QuotaPlan
    from quadriga.core.model.application import Application
    from quadriga.core.model.failed_preemptions import FailedPreemption
    from quadriga.core.model.gather_budget import GatherBudget
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.timer import Timer

#: the rank of an application, unique in its leaf, and the application
Contender = tuple[Key, "Application"]

#: at most this many applications of a leaf are scanned linearly
_MAX_CONTENDERS: Final = 32
#: at most this many tied children are compared one by one; for more so many trees are kept, until so many children
#: have joined or left
_FEW_TIED: Final = 16
_MOST_TREES: Final = 32
_LONG: Final = 1 << 14
#: bounds of a reported priority (int32)
_LOWEST, _HIGHEST = -(2**31), 2**31 - 1


class Queue(Level):
    """A queue of either kind: quota, accounting, counts.

    It has more than 25 attributes because every room reads it and further indirection would slow down
    the hottest reads; ``__init__`` groups them. ``path`` is dotted from root.
    """

    __slots__ = (
        "_denominators",
        "_zero_types",
        "above_guarantee",
        "above_max_since",
        "admin_acl",
        "admitted",
        "allocated",
        "allocated_upwards",
        "budget",
        "capacity_epoch",
        "children",
        "entries",
        "expected",
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
        "plan",
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
        "short_bits",
        "short_of",
        "state",
        "submit_acl",
        "template",
        "tied",
        "urgency",
        "user_limits",
    )

    leaf = False

    def __init__(self, partition: Partition, parent: Queue | None, name: str) -> None:
        super().__init__()
        # position in the tree
        self.partition = partition
        self.parent = parent
        self.above = parent
        self.name = name
        self.path: str = f"{parent.path}.{name}" if parent else name
        #: this queue, its parent, and so on up to root
        self.lineage: tuple[Queue, ...] = (self, *parent.lineage) if parent else (self,)
        self.children: dict[str, Queue] = {}
        #: True if the queue is or was in the configuration, False if a placement rule made it (2.9)
        self.managed = True

        # lifecycle
        self.state: queue_fsm.State = queue_fsm.ACTIVE
        self.entries = 0

        # configuration
        self.properties = Properties()
        self.raw_properties: dict[str, str] = {}
        #: a leaf sorts its applications by share, or by waiting and expected run time
        self.fair = False
        self.expected = False
        self.submit_acl = ACL()
        self.admin_acl = ACL()
        #: settings of the leaves that placement rules make below this queue
        self.template: ChildTemplate | None = None
        self.max: dict[str, int] | None = None
        #: ``max`` as pairs (type, amount)
        self.limits: tuple[tuple[int, int], ...] = ()
        self.guaranteed: dict[str, int] | None = None
        self.guaranteed_by_type: dict[int, int] = {}
        #: number of applications that may run; 0 is unlimited
        self.max_applications = 0
        #: limits of users and groups, by name in the order of the configuration (2.5)
        self.user_limits: dict[str, Limit] = {}
        self.group_limits: dict[str, Limit] = {}

        # amounts by type
        #: includes placeholders (G59) and allocations that are being released
        self.allocated: Totals = partition.registry.zeros()
        self.pending: Totals = partition.registry.zeros()
        #: what started gangs below still lack (X16)
        self.reserved_headroom: Totals = partition.registry.zeros()
        #: the part of ``allocated`` that is being preempted (2.8)
        self.preempting: Totals = partition.registry.zeros()
        #: the same totals of this queue and all above
        self.allocated_upwards: tuple[Totals, ...] = (self.allocated,)
        self.pending_upwards: tuple[Totals, ...] = (self.pending,)
        if parent is not None:
            self.allocated_upwards += parent.allocated_upwards
            self.pending_upwards += parent.pending_upwards

        # applications
        #: number of running applications
        self.running = 0
        #: Accepted gangs with placeholders being allocated count like running applications (2.9)
        self.admitted: dict[Application, None] = {}
        #: number of ended allocations of applications that have left the queue
        self.released = 0
        #: applications of a leaf that have reservations, with the number of reserved nodes
        self.reserving: dict[Application, int] = {}

        # quota
        #: shapes that the quota of this queue has no room for
        self.short_of: dict[Shape, None] = {}
        #: their bits for a node now (``Shape.allocate``)
        self.short_bits = 0
        #: gangs that wait until this quota has room for all their members (X16)
        self.gated: dict[Application, None] = {}
        #: what waits longest for this quota, and the budget for what is kept idle for it (Q12)
        self.plan: QuotaPlan | None = None
        self.budget: GatherBudget | None = None
        #: preemptions that failed because the queue would exceed its guarantee or its max (5.9)
        self.above_guarantee: dict[FailedPreemption, None] = {}
        #: runs while the queue exceeds its max, before its allocations are preempted (2.8)
        self.quota_timer: Timer | None = None
        #: instant (ns) at which the queue exceeded its max
        self.above_max_since = 0

        # order among the children of the parent
        #: the highest priority of pending asks below; None without a pending ask
        self.priority: int | None = None
        #: number of children that report each priority
        self.priorities: dict[int, int] = {}
        #: the negated reported priority: a smaller value is served earlier
        self.urgency = -_LOWEST
        #: pairs (type, denominator of the share); None if they must be computed again
        self._denominators: tuple[tuple[int, int], ...] | None = None
        #: the capacity of the partition that its denominators and its rank are computed from
        self.capacity_epoch = partition.capacity_epoch
        #: types with a guarantee or a max of zero
        self._zero_types: tuple[int, ...] = ()
        #: the exact fair share (used, denominator), which the rank has rounded
        self.share = 0, 1
        #: those with which it is tied, for each heap of the parent that has it so
        self.tied: dict[Siblings, Tied] = {}

    def configure(self, config: QueueConfig) -> None:
        """Apply the configuration of this queue, without its children."""
        reported = self.reported
        self.set_amounts(config.max, config.guaranteed)
        self.max_applications = config.max_applications
        self._set_limits(config)
        self.properties = config.properties
        self.fair = config.properties.sort_policy == "fair"
        self.expected = config.properties.sort_policy == "expected"
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
        """Set max and guarantee (by type). The caller retries the asks that wait for quota."""
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
        """The nearest queue of the lineage that does not admit applications, e.g. draining (X33)."""
        return next((queue for queue in self.lineage if queue.state not in queue_fsm.ADMITS), None)

    @property
    def stateaware(self) -> bool:
        """Whether the leaf starts its applications one at a time (2.9)."""
        return self.properties.sort_policy == "stateaware"

    @property
    def sorts_priority(self) -> bool:
        return self.properties.sort_priority

    def walk(self) -> Iterator[Queue]:
        """This queue and all below, parents first, children by name."""
        yield self
        for name in sorted(self.children):
            yield from self.children[name].walk()

    def each(self) -> Iterator[Queue]:
        """The same, parents first, but children in no order; queues may come and go meanwhile."""
        found = [self]
        while found:
            queue = found.pop()
            yield queue
            found.extend(queue.children.values())

    def may_submit(self, user: str, groups: tuple[str, ...]) -> bool:
        """Whether the user has submit or admin rights here or at any ancestor (2.17)."""
        return any(
            queue.submit_acl.allows(user, groups) or queue.admin_acl.allows(user, groups)
            for queue in self.lineage
        )

    # -- quota -----------------------------------------------------------------------------------

    def has_room(self, shape: Shape) -> bool:
        """Whether one more allocation of this shape stays within the max of this queue (5.3), and delays no plan
        (Q12).

        Root's max is what all nodes have. It does not bound asks that require their node, which that node
        bounds (2.8).
        """
        if shape.stays_within(self.limits, self.allocated):
            return self.plan is None or self.plan.admits(shape, self.partition.node_index.now)
        return self.parent is None and bool(shape.required_node)

    def is_short(self, shape: Shape) -> bool:
        """Whether the quota has no room for asks of this shape."""
        return bool(self.limits) and (shape in self.short_of or not self.has_room(shape))

    def run_short(self, shape: Shape) -> None:
        """Block this shape below the queue until its quota has room for it.

        Asks of the shape may still preempt, which can make room under the quota as well (5.6).
        """
        self.short_of[shape] = None
        self.short_bits |= shape.allocate
        self.partition.waiting.short_quotas[self] = None
        self._mark_changed(shape)
        self.block(shape.quota)

    def _mark_changed(self, shape: Shape) -> None:
        if self.partition.quota_changes is not None:
            self.partition.quota_changes.shapes[shape] = None

    def regained(self) -> None:
        """The queue got resources back, or its quota grew: unblock the shapes and gangs that may fit."""
        if self.plan is not None:
            self.plan.stale = True
        for shape in with_room(self, self.partition, self.limits, self.allocated):
            del self.short_of[shape]
            self.short_bits &= ~shape.allocate
            self._mark_changed(shape)
            if not self._closed:
                self.unblock(shape.quota)
        if self.above_guarantee:
            self.shrunk()
        if self.gated:
            gangs = list(self.gated)
            self.gated.clear()
            for app in gangs:
                app.gang.try_again()
        self.partition.waiting.retry_short_of_quota()

    def forget_short(self, shape: Shape) -> None:
        """No ask has this shape any more."""
        if shape in self.short_of:
            del self.short_of[shape]
            self.short_bits &= ~shape.allocate
            if not self._closed:
                self.unblock(shape.quota)

    def shrunk(self) -> None:
        """The queue uses less than before: allow retries of preemptions that exceeded its guarantee."""
        for failed in self.above_guarantee:
            self.partition.failed_preemptions.allow_retry(failed)
        self.above_guarantee.clear()

    @property
    def _closed(self) -> bool:
        return self.blocked == EVERY_BIT

    def close(self) -> None:
        """Stop serving the applications below (Stopped)."""
        self.block(EVERY_BIT)

    def open(self) -> None:
        """Serve the applications below again; shapes without quota are determined afresh."""
        self.short_of.clear()
        self.short_bits = 0
        self.unblock(EVERY_BIT)

    def admits(self) -> bool:
        """Whether maxapplications of this queue alone admits one more application."""
        limit = self.max_applications
        return not limit or self.running + len(self.admitted) + 1 <= limit

    # -- order ---------------------------------------------------------------------------------

    def make_rank(self) -> Key:
        """Compute the rank from the priority and the 1.6+ fair share (5.4).

        Rounded quotients keep the order of the exact ones, but close quotients may round to the same
        value; ``first_of`` compares queues of equal rank by the exact ``share``.
        """
        share, most, of = 0.0, 0, 1
        allocated = self.allocated
        whole: Any  # compiled code would round the quotient of two typed integers twice
        for index, whole in self._denominators or self._compute_denominators():
            used = allocated[index]
            this: float = used / whole
            if this > share or (this == share and used * of > most * whole):
                share, most, of = this, used, whole
        for index in self._zero_types:
            if allocated[index] > 0 and most < of:
                share, most, of = 1.0, 1, 1
        self.share = most, of
        parent = self.parent
        sorts = parent is None or parent.properties.sort_priority
        rank: Key = (self.urgency, share) if sorts else (share, self.urgency)
        self.rank = rank
        return rank

    def _compute_denominators(self) -> tuple[tuple[int, int], ...]:
        """Compute the denominator of the share for each type: the guarantee, else the nearest max of
        the lineage. A type with a denominator of zero counts as fully used."""
        if self._denominators is None:
            # a type that no node has is no part of root's max
            amounts = {at: amount for at, amount in enumerate(self.partition.capacity) if amount}
            for queue in reversed(self.lineage[:-1]):
                amounts.update(queue.limits)
            amounts.update(self.guaranteed_by_type)
            known = sorted(amounts.items())
            self._denominators = tuple([(at, amount) for at, amount in known if amount > 0])
            self._zero_types = tuple([at for at, amount in known if amount <= 0])
        return self._denominators

    def touch(self) -> None:
        self.rank = None
        parent = self.parent
        if parent is not None and parent.few is None:
            parent.rerank(self, self.demand)

    def untie(self) -> None:
        """Its share or what is pending has changed: it may no longer be tied as it was."""
        for ranking in list(self.tied):
            ranking.add(self)

    def capacity_changed(self) -> None:
        """A quota changed, or the capacity did of which it is a part: compute its share again."""
        self.forget_share()
        self.touch()
        if self.partition.quota_changes is not None:
            self.partition.quota_changes.queues[self] = None

    def forget_share(self) -> None:
        """Compute the denominators of the share, and the rank, when they are next read."""
        self.capacity_epoch = self.partition.capacity_epoch
        self._denominators = None
        self.rank = None

    def renew_shares(self) -> None:
        """The capacity of the nodes changed: forget the shares of the queues below with demand. Others are
        looked at when they announce some."""
        few = self.few
        if few is None:
            few = dict.fromkeys(child for each in self.waiting.values() for child in each)
        for child in few:
            child.forget_share()
            child.touch()
            child.renew_shares()

    def report_priority(self, old: int | None, new: int | None) -> None:
        """Count the changed priority of a child; ``None`` means that it has no pending ask (5.4)."""
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
        """The priority reported to the parent; ``None`` without a pending ask (5.4)."""
        if self.priority is None:
            return None
        offset = self.properties.priority_offset
        if self.properties.priority_policy == "fence":
            return offset
        return max(_LOWEST, min(_HIGHEST, offset + self.priority))


class ParentQueue(Queue):
    """A queue with queues as children, always in fair order."""

    __slots__ = ("_gathered", "_log", "_slots", "_trees")

    def __init__(self, partition: Partition, parent: Queue | None, name: str) -> None:
        super().__init__(partition, parent, name)
        #: the names of the children, numbered in order
        self._slots: dict[str, int] = {}
        #: what finds the first of many tied children, and those that have joined or left since
        self._log: list[Queue] = []
        self._trees: dict[tuple[Tied, ...], FirstOfTied] = {}
        #: the children that wait for some of many bits
        self._gathered = Gathered(self._log)

    def best(self, feasible: int) -> Any:
        """The best child, see ``Level``; equal shares are decided by more pending, then by name."""
        demand = self.demand & feasible
        if not demand:
            return None
        few = self.few
        if few is not None:
            return first_of([child for child in few if child.demand & demand])
        ranking: Siblings | None = None
        if not demand & (demand - 1):
            ranking = self.waiting[demand]
        elif demand.bit_count() > MAX_COMPARED and self._gathered.gather(demand, self.waiting):
            ranking = self._gathered
        if ranking is not None:
            best = ranking.best()
            return self._first_of((best,)) if isinstance(best, Tied) else best
        if demand.bit_count() >= len(self.children):
            return first_of([child for child in self.children.values() if child.demand & demand])
        found = [(self.waiting[bit].best(), bit) for bit in bits_of(demand)]
        rank = min([best.rank for best, _ in found])
        bests = dict.fromkeys([best for best, _ in found if best.rank == rank])
        if not any(isinstance(best, Tied) for best in bests):
            return first_of(list(bests))
        bits = [bit for best, bit in found if best.rank == rank]
        return self._first_of(tuple([self.waiting[bit].best(alone=False) for bit in bits]))

    def _first_of(self, groups: tuple[Tied, ...]) -> Queue:
        """The first child of these groups of equal rank."""
        if len(self._log) > _LONG or len(self._trees) > _MOST_TREES:
            self.forget_trees()
        tree = self._trees.get(groups)
        if tree is None:
            members = dict.fromkeys([child for group in groups for child in group.members])
            if len(members) <= _FEW_TIED:
                return first_of(list(members))  # type: ignore[no-any-return]
            if not self._slots:
                self._slots = {name: at for at, name in enumerate(sorted(self.children))}
            tree = self._trees[groups] = FirstOfTied(groups, self._slots)
        first: Queue = tree.first(self._log)
        return first

    def forget_trees(self) -> None:
        """Look at tied children anew."""
        self._trees.clear()
        self._log.clear()
        self._slots = {}

    def announce(self, child: Any, bits: int) -> None:
        if child.capacity_epoch != self.partition.capacity_epoch:
            child.forget_share()
            child.renew_shares()
        if self._slots and child.name not in self._slots:
            self.forget_trees()
        super().announce(child, bits)
        if bits & self._gathered.bits:
            if self.few is not None:  # it is not told which ranks change
                self._gathered.clear()
            elif child not in self._gathered:
                self._gathered.add(child)

    def withdraw(self, child: Any, bits: int) -> None:
        super().withdraw(child, bits)
        if bits & self._gathered.bits and not child.demand & self._gathered.bits:
            self._gathered.discard(child)

    def rerank(self, child: Any, bits: int) -> None:
        super().rerank(child, bits)
        if bits & self._gathered.bits:
            self._gathered.add(child)

    def new_ranking(self, bit: int) -> Siblings:
        return Siblings(self._log)

    def reorder(self) -> None:
        for child in self.children.values():
            child.tied.clear()
        self._gathered = Gathered(self._log)
        self.forget_trees()
        super().reorder()

    def rivals(self, feasible: int) -> list[Queue] | None:
        """The children between which ``best`` decides while no demand changes; ``None`` if the caller
        should call ``best`` each time instead."""
        demand = self.demand & feasible
        return [child for child in self.few if child.demand & demand] if self.few else None


def goes_before(one: Queue, other: Queue) -> bool:
    """Whether a queue comes before another child of its parent (5.4)."""
    for queue in (one, other):
        if queue.capacity_epoch != queue.partition.capacity_epoch:  # it had no demand
            queue.forget_share()
    return first_of([one, other]) is one


class Lane(Level):
    """Applications of a leaf that are blocked and unblocked together, in order."""

    __slots__ = ()


class LeafQueue(Queue):
    """A queue with applications as children, in two lanes.

    Its attributes are those of ``Queue``, more than 25 for the same reason, and its lanes. ``serving``
    holds applications that run or need no slot, ``admission`` those that need a slot under
    maxapplications; the latter is closed while this queue or one above has no free slot. ``limited``
    is empty, or has lanes for the applications under limits of users or groups.
    """

    __slots__ = ("admission", "apps", "entered", "limited", "serving", "turn", "turn_order")

    leaf = True

    def __init__(self, partition: Partition, parent: Queue | None, name: str) -> None:
        super().__init__(partition, parent, name)
        # applications by id, and the lanes that order them
        self.apps: dict[str, Application] = {}
        self.serving = Lane()
        self.admission = Lane()
        for lane in (self.serving, self.admission):
            lane.above = self
        self.limited: tuple[Level, ...] = ()
        #: with the stateaware policy, the one application that may start next (2.9)
        self.turn: Application | None = None
        #: those that had a claim to the turn when they last changed, by their places (whether it is not Starting,
        #: number), and a heap of the places; ``None`` before all applications are looked at once (D360)
        self.entered: dict[tuple[bool, int], Application] = {}
        self.turn_order: list[tuple[bool, int]] | None = None

    def configure(self, config: QueueConfig) -> None:
        super().configure(config)
        self.entered, self.turn_order = {}, None
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
        """The applications with demand for these bits in order, regardless of blocked lanes; ``None``
        if they are too many, and the caller should call ``best`` each time instead."""
        if len(self.apps) > _MAX_CONTENDERS:
            return None
        waiting = [app for app in self.apps.values() if app.demand & feasible]
        return sorted([(app.rank or app.make_rank(), app) for app in waiting])

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
        """The headroom under all quotas of the lineage, by type; types without a quota are absent.

        The max of root is the capacity of the nodes; without root the result is the maximal headroom
        (5.3).
        """
        room: dict[int, int] = {}
        for queue in self.lineage if with_root else self.lineage[:-1]:
            for index, limit in queue.limits:
                left = limit - queue.allocated[index]
                room[index] = min(left, room.get(index, left))
        return room
