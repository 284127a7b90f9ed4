"""Lanes: the applications that share the same user and group limits.

The children of a leaf are lanes of groups, their children are lanes of users, and theirs are the
applications. So a limit without room blocks and unblocks one level, however many applications wait
below. A lane has no rank of its own: for each bit it has the rank of its first application, which the
heap of the level above stores.

Applications without limits have no lanes of this kind (see ``model.queue.LeafQueue``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quadriga.core.resources.demand import MAX_COMPARED, Key, Level, bits_of
from quadriga.core.resources.lazy_heap import LazyHeap

if TYPE_CHECKING:
    from quadriga.core.model.account import Ledger
    from quadriga.core.model.application import Application
    from quadriga.core.model.queue import LeafQueue, Queue

Ledgers = tuple["Ledger", ...]


class _LaneRanking(LazyHeap):
    """The lanes that have an application for one bit, by the ranks of these applications."""

    __slots__ = ("_bit", "_keys")

    def __init__(self, bit: int) -> None:
        super().__init__()
        self._bit = bit
        #: the key in the entry of each lane
        self._keys: dict[Any, Key] = {}

    def key_of(self, item: Any) -> Key:
        key: Key = item.key_for(self._bit)
        self._keys[item] = key  # the caller enters this key, or the entry has an equal one
        return key

    def add(self, item: Any) -> None:
        """Enter a lane with applications for the bit, or one with another first application."""
        known = self._keys.get(item)
        if known is None or item.key_for(self._bit) < known:  # else its entry surfaces early enough
            super().add(item)

    def discard(self, item: Any) -> None:
        super().discard(item)
        self._keys.pop(item, None)

    def first(self) -> Any:
        if len(self._numbers) == 1:
            return next(iter(self._numbers))
        return super().first()

    def renew(self) -> None:
        self._keys.clear()
        super().renew()


class LimitLane(Level):
    """Applications of one user and one group, in order; ``ledgers`` are the user's limits."""

    __slots__ = ("entering", "ledgers", "lanes", "members")

    def __init__(self, lanes: LaneSet, ledgers: Ledgers) -> None:
        super().__init__()
        self.above = self.lanes = lanes
        self.ledgers = ledgers
        #: its applications need a slot under maxapplications before they are served
        self.entering = lanes.entering
        #: number of applications in the lane, with or without demand
        self.members = 0

    def key_for(self, bit: int) -> Key:
        """The rank of the first application that waits for this bit."""
        app = self.best(bit)
        return app.rank or app.make_rank()  # type: ignore[no-any-return]

    def announce(self, child: Any, bits: int) -> None:
        known = bits & self.demand
        super().announce(child, bits)
        if known:
            self.lanes.rerank(self, known)

    def rerank(self, child: Any, bits: int) -> None:
        super().rerank(child, bits)
        if passed := bits & ~self.blocked:
            self.lanes.rerank(self, passed)

    def stops(self) -> int:
        return self.blocked | self.lanes.blocked

    def leave(self) -> None:
        """Count out an application; an empty lane is dropped."""
        self.members -= 1
        if not self.members:
            self.lanes.drop(self)


class LaneSet(Level):
    """Lanes, or sets of lanes; the first application of all of them is next.

    ``lanes`` are by their own ledgers; ``ledgers`` are the limits common to all of them.
    """

    __slots__ = ("entering", "lanes", "ledgers")

    def __init__(
        self, above: Queue | LaneSet, ledgers: Ledgers = (), *, entering: bool = False
    ) -> None:
        super().__init__()
        self.above = above
        self.entering = entering
        self.ledgers = ledgers
        self.lanes: dict[Ledgers, LimitLane | LaneSet] = {}

    def lane(self, group: Ledgers, user: Ledgers) -> LimitLane:
        """The lane of these limits, created if missing."""
        found = self.lanes.get(group)
        if found is None:
            found = self.lanes[group] = LaneSet(self, group, entering=self.entering)
        assert isinstance(found, LaneSet)
        lane = found.lanes.get(user)
        if lane is None:
            lane = found.lanes[user] = LimitLane(found, user)
        assert isinstance(lane, LimitLane)
        return lane

    def drop(self, lane: LimitLane | LaneSet) -> None:
        """Remove an empty lane."""
        for ledger in lane.ledgers:
            ledger.abandon(lane)
        del self.lanes[lane.ledgers]
        if not self.lanes and isinstance(self.above, LaneSet):
            self.above.drop(self)

    def new_ranking(self, bit: int) -> _LaneRanking:
        return _LaneRanking(bit)

    def announce(self, child: Any, bits: int) -> None:
        known = bits & self.demand
        super().announce(child, bits)
        if known and isinstance(self.above, LaneSet):
            self.above.rerank(self, known)

    def rerank(self, child: Any, bits: int) -> None:
        super().rerank(child, bits)
        if isinstance(self.above, LaneSet) and (passed := bits & ~self.blocked):
            self.above.rerank(self, passed)

    def reorder(self) -> None:
        for lane in self.lanes.values():
            lane.reorder()
        self.bit_order = None
        for order in self.waiting.values():
            order.renew()

    def key_for(self, bit: int) -> Key:
        """The rank of the first application of all lanes that waits for this bit."""
        app = self.best(bit)
        assert app is not None
        return app.rank or app.make_rank()

    def best(self, feasible: int) -> Application | None:
        """The first application that waits for a feasible bit."""
        first: Application
        demand = self.demand & feasible
        if not demand:
            return None
        lanes = self.few
        if lanes is None and demand.bit_count() > MAX_COMPARED:
            first = self.first_by_bit(demand).best(demand)
            return first
        if lanes is None:
            lanes = dict.fromkeys(self.waiting[bit].first() for bit in bits_of(demand))
        elif len(lanes) == 1:
            first = next(iter(lanes)).best(demand)
            return first
        best: Application | None = None
        for lane in lanes:
            app = lane.best(demand)
            if best is None or (
                app is not None and (app.rank or app.make_rank()) < (best.rank or best.make_rank())
            ):
                best = app
        return best


def lane_for(leaf: LeafQueue, app: Application, counted: bool) -> Level:
    """The lane of the application, by its limits and by whether it has its slot under
    maxapplications (``counted``)."""
    if not app.limiting:
        return leaf.serving if counted else leaf.admission
    if not leaf.limited:
        leaf.limited = (LaneSet(leaf), LaneSet(leaf, entering=True))
        leaf.refresh_admission()
    lanes = leaf.limited[0 if counted else 1]
    assert isinstance(lanes, LaneSet)
    return lanes.lane(app.group_limits, app.user_limits)


def full(app: Application) -> Ledger | None:
    """The first ledger that does not admit an application that still needs to be admitted."""
    lane = app.above
    if isinstance(lane, LimitLane) and lane.entering and not app.counted:
        return next((ledger for ledger in app.limiting if not ledger.admits()), None)
    return None
