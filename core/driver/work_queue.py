"""The work queue of the thread that owns a scheduler, shared fairly among resource managers.

Any thread adds work items. Each resource manager (RM) has a backlog, in the order of the calls. The
backlogs take turns, and a turn is counted in request items (asks, applications, nodes, releases), not
in requests: a large request delays the work of other RMs by at most one turn. A backlog that was empty
has its first turn before those that have had one; a registration thus does not wait behind the asks of
other RMs. Work that belongs to no RM, such as a read of the scheduler, comes before all backlogs. Only the
slices of a long read (``slices``) take turns with them.

An item may wait for users' groups (``group_lookups``). The backlog that it heads then has no turn until
they are known.

One thread owns the scheduler, or none does: then each caller does its work itself. See D104.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from quadriga.core.runtime.outbox import Output
from quadriga.si.api import Outcome

if TYPE_CHECKING:
    from quadriga.core.driver.chunks import ChunkedRequest
    from quadriga.core.driver.group_lookups import Lookup

#: fields of requests with items, and the names of these
_NAMES = (
    ("asks", "allocationKey"),
    ("allocations", "allocationKey"),
    ("new", "applicationID"),
    ("remove", "applicationID"),
    ("nodes", "nodeID"),
)
#: characters of a name in a line of the log
_SHOWN = 100

#: something to do with the scheduler; returns messages for the callbacks
Work = Callable[[], list[Output]]


class WorkItem(NamedTuple):
    """Work, and the receiver of its outcome. ``size`` is what it costs of a turn, in request items.

    A large request is done in ``chunks``: the item stands for its next chunk, and the outcome is set
    after the last one. It is not done before its ``lookup``, if it has to wait for one. Work of no RM that
    is ``in_turn`` does not come before that of RMs.
    """

    work: Work
    outcome: Outcome
    rm_id: str = ""
    size: int = 1
    chunks: ChunkedRequest | None = None
    lookup: Lookup | None = None
    in_turn: bool = False


class Closed(Exception):
    """The queue is closed and empty."""


class _Backlog:
    """The work items of one RM. ``credit`` is the number of request items left of its present turn.

    ``arrived`` has the time (ns) at which each item came, and ``taken`` that of the one taken last.
    ``lookups`` is the number of items that had to wait for groups.
    """

    __slots__ = ("arrived", "credit", "items", "lookups", "rm_id", "taken")

    def __init__(self, rm_id: str, credit: int) -> None:
        self.rm_id = rm_id
        self.credit = credit
        self.lookups = 0
        self.items: deque[WorkItem] = deque()
        self.arrived: deque[int] = deque()
        self.taken: int | None = None


class WorkQueue:
    """``owner`` is the thread that takes the items, ``turn`` the number of request items of a turn.
    ``clock`` gives ns and never goes back.

    How long the items of RMs wait is measured: `delays` says it of those that wait now, and ``taken`` and
    ``waited`` are the number of all that were taken and the sum of their times (ns).
    """

    def __init__(
        self,
        owner: threading.Thread | None,
        turn: int,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._clock = clock
        self.taken = 0
        self.waited = 0
        self._owner = owner
        self._turn = turn
        self._changed = threading.Condition(threading.Lock())
        self._closed = False
        self._size = 0
        #: work of no RM
        self._first: deque[WorkItem] = deque()
        #: of these the items that are in turn, and whether one of them was taken last
        self._slices: deque[WorkItem] = deque()
        self._sliced = False
        self._backlogs: dict[str, _Backlog] = {}
        #: every backlog is in one of these: before the end of its first turn, or after it
        self._new: deque[_Backlog] = deque()
        self._busy: deque[_Backlog] = deque()
        #: except those whose first item waits for groups; here with the queue to which they go back
        self._held: dict[str, tuple[_Backlog, deque[_Backlog]]] = {}

    def __len__(self) -> int:
        """The number of work items."""
        return self._size

    @property
    def holds(self) -> bool:
        """Whether items wait for groups."""
        return bool(self._held)

    @property
    def is_closed(self) -> bool:
        return self._closed

    def put(self, item: WorkItem, *, at_once: bool = False) -> bool:
        """Add an item for the owner. Return False if the caller has to do the work itself: there is no
        owner, or the caller is the owner and wants it done ``at_once``, unless it has to wait for groups or
        comes after an item that had to.

        Raises ``RuntimeError`` once the queue is closed.
        """
        with self._changed:
            if self._closed:
                raise _stopped()
            if self._owner is None:
                return False
            if at_once and threading.current_thread() is self._owner and item.lookup is None:
                before = self._backlogs.get(item.rm_id)
                if before is None or not before.lookups:
                    return False
            if item.rm_id:
                backlog = self._backlog(item.rm_id)
                backlog.lookups += item.lookup is not None
                backlog.items.append(item)
                backlog.arrived.append(self._clock())
            else:
                (self._slices if item.in_turn else self._first).append(item)
            self._size += 1
            self._changed.notify()
            return True

    def put_back(self, item: WorkItem) -> None:
        """One chunk of the item's request is done; the next one is first in the RM's backlog."""
        with self._changed:
            backlog = self._backlog(item.rm_id)
            backlog.lookups += item.lookup is not None
            backlog.items.appendleft(item)
            # the whole request is applied when its last chunk is
            backlog.arrived.appendleft(self._clock() if backlog.taken is None else backlog.taken)
            self._size += 1

    def delays(self) -> dict[str, int]:
        """By RM: for how long (ns) its first item waits now. From any thread."""
        with self._changed:
            now = self._clock()
            return {
                each.rm_id: max(0, now - each.arrived[0])
                for each in self._backlogs.values()
                if each.arrived
            }

    def _backlog(self, rm_id: str) -> _Backlog:
        backlog = self._backlogs.get(rm_id)
        if backlog is None:
            backlog = self._backlogs[rm_id] = _Backlog(rm_id, self._turn)
            self._new.append(backlog)
        return backlog

    def take(self, timeout: float | None = 0.0) -> WorkItem | None:
        """The next item, or ``None`` if there is none within ``timeout`` s (``None``: wait for one) or if
        it waits for groups.

        Raises `Closed` when the queue is closed and empty.
        """
        with self._changed:
            if timeout != 0.0:
                self._changed.wait_for(lambda: self._available() or self._is_over(), timeout)
            if self._is_over():
                raise Closed
            item = self._next() if self._available() else None
            if item is not None:
                self._size -= 1
            return item

    def _is_over(self) -> bool:
        return self._closed and not self._size

    def _available(self) -> int:
        """The number of items in backlogs that are not held."""
        return self._size - sum(len(backlog.items) for backlog, _ in self._held.values())

    def wake(self, rm_id: str) -> None:
        """The first item of the RM need not wait any longer."""
        with self._changed:
            if rm_id in self._held:
                backlog, backlogs = self._held.pop(rm_id)
                backlogs.appendleft(backlog)
                self._changed.notify()

    def _next(self) -> WorkItem | None:
        """The next item: of no RM, or of the backlog whose turn it is. ``None`` if all wait for groups."""
        if self._first:
            return self._first.popleft()
        others = self._available() > len(self._slices)
        self._sliced = bool(self._slices) and not (self._sliced and others)
        if self._sliced:
            return self._slices.popleft()
        while backlogs := self._new or self._busy:
            backlog = backlogs[0]
            if not backlog.items:
                backlogs.popleft()
                if backlogs is self._new and self._busy:
                    # It counts as new again only after a turn of all the others.
                    self._busy.append(backlog)
                else:
                    del self._backlogs[backlog.rm_id]
            elif (lookup := backlog.items[0].lookup) is not None and not lookup.done:
                self._held[backlog.rm_id] = backlogs.popleft(), backlogs
            elif backlog.credit <= 0:
                backlogs.popleft()
                backlog.credit += self._turn
                self._busy.append(backlog)
            else:
                item = backlog.items.popleft()
                backlog.lookups -= item.lookup is not None
                backlog.taken = backlog.arrived.popleft()
                self.taken += 1
                self.waited += max(0, self._clock() - backlog.taken)
                backlog.credit -= item.size
                return item
        return None

    def close(self) -> None:
        """Accept no more items; those in the queue are still done. Safe to call twice."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def abandon(self) -> None:
        """The owner has ended: tell the callers of all items left that these are not done."""
        with self._changed:
            self._closed = True
            left = [*self._first, *self._slices]
            for backlog in self._backlogs.values():
                left += backlog.items
                backlog.items.clear()
                backlog.arrived.clear()
            self._first.clear()
            self._slices.clear()
            self._held.clear()
            self._size = 0
        for item in left:
            item.outcome.set_exception(_stopped())


def _stopped() -> RuntimeError:
    return RuntimeError("the service has been stopped")


def described(thing: object) -> str:
    """What the owner works at, for the watchdog."""
    if not isinstance(thing, WorkItem):
        return str(thing)
    work = thing.work
    args = work.args if isinstance(work, partial) else ()
    request = next((each for each in args if hasattr(each, "rmID")), None)
    of = f" of {thing.rm_id}" if thing.rm_id else ""
    if request is None and thing.chunks is None:
        return f"a look at the scheduler{of}"
    kind = "a chunk of a request" if request is None else type(request).__name__
    return f"{kind}{of} with {thing.size} items{_first(request)}"


def _first(request: Any) -> str:
    """The first thing that a request names."""
    for field, name in _NAMES:
        items = getattr(request, field, None)
        if items:
            return f", the first of {field} is {getattr(items[0], name)[:_SHOWN]!r}"
    return ""
