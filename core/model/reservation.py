"""A reservation: a node kept for an ask that fits on no node yet (2.7), and the bounds of all (Q7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask, AskGroup, AskKind
    from quadriga.core.model.node import Node
    from quadriga.core.model.timer import Timer

#: a share of all nodes; shares are whole numbers of millionths
WHOLE: Final = 1_000_000


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
