"""JSON of long lists, assembled from cached texts of their members.

Between two looks only a few of thousands of allocations and nodes change. Each member is compared
with the state that its text was made from, and encoded again only if it differs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from quadriga.core.views.allocations import AllocationSnapshot, allocation_object, in_order
from quadriga.core.views.applications import ApplicationSnapshot, EndedSnapshot, application_object
from quadriga.core.views.nodes import NodeSnapshot, node_object
from quadriga.web.responses import encode

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.node import Node

T = TypeVar("T")

#: s of encoding after which other threads, above all the scheduler, may run
_BREATH: Final = 0.002

#: cached texts beyond those that the last list needed
_SPARE: Final = 10_000


class Fragments:
    """A cache of texts; not safe for threads."""

    def __init__(self) -> None:
        self._allocations: dict[Allocation, tuple[AllocationSnapshot, bytes]] = {}
        self._nodes: dict[Node, tuple[NodeSnapshot, bytes]] = {}

    # -- lists -------------------------------------------------------------------------------------

    def nodes(self, seen: Sequence[NodeSnapshot]) -> bytes:
        """A JSON array of nodes."""
        text = _array(map(self._node, _gently(seen)), b",")
        self._tidy(sum(len(each[6]) for each in seen), len(seen))
        return text

    def applications(self, seen: Sequence[ApplicationSnapshot | EndedSnapshot]) -> bytes:
        """A JSON array of applications."""
        text = _array(map(self._application, _gently(seen)), b",")
        self._tidy(sum(len(each.allocations) for each in seen), len(self._nodes))
        return text

    def state(self, seen: Mapping[str, Any]) -> bytes:
        """A state dump; long lists have one line for each member."""
        parts = []
        for key, value in seen.items():
            if key == "applications":
                text = _array(map(self._application, _gently(value)), b",\n  ")
            elif key == "nodes":
                text = _array(map(self._nodes_of, value), b",\n  ")
            elif isinstance(value, list):
                text = _array(map(encode, value), b",\n  ")
            else:
                text = encode(value)
            parts.append(b"\n " + encode(key) + b": " + text)
        return b"{" + b",".join(parts) + b"\n}\n"

    def _nodes_of(self, one: Mapping[str, Any]) -> bytes:
        nodes = _array(map(self._node, _gently(one["nodesInfo"])), b",\n  ")
        return _with({"partitionName": one["partitionName"]}, b"nodesInfo", nodes)

    # -- members -----------------------------------------------------------------------------------

    def _application(self, seen: ApplicationSnapshot | EndedSnapshot) -> bytes:
        return self._whole(application_object(seen, allocations=False), seen.allocations)

    def _node(self, seen: NodeSnapshot) -> bytes:
        node = seen[0]
        known = self._nodes.get(node)
        if known is not None and known[0] == seen:
            return known[1]
        text = self._whole(node_object(seen, allocations=False), seen[6])
        self._nodes[node] = seen, text
        return text

    def _whole(self, told: Mapping[str, Any], seen: Sequence[AllocationSnapshot]) -> bytes:
        """The object, with its allocations as the last field."""
        others = {name: value for name, value in told.items() if name != "allocations"}
        held = _array(map(self._allocation, _gently(in_order(seen))), b",") if seen else b"[]"
        return _with(others, b"allocations", held)

    def _allocation(self, seen: AllocationSnapshot) -> bytes:
        known = self._allocations.get(seen[0])
        if known is not None and known[0] == seen:
            return known[1]
        text = encode(allocation_object(seen))
        self._allocations[seen[0]] = seen, text
        return text

    def _tidy(self, allocations: int, nodes: int) -> None:
        """Clear the cache when most of it is unused; it is quickly rebuilt."""
        if len(self._allocations) > 2 * allocations + _SPARE:
            self._allocations = {}
        if len(self._nodes) > 2 * nodes + _SPARE:
            self._nodes = {}


def _array(texts: Iterable[bytes], between: bytes) -> bytes:
    return b"[" + between.join(texts) + b"]"


def _with(told: Mapping[str, Any], name: bytes, text: bytes) -> bytes:
    """The object, with one more field at its end."""
    return encode(told)[:-1] + b',"' + name + b'":' + text + b"}"


def _gently(items: Iterable[T], clock: Callable[[], float] = time.perf_counter) -> Iterator[T]:
    """The items, with pauses in which other threads may run."""
    breath = clock() + _BREATH
    for item in items:
        yield item
        if clock() > breath:
            time.sleep(0)
            breath = clock() + _BREATH
