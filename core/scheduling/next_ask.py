"""The walk down the queue tree to the next ask, and the checks of quota and nodes (5.3, 5.6).

The walk takes the best child with feasible demand at each level (see ``ordering.ranking``), so it ends
at the ask that a full sort of queues, applications and asks would put first. An obstacle found there is
recorded at the queue or application that caused it, and the next walk avoids it.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from quadriga.core.runtime.remote_predicates import first_allowed, look_ahead
from quadriga.si.remote_predicates import ANSWER_PENDING

if TYPE_CHECKING:
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask, AskGroup
    from quadriga.core.model.node import Node
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.queue import Queue
    from quadriga.core.model.shapes import Shape
    from quadriga.core.runtime.kernel import Kernel

__all__ = ["descend", "node_for", "out_of_quota"]


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
    shape = ask.group.shape
    best = partition.node_index.best(shape)
    predicate = kernel.predicates.get(partition.rm.rm_id)
    if predicate is None or best is None:
        return best
    refused: dict[str, int] = {}
    nodes = partition.node_index.in_order(shape)
    allowed = first_allowed(predicate, ask, nodes)
    if allowed is not None:
        return allowed
    for index, node in enumerate(nodes):
        reason = predicate(ask.ask_key, node.node_id, True)
        if reason is None:
            return node
        if reason is ANSWER_PENDING:
            look_ahead(predicate, ask, islice(nodes, index + 1, None))
            return None
        refused[reason] = refused.get(reason, 0) + 1
    partition.rm.observer.predicates_refused(ask, refused)
    return None
