"""Packing of a gang whose members do not fit when large ones are placed first (Q2, Q6).

Members of 3, 2, 2 and 2 cores fit nodes of 4 and 5 cores, but not if the 3 goes to the node of 4. The
search tries other nodes for each member, backwards from the last one. It is bounded: a gang for which it
finds nothing within the bounds waits, as one does for which there is no room. See D140.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from quadriga.core.resources.shapes import Shape

#: a search has at most this many nodes and members, and places or moves a member this often
MOST_NODES: Final = 32
MOST_MEMBERS: Final = 64
_MOST_STEPS: Final = 500


class Member(NamedTuple):
    """A member to be packed: its shape, and the indexes of the rooms that it may not use."""

    shape: Shape
    barred: Container[int]


def pack(members: Sequence[Member], rooms: list[list[int]]) -> list[int] | None:
    """Return the index of a room for each member, or ``None`` if none was found.

    ``rooms`` have the free amounts of the nodes; they are changed. Equal members are one object and have to be
    adjacent: each goes to the room of the one before it or to a later room, because the other orders are the
    same packing.
    """
    # which units of a device a member got is not known when it goes back
    if any(member.shape.shares for member in members):
        return None
    if len(members) > MOST_MEMBERS or not _is_enough(members, rooms):
        return None
    kinds = list({id(member): member for member in members}.values())
    barring = [tuple(at in kind.barred for kind in kinds) for at in range(len(rooms))]
    chosen: list[int] = []
    at = 0
    for _ in range(_MOST_STEPS):
        placed = len(chosen)
        if placed == len(members):
            return chosen
        member = members[placed]
        first = chosen[-1] if placed and members[placed - 1] is member else 0
        at = _next_room(member, rooms, barring, first, at)
        if at < len(rooms):
            _take(rooms[at], member.shape, 1)
            chosen.append(at)
            if placed + 1 < len(members) and members[placed + 1] is not member:
                at = 0
        elif chosen:
            at = chosen.pop()
            _take(rooms[at], members[len(chosen)].shape, -1)
            at += 1
        else:
            return None
    return None


def _is_enough(members: Sequence[Member], rooms: list[list[int]]) -> bool:
    """Whether the rooms together have as much as the members ask for."""
    asked: dict[int, int] = {}
    for member in members:
        for at, value in member.shape.need:
            asked[at] = asked.get(at, 0) + value
    for at, value in asked.items():
        free = 0
        for room in rooms:
            free += max(0, room[at])
        if free < value:
            return False
    return True


def _next_room(
    member: Member, rooms: list[list[int]], barring: Sequence[object], first: int, at: int
) -> int:
    """Return the index of the next room for the member, from ``at`` on, or the number of rooms.

    Rooms from ``first`` on have been tried; one with the same free amounts as any of them, barred to the same
    members, is left out.
    """
    while at < len(rooms):
        room, same = rooms[at], barring[at]
        if at not in member.barred and member.shape.fits(room):
            if not any(rooms[o] == room and barring[o] == same for o in range(first, at)):
                return at
        at += 1
    return at


def _take(room: list[int], shape: Shape, times: int) -> None:
    for at, value in shape.need:
        room[at] -= value * times
