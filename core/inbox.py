"""Work for whoever owns a scheduler, from any thread.

One thread owns it, or nobody does: then whoever has work does it at once.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import NamedTuple

from quadriga.core.outbox import Output
from quadriga.si.answers import Outcome

__all__ = ["Closed", "Inbox", "Piece", "Work"]

#: something to do with the scheduler; what comes out is for the callbacks
Work = Callable[[], list[Output]]


class Piece(NamedTuple):
    """Work, and whom to tell what became of it."""

    work: Work
    outcome: Outcome


class Closed(Exception):
    """Nothing comes any more."""


class Inbox:
    """Pieces of work in the order in which they come, until it is closed. ``owner`` takes them."""

    def __init__(self, owner: threading.Thread | None) -> None:
        self._owner = owner
        self._pieces: queue.SimpleQueue[Piece | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._closed = False

    def __len__(self) -> int:
        """How many pieces wait, about."""
        return self._pieces.qsize()

    @property
    def is_closed(self) -> bool:
        return self._closed

    def put(self, piece: Piece, *, at_once: bool = False) -> bool:
        """Let the owner do it. False where that is up to the caller, as there is no owner; or, for
        what is to be done ``at_once``, as he is the owner. Raises ``RuntimeError`` once it is
        closed."""
        with self._lock:
            if self._closed:
                raise _stopped()
            if self._owner is None or (at_once and threading.current_thread() is self._owner):
                return False
            self._pieces.put(piece)
            return True

    def take(self, timeout: float | None = 0.0) -> Piece | None:
        """The next piece; ``None`` if there is none within ``timeout`` s (``None``: wait for one).
        Raises `Closed` after the last."""
        try:
            if timeout == 0.0:
                piece = self._pieces.get_nowait()
            else:
                piece = self._pieces.get(timeout=timeout)
        except queue.Empty:
            return None
        if piece is None:
            raise Closed
        return piece

    def close(self) -> None:
        """Take in nothing more; what is there is done yet. Safe to call twice."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._pieces.put(None)

    def abandon(self) -> None:
        """The owner has gone: nobody shall wait for an answer that does not come."""
        with self._lock:
            self._closed = True
        while not self._pieces.empty():
            piece = self._pieces.get()
            if piece is not None:
                piece.outcome.set_exception(_stopped())


def _stopped() -> RuntimeError:
    return RuntimeError("the service has been stopped")
