"""Requests of one stream on their way to the scheduler: how many it has not looked at yet, and what it
says of them. There may be tens of thousands a second, so none has a future of its own."""

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
    """At most ``window`` requests at a time. ``refused(error, request)`` is called in the scheduler's
    thread; it gives the error that is to end the stream, if any; ``failed`` is then called in the
    loop's."""

    def __init__(
        self,
        window: int,
        refused: Callable[[BaseException, Any], BaseException | None],
        failed: Callable[[], None],
    ) -> None:
        #: what is to end the stream
        self.error: BaseException | None = None
        self._window = window
        self._refused = refused
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        #: each is counted by one thread only: the loop's, the scheduler's
        self._sent = 0
        self._seen = 0
        #: who waits until no more than so many are on their way
        self._waiting: asyncio.Event | None = None
        self._enough = 0

    def send(self, request: Any) -> Outcome:
        """One more goes out; the scheduler tells the outcome."""
        self._sent += 1
        return _Told(self, request)

    async def room(self) -> None:
        """Wait until there is room for more; for half of the window, so that it is not each time."""
        if self._sent - self._seen >= self._window:
            await self._until(self._window // 2)

    async def empty(self) -> None:
        """Wait until the scheduler has looked at all of them."""
        await self._until(0)

    async def _until(self, enough: int) -> None:
        while self._sent - self._seen > enough:
            event = asyncio.Event()
            self._enough = enough
            self._waiting = event
            # It may have looked just before it could see the event.
            if self._sent - self._seen > enough:
                await event.wait()
        self._waiting = None

    def settle(self, error: BaseException | None, request: Any) -> None:
        """The scheduler has looked at one, in its thread."""
        if error is not None:
            error = self._refused(error, request)
            if error is not None and self.error is None:
                self.error = error
                call_soon(self._loop, self._failed)
        self._seen += 1
        waiting = self._waiting
        if waiting is not None and self._sent - self._seen <= self._enough:
            self._waiting = None
            call_soon(self._loop, waiting.set)


class _Told:
    """The `Outcome` of one request."""

    __slots__ = ("_flow", "_request")

    def __init__(self, flow: Flow, request: Any) -> None:
        self._flow = flow
        self._request = request

    def set_result(self, result: None) -> None:
        self._flow.settle(None, self._request)

    def set_exception(self, exception: BaseException | None) -> None:
        self._flow.settle(exception, self._request)
