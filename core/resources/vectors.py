"""Quantities as vectors: every resource type of a partition has an index.

Asks and capacities are tuples; totals (allocated, pending, reserved) are lists. Totals have an entry
for every known type of the partition. A tuple may be shorter; the missing entries are zero. So
``zip(vector, totals)`` is always correct, and a new type lengthens only totals.

Quantities are integers in base units: vcore in milli, memory in bytes, other types as counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from quadriga.core.resources.message_bounds import MessageBounds
from quadriga.core.resources.units import WHOLE, DeviceUnits, Shares, Units, share
from quadriga.si import Quantity, Resource

#: types that are counted in bytes
_BYTES: Final = re.compile(r"memory|storage|hugepages", re.IGNORECASE)
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def type_name(name: str) -> str:
    """The type as people call it."""
    return "CPU" if name == "vcore" else name


def amount(name: str, value: int, *, milli: bool = False) -> str:
    """The amount with its unit and its type: vcore and types in ``milli`` are in milli, memory and storage
    are in bytes."""
    if milli or name == "vcore":
        of = type_name(name)
        return f"{value}m {of}" if value % 1000 else f"{value // 1000} {of}"
    if _BYTES.search(name):
        return f"{_bytes(value)} {name}"
    return f"{value} {name}"


def rounded_up(name: str, value: int) -> int:
    """The next amount that needs few digits: tenths of a CPU, whole MiB."""
    step = 100 if name == "vcore" else 1 << 20 if _BYTES.search(name) and value >= 1 << 20 else 1
    return -(-value // step) * step


def _bytes(value: int) -> str:
    """In the largest unit that needs no more than two decimals."""
    size, unit = abs(value), 0
    while unit + 1 < len(_UNITS) and size >= 1024 ** (unit + 1):
        unit += 1
    while unit and size * 100 % 1024**unit:
        unit -= 1
    whole, rest = divmod(size * 100 // 1024**unit, 100)
    sign = "-" if value < 0 else ""
    decimals = f".{rest:02}".rstrip("0") if rest else ""
    return f"{sign}{whole}{decimals} {_UNITS[unit]}"


Vector = tuple[int, ...]
Totals = list[int]

#: largest quantity that the protocol can carry
MAX_QUANTITY: Final = 2**63 - 1

#: types that come first in a text
_FIRST: Final = {"vcore": 0, "memory": 1}

#: at most this many vectors are cached as messages
_MAX_MESSAGES: Final = 1_000


class Registry:
    """The resource types of a partition, in order of first appearance.

    ``on_new_types`` is called after new types and before any vector with them exists, so that the
    partition lengthens its totals.
    """

    __slots__ = (
        "_messages",
        "bounds",
        "decoded",
        "hidden",
        "index",
        "names",
        "on_new_types",
        "shared",
    )

    def __init__(self) -> None:
        self.bounds = MessageBounds()
        self.names: list[str] = []
        self.index: dict[str, int] = {}
        self.on_new_types: Callable[[], None] = lambda: None
        #: vectors by their encoded bytes; decoding a map costs more than the rest of an ask
        self.decoded: dict[bytes, Vector] = {}
        #: the shared types (Q14), and the positions of all their units, which no reader sees
        self.shared: dict[int, DeviceUnits] = {}
        self.hidden: set[int] = set()
        #: vectors as messages, which are expensive to make
        self._messages: dict[Vector, Resource] = {}

    def __len__(self) -> int:
        return len(self.names)

    def position(self, name: str) -> int:
        """The index of a type, added if it is new."""
        if name not in self.index:
            self._learn((name,))
        return self.index[name]

    def _learn(self, names: Iterable[str]) -> None:
        """Add the new ones of these types, and lengthen the totals once for all of them."""
        before = len(self.names)
        for name in names:
            if name not in self.index:
                self.index[name] = len(self.names)
                self.names.append(name)
        if len(self.names) > before:
            self.on_new_types()

    # -- shared devices (Q14) ----------------------------------------------------------------------

    def declare_shared(self, names: Iterable[str]) -> None:
        """These types, and no others, are shared devices."""
        positions = [self.position(name) for name in names]
        self.shared = {at: self.shared.get(at) or DeviceUnits(at) for at in positions}

    def shares_of(self, vector: Vector) -> Shares:
        """What an ask of this vector takes of shared devices."""
        known = len(vector)
        return tuple(
            [
                share(units, vector[at])
                for at, units in self.shared.items()
                if at < known and vector[at] > 0
            ]
        )

    def problem_of_shares(self, vector: Vector) -> str:
        """Why no ask may be of this vector, or an empty text."""
        for at in self.shared:
            value = vector[at] if at < len(vector) else 0
            if value > WHOLE and value % WHOLE:
                return (
                    f"{value}m of {self.names[at]}: a share is at most {WHOLE}m, one device, and more are "
                    f"whole devices"
                )
        return ""

    def problem_of_units(self, total: Vector) -> str:
        """Why no node may have this capacity, or an empty text."""
        for at in self.shared:
            value = total[at] if at < len(total) else 0
            if value % WHOLE:
                return f"{value}m of {self.names[at]}, and shared devices are counted in milli of a device"
            if value > self.bounds.devices * WHOLE:
                return f"{value}m of {self.names[at]}, over {self.bounds.devices} devices"
        return ""

    def units_text(self, units: Units) -> str:
        """``nvidia.com/gpu=0,3``, by the numbers of the units on their node."""
        texts = []
        for device, of in self.shared.items():
            numbers = [str(of.positions.index(at)) for at, _ in units if at in of.positions]
            if numbers:
                texts.append(f"{self.names[device]}={','.join(numbers)}")
        return ";".join(sorted(texts))

    def read_units(self, text: str, vector: Vector) -> Units | None:
        """The units that the text names, as many as an allocation of the vector has; ``None`` for another text
        and for units that no node has."""
        named: dict[str, list[str]] = {}
        for part in text.split(";"):
            name, _, listed = part.partition("=")
            named[name] = listed.split(",")
        units: list[tuple[int, int]] = []
        for of, milli, number in self.shares_of(vector):
            numbers = named.pop(self.names[of.device], [])
            known = {str(each): at for each, at in enumerate(of.positions)}
            found = sorted({known[each] for each in numbers if each in known})
            if not len(found) == len(numbers) == number:
                return None
            units += [(at, milli) for at in found]
        return None if named else tuple(units)

    def without_units(self, vector: Iterable[int]) -> Totals:
        """The amounts without those of units."""
        return [0 if at in self.hidden else value for at, value in enumerate(vector)]

    def with_units(self, total: Vector) -> Totals:
        """The capacity of a node with that of its units, whose positions are assigned."""
        there: list[int] = []
        before = len(self.names)
        for at, units in self.shared.items():
            for number in range(total[at] // WHOLE if at < len(total) else 0):
                if number == len(units.positions):
                    units.positions.append(len(self.names))
                    self.hidden.add(len(self.names))
                    self.names.append(f"{self.names[at]}#{number}")
                there.append(units.positions[number])
        if len(self.names) > before:
            self.on_new_types()
        whole = [*total, *[0] * (len(self.names) - len(total))]
        for at in there:
            whole[at] = WHOLE
        return whole

    def vector(self, quantities: Mapping[str, int]) -> Vector:
        """A vector with the given quantities. It ends with its last quantity other than zero, so an ask costs
        the same however many types others have named."""
        self._learn(quantities)
        index = self.index
        known = [(index[name], value) for name, value in quantities.items() if value]
        vector = [0] * (max(known)[0] + 1 if known else 0)
        for at, value in known:
            vector[at] = value
        return tuple(vector)

    def read(self, resource: Resource) -> Vector:
        """The vector of a message (I16)."""
        return self.vector({name: q.value for name, q in sorted(resource.resources.items())})

    def read_report(self, resource: Resource) -> Vector:
        """The vector of something that runs already. It takes room whatever it says, so new types beyond the
        bounds, which no node has, are left out."""
        names = resource.resources
        if not self.problem_of(names):
            return self.read(resource)
        return self.vector({name: q.value for name, q in names.items() if name in self.index})

    def problem_of(self, types: Collection[str], *, of_nodes: bool = False) -> str:
        """Why a message may not name these types (Q16), or an empty text."""
        return self.bounds.types_problem(types, self.index, of_nodes)

    def limits(self, quantities: Mapping[str, int]) -> tuple[tuple[int, int], ...]:
        """Pairs (type, limit) for the types that are set; types not named are unlimited (5.1)."""
        self._learn(quantities)
        return tuple(sorted((self.index[name], value) for name, value in quantities.items()))

    def zeros(self) -> Totals:
        return [0] * len(self.names)

    def lengthen(self, all_totals: Iterable[Totals], types: int | None = None) -> None:
        """Give each of these totals an entry for every known type, or for the first ``types`` of them."""
        size = len(self.names) if types is None else types
        for totals in all_totals:
            if len(totals) < size:
                totals.extend([0] * (size - len(totals)))

    def mapping(self, vector: Iterable[int]) -> dict[str, int]:
        """Type name to quantity, without the zeros, for texts and dumps."""
        named = zip(self.names, vector, strict=False)
        if self.hidden:
            return {n: v for at, (n, v) in enumerate(named) if v and at not in self.hidden}
        return {n: v for n, v in named if v}

    def text(self, vector: Iterable[int]) -> str:
        """``vcore=4000 memory=1024`` in order of names."""
        pairs = sorted(self.mapping(vector).items())
        return " ".join(f"{name}={value}" for name, value in pairs) or "nothing"

    def amount(self, name: str, value: int) -> str:
        """``500m CPU``, for texts that people read."""
        return amount(name, value, milli=bool(self.shared) and self.index.get(name) in self.shared)

    def words(self, vector: Iterable[int]) -> str:
        """``500m CPU and 16 MiB memory``, for texts that people read."""
        of_type = self.mapping(vector)
        ordered = sorted(of_type, key=lambda name: (_FIRST.get(name, len(_FIRST)), name))
        shared = {self.names[at] for at in self.shared}
        *first, last = [amount(name, of_type[name], milli=name in shared) for name in ordered] or [
            "nothing"
        ]
        return f"{', '.join(first)} and {last}" if first else last

    def message(self, vector: Iterable[int]) -> Resource:
        """The vector as a message, without zeros. Callers copy it and never change it."""
        quantities = tuple(vector)
        known = self._messages.get(quantities)
        if known is None:
            if len(self._messages) >= _MAX_MESSAGES:
                self._messages.clear()
            known = self._messages[quantities] = Resource(
                resources={
                    name: Quantity(value=max(-MAX_QUANTITY, min(MAX_QUANTITY, value)))
                    for name, value in self.mapping(quantities).items()
                }
            )
        return known


def add(totals: Totals, vector: Iterable[int]) -> None:
    """Add in place."""
    for at, value in enumerate(vector):
        totals[at] += value


def subtract(totals: Totals, vector: Iterable[int]) -> None:
    """Subtract in place."""
    for at, value in enumerate(vector):
        totals[at] -= value


def left_of(limits: Iterable[tuple[int, int]], used: Totals) -> Totals:
    """What these limits (type, amount) leave of each type; of a type without one more than anybody asks for."""
    left = [MAX_QUANTITY] * len(used)
    for at, limit in limits:
        left[at] = limit - used[at]
    return left


def plus(left: Vector, right: Vector) -> Vector:
    """The sum of two vectors of any lengths."""
    if len(left) < len(right):
        left, right = right, left
    return tuple(map(int.__add__, left, right)) + left[len(right) :]


def minus(left: Vector, right: Vector) -> Vector:
    """The difference of two vectors of any lengths."""
    return plus(left, tuple([-value for value in right]))


def covers(big: Sequence[int], small: Vector) -> bool:
    """Whether every quantity of ``small`` is at most that of ``big`` (FitIn, 5)."""
    have = len(big)
    for at, value in enumerate(small):
        if value > 0 and (at >= have or value > big[at]):
            return False
    return True


#: bits of a share; with them, different fractions of 63-bit numbers never become equal
_SHARE_BITS: Final = 128


def exact_share(used: int, of: int) -> int:
    """``used / of`` as an integer that orders exactly like the fraction, without floats (5.12)."""
    return (used << _SHARE_BITS) // of
