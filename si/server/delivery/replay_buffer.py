"""The messages of one channel to a resource manager (RM): those that wait, and the most recent ones
that were sent.

Messages are numbered from 1 in the order in which they are written. An RM that reconnects says how
many it has received; the others are written again, if they are still in the buffer.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

#: bytes that a waiting message costs in addition to its content
OVERHEAD = 100


@dataclass(slots=True, eq=False)
class _Waiting:
    """One outgoing message. ``field`` is the number of its only field if others may be joined to
    it, else 0."""

    field: int
    parts: list[bytes]
    size: int


class ReplayBuffer:
    """Not safe for threads: the `Mailbox` guards all its buffers with one lock."""

    __slots__ = ("_batch", "_replay", "_sent", "_sent_bytes", "_waiting", "bytes", "written")

    def __init__(self, batch_bytes: int, replay_bytes: int) -> None:
        #: number of messages written
        self.written = 0
        #: bytes of the waiting messages, with their overhead
        self.bytes = 0
        self._batch = batch_bytes
        self._replay = replay_bytes
        self._waiting: deque[_Waiting] = deque()
        self._sent: deque[bytes] = deque()
        self._sent_bytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, part: bytes, field: int = 0, *, anew: bool = False) -> bool:
        """Add a message. Return False if it was joined to the one before.

        Consecutive messages with the same single list (``field``) are joined, unless ``anew`` is
        set: in protobuf the concatenation of two messages is a message with both lists. The order
        never changes.
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
        """The next message to write, or ``None``."""
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
        """Queue again all messages after the first ``received`` ones. Return False if one of them
        is no longer in the buffer, or was never written."""
        missing = self.written - received
        if not 0 <= missing <= len(self._sent):
            return False
        for _ in range(missing):
            message = self._sent.pop()
            self._sent_bytes -= len(message)
            # its number is fixed, so no other message may be joined to it
            self._waiting.appendleft(_Waiting(0, [message], len(message)))
            self.bytes += len(message) + OVERHEAD
        self.written = received
        return True

    def clear(self) -> None:
        """Drop all messages."""
        self._waiting.clear()
        self._sent.clear()
        self._sent_bytes = self.bytes = 0
