"""Until when a reserved node may be used by others (Q7), and one of a planned start (Q9).

A reservation that cannot become an allocation at present holds the node against asks that might still
run when it can. An ask that is told to end before loses nothing to it, so it may use the room.

"Told" is the tag ``expected.runtime``. An allocation without it, or beyond it, may end at any moment.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation, Reservation
    from quadriga.core.model.node import Node
    from quadriga.core.resources.shapes import Shape


def lends(node: Node, shape: Shape, now: int) -> bool:
    """Whether the node has room for an ask of the shape until its reservation needs it, or a planned start, or
    beside the latter (Q9)."""
    if not node.open or not shape.fits(node.available):
        return False
    if node.beside is not None:
        plan = node.partition.node_index.planned
        if not shape.fits(node.beside) and (plan is None or not plan.lends(shape, now)):
            return False
    return node.reservation is None or 0 < shape.runtime <= lent_until(node, now) - now


def lent_until(node: Node, now: int) -> int:
    """The instant (ns) before which the reservation of the node becomes no allocation, as far as is told;
    0 if that may happen at any moment.

    While quotas, limits or the state of its application are in the way, that is the instant at which
    the reservation is given up. An ask that requires the node never lends it.
    """
    kept = node.reservation
    if kept is None or kept.ask.required_node or node.partition.reservation_bounds.share is None:
        return 0
    group = kept.ask.group
    if group is None:  # predicates are asked again soon
        return 0
    until = kept.until if _is_held_up(kept) else 0
    if group.shape.fits(node.available):
        return until
    return max(until, _room_at(kept, group.shape, now))


def _is_held_up(kept: Reservation) -> bool:
    """Whether something other than the room of the node is in the way of the reservation."""
    app, group = kept.ask.app, kept.ask.group
    assert group is not None
    return bool(kept in app.partition.waiting.short_of_quota or not group.demand or app.blocked)


def _room_at(kept: Reservation, shape: Shape, now: int) -> int:
    """The instant at which the node has room for the reservation, if all that may end at any moment has
    ended. That is the instant at which it is given up, if there never is room enough."""
    free = list(kept.node.available)
    ends = [(_end_of(allocation, now), allocation.on_node) for allocation in kept.node.allocations]
    for end, vector in sorted(ends, key=itemgetter(0)):
        for at, value in enumerate(vector):
            free[at] += value
        if shape.fits(free):
            return end
    return kept.until


def _end_of(allocation: Allocation, now: int) -> int:
    """The instant (ns) at which the allocation is told to end; 0: at any moment."""
    ask = allocation.ask
    told = ask.terms.expected_runtime or ask.app.expected_runtime
    if not told or allocation.reason is not None or ask.kind.placeholder:
        return 0
    end = allocation.created + told
    return end if end > now else 0
