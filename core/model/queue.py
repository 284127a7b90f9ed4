"""Queues: the tree in which applications wait, and its quotas.

A parent's children are queues, a leaf's are applications, in two lanes: those that are served, and
those that need a place under maxapplications first. What a quota has no room for is *blocked* at the
queue whose quota it is, and freed when that queue gets something back; nobody asks again meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from quadriga.core.config import ACL, Properties, QueueConfig
from quadriga.core.order.ranking import EVERY_BIT, Key, Level, bits_of
from quadriga.core.order.shapes import Shape
from quadriga.core.resources import Book, Vector, exact_share
from quadriga.fsm import queue as life

if TYPE_CHECKING:
    from quadriga.core.model.application import Application
    from quadriga.core.model.partition import Partition

__all__ = ["LeafQueue", "ParentQueue", "Queue"]

#: up to so many children a look at each is cheaper than the heaps
_FEW = 8

_LOWEST, _HIGHEST = -(2**31), 2**31 - 1


class Queue(Level):
    """What leaf and parent have in common: quotas, books, counts.

    ``path`` is dotted from root. ``allocated`` includes placeholders (G59) and what is being asked
    back; ``promised`` is what started gangs below are still owed (X16).
    """

    __slots__ = (
        "_denominators",
        "admin_acl",
        "admitted",
        "allocated",
        "children",
        "entries",
        "gated",
        "guaranteed",
        "guaranteed_by_type",
        "limits",
        "lineage",
        "max",
        "max_applications",
        "name",
        "parent",
        "partition",
        "path",
        "pending",
        "priorities",
        "priority",
        "promised",
        "properties",
        "raw_properties",
        "running",
        "short_of",
        "state",
        "submit_acl",
    )

    leaf = False

    def __init__(self, partition: Partition, parent: Queue | None, name: str) -> None:
        super().__init__()
        self.partition = partition
        self.parent = parent
        self.above = parent
        self.name = name
        self.path: str = f"{parent.path}.{name}" if parent else name
        #: itself, its parent, and so on up to root
        self.lineage: tuple[Queue, ...] = (self, *parent.lineage) if parent else (self,)
        self.children: dict[str, Queue] = {}
        self.state = life.ACTIVE
        self.entries = 0
        self.max: dict[str, int] | None = None
        self.limits: tuple[tuple[int, int], ...] = ()
        self.guaranteed: dict[str, int] | None = None
        self.guaranteed_by_type: dict[int, int] = {}
        self.max_applications = 0
        self.properties = Properties()
        self.raw_properties: dict[str, str] = {}
        self.submit_acl = ACL()
        self.admin_acl = ACL()
        self.allocated: Book = partition.registry.zeros()
        self.pending: Book = partition.registry.zeros()
        self.promised: Book = partition.registry.zeros()
        self.running = 0
        #: Accepted gangs whose placeholders are being allocated count like running ones (2.9)
        self.admitted: dict[Application, None] = {}
        #: shapes that this queue's quota has no room for
        self.short_of: dict[Shape, None] = {}
        #: gangs that wait for room for the whole of them, here (X16)
        self.gated: dict[Application, None] = {}
        self.priority: int | None = None
        self.priorities: dict[int, int] = {}
        self._denominators: tuple[tuple[int, int], ...] | None = None

    def configure(self, config: QueueConfig) -> None:
        """Take over what the configuration says about this queue itself."""
        registry = self.partition.registry
        reported = self._reported
        self.max = config.max
        self.limits = registry.limits(config.max) if config.max else ()
        self.guaranteed = config.guaranteed
        self.guaranteed_by_type = dict(registry.limits(config.guaranteed or {}))
        self.max_applications = config.max_applications
        self.properties = config.properties
        self.raw_properties = config.raw_properties
        self.submit_acl = config.submit_acl
        self.admin_acl = config.admin_acl
        if self.parent is not None and reported != self._reported:
            self.parent.report_priority(reported, self._reported)

    @property
    def key(self) -> str:
        return f"{self.partition.key}/{self.path}"

    @property
    def fair(self) -> bool:
        """Whether a leaf sorts its applications by share."""
        return self.properties.sort_policy == "fair"

    @property
    def stateaware(self) -> bool:
        """Whether a leaf lets in one application after the other (2.9)."""
        return self.properties.sort_policy == "stateaware"

    @property
    def sorts_priority(self) -> bool:
        return self.properties.sort_priority

    def walk(self) -> Iterator[Queue]:
        """This queue and all below, parents first, children by name."""
        yield self
        for name in sorted(self.children):
            yield from self.children[name].walk()

    def may_submit(self, user: str, groups: tuple[str, ...]) -> bool:
        """Submit or admin rights here or at any ancestor (2.17)."""
        return any(
            queue.submit_acl.allows(user, groups) or queue.admin_acl.allows(user, groups)
            for queue in self.lineage
        )

    # -- quota -----------------------------------------------------------------------------------

    def has_room(self, shape: Shape) -> bool:
        """Whether one more allocation of this shape stays within this queue's own max (5.3)."""
        allocated = self.allocated
        for place, limit in self.limits:
            vector = shape.vector
            if place < len(vector) and (value := vector[place]) > 0:
                if allocated[place] + value > limit:
                    return False
        return True

    def run_short(self, shape: Shape) -> None:
        """Its quota has no room for this shape: nobody below asks for it until it has."""
        self.short_of[shape] = None
        self.block(shape.bits)

    def regained(self) -> None:
        """It got something back, or its quota grew: let those ask again who may have room now."""
        if self.short_of:
            for shape in [shape for shape in self.short_of if self.has_room(shape)]:
                del self.short_of[shape]
                if not self._closed:
                    self.unblock(shape.bits)
        if self.gated:
            gangs = list(self.gated)
            self.gated.clear()
            for app in gangs:
                app.gated = False
                self.partition.refresh(app)
        self.partition.wake_stalled()

    @property
    def _closed(self) -> bool:
        return self.blocked == EVERY_BIT

    def close(self) -> None:
        """Serve nobody below (Stopped)."""
        self.block(EVERY_BIT)

    def open(self) -> None:
        """Serve again; what was short of quota is found out anew."""
        self.short_of.clear()
        self.unblock(EVERY_BIT)

    def admits(self) -> bool:
        """Whether one more application may start here (maxapplications, this level only)."""
        limit = self.max_applications
        return not limit or self.running + len(self.admitted) + 1 <= limit

    # -- order ---------------------------------------------------------------------------------

    def make_rank(self) -> Key:
        """Priority, then the 1.6+ fair share, both exact (5.4); the name comes last."""
        reported = self._reported
        urgency = -(reported if reported is not None else _LOWEST)
        share = 0
        allocated = self.allocated
        for place, whole in self._denominator():
            used = allocated[place]
            if used:
                share = max(share, exact_share(used, whole) if whole > 0 else exact_share(1, 1))
        sorts = self.parent is None or self.parent.sorts_priority
        rank: Key = (urgency, share, self.name) if sorts else (share, urgency, self.name)
        self.rank = rank
        return rank

    def _denominator(self) -> tuple[tuple[int, int], ...]:
        """For each type what its share is a share of: guaranteed, else the most it may ever use."""
        if self._denominators is None:
            # a type that no node has is no part of root's max
            most = {at: whole for at, whole in enumerate(self.partition.capacity) if whole}
            for queue in reversed(self.lineage[:-1]):
                most.update(queue.limits)
            most.update(self.guaranteed_by_type)
            self._denominators = tuple(sorted(most.items()))
        return self._denominators

    def capacity_changed(self) -> None:
        """Nodes came, went or changed, or a quota did: shares are shares of something else."""
        self._denominators = None
        self.touch()

    def report_priority(self, old: int | None, new: int | None) -> None:
        """A child's reported priority changed; ``None`` is no pending ask at all (5.4)."""
        counts = self.priorities
        if old is not None:
            counts[old] -= 1
            if not counts[old]:
                del counts[old]
        if new is not None:
            counts[new] = counts.get(new, 0) + 1
        now = max(counts) if counts else None
        if now != self.priority:
            before = self._reported
            self.priority = now
            self.touch()
            if self.parent is not None and before != self._reported:
                self.parent.report_priority(before, self._reported)

    @property
    def _reported(self) -> int | None:
        if self.priority is None:
            return None
        offset = self.properties.priority_offset
        if self.properties.priority_policy == "fence":
            return offset
        return max(_LOWEST, min(_HIGHEST, offset + self.priority))


class ParentQueue(Queue):
    """Its children are queues, always in fair order."""

    __slots__ = ()

    def best(self, able: int) -> Any:
        """As for every level; exactly equal shares are decided by more pending, then the name."""
        wanted = self.offered & able
        if not wanted:
            return None
        best: Any = None
        head: Key = ()
        tied: dict[Any, None] = {}
        for child in self._candidates(wanted):
            rank = child.rank or child.make_rank()
            if best is None:
                best, head = child, rank
            elif rank[0] == head[0] and rank[1] == head[1]:
                tied[best] = tied[child] = None
            elif rank < head:
                best, head = child, rank
                tied.clear()
        if len(tied) < 2:
            return best
        return _most_pending(sorted(tied, key=lambda queue: queue.name))

    def _candidates(self, wanted: int) -> Iterable[Any]:
        """Children among which the best is: the first for each bit, or, where there are only a few
        children or more bits than children, simply all that wait for any."""
        if len(self.children) > _FEW and wanted.bit_count() < len(self.children):
            return (child for bit in bits_of(wanted) for child in self.waiting[bit].tied(2))
        return [q for q in self.children.values() if q.mask & ~q.blocked & wanted]


def _most_pending(queues: list[Any]) -> Any:
    """First of a stable sort in which a queue with strictly more pending goes before another.

    "More" is a partial order over several types, so the order of names counts (5.4).
    """
    ordered: list[Any] = []
    for queue in queues:
        at = len(ordered)
        while at and _asks_for_more(queue.pending, ordered[at - 1].pending):
            at -= 1
        ordered.insert(at, queue)
    return ordered[0]


def _asks_for_more(left: Book, right: Book) -> bool:
    return left != right and all(a >= b for a, b in zip(left, right, strict=True))


class Lane(Level):
    """Some of a leaf's applications, in order."""

    __slots__ = ()


class LeafQueue(Queue):
    """Its children are applications, in two lanes.

    ``serving`` has those that run or need no permission, ``admission`` those that a free place under
    maxapplications must let in; that lane is closed while there is none, here or above.
    """

    __slots__ = ("admission", "apps", "serving", "turn")

    leaf = True

    def __init__(self, partition: Partition, parent: Queue | None, name: str) -> None:
        super().__init__(partition, parent, name)
        self.apps: dict[str, Application] = {}
        self.serving = Lane()
        self.admission = Lane()
        for lane in (self.serving, self.admission):
            lane.above = self
        #: stateaware: the one application that is not running yet and may be served (2.9)
        self.turn: Application | None = None

    def best(self, able: int) -> Any:
        able &= ~self.blocked
        served = self.serving.best(able)
        if not self.admission.mask:
            return served
        entering = self.admission.best(able)
        if served is None or entering is None:
            return served or entering
        return min(served, entering, key=lambda app: app.rank or app.make_rank())

    def announce(self, child: Any, bits: int) -> None:
        if fresh := bits & ~self.mask:
            self.mask |= fresh
            self._pass_on(fresh & ~self.blocked)

    def withdraw(self, child: Any, bits: int) -> None:
        other = self.admission if child is self.serving else self.serving
        if gone := bits & self.mask & ~other.offered:
            self.mask &= ~gone
            self._take_back(gone & ~self.blocked)

    def refresh_admission(self) -> None:
        """Open or close the lane of those who need a place."""
        if all(queue.admits() for queue in self.lineage):
            self.admission.unblock(EVERY_BIT)
            self.partition.wake_stalled()
        else:
            self.admission.block(EVERY_BIT)

    def headroom(self, *, with_root: bool = True) -> dict[int, int]:
        """What is left under every quota on the path, by type; types without one are absent.

        Root's max is what the nodes have; without it this is the maximal headroom (5.3).
        """
        room: dict[int, int] = {}
        for queue in self.lineage if with_root else self.lineage[:-1]:
            for place, limit in queue.limits:
                left = limit - queue.allocated[place]
                room[place] = min(left, room.get(place, left))
        return room


def fits_headroom(room: dict[int, int], vector: Vector) -> bool:
    """Whether the vector fits what is left, where anything limits it."""
    return all(
        value <= max(0, room[place])
        for place, value in enumerate(vector)
        if place in room and value
    )
