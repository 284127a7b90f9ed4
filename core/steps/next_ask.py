"""The walk down the queue tree to the next ask, and the checks of quota and nodes (5.3, 5.6).

The walk takes the best child with feasible demand at each level (see ``ordering.ranking``), so it ends
at the ask that a full sort of queues, applications and asks would put first. An obstacle found there is
recorded at the queue or application that caused it, and the next walk avoids it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from quadriga.core.model.queue import LeafQueue
from quadriga.core.resources.demand import bits_of
from quadriga.core.resources.shapes import START_GANG
from quadriga.core.resources.vectors import left_of
from quadriga.core.runtime.remote_predicates import first_allowed, look_ahead
from quadriga.core.steps.refused import first_not_refused, known_refusals
from quadriga.core.topology.members import predicate_of, preferring
from quadriga.si.predicates import ANSWER_PENDING

if TYPE_CHECKING:
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask, AskGroup
    from quadriga.core.model.node import Node, NodeOrder
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.queue import Queue
    from quadriga.core.resources.demand import Key
    from quadriga.core.resources.shapes import Shape
    from quadriga.core.runtime.kernel import Kernel


def descend(partition: Partition, feasible: int) -> tuple[Application, AskGroup, int] | None:
    """Return the application and group whose ask is next, and the feasible demand that is not blocked."""
    level: Any = partition.root
    feasible &= level.demand
    if not feasible:
        return None
    while not level.is_application:
        feasible &= ~level.blocked  # demand that a quota blocks here is blocked below as well
        level = level.best(feasible)
    if level.limiting and level.above is not None:
        feasible &= ~level.above.stops()
    group: AskGroup = level.best(feasible)
    return level, group, feasible


class NextInLane:
    """What ``descend`` would return next, while nothing changes but the feasible demand, which shrinks.

    In a long backlog many asks in a row fit no node any more. Each of them only makes its own demand
    infeasible, so the applications of the lane are put in order once instead of being compared for each.
    Asks that are known to fit no node, and that nothing else stops, are passed over.
    """

    __slots__ = ("_at", "_entries", "_node_index", "_passed", "_without_room")

    def __init__(
        self,
        node_index: NodeOrder,
        entries: list[tuple[Key, int, Application]],
        passed: int,
        without_room: int,
    ) -> None:
        self._node_index = node_index
        #: for each bit of demand the first application, in order: rank, bit, application
        self._entries = entries
        self._at = 0
        #: the demand that no queue above the lane blocks
        self._passed = passed
        #: demand for nodes that quotas have room for and no node
        self._without_room = without_room

    def next(self, feasible: int) -> tuple[Application, AskGroup, int] | None:
        """The application and group whose ask is next, as in ``descend``; ``None`` after the last one."""
        feasible &= self._passed
        entries, at, without_room = self._entries, self._at, self._without_room
        while at < len(entries):
            if not entries[at][1] & feasible:
                at += 1
                continue
            app = entries[at][2]
            group: AskGroup = app.best(feasible)
            wanted = group.demand & feasible
            searched = wanted & group.shape.allocate & without_room
            if not searched or wanted & START_GANG or app.limiting or group.kind.placeholder:
                self._at = at
                return app, group, feasible
            self._node_index.lacks(group.shape)
            feasible &= ~searched
        self._at = at
        return None


def rest_of_lane(partition: Partition, app: Application, feasible: int) -> NextInLane | None:
    """The applications after ``app``, for whose ask no node was found just now.

    ``None`` where they are few, or where a smaller demand might lead to another leaf or lane first.
    """
    lane, leaf, node_index = app.above, app.queue, partition.node_index
    if lane is None or lane.few is not None or not isinstance(leaf, LeafQueue) or leaf.limited:
        return None
    passed = partition.root.demand
    for queue in leaf.lineage:
        passed &= ~queue.blocked
        if queue.parent is not None and not _is_first(queue, feasible):
            return None
    feasible &= passed
    if any(other is not lane and other.demand & feasible for other in leaf.lanes):
        return None
    entries = []
    for bit in bits_of(lane.demand & feasible):
        first: Application = lane.waiting[bit].first()
        entries.append((first.rank or first.make_rank(), bit, first))
    entries.sort()
    without_room = node_index.full()
    for queue in leaf.lineage:
        if queue.limits:
            without_room &= node_index.within(left_of(queue.limits, queue.allocated))
    return NextInLane(node_index, entries, passed, without_room)


def _is_first(queue: Queue, feasible: int) -> bool:
    """Whether the queue precedes all its siblings with demand by its rank alone."""
    parent = queue.parent
    if parent is None or parent.few is None:
        return False
    rank = queue.rank or queue.make_rank()
    for other in parent.few:
        if other is not queue and other.demand & feasible:
            if (other.rank or other.make_rank()) <= rank:
                return False
    return True


def out_of_quota(app: Application, shape: Shape) -> Queue | None:
    """Return the lowest queue above the application whose quota has no room for the shape."""
    for queue in app.queue.lineage:
        if queue.limits and not queue.has_room(shape):
            return queue
    return None


def node_for(kernel: Kernel, partition: Partition, ask: Ask) -> Node | None:
    """Return the first node in order that fits and that the resource manager's predicates accept.

    If no node fits, the shape is no longer feasible in the node index.
    """
    assert ask.group is not None
    shape, node_index = ask.group.shape, partition.node_index
    best = node_index.best(shape)
    predicate = kernel.predicates.get(partition.rm.rm_id)
    if shape.locality is not None and best is not None:
        predicate = predicate_of(kernel, ask)
        for strict in preferring(kernel, ask):
            known = strict.refused_nodes(ask.ask_key, node_index.node_ids())
            found, _ = first_not_refused(strict, ask, shape, node_index, known)
            if found is not None:
                return found
    if predicate is None or best is None:
        return best
    allowed = first_allowed(predicate, ask, _in_order(node_index, shape))
    if allowed is not None:
        return allowed
    # Most often the first node is accepted. Only if it is not the others are looked at.
    said_of_best = predicate(ask.ask_key, best.node_id, True)
    if said_of_best is None:
        return best
    refusals = known_refusals(predicate, ask, node_index)
    if refusals is not None:
        found, refused = first_not_refused(predicate, ask, shape, node_index, refusals)
        if found is None:
            partition.rm.observer.predicates_refused(ask, refused)
        return found
    refused = {}
    nodes = node_index.in_order(shape)
    for index, node in enumerate(nodes):
        reason = said_of_best if node is best else predicate(ask.ask_key, node.node_id, True)
        if reason is None:
            return node
        if reason is ANSWER_PENDING:
            look_ahead(predicate, ask, islice(nodes, index + 1, None))
            return None
        refused[reason] = refused.get(reason, 0) + 1
    partition.rm.observer.predicates_refused(ask, refused)
    return None


def _in_order(node_index: NodeOrder, shape: Shape) -> Iterator[Node]:
    """The nodes are put in order when the first of them is wanted."""
    yield from node_index.in_order(shape)
