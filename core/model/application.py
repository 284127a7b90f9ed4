"""An application: its asks, its allocations, its accounting; and the record that replaces it after its end (D85)."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

from quadriga.base.texts import shortened
from quadriga.core.model.gang import Gang
from quadriga.core.model.history import ResourceHistory
from quadriga.core.resources.demand import EVERY_BIT, Key, Level
from quadriga.core.resources.vectors import Totals, Vector, covers, exact_share, plus
from quadriga.fsm.lifecycles import application as application_fsm

if TYPE_CHECKING:
    from quadriga.core.model.account import Account, Ledger
    from quadriga.core.model.allocation import Allocation, Reservation
    from quadriga.core.model.ask import Ask, AskGroup, AskKind
    from quadriga.core.model.history import ApplicationSummary, Usage
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.queue import Queue
    from quadriga.core.model.timer import Timer

#: bytes of the record of an ended application besides its texts: the object, its timer, its table entries
_FIXED: Final = 800

_NOTHING: Final = b""

_encode: Final = json.JSONEncoder(separators=(",", ":")).encode


class Application(Level):
    """An application as data.

    It has more than 25 attributes because every room reads it and further indirection would slow down
    the hottest reads. Records that belong together are apart already (``Gang``); ``__init__`` groups
    the other attributes.
    """

    __slots__ = (
        "allocated",
        "allocated_placeholder",
        "allocations",
        "app_id",
        "asks",
        "backoff_until",
        "completing",
        "counted",
        "entries",
        "expected_runtime",
        "finished",
        "first_number",
        "gang",
        "group_account",
        "group_limits",
        "groups",
        "groups_of_user",
        "history",
        "last_quota_event",
        "ledgers",
        "limiting",
        "most",
        "other_usages",
        "odd_uuids",
        "partition",
        "pending",
        "placed_by",
        "preempted",
        "preempting",
        "placeholders",
        "priority",
        "reserved_headroom",
        "queue",
        "ran_since",
        "reason",
        "queue_asked",
        "rejected_message",
        "released",
        "reservations",
        "run_limit",
        "run_records",
        "score",
        "score_due",
        "seq",
        "serial",
        "spent",
        "started",
        "state",
        "submitted",
        "summary",
        "tags",
        "timers",
        "user_usage",
        "user",
        "user_account",
        "user_limits",
    )

    is_application = True

    def __init__(self, app_id: str, partition: Partition, queue: Queue, seq: int, now: int) -> None:
        super().__init__()
        # identity and submission
        self.app_id = app_id
        self.partition = partition
        self.queue = queue
        #: number in the order of submission
        self.seq = seq
        #: instants of submission and end (ns); 0: not ended
        self.submitted = now
        self.finished = 0
        self.user = ""
        self.groups_of_user: tuple[str, ...] = ()
        self.tags: dict[str, str] = {}
        #: the queue that the request named, and the placement rule that chose ``queue`` (2.3)
        self.queue_asked = ""
        self.placed_by = ""

        # lifecycle
        self.state: application_fsm.State = application_fsm.NEW
        self.entries = 0
        #: instant (ns) and name of each state entered
        self.history: list[tuple[int, str]] = []
        #: the reason given with the trigger that led to the state
        self.reason = ""
        self.rejected_message = ""
        #: the application was in Starting or Running (X17)
        self.started = False
        #: creation instant (ns) of its oldest recovered allocation; 0 without any
        self.ran_since = 0
        self.run_limit = 0
        #: its allocations are expected to last this many ns; 0 if it does not tell (Q7)
        self.expected_runtime = 0
        #: the run times of what is like its allocations, by task group (``model.run_times``)
        self.run_records: dict[str, tuple[deque[int], ...]] = {}
        #: timers that the lifecycle started
        self.timers: tuple[Timer, ...] = ()
        self.gang = Gang(self)
        #: Waiting timed out while placeholders were left: the end of the last one completes it (X26)
        self.completing = False

        # user and group limits (2.5)
        #: the accounts of its user and of at most one of the user's groups
        self.user_account: Account | None = None
        self.group_account: Account | None = None
        #: the ledgers charged for each allocation; the first is the user's in this leaf
        self.ledgers: tuple[Ledger, ...] = ()
        #: ``usage`` of the first ledger, and of the others
        self.user_usage: Totals = []
        self.other_usages: tuple[Totals, ...] = ()
        #: the ledgers with a limit: the user's, the group's, both
        self.user_limits: tuple[Ledger, ...] = ()
        self.group_limits: tuple[Ledger, ...] = ()
        self.limiting: tuple[Ledger, ...] = ()
        #: the ledgers count it as running
        self.counted = False

        # asks, allocations and reservations
        self.asks: dict[str, Ask] = {}
        self.groups: dict[AskKind, AskGroup] = {}
        self.allocations: dict[str, Allocation] = {}
        self.placeholders: dict[str, Allocation] = {}
        self.reservations: dict[Reservation, None] = {}
        #: instant (ns) until which no ask is tried, after too many failed attempts (2.2.2)
        self.backoff_until = 0
        #: number of the next allocation of each key (X12), and of the first one of a new key (X46)
        self.serial: dict[str, int] = {}
        self.first_number = 0
        #: some allocation, past or present, has a UUID that is not ``<key>-<number>``
        self.odd_uuids = False

        # amounts by type, all as long as the longest vector of its asks, see ``lengthen``
        #: real allocations, and placeholders (G58)
        self.allocated: Totals = []
        self.allocated_placeholder: Totals = []
        #: asked for, neither allocated nor parked
        self.pending: Totals = []
        #: what the queues reserve for the rest of the gang (X16)
        self.reserved_headroom: Totals = []
        #: peak of each type up to the last refund
        self.most: Totals = []

        # ended allocations
        #: number of allocations that are being preempted, that were preempted, that have ended
        self.preempting = 0
        self.preempted = 0
        self.released = 0
        #: usage over time of ended allocations (2.18); the summary has it when the application ends
        self.spent: Usage | None = None
        self.summary: ApplicationSummary | None = None

        # order and waiting
        #: the highest priority of its pending asks
        self.priority: int | None = None
        #: in a queue of the policy ``expected``: its score, the greatest is first, and the instant (ns) at
        #: which it is computed again; 0 while nothing of it waits
        self.score = 0
        self.score_due = 0
        #: obstacles named by the last quota event (bits of ``events.quota_events``)
        self.last_quota_event = 0
        self.blocked = EVERY_BIT

    @property
    def key(self) -> str:
        return self.app_id

    @property
    def queue_path(self) -> str:
        return self.queue.path

    @property
    def start_time(self) -> int:
        """Instant (ns) at which it first ran, even before a restart (2.11); 0: not yet."""
        here = next((when for when, state in self.history if state in application_fsm.COUNTED), 0)
        return min(here, self.ran_since) if self.ran_since else here

    def held_of(self, key: str) -> list[Allocation]:
        """Its allocations of this key, placeholders included.

        They are looked up by UUID where possible, not searched for, because resource managers of
        SI 1.6 identify every allocation by its key.
        """
        allocations, placeholders = self.allocations, self.placeholders
        first = self.first_number
        last = self.serial.get(key, first)
        if self.odd_uuids or last - first > len(allocations) + len(placeholders):
            held = [*allocations.values(), *placeholders.values()]
            return [each for each in held if each.ask.ask_key == key]
        uuids = [f"{key}-{number}" for number in range(first, last)]
        found = [allocations.get(uuid) or placeholders.get(uuid) for uuid in uuids]
        return [each for each in found if each is not None]

    # -- facts for the lifecycle ---------------------------------------------------------------

    @property
    def starts_aware(self) -> bool:
        return self.queue.stateaware and not self.tags.get("application.stateaware.disable")

    @property
    def hard(self) -> bool:
        return self.gang.hard

    @property
    def has_asks(self) -> bool:
        return bool(self.asks)

    @property
    def gathers(self) -> bool:
        """Whether it is a gang that lacks placeholders."""
        return self.is_gang and not self.gang.over and not self.gang_complete

    @property
    def gang_complete(self) -> bool:
        """Whether it is a gang that holds all its placeholders (G21)."""
        return self.gang.started and not self.gang.over and self.is_gang and self.has_its_gang

    @property
    def has_allocations(self) -> bool:
        return bool(self.allocations)

    @property
    def has_placeholders(self) -> bool:
        return bool(self.placeholders)

    @property
    def gang_wait_limit(self) -> int:
        return self.gang.wait_limit

    def lengthen(self, types: int) -> None:
        """Lengthen its totals before a vector with this number of entries is charged to them. The types that
        other applications ask for cost it nothing."""
        if len(self.pending) < types:
            self.partition.registry.lengthen(
                (
                    self.allocated,
                    self.allocated_placeholder,
                    self.most,
                    self.pending,
                    self.reserved_headroom,
                ),
                types,
            )

    def own_headroom(self, at: int) -> int:
        """What the queues reserve of this type for the rest of its gang."""
        return self.reserved_headroom[at] if at < len(self.reserved_headroom) else 0

    @property
    def max_allocated(self) -> Totals:
        """Peak of each type that it held, of real allocations alone or placeholders alone."""
        return list(map(max, self.most, self.allocated, self.allocated_placeholder))

    def note_most(self, totals: Totals) -> None:
        """Update the peaks before these of its totals are lowered."""
        most = self.most
        for at, held in enumerate(totals):
            if held > most[at]:
                most[at] = held

    # -- facts for the scheduler ---------------------------------------------------------------

    @property
    def is_gang(self) -> bool:
        return self.gang.size is not None

    @property
    def has_its_gang(self) -> bool:
        """Whether the placeholders cover at least the announced size of the gang (S5)."""
        return self.gang.size is None or covers(self.gathered, self.gang.size)

    @property
    def gathered(self) -> Sequence[int]:
        """The resources of a gang's placeholders. A soft gang also counts the placeholders that the
        resource manager stopped (S5)."""
        if self.gang.hard or not self.gang.lost:
            return self.allocated_placeholder
        return plus(tuple(self.allocated_placeholder), self.gang.lost)

    @property
    def holding(self) -> bool:
        """Whether real asks are held until the gang is complete (X9, G22)."""
        return (
            self.gang.size is not None
            and not self.gang.over
            and self.state in application_fsm.BEFORE_RUNNING
            and self.queue.properties.gang_hold
            and not self.has_its_gang
        )

    @property
    def not_admitted(self) -> bool:
        """Whether it needs a slot under maxapplications or a limit and none is free."""
        return not self.passed_on

    @property
    def passed_on(self) -> int:
        """The bits that no lane between it and its leaf blocks."""
        bits, level = EVERY_BIT, self.above
        while level is not None and level is not self.queue:
            bits &= ~level.blocked
            level = level.above
        return bits

    @property
    def remainder(self) -> Vector:
        """What the placeholders of a started gang still lack of its size (X16)."""
        if self.gang.size is None or not self.gang.started or self.gang.over:
            return ()
        if self.state not in application_fsm.BEFORE_RUNNING:
            return ()
        have = self.allocated_placeholder
        pairs = zip_longest(self.gang.size, have, fillvalue=0)
        return tuple([whole - held if whole > held else 0 for whole, held in pairs])

    # -- order -----------------------------------------------------------------------------------

    def make_rank(self) -> Key:
        """Compute the rank of the application in its queue (5.5)."""
        urgency = -(self.priority if self.priority is not None else 0)
        queue = self.queue
        key: Key
        if queue.fair or queue.expected:
            by: Any = self._shares() if queue.fair else -self.score
            key = (urgency, by, self.seq) if queue.sorts_priority else (by, urgency, self.seq)
        else:
            key = (urgency, self.seq) if queue.sorts_priority else (self.seq, urgency)
        self.rank = key
        return key

    def touch(self) -> None:
        super().touch()
        line = self.gang.line
        if line is not None and self in line:
            line.add(self)

    def _shares(self) -> Key:
        """The shares, largest first, as YuniKorn compares them (5)."""
        guaranteed = self.queue.guaranteed_by_type
        shares = [
            exact_share(used, guaranteed.get(at) or 1)
            for at, used in enumerate(self.allocated)
            if used
        ]
        shares.sort(reverse=True)
        return tuple(shares)

    def best(self, feasible: int) -> Any:
        """The best group of asks, see ``Level``."""
        feasible &= ~self.blocked
        groups = self.few
        if groups is None:
            first = super().best(feasible)
        else:
            feasible_groups = [group for group in groups if group.demand & feasible]
            if len(feasible_groups) == 1:
                return feasible_groups[0]
            first = min(feasible_groups, key=lambda g: g.rank or g.make_rank(), default=None)
        if feasible & self.demand_below & self.partition.shapes.late:
            # such a bit may belong to a later ask of a group than its first one
            return self._best_late(first, feasible)
        return first

    def first_two(self, feasible: int) -> tuple[AskGroup, Key | None]:
        """The first group with demand for these bits, which must exist, and the rank of the second.

        The rank is ``None`` without a second group, and ``()``, less than every rank, if the caller
        should call this method each time.
        """
        if self.few is None or feasible & self.demand_below & self.partition.shapes.late:
            return self.best(feasible), ()
        first: Any = None
        head: Key = ()
        until: Key | None = None
        for group in self.few:
            if group.demand & feasible:
                rank = group.rank or group.make_rank()
                if first is None or rank < head:
                    until, first, head = head or None, group, rank
                elif until is None or rank < until:
                    until = rank
        return first, until

    def _best_late(self, first: AskGroup | None, feasible: int) -> AskGroup | None:
        """The best group where later asks of a group count as well as the first one.

        ``first`` is the best group by the first asks alone.
        """
        if first is None or first.key_for(feasible) == first.rank:
            return first
        late = (group for group in self.groups.values() if group.demand & feasible)
        return min(late, key=lambda group: group.key_for(feasible))


class EndedApplication:
    """An application after its end, with what REST, pages and stories show, in few bytes.

    It replaces the ``Application`` in the same lifecycle until it expires. Details that only a view of
    this one application shows are packed into one text.
    """

    __slots__ = (
        "app_id",
        "entries",
        "finished",
        "packed",
        "partition",
        "preempted",
        "queue_path",
        "reason",
        "rejected_message",
        "seq",
        "size",
        "state",
        "submitted",
        "user",
    )

    def __init__(
        self,
        app_id: str,
        partition: Partition,
        queue: Queue,
        seq: int,
        submitted: int,
        user: str,
    ) -> None:
        self.app_id = shortened(app_id)
        self.partition = partition
        self.queue_path = queue.path
        self.seq = seq
        #: instants of submission and end (ns)
        self.submitted = submitted
        self.finished = 0
        self.state: application_fsm.State = application_fsm.NEW
        self.entries = 0
        self.user = shortened(user)
        self.rejected_message = ""
        #: why it ended, if the trigger had a reason
        self.reason = ""
        #: number of its allocations that were preempted
        self.preempted = 0
        self.packed = _NOTHING
        #: bytes as ``Shelf`` counts them
        self.size = _FIXED

    @property
    def key(self) -> str:
        return self.app_id

    def pack(self, remains: dict[str, Any]) -> None:
        """Pack the details that have no attribute, and compute the size."""
        self.packed = _encode(remains).encode()
        texts = (self.app_id, self.user, self.queue_path, self.rejected_message)
        self.size = _FIXED + len(self.packed) + sum(map(_bytes_of, texts))

    def forget(self) -> None:
        """Drop the texts of an expired application; the journal needs only its id."""
        self.packed = _NOTHING
        self.rejected_message = ""

    @property
    def remains(self) -> dict[str, Any]:
        """The packed details."""
        return json.loads(self.packed) if self.packed else {}

    # -- attributes of an application that has not ended ------------------------------------------------

    @property
    def allocated(self) -> Totals:
        return []

    @property
    def asks(self) -> dict[str, Ask]:
        return {}

    @property
    def allocations(self) -> dict[str, Allocation]:
        return {}

    @property
    def placeholders(self) -> dict[str, Allocation]:
        return {}

    @property
    def start_time(self) -> int:
        """Instant (ns) at which it first ran; 0: never."""
        return self.remains.get("started", 0)  # type: ignore[no-any-return]

    @property
    def history(self) -> list[tuple[int, str]]:
        """Instant (ns) and name of the states that it entered, in order."""
        return [(when, state) for when, state in self.remains.get("history", ())]

    @property
    def groups_of_user(self) -> tuple[str, ...]:
        return tuple(self.remains.get("groups", ()))

    @property
    def queue_asked(self) -> str:
        """The queue that the request named."""
        return self.remains.get("queueAsked", "")  # type: ignore[no-any-return]

    @property
    def account(self) -> ResourceHistory:
        """Its usage over time (2.18)."""
        return ResourceHistory(*self.remains.get("usage", ({}, {}, {})))


def _bytes_of(text: str) -> int:
    """An upper bound of the bytes of a text, the same in every build of Python."""
    return len(text) if text.isascii() else 4 * len(text)
