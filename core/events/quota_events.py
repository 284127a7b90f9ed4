"""Quota events: records of asks and applications that wait for a quota or a limit (2.16).

A quota event is made when the answer changes, not whenever the question is asked. At the end of a
round in which nothing more can be decided, ``PartitionQuotaEvents.update`` compares the last quota event of each
ask and application with what is true now.

Asks of one shape whose applications are in the same leaf, under the same limits, form a *quota cohort*:
a quota has room for all of them or for none. So the work of an update follows what has changed
(``model.quota_changes``): it looks at new groups, and at the cohorts of a shape that a quota has stopped
or let go, or that no node has room for. Of those it looks only at cohorts below a queue or a limit that
was short of room and no longer is, or the other way round. That can only be one where an application
holds another amount now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quadriga.core.events import producers
from quadriga.core.model.account import QuotaChanges
from quadriga.core.model.queue import LeafQueue, Queue
from quadriga.core.ordering.lanes import full
from quadriga.core.resources.demand import EVERY_BIT
from quadriga.fsm.lifecycles import application as application_fsm

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quadriga.core.events.system import EventLog
    from quadriga.core.model.account import Ledger
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask, AskGroup
    from quadriga.core.model.partition import Partition
    from quadriga.core.resources.shapes import Shape

#: bits of ``last_quota_event``: stopped by a queue, stopped by a limit of the user or the group
_QUEUE, _LIMIT = 1, 2

#: at most this many full leaves and ledgers are remembered before unused ones are removed
_FEW: Final = 256

#: after this many updates all watches are told what was touched
_MANY_UPDATES: Final = 64

_Key = tuple["LeafQueue", tuple["Ledger", ...]]


# -- cohorts ---------------------------------------------------------------------------------------


class Cohort:
    """A quota cohort: ``short`` of a queue's quota, ``over`` a limit.

    ``serial`` numbers the cohorts of a partition in the order in which they were made.
    """

    __slots__ = ("groups", "key", "over", "serial", "shape", "short")

    def __init__(self, key: _Key, shape: Shape, serial: int) -> None:
        self.key = key
        self.shape = shape
        self.serial = serial
        self.groups: dict[AskGroup, None] = {}
        self.short = False
        self.over = False

    @property
    def quotas(self) -> tuple[Queue | Ledger, ...]:
        """The queues and ledgers that must have room for it."""
        leaf, ledgers = self.key
        return (*leaf.lineage, *ledgers)

    def assess(self) -> bool:
        """Look at the quotas again. Return True if ``short`` or ``over`` has changed."""
        leaf, ledgers = self.key
        shape = self.shape
        over = short = False
        for ledger in ledgers:
            if ledger.is_short(shape):
                over = True
                break
        for queue in leaf.lineage:
            if queue.is_short(shape):
                short = True
                break
        changed = over is not self.over or short is not self.short
        self.over, self.short = over, short
        return changed

    def is_up_to_date(self, ask: Ask) -> bool:
        """Whether the last quota event of the ask says what is true of the cohort now."""
        last = ask.last_quota_event
        return last & _LIMIT != 0 if self.over else last == (_QUEUE if self.short else 0)


class _Room:
    """Whether a queue or ledger was short of room for one shape when it was last asked."""

    __slots__ = ("cohorts", "short")

    def __init__(self, *, short: bool) -> None:
        self.short = short
        self.cohorts: dict[Cohort, None] = {}


class _ShapeWatch:
    """The cohorts of one shape, and the queues and ledgers that must have room for them.

    ``touched`` are those in which an application holds another amount since they were last asked, without
    those that ``PartitionQuotaEvents`` has noted after ``noted`` of its looks. ``serial`` is its place in the
    order of all.
    """

    __slots__ = ("cohorts", "noted", "rooms", "serial", "shape", "touched")

    def __init__(self, shape: Shape, serial: int, noted: int) -> None:
        self.shape = shape
        self.serial = serial
        self.noted = noted
        self.cohorts: dict[_Key, Cohort] = {}
        self.rooms: dict[Queue | Ledger, _Room] = {}
        self.touched: dict[Queue | Ledger, None] = {}

    def add(self, cohort: Cohort) -> None:
        self.cohorts[cohort.key] = cohort
        for quota in cohort.quotas:
            room = self.rooms.get(quota)
            if room is None:
                room = self.rooms[quota] = _Room(short=quota.is_short(self.shape))
            room.cohorts[cohort] = None

    def remove(self, cohort: Cohort) -> None:
        del self.cohorts[cohort.key]
        for quota in cohort.quotas:
            cohorts = self.rooms[quota].cohorts
            del cohorts[cohort]
            if not cohorts:
                del self.rooms[quota]

    def changed(self) -> list[Cohort]:
        """The cohorts for which some queue or ledger has become short of room, or no longer is."""
        found: dict[Cohort, None] = {}
        rooms, shape = self.rooms, self.shape
        for quota in self.touched:
            room = rooms.get(quota)
            if room is not None and quota.is_short(shape) is not room.short:
                room.short = not room.short
                found.update(room.cohorts)
        self.touched.clear()
        return sorted(found, key=lambda cohort: cohort.serial)


class PartitionQuotaEvents:
    """Makes the quota events of one partition from its ``changes``."""

    __slots__ = (
        "_changes",
        "_cohort_of",
        "_full",
        "_full_limit",
        "_headroom",
        "_log",
        "_partition",
        "_serial",
        "_touched_lately",
        "_watched",
        "_watches",
    )

    def __init__(self, partition: Partition, changes: QuotaChanges, log: EventLog) -> None:
        self._partition = partition
        self._changes = changes
        self._log = log
        self._watches: dict[Shape, _ShapeWatch] = {}
        #: their bits for a node now (``Shape.allocate``)
        self._watched = 0
        #: what was touched in each of the last updates
        self._touched_lately: list[dict[Queue | Ledger, None]] = []
        #: the number of cohorts so far
        self._serial = 0
        self._cohort_of: dict[AskGroup, Cohort] = {}
        #: what quotas leave in each leaf, during one update
        self._headroom: dict[LeafQueue, dict[int, int]] = {}
        #: leaves and ledgers that admit no further application
        self._full: dict[LeafQueue | Ledger, None] = {}
        self._full_limit = _FEW
        for app in partition.applications.values():
            changes.groups.update(dict.fromkeys(app.groups.values()))

    def update(self) -> None:
        """Make the records of everything that is different from its last quota event."""
        changes = self._changes
        self._headroom.clear()
        if changes.leaves or changes.ledgers:
            self._check_admission()
        groups, changes.groups = changes.groups, {}
        for group in groups:
            if group.asks:
                self._record_application(group.app)
                cohort = self._join(group)
                if not cohort.assess():
                    self._record_group(group, cohort)
                else:
                    self._record_cohort(cohort)
        touched = self._touched()
        shapes, changes.shapes = changes.shapes, {}
        infeasible = self._watched & ~self._partition.node_index.feasible
        everywhere, changes.capacity = changes.capacity, False
        if touched:
            self._touched_lately.append(touched)
        if everywhere or len(self._touched_lately) > _MANY_UPDATES:
            for watch in self._watches.values():
                self._catch_up(watch)
                if everywhere:
                    watch.touched.update({q: None for q in watch.rooms if isinstance(q, Queue)})
                watch.noted = 0
            self._touched_lately.clear()
        for watch in self._to_ask(shapes, infeasible):
            self._catch_up(watch)
            for cohort in watch.changed():
                if cohort.assess():
                    self._record_cohort(cohort)

    def _catch_up(self, watch: _ShapeWatch) -> None:
        for touched in self._touched_lately[watch.noted :]:
            watch.touched.update(touched)
        watch.noted = len(self._touched_lately)

    def _to_ask(self, shapes: Iterable[Shape], infeasible: int) -> list[_ShapeWatch]:
        """The watches of these shapes, and of those that no node has room for, in their order."""
        watches = self._watches
        if infeasible:
            marked = set(shapes)
            return [
                watch
                for shape, watch in watches.items()
                if infeasible & shape.allocate or shape in marked
            ]
        found = [watches[shape] for shape in shapes if shape in watches]
        return sorted(found, key=lambda watch: watch.serial)

    def _touched(self) -> dict[Queue | Ledger, None]:
        """Queues and ledgers in which an application holds another amount, or with another quota."""
        changes = self._changes
        touched: dict[Queue | Ledger, None] = dict.fromkeys(changes.queues)
        for app in changes.applications:
            touched.update(dict.fromkeys(app.queue.lineage))
            touched.update(dict.fromkeys(app.limiting))
        changes.applications.clear()
        changes.queues.clear()
        return touched

    def served(self, ask: Ask) -> None:
        """The ask is about to be allocated: no quota stops it any longer."""
        app = ask.app
        if app.last_quota_event:
            self._change_application(app, within=True, admitted=True)
        if ask.last_quota_event & _LIMIT:
            producers.within_user_quota(self._log, ask)
        if ask.last_quota_event & _QUEUE:
            producers.within_queue_quota(self._log, ask)
        ask.last_quota_event = 0
        if ask.pending > 1 and ask.group is not None:  # its next repeat may have to wait again
            self._changes.groups[ask.group] = None

    def remove(self, group: AskGroup) -> None:
        """No ask waits in the group any more."""
        self._changes.groups.pop(group, None)
        cohort = self._cohort_of.pop(group, None)
        if cohort is None:
            return
        del cohort.groups[group]
        if not cohort.groups:
            watch = self._watches[cohort.shape]
            watch.remove(cohort)
            if not watch.cohorts:
                del self._watches[cohort.shape]
                self._watched &= ~cohort.shape.allocate

    def _join(self, group: AskGroup) -> Cohort:
        """The cohort of the group. It is another one if the limits of its application have changed."""
        leaf = group.app.queue
        assert isinstance(leaf, LeafQueue)
        key = (leaf, group.app.limiting)
        cohort = self._cohort_of.get(group)
        if cohort is not None and cohort.key == key:
            return cohort
        self.remove(group)
        watch = self._watches.get(group.shape)
        if watch is None:
            self._serial += 1
            watch = _ShapeWatch(group.shape, self._serial, len(self._touched_lately))
            self._watches[group.shape] = watch
            self._watched |= group.shape.allocate
        cohort = watch.cohorts.get(key)
        if cohort is None:
            self._serial += 1
            cohort = Cohort(key, group.shape, self._serial)
            watch.add(cohort)
        cohort.groups[group] = None
        self._cohort_of[group] = cohort
        return cohort

    # -- asks ------------------------------------------------------------------------------------

    def _record_cohort(self, cohort: Cohort) -> None:
        for group in cohort.groups:
            self._record_group(group, cohort)

    def _record_group(self, group: AskGroup, cohort: Cohort) -> None:
        """Records of the group's asks. Asks are new at the end of the group: those before one that is up
        to date are so too. But the first ask may have been served in part, and its rest waits again."""
        app = group.app
        if not group.demand or app.blocked == EVERY_BIT or app.not_admitted:
            return  # its asks are not tried now, whatever its quota is
        new = []
        for ask in reversed(group.asks.values()):
            if cohort.is_up_to_date(ask):
                break
            new.append(ask)
        head = group.head
        if not cohort.is_up_to_date(head) and new[-1:] != [head]:
            new.append(head)
        for ask in reversed(new):
            self._record_ask(ask, cohort)

    def _record_ask(self, ask: Ask, cohort: Cohort) -> None:
        """Limits come first: an ask above a limit gets no record of its queue's quota (5.6)."""
        if cohort.over:
            producers.short_of_user_quota(self._log, ask, _left_by(cohort.key[1]))
            ask.last_quota_event |= _LIMIT
            return
        if ask.last_quota_event & _LIMIT:
            producers.within_user_quota(self._log, ask)
        if cohort.short and not ask.last_quota_event & _QUEUE:
            producers.short_of_queue_quota(self._log, ask, self._left_in(cohort.key[0], ask))
        elif ask.last_quota_event & _QUEUE and not cohort.short:
            producers.within_queue_quota(self._log, ask)
        ask.last_quota_event = _QUEUE if cohort.short else 0

    def _left_in(self, leaf: LeafQueue, ask: Ask) -> dict[int, int]:
        """What all quotas on the path leave. A type of which nothing is left, and which the ask does not
        ask for, is left out: it may be that no node has any of it."""
        headroom = self._headroom.get(leaf)
        if headroom is None:
            headroom = self._headroom[leaf] = leaf.headroom()
        vector = ask.vector
        return {
            at: left for at, left in headroom.items() if left or (at < len(vector) and vector[at])
        }

    # -- applications ----------------------------------------------------------------------------

    def _check_admission(self) -> None:
        """Where applications can start now and could not before, or the other way round, look at all
        groups of asks."""
        changes = self._changes
        leaves, changes.leaves = changes.leaves, {}
        for leaf in leaves:
            if self._admission_changed(leaf, all(queue.admits() for queue in leaf.lineage)):
                for app in leaf.apps.values():
                    changes.groups.update(dict.fromkeys(app.groups.values()))
        ledgers, changes.ledgers = changes.ledgers, {}
        for ledger in ledgers:
            if self._admission_changed(ledger, ledger.admits()):
                for app in ledger.account.applications:
                    changes.groups.update(dict.fromkeys(app.groups.values()))

    def _admission_changed(self, quota: LeafQueue | Ledger, admits: bool) -> bool:
        if admits is not (quota in self._full):
            return False
        if admits:
            del self._full[quota]
        else:
            self._full[quota] = None
            if len(self._full) > self._full_limit:
                self._remove_unused()
        return True

    def _remove_unused(self) -> None:
        """Leaves without applications, and ledgers of no application, may never be asked again."""
        self._full = {
            quota: None
            for quota in self._full
            if (quota.apps if isinstance(quota, LeafQueue) else quota.bound)
        }
        self._full_limit = 2 * len(self._full) + _FEW

    def _record_application(self, app: Application) -> None:
        """Only an application that does not run yet has to be admitted."""
        waits = app.state in application_fsm.GATHERS and app not in app.queue.admitted
        admitted = not waits or all(queue.admits() for queue in app.queue.lineage)
        within = not waits or full(app) is None
        self._change_application(app, within=within, admitted=admitted)

    def _change_application(self, app: Application, *, within: bool, admitted: bool) -> None:
        if bool(app.last_quota_event & _QUEUE) is admitted:
            producers.application_runnable(self._log, app, admitted)
        if bool(app.last_quota_event & _LIMIT) is within:
            producers.application_within_limits(self._log, app, within)
        app.last_quota_event = (0 if admitted else _QUEUE) | (0 if within else _LIMIT)


class QuotaEvents:
    """Makes the quota events of all partitions of one resource manager."""

    __slots__ = ("_log", "partitions")

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self.partitions: dict[Partition, PartitionQuotaEvents] = {}

    def watch(self, partition: Partition) -> None:
        """Let the entities of the partition mark what has changed, and make records of it."""
        partition.quota_changes = changes = QuotaChanges()
        self.partitions[partition] = PartitionQuotaEvents(partition, changes, self._log)

    def unwatch(self, partition: Partition) -> None:
        partition.quota_changes = None
        del self.partitions[partition]

    def ask_served(self, ask: Ask) -> None:
        self.partitions[ask.app.partition].served(ask)

    def group_emptied(self, group: AskGroup) -> None:
        self.partitions[group.app.partition].remove(group)

    def round_ended(self, partition: Partition) -> None:
        self.partitions[partition].update()


def _left_by(ledgers: tuple[Ledger, ...]) -> dict[int, int]:
    headroom: dict[int, int] = {}
    for ledger in ledgers:
        for at, left in ledger.headroom().items():
            headroom[at] = min(left, headroom.get(at, left))
    return headroom
