"""A large request is applied in chunks, so that other resource managers need not wait for all of it.

Each chunk is a request with some of the items, in the order in which the whole request would be applied
(M2, M5): the outcome is that of several smaller requests. Two things are as for one request: it can be
refused as a whole only before its first item is applied, and all rejected asks and allocations are
reported in one response (M3). Nodes and applications are answered after each chunk: no allocation is
placed on a node whose acceptance the resource manager has not been told. See D105.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from quadriga.core.intake.dispatcher import Request, routes_of
from quadriga.core.intake.routes import Route
from quadriga.core.runtime.outbox import Output
from quadriga.si import AllocationResponse, NodeInfo, NodeRequest
from quadriga.si.items import size_of_node

if TYPE_CHECKING:
    from quadriga.core.scheduler import Scheduler


class _Chunk(NamedTuple):
    """The ``span`` of the items of one field of the request; ``size`` is their number of items, in
    which a node counts with its allocations."""

    route: Route
    items: Sequence[Any]
    span: slice
    size: int


class ChunkedRequest:
    """``most`` is the size of a chunk; a node that is larger is a chunk by itself."""

    def __init__(self, request: Request, most: int) -> None:
        self._request = request
        self._left = deque(_chunks(request, most))
        self._begun = False
        self._rejected: AllocationResponse | None = None

    @property
    def next_size(self) -> int:
        """The size of the next chunk; 0 without one."""
        return self._left[0].size if self._left else 0

    def apply(self, scheduler: Scheduler, now: int) -> list[Output]:
        """Apply the next chunk. Raises what ``Scheduler.apply`` raises; that was the last chunk then."""
        try:
            if not self._begun:
                self._begun = True
                scheduler.check_request(self._request)
            chunk = self._left.popleft()
            request = type(self._request)(rmID=self._request.rmID)
            chunk.route.whole_field(request).extend(chunk.items[chunk.span])
            outputs = self._keep_rejected(scheduler.apply(request, now))
        except BaseException:
            self._left.clear()
            raise
        if not self._left or self._left[0].route is not chunk.route:
            outputs += self.rejected()
        return outputs

    def rejected(self) -> list[Output]:
        """The response about everything that was rejected, unless it has been returned already."""
        kept, self._rejected = self._rejected, None
        return [Output(self._request.rmID, kept)] if kept is not None else []

    def _keep_rejected(self, outputs: list[Output]) -> list[Output]:
        others = []
        for output in outputs:
            message = output.message
            if not isinstance(message, AllocationResponse) or not (
                message.rejected or message.rejectedAllocations
            ):
                others.append(output)
            elif self._rejected is None:
                self._rejected = message
            else:
                self._rejected.MergeFrom(message)
        return others


def _chunks(request: Request, most: int) -> Iterator[_Chunk]:
    for route in routes_of(request):
        items = route.items(request)
        if isinstance(request, NodeRequest):
            yield from _chunks_of_nodes(route, items, most)
        else:
            for first in range(0, len(items), most):
                last = min(first + most, len(items))
                yield _Chunk(route, items, slice(first, last), last - first)


def _chunks_of_nodes(route: Route, nodes: Sequence[NodeInfo], most: int) -> Iterator[_Chunk]:
    first = size = 0
    for at, node in enumerate(nodes):
        own = size_of_node(node)
        if size and size + own > most:
            yield _Chunk(route, nodes, slice(first, at), size)
            first, size = at, 0
        size += own
    if size:
        yield _Chunk(route, nodes, slice(first, len(nodes)), size)
