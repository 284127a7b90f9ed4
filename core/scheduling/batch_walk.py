"""The walk down the queue tree in a batch.

Where the walk divides, and between which queues, stays the same from one decision of a batch to the
next. So it is looked up once for each parent queue; only the order of the candidates is compared anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.core.model.queue import ParentQueue
from quadriga.core.resources.tied import first_of

if TYPE_CHECKING:
    from quadriga.core.model.queue import Queue

#: by parent queue: the demand below it that no quota blocks, and the children that have it. ``None``
#: where there are too many children to list them
Forks = dict["Queue", tuple[int, "list[Queue] | None"]]


def next_leaf(forks: Forks, root: Queue, feasible: int) -> tuple[Queue, int]:
    """The leaf that is next in order, and the demand there that no queue above it blocks."""
    queue = root
    demand = feasible
    while not queue.leaf:
        demand, candidates = forks.get(queue) or _fork(forks, queue, feasible)
        queue = first_of(candidates) if candidates is not None else queue.best(demand)
    return queue, demand


def _fork(forks: Forks, queue: Queue, feasible: int) -> tuple[int, list[Queue] | None]:
    """Look up and remember between which children the walk chooses at this queue."""
    assert isinstance(queue, ParentQueue)
    for above in queue.lineage:
        feasible &= ~above.blocked
    fork = forks[queue] = feasible, queue.rivals(feasible)
    return fork
