"""The record of an application that has ended, and the bounded store of these records. See D85."""

from __future__ import annotations

import json
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from quadriga.base.texts import shortened
from quadriga.core.model.usage import ResourceHistory
from quadriga.core.resources.vectors import Totals
from quadriga.fsm.lifecycles import application as application_fsm

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.queue import Queue

#: at most this many states, tags, groups and task groups of an application are kept
_MOST: Final = 100
#: bytes of a record besides its texts: the object, its timer, its table entries
_FIXED: Final = 800

_NOTHING: Final = b""

_encode: Final = json.JSONEncoder(separators=(",", ":")).encode


class EndedApplication:
    """An application after its end, with what REST, pages and stories show, in few bytes.

    It replaces the ``Application`` in the same lifecycle until it expires. Details that only a view of
    this one application shows are packed into one text.
    """

    __slots__ = (
        "app_id",
        "entries",
        "finished",
        "packed",
        "partition",
        "preempted",
        "queue_path",
        "reason",
        "rejected_message",
        "seq",
        "size",
        "state",
        "submitted",
        "user",
    )

    def __init__(
        self,
        app_id: str,
        partition: Partition,
        queue: Queue,
        seq: int,
        submitted: int,
        user: str,
    ) -> None:
        self.app_id = shortened(app_id)
        self.partition = partition
        self.queue_path = queue.path
        self.seq = seq
        #: instants of submission and end (ns)
        self.submitted = submitted
        self.finished = 0
        self.state: application_fsm.State = application_fsm.NEW
        self.entries = 0
        self.user = shortened(user)
        self.rejected_message = ""
        #: why it ended, if the trigger had a reason
        self.reason = ""
        #: number of its allocations that were preempted
        self.preempted = 0
        self.packed = _NOTHING
        #: bytes as ``Shelf`` counts them
        self.size = _FIXED

    @property
    def key(self) -> str:
        return self.app_id

    def pack(self, remains: dict[str, Any]) -> None:
        """Pack the details that have no attribute, and compute the size."""
        self.packed = _encode(remains).encode()
        texts = (self.app_id, self.user, self.queue_path, self.rejected_message)
        self.size = _FIXED + len(self.packed) + sum(map(_bytes_of, texts))

    def forget(self) -> None:
        """Drop the texts of an expired application; the journal needs only its id."""
        self.packed = _NOTHING
        self.rejected_message = ""

    @property
    def remains(self) -> dict[str, Any]:
        """The packed details."""
        return json.loads(self.packed) if self.packed else {}

    # -- attributes of an application that has not ended ------------------------------------------------

    @property
    def allocated(self) -> Totals:
        return []

    @property
    def asks(self) -> dict[str, Ask]:
        return {}

    @property
    def allocations(self) -> dict[str, Allocation]:
        return {}

    @property
    def placeholders(self) -> dict[str, Allocation]:
        return {}

    @property
    def start_time(self) -> int:
        """Instant (ns) at which it first ran; 0: never."""
        return self.remains.get("started", 0)  # type: ignore[no-any-return]

    @property
    def history(self) -> list[tuple[int, str]]:
        """Instant (ns) and name of the states that it entered, in order."""
        return [(when, state) for when, state in self.remains.get("history", ())]

    @property
    def groups_of_user(self) -> tuple[str, ...]:
        return tuple(self.remains.get("groups", ()))

    @property
    def queue_asked(self) -> str:
        """The queue that the request named."""
        return self.remains.get("queueAsked", "")  # type: ignore[no-any-return]

    @property
    def account(self) -> ResourceHistory:
        """Its usage over time (2.18)."""
        return ResourceHistory(*self.remains.get("usage", ({}, {}, {})))


def remains_of(app: Application) -> dict[str, Any]:
    """The details to pack of an application that has ended and has no asks or allocations left."""
    summary = app.summary
    spent = summary.usage if summary is not None else None
    named = app.partition.registry.mapping
    remains: dict[str, Any] = {
        "history": _history(app.history),
        "started": app.start_time,
        "groups": _short(app.groups_of_user),
        "tags": _short_mapping(app.tags),
        "queueAsked": shortened(app.queue_asked),
        "placedBy": shortened(app.placed_by),
        "most": named(app.max_allocated),
        "released": app.released,
    }
    if spent is not None:
        remains["usage"] = [spent.used, spent.preempted, spent.placeholder]
    if app.gang.size is not None:
        remains["gang"] = {
            "whole": app.started or app.has_its_gang,
            "style": app.gang.style,
            "timeout": app.gang.timeout,
            "ask": named(app.gang.size),
        }
    if app.gang.task_groups:
        groups = sorted(app.gang.task_groups.items())
        remains["taskGroups"] = [
            [shortened(name), g.count, g.replaced, g.timed_out, named(g.min_resource)]
            for name, g in groups[:_MOST]
        ]
    return remains


def _history(history: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
    """The first state and the last ``_MOST`` states."""
    return [*history[:1], *history[1:][-_MOST:]]


def _short(texts: Iterable[str]) -> list[str]:
    return [shortened(text) for text in texts][:_MOST]


def _short_mapping(texts: dict[str, str]) -> dict[str, str]:
    return {shortened(k): shortened(v) for k, v in sorted(texts.items())[:_MOST]}


def _bytes_of(text: str) -> int:
    """An upper bound of the bytes of a text, the same in every build of Python."""
    return len(text) if text.isascii() else 4 * len(text)


class Shelf:
    """Ended applications of one resource manager, oldest first, bounded in number and bytes.

    Each final state has one duration, so the next application to expire in a state is the one that
    ended first.
    """

    __slots__ = ("_lanes", "bytes", "count")

    def __init__(self, states: Iterable[str]) -> None:
        self._lanes: dict[str, deque[EndedApplication]] = {state: deque() for state in states}
        self.count = 0
        self.bytes = 0

    def add(self, app: EndedApplication) -> None:
        self._lanes[app.state].append(app)
        self.count += 1
        self.bytes += app.size

    def take_over(self, most: int | None, most_bytes: int | None) -> list[EndedApplication]:
        """Remove and return the applications beyond these bounds, oldest first."""
        removed = []
        while self.count and (
            (most is not None and self.count > most)
            or (most_bytes is not None and self.bytes > most_bytes)
        ):
            heads = [lane for lane in self._lanes.values() if lane]
            oldest = min(heads, key=lambda lane: (lane[0].finished, lane[0].seq))
            removed.append(self._take(oldest))
        return removed

    def discard(self, app: EndedApplication) -> None:
        """Remove an expired application, if it is still here."""
        for lane in self._lanes.values():
            if lane and lane[0] is app:
                self._take(lane)

    def counted(self) -> tuple[int, int]:
        """Number and bytes of the applications, recounted from scratch."""
        sizes = [app.size for lane in self._lanes.values() for app in lane]
        return len(sizes), sum(sizes)

    def _take(self, lane: deque[EndedApplication]) -> EndedApplication:
        app = lane.popleft()
        self.count -= 1
        self.bytes -= app.size
        return app
