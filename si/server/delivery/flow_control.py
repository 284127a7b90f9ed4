"""Flow control between one stream and the scheduler: it bounds the requests that the scheduler has
not processed yet.

A stream may carry tens of thousands of requests a second, so requests have no futures of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from quadriga.si.api import Outcome


def call_soon(loop: asyncio.AbstractEventLoop, what: Callable[[], object]) -> None:
    """Run a function in the server's loop, from any thread. Does nothing once the loop is
    closed."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(what)


class FlowControl:
    """Allows ``window`` requests at a time, and no further one while ``items`` are in flight. The
    scheduler's thread calls ``refused(error, request)``, which returns the error that must end the
    stream, if any. The loop's thread then calls ``failed``."""

    def __init__(
        self,
        window: int,
        items: int,
        refused: Callable[[BaseException, Any], BaseException | None],
        failed: Callable[[], None],
    ) -> None:
        #: the error that must end the stream
        self.error: BaseException | None = None
        self._window = window
        self._items = items
        self._refused = refused
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        #: Each counter has one writer: the loop counts what is sent, the scheduler's thread what is
        #: settled.
        self._sent = self._sent_items = 0
        self._settled = self._settled_items = 0
        #: set when at most `_target` requests and items are in flight
        self._waiting: asyncio.Event | None = None
        self._target = (0, 0)

    def send(self, request: Any, items: int) -> Outcome:
        """Count one more request. Return the `Outcome` for the scheduler."""
        self._sent += 1
        self._sent_items += items
        return _RequestOutcome(self, request, items)

    async def room(self) -> None:
        """Wait while the window is full. Once full, wait until it is half empty, so that most
        requests need not wait."""
        if not self._has_at_most(self._window - 1, self._items - 1):
            await self._wait_for(self._window // 2, self._items // 2)

    async def empty(self) -> None:
        """Wait until the scheduler has processed all requests."""
        await self._wait_for(0, 0)

    async def _wait_for(self, requests: int, items: int) -> None:
        while not self._has_at_most(requests, items):
            event = asyncio.Event()
            self._target = (requests, items)
            self._waiting = event
            # The scheduler may have settled a request just before it could see the event.
            if not self._has_at_most(requests, items):
                await event.wait()
        self._waiting = None

    def _has_at_most(self, requests: int, items: int) -> bool:
        """Whether at most this many requests and items are in flight."""
        return (
            self._sent - self._settled <= requests
            and self._sent_items - self._settled_items <= items
        )

    def settle(self, error: BaseException | None, request: Any, items: int) -> None:
        """Count a request that the scheduler has processed; called in its thread."""
        if error is not None:
            error = self._refused(error, request)
            if error is not None and self.error is None:
                self.error = error
                call_soon(self._loop, self._failed)
        self._settled += 1
        self._settled_items += items
        waiting = self._waiting
        if waiting is not None and self._has_at_most(*self._target):
            self._waiting = None
            call_soon(self._loop, waiting.set)


class _RequestOutcome:
    """The `Outcome` of one request."""

    __slots__ = ("_flow", "_items", "_request")

    def __init__(self, flow: FlowControl, request: Any, items: int) -> None:
        self._flow = flow
        self._request = request
        self._items = items

    def set_result(self, result: None) -> None:
        self._flow.settle(None, self._request, self._items)

    def set_exception(self, exception: BaseException | None) -> None:
        self._flow.settle(exception, self._request, self._items)
