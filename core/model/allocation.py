"""An allocation: resources of a node that an application holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.core.model.resources import Vector, minus
from quadriga.fsm import allocation as allocation_fsm

if TYPE_CHECKING:
    from quadriga.core.model.ask import Ask
    from quadriga.core.model.node import Node
    from quadriga.core.model.timer import Timer

__all__ = ["Allocation", "next_uuid"]


def next_uuid(ask: Ask) -> str:
    """``<allocationKey>-<n>``; n counts that key's allocations in the application (X12), and does not
    begin anew with another application of the same id (X46)."""
    app = ask.app
    serial = app.serial
    number = serial.get(ask.ask_key, app.first_number)
    serial[ask.ask_key] = number + 1
    return f"{ask.ask_key}-{number}"


class Allocation:
    """Made for ``ask``, on ``node``. What they know is not repeated here.

    During a replacement ``partner`` links the placeholder with its real allocation, both ways; the
    real one is Planned and in no application's books (G28, X18).
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
        #: the ask's at the time: an update of the ask changes only what is still to be allocated
        self.vector = ask.kind.requires.vector
        self.uuid = uuid
        self.node = node
        self.created = now
        self.state: allocation_fsm.State = allocation_fsm.PLANNED
        self.entries = 0
        #: why the scheduler wants it back, and the text that goes with the release
        self.reason: str | None = None
        self.message = ""
        self.partner: Allocation | None = None
        #: of a planned one: what quotas hold for it beyond its placeholder (X37), which is all of it
        #: where that one is gone (X39)
        self.growth: Vector = ()
        self.timers: tuple[Timer, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.ask.app.app_id}/{self.uuid}"

    @property
    def on_node(self) -> Vector:
        """What it takes of its node: a planned one shares its place with a placeholder there."""
        if self.partner is not None and self.partner.node is self.node and not self.ask.placeholder:
            return self.growth
        return self.vector

    @property
    def planned_more(self) -> Vector:
        """What its node has for it, and root has not yet: nothing for those that are allocated."""
        if self.state not in allocation_fsm.AHEAD:
            return ()
        return minus(self.on_node, self.growth)

    @property
    def placeholder(self) -> bool:
        return self.ask.placeholder

    @property
    def run_limit(self) -> int:
        return self.ask.terms.run_limit
