"""An ask, its kind, and the group of asks of one kind in which it waits."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from quadriga.core.model.resources import Vector
from quadriga.core.model.shapes import REPLACE, Requirements, Shape
from quadriga.fsm import ask as ask_fsm

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.application import Application
    from quadriga.core.model.demand import Key
    from quadriga.core.model.preemption_queue import PreemptionQueue
    from quadriga.core.model.timer import Timer

__all__ = ["PLAIN", "PLAIN_BY_KEY", "Ask", "AskGroup", "AskKind", "Terms"]


@dataclass(slots=True)
class Terms:
    """Everything about an ask that no choice of a node depends on. Terms never change and are shared.

    Each allocation of the ask may last ``run_limit`` ns; 0 is no limit (X17). ``by_key``: the ask came
    as an Allocation without a node, so its key alone identifies it and its allocation (X45).
    """

    tags: dict[str, str] = field(default_factory=dict)
    originator: bool = False
    run_limit: int = 0
    allow_preempt_self: bool = True
    allow_preempt_other: bool = False
    by_key: bool = False


#: the terms of an ask with none of these, in either form
PLAIN: Final = Terms()
PLAIN_BY_KEY: Final = Terms(by_key=True)


class AskKind(NamedTuple):
    """Everything about an ask that scheduling decisions look at; asks of one kind share it.

    A field that decisions look at is declared here, or in ``Requirements`` where the choice of a node
    depends on it, and is filled in where an ask is read (``intake``). The groups in which asks wait,
    repeated asks and the encoded templates of messages all go by the whole kind.
    """

    requires: Requirements
    priority: int = 0
    placeholder: bool = False
    task_group: str = ""


class Ask:
    """A request for ``pending`` more allocations of one kind.

    ``seq`` is its position in the order of arrival, ``created`` the instant (ns). ``group`` is where it
    waits, ``None`` while it is parked, deferred or over. The properties that read the ``kind`` are a
    convenience; hot paths read the kind itself.
    """

    __slots__ = (
        "app",
        "ask_key",
        "created",
        "entries",
        "group",
        "hinted",
        "kind",
        "last_quota_event",
        "pending",
        "planned",
        "preempt_from",
        "preemption_queue",
        "preempt_outcome",
        "preempted",
        "quiet_until",
        "reservations",
        "reserve_from",
        "seq",
        "state",
        "terms",
    )

    def __init__(self, app: Application, ask_key: str, kind: AskKind, seq: int, now: int) -> None:
        self.app = app
        self.ask_key = ask_key
        self.kind = kind
        self.seq = seq
        self.created = now
        self.state: ask_fsm.State = ask_fsm.INITIAL
        self.entries = 0
        self.pending = 1
        self.terms = PLAIN
        self.group: AskGroup | None = None
        #: the real allocation of the replacement in flight
        self.planned: Allocation | None = None
        self.reservations = 0
        #: not before this instant may it reserve a node, after a reservation that led to nothing
        self.reserve_from = 0
        #: not before this instant may it try to preempt again (5.9)
        self.preempt_from = 0
        #: allocations were asked back to make room for it, which happens once (5.9)
        self.preempted = False
        #: what came of the last attempt, in words
        self.preempt_outcome = ""
        #: the preemption queue that has an entry of it
        self.preemption_queue: PreemptionQueue | None = None
        #: the resource manager has been told that nothing fits (5.11)
        self.hinted = False
        #: whether its last quota event said that it has to wait (bits of ``events.quota_events``)
        self.last_quota_event = 0
        #: that predicates refuse it is not recorded before this instant (ns)
        self.quiet_until = 0

    def like(self, ask_key: str, seq: int, now: int) -> Ask:
        """A new ask for the same, under another key."""
        ask = Ask(self.app, ask_key, self.kind, seq, now)
        ask.pending = self.pending
        ask.terms = self.terms
        return ask

    @property
    def key(self) -> str:
        return f"{self.app.app_id}/{self.ask_key}"

    @property
    def vector(self) -> Vector:
        return self.kind.requires.vector

    @property
    def required_node(self) -> str:
        return self.kind.requires.required_node

    @property
    def priority(self) -> int:
        return self.kind.priority

    @property
    def placeholder(self) -> bool:
        return self.kind.placeholder

    @property
    def task_group(self) -> str:
        return self.kind.task_group


class AskGroup:
    """Asks of one application and of one kind: no decision tells them apart.

    They wait in order of arrival. ``demand`` is what the group has announced to its application; nothing
    is ever blocked here.
    """

    __slots__ = (
        "app",
        "asks",
        "demand",
        "kind",
        "outgrown",
        "preempting",
        "preemption_queue",
        "rank",
        "reservable",
        "reserve_timer",
        "reserved",
        "rests",
        "retries",
        "shape",
        "skipped",
    )

    def __init__(self, app: Application, kind: AskKind, shape: Shape) -> None:
        self.app = app
        #: its vector is without trailing zeros, as that of the shape
        self.kind = kind
        self.shape = shape
        self.asks: OrderedDict[int, Ask] = OrderedDict()
        self.demand = 0
        self.rank: Key | None = None
        #: some ask here has waited long enough to reserve a node (2.7)
        self.reservable = False
        self.reserve_timer: Timer | None = None
        #: how many nodes are reserved for asks here, and whether others were refused in this round
        self.reserved = 0
        self.rests = False
        #: its asks are larger than what a placeholder's place and the free room make together: they go
        #: the normal way (X37), and whether they have a placeholder looked for all the same
        self.outgrown = False
        self.retries = False
        #: some ask here has waited long enough to preempt, and which is next (5.9)
        self.preempting = False
        self.preemption_queue: PreemptionQueue | None = None
        #: up to which ask the resource manager was told what stops them, by what stops them (X43)
        self.skipped: dict[str, int] = {}

    @property
    def priority(self) -> int:
        return self.kind.priority

    @property
    def placeholder(self) -> bool:
        return self.kind.placeholder

    @property
    def task_group(self) -> str:
        return self.kind.task_group

    @property
    def head(self) -> Ask:
        return next(iter(self.asks.values()))

    def make_rank(self) -> Key:
        """Priority descending, then arrival (5.6)."""
        rank: Key = (-self.kind.priority, next(iter(self.asks)))
        self.rank = rank
        return rank

    def add(self, ask: Ask) -> None:
        """Let the ask wait here, at its place in the order of arrival."""
        asks = self.asks
        ask.group = self
        self.reserved += ask.reservations
        oldest = bool(asks) and ask.seq < next(iter(asks))
        older = bool(asks) and ask.seq < next(reversed(asks))
        asks[ask.seq] = ask
        if oldest:  # it was away (parked, set aside) and comes back
            asks.move_to_end(ask.seq, last=False)
        elif older:
            for seq in sorted(asks):
                asks.move_to_end(seq)
        if asks and next(iter(asks)) == ask.seq:
            self.rank = None
            self.app.rerank(self, self.demand)

    def extend(self, asks: Iterable[Ask]) -> None:
        """Let new asks, like others here and the last to arrive, wait behind them."""
        own = self.asks
        for ask in asks:
            ask.group = self
            own[ask.seq] = ask

    def remove(self, ask: Ask) -> None:
        """The ask waits here no longer."""
        ask.group = None
        self.reserved -= ask.reservations
        if next(iter(self.asks)) == ask.seq:
            self.rank = None
        del self.asks[ask.seq]

    def shift(self) -> None:
        """The first asks, as far as nothing of them is pending, wait here no longer. They have no
        reservations."""
        asks, gone = self.asks, []
        for ask in asks.values():
            if ask.pending:
                break
            gone.append(ask)
        for ask in gone:
            del asks[ask.seq]
        self.rank = None

    def demand_now(self) -> int:
        """The bits that it should have announced now."""
        if not self.asks:
            return 0
        app = self.app
        if self.kind.placeholder:
            return 0 if app.gang.gated else self._node_bits()
        if app.holding:  # X9
            return 0
        if self.kind.task_group:
            task_group = app.gang.task_groups.get(self.kind.task_group)
            if task_group is not None and task_group.can_replace:  # G27, X36
                if self.outgrown:
                    return self._node_bits() | (REPLACE if self.retries else 0)
                return REPLACE if task_group.available else 0
        return self._node_bits()

    def _node_bits(self) -> int:
        shape = self.shape
        bits = shape.allocate
        if self.reservable:
            bits |= shape.reserve
        if self.reserved and not shape.required_node and not self.rests:
            bits |= shape.elsewhere
        if self.preempting:
            bits |= shape.preempt
        return bits

    def key_for(self, feasible: int) -> Key:
        """The place in order of its first ask that waits for any of these bits.

        For a node that is the first one of all; only some of them may have, or may want, a
        reservation, or may preempt.
        """
        bits = self.demand & feasible
        shape = self.shape
        if bits & (shape.allocate | REPLACE):
            return self.rank or self.make_rank()
        firsts = [next(reversed(self.asks))]
        if bits & shape.elsewhere:
            firsts.append(next((seq for seq, a in self.asks.items() if a.reservations), firsts[0]))
        if bits & shape.reserve:
            asks = self.asks.items()
            first = next((seq for seq, a in asks if a.reservations < a.pending), firsts[0])
            firsts.append(first)
        if bits & shape.preempt and self.preemption_queue is not None:
            firsts.append(self.preemption_queue.first_seq(self))
        return (-self.kind.priority, min(firsts))
