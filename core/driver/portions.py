"""A large request is taken up in portions, so that others need not wait for the whole of it.

Each portion is a request of its own with some of the items, in the order in which the whole would be
applied (M2, M5), so the outcome is that of several smaller requests. Two things are as for one request:
it is refused whole before any item of it was applied, and the asks and allocations that were rejected
are told in one response (M3). Nodes and applications are answered portion by portion, so that nothing
is placed on a node of which its resource manager has not heard that it was accepted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from quadriga.core.intake.dispatcher import Request, Route, routes_of
from quadriga.core.runtime.outbox import Output
from quadriga.si import AllocationResponse, NodeInfo, NodeRequest
from quadriga.si.items import size_of_node

if TYPE_CHECKING:
    from quadriga.core.scheduler import Scheduler

__all__ = ["Portions"]


class _Part(NamedTuple):
    """Those ``items`` of one part of the request that stand here; ``size`` is what they count."""

    route: Route
    items: Sequence[Any]
    here: slice
    size: int


class Portions:
    """``most`` is the items of a portion; a single item that counts more is a portion by itself."""

    def __init__(self, request: Request, most: int) -> None:
        self._request = request
        self._left = deque(_parts(request, most))
        self._begun = False
        self._rejected: AllocationResponse | None = None

    @property
    def items(self) -> int:
        """How many items the next portion has; 0 when there is none."""
        return self._left[0].size if self._left else 0

    def apply(self, scheduler: Scheduler, now: int) -> list[Output]:
        """Apply the next portion. Raises what ``Scheduler.apply`` raises; nothing follows then."""
        try:
            if not self._begun:
                self._begun = True
                scheduler.check_request(self._request)
            part = self._left.popleft()
            request = type(self._request)(rmID=self._request.rmID)
            part.route.whole_field(request).extend(part.items[part.here])
            outputs = self._keep_rejected(scheduler.apply(request, now))
        except BaseException:
            self._left.clear()
            raise
        if not self._left or self._left[0].route is not part.route:
            outputs += self.rejected()
        return outputs

    def rejected(self) -> list[Output]:
        """What was rejected and is not told yet."""
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


def _parts(request: Request, most: int) -> Iterator[_Part]:
    for route in routes_of(request):
        items = route.items(request)
        if isinstance(request, NodeRequest):
            yield from _parts_of_nodes(route, items, most)
        else:
            for first in range(0, len(items), most):
                last = min(first + most, len(items))
                yield _Part(route, items, slice(first, last), last - first)


def _parts_of_nodes(route: Route, nodes: Sequence[NodeInfo], most: int) -> Iterator[_Part]:
    first = size = 0
    for at, node in enumerate(nodes):
        own = size_of_node(node)
        if size and size + own > most:
            yield _Part(route, nodes, slice(first, at), size)
            first, size = at, 0
        size += own
    if size:
        yield _Part(route, nodes, slice(first, len(nodes)), size)
