"""A partition: nodes, the queue tree above the applications, and who waits for what in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from quadriga.core.config import PartitionConfig
from quadriga.core.events import producers
from quadriga.core.model.ask import Ask, AskGroup
from quadriga.core.model.demand import EVERY_BIT
from quadriga.core.model.failed_preemptions import FailedPreemptions
from quadriga.core.model.node_order import NodeOrder
from quadriga.core.model.queue import LeafQueue, ParentQueue, Queue
from quadriga.core.model.resources import Book, Registry, Vector
from quadriga.core.model.retries import ReservationsToRetry
from quadriga.core.model.serials import Serials
from quadriga.core.model.shapes import Shape
from quadriga.core.ordering.lanes import LimitLane, lane_for
from quadriga.fsm import application as app_life
from quadriga.fsm import queue as life

if TYPE_CHECKING:
    from quadriga.core.events.quota_events import Notices
    from quadriga.core.model.account import Account, Ledger
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.application import Application
    from quadriga.core.model.ended import EndedApplication
    from quadriga.core.model.foreign import ForeignAllocation
    from quadriga.core.model.node import Node
    from quadriga.core.model.reservation import Reservation
    from quadriga.core.model.resource_manager import ResourceManager
    from quadriga.core.model.timer import Timer

__all__ = ["Partition"]


class Partition:
    """``name`` is as the resource manager says it; ``key`` is ``[rmID]name`` (2.19)."""

    __slots__ = (
        "applications",
        "arrivals",
        "aside",
        "backs_off",
        "node_index",
        "capacity",
        "changed",
        "changes",
        "clean_timer",
        "config",
        "dropped",
        "ended",
        "entries",
        "exhausted_at",
        "failed_nodes",
        "failed_preemptions",
        "foreign",
        "give_up_timer",
        "groups",
        "inspect_timer",
        "inspected",
        "inspection",
        "interrupted",
        "left_out",
        "name",
        "news",
        "nodes",
        "notices",
        "outgrown",
        "preemption_attempts",
        "read",
        "refused",
        "registry",
        "reservations",
        "rm",
        "root",
        "serials",
        "shapes",
        "short_ledgers",
        "spelled",
        "stalled",
        "skip_seen",
        "skip_timer",
        "skip_walk",
        "state",
        "stranded",
        "submissions",
        "undecided",
        "unhinted",
        "users",
        "woken",
    )

    def __init__(self, rm: ResourceManager, config: PartitionConfig, node_order: NodeOrder) -> None:
        self.rm = rm
        self.name = config.name
        #: as configured at present
        self.config = config
        self.state: life.State = life.ACTIVE
        self.entries = 0
        #: when it entered its state (ns)
        self.changed = 0
        #: its resource manager started anew or went away (I7)
        self.dropped = False
        self.registry = Registry()
        #: vectors of asks by how they came: reading a map costs more than the rest of an ask
        self.read: dict[bytes, Vector] = {}
        #: responses with what is the same for asks that want the same (``outbox``)
        self.spelled: dict[tuple[Vector, int, str, bool], bytes] = {}
        self.nodes: dict[str, Node] = {}
        #: ids of nodes that could not be taken up with what runs on them, until they are (2.12)
        self.failed_nodes: dict[str, None] = {}
        #: what others use of the nodes, by allocation key (X19)
        self.foreign: dict[str, ForeignAllocation] = {}
        self.applications: dict[str, Application] = {}
        #: ended applications until they expire, in the order of their end
        self.ended: dict[EndedApplication, None] = {}
        self.node_index = node_order
        self.shapes = node_order.shapes
        #: the sum of all nodes' capacities
        self.capacity: Book = []
        self.reservations: dict[Reservation, None] = {}
        #: reservations that may have become allocations since they were last tried
        self.woken = ReservationsToRetry()
        #: woken ones that only a quota, or a place under maxapplications, held back
        self.stalled: dict[Reservation, None] = {}
        #: asks, and reservations, that predicates refused, until the next call of ``schedule``
        self.aside: dict[Ask, None] = {}
        self.refused: dict[Reservation, None] = {}
        #: groups of asks larger than any placeholder that they could take over (X37), and parked asks'
        #: allocations whose placeholder is gone and for which no open node has room (X39); each with
        #: the version that it was last looked at
        self.outgrown: dict[AskGroup, int] = {}
        self.stranded: dict[Allocation, int] = {}
        #: what the present round has left out, to be brought back at its end
        self.left_out: list[Callable[[], None]] = []
        #: number of preemption attempts in the present round, by leaf (2.8)
        self.preemption_attempts: dict[Queue, int] = {}
        self.failed_preemptions = FailedPreemptions()
        #: how often nodes and allocations have changed
        self.changes = 0
        #: the last call for decisions ended with its limit: there are more to make
        self.interrupted = False
        #: the same, whichever way they are made: there may be asks that no round has tried yet
        self.undecided = False
        #: some queue leaves applications alone after asks that found no place (2.2.2)
        self.backs_off = False
        #: asks whose resource manager has not been told that nothing fits (5.11)
        self.unhinted: dict[Ask, None] = {}
        #: what they were told in event records; ``None`` while events are not tracked
        self.notices: Notices | None = None
        self.inspect_timer: object | None = None
        #: the walk that tells what stops asks (X43): its timer, which applications are left of it, and
        #: the version when it began
        self.skip_timer: object | None = None
        self.skip_walk: Iterator[Application] | None = None
        self.skip_seen = -1
        #: the look at them that is under way
        self.inspection: Iterator[None] | None = None
        #: runs while there is a queue for the cleaner
        self.clean_timer: Timer | None = None
        #: runs while nodes are reserved that may be given up
        self.give_up_timer: Timer | None = None
        #: grows whenever an ask may newly deserve the hint, and what it was at the last inspection
        self.news = 0
        self.inspected = -1
        #: asks that arrived before this number were all looked at in vain
        self.exhausted_at = 0
        self.arrivals = 0
        self.submissions = 0
        #: the numbers in the UUIDs of applications that have ended (X46)
        self.serials = rm.serials.setdefault(config.name, Serials())
        #: who holds what: users, and the groups that applications count for (2.5)
        self.users: dict[str, Account] = {}
        self.groups: dict[str, Account] = {}
        #: ledgers that have no room for a shape
        self.short_ledgers: dict[Shape, dict[Ledger, None]] = {}
        self.root: Queue = ParentQueue(self, None, "root")
        self.registry.on_new_type = self._lengthen
        self.configure(config)

    @property
    def key(self) -> str:
        return f"[{self.rm.rm_id}]{self.name}"

    def configure(self, config: PartitionConfig) -> None:
        """Take over what the configuration says about the partition itself, such as how nodes are
        ordered (5.7). Its queues are configured one by one."""
        self.config = config
        self.node_index.configure(config, self.registry)

    @property
    def version(self) -> int:
        """Grows with every change that may let a failed preemption succeed."""
        return self.news + self.changes

    # -- queues ----------------------------------------------------------------------------------

    def queues(self) -> Iterator[Queue]:
        """All queues, parents first, children by name."""
        return self.root.walk()

    def leaves(self) -> Iterator[LeafQueue]:
        return (queue for queue in self.queues() if isinstance(queue, LeafQueue))

    def queue(self, path: str) -> Queue | None:
        """The queue of this dotted path; case does not matter."""
        names = path.lower().split(".")
        if names[0] != "root":
            return None
        queue: Queue | None = self.root
        for name in names[1:]:
            queue = queue.children.get(name) if queue is not None else None
        return queue

    def admission_changed(self, queue: Queue) -> None:
        """An application started or stopped counting in this queue and all above."""
        self.news += 1
        limited = [q for q in queue.lineage if q.max_applications]
        if limited:
            for below in limited[-1].walk():
                if isinstance(below, LeafQueue):
                    below.refresh_admission()

    # -- capacity --------------------------------------------------------------------------------

    def capacity_changed(self, before: Vector, after: Vector) -> None:
        """The sum of nodes' capacities went up or down; root's max is that sum (5.1)."""
        total = tuple(self.capacity)
        for place, value in enumerate(before):
            self.capacity[place] -= value
        for place, value in enumerate(after):
            self.capacity[place] += value
        self.root.limits = tuple(enumerate(self.capacity)) if self.nodes else ()
        if self.rm.events is not None:
            producers.capacity_changed(self.rm.events, self, total)
        for queue in self.queues():
            queue.capacity_changed()
        self.root.regained()
        self.failed_preemptions.allow_all_retries()

    def _lengthen(self) -> None:
        """A resource type nobody used before: every book gets a place for it."""
        registry = self.registry
        registry.lengthen([self.capacity])
        for account in (*self.users.values(), *self.groups.values()):
            registry.lengthen(ledger.usage for ledger in account.ledgers.values())
        for node in self.nodes.values():
            registry.lengthen(node.books)
        for queue in self.queues():
            registry.lengthen((queue.allocated, queue.pending, queue.promised, queue.preempting))
        for app in self.applications.values():
            registry.lengthen(
                (
                    app.allocated,
                    app.allocated_placeholder,
                    app.most,
                    app.pending,
                    app.promised,
                )
            )
        self.node_index.relayout()

    # -- who waits -------------------------------------------------------------------------------

    def wait(self, ask: Ask) -> None:
        """The ask waits to be allocated: put it in its group, and make the group known."""
        app = ask.app
        shape, _ = self.shapes.intern(ask.vector, ask.required_node)
        self.news += 1
        look = (shape, ask.priority, ask.placeholder, ask.task_group)
        group = app.groups.get(look)
        if group is None:
            group = AskGroup(app, shape, ask.priority, ask.placeholder, ask.task_group)
            app.groups[look] = group
            if not shape.asks:  # new, or idle until now: assume that it has a node
                self.node_index.watch(shape)
            self.shapes.used(shape)
            group.add(ask)
            self._priority_changed(app)
        else:
            group.add(ask)
        self._refresh_turn(app)
        self.refresh_group(group)
        if self.notices is not None:
            self.notices.fresh[group] = None
        if ask.reservations:  # it was away (parked, set aside) and comes back
            self.woken.update(r for r in app.reservations if r.ask is ask)

    def leave(self, ask: Ask) -> None:
        """The ask waits no longer. An empty group is forgotten."""
        group = ask.group
        if group is None:
            if self.aside.pop(ask, 0) is None:
                self._refresh_turn(ask.app)
            return
        group.remove(ask)
        if ask.reservations:  # it keeps its nodes while it is away
            self.refresh_group(group)
        if not group.asks:
            app = group.app
            self.refresh_group(group)
            if group.reserve_timer is not None:
                group.reserve_timer.cancel()
            if group.preemption_queue is not None:
                group.preemption_queue.cancel_timer()
            if self.notices is not None:
                self.notices.drop(group)
            del app.groups[group.look]
            self.outgrown.pop(group, None)
            self._priority_changed(app)
            self._refresh_turn(app)
            forgotten = self.shapes.unused(group.shape)
            if forgotten is not None:
                self.node_index.forget(forgotten)
                self.failed_preemptions.remove_shape(forgotten)
                for queue in self.queues():
                    if queue.short_of.pop(forgotten, 0) is None and queue.blocked != EVERY_BIT:
                        queue.unblock(forgotten.quota)
                for ledger in list(self.short_ledgers.get(forgotten, ())):
                    ledger.forget(forgotten)

    def set_aside(self, ask: Ask) -> None:
        """No place for this ask in this round, for a reason that only the outside knows."""
        self.aside[ask] = None  # first: it keeps its application's turn
        self.leave(ask)

    def refresh_group(self, group: AskGroup) -> None:
        """Announce what the group wants now and take back what it no longer wants."""
        wants, bits = group.wants(), group.bits
        if wants != bits:
            group.bits = wants
            if fresh := wants & ~bits:
                self.news += 1
                group.app.announce(group, fresh)
                if fresh & group.shape.allocate and group.app.reservations:
                    # its nodes may have gained room while it did not want any
                    mine = (r for r in group.app.reservations if r.ask.group is group)
                    self.woken.update(mine)
            if gone := bits & ~wants:
                group.app.withdraw(group, gone)

    def refresh(self, app: Application) -> None:
        """Something about the application changed: whether it is served, in which lane, for what."""
        leaf = app.queue
        assert isinstance(leaf, LeafQueue)
        self.news += 1
        counted = app.state in app_life.COUNTED or app in leaf.admitted
        lane = lane_for(leaf, app, counted)
        if lane is not app.above:
            app.block(EVERY_BIT)
            if isinstance(lane, LimitLane):
                lane.members += 1
            if isinstance(app.above, LimitLane):
                app.above.leave()
            app.above = lane
        self._refresh_turn(app)
        served = (
            app.state in app_life.SERVED
            and not app.backoff_until
            and (not leaf.stateaware or app.state == app_life.RUNNING or leaf.turn is app)
        )
        if served:
            app.unblock(EVERY_BIT)
            if app.reservations:
                self.woken.update(app.reservations)
        else:
            app.block(EVERY_BIT)
        for group in app.groups.values():
            self.refresh_group(group)
        if self.notices is not None:
            self.notices.fresh.update(dict.fromkeys(app.groups.values()))

    def _refresh_turn(self, app: Application) -> None:
        """A stateaware leaf serves one application that is not running yet: the Starting one, else
        the oldest Accepted one with something to ask for (2.9)."""
        leaf = app.queue
        if not isinstance(leaf, LeafQueue) or not leaf.stateaware:
            return
        waiting = [a for a in leaf.apps.values() if a.state in app_life.STATEAWARE_TURN]
        waiting.sort(key=lambda a: (a.state != app_life.STARTING, a.seq))
        refused = {ask.app for ask in self.aside}  # for this round, and no less pending for that
        starting = app_life.STARTING
        turn = next((a for a in waiting if a.groups or a in refused or a.state == starting), None)
        if turn is not leaf.turn:
            before, leaf.turn = leaf.turn, turn
            if before is not None and before.state != app_life.RUNNING:
                before.block(EVERY_BIT)
            if turn is not None and not turn.backoff_until:
                turn.unblock(EVERY_BIT)
                self.woken.update(turn.reservations)

    def _priority_changed(self, app: Application) -> None:
        now = max((group.priority for group in app.groups.values()), default=None)
        if now != app.priority:
            before, app.priority = app.priority, now
            app.touch()
            app.queue.report_priority(before, now)

    def offer_replacements(self, app: Application) -> None:
        """A placeholder became available, or the last one is gone: real asks look again."""
        for group in app.groups.values():
            if group.task_group and not group.placeholder:
                group.retries = group.outgrown
                self.refresh_group(group)

    def wake_stalled(self) -> None:
        """A quota or a place became free: reservations that only lacked it are tried again."""
        if self.stalled:
            self.woken.update(self.stalled)
            self.stalled.clear()
