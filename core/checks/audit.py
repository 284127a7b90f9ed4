"""The invariants (V1 to V9) after every step, in time that follows what the step did.

``invariants.violations`` walks everything. Here a kernel notes the entities at which triggers are
fired, and after the step only they are looked at, just as closely: their books are counted from
their allocations and asks. What they contribute to the queues above, to their users and to the
partition is kept in books of the audit's own, which must agree with the running totals. Where they
do not, the full walk has the word: it names what is wrong, or, where something changed without a
trigger, finds all in order, and the audit starts its books anew from there. The full walk is also
made every so many steps and at the end, so that nothing stays out of sight.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from quadriga.core.checks import invariants
from quadriga.core.model.allocation import Allocation
from quadriga.core.model.application import Application
from quadriga.core.model.ask import Ask
from quadriga.core.model.demand import bits_of
from quadriga.core.model.node import Node
from quadriga.core.model.queue import LeafQueue, Queue
from quadriga.core.model.resources import Totals, Vector
from quadriga.core.runtime.kernel import Kernel, Options
from quadriga.fsm import Lifecycle
from quadriga.fsm import allocation as allocation_fsm
from quadriga.fsm import application as application_fsm
from quadriga.fsm.firing import Step
from quadriga.fsm.table import Info

if TYPE_CHECKING:
    from quadriga.core.model.account import Ledger
    from quadriga.core.model.partition import Partition

__all__ = ["Audit", "AuditedKernel"]


class AuditedKernel(Kernel):
    """Remembers where triggers were fired. Without an audit there is the plain kernel instead."""

    __slots__ = ("touched",)

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.touched: dict[Any, None] = {}

    def _take(self, lifecycle: Lifecycle, entity: Any, trigger: str, info: Info) -> Step | None:
        """Every trigger comes through here, one at a time or in a batch (``fire_all``)."""
        self.touched[entity] = None
        return super()._take(lifecycle, entity, trigger, info)


class Audit:
    """Call ``step`` after every step and ``full`` at the end; both return what is wrong, in words.

    ``every`` is the number of steps from one full walk to the next. ``walks`` counts full walks,
    ``doubts`` those that were made because books seemed to differ.
    """

    def __init__(self, kernel: AuditedKernel, every: int) -> None:
        self._kernel = kernel
        self._every = every
        self._left = every
        self._ledgers: dict[Partition, _Ledger] = {}
        self.walks = 0
        self.doubts = 0

    def step(self, partitions: Iterable[Partition]) -> list[str]:
        """The invariants that do not hold after this step."""
        present = list(partitions)
        self._left -= 1
        if self._left <= 0:
            return self.full(present)
        touched = _sort_out(self._kernel)
        found: list[str] = []
        for partition in present:
            ledger = self._ledgers.get(partition)
            if ledger is None:  # new, or what a resource manager reports anew (I7)
                found += self._walk(partition)
                continue
            apps, nodes = touched.get(partition, ({}, {}))
            wrong = [f"{partition.key}: {text}" for text in ledger.look(apps, nodes)]
            if wrong or ledger.doubtful:
                self.doubts += 1
                found += wrong + [text for text in self._walk(partition) if text not in wrong]
        if len(self._ledgers) != len(present):
            self._ledgers = {p: self._ledgers[p] for p in present}
        return found

    def full(self, partitions: Iterable[Partition]) -> list[str]:
        """The invariants that do not hold, everything looked at."""
        self._left = self._every
        self._kernel.touched.clear()
        self._ledgers = {}
        return [text for partition in partitions for text in self._walk(partition)]

    def _walk(self, partition: Partition) -> list[str]:
        self.walks += 1
        self._ledgers[partition] = _Ledger(partition)
        return invariants.violations(partition)


Touched = tuple[dict[Application, None], dict[Node, None]]


def _sort_out(kernel: AuditedKernel) -> dict[Partition, Touched]:
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
    # its own books have just been compared with its allocations and asks
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
    return _OfNode(tuple(node.total), tuple(node.allocated), _total(planned))


def _total(vectors: Iterable[Vector]) -> Vector:
    total: Totals = []
    for vector in vectors:
        total = _sum(total, vector)
    return tuple(total)


def _sum(book: Vector | Totals, vector: Vector) -> Totals:
    total = list(book) + [0] * (len(vector) - len(book))
    for place, value in enumerate(vector):
        total[place] += value
    return total


def _shift(book: Totals, old: Vector, new: Vector) -> None:
    """Take ``old`` out of the book and put ``new`` in; the book grows as it must."""
    size = max(len(old), len(new))
    if len(book) < size:
        book.extend([0] * (size - len(book)))
    for place, value in enumerate(old):
        book[place] -= value
    for place, value in enumerate(new):
        book[place] += value


def _same(mine: Totals, book: Totals) -> bool:
    """Whether two books say the same; mine may lack places for types nobody holds."""
    return mine == book or mine + [0] * (len(book) - len(mine)) == book


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
    """How many applications of a lane offer each bit, and the bits that any offers."""

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


class _Ledger:
    """The audit's own books of one partition."""

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        #: its totals and the running ones differ, or seem to
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

    def look(self, apps: Iterable[Application], nodes: Iterable[Node]) -> Iterator[str]:
        """What is wrong with these entities. Says in ``doubtful`` whether totals agree."""
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
        """Applications may have changed their minds without a trigger: count them anew then."""
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
        while lane.above is not leaf:  # limits have sets of lanes between it and the leaf
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
