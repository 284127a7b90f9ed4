"""JSON of long lists, assembled from cached texts of their members.

Between two looks only a few of thousands of allocations and nodes change. Each member is compared
with the state that its text was made from, and encoded again only if it differs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

from quadriga.core.model.allocation import Allocation
from quadriga.core.model.node import Node
from quadriga.core.views.allocations import AllocationSnapshot, allocation_object, in_order
from quadriga.core.views.applications import ApplicationSnapshot, EndedSnapshot, application_object
from quadriga.core.views.dump import StatePart
from quadriga.core.views.nodes import NodeSnapshot, node_object
from quadriga.web.responses import encode

T = TypeVar("T")
U = TypeVar("U")

#: a list of more members, their allocations and asks included, is too long to keep its texts
LONG: Final = 30_000

#: between members that have a line each
_LINE: Final = b",\n  "

#: s of encoding after which other threads, above all the scheduler, may run
_BREATH: Final = 0.002

#: allocations of one member that are joined at a time
_FEW: Final = 200


class Fragments:
    """A cache of at most so many texts of allocations, and as many of nodes; not safe for threads."""

    def __init__(self, most: int = LONG) -> None:
        self._most = most
        self._allocations: dict[Allocation, tuple[AllocationSnapshot, bytes]] = {}
        self._nodes: dict[Node, tuple[NodeSnapshot, bytes]] = {}

    def nodes(self) -> Writer:
        """Writes a JSON array of nodes."""
        return _Array(self.node)

    def applications(self) -> Writer:
        """Writes a JSON array of applications."""
        return _Array(self.application)

    def one(self) -> Writer:
        """Writes one application."""
        return _One(self.application)

    def state(self) -> Writer:
        """Writes a state dump; long lists have one line for each member."""
        return _State(self)

    # -- members -----------------------------------------------------------------------------------

    def application(self, seen: ApplicationSnapshot | EndedSnapshot) -> Iterator[bytes]:
        return self._whole(application_object(seen, allocations=False), seen.allocations)

    def node(self, seen: NodeSnapshot) -> Iterator[bytes]:
        node = seen[0]
        known = self._nodes.get(node)
        if known is None or known[0] != seen:
            text = b"".join(self._whole(node_object(seen, allocations=False), seen[6]))
            known = seen, text
            self._keep(self._nodes, node, known)
        yield known[1]

    def _whole(
        self, told: Mapping[str, Any], seen: Sequence[AllocationSnapshot]
    ) -> Iterator[bytes]:
        """The object, with its allocations as the last field."""
        others = {name: value for name, value in told.items() if name != "allocations"}
        yield encode(others)[:-1] + b',"allocations":['
        held = in_order(seen)
        for at in range(0, len(held), _FEW):
            texts = map(self._allocation, _gently(held[at : at + _FEW]))
            yield (b"," if at else b"") + b",".join(texts)
        yield b"]}"

    def _allocation(self, seen: AllocationSnapshot) -> bytes:
        known = self._allocations.get(seen[0])
        if known is None or known[0] != seen:
            known = seen, encode(allocation_object(seen))
            self._keep(self._allocations, seen[0], known)
        return known[1]

    def _keep(self, cache: dict[T, U], key: T, known: U) -> None:
        """Cache a text; a full cache is cleared, as it is quickly rebuilt."""
        if len(cache) >= self._most:
            cache.clear()
        if self._most:
            cache[key] = known


class Writer(Protocol):
    """Writes what is read in parts, as pieces of one text."""

    def pieces(self, parts: Iterable[Any]) -> Iterator[bytes]:
        """The text of these parts, which follow those of earlier calls."""

    def end(self) -> bytes:
        """The rest of the text."""


class _Array:
    """A JSON array of members."""

    def __init__(self, member: Callable[[Any], Iterator[bytes]], between: bytes = b",") -> None:
        self._member = member
        self._between = between
        self._before = b"["

    def pieces(self, parts: Iterable[Any]) -> Iterator[bytes]:
        for part in _gently(parts):
            yield self._before
            yield from self._member(part)
            self._before = self._between

    def end(self) -> bytes:
        return b"]" if self._before == self._between else b"[]"


class _One:
    """One member."""

    def __init__(self, member: Callable[[Any], Iterator[bytes]]) -> None:
        self._member = member

    def pieces(self, parts: Iterable[Any]) -> Iterator[bytes]:
        for part in parts:
            yield from self._member(part)

    def end(self) -> bytes:
        return b""


class _State:
    """A state dump."""

    def __init__(self, fragments: Fragments) -> None:
        self._fragments = fragments
        self._before = b"{"
        #: the lists that are open, the innermost last
        self._lists: list[_Array] = []

    def pieces(self, parts: Iterable[StatePart]) -> Iterator[bytes]:
        for key, value, member in parts:
            if member and key == "nodes":
                yield self._close(down_to=1)
                self._lists.append(_Array(self._fragments.node, _LINE))
                yield from self._lists[0].pieces([value["partitionName"]])
            elif member:
                yield from self._lists[-1].pieces([value])
            else:
                yield self._close()
                yield self._before + b"\n " + encode(key) + b": "
                self._before = b","
                if key in ("applications", "nodes"):
                    kind = self._fragments.application if key == "applications" else _partition
                    self._lists.append(_Array(kind, _LINE))
                elif isinstance(value, list):
                    yield b"[" + _LINE.join(map(encode, value)) + b"]"
                else:
                    yield encode(value)

    def _close(self, down_to: int = 0) -> bytes:
        """End the open lists; that of a partition is the last field of an object."""
        text = b""
        while len(self._lists) > down_to:
            text += self._lists.pop().end() + (b"}" if self._lists else b"")
        return text

    def end(self) -> bytes:
        return self._close() + b"\n}\n"


def _partition(name: str) -> Iterator[bytes]:
    yield encode({"partitionName": name})[:-1] + b',"nodesInfo":'


def _gently(items: Iterable[T], clock: Callable[[], float] = time.perf_counter) -> Iterator[T]:
    """The items, with pauses in which other threads may run."""
    breath = clock() + _BREATH
    for item in items:
        yield item
        if clock() > breath:
            time.sleep(0)
            breath = clock() + _BREATH
