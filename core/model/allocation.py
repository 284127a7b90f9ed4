"""What asks have of nodes: allocations, which hold resources, and reservations, which keep a node for later (2.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.core.config.properties import WHOLE
from quadriga.core.resources.units import Units, give
from quadriga.core.resources.vectors import Vector, minus
from quadriga.fsm.lifecycles import allocation as allocation_fsm

if TYPE_CHECKING:
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask, AskGroup, AskKind
    from quadriga.core.model.node import Node
    from quadriga.core.model.timer import Timer


def next_uuid(ask: Ask) -> str:
    """Make the UUID ``<allocationKey>-<n>`` of the next allocation.

    n counts the allocations of the key in the application (X12). It does not start over with another
    application of the same id (X46).
    """
    app = ask.app
    serial = app.serial
    number = serial.get(ask.ask_key, app.first_number)
    serial[ask.ask_key] = number + 1
    return f"{ask.ask_key}-{number}"


class Allocation:
    """An allocation for ``ask`` on ``node``.

    During a replacement ``partner`` links the placeholder and its real allocation, both ways. The real
    one is Planned and not charged to its application (G28, X18).
    """

    __slots__ = (
        "ask",
        "created",
        "entries",
        "growth",
        "message",
        "node",
        "partner",
        "reason",
        "state",
        "timers",
        "uuid",
        "vector",
    )

    def __init__(self, ask: Ask, uuid: str, node: Node, now: int) -> None:
        self.ask = ask
        #: amounts by type as the ask had them; an update of the ask does not change them
        self.vector = ask.kind.vector
        self.uuid = uuid
        self.node = node
        #: instant (ns)
        self.created = now
        self.state: allocation_fsm.State = allocation_fsm.PLANNED
        self.entries = 0
        #: why the scheduler releases it, and the text of the release message
        self.reason: str | None = None
        self.message = ""
        self.partner: Allocation | None = None
        #: the part of a planned allocation that is charged beyond its placeholder (X37); all of it if
        #: the placeholder is gone (X39)
        self.growth: Vector = ()
        self.timers: tuple[Timer, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.ask.app.app_id}/{self.uuid}"

    @property
    def on_node(self) -> Vector:
        """Amounts charged to its node: only the growth while its placeholder is charged there."""
        if self.partner is not None and self.partner.node is self.node and not self.ask.placeholder:
            return self.growth
        if self.node.units is not None and (had := self.units):
            amounts = [0] * max(len(self.vector), 1 + max(at for at, _ in had))
            amounts[: len(self.vector)] = self.vector
            give(amounts, had)
            return tuple(amounts)
        return self.vector

    @property
    def units(self) -> Units:
        """The units of shared devices that it has of its node (Q14)."""
        return self.node.units.of.get(self, ()) if self.node.units is not None else ()

    @property
    def planned_more(self) -> Vector:
        """Amounts charged to its node and not yet to root; empty once it is allocated."""
        if self.state not in allocation_fsm.AHEAD:
            return ()
        return minus(self.on_node, self.growth)

    @property
    def placeholder(self) -> bool:
        return self.ask.placeholder

    @property
    def run_limit(self) -> int:
        return self.ask.terms.run_limit


class Reservation:
    """``node`` is kept for one repeat of ``ask`` since ``made`` (ns).

    ``kind`` is the kind of ask if the reservation counts towards the bounds (Q7). It is ``None`` if the
    ask requires the node, if allocations were evicted from the node for the ask, or if a gang gathers (Q3).
    """

    __slots__ = ("ask", "kind", "made", "node", "until")

    def __init__(self, ask: Ask, node: Node, made: int, kind: AskKind | None = None) -> None:
        self.ask = ask
        self.node = node
        self.made = made
        #: instant (ns) at which it is given up if it was not used
        self.until = made
        self.kind = kind

    @property
    def order(self) -> tuple[int, int]:
        """Higher priorities come first, then older asks (Q7)."""
        return -self.ask.kind.priority, self.ask.seq


class ReservationBounds:
    """How many nodes of a partition may be reserved, and which ones may not (Q7)."""

    __slots__ = ("barred", "count", "groups", "share", "timer")

    def __init__(self) -> None:
        #: millionths of the nodes, ``None`` without bounds
        self.share: int | None = None
        #: reservations that count towards the bounds
        self.count = 0
        #: their number for each group of asks that has any
        self.groups: dict[tuple[Application, AskKind], int] = {}
        #: nodes that are not reserved again until an instant (ns), in the order of these instants
        self.barred: dict[Node, int] = {}
        #: runs while nodes are barred
        self.timer: Timer | None = None

    def limit(self, nodes: int) -> int | None:
        """How many of this many nodes may be reserved; ``None``: all."""
        return None if self.share is None else max(1, nodes * self.share // WHOLE)

    def full(self, nodes: int) -> bool:
        """Whether no further node may be reserved."""
        return self.share is not None and self.count >= max(1, nodes * self.share // WHOLE)

    def holds(self, group: AskGroup) -> bool:
        """Whether the group may reserve no further node, because it has one."""
        return self.share is not None and (group.app, group.kind) in self.groups

    def add(self, reservation: Reservation, more: int) -> None:
        """Count the reservation, or one less (``more`` is -1), if it counts."""
        if reservation.kind is None:
            return
        self.count += more
        group = reservation.ask.app, reservation.kind
        own = self.groups.get(group, 0) + more
        if own:
            self.groups[group] = own
        else:
            del self.groups[group]
