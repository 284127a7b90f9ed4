"""A node: what it has, what runs there."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from quadriga.core.model.resources import Totals, Vector
from quadriga.fsm import node as node_fsm

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.foreign import ForeignAllocation
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.reservation import Reservation

__all__ = ["Node"]


class Node:
    """``available = total - occupied - allocated``, kept as a book of its own (V2).

    ``open`` follows the lifecycle's effects; ``position``, ``score`` and what it is made of belong to
    the node node_index.
    ``allocations`` includes real allocations that wait for a placeholder elsewhere (V3). ``occupied``
    is ``anonymous``, which the node reports as a sum, and every allocation in ``foreign`` (X19).
    """

    __slots__ = (
        "allocated",
        "allocations",
        "also_reserved",
        "anonymous",
        "attributes",
        "available",
        "entries",
        "foreign",
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
        self.occupied: Totals = [0] * len(total)
        self.anonymous: Vector = ()
        #: by allocation key
        self.foreign: dict[str, ForeignAllocation] = {}
        self.allocated: Totals = [0] * len(total)
        self.available: Totals = list(total)
        self.allocations: dict[Allocation, None] = {}
        self.reservation: Reservation | None = None
        #: of asks that require this node, as the first one does, and wait for it as well (2.7)
        self.also_reserved: dict[Reservation, None] = {}
        self.open = False
        #: when it entered its state (ns)
        self.since = 0
        self.position = -1
        self.score = inf
        #: (type, weight, total) for each type that counts, and the sum of the weights
        self.weighed: tuple[tuple[int, float, int], ...] = ()
        self.weight = 0.0

    @property
    def key(self) -> str:
        return self.node_id

    @property
    def gone(self) -> bool:
        """Whether it has left its partition, or is about to with all that runs on it."""
        return self.state in node_fsm.GONE

    @property
    def free(self) -> bool:
        """Whether it takes new allocations of anybody: open and not reserved (2.7)."""
        return self.open and self.reservation is None

    @property
    def totals(self) -> tuple[Totals, ...]:
        return self.total, self.occupied, self.allocated, self.available
