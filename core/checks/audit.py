"""The invariants (6.1) after every step, in time proportional to what the step changed.

``invariants.violations`` checks everything. The audit's kernel notes the entities at which triggers are
fired; after the step only these are checked, by the same rules. What each of them contributes to the
queues above, to its users and to the partition is kept in sums of the audit's own, which must equal the
scheduler's totals. If they do not, everything is checked: either this names the violation, or something
changed without a trigger, and the audit builds its sums again. Everything is also checked at intervals
and at the end, so that no violation stays hidden. See D122.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from quadriga.core.checks import invariants
from quadriga.core.model.allocation import Allocation
from quadriga.core.model.application import Application
from quadriga.core.model.ask import Ask
from quadriga.core.model.node import Node
from quadriga.core.model.queue import LeafQueue, Queue
from quadriga.core.resources.demand import bits_of
from quadriga.core.resources.vectors import Totals, Vector
from quadriga.core.runtime.kernel import Kernel, Options
from quadriga.fsm import Lifecycle
from quadriga.fsm.firing import Step
from quadriga.fsm.lifecycles import allocation as allocation_fsm
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.fsm.table import Info

if TYPE_CHECKING:
    from quadriga.core.model.account import Ledger
    from quadriga.core.model.partition import Partition


class AuditedKernel(Kernel):
    """A kernel that notes the entities at which triggers are fired."""

    __slots__ = ("touched",)

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.touched: dict[Any, None] = {}

    def _take(self, lifecycle: Lifecycle, entity: Any, trigger: str, info: Info) -> Step | None:
        """Called for every trigger, fired alone or in a batch (``fire_all``)."""
        self.touched[entity] = None
        return super()._take(lifecycle, entity, trigger, info)


class Audit:
    """Call ``step`` after every step and ``full`` at the end; both return the violations as texts.

    ``every`` is the number of steps from one full check to the next. ``walks`` counts full checks,
    ``doubts`` those that were made because sums differed.
    """

    def __init__(self, kernel: AuditedKernel, every: int) -> None:
        self._kernel = kernel
        self._every = every
        self._left = every
        self._sums: dict[Partition, _Sums] = {}
        self.walks = 0
        self.doubts = 0

    def step(self, partitions: Iterable[Partition]) -> list[str]:
        """The invariants that do not hold after this step."""
        present = list(partitions)
        self._left -= 1
        if self._left <= 0:
            return self.full(present)
        touched = _touched(self._kernel)
        found: list[str] = []
        for partition in present:
            sums = self._sums.get(partition)
            if sums is None:  # new, or reported again by its resource manager (I7)
                found += self._walk(partition)
                continue
            apps, nodes = touched.get(partition, ({}, {}))
            wrong = [f"{partition.key}: {text}" for text in sums.check(apps, nodes)]
            if wrong or sums.doubtful:
                self.doubts += 1
                found += wrong + [text for text in self._walk(partition) if text not in wrong]
        if len(self._sums) != len(present):
            self._sums = {p: self._sums[p] for p in present}
        return found

    def full(self, partitions: Iterable[Partition]) -> list[str]:
        """The invariants that do not hold, after a check of everything."""
        self._left = self._every
        self._kernel.touched.clear()
        self._sums = {}
        return [text for partition in partitions for text in self._walk(partition)]

    def _walk(self, partition: Partition) -> list[str]:
        self.walks += 1
        self._sums[partition] = _Sums(partition)
        return invariants.violations(partition)


Touched = tuple[dict[Application, None], dict[Node, None]]


def _touched(kernel: AuditedKernel) -> dict[Partition, Touched]:
    """The applications and nodes that the step may have changed, by partition."""
    found: dict[Partition, Touched] = {}
    for entity in kernel.touched:
        app: Application | None = None
        nodes: tuple[Node, ...] = ()
        if isinstance(entity, Allocation):
            app, nodes = entity.ask.app, (entity.node,)
            if entity.partner is not None:
                nodes = (entity.node, entity.partner.node)
        elif isinstance(entity, Ask):
            app = entity.app
        elif isinstance(entity, Application):
            app = entity
        elif isinstance(entity, Node):
            nodes = (entity,)
        else:
            continue
        partition = app.partition if app is not None else nodes[0].partition
        apps_of, nodes_of = found.setdefault(partition, ({}, {}))
        if app is not None:
            apps_of[app] = None
        nodes_of.update(dict.fromkeys(nodes))
    kernel.touched.clear()
    return found


# -- what one entity contributes -------------------------------------------------------------------


class _OfApplication(NamedTuple):
    allocated: Vector
    pending: Vector
    reserved_headroom: Vector
    preempting: Vector
    running: int
    ledgers: tuple[Ledger, ...]
    counted: int
    lane: Any
    demand: int


class _OfNode(NamedTuple):
    total: Vector
    allocated: Vector
    planned: Vector


_NO_APPLICATION = _OfApplication((), (), (), (), 0, (), 0, None, 0)
_NO_NODE = _OfNode((), (), ())


def _of_application(app: Application) -> _OfApplication:
    # its own amounts have just been compared with its allocations and asks
    held = (*app.allocations.values(), *app.placeholders.values())
    going = [each.vector for each in held if each.reason == allocation_fsm.PREEMPTION]
    return _OfApplication(
        tuple(map(int.__add__, app.allocated, app.allocated_placeholder)),
        tuple(app.pending),
        tuple(app.reserved_headroom),
        _total(going),
        int(app.state in application_fsm.COUNTED),
        app.ledgers,
        int(app.counted),
        app.above,
        app.demand,
    )


def _of_node(node: Node) -> _OfNode:
    planned = [a.planned_more for a in node.allocations if a.state in allocation_fsm.AHEAD]
    without_units = node.partition.registry.without_units
    allocated, replacing = without_units(node.allocated), without_units(_total(planned))
    return _OfNode(tuple(node.total), tuple(allocated), tuple(replacing))


def _total(vectors: Iterable[Vector]) -> Vector:
    total: Totals = []
    for vector in vectors:
        total = _sum(total, vector)
    return tuple(total)


def _sum(totals: Vector | Totals, vector: Vector) -> Totals:
    total = list(totals) + [0] * (len(vector) - len(totals))
    for index, value in enumerate(vector):
        total[index] += value
    return total


def _shift(totals: Totals, old: Vector, new: Vector) -> None:
    """Subtract ``old`` and add ``new``; the list grows if necessary."""
    size = max(len(old), len(new))
    if len(totals) < size:
        totals.extend([0] * (size - len(totals)))
    for index, value in enumerate(old):
        totals[index] -= value
    for index, value in enumerate(new):
        totals[index] += value


def _same(mine: Totals, totals: Totals) -> bool:
    """Whether two amounts are equal; ``mine`` may be shorter, with zeros left out."""
    return mine == totals or mine + [0] * (len(totals) - len(mine)) == totals


# -- totals ----------------------------------------------------------------------------------------


class _OfQueue:
    __slots__ = ("allocated", "pending", "preempting", "reserved_headroom", "running")

    def __init__(self) -> None:
        self.allocated: Totals = []
        self.pending: Totals = []
        self.reserved_headroom: Totals = []
        self.preempting: Totals = []
        self.running = 0


class _OfLedger:
    __slots__ = ("bound", "running", "usage")

    def __init__(self) -> None:
        self.usage: Totals = []
        self.running = 0
        self.bound = 0


class _OfLane:
    """The number of applications in a lane that offer each bit, and the bits that any of them offers."""

    __slots__ = ("counts", "demand_below")

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.demand_below = 0

    def shift(self, old: int, new: int) -> None:
        counts = self.counts
        for bit in bits_of(old & ~new):
            counts[bit] = counts.get(bit, 0) - 1
            if not counts[bit]:
                self.demand_below &= ~bit
        for bit in bits_of(new & ~old):
            counts[bit] = counts.get(bit, 0) + 1
            self.demand_below |= bit


class _Sums:
    """The audit's own sums of one partition."""

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        #: its sums and the scheduler's totals differ, or seem to
        self.doubtful = False
        self._apps: dict[Application, _OfApplication] = {}
        self._nodes: dict[Node, _OfNode] = {}
        self._queues: dict[Queue, _OfQueue] = {}
        self._holders: dict[Ledger, _OfLedger] = {}
        self._lanes: dict[Any, _OfLane] = {}
        self._capacity: Totals = []
        self._on_nodes: Totals = []
        self._planned: Totals = []
        for app in partition.applications.values():
            self._take_application(app, _of_application(app))
        for node in partition.nodes.values():
            self._take_node(node, _of_node(node))

    def check(self, apps: Iterable[Application], nodes: Iterable[Node]) -> Iterator[str]:
        """The violations at these entities. Sets ``doubtful`` if totals differ."""
        partition = self.partition
        size = len(partition.registry)
        queues: dict[Queue, None] = {}
        lanes: dict[Any, Queue] = {}
        ledgers: dict[Ledger, None] = {}
        for app in apps:
            queues.update(dict.fromkeys(app.queue.lineage))
            ledgers.update(dict.fromkeys(app.ledgers))
            lanes[app.above] = app.queue
            if partition.applications.get(app.app_id) is app:
                yield from invariants.application_violations(app, size)
                yield from invariants.waiting_violations(app)
                self._take_application(app, _of_application(app))
            else:
                if app.state in application_fsm.ENDED:
                    yield from invariants.ended_violations(app)
                self._take_application(app, _NO_APPLICATION)
        for ledger in ledgers:
            yield from invariants.ledger_violations(ledger)
        for node in nodes:
            if partition.nodes.get(node.node_id) is node:
                yield from invariants.node_violations(node, size)
                self._take_node(node, _of_node(node))
            else:
                self._take_node(node, _NO_NODE)
        self.doubtful = not (
            all(map(self._agrees_on_queue, queues))
            and all(self._agrees_on_lane(lane, leaf) for lane, leaf in lanes.items())
            and all(map(self._agrees_on_ledger, ledgers))
            and self._agrees_on_nodes()
        )

    # -- entities ---------------------------------------------------------------------------------

    def _take_application(self, app: Application, new: _OfApplication) -> None:
        old = self._apps.get(app, _NO_APPLICATION)
        if new == old:
            return
        above = [self._queue(queue) for queue in app.queue.lineage]
        if old.allocated != new.allocated:
            for mine in above:
                _shift(mine.allocated, old.allocated, new.allocated)
        if old.pending != new.pending:
            for mine in above:
                _shift(mine.pending, old.pending, new.pending)
        if old.reserved_headroom != new.reserved_headroom:
            for mine in above:
                _shift(mine.reserved_headroom, old.reserved_headroom, new.reserved_headroom)
        if old.preempting != new.preempting:
            for mine in above:
                _shift(mine.preempting, old.preempting, new.preempting)
        for mine in above:
            mine.running += new.running - old.running
        for ledger in dict.fromkeys((*old.ledgers, *new.ledgers)):
            self._write_ledger(ledger, old, new)
        if old.lane is new.lane:
            self._lane(new.lane).shift(old.demand, new.demand)
        else:
            self._lane(old.lane).shift(old.demand, 0)
            self._lane(new.lane).shift(0, new.demand)
        if new is _NO_APPLICATION:
            del self._apps[app]
        else:
            self._apps[app] = new

    def _write_ledger(self, ledger: Ledger, old: _OfApplication, new: _OfApplication) -> None:
        before, after = ledger in old.ledgers, ledger in new.ledgers
        mine = self._holders.setdefault(ledger, _OfLedger())
        _shift(mine.usage, old.allocated if before else (), new.allocated if after else ())
        mine.running += new.counted * after - old.counted * before
        mine.bound += after - before
        if not mine.bound:
            del self._holders[ledger]

    def _queue(self, queue: Queue) -> _OfQueue:
        found = self._queues.get(queue)
        if found is None:
            found = self._queues[queue] = _OfQueue()
        return found

    def _lane(self, lane: Any) -> _OfLane:
        found = self._lanes.get(lane)
        if found is None:
            found = self._lanes[lane] = _OfLane()
        return found

    def _take_node(self, node: Node, new: _OfNode) -> None:
        old = self._nodes.get(node, _NO_NODE)
        if new == old:
            return
        _shift(self._capacity, old.total, new.total)
        _shift(self._on_nodes, old.allocated, new.allocated)
        _shift(self._planned, old.planned, new.planned)
        if new is _NO_NODE:
            del self._nodes[node]
        else:
            self._nodes[node] = new

    # -- totals -----------------------------------------------------------------------------------

    def _agrees_on_queue(self, queue: Queue) -> bool:
        mine = self._queue(queue)
        if not (
            _same(mine.allocated, queue.allocated)
            and _same(mine.pending, queue.pending)
            and _same(mine.reserved_headroom, queue.reserved_headroom)
            and _same(mine.preempting, queue.preempting)
            and mine.running == queue.running
        ):
            return False
        demand = 0
        if isinstance(queue, LeafQueue):
            below: Iterable[Any] = queue.lanes
            demand = queue.partition.waiting.retries.demand_of(queue)
        else:
            below = queue.children.values()
        for level in below:
            demand |= level.demand
        return queue.demand_below == demand

    def _agrees_on_lane(self, lane: Any, leaf: Any) -> bool:
        """The demand of applications may have changed without a trigger: then it is summed up again."""
        if lane is None:
            return True
        mine = self._lane(lane)
        if mine.demand_below != lane.demand_below:
            for app in leaf.apps.values():
                known = self._apps.get(app)
                if known is not None:
                    self._take_application(app, known._replace(lane=app.above, demand=app.demand))
        if mine.demand_below != lane.demand_below:
            return False
        while lane.above is not leaf:  # with limits there are sets of lanes above it
            if any(invariants.lane_violations(leaf, lane)):
                return False
            lane = lane.above
            demand = 0
            for child in lane.lanes.values():
                demand |= child.demand
            if lane.demand_below != demand:
                return False
        return True

    def _agrees_on_ledger(self, ledger: Ledger) -> bool:
        mine = self._holders.get(ledger) or _OfLedger()
        return (
            _same(mine.usage, ledger.usage)
            and mine.running == len(ledger.running)
            and mine.bound <= ledger.bound  # an application without asks has had no trigger yet
        )

    def _agrees_on_nodes(self) -> bool:
        partition = self.partition
        held = _sum(self._planned, tuple(partition.root.allocated))
        for each in partition.waiting.stranded:
            held = _sum(held, tuple([-value for value in each.vector]))
        size = len(held)
        self._on_nodes.extend([0] * (size - len(self._on_nodes)))
        return held == self._on_nodes and _same(self._capacity, partition.capacity)
