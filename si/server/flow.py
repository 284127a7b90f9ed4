"""Requests of one stream on their way to the scheduler: how many it has not taken up yet, with how many
items, and what it says of them. There may be tens of thousands a second, so none has a future of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from quadriga.si.answers import Outcome

__all__ = ["Flow", "call_soon"]


def call_soon(loop: asyncio.AbstractEventLoop, what: Callable[[], object]) -> None:
    """Let the server's loop do it, from any thread; once it is closed, nobody is there to do it."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(what)


class Flow:
    """At most ``window`` requests at a time, and no further one while ``items`` are on their way.
    ``refused(error, request)`` is called in the scheduler's thread; it gives the error that is to end
    the stream, if any; ``failed`` is then called in the loop's."""

    def __init__(
        self,
        window: int,
        items: int,
        refused: Callable[[BaseException, Any], BaseException | None],
        failed: Callable[[], None],
    ) -> None:
        #: what is to end the stream
        self.error: BaseException | None = None
        self._window = window
        self._most_items = items
        self._refused = refused
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        #: each is counted by one thread only: the loop's, the scheduler's
        self._sent = self._sent_items = 0
        self._seen = self._seen_items = 0
        #: set when no more requests and items than these are on their way
        self._waiting: asyncio.Event | None = None
        self._enough = (0, 0)

    def send(self, request: Any, items: int) -> Outcome:
        """One more goes out; the scheduler tells the outcome."""
        self._sent += 1
        self._sent_items += items
        return _Told(self, request, items)

    async def room(self) -> None:
        """Wait until there is room for more; for half of the window, so that it is not each time."""
        if not self._has_at_most(self._window - 1, self._most_items - 1):
            await self._until(self._window // 2, self._most_items // 2)

    async def empty(self) -> None:
        """Wait until the scheduler has taken up all of them."""
        await self._until(0, 0)

    async def _until(self, requests: int, items: int) -> None:
        while not self._has_at_most(requests, items):
            event = asyncio.Event()
            self._enough = (requests, items)
            self._waiting = event
            # The scheduler may have taken one up just before it could see the event.
            if not self._has_at_most(requests, items):
                await event.wait()
        self._waiting = None

    def _has_at_most(self, requests: int, items: int) -> bool:
        """Whether no more than these are on their way."""
        return self._sent - self._seen <= requests and self._sent_items - self._seen_items <= items

    def settle(self, error: BaseException | None, request: Any, items: int) -> None:
        """The scheduler has taken one up, in its thread."""
        if error is not None:
            error = self._refused(error, request)
            if error is not None and self.error is None:
                self.error = error
                call_soon(self._loop, self._failed)
        self._seen += 1
        self._seen_items += items
        waiting = self._waiting
        if waiting is not None and self._has_at_most(*self._enough):
            self._waiting = None
            call_soon(self._loop, waiting.set)


class _Told:
    """The `Outcome` of one request."""

    __slots__ = ("_flow", "_items", "_request")

    def __init__(self, flow: Flow, request: Any, items: int) -> None:
        self._flow = flow
        self._request = request
        self._items = items

    def set_result(self, result: None) -> None:
        self._flow.settle(None, self._request, self._items)

    def set_exception(self, exception: BaseException | None) -> None:
        self._flow.settle(exception, self._request, self._items)
