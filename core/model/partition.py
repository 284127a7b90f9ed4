"""A partition: its nodes, its queue tree, its applications, what waits, and how far its inspections are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from quadriga.core.config import PartitionConfig
from quadriga.core.model.allocation import Reservation, ReservationBounds
from quadriga.core.model.ask import AskKinds
from quadriga.core.model.failed_preemptions import FailedPreemptions
from quadriga.core.model.gang import Lent
from quadriga.core.model.gather_budget import GatherBudget
from quadriga.core.model.node import NodeOrder
from quadriga.core.model.queue import LeafQueue, ParentQueue, Queue
from quadriga.core.model.run_times import RunTimes
from quadriga.core.model.serials import Serials
from quadriga.core.resources.levels import Levels
from quadriga.core.resources.vectors import Registry, Totals, Vector
from quadriga.fsm.lifecycles import queue as queue_fsm

if TYPE_CHECKING:
    from quadriga.core.model.account import Account, QuotaChanges
    from quadriga.core.model.application import Application, EndedApplication
    from quadriga.core.model.ask import Ask
    from quadriga.core.model.node import ForeignAllocation, Node
    from quadriga.core.model.resource_manager import ResourceManager
    from quadriga.core.model.timer import Timer
    from quadriga.core.model.waiting import Waiting


class Hints:
    """The two inspections of one partition: one finds asks that lack nodes (FAILED, the scale-up hint),
    the other asks that are skipped for other reasons (SKIPPED)."""

    __slots__ = (
        "asks",
        "inspected_epoch",
        "inspection",
        "skip_epoch",
        "skip_timer",
        "skip_walk",
        "timer",
    )

    def __init__(self) -> None:
        #: asks without a hint so far
        self.asks: dict[Ask, None] = {}
        self.timer: object | None = None
        #: the running inspection for FAILED
        self.inspection: Iterator[None] | None = None
        #: demand epoch of the last inspection
        self.inspected_epoch = -1
        self.skip_timer: object | None = None
        #: the applications that the running inspection for SKIPPED has not reached
        self.skip_walk: Iterator[Application] | None = None
        #: epoch at which that inspection began
        self.skip_epoch = -1


class Partition:
    """A set of nodes with one queue tree.

    It has more than 25 attributes because it is the entry to all entities of the partition;
    ``__init__`` groups them. ``name`` is the resource manager's name for it; ``key`` is
    ``[rmID]name`` (2.19).
    """

    __slots__ = (
        "applications",
        "capacity",
        "capacity_epoch",
        "changed",
        "clean_timer",
        "config",
        "dropped",
        "ended",
        "entries",
        "failed_nodes",
        "failed_preemptions",
        "foreign",
        "former_users",
        "gang_admission",
        "gather_budget",
        "groups",
        "hints",
        "keep_users",
        "kinds",
        "lent",
        "levels",
        "name",
        "node_index",
        "nodes",
        "quota_changes",
        "registry",
        "reservation_bounds",
        "reservations",
        "rm",
        "root",
        "run_times",
        "serials",
        "shapes",
        "state",
        "submissions",
        "users",
        "waiting",
    )

    def __init__(
        self,
        rm: ResourceManager,
        config: PartitionConfig,
        node_order: NodeOrder,
        waiting: Callable[[Partition], Waiting],
    ) -> None:
        # identity and configuration
        self.rm = rm
        self.name = config.name
        #: the present configuration
        self.config = config
        self.registry = Registry()

        # lifecycle
        self.state: queue_fsm.State = queue_fsm.ACTIVE
        self.entries = 0
        #: instant at which it entered its state (ns)
        self.changed = 0
        #: the state of its resource manager was dropped (I6, I7)
        self.dropped = False

        # nodes
        self.nodes: dict[str, Node] = {}
        #: ids of nodes rejected with their recovered allocations, until they are accepted (2.12)
        self.failed_nodes: dict[str, None] = {}
        #: foreign allocations by key (X19)
        self.foreign: dict[str, ForeignAllocation] = {}
        self.node_index = node_order
        #: the shapes of present and recent asks
        self.shapes = node_order.shapes
        #: kinds of asks seen lately
        self.kinds = AskKinds(self.registry)
        #: the domains of the nodes (Q13)
        self.levels = Levels()
        #: sum of the capacities of all nodes, by type
        self.capacity: Totals = []
        #: grows whenever it changes
        self.capacity_epoch = 0

        # applications
        self.applications: dict[str, Application] = {}
        #: ended applications until they expire, in the order of their end
        self.ended: dict[EndedApplication, None] = {}
        #: number of the next application in the order of submission
        self.submissions = 0
        #: numbers in the UUIDs of ended applications (X46)
        self.serials = rm.serials.setdefault(config.name, Serials())
        #: accounts of users, and of the groups that applications are charged to (2.5)
        self.users: dict[str, Account] = {}
        self.groups: dict[str, Account] = {}
        #: users whose last application has ended, the latest last, and at most how many are kept
        self.former_users: dict[str, None] = {}
        self.keep_users = 0

        #: ``gang.admission`` of queues that set none (Q1)
        self.gang_admission = "atomic"

        # waiting
        self.reservations: dict[Reservation, None] = {}
        #: how many nodes may be reserved, and which (Q7)
        self.reservation_bounds = ReservationBounds()
        #: how long allocations ran, and how long others are expected to (Q11)
        self.run_times = RunTimes()
        #: what may be kept idle for gangs (Q10)
        self.gather_budget = GatherBudget(self)
        self.lent = Lent(self.gather_budget.counts)
        #: asks and reservations that wait for something other than their turn
        self.waiting = waiting(self)
        self.hints = Hints()
        self.failed_preemptions = FailedPreemptions()
        #: changes for the next quota events; ``None`` while events are not tracked
        self.quota_changes: QuotaChanges | None = None

        # queues
        #: runs while the cleaner has a queue to remove
        self.clean_timer: Timer | None = None
        self.root: Queue = ParentQueue(self, None, "root")
        self.registry.on_new_types = self._lengthen
        self.configure(config)

    @property
    def key(self) -> str:
        return f"[{self.rm.rm_id}]{self.name}"

    def configure(self, config: PartitionConfig) -> None:
        """Apply the configuration of the partition, such as the order of nodes (5.7), without its
        queues."""
        self.config = config
        self.levels.configure(config.topology)
        self.registry.declare_shared(config.shared_devices)
        self.node_index.configure(config, self.registry)

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
        self.waiting.demand_epoch += 1
        limited = [q for q in queue.lineage if q.max_applications]
        if limited:
            for below in limited[-1].walk():
                if isinstance(below, LeafQueue):
                    below.refresh_admission()

    # -- capacity --------------------------------------------------------------------------------

    def capacity_changed(self, before: Vector, after: Vector) -> None:
        """Replace an amount of a node in the capacity, which is the max of root (5.1)."""
        total = tuple(self.capacity)
        for index, value in enumerate(before):
            self.capacity[index] -= value
        for index, value in enumerate(after):
            self.capacity[index] += value
        self.root.limits = tuple(enumerate(self.capacity)) if self.nodes else ()
        self.rm.observer.capacity_changed(self, total)
        self.capacity_epoch += 1
        if self.quota_changes is not None:
            self.quota_changes.capacity = True
        self.root.regained()
        self.failed_preemptions.allow_all_retries()

    def renew_shares(self) -> None:
        """Decisions follow: order the queues by the present capacity of the nodes."""
        if self.root.capacity_epoch != self.capacity_epoch:
            self.root.forget_share()
            self.root.renew_shares()

    def _lengthen(self) -> None:
        """Lengthen all totals but those of applications for new resource types."""
        registry = self.registry
        registry.lengthen([self.capacity])
        for account in (*self.users.values(), *self.groups.values()):
            registry.lengthen(ledger.usage for ledger in account.ledgers.values())
        for node in self.nodes.values():
            registry.lengthen(node.totals)
            if node.beside is not None:
                registry.lengthen([node.beside])
        for queue in self.queues():
            if isinstance(queue, ParentQueue):
                queue.forget_trees()
            registry.lengthen(
                (queue.allocated, queue.pending, queue.reserved_headroom, queue.preempting)
            )
        self.node_index.relayout()
