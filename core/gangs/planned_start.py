"""The planned start of the protected gang: when all its missing members fit, and on which nodes (Q9).

It follows from the expected ends of what runs (Q11). What is not expected to end is never free. Nothing is
held: until the start, others use the nodes of the plan if they are expected to end before, and beside the
members if they fit there (``Node.beside``). What they may not use is charged to the budget (Q10).

A plan is made again when room came back anywhere, when an end is overdue, and when its start has come. In a
large partition it looks at a bounded number of allocations, and is made again only after a rest.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection
from operator import itemgetter
from typing import TYPE_CHECKING, Final

import numpy as np

from quadriga.base.times import FOREVER, SECOND
from quadriga.core.gangs.plan import fit_in
from quadriga.core.model import predictions
from quadriga.core.model.gang import PlannedStart
from quadriga.core.ordering.room import room_for
from quadriga.core.preemption.shortfall import add_to
from quadriga.core.steps import reservation
from quadriga.core.topology.domains import is_local, required_domains

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import AskGroup
    from quadriga.core.model.node import Node
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.run_times import Expected
    from quadriga.core.resources.vectors import Totals, Vector
    from quadriga.core.runtime.kernel import Kernel

#: the timer that fires at the planned start
_TIMER: Final = "partition.planned_start"
#: at most this many allocations and nodes are examined for a plan, a quarter of them where domains matter
_MOST_EXAMINED: Final = 20_000
#: a plan for which more than a thousand were examined is made again after this time (ns) for each of them at the
#: earliest, so that planning takes a few hundredths of the scheduler's time
_FEW_EXAMINED: Final = 1_000
_REST_FOR_EACH: Final = SECOND // 10_000

#: room that comes back: when (ns), where, and how much, with units of shared devices
_Freed = tuple[int, "Node", "Vector"]


def find(
    kernel: Kernel, app: Application, gone: Collection[Allocation] = ()
) -> PlannedStart | None:
    """The earliest start of all outstanding members of the gang, without what is ``gone``; ``None`` if what has no
    expected end is in the way."""
    partition, now = app.partition, kernel.now
    before = partition.node_index.planned
    known = before.ends if before is not None else {}
    free: dict[Node, Totals] = {}
    ends: dict[Allocation, Expected] = {}
    freed: list[_Freed] = []
    members = app.gang.members
    for node in _nodes_for(partition, members):
        if not node.open:
            continue
        kept = node.reservation
        if kept is not None and kept.kind is None and kept.ask.app is not app:
            continue  # for an ask that requires it, or for which others were preempted there
        free[node] = list(node.available)
        for allocation in node.allocations:
            if allocation in gone:
                add_to(free[node], allocation.on_node)
                continue
            expected = known.get(allocation)
            if expected is None or expected.time <= now:
                expected = predictions.planned_end(allocation, now)
                if expected is None:
                    continue
            ends[allocation] = expected
            freed.append((expected.time, node, allocation.on_node))
    freed.sort(key=itemgetter(0))
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
    examined = len(free) + len(freed)
    plan.again = now + examined * _REST_FOR_EACH if examined > _FEW_EXAMINED else now
    for node in needs:
        sources = (ends[each] for each in node.allocations if each in ends)
        plan.sources.update(each.source for each in sources if each.time <= start)
        beside = zip(free[node], needs[node], strict=True)
        plan.beside[node] = [amount - need for amount, need in beside]
    if app.queue.properties.gang_gather_preempt:
        plan.late_from = partition.lent.next_overrun(now)
    if before is not None and before.app is app:
        plan.promised = before.promised
    return plan


def number_to_examine(partition: Partition) -> int:
    """How many allocations and nodes a plan for the whole partition takes into account."""
    nodes = partition.node_index.nodes
    if len(nodes) > _MOST_EXAMINED:
        return len(nodes)
    return len(nodes) + sum([len(node.allocations) for node in nodes])


def most_plans(partition: Partition) -> int:
    """How many plans may be made in one go."""
    return max(1, _MOST_EXAMINED // max(1, number_to_examine(partition)))


def _nodes_for(partition: Partition, members: list[AskGroup]) -> list[Node]:
    """The nodes that a plan uses, in node order: all of them, or those with the most room now for members of each
    shape. Domains of the level that the gang requires are taken as a whole, those with the most room first."""
    index = partition.node_index
    local = is_local(members)
    most = _MOST_EXAMINED // 4 if local else _MOST_EXAMINED
    if number_to_examine(partition) <= most:
        return index.nodes
    amounts, _ = index.amounts()
    room = np.full(len(index.nodes), np.inf)
    for group in members:
        for at, value in group.shape.need:
            room = np.minimum(room, amounts[:, at] / value)
    keys = [-room]
    if local and (domains := required_domains(partition, members)) is not None:
        whole = np.bincount(domains + 1, np.floor(np.maximum(room, 0)))
        whole[0] = -1  # nodes without a domain
        keys += [domains, -whole[domains + 1]]
    chosen: list[int] = []
    examined = 0
    for at in np.lexsort(keys).tolist():
        examined += 1 + len(index.nodes[at].allocations)
        if examined > most:
            break
        chosen.append(at)
    return [index.nodes[at] for at in sorted(chosen)]


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
        for _, node, amounts in freed[:count]:
            for at, value in enumerate(amounts):
                then[node][at] += value
        return fit_in(partition, members, then) is not None

    found = bisect_left(counts, True, key=fits)
    return counts[found] if found < len(counts) else whole + 1


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

    def add(self, node: Node, amounts: Vector) -> None:
        """These amounts come free on the node."""
        room, left = self._free[node], self._left
        for at, group in enumerate(self._groups):
            left[at] += self._on(node, group)
        for at, value in enumerate(amounts):
            room[at] += value
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
    if plan is None:
        for each in list(partition.lent.runtimes):
            partition.lent.returned(each, kernel.now)
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
        if (due := min(filter(kernel.now.__lt__, (plan.start, plan.late_from)))) < FOREVER:
            left = due - kernel.now
            plan.timer = kernel.timers.start(kernel.now, left, _TIMER, partition)


def is_due(kernel: Kernel, partition: Partition) -> bool:
    """Whether the plan is to be made again, or the gang is to be tried. If the plan has to rest first, the timer
    runs until then."""
    plan, now = partition.node_index.planned, kernel.now
    if plan is None:
        return False
    if (plan.start <= now and not plan.tried) or plan.late_from <= now:
        return True
    if not plan.stale or plan.again <= now:
        return plan.stale
    if plan.timer is None or plan.timer.when > plan.again:
        if plan.timer is not None:
            plan.timer.cancel()
        plan.timer = kernel.timers.start(now, plan.again - now, _TIMER, partition)
    return False
