"""Ids of applications that the core has turned down, and how long each is not submitted again (K60).

The pods of a rejected application fail, and a ReplicaSet creates them again at once. Without a pause that
would go on many times a second.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from quadriga.fsm.table import SECOND
from quadriga.k8s.conversion.applications import ApplicationMetadata
from quadriga.si.constants import TAG_CREATION_TIME

__all__ = ["TurnedDown"]

#: ns after the first rejection, doubled with each further one
_FIRST: Final = SECOND
_LONGEST: Final = 300 * SECOND
#: ns without a rejection after which the next one counts as the first
_FORGOTTEN: Final = 1200 * SECOND


@dataclass(slots=True)
class _Entry:
    metadata: ApplicationMetadata
    times: int
    at: int
    reason: str


class TurnedDown:
    """The last rejection of each id."""

    def __init__(self) -> None:
        #: in the order of their times
        self._entries: dict[str, _Entry] = {}

    def note(self, metadata: ApplicationMetadata, reason: str, now: int) -> None:
        """The core has rejected the application."""
        for id, entry in list(self._entries.items()):
            if now - entry.at < _FORGOTTEN:
                break
            del self._entries[id]
        before = self._entries.pop(metadata.id, None)
        metadata = _lasting(metadata)
        times = before.times + 1 if before is not None and before.metadata == metadata else 1
        self._entries[metadata.id] = _Entry(metadata, times, now, reason)

    def delay(self, metadata: ApplicationMetadata, now: int) -> int:
        """ns until an application with this metadata may be submitted; 0: at once.

        One that differs from the rejected one, by its queue for example, need not wait.
        """
        entry = self._entries.get(metadata.id)
        if entry is None or entry.metadata != _lasting(metadata):
            return 0
        pause = min(_FIRST << min(entry.times - 1, 10), _LONGEST)
        return max(0, entry.at + pause - now)

    def reason(self, id: str) -> str:
        """Why it was rejected last."""
        entry = self._entries.get(id)
        return "" if entry is None else entry.reason

    def forget(self, id: str) -> None:
        """The core has accepted it."""
        self._entries.pop(id, None)

    def clear(self) -> None:
        """The queues are others now: every application may be tried at once."""
        self._entries.clear()


def _lasting(metadata: ApplicationMetadata) -> ApplicationMetadata:
    """Without what differs between two pods of one template."""
    tags = {key: text for key, text in metadata.tags.items() if key != TAG_CREATION_TIME}
    return replace(metadata, tags=tags, created=None, problems=(), namespace_problems=())
