"""A node: its capacity, its allocations, and what others use of it (X19)."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from quadriga.core.resources.vectors import Totals, Vector
from quadriga.fsm.lifecycles import node as node_fsm

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.reservation import Reservation

__all__ = ["ForeignAllocation", "Node"]


class ForeignAllocation:
    """Amounts (``vector``) of ``node`` under a key that is unique in the partition.

    A foreign allocation has no ask, no application and no lifecycle. It occupies the node until its
    removal is reported. ``created`` is an instant (ns), by the tag ``creationTime`` if present.
    ``preemptable`` is false for static ones, which belong to the node itself.
    """

    __slots__ = (
        "allocation_key",
        "created",
        "node",
        "preemptable",
        "priority",
        "tags",
        "vector",
    )

    def __init__(
        self,
        allocation_key: str,
        node: Node,
        vector: Vector,
        *,
        tags: dict[str, str],
        priority: int = 0,
        created: int = 0,
        preemptable: bool = True,
    ) -> None:
        self.allocation_key = allocation_key
        self.node = node
        self.vector = vector
        self.tags = tags
        self.priority = priority
        self.created = created
        self.preemptable = preemptable


class Node:
    """A node as data. All totals are by type; ``available = total - occupied - allocated`` (V2)."""

    __slots__ = (
        "allocated",
        "allocations",
        "also_reserved",
        "anonymous",
        "attributes",
        "available",
        "barred",
        "entries",
        "foreign",
        "laid",
        "node_id",
        "occupied",
        "open",
        "partition",
        "position",
        "reservation",
        "score",
        "since",
        "state",
        "total",
        "weighed",
        "weight",
    )

    def __init__(
        self, node_id: str, partition: Partition, attributes: dict[str, str], total: Totals
    ) -> None:
        self.node_id = node_id
        self.partition = partition
        self.attributes = attributes
        self.state: node_fsm.State = node_fsm.NEW
        self.entries = 0
        self.total = total
        #: used outside this scheduler: ``anonymous`` and every allocation in ``foreign`` (X19)
        self.occupied: Totals = [0] * len(total)
        #: the part that the resource manager reports only as a sum
        self.anonymous: Vector = ()
        #: foreign allocations by key
        self.foreign: dict[str, ForeignAllocation] = {}
        self.allocated: Totals = [0] * len(total)
        self.available: Totals = list(total)
        #: includes real allocations that wait for a placeholder on another node (V3)
        self.allocations: dict[Allocation, None] = {}
        self.reservation: Reservation | None = None
        #: further reservations, of asks that require this node as the first one does (2.7)
        self.also_reserved: dict[Reservation, None] = {}
        #: a reservation of it was given up, and it is not reserved again for a time (Q7)
        self.barred = False
        #: takes new allocations; set by effects of the lifecycle
        self.open = False
        #: instant at which it entered its state (ns)
        self.since = 0
        # attributes of the node index
        #: ``position`` is that in the layout of this number
        self.laid = self.position = -1
        self.score = inf
        #: (type, weight, capacity) for each type with a weight, and the sum of the weights. The policy
        #: says whether the capacity is that of this node or of the largest one
        self.weighed: tuple[tuple[int, float, int], ...] = ()
        self.weight = 0.0

    @property
    def key(self) -> str:
        return self.node_id

    @property
    def gone(self) -> bool:
        """Whether it has left its partition or is being removed with its allocations."""
        return self.state in node_fsm.GONE

    @property
    def free(self) -> bool:
        """Whether it takes new allocations of any ask: it is open and not reserved (2.7)."""
        return self.open and self.reservation is None

    @property
    def totals(self) -> tuple[Totals, ...]:
        return self.total, self.occupied, self.allocated, self.available
