"""An application: its asks, its allocations, its books."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from quadriga.core.model.demand import EVERY_BIT, Key, Level
from quadriga.core.model.gang import Gang
from quadriga.core.model.resources import Totals, Vector, covers, exact_share, plus
from quadriga.fsm import application as application_fsm

if TYPE_CHECKING:
    from quadriga.core.model.account import Account, Ledger
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.ask import Ask, AskGroup, AskKind
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.queue import Queue
    from quadriga.core.model.reservation import Reservation
    from quadriga.core.model.timer import Timer
    from quadriga.core.model.usage import ApplicationSummary, Usage

__all__ = ["Application"]


class Application(Level):
    """``seq`` is its place in the order of submission, ``submitted`` the instant (ns).

    ``allocated`` has real allocations only, ``allocated_placeholder`` the others (G58); ``pending``
    is what is asked for and neither allocated nor parked.
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
        "seq",
        "serial",
        "spent",
        "started",
        "state",
        "submitted",
        "summary",
        "tags",
        "timers",
        "usage",
        "user_usage",
        "user",
        "user_account",
        "user_limits",
    )

    is_application = True

    def __init__(self, app_id: str, partition: Partition, queue: Queue, seq: int, now: int) -> None:
        super().__init__()
        self.app_id = app_id
        self.partition = partition
        self.queue = queue
        self.seq = seq
        self.submitted = now
        self.finished = 0
        self.state: application_fsm.State = application_fsm.NEW
        self.entries = 0
        self.user = ""
        self.groups_of_user: tuple[str, ...] = ()
        #: whom its usage is counted for (2.5): its user, and one of the user's groups at most
        self.user_account: Account | None = None
        self.group_account: Account | None = None
        #: where each of its allocations is written, the user's in this leaf first
        self.ledgers: tuple[Ledger, ...] = ()
        #: the usage books of the first one, and of the others
        self.user_usage: Totals = []
        self.other_usages: tuple[Totals, ...] = ()
        #: those ledgers that limit it: the user's, the group's, both
        self.user_limits: tuple[Ledger, ...] = ()
        self.group_limits: tuple[Ledger, ...] = ()
        self.limiting: tuple[Ledger, ...] = ()
        #: it stands among the running applications of its ledgers
        self.counted = False
        self.tags: dict[str, str] = {}
        self.rejected_message = ""
        #: the queue that the request named, and which rule chose the one it got (2.3)
        self.queue_asked = ""
        self.placed_by = ""
        #: was in Starting or Running (X17)
        self.started = False
        self.run_limit = 0
        #: those that its lifecycle started
        self.timers: tuple[Timer, ...] = ()

        self.asks: dict[str, Ask] = {}
        self.groups: dict[AskKind, AskGroup] = {}
        self.allocations: dict[str, Allocation] = {}
        self.placeholders: dict[str, Allocation] = {}
        self.reservations: dict[Reservation, None] = {}
        #: until this instant it is left alone, as too many of its asks found no place (2.2.2)
        self.backoff_until = 0
        #: how many of its allocations are over
        self.released = 0
        #: number of the next allocation of each key (X12); others begin with the first number (X46)
        self.serial: dict[str, int] = {}
        self.first_number = 0
        #: it has, or had, an allocation whose UUID is not made of its key and such a number
        self.odd_uuids = False
        self.priority: int | None = None
        self.allocated: Totals = partition.registry.zeros()
        self.allocated_placeholder: Totals = partition.registry.zeros()
        #: the most of each type that it held until it last gave something up
        self.most: Totals = partition.registry.zeros()
        self.pending: Totals = partition.registry.zeros()
        self.reserved_headroom: Totals = partition.registry.zeros()
        self.history: list[tuple[int, str]] = []
        #: why it is in its state, where the trigger came with a reason
        self.reason = ""
        #: allocations that are asked back to make room for others, and those that are gone for it
        self.preempting = 0
        self.preempted = 0
        #: what its allocations that ended have used (2.18), closed in the summary when it ends
        self.spent: Usage | None = None
        self.summary: ApplicationSummary | None = None
        #: whether its last quota event said that it has to wait (bits of ``events.quota_events``)
        self.last_quota_event = 0
        #: when the oldest of its allocations that a restart brought was made (ns), 0 without any
        self.ran_since = 0

        self.gang = Gang()
        #: Waiting timed out while placeholders were left: the last one completes it (X26)
        self.completing = False
        self.blocked = EVERY_BIT

    @property
    def key(self) -> str:
        return self.app_id

    @property
    def queue_path(self) -> str:
        return self.queue.path

    @property
    def start_time(self) -> int:
        """When it first ran (ns), also where that was before a restart (2.11); 0: not yet."""
        here = next((when for when, state in self.history if state in application_fsm.COUNTED), 0)
        return min(here, self.ran_since) if self.ran_since else here

    def held_of(self, key: str) -> list[Allocation]:
        """Its allocations of this key, placeholders too; not searched for among all others, as a
        resource manager of SI 1.6 names each of them so."""
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
        """It is a gang that lacks placeholders."""
        return self.is_gang and not self.gang.over and not self.gang_complete

    @property
    def gang_complete(self) -> bool:
        """It is a gang that holds all its placeholders (G21)."""
        return self.gang.started and not self.gang.over and self.is_gang and self.has_its_gang

    @property
    def has_allocations(self) -> bool:
        return bool(self.allocations)

    @property
    def has_placeholders(self) -> bool:
        return bool(self.placeholders)

    @property
    def gang_wait_limit(self) -> int:
        return (self.queue.properties.gang_wait_limit or 0) if self.is_gang else 0

    @property
    def max_allocated(self) -> Totals:
        """The most of each type that it ever held, placeholders and others apart."""
        return list(map(max, self.most, self.allocated, self.allocated_placeholder))

    def note_most(self) -> None:
        """It is about to hold less."""
        most = self.most
        for book in (self.allocated, self.allocated_placeholder):
            for place, held in enumerate(book):
                if held > most[place]:
                    most[place] = held

    # -- facts for the scheduler ---------------------------------------------------------------

    @property
    def is_gang(self) -> bool:
        return self.gang.size is not None

    @property
    def has_its_gang(self) -> bool:
        """Enough placeholders: at least what was announced, not exactly (S5)."""
        return self.gang.size is None or covers(self.gathered, self.gang.size)

    @property
    def gathered(self) -> Sequence[int]:
        """What counts of a gang as there: its placeholders, and where it is soft also those that the
        resource manager took away (S5)."""
        if self.gang.hard or not self.gang.lost:
            return self.allocated_placeholder
        return plus(tuple(self.allocated_placeholder), self.gang.lost)

    @property
    def holding(self) -> bool:
        """Real asks are held back until the gang is complete (X9, G22)."""
        return (
            self.gang.size is not None
            and not self.gang.over
            and self.state in application_fsm.BEFORE_RUNNING
            and self.queue.properties.gang_hold
            and not self.has_its_gang
        )

    @property
    def shut_out(self) -> bool:
        """Whether it needs a place under maxapplications or a limit, and there is none."""
        return not self.passed_on

    @property
    def passed_on(self) -> int:
        """The bits that no lane between it and its leaf stops."""
        bits, level = EVERY_BIT, self.above
        while level is not None and level is not self.queue:
            bits &= ~level.blocked
            level = level.above
        return bits

    @property
    def remainder(self) -> Vector:
        """What a gang that has started is still owed (X16)."""
        if self.gang.size is None or not self.gang.started or self.gang.over:
            return ()
        if self.state not in application_fsm.BEFORE_RUNNING:
            return ()
        have = self.allocated_placeholder
        pairs = zip(self.gang.size, have, strict=False)
        return tuple([whole - held if whole > held else 0 for whole, held in pairs])

    # -- order -----------------------------------------------------------------------------------

    def make_rank(self) -> Key:
        """The application's place among those of its queue (5.5)."""
        urgency = -(self.priority if self.priority is not None else 0)
        queue = self.queue
        if not queue.fair:
            key: Key = (urgency, self.seq) if queue.sorts_priority else (self.seq, urgency)
        else:
            shares = self._shares()
            key = (
                (urgency, shares, self.seq) if queue.sorts_priority else (shares, urgency, self.seq)
            )
        self.rank = key
        return key

    def _shares(self) -> Key:
        """compareShares as a tuple: the largest share decides, then the next (5)."""
        guaranteed = self.queue.guaranteed_by_type
        shares = [
            exact_share(used, guaranteed.get(place) or 1)
            for place, used in enumerate(self.allocated)
            if used
        ]
        shares.sort(reverse=True)
        return tuple(shares)

    def best(self, feasible: int) -> Any:
        """As for every level; the children are groups of asks."""
        feasible &= ~self.blocked
        groups = self.few
        if groups is None:
            first = super().best(feasible)
        else:
            feasible_groups = [group for group in groups if group.demand & feasible]
            if len(feasible_groups) == 1:
                return feasible_groups[0]
            first = min(feasible_groups, key=lambda g: g.rank or g.make_rank(), default=None)
        if (
            feasible & self.demand_below & self.partition.shapes.late
        ):  # not always for a group's first ask
            return self._best_late(first, feasible)
        return first

    def first_two(self, feasible: int) -> tuple[AskGroup, Key | None]:
        """The group that is next for one of these bits, there must be one, and the rank of the group
        after it: ``None`` without one, and least of all if it had better be asked each time."""
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
        """The group whose ask is next in order, if not only the first ask of each matters. ``first``
        is the one whose first ask of all comes first."""
        if first is None or first.key_for(feasible) == first.rank:
            return first
        late = (group for group in self.groups.values() if group.demand & feasible)
        return min(late, key=lambda group: group.key_for(feasible))
