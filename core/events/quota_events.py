"""Who is told to wait, and who no longer has to: the records of quotas and limits (2.16).

They are made when that changes, not as often as it is found out. A round in which nothing more can be
decided has looked at everything that waits; then ``look`` compares what each ask and application was
told last with what is true now. Asks of one shape whose applications stand in the same leaf under the
same limits are in one *company*: what a quota does to one of them it does to all. So the work of a
look follows what has changed: whatever is new, and the companies of the shapes that a quota has
stopped or let go or that no node has room for, as far as what they share is short of room now and was
not before, or the other way round. Only what somebody holds there can have made the difference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.core.events import producers
from quadriga.core.model.demand import EVERY_BIT
from quadriga.core.model.queue import LeafQueue
from quadriga.core.scheduling import limits
from quadriga.fsm import application as app_life

if TYPE_CHECKING:
    from quadriga.core.events.system import EventLog
    from quadriga.core.model.account import Ledger
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask, AskGroup
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.queue import Queue
    from quadriga.core.model.shapes import Shape

__all__ = ["Notices"]

#: what asks and applications have been told: bits of their ``told``
_QUEUE, _LIMIT = 1, 2

#: so many closed places may be remembered that are not used any more
_FEW = 256

_Key = tuple["LeafQueue", tuple["Ledger", ...]]


class Company:
    """Groups of asks that a quota stops together: ``short`` a queue's, ``over`` a limit.

    ``serial`` is its place in the order in which companies became known.
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
    def places(self) -> tuple[Queue | Ledger, ...]:
        """Where there has to be room for it."""
        leaf, ledgers = self.key
        return (*leaf.lineage, *ledgers)

    def assess(self) -> bool:
        """Look at the quotas again. Whether anything is different now."""
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

    def knows(self, ask: Ask) -> bool:
        """Whether the ask has been told what holds for its company now."""
        return ask.told & _LIMIT != 0 if self.over else ask.told == (_QUEUE if self.short else 0)


class _Place:
    """A queue or ledger, and what it was to one shape when that was last asked."""

    __slots__ = ("companies", "short")

    def __init__(self, *, short: bool) -> None:
        self.short = short
        self.companies: dict[Company, None] = {}


class _Watch:
    """The companies of one shape, and what must have room for them.

    ``touched`` are the places where somebody has got or given back something since they were asked.
    """

    __slots__ = ("companies", "places", "shape", "touched")

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.companies: dict[_Key, Company] = {}
        self.places: dict[Queue | Ledger, _Place] = {}
        self.touched: dict[Queue | Ledger, None] = {}

    def add(self, company: Company) -> None:
        self.companies[company.key] = company
        for where in company.places:
            place = self.places.get(where)
            if place is None:
                place = self.places[where] = _Place(short=where.is_short(self.shape))
            place.companies[company] = None

    def drop(self, company: Company) -> None:
        del self.companies[company.key]
        for where in company.places:
            companies = self.places[where].companies
            del companies[company]
            if not companies:
                del self.places[where]

    def turned(self) -> list[Company]:
        """The companies for which some place has become short of room, or is no longer."""
        found: dict[Company, None] = {}
        places, shape = self.places, self.shape
        for where in self.touched:
            place = places.get(where)
            if place is not None and where.is_short(shape) is not place.short:
                place.short = not place.short
                found.update(place.companies)
        self.touched.clear()
        return sorted(found, key=lambda company: company.serial)


class Notices:
    """What those who wait in one partition were told.

    Others say what may have changed since the last look: ``fresh`` groups (with new asks, or of an
    application that is served differently), ``shapes`` that a quota stopped or let go, applications
    that ``hold`` more or less, ``queues`` whose quota is another, ``leaves`` and ``ledgers`` in which
    applications began or ceased to count.
    """

    __slots__ = (
        "_closed",
        "_closed_limit",
        "_home",
        "_log",
        "_partition",
        "_rooms",
        "_serial",
        "_watches",
        "fresh",
        "hold",
        "leaves",
        "ledgers",
        "queues",
        "shapes",
    )

    def __init__(self, partition: Partition, log: EventLog) -> None:
        self._partition = partition
        self._log = log
        self._watches: dict[Shape, _Watch] = {}
        self._serial = 0
        self._home: dict[AskGroup, Company] = {}
        #: what quotas leave in each leaf, during one look
        self._rooms: dict[LeafQueue, dict[int, int]] = {}
        #: leaves and ledgers that had no place for another application
        self._closed: dict[LeafQueue | Ledger, None] = {}
        self._closed_limit = _FEW
        self.fresh: dict[AskGroup, None] = {}
        self.shapes: dict[Shape, None] = {}
        self.hold: dict[Application, None] = {}
        self.queues: dict[Queue, None] = {}
        self.leaves: dict[LeafQueue, None] = {}
        self.ledgers: dict[Ledger, None] = {}
        for app in partition.applications.values():
            self.fresh.update(dict.fromkeys(app.groups.values()))

    def look(self) -> None:
        """Nothing more can be decided now: tell those for whom something is different."""
        self._rooms.clear()
        if self.leaves or self.ledgers:
            self._look_at_places()
        fresh, self.fresh = self.fresh, {}
        for group in fresh:
            if group.asks:
                self._tell_app(group.app)
                company = self._join(group)
                if not company.assess():
                    self._tell_group(group, company)
                else:
                    self._tell_company(company)
        touched = self._touched()
        shapes, self.shapes = self.shapes, {}
        able = self._partition.node_index.feasible
        for shape, watch in self._watches.items():
            watch.touched.update(touched)
            if watch.touched and (shape in shapes or not able & shape.allocate):
                for company in watch.turned():
                    if company.assess():
                        self._tell_company(company)

    def _touched(self) -> dict[Queue | Ledger, None]:
        """Where somebody has got or given back something, or where the quota is another."""
        touched: dict[Queue | Ledger, None] = dict.fromkeys(self.queues)
        for app in self.hold:
            touched.update(dict.fromkeys(app.queue.lineage))
            touched.update(dict.fromkeys(app.limiting))
        self.hold.clear()
        self.queues.clear()
        return touched

    def served(self, ask: Ask) -> None:
        """The ask is about to be allocated: whatever kept it waiting does so no longer."""
        app = ask.app
        if app.told:
            self._change_app(app, within=True, admitted=True)
        if ask.told & _LIMIT:
            producers.within_user_quota(self._log, ask)
        if ask.told & _QUEUE:
            producers.within_queue_quota(self._log, ask)
        ask.told = 0
        if ask.pending > 1 and ask.group is not None:  # its next repeat may have to wait again
            self.fresh[ask.group] = None

    def drop(self, group: AskGroup) -> None:
        """No ask waits in the group any more."""
        self.fresh.pop(group, None)
        company = self._home.pop(group, None)
        if company is None:
            return
        del company.groups[group]
        if not company.groups:
            watch = self._watches[company.shape]
            watch.drop(company)
            if not watch.companies:
                del self._watches[company.shape]

    def _join(self, group: AskGroup) -> Company:
        """The company of the group, which may be another since its application's limits changed."""
        leaf = group.app.queue
        assert isinstance(leaf, LeafQueue)
        key = (leaf, group.app.limiting)
        company = self._home.get(group)
        if company is not None and company.key == key:
            return company
        self.drop(group)
        watch = self._watches.get(group.shape)
        if watch is None:
            watch = self._watches[group.shape] = _Watch(group.shape)
        company = watch.companies.get(key)
        if company is None:
            self._serial += 1
            company = Company(key, group.shape, self._serial)
            watch.add(company)
        company.groups[group] = None
        self._home[group] = company
        return company

    # -- asks ------------------------------------------------------------------------------------

    def _tell_company(self, company: Company) -> None:
        for group in company.groups:
            self._tell_group(group, company)

    def _tell_group(self, group: AskGroup, company: Company) -> None:
        """Asks before one that knows how things are know it too: only what is new comes later. The
        first one may have been served since, and wait with what is left of it."""
        app = group.app
        if not group.bits or app.blocked == EVERY_BIT or app.shut_out:
            return  # nobody looks at its quota now
        new = []
        for ask in reversed(group.asks.values()):
            if company.knows(ask):
                break
            new.append(ask)
        head = group.head
        if not company.knows(head) and new[-1:] != [head]:
            new.append(head)
        for ask in reversed(new):
            self._tell(ask, company)

    def _tell(self, ask: Ask, company: Company) -> None:
        """A limit is asked first: an ask that exceeds it is told nothing of its queue (5.6)."""
        if company.over:
            producers.short_of_user_quota(self._log, ask, _left_by(company.key[1]))
            ask.told |= _LIMIT
            return
        if ask.told & _LIMIT:
            producers.within_user_quota(self._log, ask)
        if company.short and not ask.told & _QUEUE:
            producers.short_of_queue_quota(self._log, ask, self._left_in(company.key[0], ask))
        elif ask.told & _QUEUE and not company.short:
            producers.within_queue_quota(self._log, ask)
        ask.told = _QUEUE if company.short else 0

    def _left_in(self, leaf: LeafQueue, ask: Ask) -> dict[int, int]:
        """What all quotas on the path leave. Of types that are not asked for nothing may be left
        because no node has them, which is no news."""
        room = self._rooms.get(leaf)
        if room is None:
            room = self._rooms[leaf] = leaf.headroom()
        vector = ask.vector
        return {at: left for at, left in room.items() if left or (at < len(vector) and vector[at])}

    # -- applications ----------------------------------------------------------------------------

    def _look_at_places(self) -> None:
        """Where applications may start that could not, or the other way round, look at all asks."""
        leaves, self.leaves = self.leaves, {}
        for leaf in leaves:
            if self._flipped(leaf, all(queue.admits() for queue in leaf.lineage)):
                for app in leaf.apps.values():
                    self.fresh.update(dict.fromkeys(app.groups.values()))
        ledgers, self.ledgers = self.ledgers, {}
        for ledger in ledgers:
            if self._flipped(ledger, ledger.admits()):
                for app in ledger.account.applications:
                    self.fresh.update(dict.fromkeys(app.groups.values()))

    def _flipped(self, place: LeafQueue | Ledger, admits: bool) -> bool:
        if admits is not (place in self._closed):
            return False
        if admits:
            del self._closed[place]
        else:
            self._closed[place] = None
            if len(self._closed) > self._closed_limit:
                self._forget_unused()
        return True

    def _forget_unused(self) -> None:
        """Leafs without applications, and ledgers that nobody writes to, may be gone for good."""
        closed = self._closed
        self._closed = {
            place: None
            for place in closed
            if (place.apps if isinstance(place, LeafQueue) else place.bound)
        }
        self._closed_limit = 2 * len(self._closed) + _FEW

    def _tell_app(self, app: Application) -> None:
        """Only an application that does not run yet needs a place."""
        waits = app.state in app_life.GATHERS and app not in app.queue.admitted
        admitted = not waits or all(queue.admits() for queue in app.queue.lineage)
        within = not waits or limits.full(app) is None
        self._change_app(app, within=within, admitted=admitted)

    def _change_app(self, app: Application, *, within: bool, admitted: bool) -> None:
        if bool(app.told & _QUEUE) is admitted:
            producers.application_runnable(self._log, app, admitted)
        if bool(app.told & _LIMIT) is within:
            producers.application_within_limits(self._log, app, within)
        app.told = (0 if admitted else _QUEUE) | (0 if within else _LIMIT)


def _left_by(ledgers: tuple[Ledger, ...]) -> dict[int, int]:
    room: dict[int, int] = {}
    for ledger in ledgers:
        for place, left in ledger.headroom().items():
            room[place] = min(left, room.get(place, left))
    return room
