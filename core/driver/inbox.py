"""Work for the owner of a scheduler, from any thread, taken from the resource managers in turn.

Every resource manager (RM) has a lane. Within a lane the order is that of the calls. The lanes take
turns, and a turn is counted in items (asks, applications, nodes, releases), not in requests: so a
large request delays the work of other RMs by no more than one turn. A lane that had nothing to do
comes before those that are busy, for one turn; a registration is therefore not behind other RMs'
asks. What belongs to no RM, such as a look at the scheduler, comes first of all.

One thread owns the scheduler, or none does: then the caller does its work at once.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from quadriga.core.runtime.outbox import Output
from quadriga.si.outcome import Outcome

if TYPE_CHECKING:
    from quadriga.core.driver.portions import Portions

__all__ = ["Closed", "Inbox", "Piece", "Work"]

#: something to do with the scheduler; what comes out is for the callbacks
Work = Callable[[], list[Output]]


class Piece(NamedTuple):
    """Work, and who is told its outcome. ``items`` is what it costs of a turn. Of a request that is
    taken in ``portions`` that is one portion, and the outcome is told after the last."""

    work: Work
    outcome: Outcome
    rm_id: str = ""
    items: int = 1
    portions: Portions | None = None


class Closed(Exception):
    """Nothing comes any more."""


class _Lane:
    """The work of one RM. ``credit`` is how many items it may still have in its present turn."""

    __slots__ = ("credit", "pieces", "rm_id")

    def __init__(self, rm_id: str, credit: int) -> None:
        self.rm_id = rm_id
        self.credit = credit
        self.pieces: deque[Piece] = deque()


class Inbox:
    """Pieces of work until it is closed. ``owner`` takes them; ``turn`` is the items of one turn."""

    def __init__(self, owner: threading.Thread | None, turn: int) -> None:
        self._owner = owner
        self._turn = turn
        self._changed = threading.Condition(threading.Lock())
        self._closed = False
        self._size = 0
        #: of no RM
        self._first: deque[Piece] = deque()
        self._lanes: dict[str, _Lane] = {}
        #: every lane is in one of these: those in their first turn, and those that have had one
        self._new: deque[_Lane] = deque()
        self._busy: deque[_Lane] = deque()

    def __len__(self) -> int:
        """How many pieces wait."""
        return self._size

    @property
    def is_closed(self) -> bool:
        return self._closed

    def put(self, piece: Piece, *, at_once: bool = False) -> bool:
        """Let the owner do it. False where the caller has to do it: there is no owner, or it is to be
        done ``at_once`` and the caller is the owner. Raises ``RuntimeError`` once it is closed."""
        with self._changed:
            if self._closed:
                raise _stopped()
            if self._owner is None or (at_once and threading.current_thread() is self._owner):
                return False
            if piece.rm_id:
                self._lane_of(piece.rm_id).pieces.append(piece)
            else:
                self._first.append(piece)
            self._size += 1
            self._changed.notify()
            return True

    def put_back(self, piece: Piece) -> None:
        """The owner has done a portion of it, and goes on with it in the next turn of its lane."""
        with self._changed:
            self._lane_of(piece.rm_id).pieces.appendleft(piece)
            self._size += 1

    def _lane_of(self, rm_id: str) -> _Lane:
        lane = self._lanes.get(rm_id)
        if lane is None:
            lane = self._lanes[rm_id] = _Lane(rm_id, self._turn)
            self._new.append(lane)
        return lane

    def take(self, timeout: float | None = 0.0) -> Piece | None:
        """The next piece; ``None`` if there is none within ``timeout`` s (``None``: wait for one).
        Raises `Closed` after the last."""
        with self._changed:
            if timeout != 0.0:
                self._changed.wait_for(lambda: self._size or self._closed, timeout)
            if not self._size:
                if self._closed:
                    raise Closed
                return None
            self._size -= 1
            return self._first.popleft() if self._first else self._next()

    def _next(self) -> Piece:
        """The next piece of the lane whose turn it is; there is one in some lane."""
        while True:
            lanes = self._new or self._busy
            lane = lanes[0]
            if not lane.pieces:
                lanes.popleft()
                if lanes is self._new and self._busy:
                    # It is new again only after a turn of all others.
                    self._busy.append(lane)
                else:
                    del self._lanes[lane.rm_id]
            elif lane.credit <= 0:
                lanes.popleft()
                lane.credit += self._turn
                self._busy.append(lane)
            else:
                piece = lane.pieces.popleft()
                lane.credit -= piece.items
                return piece

    def close(self) -> None:
        """Take in nothing more; what is there is still done. Safe to call twice."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def abandon(self) -> None:
        """The owner has gone: the callers that wait for an outcome are told that it does not come."""
        with self._changed:
            self._closed = True
            left = [*self._first]
            for lane in self._lanes.values():
                left += lane.pieces
                lane.pieces.clear()
            self._first.clear()
            self._size = 0
        for piece in left:
            piece.outcome.set_exception(_stopped())


def _stopped() -> RuntimeError:
    return RuntimeError("the service has been stopped")
