"""Many plain allocations in a row.

Most decisions are plain: an ask of a running application, or a placeholder of a gang that has started
and is not complete, gets a node, and nothing else follows. A streak picks such asks and their nodes one
after the other, and looks up once what stays the same from one to the next: where the way down the
tree divides, which application and which group of asks go on in a leaf, which quotas and limits may
come in the way there, and how often at least root still has room. Only what the next pick looks at is
written down at once; what was picked is carried out together. A streak ends at whatever is not plain,
which ``cycle`` decides as ever; so the decisions, and all that is said and written of them, are the
same with and without streaks.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from quadriga.core.model import accounting
from quadriga.core.model.allocation import Allocation, next_uuid
from quadriga.core.model.queue import Contender, first_of
from quadriga.core.model.shapes import REPLACE
from quadriga.core.runtime.kernel import Kernel
from quadriga.core.scheduling import gang, limits
from quadriga.core.scheduling.cycle import decide
from quadriga.core.scheduling.next_ask import out_of_quota
from quadriga.core.scheduling.replacement import replace
from quadriga.fsm import ALLOCATION, APPLICATION, ASK
from quadriga.fsm import allocation as allocation_fsm
from quadriga.fsm import application as application_fsm
from quadriga.fsm import ask as ask_fsm
from quadriga.fsm import queue as queue_fsm

if TYPE_CHECKING:
    from quadriga.core.model.ask import Ask, AskGroup
    from quadriga.core.model.demand import Key
    from quadriga.core.model.node import Node
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.queue import LeafQueue, Queue

__all__ = ["decide_all"]

#: a streak of fewer decisions is not worth its beginning
_SHORT: Final = 8
#: so many decisions at most are made the long way before the next streak is tried
_PATIENCE: Final = 64
#: so many picks are carried out together at most
_AT_ONCE: Final = 512
#: where root has room for fewer, every pick looks whether it has any
_TIGHT: Final = 16
#: more than any quota has room for
_PLENTY: Final = 1 << 62


def decide_all(kernel: Kernel, partition: Partition, most: int) -> tuple[int, bool]:
    """Decide until there is nothing to decide, or ``most`` times (negative: no limit). How many rounds
    that took, a last vain one included, and whether there may be more to decide."""
    left = whole = most if most >= 0 else _PLENTY
    pause = 1
    # one decision and a vain round: that is all that most calls are made for
    wait = 0 if partition.waiting.interrupted else 2
    partition.waiting.interrupted = False
    while left:
        if wait:
            wait -= 1
        elif left > _SHORT:
            made = _streak(kernel, partition, left) or _replacements(kernel, partition, left)
            left -= made
            # where there was none, there will be none soon
            pause = wait = 1 if made else min(2 * pause, _PATIENCE)
            continue
        left -= 1
        if not decide(kernel, partition):
            return whole - left, False
    partition.waiting.interrupted = True
    return whole, True


def _is_disturbed(kernel: Kernel, partition: Partition) -> bool:
    """Whether nothing can be decided here, or something comes before, or has a say in, every single
    decision."""
    return bool(
        partition.state in queue_fsm.HALTED
        or not partition.nodes
        or partition.failed_preemptions.by_shape
        or partition.waiting.retries
        or partition.rm.rm_id in kernel.predicates
    )


# -- the way down ----------------------------------------------------------------------------------

#: of a parent queue: what is wanted below that nothing stops, and the children that want it
_Fork = tuple[int, "list[Queue] | None"]


def _next_leaf(forks: dict[Queue, _Fork], root: Queue, feasible: int) -> tuple[Queue, int]:
    """The leaf that is next in order, and what is wanted there that nothing above stops."""
    queue: Any = root
    wanted = feasible
    while not queue.leaf:
        wanted, rivals = forks.get(queue) or _fork(forks, queue, feasible)
        queue = first_of(rivals) if rivals is not None else queue.best(wanted)
    return queue, wanted


def _fork(forks: dict[Queue, _Fork], queue: Any, feasible: int) -> _Fork:
    """Where the way down from this queue divides, which stays so for the streak."""
    for above in queue.lineage:
        feasible &= ~above.blocked
    fork = forks[queue] = feasible, queue.rivals(feasible)
    return fork


# -- asks that get a node --------------------------------------------------------------------------


class _Place:
    """Where a group of asks has got to: the ask that is next, and how far that goes.

    ``repeats`` allocations are still to be made of the ask, and ``more`` asks wait behind it.
    ``until`` is the rank of the group that comes after this one in its application, if there is one.
    A gang takes ``left`` more placeholders before it may be complete. ``taken`` were picked since
    picks were carried out.

    Every pick looks at the books of ``queues``, so they are always right; the others are settled when
    picks are carried out, but for the application's and its user's where a pick ``looks_at_own``.
    ``bounds`` are the quotas and limits on the way: a book, a type, and how much of it may be in use
    for one more allocation to have room.
    """

    __slots__ = (
        "_asks",
        "app",
        "ask",
        "bounds",
        "group",
        "left",
        "looks_at_own",
        "more",
        "queues",
        "repeats",
        "shape",
        "taken",
        "task_group",
        "until",
    )

    def __init__(self, group: AskGroup, *, looks_at_root: bool) -> None:
        app = self.app = group.app
        self.group = group
        self.shape = group.shape
        lineage = app.queue.lineage
        self.queues = lineage if looks_at_root else lineage[:-1]
        self.looks_at_own = app.queue.fair or bool(app.limiting)
        self.until: Key | None = None
        self.taken = 0
        self.task_group = app.gang.task_groups[group.task_group] if group.placeholder else None
        self.left = gang.missing(app, self.shape.need) - 1 if group.placeholder else _PLENTY
        needs = dict(self.shape.need)
        used = [(queue.limits, queue.allocated) for queue in self.queues if queue.limits]
        used += [(ledger.resources, ledger.usage) for ledger in app.limiting]
        self.bounds = [
            (book, at, limit - needs[at])
            for limits, book in used
            for at, limit in limits
            if at in needs
        ]
        self.begin()

    def begin(self) -> None:
        """Begin with the first ask of the group."""
        self._asks = iter(self.group.asks.values())
        self.more = len(self.group.asks)
        self.step()

    def step(self) -> None:
        """Go on to the next ask; there must be one."""
        self.ask = next(self._asks)
        self.repeats = self.ask.pending
        self.more -= 1
        if self.until is not None:
            self.group.rank = (-self.group.priority, self.ask.seq)

    @property
    def is_overtaken(self) -> bool:
        """Whether the group after this one may come first now."""
        return self.until is not None and self.until < (-self.group.priority, self.ask.seq)

    @property
    def has_room(self) -> bool:
        """Whether no quota and no limit is in the way of one more."""
        for book, at, most in self.bounds:
            if book[at] > most:
                return False
        return True

    def settle(self) -> None:
        """Write down what was put off."""
        group, taken = self.group, self.taken
        self.taken = 0
        self.left -= taken
        root = self.app.partition.root
        if root not in self.queues:
            accounting.charge_queue(root, self.shape, taken)
        if not self.looks_at_own:
            accounting.charge_application(group, taken)
        if group.placeholder:
            accounting.reserve_headroom(self.app)
        if group.asks:
            group.shift()
            self.begin()


class _Streak:
    """A streak in one partition.

    ``feasible`` is what can be served, ``forks`` are among which queues the way down chooses, ``heads`` the
    places of leaves in which the same application goes on: these hold until the streak has to
    ``look_again``. ``contenders`` are the applications among which a leaf chooses; as nobody comes to
    want more, or is let go, these hold to the end. ``picks`` are not carried out yet, ``touched`` the
    places where they were made.
    """

    def __init__(self, kernel: Kernel, partition: Partition) -> None:
        self.kernel = kernel
        self.partition = partition
        self.feasible = 0
        self.forks: dict[Queue, _Fork] = {}
        self.heads: dict[Queue, _Place] = {}
        self.contenders: dict[LeafQueue, list[Contender] | None] = {}
        self.places: dict[AskGroup, _Place] = {}
        self.picks: list[tuple[_Place, Ask, Node]] = []
        self.touched: list[_Place] = []
        #: root has room for so many more, whosever they are
        self.room = 0
        #: root has hardly any room: every pick looks
        self.looks_at_root = False

    def run(self, most: int) -> int:
        """Make up to so many decisions; how many were made."""
        root, node_index = self.partition.root, self.partition.node_index
        heads, picks, touched = self.heads, self.picks, self.touched
        best_node, place_below = node_index.best, accounting.charge_placement
        made = 0
        self.look_again()
        try:
            while made < most and self.feasible:
                queue, wanted = _next_leaf(self.forks, root, self.feasible)
                place = heads.get(queue)
                if place is None or (place.until is not None and place.is_overtaken):
                    place = self.find(queue, wanted)
                    if place is None:
                        break
                if not self.room:
                    self.make_room()
                    continue
                if place.bounds and not place.has_room:
                    self.stop_short(place)
                    continue
                ask, repeats = place.ask, place.repeats
                is_last = repeats == 1 and not place.more
                # of a gang's last ask for placeholders, and of its last placeholder, more follows
                if place.taken >= place.left or (is_last and place.task_group is not None):
                    break
                node = best_node(place.shape)
                if node is None:
                    self.look_again()
                    continue
                place_below(node, place.shape, place.queues)
                if place.looks_at_own:
                    accounting.charge_application(place.group, 1)
                if not place.taken:
                    touched.append(place)
                picks.append((place, ask, node))
                place.taken += 1
                made += 1
                self.room -= 1
                if is_last:
                    self.leave(place)
                elif repeats > 1:
                    place.repeats = repeats - 1
                else:
                    place.step()
        finally:
            self.carry_out()
        return made

    def look_again(self) -> None:
        """Not all want, or may have, what they did before."""
        partition = self.partition
        self.forks.clear()
        self.heads.clear()
        self.feasible = partition.node_index.feasible & partition.root.demand
        if _is_disturbed(self.kernel, partition) or partition.root.demand & (
            REPLACE | partition.shapes.elsewhere
        ):
            self.feasible = 0

    def find(self, leaf: Any, feasible: int) -> _Place | None:
        """The group that is next in the leaf, if what it gets is plain."""
        feasible &= ~leaf.blocked
        app, feasible = self.next_application(leaf, feasible)
        if not app.counted:
            return None
        group, until = app.first_two(feasible)
        if not group.demand & feasible & group.shape.allocate or group.reserved:
            return None
        place = self.places.get(group)
        if place is None:
            if group.placeholder:
                if not gang.only_gathers(app):
                    return None
                self.carry_out()  # what its other groups took, it has
                for other in app.groups.values():
                    self.places.pop(other, None)
            elif not APPLICATION.idles(app.state, application_fsm.RUN):
                return None
            place = self.places[group] = _Place(group, looks_at_root=self.looks_at_root)
        place.until = until
        if not leaf.fair:
            self.heads[leaf] = place
        return place

    def next_application(self, leaf: LeafQueue, feasible: int) -> tuple[Any, int]:
        """As ``LeafQueue.best``, where a few go on to compete; and for which bits nobody stops it."""
        if leaf not in self.contenders:
            self.contenders[leaf] = leaf.contenders(feasible)
        rivals = self.contenders[leaf]
        while rivals:
            rank, app = rivals[0]
            if app.rank is not rank:  # it has got something, which others have not
                del rivals[0]
                insort(rivals, (app.rank or app.make_rank(), app))
                continue
            unstopped = feasible & app.passed_on
            if app.demand & unstopped:
                return app, unstopped
            del rivals[0]
        app = leaf.best(feasible)
        return app, feasible & app.passed_on

    def make_room(self) -> None:
        """See how far root's quota goes: so many picks need not look at it."""
        self.carry_out()
        root, largest = self.partition.root, self.partition.shapes.largest
        room = min(
            (
                (limit - root.allocated[at]) // largest[at]
                for at, limit in root.limits
                if at in largest
            ),
            default=_AT_ONCE,
        )
        self.room = min(room, _AT_ONCE)
        if room < _TIGHT:
            self.room, self.looks_at_root = _AT_ONCE, True
            self.places.clear()
            self.heads.clear()

    def stop_short(self, place: _Place) -> None:
        """A quota or a limit has no room for it, as ``cycle`` finds out."""
        app, shape = place.app, place.shape
        if not (app.limiting and limits.held_back(app, shape)):
            short = out_of_quota(app, shape)
            assert short is not None
            short.run_short(shape)
        self.look_again()

    def leave(self, place: _Place) -> None:
        """The last ask of a group was picked: the group is no more."""
        group, leaf = place.group, place.app.queue
        demand = leaf.demand
        del self.places[group]
        group.asks.clear()
        group.asks[place.ask.seq] = place.ask
        self.partition.waiting.remove(place.ask)
        place.ask.group = group  # until it is carried out
        place.until = ()
        if leaf.demand != demand or self.partition.waiting.retries:
            self.look_again()
        else:
            self.heads.pop(leaf, None)  # another application may be next

    def carry_out(self) -> None:
        """Make what was picked into allocations, say so, and settle all books."""
        if not self.picks:
            return
        kernel, partition, now = self.kernel, self.partition, self.kernel.now
        picks = tuple(self.picks)
        self.picks.clear()
        observer = partition.rm.observer
        allocations: list[Allocation] = []
        said = 0
        for place, ask, node in picks:
            if ask.last_quota_event or place.app.last_quota_event:
                observer.allocated(allocations[said:])
                said = len(allocations)
                observer.ask_served(ask)
            allocation = Allocation(ask, next_uuid(ask), node, now)
            accounting.register(allocation)
            if place.task_group is not None:
                place.task_group.landed(allocation)
            allocations.append(allocation)
        over: list[Ask] = []
        asks = kernel.fire_all(ASK, _taken_up(allocations, over), ask_fsm.ALLOCATE)
        taken = kernel.fire_all(ALLOCATION, allocations, allocation_fsm.ALLOCATE)
        both = chain.from_iterable(zip(asks, taken, strict=True))
        kernel.journal.add_all(now, both, kernel.cause)
        observer.allocated(allocations[said:])
        kernel.outbox.allocated(allocations)
        partition.waiting.allocation_epoch += len(allocations)
        for place in self.touched:
            place.settle()
        self.touched.clear()
        for ask in over:
            ask.group = None
            partition.hints.asks.pop(ask, None)
            del ask.app.asks[ask.ask_key]


def _taken_up(allocations: list[Allocation], over: list[Ask]) -> Iterator[Ask]:
    """The ask of each, one repeat less of which is pending when the next one comes; and those of which
    nothing is."""
    for allocation in allocations:
        ask = allocation.ask
        yield ask
        ask.pending -= 1
        if not ask.pending:
            over.append(ask)


def _streak(kernel: Kernel, partition: Partition, most: int) -> int:
    """Make up to so many plain decisions; how many were made."""
    return 0 if partition.waiting.backs_off else _Streak(kernel, partition).run(most)


# -- members that take over placeholders -----------------------------------------------------------


def _replacements(kernel: Kernel, partition: Partition, most: int) -> int:
    """Give up to so many placeholders away to gang members that wait for them; how many were.

    That changes nobody's share, so in each leaf the same group goes on as long as it wants more.
    """
    if _is_disturbed(kernel, partition) or partition.reservations:
        return 0
    root = partition.root
    forks: dict[Queue, _Fork] = {}
    groups: dict[Queue, AskGroup] = {}
    made = 0
    while made < most and root.demand & REPLACE:
        leaf, feasible = _next_leaf(forks, root, REPLACE)
        group = groups.get(leaf)
        if group is None:
            app = leaf.best(feasible)
            group = app.best(REPLACE)
            if any(g.demand & REPLACE for g in app.groups.values() if g is not group):
                break
            groups[leaf] = group
        if not replace(kernel, group.head):
            break
        made += 1
        if not group.demand & REPLACE:  # others may be next now, in every queue above
            forks.clear()
            del groups[leaf]
    return made
