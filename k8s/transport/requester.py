"""The interface of the API client that discovery, volumes and the writers use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Final, Protocol

import msgspec

from quadriga.base.pacing import pauses
from quadriga.base.times import SECOND

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"


class NoAnswer(Exception):
    """The API server could not be reached, or the connection ended before the response. Whether the request
    took effect is unknown."""


class Requester(Protocol):
    """A client of the API server."""

    async def request(
        self, method: str, path: str, body: bytes | None = None, content_type: str = JSON
    ) -> tuple[int, bytes]:
        """Send one request; return the status and the body, whatever the status is.

        ``path`` begins with ``/`` and is quoted. Raises `NoAnswer`.
        """


# -- refusals, which responses leave a doubt, and pauses before retries (K72, K79, K107) -----------


class Refusal(msgspec.Struct, gc=False):
    """The refusal of a request. ``reason`` is one word, such as ``AlreadyExists``; ``message`` a sentence;
    ``code`` the status."""

    code: int = 0
    reason: str = ""
    message: str = ""

    def __str__(self) -> str:
        text = self.message or self.reason or "no explanation"
        return f"{self.code}: {text[:1000]}"


_decoder = msgspec.json.Decoder(Refusal)


def refusal_of(status: int, body: bytes) -> Refusal:
    """Return the refusal in a response. A body that is no ``Status`` is the message."""
    try:
        refusal = _decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        refusal = Refusal(message=body[:1000].decode("utf-8", "replace").strip())
    refusal.code = status
    return refusal


#: 401: credentials may rotate; 408 and 429: the server asks for a retry
_AGAIN: Final = frozenset({401, 408, 429})


def is_again(status: int) -> bool:
    """Return whether the same request may be answered differently later. Status 0 stands for no response."""
    return status >= 500 or status in _AGAIN or status == 0


def bind_waits(limit: int) -> Iterator[float]:
    """Yield the seconds before each further attempt of a bind, ``limit`` ns in sum: 1, 2, 4, 8, 16, 30, 30, 30
    by default."""
    waited = 0.0
    for wait in pauses(1.0, 30.0):
        waited += wait
        if waited * SECOND > limit:
            return
        yield wait


def create_waits() -> Iterator[float]:
    """Yield the seconds before each further attempt of a create: a minute in sum (K72)."""
    yield from (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)


def delete_waits() -> Iterator[float]:
    """Yield the seconds before each further attempt of a delete, without an end (K79, K112)."""
    yield from pauses(5.0, 30.0)


def patch_waits() -> Iterator[float]:
    """Yield the seconds before each further attempt of a patch: two minutes in sum."""
    yield from (1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 30.0, 30.0)


#: the time in ns. Only differences matter, and it never goes back.
Clock = Callable[[], int]


class Wakeup:
    """Lets one task sleep until a time or until it is woken, all on one event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rung = asyncio.Event()

    def wake(self) -> None:
        """Wake the task; if it does not sleep, its next sleep ends at once."""
        self._rung.set()

    async def sleep_until(self, when: int | None) -> None:
        """Sleep until this time (ns), or without end for ``None``."""
        delay = None if when is None else max(0, when - self._clock()) / SECOND
        try:
            async with asyncio.timeout(delay):
                await self._rung.wait()
        except TimeoutError:
            pass
        self._rung.clear()
