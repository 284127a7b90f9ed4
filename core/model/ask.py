"""An ask, its kind, the group of asks of one kind in which it waits, and the queue of those that may preempt."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

from quadriga.core.resources.shapes import REPLACE, START_GANG, Requirements, Shape
from quadriga.core.resources.vectors import Vector
from quadriga.fsm.lifecycles import ask as ask_fsm

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.application import Application
    from quadriga.core.model.timer import Timer
    from quadriga.core.resources.demand import Key
    from quadriga.core.resources.locality import Locality
    from quadriga.core.resources.vectors import Registry


@dataclass(slots=True)
class Terms:
    """Everything about an ask that no choice of a node depends on. Terms never change and are shared.

    Each allocation of the ask may last ``run_limit`` ns; 0 is no limit (X17). It is expected to last
    ``expected_runtime`` ns; 0 if the ask does not tell (Q7), and at most ``runtime_bound`` ns, which the scheduler does
    not enforce; 0 if there is no such bound (Q11). ``by_key``: the ask came
    as an Allocation without a node, so its key alone identifies it and its allocation (X45).
    """

    tags: dict[str, str] = field(default_factory=dict)
    originator: bool = False
    run_limit: int = 0
    allow_preempt_self: bool = True
    allow_preempt_other: bool = False
    by_key: bool = False
    expected_runtime: int = 0
    runtime_bound: int = 0


#: the terms of an ask with none of these, in either form
PLAIN: Final = Terms()
PLAIN_BY_KEY: Final = Terms(by_key=True)


#: at most this many kinds are remembered in a partition
_MAX_KINDS: Final = 10_000


@dataclass(slots=True)
class AskKind:
    """Everything about an ask that scheduling decisions look at; asks of one kind share it. Kinds never
    change, and equal ones are the same key of a mapping.

    A field that decisions look at is declared here, or in ``Requirements`` where the choice of a node
    depends on it, and is filled in where an ask is read (``intake``). The groups in which asks wait,
    repeated asks and the encoded templates of messages all go by the whole kind.
    """

    requires: Requirements
    priority: int = 0
    placeholder: bool = False
    task_group: str = ""
    #: that of ``requires``; every allocation reads it several times
    vector: Vector = field(init=False, compare=False, repr=False)
    #: the kind without trailing zeros in its vector, by which asks are grouped. Such zeros come from
    #: resource types that became known later, and make no difference.
    in_group: AskKind = field(init=False, compare=False, repr=False)
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        self.vector = self.requires.vector
        trimmed = self.requires.trimmed()
        self.in_group = (
            self
            if trimmed is self.requires
            else AskKind(trimmed, self.priority, self.placeholder, self.task_group)
        )
        self._hash = hash((self.requires, self.priority, self.placeholder, self.task_group))

    def __hash__(self) -> int:
        return self._hash


class AskKinds:
    """The kinds of asks that a partition has seen lately: asks with equal fields share one record, which
    need not be made, or kept, for each of them."""

    __slots__ = ("_known", "_registry")

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._known: dict[tuple[object, ...], AskKind] = {}

    def of(
        self,
        vector: Vector,
        required_node: str,
        priority: int,
        placeholder: bool,
        task_group: str,
        runtime: int,
        locality: Locality | None = None,
    ) -> AskKind:
        """The kind with these fields."""
        fields = (vector, required_node, priority, placeholder, task_group, runtime, locality)
        kind = self._known.get(fields)
        if kind is None:
            if len(self._known) >= _MAX_KINDS:
                self._known.clear()
            shares = self._registry.shares_of(vector) if self._registry.shared else ()
            requires = Requirements(vector, required_node, runtime, locality, shares)
            kind = self._known[fields] = AskKind(requires, priority, placeholder, task_group)
        return kind


class Ask:
    """A request for ``pending`` more allocations of one kind.

    The properties that read the ``kind`` are a convenience; hot paths read the kind itself.
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
        "preempt_outcome",
        "preempted",
        "preemption_queue",
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
        #: number in the order of arrival
        self.seq = seq
        #: instant of arrival (ns)
        self.created = now
        self.state: ask_fsm.State = ask_fsm.INITIAL
        self.entries = 0
        #: number of allocations still to be made
        self.pending = 1
        self.terms = PLAIN
        #: the group in which the ask waits; ``None`` while it is parked, deferred or ended
        self.group: AskGroup | None = None
        #: the real allocation of the running replacement
        self.planned: Allocation | None = None
        #: number of nodes reserved for the ask
        self.reservations = 0
        #: earliest instant (ns) of the next reservation, after one that was given up
        self.reserve_from = 0
        #: earliest instant (ns) of the next preemption attempt (5.9)
        self.preempt_from = 0
        #: allocations were preempted for the ask, which happens once (5.9)
        self.preempted = False
        #: result of the last preemption attempt, as text
        self.preempt_outcome = ""
        #: the preemption queue with an entry for the ask
        self.preemption_queue: PreemptionQueue | None = None
        #: the hint that no node fits was sent (5.11)
        self.hinted = False
        #: obstacles named by the last quota event (bits of ``events.quota_events``)
        self.last_quota_event = 0
        #: earliest instant (ns) of the next event record about refusing predicates
        self.quiet_until = 0

    def like(self, ask_key: str, seq: int, now: int) -> Ask:
        """A new ask of the same kind and terms, with another key."""
        ask = Ask(self.app, ask_key, self.kind, seq, now)
        ask.pending = self.pending
        ask.terms = self.terms
        return ask

    @property
    def key(self) -> str:
        return f"{self.app.app_id}/{self.ask_key}"

    @property
    def vector(self) -> Vector:
        return self.kind.vector

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
    """The waiting asks of one application and one kind, in order of arrival.

    No decision distinguishes them by anything but their order.
    """

    __slots__ = (
        "app",
        "asks",
        "demand",
        "exhausted_this_round",
        "kind",
        "preempting",
        "preemption_queue",
        "rank",
        "reservable",
        "reserve_from",
        "reserve_timer",
        "reserved",
        "retries",
        "shape",
        "skipped",
        "skipped_for",
        "too_large_to_replace",
    )

    def __init__(self, app: Application, kind: AskKind, shape: Shape) -> None:
        self.app = app
        #: its vector has no trailing zeros, like that of the shape
        self.kind = kind
        self.shape = shape
        #: asks by ``seq``
        self.asks: OrderedDict[int, Ask] = OrderedDict()
        #: the bits announced to the application; a group blocks nothing
        self.demand = 0
        self.rank: Key | None = None
        #: some ask has waited long enough to reserve a node (2.7)
        self.reservable = False
        self.reserve_timer: Timer | None = None
        #: earliest instant (ns) of the next reservation, after one that was given up (Q7)
        self.reserve_from = 0
        #: number of nodes reserved for its asks, and whether other nodes were refused in this round
        self.reserved = 0
        self.exhausted_this_round = False
        #: its asks are too large to replace a placeholder even with the free room of its node, so they
        #: wait for a node (X37); and whether replacement is retried nevertheless
        self.too_large_to_replace = False
        self.retries = False
        #: some ask has waited long enough to preempt (5.9), and the queue of these asks
        self.preempting = False
        self.preemption_queue: PreemptionQueue | None = None
        #: by obstacle, ``seq`` of the last ask for which SKIPPED was sent (X43)
        self.skipped: dict[str, int] = {}
        #: the obstacle that all of its asks were told last; "" if there is none or some lack nodes since
        self.skipped_for = ""

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

    @property
    def pending(self) -> int:
        """The number of allocations still to be made of its asks."""
        return sum([ask.pending for ask in self.asks.values()])

    def make_rank(self) -> Key:
        """Compute the rank: priority descending, then arrival (5.6)."""
        rank: Key = (-self.kind.priority, next(iter(self.asks)))
        self.rank = rank
        return rank

    def add(self, ask: Ask) -> None:
        """Insert an ask at its position in the order of arrival."""
        asks = self.asks
        ask.group = self
        self.reserved += ask.reservations
        oldest = bool(asks) and ask.seq < next(iter(asks))
        older = bool(asks) and ask.seq < next(reversed(asks))
        asks[ask.seq] = ask
        if oldest:  # it returns after it was parked or deferred
            asks.move_to_end(ask.seq, last=False)
        elif older:
            for seq in sorted(asks):
                asks.move_to_end(seq)
        if asks and next(iter(asks)) == ask.seq:
            self.rank = None
            self.app.rerank(self, self.demand)

    def extend(self, asks: Iterable[Ask]) -> None:
        """Append new asks of this kind that arrived last."""
        own = self.asks
        for ask in asks:
            ask.group = self
            own[ask.seq] = ask

    def remove(self, ask: Ask) -> None:
        """Remove an ask."""
        ask.group = None
        self.reserved -= ask.reservations
        if next(iter(self.asks)) == ask.seq:
            self.rank = None
        del self.asks[ask.seq]

    def shift(self) -> None:
        """Remove the first asks that have nothing pending; they have no reservations."""
        asks, gone = self.asks, []
        for ask in asks.values():
            if ask.pending:
                break
            gone.append(ask)
        for ask in gone:
            del asks[ask.seq]
        self.rank = None

    def demand_now(self) -> int:
        """The bits of the present demand, to be announced."""
        if not self.asks:
            return 0
        app = self.app
        if self.kind.placeholder:
            if app.gang.starts_whole(self):
                return 0 if app.gang.lacks else START_GANG
            return 0 if app.gang.gated else self._node_bits()
        if app.holding:  # X9
            return 0
        if app.gang.over and app.gang.starts_whole(self):  # Q5
            return 0 if app.gang.lacks else START_GANG
        if self.kind.task_group:
            task_group = app.gang.task_groups.get(self.kind.task_group)
            if task_group is not None and task_group.can_replace:  # G27, X36
                if self.too_large_to_replace:
                    return self._node_bits() | (REPLACE if self.retries else 0)
                return REPLACE if task_group.available else 0
        return self._node_bits()

    def _node_bits(self) -> int:
        shape = self.shape
        bits = shape.allocate
        if self.reservable:
            bits |= shape.reserve
        if self.reserved and not shape.required_node and not self.exhausted_this_round:
            bits |= shape.elsewhere
        if self.preempting:
            bits |= shape.preempt
        return bits

    def key_for(self, feasible: int) -> Key:
        """The rank of its first ask that waits for any of these bits.

        Every ask waits for a node; only some have a reservation, may reserve or may preempt.
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


class PreemptionQueue:
    """The asks of one group that may preempt now (by arrival) or later (by instant).

    Asks that have left the group or have another instant now are dropped when they surface.
    """

    __slots__ = ("_later", "_ready", "timer")

    def __init__(self) -> None:
        self._later: list[tuple[int, int, Ask]] = []
        self._ready: list[tuple[int, Ask]] = []
        #: fires when the first of the later asks may preempt
        self.timer: Timer | None = None

    def add(self, ask: Ask, when: int, now: int) -> None:
        """The ask may preempt from the instant ``when`` on (ns)."""
        if when <= now:
            heappush(self._ready, (ask.seq, ask))
        else:
            heappush(self._later, (when, ask.seq, ask))

    def first_seq(self, group: AskGroup) -> int:
        """The sequence number of the first ask that may preempt, or that of the group's last ask."""
        while self._ready:
            seq, ask = self._ready[0]
            if ask.group is group and not ask.preempted:
                return seq
            self._drop(group)
        return next(reversed(group.asks))

    def first_due(self, group: AskGroup, now: int) -> Ask | None:
        """The first ask that may preempt now."""
        later, ready = self._later, self._ready
        while later and later[0][0] <= now:
            _, seq, ask = heappop(later)
            heappush(ready, (seq, ask))
        while ready:
            ask = ready[0][1]
            if ask.group is group and not ask.preempted and ask.preempt_from <= now:
                return ask
            self._drop(group)
        return None

    def next_due(self, group: AskGroup) -> int | None:
        """The instant (ns) from which the next of the later asks may preempt."""
        later = self._later
        while later:
            when, _, ask = later[0]
            if ask.group is group and not ask.preempted:
                return when
            heappop(later)
            if ask.preemption_queue is self and ask.group is not group:
                ask.preemption_queue = None
        return None

    def _drop(self, group: AskGroup) -> None:
        """Drop the first of the ready asks: it left the group, or its instant changed."""
        _, ask = heappop(self._ready)
        if ask.preemption_queue is self and ask.group is not group:
            ask.preemption_queue = None  # it enters again when it returns to a group

    def cancel_timer(self) -> None:
        """Cancel the timer, if one runs."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
