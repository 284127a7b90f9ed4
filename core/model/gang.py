"""The gang of an application: its task groups, its size and its progress (X16, G21, Q1)."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from quadriga.base.times import FOREVER, SECOND, spelled
from quadriga.core.config.properties import TIMEOUT_FROM
from quadriga.core.model.failed_preemptions import FailedPreemption
from quadriga.core.model.gather_budget import LENT, OVERRAN
from quadriga.core.model.run_times import GIVEN, Expected
from quadriga.core.resources.demand import Ranking
from quadriga.core.resources.units import choose, give
from quadriga.core.resources.vectors import Vector, covers
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.fsm.lifecycles import gang as gang_fsm

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import AskGroup
    from quadriga.core.model.failed_preemptions import HasRetries
    from quadriga.core.model.node import Node
    from quadriga.core.model.timer import Timer
    from quadriga.core.resources.locality import Rule
    from quadriga.core.resources.shapes import Shape
    from quadriga.core.resources.vectors import Totals


class TaskGroup:
    """Numbers of placeholders: ``count = pending + allocated + replaced + timed_out`` at all times (V4)."""

    __slots__ = (
        "_in_order",
        "_replaceable",
        "allocated",
        "count",
        "min_resource",
        "name",
        "pending",
        "placeholder_created_at",
        "replaced",
        "timed_out",
    )

    def __init__(self, name: str, min_resource: Vector) -> None:
        self.name = name
        self.min_resource = min_resource
        self.count = 0
        self.pending = 0
        self.allocated = 0
        self.replaced = 0
        self.timed_out = 0
        #: by the UUID of a real allocation, the instant (ns) at which the placeholder that it replaced
        #: was allocated (2.14)
        self.placeholder_created_at: dict[str, int] = {}
        self._replaceable: OrderedDict[Allocation, int] = OrderedDict()
        self._in_order = True

    @property
    def can_replace(self) -> bool:
        """Whether real asks of this group wait for a placeholder, which is either allocated and not being
        released, or still pending (G27, X36)."""
        return bool(self._replaceable) or self.pending > 0

    @property
    def available(self) -> OrderedDict[Allocation, int]:
        """The placeholders that are not being released, oldest ask first."""
        if not self._in_order:
            self._replaceable = OrderedDict(
                sorted(self._replaceable.items(), key=lambda item: item[1])
            )
            self._in_order = True
        return self._replaceable

    def landed(self, placeholder: Allocation) -> None:
        """Count a placeholder that was allocated or recovered."""
        self.pending -= 1
        self.allocated += 1
        self.offer(placeholder)

    def offer(self, placeholder: Allocation) -> None:
        """Make the placeholder available for replacement."""
        order = placeholder.ask.seq
        if self._replaceable and self._in_order:
            self._in_order = next(reversed(self._replaceable.values())) <= order
        self._replaceable[placeholder] = order

    def take(self, placeholder: Allocation) -> None:
        """Remove a placeholder that is being released or has ended."""
        self._replaceable.pop(placeholder, None)


#: What a waiting gang lacks: the quota of a queue, the limit of a user or a group, nodes with room for
#: all its members, some of its asks, or answers of the resource manager's predicates.
QUOTA: Final = "quota"
LIMIT: Final = "limit"
NODES: Final = "nodes"
ASKS: Final = "asks"
PREDICATES: Final = "predicates"

#: the tag of an application that can use fewer members than its gang has (Q5)
ELASTIC: Final = "gang.elastic"
#: the tag of an application with a placeholderAsk whose gang has no placeholders if it is ``none``: its
#: members are its real asks
PLACEHOLDERS: Final = "gang.placeholders"
NO_PLACEHOLDERS: Final = "no placeholders"
#: the tag of an application that bounds its wait for a first placeholder, as ``gang.wait.limit`` of its
#: queue does: a whole number of seconds above 0
WAIT_LIMIT: Final = "gang.wait.limit"
#: the tag of an application that says from when its placeholder timeout counts, as ``gang.timeout.from`` of
#: its queue does, and before it
TIMEOUT_TAG: Final = "gang.timeout.from"
#: at most this many nodes, applications and allocations of a planned start are named; the others are counted
_NAMED: Final = 5


def some(names: Sequence[str]) -> str:
    """The first few of them, and the number of the others."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


#: how often the budget of a gang that never gives up before is looked at (ns)
_PATIENCE: Final = 600 * SECOND
#: what was lent nodes may run for this time (ns) longer than expected
_GRACE: Final = 60 * SECOND
#: what has no planned start, or gave up one, is not protected again for at least this time (ns)
REST: Final = 600 * SECOND


def whole_seconds(text: str) -> int:
    """Return the time (ns) of a tag that is a whole number of seconds; 0 if it is unreadable."""
    if not (text.isascii() and text.isdecimal()) or len(text) > 9:
        return 0
    return int(text) * SECOND


class RoomWanted(NamedTuple):
    """Room for this number of asks of a shape: on all nodes, or, if it is to be ``gained``, what nodes have more
    than they had when the gang failed. ``mixed``: members of other shapes want the same nodes, so any larger
    amount on a node that has room for one counts."""

    shape: Shape
    number: int
    gained: bool
    mixed: bool = False


class Line(Ranking):
    """Gangs that differ in nothing that an attempt depends on, and wait for the same room (``key``). If the
    first of them does not fit the nodes, none does: it is tried for all."""

    __slots__ = ("key",)

    def __init__(self, key: tuple[Hashable, int, tuple[RoomWanted, ...]]) -> None:
        super().__init__()
        #: what they have in common, the members that lacked room in the last attempt, and the room that they
        #: wait for
        self.key = key


class PlannedStart:
    """When and where the protected gang of a partition is expected to start (Q9).

    It holds nothing: others use its nodes if they are expected to end before, or fit beside its members
    (``Node.beside``).
    """

    __slots__ = (
        "again",
        "app",
        "beside",
        "ends",
        "late_from",
        "missing",
        "needs",
        "promised",
        "sources",
        "stale",
        "start",
        "timer",
        "tried",
    )

    def __init__(
        self,
        app: Application,
        start: int,
        needs: dict[Node, Totals],
        ends: dict[Allocation, Expected],
    ) -> None:
        self.app = app
        #: instant (ns) from which all missing members fit, and that of the first plan
        self.start = self.promised = start
        #: what the members need of each node, by type, and what is left there from the start on
        self.needs = needs
        self.beside: dict[Node, Totals] = {}
        #: the expected ends of what runs on nodes that could be used, and by which estimates those have to end
        #: that the plan waits for: source -> number
        self.ends = ends
        self.sources: Counter[str] = Counter()
        #: the instant (ns) from which it may be made again, and that from which more has overrun that it may preempt
        self.again = 0
        self.late_from = FOREVER
        #: members that do not fit now
        self.missing = 0
        #: something has changed since it was made, and whether the gang was tried with this plan
        self.stale = False
        self.tried = False
        #: runs until the start
        self.timer: Timer | None = None

    @property
    def nodes(self) -> list[str]:
        """The names of its nodes, in order."""
        return sorted([node.node_id for node in self.needs])

    @property
    def users(self) -> list[str]:
        """The applications that use its nodes now, in order."""
        return sorted({each.ask.app.app_id for node in self.needs for each in node.allocations})

    def words(self, now: int) -> str:
        """When and where it is planned, by which estimates, and who uses its nodes until then."""
        said = f"its start is planned in {spelled(max(0, self.start - now))} on {some(self.nodes)}"
        if users := self.users:
            said += f", which {some(users)} use until then"
        by = ", ".join(f"{number} {source}" for source, number in sorted(self.sources.items()))
        said += f" (expected ends: {by})" if by else ""
        if late := len(self.app.partition.lent.overran(now)):
            said += f", {late} of those that were lent its nodes {'has' if late == 1 else 'have'} overrun"
            if self.app.queue.properties.gang_gather_preempt:
                said += f" and {'is' if late == 1 else 'are'} preempted when it could start then"
        return said

    @property
    def is_told(self) -> bool:
        """Whether it depends on told ends alone."""
        return self.sources.keys() <= GIVEN

    def lends(self, shape: Shape, now: int) -> bool:
        """Whether an allocation of the shape is expected to end before the start."""
        return 0 < shape.runtime <= self.start - now

    def note_lent(self, allocation: Allocation, now: int) -> None:
        """Remember that the allocation was lent its node, if it is one of the plan and was."""
        group = allocation.ask.group
        if (
            allocation.node.beside is not None
            and group is not None
            and self.lends(group.shape, now)
        ):
            self.app.partition.lent.add(allocation, group.shape.runtime)

    def took(self, node: Node, shape: Shape | None, now: int) -> None:
        """An allocation of the shape was placed on a node of the plan; without a shape the node has changed."""
        beside = node.beside
        if shape is None or beside is None:
            self.stale = True
        elif not self.lends(shape, now):
            for at, value in shape.need:
                beside[at] -= value
                self.stale = self.stale or beside[at] < 0  # it requires the node
            give(beside, choose(shape.shares, beside), -1)


class Lent:
    """The allocations that were placed on nodes of the planned start because they are expected to end before (Q9)."""

    __slots__ = ("counts", "runtimes")

    def __init__(self, counts: Counter[str]) -> None:
        #: how often allocations did each of `gather_budget.LENDING`; the budget counts there as well
        self.counts = counts
        #: for how long (ns) each is expected to run
        self.runtimes: dict[Allocation, int] = {}

    def add(self, allocation: Allocation, runtime: int) -> None:
        """The allocation was placed on a node of the planned start as it is expected to run for this time (ns)."""
        self.runtimes[allocation] = runtime
        self.counts[LENT] += 1

    def overran(self, now: int) -> list[Allocation]:
        """The allocations that run for a minute longer than what they were lent their nodes for."""
        return [each for each, late in self._late().items() if late <= now]

    def next_overrun(self, now: int) -> int:
        """The first instant (ns) after ``now`` at which more has overrun."""
        return min((late for late in self._late().values() if late > now), default=FOREVER)

    def _late(self) -> dict[Allocation, int]:
        """From when (ns) each has overrun."""
        return {each: each.created + time + _GRACE for each, time in self.runtimes.items()}

    def returned(self, allocation: Allocation, now: int) -> None:
        """The allocation, which was lent its node, has ended, or the start is planned no longer."""
        self.counts[OVERRAN] += now >= allocation.created + self.runtimes.pop(allocation) + _GRACE


class FailedGangPreemption(FailedPreemption):
    """An attempt that found no victims for all members of a gang. ``shape`` is that of one of them."""

    __slots__ = ("app",)

    def __init__(self, app: Application, shape: Shape, priority: int, since: int, why: str) -> None:
        super().__init__(app.queue, shape, priority, since, why)
        self.app = app

    @property
    def key(self) -> tuple[HasRetries, object]:
        return self.leaf, self.app

    def hold(self) -> None:
        """The gang is not tried again because of this."""
        self.app.gang.failed_preemption = self

    def let_go(self) -> None:
        """Try the gang again if it still waits for what victims may free."""
        self.app.gang.failed_preemption = None
        if self.app.gang.lacks in (NODES, QUOTA):
            self.app.gang.try_again()


class Gang:
    """Every application has one; ``size`` is ``None`` if the application is no gang."""

    __slots__ = (
        "announced",
        "entries",
        "failed_preemption",
        "given_up",
        "hard",
        "key",
        "lacks",
        "last_event",
        "line",
        "local",
        "lost",
        "missing",
        "start_before",
        "outstanding",
        "over",
        "partition",
        "preempted",
        "real_groups",
        "refused",
        "rests_until",
        "rule",
        "shortage",
        "size",
        "started",
        "state",
        "task_groups",
        "timeout",
        "timed_since",
        "timer",
        "timers",
        "too_large",
        "victims",
        "waiting_since",
        "without_placeholders",
    )

    def __init__(self, app: Application) -> None:
        # identity; there is no reference to the application, so that it is freed when it has ended
        self.key = app.app_id
        self.partition = app.partition

        # lifecycle
        self.state: gang_fsm.State = gang_fsm.QUEUED
        self.entries = 0
        #: timers that the lifecycle started
        self.timers: tuple[Timer, ...] = ()

        # size and style
        #: sum of all placeholders by type, as announced with the application, else of the placeholder
        #: asks so far (X35)
        self.size: Vector | None = None
        #: the size was announced with the application
        self.announced = False
        #: the style is Hard, not Soft
        self.hard = False
        #: it never has placeholders: its real asks are its members until they are placed
        self.without_placeholders = False
        #: what the application wants of the domains of its gang; ``local``: it or a task group wants something
        #: (Q13)
        self.rule: Rule | None = None
        self.local = False
        #: time (ns) after which placeholders expire; 0: never
        self.timeout = 0
        self.timer: Timer | None = None

        # progress
        #: task groups by name
        self.task_groups: dict[str, TaskGroup] = {}
        #: the waiting groups of its real asks, by task group, and those of them that no placeholder is large
        #: enough for (X37)
        self.real_groups: dict[str, dict[AskGroup, None]] = {}
        self.too_large: dict[AskGroup, None] = {}
        #: the first placeholder has been allocated; headroom is reserved for the rest (X16)
        self.started = False
        #: its members are real asks: the placeholders timed out softly, and the application is an
        #: ordinary one since (X9), or it never has placeholders
        self.over = False
        #: amounts of placeholders that the resource manager stopped (S5)
        self.lost: Vector = ()

        # the wait for places (Q2, Q3)
        #: what it lacked when it was last tried, and is not tried before that may have come back;
        #: empty: it is to be tried
        self.lacks = ""
        #: members to be placed at that time, and those of them for which no node had room
        self.outstanding = 0
        self.missing = 0
        #: what the best domain had for its members at that time, in words (Q13)
        self.shortage = ""
        #: the gangs with which it waits for room
        self.line: Line | None = None
        #: the planned start (ns) when its patience timer started
        self.start_before = 0
        #: instant (ns) since which it lacks nodes or asks; -1: it does not
        self.waiting_since = -1
        #: allocations were preempted for its members, which happens once (5.9); those of them on nodes
        #: that are reserved for it
        self.preempted = False
        self.victims: tuple[Allocation, ...] = ()
        #: the last attempt to preempt for its members, which failed and is not repeated yet
        self.failed_preemption: FailedGangPreemption | None = None
        #: it may not keep nodes before this instant (ns), because it gave its nodes back or cannot be
        #: gathered; and whether it was due while the budget was spent (Q10)
        self.rests_until = 0
        self.refused = False
        #: number of times that it gave its nodes back
        self.given_up = 0
        #: what it lacks as its last event record says; empty: there is none since it last waited
        self.last_event: tuple[object, ...] = ()
        #: instant (ns) of the first failed attempt from which its placeholder timeout counts; -1: of none
        self.timed_since = -1

    @property
    def timed_out(self) -> bool:
        """Whether its placeholders timed out softly (X9)."""
        return self.over and not self.without_placeholders

    @property
    def style(self) -> str:
        """What follows when its placeholders time out, in the words of the pages."""
        if self.without_placeholders:
            return NO_PLACEHOLDERS
        return "Hard" if self.hard else "Soft"

    @property
    def application(self) -> Application:
        """Its application, which has not ended."""
        return self.partition.applications[self.key]

    def forget(self, group: AskGroup) -> None:
        """No ask of the group waits any more."""
        name = group.kind.task_group
        if (own := self.real_groups.get(name)) and group in own:
            del own[group]
            if not own:
                del self.real_groups[name]
            self.too_large.pop(group, None)

    def rest(self, now: int) -> None:
        """Let others be protected first for as long as its patience, at least for ten minutes (Q10)."""
        self.rests_until = now + max(REST, self.patience)

    def try_again(self) -> None:
        """What it lacked may have come back: its asks wait to be placed again."""
        self.lacks = ""
        if self.line is not None:
            self.line.discard(self.application)
        self.partition.waiting.refresh(self.application)

    @property
    def gated(self) -> bool:
        """Whether a quota has no room for all of it (X16)."""
        return self.lacks == QUOTA

    # -- facts for the lifecycle -----------------------------------------------------------------

    @property
    def gained(self) -> bool:
        """Whether its start is nearer than when its patience timer started. Without patience it has gained as long
        as the budget lasts (Q10, D331)."""
        plan = self.partition.node_index.planned
        if plan is None:
            return False
        if plan.start < self.start_before + self.patience:
            return True
        patience = self.application.queue.properties.gang_gather_patience
        return not patience and not self.partition.gather_budget.is_spent

    @property
    def patience(self) -> int:
        """The time (ns) after which it gives up if it gained nothing."""
        return self.application.queue.properties.gang_gather_patience or _PATIENCE

    # -- admission (Q1) --------------------------------------------------------------------------

    @property
    def admission(self) -> str:
        """How it starts, ``atomic``, ``whole`` or ``incremental``: as gangs of its queue do (Q1), but always
        ``atomic`` without placeholders, and where domains matter."""
        if self.without_placeholders or self.local:
            return "atomic"
        return self.application.queue.properties.gang_admission or self.partition.gang_admission

    @property
    def elastic(self) -> bool:
        return self.application.tags.get(ELASTIC, "").lower() == "true"

    @property
    def may_gather_from(self) -> int:
        """The instant (ns) from which it may be protected, if it waits (Q9)."""
        after = self.application.queue.properties.gang_gather_after
        return max(self.waiting_since + after, self.rests_until)

    @property
    def timed_while_waiting(self) -> bool:
        """Whether its placeholder timeout counts from its first failed attempt (D328)."""
        app = self.application
        told = app.tags.get(TIMEOUT_TAG, "").lower()
        told = told if told in TIMEOUT_FROM else app.queue.properties.gang_timeout_from
        return told == "attempt"

    @property
    def wait_limit(self) -> int:
        """The time (ns) that it may wait for its first placeholder: the shorter one of the queue's and of
        its own. 0 if there is none, if it is no gang, or if it has no placeholders."""
        app = self.application
        if not app.is_gang or self.without_placeholders:
            return 0
        own = whole_seconds(app.tags.get(WAIT_LIMIT, ""))
        limits = (own, app.queue.properties.gang_wait_limit or 0)
        return min(filter(None, limits), default=0)

    def starts_whole(self, group: AskGroup) -> bool:
        """Whether the asks of this group are placed together with all others of the gang, or not at all.

        After a Soft timeout these are the application's ordinary asks, except its originator, until the
        first of them runs (Q5). A gang without placeholders has no originator.
        """
        if self.state not in gang_fsm.WAITS or self.admission != "atomic":
            return False
        app = self.application
        if self.without_placeholders:
            return app.state in application_fsm.SERVED
        if self.over:
            if app.state not in application_fsm.GATHERS or self.elastic or self.timed_while_waiting:
                return False
            if group.kind.placeholder or not group.asks or group.head.terms.originator:
                return False
        elif not group.kind.placeholder or app.state not in application_fsm.BEFORE_RUNNING:
            return False
        return True

    @property
    def members(self) -> list[AskGroup]:
        """The groups of asks that are placed together."""
        return [
            group
            for group in self.application.groups.values()
            if group.asks
            and group.kind.placeholder is not self.over
            and not (self.timed_out and group.head.terms.originator)
        ]

    @property
    def has_all_asks(self) -> bool:
        """Whether the asks that have arrived make up the gang (G24). A gang of unknown size is what has
        arrived (X35)."""
        if not self.announced or self.size is None:
            return True
        app = self.application
        have = list(app.allocated if self.over else app.gathered)
        have.extend([0] * (len(self.size) - len(have)))
        for group in self.members:
            pending = group.pending
            for at, value in group.shape.need:
                if at < len(have):
                    have[at] += value * pending
        return covers(have, self.size)
