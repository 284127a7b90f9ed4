"""Look-ups of users' groups beside the thread that owns the scheduler (I24, Q16).

The user database may be a directory on another machine that takes milliseconds for each user, or never
answers. The groups that a request needs are therefore looked up in other threads, from the moment the
request is sent, and the request is applied once they are known: the core gets them as part of its input,
and does not wait. The later requests of the same resource manager wait behind it, in their order; those
of others do not.

A look-up that takes longer than the deadline counts as one of an unknown user, who belongs to no group.
While all threads are in such look-ups, every unknown user does. See D281.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from quadriga.base.pacing import LogPace
from quadriga.base.times import SECOND
from quadriga.core.driver.os_groups import (
    KEEP_FAILED,
    MANY,
    Answers,
    LookUp,
    groups_of_system,
    looked_up,
)

_log = logging.getLogger("quadriga.service")

#: look-ups at a time
_THREADS: Final = 4
#: s for one look-up
DEADLINE_S: Final = 5.0


class Lookup:
    """The groups that one request needs. ``missing`` are the users whose groups are not known yet;
    ``wake`` is called, in any thread, when there are none left."""

    __slots__ = ("answers", "missing", "wake")

    def __init__(self, wake: Callable[[], None]) -> None:
        self.answers: dict[str, tuple[str, ...]] = {}
        self.missing: set[str] = set()
        self.wake = wake

    @property
    def done(self) -> bool:
        """Whether the request can be applied."""
        return not self.missing


class GroupLookups:
    """A group resolver for a scheduler with a thread. ``answering`` is the look-up of the request that
    this thread applies now."""

    def __init__(
        self,
        clock: Callable[[], int],
        look_up: LookUp | None = None,
        *,
        deadline_s: float = DEADLINE_S,
        most: int = MANY,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.answers = Answers(clock, most)
        self.answering: Lookup | None = None
        self._look_up = look_up or groups_of_system
        self._deadline_s = deadline_s
        self._monotonic = monotonic
        self._changed = threading.Condition()
        self._closed = False
        self._threads = 0
        self._queue: deque[str] = deque()
        #: user -> the requests that wait for the groups
        self._waiting: dict[str, list[Lookup]] = {}
        #: user -> when the look-up began (s); those that took too long are also in ``_late``
        self._running: dict[str, float] = {}
        self._late: set[str] = set()
        self._pace = LogPace(monotonic)

    def __call__(self, user: str) -> tuple[str, ...]:
        """The groups of a user. Only a scheduler without a thread waits for them here."""
        if self.answering is not None and (groups := self.answering.answers.get(user)) is not None:
            return groups
        arrived = threading.Event()
        lookup = self.begin((user,), arrived.set)
        if not lookup.done:
            arrived.wait(self._deadline_s)
        return lookup.answers.get(user, ())

    def begin(self, users: Iterable[str], wake: Callable[[], None]) -> Lookup:
        """Look the groups of these users up, unless they are known."""
        lookup = Lookup(wake)
        with self._changed:
            for user in users:
                known = self.answers.get(user) if not self._closed else ()
                if known is not None:
                    lookup.answers[user] = known
                elif user not in lookup.missing:
                    lookup.missing.add(user)
                    self._wait(user, lookup)
        return lookup

    def _wait(self, user: str, lookup: Lookup) -> None:
        waiting = self._waiting.get(user)
        if waiting is not None:
            waiting.append(lookup)
            return
        self._waiting[user] = [lookup]
        if user not in self._running:
            self._queue.append(user)
            idle = self._threads - len(self._running)
            if self._threads < _THREADS and idle < len(self._queue):
                self._threads += 1
                name = f"quadriga groups {self._threads}"
                threading.Thread(target=self._run, name=name, daemon=True).start()
            self._changed.notify()

    def expire(self) -> None:
        """Give up the look-ups that take too long. To be called now and then while a request waits."""
        with self._changed:
            end = self._monotonic() - self._deadline_s
            late = [
                user
                for user, began in self._running.items()
                if began <= end and (user not in self._late or user in self._waiting)
            ]
            self._late.update(late)
            if len(self._late) >= _THREADS:  # no thread is left for the others
                late += self._queue
                self._queue.clear()
            ended = [lookup for user in late for lookup in self._settle(user, (), KEEP_FAILED)]
            if late and (left_out := self._pace.due()) is not None:
                _log.warning(
                    "the groups of user %r are not known after %g s: the user counts as one without"
                    " groups for %d s (%d such users, %d reports left out)",
                    *(late[0], self._deadline_s, KEEP_FAILED // SECOND, len(late), left_out),
                )
        for lookup in ended:
            lookup.wake()

    def _settle(self, user: str, groups: tuple[str, ...], keep: int) -> list[Lookup]:
        """Note an answer. Returns the look-ups that are done with it."""
        self.answers.put(user, groups, keep)
        ended = []
        for lookup in self._waiting.pop(user, ()):
            lookup.answers[user] = groups
            lookup.missing.discard(user)
            if lookup.done:
                ended.append(lookup)
        return ended

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._closed)
                if self._closed:
                    return
                user = self._queue.popleft()
                self._running[user] = self._monotonic()
            try:
                groups, keep = looked_up(self._look_up, user)
            except Exception:  # of a look-up that somebody else wrote
                _log.exception("the groups of user %r cannot be looked up", user)
                groups, keep = (), KEEP_FAILED
            with self._changed:
                del self._running[user]
                self._late.discard(user)
                ended = self._settle(user, groups, keep)
            for lookup in ended:
                lookup.wake()

    def close(self) -> None:
        """End the threads. What still waits gets no groups."""
        with self._changed:
            self._closed = True
            self._queue.clear()
            waiting = [*self._waiting]
            ended = [lookup for user in waiting for lookup in self._settle(user, (), KEEP_FAILED)]
            self._changed.notify_all()
        for lookup in ended:
            lookup.wake()
