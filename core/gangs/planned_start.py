"""The planned start of the protected gang: when all its missing members fit, and on which nodes (Q9).

It follows from the expected ends of what runs (Q11). What is not expected to end is never free. Nothing is
held: until the start, others use the nodes of the plan if they are expected to end before, and beside the
members if they fit there (``Node.beside``). What they may not use is charged to the budget (Q10).

A plan is made again when room came back anywhere, when an end is overdue, and when its start has come.
"""

from __future__ import annotations

from bisect import bisect_left
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from quadriga.base.times import SECOND
from quadriga.core.gangs.plan import fit_in
from quadriga.core.model.gang import PlannedStart
from quadriga.core.model.run_times import NOTHING, Expected
from quadriga.core.ordering.room import room_for
from quadriga.core.resources.units import give
from quadriga.core.steps import reservation
from quadriga.core.topology.domains import is_local

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import AskGroup
    from quadriga.core.model.node import Node
    from quadriga.core.model.partition import Partition
    from quadriga.core.resources.units import Units
    from quadriga.core.resources.vectors import Totals, Vector
    from quadriga.core.runtime.kernel import Kernel

#: the timer that fires at the planned start
_TIMER: Final = "partition.planned_start"
#: what nothing is known of is expected to last this long (ns) at least
_SHORTEST: Final = 60 * SECOND

#: room that comes back: when (ns), where, how much, and which units of shared devices
_Freed = tuple[int, "Node", "Vector", "Units"]


def find(kernel: Kernel, app: Application) -> PlannedStart | None:
    """The earliest start of all outstanding members of the gang; ``None`` if what has no expected end is in the
    way."""
    partition, now = app.partition, kernel.now
    before = partition.node_index.planned
    known = before.ends if before is not None else {}
    free: dict[Node, Totals] = {}
    ends: dict[Allocation, Expected] = {}
    freed: list[_Freed] = []
    for node in partition.node_index.nodes:
        if not node.open:
            continue
        kept = node.reservation
        if kept is not None and kept.kind is None and kept.ask.app is not app:
            continue  # for an ask that requires it, or for which others were preempted there
        free[node] = list(node.available)
        for allocation in node.allocations:
            expected = known.get(allocation)
            if expected is None or expected.time <= now:
                expected = _end_of(partition, allocation, now)
                if expected is None:
                    continue
            ends[allocation] = expected
            freed.append((expected.time, node, allocation.on_node, allocation.units))
    freed.sort(key=itemgetter(0))
    members = app.gang.members
    room = _Room(members, free)
    missing = room.missing
    start, at = now, 0
    least = _least_for_domains(partition, members, free, freed)
    while True:
        if (
            at >= least
            and not room.missing
            and (needs := fit_in(partition, members, room.latest_first())) is not None
        ):
            break
        if at == len(freed):
            return None
        start = freed[at][0]
        while at < len(freed) and freed[at][0] == start:
            room.add(*freed[at][1:])
            at += 1
    plan = PlannedStart(app, start, needs, ends)
    plan.missing = missing
    for node in needs:
        sources = (ends[each] for each in node.allocations if each in ends)
        plan.sources.update(each.source for each in sources if each.time <= start)
        beside = zip(free[node], needs[node], strict=True)
        plan.beside[node] = [amount - need for amount, need in beside]
    if before is not None and before.app is app:
        plan.promised = before.promised
    return plan


def _least_for_domains(
    partition: Partition, members: list[AskGroup], free: dict[Node, Totals], freed: list[_Freed]
) -> int:
    """How many of those ends it takes at least until members fit that want something of their domains (Q13), found
    by bisection, as one look at all domains costs more than an end; one more than there are if they never do."""
    if not is_local(members):
        return 0
    whole = len(freed)
    counts = [at for at in range(whole + 1) if at in (0, whole) or freed[at - 1][0] < freed[at][0]]

    def fits(count: int) -> bool:
        then = {node: list(amounts) for node, amounts in free.items()}
        for _, node, amounts, units in freed[:count]:
            for at, value in enumerate(amounts):
                then[node][at] += value
            give(then[node], units)
        return fit_in(partition, members, then) is not None

    found = bisect_left(counts, True, key=fits)
    return counts[found] if found < len(counts) else whole + 1


def _end_of(partition: Partition, allocation: Allocation, now: int) -> Expected | None:
    """When the allocation is expected to end; ``None``: never. One of which nothing is known is expected to last
    as long again as it has run."""
    if partition.gather_budget.is_endless(allocation, now):
        return None
    expected = partition.run_times.end_of(allocation, now)
    if expected is None:
        return Expected(now + max(now - allocation.created, _SHORTEST), NOTHING)
    return expected


class _Room:
    """What is free on each node while time passes, and how many members lack room."""

    __slots__ = ("_changed", "_free", "_groups", "_left")

    def __init__(self, groups: list[AskGroup], free: dict[Node, Totals]) -> None:
        self._groups = groups
        self._free = free
        self._changed: dict[Node, None] = {}
        self._left = [
            group.pending - sum(self._on(node, group) for node in free) for group in groups
        ]

    def _on(self, node: Node, group: AskGroup) -> int:
        """The number of members of the group that the node has room for."""
        shape = group.shape
        if shape.required_node not in ("", node.node_id):
            return 0
        return room_for(shape, self._free[node]) if shape.need else group.pending

    @property
    def missing(self) -> int:
        """Members of each group for which all nodes together have no room."""
        return sum([left for left in self._left if left > 0])

    def add(self, node: Node, amounts: Vector, units: Units) -> None:
        """These amounts come free on the node."""
        room, left = self._free[node], self._left
        for at, group in enumerate(self._groups):
            left[at] += self._on(node, group)
        for at, value in enumerate(amounts):
            room[at] += value
        give(room, units)
        for at, group in enumerate(self._groups):
            left[at] -= self._on(node, group)
        self._changed.pop(node, None)
        self._changed[node] = None

    def latest_first(self) -> dict[Node, Totals]:
        """What is free on each node. The nodes where room came back last are first: others may have the rest."""
        nodes = dict.fromkeys(reversed(self._changed))
        nodes.update(dict.fromkeys(self._free))
        return {node: self._free[node] for node in nodes}


# -- the plan in force -----------------------------------------------------------------------------


def apply(kernel: Kernel, partition: Partition, plan: PlannedStart | None) -> None:
    """The plan is in force from now on, instead of the present one; ``None``: nothing is planned."""
    index, budget = partition.node_index, partition.gather_budget
    before = index.planned
    index.planned = plan
    needs = plan.needs if plan is not None else {}
    gone = [node for node in before.needs if node not in needs] if before is not None else []
    for node in gone:
        budget.drop(node)
        node.beside = None
    for node, need in needs.items():
        assert plan is not None
        if (kept := node.reservation) is not None and kept.kind is not None:
            reservation.cancel(partition, kept)  # the ask was not protected
        old, node.beside = node.beside, plan.beside[node]
        budget.keep(node, need, kernel)
        if old is None or before is None:
            index.changed(node)
            index.gained(node)
        elif plan.start > before.start or any(map(int.__gt__, node.beside, old)):
            index.gained(node)  # more may use it meanwhile
        else:
            index.took(node)
    for node in gone:
        index.gained(node)
    if before is not None and before.timer is not None:
        before.timer.cancel()
    if plan is not None:
        plan.stale = False
        if plan.start > kernel.now:
            left = plan.start - kernel.now
            plan.timer = kernel.timers.start(kernel.now, left, _TIMER, partition)


def is_due(partition: Partition, now: int) -> bool:
    """Whether the plan is to be made again, or the gang is to be tried."""
    plan = partition.node_index.planned
    return plan is not None and (plan.stale or (plan.start <= now and not plan.tried))
