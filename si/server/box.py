"""The messages of one kind for one resource manager (RM): those that wait, and those sent lately.

Messages are numbered from 1 as they are written. An RM that comes back after a broken connection says
how many it has got; what it has not is written again, as long as it is remembered.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

__all__ = ["OVERHEAD", "Box"]

#: what a message that waits costs beside its bytes
OVERHEAD = 100


@dataclass(slots=True, eq=False)
class _Waiting:
    """What goes out as one message; ``field`` is the one that it has, if it has one only and may be
    joined, else 0."""

    field: int
    parts: list[bytes]
    size: int


class Box:
    """Not safe for threads: its `Session` has a lock for all its boxes."""

    __slots__ = ("_batch", "_replay", "_sent", "_sent_bytes", "_waiting", "bytes", "written")

    def __init__(self, batch_bytes: int, replay_bytes: int) -> None:
        #: how many messages were written
        self.written = 0
        #: what waits, with the overhead
        self.bytes = 0
        self._batch = batch_bytes
        self._replay = replay_bytes
        self._waiting: deque[_Waiting] = deque()
        self._sent: deque[bytes] = deque()
        self._sent_bytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, part: bytes, field: int = 0, *, anew: bool = False) -> bool:
        """Let a message wait. Whether it is one of its own: messages that follow one another and have
        the same one list (``field``) go out as one, unless this is to begin ``anew``. In protobuf the
        concatenation of two messages is their sum. So the order stays as it was.
        """
        last = self._waiting[-1] if self._waiting else None
        self.bytes += len(part) + OVERHEAD
        if (
            field
            and not anew
            and last is not None
            and last.field == field
            and last.size + len(part) <= self._batch
        ):
            last.parts.append(part)
            last.size += len(part)
            return False
        self._waiting.append(_Waiting(field, [part], len(part)))
        return True

    def take(self) -> bytes | None:
        """The next message to write; ``None`` if nothing waits."""
        if not self._waiting:
            return None
        waiting = self._waiting.popleft()
        parts = waiting.parts
        message = parts[0] if len(parts) == 1 else b"".join(parts)
        self.bytes -= len(message) + OVERHEAD * len(parts)
        self.written += 1
        self._sent.append(message)
        self._sent_bytes += len(message)
        while self._sent_bytes > self._replay and len(self._sent) > 1:
            self._sent_bytes -= len(self._sent.popleft())
        return message

    def rewind(self, received: int) -> bool:
        """The RM has got so many: let the others wait again. Whether they are still known, or ever
        were."""
        missing = self.written - received
        if not 0 <= missing <= len(self._sent):
            return False
        for _ in range(missing):
            message = self._sent.pop()
            self._sent_bytes -= len(message)
            # its number stands: it is joined with no other
            self._waiting.appendleft(_Waiting(0, [message], len(message)))
            self.bytes += len(message) + OVERHEAD
        self.written = received
        return True

    def clear(self) -> None:
        """Forget everything."""
        self._waiting.clear()
        self._sent.clear()
        self._sent_bytes = self.bytes = 0
