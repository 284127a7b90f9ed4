"""A node: its capacity, its allocations, and what others use of it (X19).

``NodeOrder`` is the interface of the node index, which the accounting notifies of every change of a node.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

from quadriga.core.resources.units import NodeUnits
from quadriga.core.resources.vectors import Totals, Vector
from quadriga.fsm.lifecycles import node as node_fsm

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Hashable, Iterator

    import numpy.typing as npt

    from quadriga.core.config import PartitionConfig
    from quadriga.core.model.allocation import Allocation, Reservation
    from quadriga.core.model.application import Application
    from quadriga.core.model.gang import PlannedStart, RoomWanted
    from quadriga.core.model.partition import Partition
    from quadriga.core.resources.shapes import Shape, Shapes
    from quadriga.core.resources.vectors import Registry


@dataclass(slots=True, eq=False)
class ForeignAllocation:
    """Amounts (``vector``) of ``node`` under a key that is unique in the partition.

    A foreign allocation has no ask, no application and no lifecycle. It occupies the node until its
    removal is reported. ``created`` is an instant (ns), by the tag ``creationTime`` if present.
    ``preemptable`` is false for static ones, which belong to the node itself.
    """

    allocation_key: str
    node: Node
    vector: Vector
    tags: dict[str, str]
    priority: int = 0
    created: int = 0
    preemptable: bool = True


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
        "beside",
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
        "units",
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
        #: the units of shared devices that its allocations have (Q14); ``None`` without any unit
        self.units: NodeUnits | None = None
        #: for a node of the planned start: what it has for others beside the gang from then on, by type (Q9)
        self.beside: Totals | None = None
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
        """Whether it takes new allocations of any ask: it is open, not reserved (2.7), and not part of a planned
        start (Q9)."""
        return self.open and self.reservation is None and self.beside is None

    @property
    def for_all(self) -> Totals | None:
        """What it has free for any ask, however long it runs; ``None`` if it takes no new allocations."""
        if not self.open or self.reservation is not None:
            return None
        if self.beside is None:
            return self.available
        return list(map(min, self.available, self.beside))

    @property
    def totals(self) -> tuple[Totals, ...]:
        return self.total, self.occupied, self.allocated, self.available


class NodeOrder:
    """The nodes of a partition, and for each shape of ask the order in which they are chosen (5.7).

    ``feasible`` has the bits of shapes that some node may have room for or may be reserved for. A bit is
    cleared when a search finds no node and set when a node gains room.
    """

    __slots__ = ("feasible", "grown", "nodes", "now", "planned", "shapes", "watchers")

    def __init__(self, shapes: Shapes) -> None:
        self.shapes = shapes
        self.nodes: list[Node] = []
        self.feasible = 0
        #: nodes that gained room or opened since refused asks were last tried again
        self.grown: dict[Node, None] = {}
        #: each gets the nodes that change from now on, those that come and go included
        self.watchers: tuple[dict[Node, None], ...] = ()
        #: time (ns) of the last call for decisions: what is lent depends on it (Q7)
        self.now = 0
        #: the planned start of the protected gang (Q9)
        self.planned: PlannedStart | None = None

    # -- changes -----------------------------------------------------------------------------

    def configure(self, config: PartitionConfig, registry: Registry) -> None:
        """The policy or the weights of resource types may have changed."""
        raise NotImplementedError

    def relayout(self) -> None:
        """A resource type is new: recompute everything."""
        raise NotImplementedError

    def add(self, node: Node) -> None:
        """A node is new."""
        raise NotImplementedError

    def remove(self, node: Node) -> None:
        """A node is gone."""
        raise NotImplementedError

    def resized(self, node: Node, before: Vector) -> None:
        """The capacity of the node was ``before``. A call of ``changed`` or ``gained`` follows."""
        raise NotImplementedError

    def changed(self, node: Node) -> None:
        """The free amounts of the node shrank, or it opened, closed, got or lost a reservation."""
        raise NotImplementedError

    def took(self, node: Node, shape: Shape | None = None) -> None:
        """An allocation, of this shape where one is given, was placed on the node."""
        raise NotImplementedError

    def gained(self, node: Node) -> None:
        """The free amounts of the node grew: shapes without a node may have one now."""
        raise NotImplementedError

    def plan_undone(self, feasible: int) -> None:
        """All that was taken since ``feasible`` had this value was given back: forget what searches have
        found in the meantime."""
        raise NotImplementedError

    def allow_reservations(self, allowed: bool) -> None:
        """Whether nodes may be reserved at all, by asks that do not require them (Q7)."""
        raise NotImplementedError

    def watch(self, shape: Shape) -> None:
        """Asks of this shape wait: assume that some node has room until a search finds none."""
        raise NotImplementedError

    def forget(self, shape: Shape) -> None:
        """No ask has this shape any more; its bits will be reused for another shape."""
        raise NotImplementedError

    # -- choices -----------------------------------------------------------------------------

    def best(self, shape: Shape) -> Node | None:
        """The first node in order that has room for the shape; ``None`` clears its bit."""
        raise NotImplementedError

    def full(self) -> int:
        """Bits of shapes that certainly have room on no node now (``Shape.allocate``); not all of them."""
        raise NotImplementedError

    def lacks(self, shape: Shape) -> None:
        """No node has room for the shape: clear its bit."""
        raise NotImplementedError

    def within(self, amounts: Totals) -> int:
        """Bits of shapes that fit in these amounts, which have one for each resource type
        (``Shape.allocate``); not all of them."""
        raise NotImplementedError

    def may_fit(self, amounts: Totals) -> int:
        """Bits of all shapes (``Shape.allocate``) but those that certainly do not fit in these amounts."""
        raise NotImplementedError

    def score(self, node: Node, shape: Shape) -> float:
        """The score of the node for the shape, which fits; infinite if the node takes no new allocations."""
        raise NotImplementedError

    def in_order(self, shape: Shape) -> list[Node]:
        """All nodes that have room for the shape, best first."""
        raise NotImplementedError

    def position(self, node: Node) -> int:
        """The number of the node in the order of IDs, until a node comes or goes."""
        raise NotImplementedError

    def node_ids(self) -> tuple[str, ...]:
        """The IDs of all nodes by position; the same object until a node comes or goes."""
        raise NotImplementedError

    def amounts(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """By position, to be read at once: what is free by type, within 64 bits, and whether the node takes new
        allocations of any ask (``Node.free``)."""
        raise NotImplementedError

    def amounts_in_steps(self) -> Iterator[None]:
        """Yield between the steps in which ``amounts`` are made, which are to be read at the end at once."""
        raise NotImplementedError

    def sizes(self) -> Counter[Vector]:
        """The number of nodes of each capacity."""
        raise NotImplementedError

    def without(self, shape: Shape, refused: npt.NDArray[Any]) -> Iterator[Node]:
        """As ``in_order``, without nodes where ``refused``, by position, is not zero. Each node costs a
        search: few are needed."""
        raise NotImplementedError

    def tally(self, shape: Shape, numbers: npt.NDArray[Any]) -> list[int]:
        """How many of the nodes that have room for the shape have which number, by position."""
        raise NotImplementedError

    def takes(self, node: Node, shape: Shape) -> bool:
        """Whether asks of the shape may use the node, and one has room there."""
        raise NotImplementedError

    def first(self, shape: Shape, number: int) -> list[Node]:
        """At most this number of free nodes that have room for the shape, best first."""
        raise NotImplementedError

    def lent(self, shape: Shape) -> list[Node]:
        """The nodes that are kept for others, and that asks of the shape may use until they are needed (Q7) or
        beside a planned start (Q9), best first."""
        raise NotImplementedError

    @property
    def packs(self) -> bool:
        """Whether the first node for a shape stays the first one while asks of the shape go there, until
        it has no room for another."""
        raise NotImplementedError

    def policy_score(self, node: Node, shape: Shape) -> float:
        """The score of the node for the shape by the node policy, even if it is reserved."""
        raise NotImplementedError

    def weigh(self, node: Node) -> None:
        """Note what the policy's score of the node is made of."""
        raise NotImplementedError

    def best_to_reserve(self, shape: Shape) -> Node | None:
        """The unreserved node that the shape would fit most tightly; ``None`` clears its bit."""
        raise NotImplementedError

    # -- room for gangs ----------------------------------------------------------------------

    def room(self, shape: Shape) -> int:
        """The number of asks of this shape that all nodes together have room for now."""
        raise NotImplementedError

    def room_on(self, node: Node, shape: Shape) -> int:
        """The part of that number on one node."""
        raise NotImplementedError

    def room_by_position(self, shape: Shape) -> npt.NDArray[Any]:
        """The number of asks of this shape that each node has room for now; it must not be changed."""
        raise NotImplementedError

    def scores(self, shape: Shape | None = None) -> npt.NDArray[Any]:
        """The score of each node, by position; infinite if it takes no new allocations, or has no room for the
        shape."""
        raise NotImplementedError

    def await_room(self, app: Application, alike: Hashable, wanted: tuple[RoomWanted, ...]) -> None:
        """Retry the gang when nodes have some of the room that is wanted. Of gangs that are ``alike`` the first
        is retried, and the next one unless it waits for room again."""
        raise NotImplementedError

    def forget_wait(self, app: Application) -> None:
        """The gang no longer waits for room."""
        raise NotImplementedError

    def attempted(self, app: Application) -> None:
        """The attempt of the gang is over."""
        raise NotImplementedError

    def pass_on(self) -> bool:
        """Retry others for gangs that are to be tried and are not to be placed. Return whether there are any."""
        raise NotImplementedError
