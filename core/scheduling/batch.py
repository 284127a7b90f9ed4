"""Batch placement: runs of simple asks are placed without walking the queue tree for each.

Most decisions are simple: an ask of a running application, or a placeholder of a gang that is still
gathering, gets a node, and nothing else follows. A batch makes such decisions one after the other. It
looks up once what stays the same between them: where the walk down the queue tree divides, which
application and which group of asks are next in a leaf, which quotas and limits apply there, and for how
many placements root certainly has room. Each placement updates at once only what the next decision
reads; the rest is done for many placements together when they are carried out.

A gang that is placed in one step is one decision among them. A batch ends at the first decision that is
not simple, which ``cycle`` makes. So decisions, messages,
events and accounting are the same with and without batches.
"""

from __future__ import annotations

from bisect import insort
from typing import TYPE_CHECKING, Final

from quadriga.core.gangs import admission as gang_admission
from quadriga.core.gangs.replacement import Replacement, carry_out, replace
from quadriga.core.model import accounting
from quadriga.core.model.queue import Contender, LeafQueue, ParentQueue
from quadriga.core.resources.shapes import REPLACE, START_GANG
from quadriga.core.resources.tied import first_of
from quadriga.core.runtime.kernel import Kernel
from quadriga.core.scheduling.batch_progress import GroupProgress
from quadriga.core.scheduling.cycle import decide
from quadriga.core.steps import gang, limits, quota_plans
from quadriga.core.steps.allocating import Placement, allocate_all
from quadriga.core.steps.next_ask import out_of_quota
from quadriga.fsm import APPLICATION
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.fsm.lifecycles import queue as queue_fsm

if TYPE_CHECKING:
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import AskGroup
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.queue import Queue


#: a batch is tried only if more than this many decisions may still be made
_MIN_BATCH: Final = 8
#: at most this many decisions are made singly before a batch is tried again
_MAX_PAUSE: Final = 64
#: at most this many placements are carried out together
_MAX_PLACEMENTS: Final = 512
#: if root has room for fewer placements than this, each placement checks root's quota
_MIN_ROOM: Final = 16
#: stands for no limit on the number of decisions
_UNLIMITED: Final = 1 << 62


def decide_all(kernel: Kernel, partition: Partition, most: int) -> tuple[int, bool]:
    """Decide until there is nothing left to decide, at most ``most`` times (negative: no limit).

    Returns how many rounds that took, including a last one without a decision, and whether there may be
    more to decide.
    """
    left = whole = most if most >= 0 else _UNLIMITED
    pause = 1
    # most calls make one decision, and one round that finds nothing: no batch is tried for these
    wait = 0 if partition.waiting.interrupted else 2
    partition.waiting.interrupted = False
    while left:
        if wait:
            wait -= 1
        elif left > _MIN_BATCH:
            made = _decide_batch(kernel, partition, left)
            left -= made
            # after a batch that made no decision, the next one is not likely to make any either
            pause = wait = 1 if made else min(2 * pause, _MAX_PAUSE)
            continue
        left -= 1
        if not decide(kernel, partition):
            return whole - left, False
    partition.waiting.interrupted = True
    return whole, True


def _decide_batch(kernel: Kernel, partition: Partition, most: int) -> int:
    """Make up to ``most`` simple decisions; return how many were made."""
    demand = batch_demand(kernel, partition)
    if demand & REPLACE:
        return replace_in_batch(kernel, partition, most)
    return place_in_batch(kernel, partition, most) if demand else 0


def place_in_batch(kernel: Kernel, partition: Partition, most: int) -> int:
    """Make up to ``most`` placements; return how many were made."""
    return Batch(kernel, partition).run(most)


# -- preconditions ---------------------------------------------------------------------------------


def batch_demand(kernel: Kernel, partition: Partition) -> int:
    """The demand that a batch may serve now: ``REPLACE``, demand for nodes, or none at all.

    These are the preconditions of a batch. The demand is empty, and every decision is made singly by
    ``cycle``, unless all of them hold:

    - The partition is not halted and has nodes.
    - No failed preemption, no reservation and no planned start waits to be tried again: these precede every
      decision.
    - The resource manager has no predicates, which must be asked about every decision.

    If gang members wait for a placeholder, only they are served, and one more precondition holds:

    - No node is reserved.

    Otherwise the demand for nodes that some node has room for is served, and that of gangs that are
    placed in one step, and two more hold:

    - No queue backs off from applications whose asks fit no node.
    - No ask that has reserved a node is looking for another one.

    A batch of placements checks all this again when demand may have changed. Which groups of asks it
    places is a matter of ``is_simple``.
    """
    demand, waiting = partition.root.demand, partition.waiting
    if (
        partition.state in queue_fsm.HALTED
        or not partition.nodes
        or partition.failed_preemptions.by_shape
        or waiting.retries
        or waiting.protected_is_due
        or partition.rm.rm_id in kernel.predicates
    ):
        return 0
    if demand & REPLACE:
        return 0 if partition.reservations else REPLACE
    if waiting.backs_off or demand & partition.shapes.elsewhere:
        return 0
    return (partition.node_index.feasible | START_GANG) & demand


def is_simple(group: AskGroup) -> bool:
    """Whether nothing but an allocation follows from a placement for this group of asks.

    - The application counts as running for its users' limits already.
    - None of its asks has a node reserved, nor may use a node that is reserved for another one (Q7).
    - Nothing is kept of its quotas and limits (Q12).
    - It is no member of a gang that wants something of its domains (Q13).
    - A real ask's application runs already.
    - A placeholder's gang has started, and nothing waits for what the gang has not got yet. Only the
      placeholder that completes the gang is left to ``cycle``.
    """
    app = group.app
    if not app.counted or group.reserved or group.shape.locality:
        return False
    if app.partition.waiting.quota_plans and any(
        quota.plan for quota in quota_plans.quotas_of(app)
    ):
        return False
    if group.shape.runtime and (
        app.partition.reservations or app.partition.node_index.planned is not None
    ):
        return False
    if group.kind.placeholder:
        return gang.adds_placeholders_only(app)
    return APPLICATION.idles(app.state, application_fsm.RUN)


# -- placements ------------------------------------------------------------------------------------


class Batch:
    """One batch of placements in one partition."""

    __slots__ = (
        "charges_root",
        "contenders",
        "feasible",
        "forks",
        "gang",
        "kernel",
        "next_groups",
        "partition",
        "placements",
        "progress",
        "room",
        "unsettled",
    )

    def __init__(self, kernel: Kernel, partition: Partition) -> None:
        self.kernel = kernel
        self.partition = partition
        # these hold until ``refresh``:
        #: the demand that can be served
        self.feasible = 0
        self.forks: Forks = {}
        #: the group that is next in a leaf, where that does not depend on shares
        self.next_groups: dict[Queue, GroupProgress] = {}
        # and these until the batch ends, as no demand is added during a batch:
        #: the applications among which a leaf chooses, in order; ``None`` where they are many
        self.contenders: dict[Queue, list[Contender] | None] = {}
        self.progress: dict[AskGroup, GroupProgress] = {}
        #: what is not carried out yet, and the groups that it is for
        self.placements: list[Placement] = []
        self.unsettled: list[GroupProgress] = []
        #: the gang that is next, where ``next_group`` found one
        self.gang: Application | None = None
        #: root certainly has room for this many more placements
        self.room = 0
        #: root has little room: every placement charges root and checks its quota
        self.charges_root = False

    def run(self, most: int) -> int:
        """Make up to ``most`` placements; return how many were made."""
        root, node_index = self.partition.root, self.partition.node_index
        next_groups, placements, unsettled = self.next_groups, self.placements, self.unsettled
        best_node, charge = node_index.best, accounting.charge_placement
        made = 0
        self.refresh()
        try:
            while made < most and self.feasible:
                leaf, demand = next_leaf(self.forks, root, self.feasible)
                progress = next_groups.get(leaf)
                if progress is None or (progress.next_rank is not None and progress.is_overtaken):
                    progress = self.next_group(leaf, demand)
                    if progress is None:
                        if self.gang is None or not self.start_gang(self.gang):
                            break
                        made += 1
                        continue
                if not self.room:
                    self.look_up_room()
                    continue
                if progress.bounds and not progress.has_room:
                    self.run_short(progress)
                    continue
                ask, repeats = progress.ask, progress.repeats
                is_last = repeats == 1 and not progress.asks_behind
                # more follows from the last placeholder ask, and from a complete gang
                if progress.placed >= progress.gang_lacks or (
                    is_last and progress.task_group is not None
                ):
                    break
                node = best_node(progress.shape)
                if node is None:
                    self.refresh()
                    continue
                charge(node, progress.shape, progress.queues)
                if progress.charges_app:
                    accounting.charge_application(progress.group, 1)
                if not progress.placed:
                    unsettled.append(progress)
                placements.append((progress.task_group, ask, node))
                progress.placed += 1
                made += 1
                self.room -= 1
                if is_last:
                    self.finish(progress)
                elif repeats > 1:
                    progress.repeats = repeats - 1
                else:
                    progress.step()
        finally:
            self.carry_out()
        return made

    def refresh(self) -> None:
        """Look up again what can be served: demand, blocked bits or feasible nodes have changed."""
        self.forks.clear()
        self.next_groups.clear()
        demand = batch_demand(self.kernel, self.partition)
        self.feasible = 0 if demand & REPLACE else demand

    # -- what is next ----------------------------------------------------------------------------

    def next_group(self, leaf: Queue, demand: int) -> GroupProgress | None:
        """The group of asks that is next in the leaf; ``None`` if its placement is not simple, or if a
        whole gang is next."""
        app, demand = self.next_application(leaf, demand & ~leaf.blocked)
        group, next_rank = app.first_two(demand)
        if not group.demand & demand & group.shape.allocate:
            self.gang = app if group.demand & START_GANG else None
            return None
        progress = self.progress.get(group)
        if progress is None:
            if not is_simple(group):
                self.gang = None
                return None
            if group.kind.placeholder:
                # what the gang lacks depends on the placeholders of all its groups
                self.carry_out()
                for other in app.groups.values():
                    self.progress.pop(other, None)
            progress = GroupProgress(group, charges_root=self.charges_root)
            self.progress[group] = progress
        progress.next_rank = next_rank
        if not leaf.fair:
            self.next_groups[leaf] = progress
        return progress

    def next_application(self, leaf: Queue, demand: int) -> tuple[Application, int]:
        """The application that is next in the leaf, and the part of the demand that no lane of the leaf
        stops. As ``LeafQueue.best``, but a few contenders are kept in order."""
        if leaf not in self.contenders:
            assert isinstance(leaf, LeafQueue)
            self.contenders[leaf] = leaf.contenders(demand)
        contenders = self.contenders[leaf]
        while contenders:
            rank, app = contenders[0]
            if app.rank is not rank:  # its share has grown since
                del contenders[0]
                insort(contenders, (app.rank or app.make_rank(), app))
                continue
            unstopped = demand & app.passed_on
            if app.demand & unstopped:
                return app, unstopped
            del contenders[0]
        first: Application = leaf.best(demand)
        return first, demand & first.passed_on

    def start_gang(self, app: Application) -> bool:
        """Place a whole gang; if that fails, decide what a round would decide after it. Return whether
        there was a decision."""
        kernel, partition = self.kernel, self.partition
        self.carry_out()
        decided = gang_admission.admit(kernel, app) or decide(kernel, partition, begun=True)
        self.gang = None
        self.contenders.clear()  # its members, or another gang, may wait for something new
        self.progress.clear()
        self.room = 0
        self.refresh()
        return decided

    # -- quotas ----------------------------------------------------------------------------------

    def look_up_room(self) -> None:
        """Look up for how many placements, of whatever shape, root's quota certainly has room. They need
        not check it."""
        self.carry_out()
        root, largest = self.partition.root, self.partition.shapes.largest
        room = min(
            (
                (limit - root.allocated[at]) // largest[at]
                for at, limit in root.limits
                if at in largest
            ),
            default=_MAX_PLACEMENTS,
        )
        self.room = min(room, _MAX_PLACEMENTS)
        if room < _MIN_ROOM:
            self.room, self.charges_root = _MAX_PLACEMENTS, True
            self.progress.clear()
            self.next_groups.clear()

    def run_short(self, progress: GroupProgress) -> None:
        """A quota or a limit has no room for the next ask: block its shape there, as ``cycle`` does."""
        app, shape = progress.app, progress.shape
        if not (app.limiting and limits.held_back(app, shape)):
            short = out_of_quota(app, shape)
            assert short is not None
            short.run_short(shape)
        self.refresh()

    # -- what follows ----------------------------------------------------------------------------

    def finish(self, progress: GroupProgress) -> None:
        """The last ask of the group was placed: the group ends."""
        group, leaf = progress.group, progress.app.queue
        demand = leaf.demand
        del self.progress[group]
        group.asks.clear()
        group.asks[progress.ask.seq] = progress.ask
        self.partition.waiting.remove(progress.ask)
        progress.ask.group = group  # until the placement is carried out
        progress.next_rank = ()
        if leaf.demand != demand or self.partition.waiting.retries:
            self.refresh()
        else:
            self.next_groups.pop(leaf, None)  # another application may be next

    def carry_out(self) -> None:
        """Turn the placements into allocations, announce them, and settle all totals."""
        if not self.placements:
            return
        placements = tuple(self.placements)
        self.placements.clear()
        served = allocate_all(self.kernel, self.partition, placements)
        for progress in self.unsettled:
            progress.settle()
        self.unsettled.clear()
        for ask in served:
            ask.group = None
            self.partition.hints.asks.pop(ask, None)
            del ask.app.asks[ask.ask_key]


# Where the walk divides, and between which queues, stays the same from one decision of a batch to the next.
# So it is looked up once for each parent queue; only the order of the candidates is compared anew.
#: by parent queue: the demand below it that no quota blocks, and the children that have it. ``None``
#: where there are too many children to list them
Forks = dict["Queue", tuple[int, "list[Queue] | None"]]


def next_leaf(forks: Forks, root: Queue, feasible: int) -> tuple[Queue, int]:
    """The leaf that is next in order, and the demand there that no queue above it blocks."""
    queue = root
    demand = feasible
    while not queue.leaf:
        demand, candidates = forks.get(queue) or _fork(forks, queue, feasible)
        queue = first_of(candidates) if candidates is not None else queue.best(demand)
    return queue, demand


def _fork(forks: Forks, queue: Queue, feasible: int) -> tuple[int, list[Queue] | None]:
    """Look up and remember between which children the walk chooses at this queue."""
    assert isinstance(queue, ParentQueue)
    for above in queue.lineage:
        feasible &= ~above.blocked
    fork = forks[queue] = feasible, queue.rivals(feasible)
    return fork


def replace_in_batch(kernel: Kernel, partition: Partition, most: int) -> int:
    """Replace up to ``most`` placeholders; return how many were replaced.

    A replacement changes no share. So in each leaf the same group of asks stays first until none of its
    asks waits for a placeholder.
    """
    root = partition.root
    forks: Forks = {}
    groups: dict[Queue, AskGroup] = {}
    planned: list[Replacement] = []
    made = 0
    try:
        while made < most and root.demand & REPLACE:
            leaf, demand = next_leaf(forks, root, REPLACE)
            group = groups.get(leaf)
            if group is None:
                app: Application = leaf.best(demand)
                group = app.best(REPLACE)
                if any(g.demand & REPLACE for g in app.groups.values() if g is not group):
                    break
                groups[leaf] = group
            if not replace(kernel, group.head, planned):
                break
            made += 1
            if not group.demand & REPLACE:  # the order may have changed in every queue above
                forks.clear()
                del groups[leaf]
    finally:
        carry_out(kernel, planned)
    return made
