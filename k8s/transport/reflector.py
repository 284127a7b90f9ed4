"""A reflector: all objects of one kind, first listed and then watched (K19 to K24).

Its lifecycle (``lifecycles.reflector``) says what it does next; this module carries that out. Each change is
announced once, in the order of the API server.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, Final, Generic, Literal, Protocol, TypeVar
from urllib.parse import urlencode

import msgspec

from quadriga.base.pacing import backoff
from quadriga.base.times import SECOND
from quadriga.k8s.lifecycles import reflector as lifecycle
from quadriga.k8s.lifecycles.effects import List, Pause, Watch
from quadriga.k8s.lifecycles.reflector import REFLECTOR
from quadriga.k8s.transport.client import Client
from quadriga.k8s.transport.listing import BOOKMARK, Decoders, Event, Object, WatchError
from quadriga.k8s.transport.requester import NoAnswer, refusal_of
from quadriga.k8s.tuning import TUNING

_log = logging.getLogger("quadriga.kubernetes.reflector")

T = TypeVar("T", bound=Object)

_EXPIRED: Final = ("Expired", "Gone")
_DELETED: Final = "DELETED"

Change = Literal["ADDED", "MODIFIED", "DELETED"]
Announce = Callable[[Change, Any], None]


class Timing(Protocol):
    """The clock and the random numbers of a reflector."""

    def now(self) -> int:
        """Return the time in ns."""

    async def sleep(self, seconds: float) -> None: ...

    def random(self) -> float:
        """Return a random number from 0 to below 1."""


class RealTiming:
    """The time and the random numbers of this machine."""

    now = staticmethod(time.monotonic_ns)
    random = staticmethod(random.random)
    sleep = staticmethod(asyncio.sleep)


class Watching:
    """The parameters of K19, K20 and K22; times are in seconds."""

    page = 500
    #: bytes; the next pages are smaller if a page exceeds this
    page_bytes = 16_000_000
    #: the server ends a watch after a time from this range
    lasts = (240, 480)
    #: the client waits this much longer for that end
    patience = 30.0
    #: the first and the longest pause after errors, and the time without errors that resets it
    pause = 0.8
    longest_pause = 30.0
    calm = 120.0
    #: a watch, or the time since the last list, that is shorter counts as an error
    shortest = 1.0


class Reflector(Generic[T]):
    """Lists and watches the collection at ``path``. It calls ``announce(change, object)`` for each change, and
    ``synced()`` once, after the first complete list.

    ``wait_for_capacity()`` returns when changes may be read: the caller holds the watch back by it (K15).
    ``within`` gets each object first and returns it reduced to the bounds.
    """

    def __init__(
        self,
        client: Client,
        path: str,
        kind: type[T],
        announce: Announce,
        timing: Timing,
        *,
        synced: Callable[[], None] = lambda: None,
        wait_for_capacity: Callable[[], Awaitable[None]] | None = None,
        watching: type[Watching] | Watching = Watching,
        within: Callable[[T], T] | None = None,
    ) -> None:
        #: what the lifecycle looks at
        self.state: lifecycle.State = REFLECTOR.initial
        self.key = path
        #: resource version from which to watch; "" if a list is needed
        self.version = ""
        self._client = client
        self._announce = announce
        self._timing = timing
        self._on_synced: Callable[[], None] | None = synced
        self._wait_for_capacity = wait_for_capacity
        self._watching = watching
        self._decoders: Decoders[T] = Decoders(kind, within)
        self._known: dict[str, T] = {}
        #: limit of objects for the next page
        self._limit = watching.page
        self._errors = 0
        self._error_at = 0
        self._listed_at = -(1 << 62)
        #: when (ns) the server last sent something
        self.last_contact = timing.now()
        #: why it is not watching, for the state dump; "" if it is
        self.problem = ""

    @property
    def has_version(self) -> bool:
        """Whether there is a resource version to watch from."""
        return self.version != ""

    @property
    def known(self) -> int:
        """The number of objects."""
        return len(self._known)

    @property
    def objects(self) -> Mapping[str, T]:
        """The objects by UID. The mapping changes, and is replaced after a list."""
        return self._known

    @property
    def synced(self) -> bool:
        """Whether the first complete list was announced."""
        return self._on_synced is None

    async def run(self) -> None:
        """List and watch until cancelled."""
        effect: Any = List()
        try:
            while True:
                effect = self._fire(await self._do(effect))
        finally:
            self._fire(lifecycle.STOP)

    def _fire(self, trigger: lifecycle.Trigger) -> Any:
        effects = REFLECTOR.fire(self, trigger)
        return effects[0] if effects else None

    async def _do(self, effect: List | Watch | Pause) -> lifecycle.Trigger:
        """Execute the effect and return the trigger that says how it ended."""
        if isinstance(effect, Pause):
            await self._timing.sleep(self._next_pause())
            return lifecycle.RETRY
        try:
            if isinstance(effect, List):
                return await self._list(paged=effect.paged)
            return await self._watch()
        except NoAnswer as error:
            return self._failed(str(error))
        except (ValueError, msgspec.MsgspecError) as error:
            # Neither a list nor an event: a proxy may send such a response.
            return self._failed(f"the answer cannot be read: {error}")

    def _failed(self, problem: str) -> lifecycle.Trigger:
        self.problem = problem
        _log.warning("%s: %s", self.key, problem)
        return lifecycle.FAILED

    def _next_pause(self) -> float:
        """Return the next pause in seconds (K22)."""
        numbers, now = self._watching, self._timing.now()
        if now - self._error_at > int(numbers.calm * SECOND):
            self._errors = 0
        self._errors += 1
        pause = backoff(numbers.pause, numbers.longest_pause, self._errors)
        pause = pause / 2 + pause / 2 * self._timing.random()
        # The pause itself does not count as time without errors.
        self._error_at = now + int(pause * SECOND)
        return pause

    # -- list ------------------------------------------------------------------------------------

    async def _list(self, *, paged: bool) -> lifecycle.Trigger:
        found: dict[str, T] = {}
        rest, numbers = "", self._watching
        while True:
            query = {"limit": str(self._limit)} if paged else {"resourceVersion": "0"}
            if rest:
                query["continue"] = rest
            status, body = await self._client.request(
                "GET",
                f"{self.key}?{urlencode(query)}",
                timeout=TUNING.list_timeout_s,
                lane="urgent",
            )
            if status == HTTPStatus.GONE:
                return lifecycle.EXPIRED if paged else self._failed("the list has expired twice")
            if status != HTTPStatus.OK:
                return self._failed(f"the list was refused with {refusal_of(status, body)}")
            page = self._decoders.page(body)
            before = len(found)
            for each in page.items:
                found[each.metadata.uid] = each
                if len(found) % TUNING.decoded_slice == 0:
                    await asyncio.sleep(0)
            if paged and len(found) > before:
                fitting = numbers.page_bytes * (len(found) - before) // max(1, len(body))
                self._limit = max(1, min(numbers.page, fitting))
            rest = page.rest
            if not rest:
                break
        self.version = page.version
        self._note_contact()
        self._listed_at = self._timing.now()
        self._announce_differences(found)
        if self._on_synced is not None:
            on_synced, self._on_synced = self._on_synced, None
            on_synced()
        return lifecycle.LISTED

    def _announce_differences(self, found: dict[str, T]) -> None:
        """Announce the differences to a new list (K21). Deletions come first, because another object may have
        the same name."""
        before, self._known = self._known, found
        for uid, each in before.items():
            if uid not in found:
                self._announce("DELETED", each)
        for uid, each in found.items():
            known = before.get(uid)
            if known is None:
                self._announce("ADDED", each)
            elif known.metadata.resource_version != each.metadata.resource_version:
                self._announce("MODIFIED", each)

    # -- watch -----------------------------------------------------------------------------------

    async def _watch(self) -> lifecycle.Trigger:
        numbers = self._watching
        first, last = numbers.lasts
        seconds = first + int((last - first) * self._timing.random())
        query = urlencode(
            {
                "watch": "1",
                "allowWatchBookmarks": "true",
                "resourceVersion": self.version,
                "timeoutSeconds": str(seconds),
            }
        )
        began = self._timing.now()
        async with self._client.stream(f"{self.key}?{query}", seconds + numbers.patience) as stream:
            if stream.status != HTTPStatus.OK:
                refusal = refusal_of(stream.status, await stream.body())
                if stream.status == HTTPStatus.GONE:
                    return self._expired()
                return self._failed(f"the watch was refused with {refusal}")
            self._note_contact()
            rest: list[bytes] = []
            async for chunk in stream.chunks():
                self.last_contact = self._timing.now()
                *lines, end = chunk.split(b"\n")
                if lines:
                    rest.append(lines[0])
                    lines[0] = b"".join(rest)
                    rest.clear()
                    for line in lines:
                        error = self._handle_line(line) if line else None
                        if error is not None:
                            return self._refused(error)
                if end:
                    rest.append(end)
                if self._wait_for_capacity is not None:
                    await self._wait_for_capacity()
        if self._timing.now() - began < int(numbers.shortest * SECOND):
            return self._failed("the watch ended at once")
        return lifecycle.ENDED

    def _note_contact(self) -> None:
        self.last_contact = self._timing.now()
        self.problem = ""

    def _handle_line(self, line: bytes) -> WatchError | None:
        event = self._decoders.event(line)
        if isinstance(event, WatchError):
            return event
        if event.object is not None:
            self._change(event, event.object)
        if event.version:
            self.version = event.version
        return None

    def _change(self, event: Event[T], new: T) -> None:
        """Apply one watch event and announce it, unless its resourceVersion is known (K23)."""
        uid = new.metadata.uid
        if event.type == _DELETED:
            if self._known.pop(uid, None) is not None:
                self._announce("DELETED", new)
            return
        if event.type == BOOKMARK:
            return
        known = self._known.get(uid)
        self._known[uid] = new
        if known is None:
            self._announce("ADDED", new)
        elif known.metadata.resource_version != new.metadata.resource_version:
            self._announce("MODIFIED", new)

    def _refused(self, error: WatchError) -> lifecycle.Trigger:
        if error.code == HTTPStatus.GONE or error.reason in _EXPIRED:
            return self._expired()
        return self._failed(
            f"the watch was ended with {error.code}: {error.message or error.reason}"
        )

    def _expired(self) -> lifecycle.Trigger:
        """List again, after a pause if the last list has only just ended (K21)."""
        self.version = ""
        if self._timing.now() - self._listed_at < int(self._watching.shortest * SECOND):
            return self._failed("the version of the list has expired at once")
        return lifecycle.EXPIRED
