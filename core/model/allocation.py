"""An allocation: resources of a node, held by an application."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.core.resources.units import Units, give
from quadriga.core.resources.vectors import Vector, minus
from quadriga.fsm.lifecycles import allocation as allocation_fsm

if TYPE_CHECKING:
    from quadriga.core.model.ask import Ask
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
