"""Many plain allocations in a row.

Most decisions are plain: an ask of a running application, or a placeholder of a gang that has started
and is not complete, gets a node, and nothing else follows. A streak picks such asks and their nodes one
after the other, and looks up once what stays the same from one to the next: where the way down the
tree divides, the group whose ask is next in each leaf, and how often at least all quotas and limits
still have room. Only what the next pick looks at is written down at once; what was picked is carried
out together. A streak ends at whatever is not plain, which ``cycle`` decides as ever; so the decisions,
and all that is said and written of them, are the same with and without streaks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from quadriga.core import books, gang
from quadriga.core.cycle import decide
from quadriga.core.events import happenings
from quadriga.core.kernel import Kernel
from quadriga.core.model.allocation import Allocation, next_uuid
from quadriga.core.model.queue import LeafQueue, first_of
from quadriga.core.order.shapes import REPLACE
from quadriga.fsm import ALLOCATION, APPLICATION, ASK
from quadriga.fsm import allocation as allocation_life
from quadriga.fsm import application as app_life
from quadriga.fsm import ask as ask_life
from quadriga.fsm import queue as queue_life

if TYPE_CHECKING:
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask, AskGroup
    from quadriga.core.model.node import Node
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.queue import Queue

__all__ = ["decide_all"]

#: a streak of fewer decisions is not worth its beginning
_SHORT: Final = 8
#: so many decisions at most are made the long way before the next streak is tried
_PATIENCE: Final = 64
#: so many picks are carried out together at most
_AT_ONCE: Final = 512
#: more than any quota has room for
_PLENTY: Final = 1 << 62


def decide_all(kernel: Kernel, partition: Partition, most: int) -> tuple[int, bool]:
    """Decide until there is nothing to decide, or ``most`` times (negative: no limit). How many rounds
    that took, a last vain one included, and whether there may be more to decide."""
    left = whole = most if most >= 0 else _PLENTY
    pause, wait = 1, 2  # one decision and a vain round: that is all that most calls are made for
    while left:
        if wait:
            wait -= 1
        elif left > _SHORT:
            made = _streak(kernel, partition, left) or _replacements(kernel, partition, left)
            left -= made
            # where a streak does not get far, the next one would not either
            pause = wait = 1 if made >= _SHORT else min(2 * pause, _PATIENCE)
            continue
        left -= 1
        if not decide(kernel, partition):
            return whole - left, False
    return whole, True


def _is_disturbed(kernel: Kernel, partition: Partition) -> bool:
    """Whether something comes before, or has a say in, every single decision."""
    return bool(
        partition.state == queue_life.STOPPED
        or partition.vain.known
        or partition.woken
        or partition.rm.rm_id in kernel.predicates
    )


# -- the way down ----------------------------------------------------------------------------------

#: of a parent queue: what is wanted below that nothing stops, and the children that want it
_Fork = tuple[int, "list[Queue] | None"]


def _next_leaf(forks: dict[Queue, _Fork], root: Queue, able: int) -> tuple[Queue, int]:
    """The leaf that is next in order, and what is wanted there that nothing above stops."""
    queue: Any = root
    wanted = able
    while not queue.leaf:
        wanted, rivals = forks.get(queue) or _fork(forks, queue, able)
        queue = first_of(rivals) if rivals is not None else queue.best(wanted)
    return queue, wanted


def _fork(forks: dict[Queue, _Fork], queue: Any, able: int) -> _Fork:
    """Where the way down from this queue divides, which stays so for the streak."""
    for above in queue.lineage:
        able &= ~above.blocked
    fork = forks[queue] = able, queue.rivals(able)
    return fork


# -- asks that get a node --------------------------------------------------------------------------


class _Place:
    """Where a leaf has got to: the ask that is next, in which group, and how far that goes.

    ``repeats`` allocations are still to be made of the ask, and ``more`` asks wait behind it.
    ``until`` is the rank of the group that comes after this one in its application, if there is one.
    A gang takes ``left`` more placeholders before it may be complete. ``taken`` were placed since the
    books were settled; ``queues`` are those below root, whose books are always right.
    """

    __slots__ = (
        "_asks",
        "app",
        "ask",
        "group",
        "left",
        "more",
        "queues",
        "repeats",
        "shape",
        "taken",
        "task_group",
        "until",
    )

    def __init__(self, app: Application, group: AskGroup, able: int) -> None:
        self.app = app
        self.group = group
        self.shape = group.shape
        self.queues = app.queue.lineage[:-1]
        self.taken = 0
        self.task_group = app.task_groups[group.task_group] if group.placeholder else None
        self.left = gang.missing(app, self.shape.need) - 1 if group.placeholder else _PLENTY
        others = (g for g in app.groups.values() if g is not group and g.bits & able)
        self.until = min((other.rank or other.make_rank() for other in others), default=None)
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

    @property
    def is_overtaken(self) -> bool:
        """Whether another group of the application comes first now."""
        return self.until is not None and self.until < (-self.group.priority, self.ask.seq)

    def settle(self) -> None:
        """Write down what was put off."""
        app, taken = self.app, self.taken
        if taken:
            self.taken = 0
            self.left -= taken
            books.place_above(self.group, taken, app.queue.lineage[-1:])
            for ask in self.group.shift():
                app.partition.unhinted.pop(ask, None)
                del app.asks[ask.ask_key]
            if self.group.placeholder:
                books.owe(app)
            self.begin()


def _streak(kernel: Kernel, partition: Partition, most: int) -> int:
    """Make up to so many plain decisions; how many were made."""
    root, board, shapes = partition.root, partition.board, partition.shapes
    if (
        _is_disturbed(kernel, partition)
        or partition.backs_off
        or root.offered & (REPLACE | shapes.elsewhere)
    ):
        return 0
    able = board.able & root.offered  # nothing that is plain changes what anybody wants
    if not able:
        return 0
    best_node, place_below = board.best, books.place_below
    forks: dict[Queue, _Fork] = {}
    places: dict[Queue, _Place] = {}
    picks: list[tuple[_Place, Ask, Node]] = []
    made = room = 0
    try:
        while made < most:
            queue, wanted = _next_leaf(forks, root, able)
            place = places.get(queue)
            if place is None:
                place = _open(queue, wanted)
                if place is None:
                    break
                places[queue] = place
                room = 0
            if not room:
                _carry_out(kernel, partition, places, picks)
                room = min(_room_for(places), _AT_ONCE)
                if not room:
                    break
            if place.until is not None and place.is_overtaken:
                _carry_out(kernel, partition, places, picks)
                del places[queue]
                continue
            ask, repeats = place.ask, place.repeats
            # of the last ask of a group, and the last placeholder of a gang, more follows
            if ask.told or not (repeats > 1 or place.more) or place.taken >= place.left:
                break
            node = best_node(place.shape)
            if node is None:
                break
            place_below(node, place.shape, place.queues)
            picks.append((place, ask, node))
            place.taken += 1
            made += 1
            room -= 1
            if repeats > 1:
                place.repeats = repeats - 1
            else:
                place.step()
    finally:
        _carry_out(kernel, partition, places, picks)
    return made


def _carry_out(
    kernel: Kernel,
    partition: Partition,
    places: dict[Queue, _Place],
    picks: list[tuple[_Place, Ask, Node]],
) -> None:
    """Make what was picked into allocations, say so, and settle all books."""
    fire, now = kernel.fire, kernel.now
    allocations: list[Allocation] = []
    for place, ask, node in picks:
        allocation = Allocation(ask, next_uuid(ask), node, now)
        books.enter(allocation)
        fire(ASK, ask, ask_life.ALLOCATE)
        fire(ALLOCATION, allocation, allocation_life.ALLOCATE)
        ask.pending -= 1
        if place.task_group is not None:
            place.task_group.landed(allocation)
        allocations.append(allocation)
    if (log := partition.rm.events) is not None:
        happenings.allocated(log, allocations)
    kernel.outbox.allocated(allocations)
    partition.changes += len(picks)
    picks.clear()
    for place in places.values():
        place.settle()


def _open(leaf: Queue, able: int) -> _Place | None:
    """The application and the group that are next in the leaf, if what they get is plain."""
    assert isinstance(leaf, LeafQueue)
    able &= ~leaf.blocked
    app = leaf.best(able)
    if app.told or not app.counted or leaf.fair:
        return None
    if app.limiting:
        able &= ~app.above.stops()
    group: AskGroup = app.best(able)
    if group.reserved or group.bits != group.shape.place:
        return None
    if group.placeholder:
        plain = gang.only_gathers(app)
    else:
        plain = APPLICATION.idles(app.state, app_life.RUN)
    return _Place(app, group, able) if plain else None


def _room_for(places: dict[Queue, _Place]) -> int:
    """How many decisions, whosever they are, no quota and no limit there can be in the way of."""
    needs: dict[int, int] = {}
    for place in places.values():
        for at, value in place.shape.need:
            needs[at] = max(value, needs.get(at, 0))
    apps = [place.app for place in places.values()]
    held = {queue: (queue.limits, queue.allocated) for app in apps for queue in app.queue.lineage}
    granted = {ledger: (ledger.resources, ledger.usage) for app in apps for ledger in app.limiting}
    return min(
        (
            max(0, limit - used[at]) // needs[at]
            for limits, used in (*held.values(), *granted.values())
            for at, limit in limits
            if at in needs
        ),
        default=_PLENTY,
    )


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
    while made < most and root.offered & REPLACE:
        leaf, able = _next_leaf(forks, root, REPLACE)
        group = groups.get(leaf)
        if group is None:
            app = leaf.best(able)
            group = app.best(REPLACE)
            if any(g.bits & REPLACE for g in app.groups.values() if g is not group):
                break
            groups[leaf] = group
        if not gang.replace(kernel, group.head):
            break
        made += 1
        if not group.bits & REPLACE:  # others may be next now, in every queue above
            forks.clear()
            del groups[leaf]
    return made
