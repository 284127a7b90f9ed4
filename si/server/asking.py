"""What is asked of one resource manager (RM) in Callbacks: predicates, and its part of a state dump.

Answers come in on the server's loop. Predicates are asked by the scheduler's thread, which waits for
them with a client's clock only (`questions`); a state dump waits in a thread of its own.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any

from quadriga.si.extension.extension_pb2 import (
    Callback,
    PredicatesAnswer,
    PreemptionPredicatesAnswer,
    StateDumpAnswer,
    StateDumpQuestion,
)
from quadriga.si.server.flow import call_soon
from quadriga.si.server.limits import Limits
from quadriga.si.server.questions import (
    Numbers,
    Predicates,
    Preemption,
    WaitingPredicates,
    WaitingPreemption,
    index_of,
)

__all__ = ["Asking"]

#: how long a state dump waits for the RM's part of it, in s
_DUMP_TIMEOUT = 2.0


class Asking:
    """``send`` puts a question on the stream, and says whether there is one. ``begin`` has the
    scheduler's owner do something. ``waits``: the scheduler waits for predicates."""

    def __init__(
        self,
        limits: Limits,
        loop: asyncio.AbstractEventLoop,
        send: Callable[[Callback], bool],
        begin: Callable[[Callable[[], list[Any]]], object],
        *,
        waits: bool,
    ) -> None:
        #: whom the scheduler asks, once the RM has said that it may
        self.predicates: Predicates | WaitingPredicates | None = None
        self.preemption: Preemption | WaitingPreemption | None = None
        self._desks: tuple[Predicates | Preemption, ...] = ()
        self._limits = limits
        self._loop = loop
        self._send = send
        self._begin = begin
        self._waits = waits
        self._numbers = Numbers()
        self._dumps: dict[int, tuple[threading.Event, list[str]]] = {}
        self._checking: asyncio.TimerHandle | None = None
        self._retrying = False
        self._closed = False

    def greet(self) -> None:
        """There is a new stream: nothing has been asked on it."""
        if self._waits:
            at_once = (self._limits, self._numbers, self._send)
            self.predicates = WaitingPredicates(*at_once)
            self.preemption = WaitingPreemption(*at_once)
        else:
            later = (self._limits, self._numbers, self._loop.time, lambda: self._begin(self._ask))
            self._desks = self.predicates, self.preemption = Predicates(*later), Preemption(*later)

    def lost(self) -> None:
        """The stream has gone: nobody answers for now."""
        for asked in (self.predicates, self.preemption):
            if asked is not None:
                asked.lost()
        for event, _ in [*self._dumps.values()]:
            event.set()

    def close(self) -> None:
        """Nothing is asked any more."""
        self._closed = True
        if self._checking is not None:
            self._checking.cancel()
            self._checking = None
        self.lost()

    # -- predicates ------------------------------------------------------------------------------

    def node_changed(self, node_id: str) -> None:
        """What was asked about the node until now is void."""
        for desk in self._desks:
            desk.node_changed(node_id)

    def ask_changed(self, allocation_key: str) -> None:
        """What was asked about the ask until now is void."""
        for desk in self._desks:
            desk.ask_changed(allocation_key)

    def _ask(self) -> list[Any]:
        """Between two rounds of the scheduler, so that what came up in one goes out together."""
        for desk in self._desks:
            for question in desk.flush():
                self._send(question)
        call_soon(self._loop, self._check_later)
        return []

    def judged(self, answer: PredicatesAnswer) -> None:
        """What the RM says against nodes."""
        reasons = [reason or None for reason in answer.reasons]
        if self.predicates is not None:
            if self.predicates.take(answer.id, reasons, "no answer about this node"):
                self._retry()

    def chosen(self, answer: PreemptionPredicatesAnswer) -> None:
        """Which victims the RM says have to go."""
        indices = [index_of(each) for each in answer.responses]
        if self.preemption is not None and self.preemption.take(answer.id, indices, None):
            self._retry()

    def _retry(self) -> None:
        """Let the scheduler look again at what it has set aside: once for all answers until then."""
        if not self._waits and not self._retrying:
            self._retrying = True
            self._begin(self._look_again)

    def _look_again(self) -> list[Any]:
        self._retrying = False
        return []

    def _check_later(self) -> None:
        if self._checking is None and not self._closed:
            wait = self._limits.predicate_timeout_s / 4
            self._checking = self._loop.call_later(wait, self._check)

    def _check(self) -> None:
        """Give up questions that were not answered in time."""
        self._checking = None
        before = self.unanswered
        late = f"predicates did not answer within {self._limits.predicate_timeout_s:g} s"
        left = [desk.expire(late if desk is self.predicates else None) for desk in self._desks]
        if any(left):
            self._check_later()
        if self.unanswered != before:
            self._retry()

    @property
    def unanswered(self) -> int:
        """How many questions were not answered in time."""
        both = (self.predicates, self.preemption)
        return sum(asked.unanswered for asked in both if asked is not None)

    # -- state dumps -----------------------------------------------------------------------------

    def state_dump(self) -> str:
        """Ask the RM for its part, and wait for it a little: not for the server's own thread."""
        number, event, said = self._numbers.next(), threading.Event(), list[str]()
        self._dumps[number] = event, said
        try:
            if not self._send(Callback(stateDump=StateDumpQuestion(id=number))):
                raise RuntimeError("the resource manager is out of reach")
            if not event.wait(_DUMP_TIMEOUT) or not said:
                raise RuntimeError(f"no answer within {_DUMP_TIMEOUT:g} s")
            return said[0]
        finally:
            del self._dumps[number]

    def dumped(self, answer: StateDumpAnswer) -> None:
        """The RM's part of a state dump has come."""
        wait = self._dumps.get(answer.id)
        if wait is not None:
            wait[1].append(json.dumps({"error": answer.error}) if answer.error else answer.json)
            wait[0].set()
