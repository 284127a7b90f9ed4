"""Shared devices: the units of a device type on a node, and asks for a share of one (Q14).

Amounts of a shared type are in milli of a device. Each node has the units of the type as types of their own
behind it, at positions that the registry assigns and nobody else sees: so what is free on a unit is added
and subtracted like any other amount, and survives every copy of a node's totals. An ask names no unit. It takes
a share of one unit, or whole units that are wholly free; which ones is decided when it is charged to its node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

#: a whole device
WHOLE: Final = 1000
#: at most this many units of a type are known on a node
MAX_UNITS: Final = 64

#: pairs (position of a unit, amount) that an allocation has of its node's units
Units = tuple[tuple[int, int], ...]


class DeviceUnits:
    """The units of one shared type: ``positions`` has those of the first, the second and so on."""

    __slots__ = ("device", "positions")

    def __init__(self, device: int) -> None:
        self.device = device
        self.positions: list[int] = []


class Share(NamedTuple):
    """What an ask takes of a shared type: ``milli`` of each of ``number`` units."""

    of: DeviceUnits
    milli: int
    number: int


Shares = tuple[Share, ...]


def share(of: DeviceUnits, amount: int) -> Share:
    """The share of an ask for this amount."""
    if amount < WHOLE:
        return Share(of, amount, 1)
    return Share(of, WHOLE, amount // WHOLE)


def fit(shares: Shares, available: Any) -> bool:
    """Whether there are enough units for one ask in these free amounts of a node."""
    for of, milli, number in shares:
        for at in of.positions:
            if available[at] >= milli:
                number -= 1
                if not number:
                    break
        if number:
            return False
    return True


def room(shares: Shares, available: Any) -> int:
    """The number of such asks that the units have room for."""
    return min(
        sum(max(0, available[at]) // milli for at in of.positions) // number
        for of, milli, number in shares
    )


def room_of_nodes(shares: Shares, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The same for each row, which has the free amounts of a node."""
    found = [
        (np.maximum(rows[:, of.positions], 0) // milli).sum(axis=1) // number
        for of, milli, number in shares
    ]
    least: npt.NDArray[np.int64] = np.minimum.reduce(found)
    return least


def choose(shares: Shares, available: Any) -> Units:
    """The units for one ask: the fullest ones that have room, among equals the first. Where too few
    have room, because what runs was reported so, those that have the most left."""
    chosen: list[tuple[int, int]] = []
    for of, milli, number in shares:
        order = sorted(
            of.positions,
            key=lambda at: (0, available[at]) if available[at] >= milli else (1, -available[at]),
        )
        chosen += [(at, milli) for at in sorted(order[:number])]
    return tuple(chosen)


def use(units: Units, times: int, allocated: Any, available: Any) -> None:
    """Charge the units that many times; a negative number refunds them."""
    for at, value in units:
        allocated[at] += value * times
        available[at] -= value * times


def give(free: Any, units: Units, times: int = 1) -> None:
    """Add the units to the free amounts; a negative number of times takes them."""
    for at, value in units:
        free[at] += value * times


def largest(of: DeviceUnits, available: Any) -> int:
    """The most that is free on one unit."""
    return max((max(0, available[at]) for at in of.positions), default=0)


def capacities(amount: int) -> list[int]:
    """The capacity of each unit of a node that has this amount: the last one may be a part."""
    whole, part = divmod(amount, WHOLE)
    return [WHOLE] * whole + [part] * bool(part)


def occupied(of: DeviceUnits, total: Sequence[int], amount: int) -> Iterable[tuple[int, int]]:
    """Pairs (position, amount) of what others use of each unit, if they use this amount of the type. Which
    units they use is not known, and the last ones are assumed."""
    for at in reversed(of.positions):
        used = min(max(amount, 0), total[at])
        amount -= used
        yield at, used


class NodeUnits:
    """Which units of a node its allocations have."""

    __slots__ = ("of", "picked")

    def __init__(self) -> None:
        self.of: dict[Any, Units] = {}
        #: by shape: units that are charged for asks whose allocations are not made yet
        self.picked: dict[Any, list[Units]] = {}

    def pick(self, shape: Any, number: int, allocated: Any, available: Any) -> None:
        """Charge units for this number of asks of the shape; a negative number refunds the last ones."""
        picked = self.picked.setdefault(shape, [])
        for _ in range(number):
            picked.append(choose(shape.shares, available))
            use(picked[-1], 1, allocated, available)
        for _ in range(-number):
            use(picked.pop(), -1, allocated, available)
        if not picked:
            del self.picked[shape]

    def register(self, allocation: Any, shape: Any) -> None:
        """Give the allocation the units that were charged first for its shape."""
        picked = self.picked[shape]
        self.of[allocation] = picked.pop(0)
        if not picked:
            del self.picked[shape]
