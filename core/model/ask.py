"""An ask, and the group of alike asks of an application in which it waits."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from quadriga.core.order.shapes import REPLACE, Shape
from quadriga.core.resources import Vector
from quadriga.fsm import ask as life

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.application import Application
    from quadriga.core.timers import Timer
    from quadriga.si import Allocation as AllocationMessage

__all__ = ["Ask", "AskGroup"]


class Ask:
    """A request for ``pending`` more allocations of ``vector``.

    ``seq`` is its place in the order of arrival, ``created`` the instant (ns). ``group`` is where it
    waits, ``None`` while it is parked, set aside or over.
    """

    __slots__ = (
        "allow_preempt_other",
        "allow_preempt_self",
        "app",
        "ask_key",
        "created",
        "entries",
        "group",
        "hinted",
        "originator",
        "pending",
        "placeholder",
        "planned",
        "priority",
        "required_node",
        "reservations",
        "reserve_from",
        "run_limit",
        "seq",
        "state",
        "tags",
        "task_group",
        "vector",
    )

    def __init__(self, app: Application, ask_key: str, vector: Vector, seq: int, now: int) -> None:
        self.app = app
        self.ask_key = ask_key
        self.vector = vector
        self.seq = seq
        self.created = now
        self.state = life.INITIAL
        self.entries = 0
        self.pending = 1
        self.priority = 0
        self.placeholder = False
        self.task_group = ""
        self.originator = False
        self.allow_preempt_self = True
        self.allow_preempt_other = False
        self.run_limit = 0
        self.required_node = ""
        self.tags: dict[str, str] = {}
        self.group: AskGroup | None = None
        #: the real allocation of the replacement in flight
        self.planned: Allocation | None = None
        self.reservations = 0
        #: not before this instant may it reserve a node, after a reservation that led to nothing
        self.reserve_from = 0
        #: the resource manager has been told that nothing fits (5.11)
        self.hinted = False

    @property
    def key(self) -> str:
        return f"{self.app.app_id}/{self.ask_key}"


class AskGroup:
    """Asks of one application that differ in nothing that a decision looks at.

    They wait in order of arrival. ``bits`` is what the group has announced to its application.
    """

    __slots__ = (
        "app",
        "asks",
        "bits",
        "look",
        "placeholder",
        "priority",
        "rank",
        "reservable",
        "reserve_timer",
        "shape",
        "task_group",
        "template",
    )

    def __init__(
        self, app: Application, shape: Shape, priority: int, placeholder: bool, task_group: str
    ) -> None:
        self.app = app
        self.shape = shape
        self.priority = priority
        self.placeholder = placeholder
        self.task_group = task_group
        self.look = (shape, priority, placeholder, task_group)
        self.asks: OrderedDict[int, Ask] = OrderedDict()
        self.bits = 0
        self.rank: tuple[int, int] | None = None
        #: some ask here has waited long enough to reserve a node (2.7)
        self.reservable = False
        self.reserve_timer: Timer | None = None
        #: the part of the Allocation message that is the same for all of them
        self.template: AllocationMessage | None = None

    @property
    def head(self) -> Ask:
        return next(iter(self.asks.values()))

    def make_rank(self) -> tuple[int, int]:
        """Priority descending, then arrival (5.6)."""
        self.rank = (-self.priority, next(iter(self.asks)))
        return self.rank

    def add(self, ask: Ask) -> None:
        """Let the ask wait here, at its place in the order of arrival."""
        asks = self.asks
        ask.group = self
        older = bool(asks) and ask.seq < next(reversed(asks))
        asks[ask.seq] = ask
        if older:  # it was away (parked, set aside) and comes back
            for seq in sorted(asks):
                asks.move_to_end(seq)
        if asks and next(iter(asks)) == ask.seq:
            self.rank = None
            self.app.rerank(self, self.bits)

    def remove(self, ask: Ask) -> None:
        """The ask waits here no longer."""
        ask.group = None
        if next(iter(self.asks)) == ask.seq:
            self.rank = None
        del self.asks[ask.seq]

    def wants(self) -> int:
        """The bits that it should have announced now."""
        if not self.asks:
            return 0
        app = self.app
        if self.placeholder:
            return 0 if app.gated else self._node_bits()
        if app.holding:  # X9
            return 0
        if self.task_group:
            task_group = app.task_groups.get(self.task_group)
            if task_group is not None and task_group.can_replace:  # G27
                return REPLACE if task_group.available else 0
        return self._node_bits()

    def _node_bits(self) -> int:
        return self.shape.bits if self.reservable else self.shape.place
