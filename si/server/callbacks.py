"""Questions that the server asks one resource manager (RM) in Callbacks: predicates and state dumps.

Answers arrive in the server's event loop. The scheduler's thread asks predicates; it waits for the answers
only if a client's clock drives it. A state dump is requested by a thread of its own, which waits.
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
from quadriga.si.server.delivery.flow_control import call_soon
from quadriga.si.server.limits import Limits
from quadriga.si.server.predicates.blocking import BlockingPredicates, BlockingPreemption
from quadriga.si.server.predicates.pending_questions import QueuedPredicates, QueuedPreemption
from quadriga.si.server.predicates.questions import QuestionIds, index_of

#: a state dump waits at most this long for the RM's part, in s
_DUMP_TIMEOUT_S = 2.0


class CallbackQuestions:
    """``send`` puts a question on the stream; it returns False if there is no stream. ``begin`` runs a
    function in the scheduler's thread. With ``client_clock`` the scheduler waits for predicates."""

    def __init__(
        self,
        limits: Limits,
        loop: asyncio.AbstractEventLoop,
        send: Callable[[Callback], bool],
        begin: Callable[[Callable[[], list[Any]]], object],
        *,
        client_clock: bool,
    ) -> None:
        #: what the scheduler calls; ``None`` until the RM has announced its callbacks
        self.predicates: QueuedPredicates | BlockingPredicates | None = None
        self.preemption: QueuedPreemption | BlockingPreemption | None = None
        self._pending: tuple[QueuedPredicates | QueuedPreemption, ...] = ()
        self._limits = limits
        self._loop = loop
        self._send = send
        self._begin = begin
        self._client_clock = client_clock
        self._ids = QuestionIds()
        #: question id -> event to set, and the RM's part of the dump
        self._dumps: dict[int, tuple[threading.Event, list[str]]] = {}
        self._expiry: asyncio.TimerHandle | None = None
        self._retrying = False
        self._closed = False

    def reset(self) -> None:
        """Forget all questions and answers: a new Callbacks stream begins."""
        if self._client_clock:
            blocking = (self._limits, self._ids, self._send)
            self.predicates = BlockingPredicates(*blocking)
            self.preemption = BlockingPreemption(*blocking)
        else:
            remote = (self._limits, self._ids, self._loop.time, lambda: self._begin(self._flush))
            self.predicates = QueuedPredicates(*remote)
            self.preemption = QueuedPreemption(*remote)
            self._pending = self.predicates, self.preemption

    def disconnected(self) -> None:
        """The Callbacks stream is lost, so no answers will come."""
        for questions in (self.predicates, self.preemption):
            if questions is not None:
                questions.disconnected()
        for event, _ in [*self._dumps.values()]:
            event.set()

    def close(self) -> None:
        """Ask nothing more."""
        self._closed = True
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        self.disconnected()

    # -- predicates ------------------------------------------------------------------------------

    def node_changed(self, node_id: str) -> None:
        """Invalidate all answers about the node, pending ones included."""
        for questions in self._pending:
            questions.node_changed(node_id)

    def ask_changed(self, allocation_key: str) -> None:
        """Invalidate all answers about the ask, pending ones included."""
        for questions in self._pending:
            questions.ask_changed(allocation_key)

    def _flush(self) -> list[Any]:
        """Send the questions that one round of the scheduler has raised; runs between two rounds."""
        for questions in self._pending:
            for question in questions.flush():
                self._send(question)
        call_soon(self._loop, self._schedule_expiry)
        return []

    def predicates_answered(self, answer: PredicatesAnswer) -> None:
        """Store the RM's reasons against nodes."""
        reasons = [reason or None for reason in answer.reasons]
        if self.predicates is not None:
            if self.predicates.answer(answer.id, reasons, "no answer about this node"):
                self._retry()

    def preemption_answered(self, answer: PreemptionPredicatesAnswer) -> None:
        """Store the victims that the RM has chosen."""
        indices = [index_of(each) for each in answer.responses]
        if self.preemption is not None and self.preemption.answer(answer.id, indices, None):
            self._retry()

    def _retry(self) -> None:
        """Have the scheduler retry the deferred asks, once for all answers that arrive until then."""
        if not self._client_clock and not self._retrying:
            self._retrying = True
            self._begin(self._retried)

    def _retried(self) -> list[Any]:
        self._retrying = False
        return []

    def _schedule_expiry(self) -> None:
        if self._expiry is None and not self._closed:
            wait = self._limits.predicate_timeout_s / 4
            self._expiry = self._loop.call_later(wait, self._expire)

    def _expire(self) -> None:
        """Give up questions that were not answered in time."""
        self._expiry = None
        before = self.timed_out
        late = f"predicates did not answer within {self._limits.predicate_timeout_s:g} s"
        left = [each.expire(late if each is self.predicates else None) for each in self._pending]
        if any(left):
            self._schedule_expiry()
        if self.timed_out != before:
            self._retry()

    @property
    def timed_out(self) -> int:
        """The number of questions that were not answered in time."""
        both = (self.predicates, self.preemption)
        return sum(questions.timed_out for questions in both if questions is not None)

    # -- state dumps -----------------------------------------------------------------------------

    def state_dump(self) -> str:
        """Ask the RM for its part of a state dump and wait for it. Must not be called in the server's
        thread. Raises ``RuntimeError`` if no answer comes."""
        question_id, event, parts = self._ids.next(), threading.Event(), list[str]()
        self._dumps[question_id] = event, parts
        try:
            if not self._send(Callback(stateDump=StateDumpQuestion(id=question_id))):
                raise RuntimeError("the resource manager is out of reach")
            if not event.wait(_DUMP_TIMEOUT_S) or not parts:
                raise RuntimeError(f"no answer within {_DUMP_TIMEOUT_S:g} s")
            return parts[0]
        finally:
            del self._dumps[question_id]

    def state_dump_answered(self, answer: StateDumpAnswer) -> None:
        """Pass on the RM's part of a state dump."""
        pending = self._dumps.get(answer.id)
        if pending is not None:
            event, parts = pending
            parts.append(json.dumps({"error": answer.error}) if answer.error else answer.json)
            event.set()
