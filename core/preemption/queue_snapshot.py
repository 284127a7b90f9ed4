"""The usage of queues compared with what is guaranteed to them, as an ask sees it that wants to preempt
(5.9).

What counts is where the path of the ask and that of a victim meet, the lowest queue above both. Below
it, on the ask's side, every queue has to be within its guarantee with the ask, and at least one of them
must have a guarantee for something that is asked for. On the victim's side, no queue may fall below its
guarantee; a queue without one, or a type that it does not name, is not protected. Queues above both do
not matter for this: what one queue below them loses, another one gets. So a victim that comes back
never has the right to preempt what took its place.

Usage excludes allocations that are being preempted already. On the ask's path it includes what other
asks have preempted for and not got yet. See D243.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quadriga.core.model.ask import AskGroup
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.queue import Queue
    from quadriga.core.resources.vectors import Vector

#: why an ask may not preempt for a guarantee, as ``explain`` says it
NO_GUARANTEE: Final = "nothing of what it asks for is guaranteed to its queue or any above"
AT_MAX: Final = "its queue would be above its max"
ABOVE: Final = "its queue would be above its guarantee"
PROMISED: Final = "its queue, or one above, would be above its guarantee with what others wait for"


class Refusal(NamedTuple):
    """Why an ask may not preempt, and the queue that would be ``over`` its guarantee, by type."""

    why: str
    queue: Queue
    over: list[int]


def least(upper: dict[int, int], own: tuple[tuple[int, int], ...]) -> dict[int, int]:
    """The smaller amount where both have one, else the one that there is (MinPermissive, 5)."""
    both = dict(upper)
    for index, amount in own:
        both[index] = min(amount, both.get(index, amount))
    return both


class QueueSnapshot:
    """One queue, and its usage when the snapshot was made.

    ``guaranteed`` is its own guarantee and ``most`` the smallest quota on its path, by index of the type.
    ``bound`` is what it may use at most, and ``used`` what it uses, for every type. ``guards`` are the
    snapshots that decide whether a victim may be taken from this queue, a leaf.
    """

    __slots__ = ("bound", "guaranteed", "guards", "most", "queue", "used")

    def __init__(self, queue: Queue, upper: QueueSnapshot | None) -> None:
        self.queue = queue
        self.guaranteed = queue.guaranteed_by_type
        self.most: dict[int, int] = least(upper.most if upper else {}, queue.limits)
        self.bound = self._make_bound(upper)
        self.used = [
            amount - going for amount, going in zip(queue.allocated, queue.preempting, strict=True)
        ]
        self.guards: tuple[QueueSnapshot, ...] = ()

    def _make_bound(self, upper: QueueSnapshot | None) -> list[int]:
        return [max(0, self.most.get(at, 0)) for at in range(len(self.queue.allocated))]

    def over(self, vector: Vector) -> list[int]:
        """How much it would be above its guarantee with this vector, by type."""
        over = [0] * len(self.used)
        for at, amount in self.guaranteed.items():
            over[at] = max(0, self.used[at] + (vector[at] if at < len(vector) else 0) - amount)
        return over

    def keeps_guarantee(self, evicted: list[int], vector: Vector) -> bool:
        """Whether the queue still has its guarantee without the evicted amounts, for the types of the
        victim with this vector, which is the last of those evicted."""
        used = self.used
        for at, amount in self.guaranteed.items():
            if at < len(vector) and vector[at] > 0 and used[at] - evicted[at] < amount:
                return False
        return True

    @property
    def kept(self) -> set[int]:
        """The types of which nothing may be taken from this leaf."""
        return {
            at
            for guard in self.guards
            for at, amount in guard.guaranteed.items()
            if guard.used[at] <= amount
        }

    def full_for(self, vector: Vector) -> bool:
        """Whether the queue would exceed a quota on its path with this vector allocated as well, for
        any type that a quota names (2.21)."""
        allocated, asked = self.queue.allocated, len(vector)
        return any(
            allocated[index] + (vector[index] if index < asked else 0) > most
            for index, most in self.most.items()
        )


class Snapshots:
    """The snapshots made during one attempt of an ask in the leaf ``own``, each when it was first
    needed."""

    __slots__ = ("_by_queue", "_high", "_levels", "_low", "_promised", "own")

    def __init__(self, own: Queue) -> None:
        self.own = own
        self._by_queue: dict[Queue, QueueSnapshot] = {}
        #: the queues of the own path, each with its level above the leaf
        self._levels = {queue: level for level, queue in enumerate(own.lineage)}
        #: victims are taken where the paths meet above the level ``_low``, and not above ``_high``
        self._low, self._high = -1, len(own.lineage)
        #: what asks wait for that have preempted, each with its leaf
        self._promised: list[tuple[Queue, Vector]] | None = None

    def of(self, queue: Queue) -> QueueSnapshot:
        known = self._by_queue.get(queue)
        if known is None:
            upper = self.of(queue.parent) if queue.parent is not None else None
            known = self._by_queue[queue] = self._make(queue, upper)
        return known

    @property
    def path(self) -> list[QueueSnapshot]:
        """The snapshots of the own leaf, its parent, and so on up to root."""
        return [self.of(queue) for queue in self.own.lineage]

    def _make(self, queue: Queue, upper: QueueSnapshot | None) -> QueueSnapshot:
        made = QueueSnapshot(queue, upper)
        if queue not in self._levels:
            above = upper.guards if upper is not None else ()
            made.guards = (made, *above) if made.guaranteed else above
            return made
        if self._promised is None:
            self._promised = list(_promised(queue.partition))
        for leaf, vector in self._promised:
            if queue in leaf.lineage:
                for at, amount in enumerate(vector):
                    made.used[at] += amount
        return made

    def refusal(self, vector: Vector) -> Refusal | None:
        """Why nothing may be preempted for what is asked for together; ``None`` if something may."""
        path = self.path
        asked = {at for at, amount in enumerate(vector) if amount > 0}
        low = next((at for at, each in enumerate(path) if asked & each.guaranteed.keys()), None)
        if low is None:
            return Refusal(NO_GUARANTEE, self.own, [])
        if path[0].full_for(vector):  # what its own queue lacks, no victim elsewhere can free
            return Refusal(AT_MAX, self.own, [])
        high = next((at for at, each in enumerate(path) if any(each.over(vector))), len(path) - 1)
        if high <= low:
            promised = any(path[high].queue in leaf.lineage for leaf, _ in self._promised or ())
            why = PROMISED if promised else ABOVE
            return Refusal(why, path[high].queue, path[high].over(vector))
        self._low, self._high = low, high
        return None

    def victims_in(self, leaf: Queue) -> QueueSnapshot | None:
        """The snapshot of a leaf that may lose allocations; ``None`` if it may lose none."""
        levels = self._levels
        meets = next(levels[queue] for queue in leaf.lineage if queue in levels)
        if not self._low < meets <= self._high:
            return None
        found = self.of(leaf)
        kept = found.kept
        if all(at in kept for at, amount in enumerate(leaf.allocated) if amount > 0):
            return None
        return found


def _promised(partition: Partition) -> Iterator[tuple[Queue, Vector]]:
    """What asks wait for that have preempted, each with its leaf; a gang as a whole."""
    gangs = set()
    for each in partition.reservations:
        ask = each.ask
        app = ask.app
        if not ask.preempted:
            continue
        if not app.gang.victims:
            yield app.queue, ask.vector
        elif app not in gangs:
            gangs.add(app)
            yield app.queue, _needs(app.gang.members, len(app.queue.allocated))


def _needs(members: list[AskGroup], types: int) -> Vector:
    total = [0] * types
    for group in members:
        for at, value in group.shape.need:
            total[at] += value * group.pending
    return tuple(total)
