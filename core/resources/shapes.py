"""Shapes: asks with the same requirements for a node share one shape.

Every question about nodes has the same answer for all asks of a shape, so the answers are kept with the
shape. A shape owns four bits of demand (see ``demand``): for a node now, for a node other than the one
that is reserved, for a reservation, and for preemption. Three bits belong to no shape: a gang member
waits for a placeholder of its task group, a reservation is to be tried again, and a gang is to be
placed in one step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from quadriga.core.resources.locality import Locality
from quadriga.core.resources.units import Shares, fit
from quadriga.core.resources.vectors import Vector

#: pairs (resource type, quantity) for the types of which more than zero is requested
Need = tuple[tuple[int, int], ...]

#: the demand of a real ask whose task group has a placeholder to replace
REPLACE: Final = 1
#: the demand of a leaf that has reservations to be tried again (see ``retries``)
RETRY_RESERVATION: Final = 2
#: the demand of asks that are placed together with all others of their gang (Q1)
START_GANG: Final = 4
#: a shape has this many bits; the bits for a node other than the reserved one, and for a reservation, are
#: this far from the bit for a node now
BITS_PER_SHAPE: Final = 4
ELSEWHERE: Final = 1
RESERVE: Final = 2


class Requirements(NamedTuple):
    """Everything about an ask that the choice of a node depends on.

    ``required_node`` is the id of the only node for the ask, or empty. ``runtime`` is the time (ns) in
    which an allocation is told to end, rounded up; 0 if that is not known (Q7). ``locality`` is what a member
    of a gang wants of the domains that its gang runs in (Q13). A field that matters to nodes is
    declared here and nowhere else: shapes, groups of asks and templates of messages have the whole
    record in their keys.
    """

    vector: Vector
    required_node: str = ""
    runtime: int = 0
    locality: Locality | None = None
    #: what it takes of shared devices (Q14), which follows from the vector
    shares: Shares = ()

    def trimmed(self) -> Requirements:
        """These requirements without the trailing zeros of the vector; the same object if it has none."""
        vector = self.vector
        if not vector or vector[-1]:
            return self
        length = max((at + 1 for at, quantity in enumerate(vector) if quantity), default=0)
        return self._replace(vector=vector[:length])


class Shape:
    """One interned shape. ``vector``, ``required_node``, ``runtime`` and ``locality`` are those of its
    requirements."""

    __slots__ = (
        "allocate",
        "asks",
        "elsewhere",
        "locality",
        "need",
        "number",
        "preempt",
        "quota",
        "required_node",
        "requires",
        "reserve",
        "runtime",
        "shares",
        "vector",
    )

    def __init__(self, number: int, requires: Requirements) -> None:
        self.number = number
        self.requires = requires
        vector = self.vector = requires.vector
        self.required_node = requires.required_node
        self.runtime = requires.runtime
        self.locality = requires.locality
        self.shares = requires.shares
        self.need: Need = tuple((at, value) for at, value in enumerate(vector) if value > 0)
        self.allocate = 1 << (BITS_PER_SHAPE * number + 3)
        #: an ask that has reserved a node takes any other node that has room (5.8)
        self.elsewhere = self.allocate << ELSEWHERE
        self.reserve = self.allocate << RESERVE
        self.preempt = self.allocate << 3
        #: the demand that a quota without room blocks; preemption may make room (5.6)
        self.quota = self.allocate | self.elsewhere | self.reserve
        #: the number of groups of asks with this shape; without any it may be forgotten
        self.asks = 0

    @property
    def bits(self) -> int:
        return self.quota | self.preempt

    def fits(self, available: Any) -> bool:
        """Whether the vector fits in these free quantities."""
        for at, value in self.need:  # a plain loop: no check runs more often
            if available[at] < value:
                return False
        return not self.shares or fit(self.shares, available)

    def stays_within(self, limits: tuple[tuple[int, int], ...], used: Any) -> bool:
        """Whether one more allocation keeps ``used`` within these limits, by type. Types that the shape
        does not ask for may exceed their limits."""
        vector = self.vector
        known = len(vector)
        for at, limit in limits:
            if at < known and used[at] + vector[at] > limit and vector[at] > 0:
                return False
        return True

    def __repr__(self) -> str:
        return f"<Shape {self.number} {self.vector} {self.required_node}>"


class Shapes:
    """The shapes of a partition. Idle shapes are kept for a while, as the next ask often has the same
    requirements."""

    __slots__ = (
        "_by_requirements",
        "_free",
        "_idle",
        "_idle_limit",
        "_numbers",
        "by_number",
        "elsewhere",
        "largest",
        "late",
        "preempt",
    )

    def __init__(self, idle_limit: int = 256) -> None:
        self._by_requirements: dict[Requirements, Shape] = {}
        self._idle: deque[Shape] = deque()
        self._idle_limit = idle_limit
        self._free: list[int] = []
        self._numbers = 0
        self.by_number: dict[int, Shape] = {}
        #: the bits of all shapes for a node other than the reserved one, and for preemption
        self.elsewhere = 0
        self.preempt = 0
        #: the bits of all shapes for what only some asks of a group may wait for, not always the first
        self.late = 0
        #: the largest quantity that an ask has requested so far, by resource type
        self.largest: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._by_requirements)

    def intern(self, requires: Requirements) -> tuple[Shape, bool]:
        """The shape for these requirements, and whether it is new. Trailing zeros of the vector are
        ignored: they come from resource types that became known later."""
        requires = requires.trimmed()
        shape = self._by_requirements.get(requires)
        if shape is not None:
            return shape, False
        if self._free:
            number = self._free.pop()
        else:
            number = self._numbers
            self._numbers += 1
        shape = self._by_requirements[requires] = self.by_number[number] = Shape(number, requires)
        self.elsewhere |= shape.elsewhere
        self.preempt |= shape.preempt
        self.late |= shape.elsewhere | shape.reserve | shape.preempt
        for at, value in shape.need:
            self.largest[at] = max(value, self.largest.get(at, 0))
        return shape, True

    def used(self, shape: Shape) -> None:
        """A group of asks of this shape exists."""
        shape.asks += 1

    def unused(self, shape: Shape) -> Shape | None:
        """A group of this shape is gone. Returns the idle shape that is forgotten instead, if any."""
        shape.asks -= 1
        if shape.asks:
            return None
        self._idle.append(shape)
        if len(self._idle) <= self._idle_limit:
            return None
        oldest = self._idle.popleft()
        if oldest.asks or self.by_number.get(oldest.number) is not oldest:
            return None
        if oldest in self._idle:
            return None
        del self._by_requirements[oldest.requires]
        del self.by_number[oldest.number]
        self._free.append(oldest.number)
        return oldest


def needed_by(parts: Iterable[tuple[Shape, int]]) -> dict[int, int]:
    """What so many asks of each shape need together, by type."""
    amounts: dict[int, int] = {}
    for shape, number in parts:
        for at, value in shape.need:
            amounts[at] = amounts.get(at, 0) + value * number
    return amounts
