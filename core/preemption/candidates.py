"""Which allocations may be evicted, and in which order: common to all kinds of preemption (2.8, 5.9).

Never evicted are allocations that require their node, that are being released already (R5), or that
opted out in a queue where this is strict (X40); nor any placeholder of a gang that is still gathering,
as the gang would have to start again.

Among candidates of the same rank, gangs decide: first come allocations that a gang holds beyond its
placeholders, then allocations of no gang, then gang members. Among members, those of a gang that has
lost one already come first, then those of the gang that was submitted last: one gang loses all its
members before the next one loses any. Without gangs the order is unaffected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from quadriga.core.model.queue import LeafQueue
from quadriga.core.preemption.queue_snapshot import QueueSnapshot, Snapshots
from quadriga.core.resources.vectors import covers, plus
from quadriga.fsm.lifecycles import allocation as allocation_fsm
from quadriga.fsm.lifecycles import application as application_fsm

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.application import Application
    from quadriga.core.model.queue import Queue
    from quadriga.core.resources.vectors import Vector

#: ranks as far as gangs matter: held by a gang beyond its placeholders, of no gang, a gang member
_SURPLUS: Final = (0, 0, 0)
_NO_GANG: Final = (1, 0, 0)
_MEMBER: Final = 2


class Candidate:
    """An allocation that may be evicted. ``gang`` is its rank as far as gangs matter, ``leaf`` the
    snapshot of its queue where guarantees matter."""

    __slots__ = ("allocation", "gang", "leaf")

    def __init__(
        self, allocation: Allocation, leaf: QueueSnapshot | None, gang: tuple[int, int, int]
    ) -> None:
        self.allocation = allocation
        self.leaf = leaf
        self.gang = gang

    @property
    def breaks_gang(self) -> bool:
        """Whether it is a member of a gang that is complete."""
        return self.gang[:2] == (_MEMBER, 1)

    @property
    def newest_first(self) -> tuple[int, int, int]:
        """Sort key: the youngest ask first, and of one ask the last allocation first (5.9)."""
        ask = self.allocation.ask
        return -ask.created, -ask.seq, -self.allocation.created

    @property
    def willing_first(self) -> tuple[object, ...]:
        """Sort key of preemption for guarantees: those that have opted out last, then originators last,
        then by gang, then the newest first."""
        ask = self.allocation.ask
        return not ask.terms.allow_preempt_self, ask.terms.originator, self.gang, self.newest_first


def by_kind(candidate: Candidate) -> tuple[object, ...]:
    """Sort key of the other two kinds (2.8): regular allocations first, then those that have opted out,
    then originators; then the lowest priority, by gang, the newest, the smallest first."""
    ask = candidate.allocation.ask
    kind = 2 if ask.terms.originator else (0 if ask.terms.allow_preempt_self else 1)
    size = sum(candidate.allocation.vector)
    return kind, ask.priority, candidate.gang, candidate.newest_first, size


# -- of one application ----------------------------------------------------------------------------


def gathers(app: Application) -> bool:
    """Whether the application is a gang that has some placeholders and waits for the others."""
    return (
        app.gang.size is not None
        and app.gang.started
        and not app.gang.over
        and app.state in application_fsm.BEFORE_RUNNING
    )


def of_application(app: Application, leaf: QueueSnapshot | None = None) -> Iterator[Candidate]:
    """The candidates of the application, in the order in which they were allocated."""
    if gathers(app):
        return
    held = [*app.allocations.values(), *app.placeholders.values()]
    strict = app.queue.properties.preemption_optout == "strict"
    if app.gang.size is None or app.gang.timed_out:
        for allocation in held:
            if _may_evict(allocation, strict):
                yield Candidate(allocation, leaf, _NO_GANG)
        return
    members = _members(app, held)
    broken = any(a.reason == allocation_fsm.PREEMPTION for a in held if a in members)
    for allocation in held:
        if not _may_evict(allocation, strict):
            continue
        member = (_MEMBER, 0 if broken else 1, -app.seq)
        yield Candidate(allocation, leaf, member if allocation in members else _SURPLUS)


def _may_evict(allocation: Allocation, strict: bool) -> bool:
    """Whether the allocation may be evicted; ``strict``: not if its ask has opted out (X40)."""
    ask = allocation.ask
    if allocation.state not in allocation_fsm.RELEASABLE or ask.required_node:
        return False
    return ask.terms.allow_preempt_self or not strict


def _members(app: Application, held: list[Allocation]) -> set[Allocation]:
    """The gang members among these allocations: placeholders, and allocations that replaced one.

    After a restart it is unknown which allocations replaced a placeholder; then the oldest allocations
    of the task groups count as members until the gang is complete. Of a gang without placeholders the
    oldest allocations count.
    """
    whole = app.gang.size
    assert whole is not None
    members = {a for a in held if a.placeholder or _replaced_placeholder(app, a)}
    have: tuple[int, ...] = ()
    for member in members:
        have = plus(have, member.vector)
    any_group = app.gang.without_placeholders
    others = [a for a in held if (a.ask.task_group or any_group) and a not in members]
    for other in sorted(others, key=lambda a: (a.created, a.ask.seq)):
        if covers(have, whole):
            break
        members.add(other)
        have = plus(have, other.vector)
    return members


def _replaced_placeholder(app: Application, allocation: Allocation) -> bool:
    group = app.gang.task_groups.get(allocation.ask.task_group)
    return group is not None and allocation.uuid in group.placeholder_created_at


# -- for an ask that would be within its guarantee -------------------------------------------------


def candidates_for(
    own: Queue, priority: int, vector: Vector, snapshots: Snapshots
) -> list[Candidate]:
    """The allocations that may be evicted for an ask of this priority, or for several asks that ask for
    this vector together, inside the fence around their queue (5.9, steps 1 and 2)."""
    found: list[Candidate] = []
    fence, path = _fence(own, priority, vector, snapshots)
    for queue, most in _leaves(fence, own, path, path[fence]):
        if queue.properties.preemption_policy == "disabled":
            continue
        leaf = snapshots.victims_in(queue)
        if leaf is None:
            continue
        kept = leaf.kept
        for app in queue.apps.values():
            for candidate in of_application(app, leaf):
                if most is not None and candidate.allocation.ask.priority > most:
                    continue
                if not (kept and holds_any(candidate.allocation.vector, kept)):
                    found.append(candidate)
    return found


def holds_any(vector: Vector, types: Iterable[int]) -> bool:
    """Whether the vector has something of one of these types."""
    return any(at < len(vector) and vector[at] > 0 for at in types)


def _fence(
    own: Queue, priority: int, vector: Vector, snapshots: Snapshots
) -> tuple[Queue, dict[Queue, int]]:
    """The highest queue in which the ask may look for victims, and the ask's priority as seen from each
    queue on its path: offsets add up, a priority fence replaces it by its offset.

    A queue that has no room for the ask under its max is a fence too (2.21): evicting allocations
    outside it would not make room inside.
    """
    priorities: dict[Queue, int] = {}
    queue = own
    while True:
        properties = queue.properties
        fenced = properties.priority_policy == "fence"
        offset = properties.priority_offset
        priority = offset if fenced else priority + offset
        priorities[queue] = priority
        if queue.parent is None or properties.preemption_policy == "fence":
            return queue, priorities
        if snapshots.of(queue).full_for(vector):
            return queue, priorities
        queue = queue.parent


def _leaves(
    queue: Queue, own: Queue, path: dict[Queue, int], priority: int, *, any_priority: bool = False
) -> Iterator[tuple[LeafQueue, int | None]]:
    """The leaves below a queue except the ask's own, each with the ask's priority as seen from there.

    ``None``: the leaf is inside a priority fence that is no higher than the ask, so that allocations of
    any priority may be evicted.
    """
    if queue is own:
        return
    if isinstance(queue, LeafQueue):
        yield queue, None if any_priority else priority
        return
    for _, child in sorted(queue.children.items()):
        below, whatever = priority, any_priority
        if child in path:
            below = path[child]
        elif child.properties.priority_policy == "fence":
            if child.properties.priority_offset > priority:
                continue
            whatever = True
        else:
            below = priority - child.properties.priority_offset
        yield from _leaves(child, own, path, below, any_priority=whatever)
