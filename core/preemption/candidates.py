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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from quadriga.core.model.queue import LeafQueue
from quadriga.core.preemption.queue_snapshot import QueueSnapshot, Snapshots
from quadriga.core.resources.vectors import covers, plus
from quadriga.fsm.lifecycles import allocation as allocation_fsm
from quadriga.fsm.lifecycles import application as application_fsm

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask
    from quadriga.core.model.node import Node
    from quadriga.core.model.queue import Queue
    from quadriga.core.resources.vectors import Vector

#: ranks as far as gangs matter: held by a gang beyond its placeholders, of no gang, a gang member
_SURPLUS: Final = (0, 0, 0)
NO_GANG: Final = (1, 0, 0)
_MEMBER: Final = 2


#: a leaf that may lose allocations: of this priority at most, where there is a bound, and that hold nothing
#: of these types
Leaf = tuple[LeafQueue, int | None, frozenset[int]]


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
    if not holds_members(app):
        for allocation in evictable(app):
            yield Candidate(allocation, leaf, NO_GANG)
        return
    held = [*app.allocations.values(), *app.placeholders.values()]
    members = _members(app, held)
    broken = any(a.reason == allocation_fsm.PREEMPTION for a in held if a in members)
    member = (_MEMBER, 0 if broken else 1, -app.seq)
    for allocation in evictable(app):
        yield Candidate(allocation, leaf, member if allocation in members else _SURPLUS)


def holds_members(app: Application) -> bool:
    """Whether allocations of the application count as members of a gang."""
    return app.gang.size is not None and not app.gang.timed_out


def evictable(app: Application) -> list[Allocation]:
    """The allocations of the application that may be evicted, unless it gathers; not those that have
    opted out in a queue where this is strict (X40)."""
    strict = app.queue.properties.preemption_optout == "strict"
    return [
        each
        for each in (*app.allocations.values(), *app.placeholders.values())
        if each.state in allocation_fsm.RELEASABLE
        and not each.ask.kind.requires.required_node
        and (not strict or each.ask.terms.allow_preempt_self)
    ]


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
    for queue, most, kept in leaves_for(own, priority, vector, snapshots):
        for app in queue.apps.values():
            for candidate in of_application(app, snapshots.of(queue)):
                if most is not None and candidate.allocation.ask.priority > most:
                    continue
                if not (kept and holds_any(candidate.allocation.vector, kept)):
                    found.append(candidate)
    return found


def leaves_for(own: Queue, priority: int, vector: Vector, snapshots: Snapshots) -> Iterator[Leaf]:
    """The leaves that may lose allocations for these asks."""
    fence, path = _fence(own, priority, vector, snapshots)
    for queue, most in _leaves(fence, own, path, path[fence]):
        if queue.properties.preemption_policy != "disabled":
            leaf = snapshots.victims_in(queue)
            if leaf is not None:
                yield queue, most, frozenset(leaf.kept)


def candidates_among(
    allocations: Iterable[Allocation],
    own: Queue,
    priority: int,
    vector: Vector,
    snapshots: Snapshots,
) -> list[Candidate]:
    """Those of these allocations that may be evicted for asks of the leaf, as ``candidates_for``, and also those of
    the leaf itself. Placeholders never are."""
    fence, path = _fence(own, priority, vector, snapshots)
    most: dict[Queue, int | None] = dict(_leaves(fence, own, path, path[fence]))
    most[own] = priority
    known = set(allocations)
    found: list[Candidate] = []
    for app in dict.fromkeys(each.ask.app for each in allocations):
        queue = app.queue
        if queue not in most or queue.properties.preemption_policy == "disabled":
            continue
        highest = most[queue]
        for candidate in of_application(app, snapshots.of(queue)):
            each = candidate.allocation
            if each in known and not each.placeholder:
                if highest is None or each.ask.priority <= highest:
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


@dataclass(frozen=True, slots=True, eq=False)
class Eviction:
    """What preemption decides (2.8), and ``steps.releasing`` carries out: allocations that are asked back from
    the resource manager, in this order.

    ``cause`` is the ask that they make room for, or the queue whose max they exceed. ``message`` goes
    out with each release. ``node`` is to be reserved for the ask, if there is one.
    """

    victims: tuple[Allocation, ...]
    cause: Ask | Queue
    message: str
    node: Node | None = None
