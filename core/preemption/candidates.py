"""Who may have to go, and in which order: the part that all kinds of preemption share (2.8, 5.9).

Never taken are allocations that require their node, those that are on their way back already (R5),
those that opted out where their queue takes that strictly (X40), and any part of a gang that still
gathers its placeholders: it would only begin anew.

Where candidates are of the same rank, gangs make a difference: what a gang holds beyond its
placeholders goes first, ordinary allocations next, members of gangs last; and of members those of a
gang that has lost one already, then those of the gang that was submitted last, so that one gang ends
rather than several limp. Where no gang is involved nothing of this changes anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from quadriga.core.model.queue import LeafQueue
from quadriga.core.model.resources import covers, plus
from quadriga.core.preemption.queue_snapshot import Snapshot, Standing
from quadriga.fsm import allocation as life
from quadriga.fsm import application as app_life

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask
    from quadriga.core.model.queue import Queue

__all__ = ["Candidate", "by_kind", "candidates_for", "gathers", "of_application"]

#: places as far as gangs matter: what a gang holds beyond itself, what belongs to no gang, a member
_SURPLUS: Final = (0, 0, 0)
_NO_GANG: Final = (1, 0, 0)
_MEMBER: Final = 2


class Candidate:
    """An allocation that may be taken. ``gang`` is its place as far as gangs matter, ``standing`` is
    its leaf's where guarantees matter."""

    __slots__ = ("allocation", "gang", "standing")

    def __init__(
        self, allocation: Allocation, standing: Standing | None, gang: tuple[int, int, int]
    ) -> None:
        self.allocation = allocation
        self.standing = standing
        self.gang = gang

    @property
    def breaks_gang(self) -> bool:
        """Whether a whole gang would lose a member with it."""
        return self.gang[:2] == (_MEMBER, 1)

    @property
    def newest_first(self) -> tuple[int, int, int]:
        """By the age of its ask; of one ask the last allocation first (5.9)."""
        ask = self.allocation.ask
        return -ask.created, -ask.seq, -self.allocation.created

    @property
    def willing_first(self) -> tuple[object, ...]:
        """The order of guarantee preemption: who agrees, who is no originator, gangs, newest."""
        ask = self.allocation.ask
        return not ask.terms.allow_preempt_self, ask.terms.originator, self.gang, self.newest_first


def by_kind(candidate: Candidate) -> tuple[object, ...]:
    """The order of the other two kinds: regular, opted out, originators; lowest priority, gangs,
    newest, smallest first (2.8)."""
    ask = candidate.allocation.ask
    kind = 2 if ask.terms.originator else (0 if ask.terms.allow_preempt_self else 1)
    size = sum(candidate.allocation.vector)
    return kind, ask.priority, candidate.gang, candidate.newest_first, size


# -- of one application ----------------------------------------------------------------------------


def gathers(app: Application) -> bool:
    """Whether the application is a gang that has some of its placeholders and waits for the rest."""
    return (
        app.placeholder_ask is not None
        and app.gang_started
        and not app.gang_over
        and app.state in app_life.BEFORE_RUNNING
    )


def of_application(app: Application, standing: Standing | None = None) -> Iterator[Candidate]:
    """What of the application may be taken at all, in the order in which it was allocated."""
    if gathers(app):
        return
    held = [*app.allocations.values(), *app.placeholders.values()]
    strict = app.queue.properties.preemption_optout == "strict"
    if app.placeholder_ask is None or app.gang_over:
        for allocation in held:
            if _may_go(allocation, strict):
                yield Candidate(allocation, standing, _NO_GANG)
        return
    members = _members(app, held)
    broken = any(a.reason == life.PREEMPTION for a in held if a in members)
    for allocation in held:
        if not _may_go(allocation, strict):
            continue
        member = (_MEMBER, 0 if broken else 1, -app.seq)
        yield Candidate(allocation, standing, member if allocation in members else _SURPLUS)


def _may_go(allocation: Allocation, strict: bool) -> bool:
    """Whether it may be taken; ``strict``: not if its ask has opted out (X40)."""
    ask = allocation.ask
    if allocation.state not in life.RELEASABLE or ask.required_node:
        return False
    return ask.terms.allow_preempt_self or not strict


def _members(app: Application, held: list[Allocation]) -> set[Allocation]:
    """The gang among what the application holds: its placeholders, and what took the place of one.

    After a restart nobody knows who took whose place; then the oldest allocations of its task groups
    make up what is missing of the gang.
    """
    whole = app.placeholder_ask
    assert whole is not None
    members = {a for a in held if a.placeholder or _took_a_place(app, a)}
    have: tuple[int, ...] = ()
    for member in members:
        have = plus(have, member.vector)
    others = [a for a in held if a.ask.task_group and a not in members]
    for other in sorted(others, key=lambda a: (a.created, a.ask.seq)):
        if covers(have, whole):
            break
        members.add(other)
        have = plus(have, other.vector)
    return members


def _took_a_place(app: Application, allocation: Allocation) -> bool:
    group = app.task_groups.get(allocation.ask.task_group)
    return group is not None and allocation.uuid in group.stood_in


# -- for an ask that would be within its guarantee -------------------------------------------------


def candidates_for(ask: Ask, snapshot: Snapshot) -> list[Candidate]:
    """Everything that the ask may push out, inside the fence around its queue (5.9, steps 1, 2)."""
    found: list[Candidate] = []
    fence, path = _fence(ask, snapshot)
    for leaf, urgency in _leaves(fence, ask.app.queue, path, path[fence]):
        if leaf.properties.preemption_policy == "disabled":
            continue
        standing = snapshot.of(leaf)
        if standing.protected:
            continue
        for app in leaf.apps.values():
            for candidate in of_application(app, standing):
                if urgency is None or candidate.allocation.ask.priority <= urgency:
                    found.append(candidate)
    return found


def _fence(ask: Ask, snapshot: Snapshot) -> tuple[Queue, dict[Queue, int]]:
    """The highest queue in which the ask may look for victims, and how urgent the ask is seen from
    each queue on its path: offsets add up, a priority fence counts for its offset alone.

    A queue that has no room for the ask under its max is a fence too (2.21): nobody outside it could
    give the ask that room.
    """
    urgency: dict[Queue, int] = {}
    now = ask.priority
    queue: Queue = ask.app.queue
    while True:
        properties = queue.properties
        fenced = properties.priority_policy == "fence"
        now = properties.priority_offset if fenced else now + properties.priority_offset
        urgency[queue] = now
        if queue.parent is None or properties.preemption_policy == "fence":
            return queue, urgency
        if snapshot.of(queue).full_for(ask.vector):
            return queue, urgency
        queue = queue.parent


def _leaves(
    queue: Queue, own: Queue, path: dict[Queue, int], urgency: int, *, open_to_all: bool = False
) -> Iterator[tuple[LeafQueue, int | None]]:
    """The other leaves below a queue, each with how urgent the ask is seen from there.

    ``None``: inside a priority fence that is no higher than the ask every priority may be pushed out.
    """
    if queue is own:
        return
    if isinstance(queue, LeafQueue):
        yield queue, None if open_to_all else urgency
        return
    for _, child in sorted(queue.children.items()):
        below, everybody = urgency, open_to_all
        if child in path:
            below = path[child]
        elif child.properties.priority_policy == "fence":
            if child.properties.priority_offset > urgency:
                continue
            everybody = True
        else:
            below = urgency - child.properties.priority_offset
        yield from _leaves(child, own, path, below, open_to_all=everybody)
