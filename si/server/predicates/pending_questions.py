"""Questions to a remote resource manager (RM), and answers that stay valid for a while.

The scheduler's thread serves all RMs and must not wait for one of them. A question without an answer
therefore returns at once. The scheduler defers the ask, and the question is sent together with the nodes
that come next. When the answer arrives, the ask is tried again. A question that is not answered in time
counts as refused, for as long as an answer is valid; timeouts are counted and logged.

An answer is valid for a short time, and only while the ask and the node stay as they were when the
question was asked: any message of the RM about either of them invalidates it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from quadriga.si.extension.extension_pb2 import Callback
from quadriga.si.predicates import ANSWER_PENDING, ANSWER_PENDING_INDEX
from quadriga.si.server.limits import Limits
from quadriga.si.server.predicates.questions import QuestionIds, about_nodes, about_victims

_log = logging.getLogger("quadriga.grpc")

#: the first question about an ask has at most this many subjects; each further one four times as many
_FIRST_BATCH = 16


class _Answer(NamedTuple):
    value: Any
    #: when the question was sent, and when the answer came, in s of the clock
    asked: float
    answered: float


@dataclass(slots=True)
class _Question:
    """A question that was sent."""

    key: str
    subjects: list[Hashable]
    asked: float


@dataclass(slots=True)
class _AskState:
    """Answers and pending subjects of one ask."""

    answers: dict[Hashable, _Answer] = field(default_factory=dict)
    pending: set[Hashable] = field(default_factory=set)
    #: number of questions sent about the ask
    rounds: int = 0


class PendingQuestions:
    """Sends questions in batches and keeps the answers.

    The scheduler's thread asks; the server's thread passes answers in. A subject is one thing asked
    about an ask, such as a node. ``wake`` is called when a first batch waits for `flush`.
    """

    #: what the scheduler gets while there is no answer
    no_answer: Any = None

    def __init__(
        self,
        limits: Limits,
        ids: QuestionIds,
        clock: Callable[[], float],
        wake: Callable[[], object],
    ) -> None:
        self._limits = limits
        self._ids = ids
        self._clock = clock
        self._wake = wake
        self._lock = threading.Lock()
        #: allocation key -> what is known about the ask
        self._asks: dict[str, _AskState] = {}
        #: keys of the asks with pending subjects
        self._awaited: set[str] = set()
        #: (allocation key, kind of question) -> subjects of the next question
        self._batches: dict[tuple[str, Hashable], list[Hashable]] = {}
        #: question id -> question that was sent
        self._sent: dict[int, _Question] = {}
        #: node id -> when the RM last sent something about the node
        self._node_changes: dict[str, float] = {}
        #: number of questions that were not answered in time
        self.timed_out = 0

    # -- the scheduler's thread ------------------------------------------------------------------

    def _look_up(self, key: str, kind: Hashable, subject: Hashable, node_id: str) -> Any:
        """Return the answer; without one, enqueue the question and return `no_answer`."""
        with self._lock:
            ask = self._asks.get(key)
            if ask is not None:
                answer = ask.answers.get(subject)
                if answer is not None:
                    if self._is_valid(answer, node_id):
                        return answer.value
                    del ask.answers[subject]
            self._enqueue(key, kind, subject)
            return self.no_answer

    def _is_valid(self, answer: _Answer, node_id: str) -> bool:
        if self._clock() - answer.answered > self._limits.predicate_age_s:
            return False
        return answer.asked > self._node_changes.get(node_id, -1.0)

    def _enqueue(self, key: str, kind: Hashable, subject: Hashable) -> bool:
        """Add a subject to the next question. Return False if a limit is reached."""
        if key not in self._awaited and len(self._awaited) >= self._limits.predicate_asks:
            return False
        ask = self._asks.get(key)
        if ask is None:
            ask = self._asks[key] = _AskState()
        if subject in ask.pending:
            return True
        batch = self._batches.get((key, kind))
        if batch is None:
            if not self._batches:
                self._wake()
            batch = self._batches[key, kind] = []
        # One of the first nodes usually suits; each refusal widens the next question.
        if len(batch) >= min(_FIRST_BATCH << 2 * ask.rounds, self._limits.predicate_batch):
            return False
        batch.append(subject)
        ask.pending.add(subject)
        self._awaited.add(key)
        return True

    def awaits(self, allocation_key: str) -> bool:
        """Whether an answer for this ask is pending."""
        return allocation_key in self._awaited

    # -- the server's thread ---------------------------------------------------------------------

    def flush(self) -> list[Callback]:
        """The questions to send now."""
        with self._lock:
            batches, self._batches = self._batches, {}
            now = self._clock()
            messages = []
            for (key, kind), subjects in batches.items():
                question_id = self._ids.next()
                self._sent[question_id] = _Question(key, subjects, now)
                if key in self._asks:
                    self._asks[key].rounds += 1
                messages.append(self._message(question_id, key, kind, subjects))
            return messages

    def _message(
        self, question_id: int, key: str, kind: Hashable, subjects: Sequence[Any]
    ) -> Callback:
        raise NotImplementedError

    def answer(self, question_id: int, values: Sequence[Any], missing: Any) -> bool:
        """Store an answer: one value for each subject, and ``missing`` for subjects without one. Return
        False if no question of this id is pending; late answers are legal."""
        with self._lock:
            question = self._sent.pop(question_id, None)
            if question is None:
                return False
            self._store(question, [*values[: len(question.subjects)]], missing)
            return True

    def _store(self, question: _Question, values: list[Any], missing: Any) -> None:
        ask = self._asks.get(question.key)
        if ask is None:
            return
        now = self._clock()
        values += [missing] * (len(question.subjects) - len(values))
        for subject, value in zip(question.subjects, values, strict=True):
            if subject in ask.pending:  # else the ask has changed since
                ask.pending.discard(subject)
                ask.answers[subject] = _Answer(value, question.asked, now)
        if not ask.pending:
            self._awaited.discard(question.key)

    def expire(self, late: Any) -> bool:
        """Answer overdue questions with ``late`` and drop old answers. Return True if anything is left
        that can expire."""
        with self._lock:
            now = self._clock()
            limit = now - self._limits.predicate_timeout_s
            overdue = []
            for question_id, question in list(self._sent.items()):
                if question.asked <= limit:
                    del self._sent[question_id]
                    overdue.append(question.key)
                    self._store(question, [], late)
            if overdue:
                self.timed_out += len(overdue)
                _log.warning(
                    "predicates: %d questions without an answer within %g s, of ask %s first: "
                    "they count as refused",
                    len(overdue),
                    self._limits.predicate_timeout_s,
                    overdue[0],
                )
            oldest = now - self._limits.predicate_age_s
            for key, ask in list(self._asks.items()):
                if not ask.pending and all(a.answered < oldest for a in ask.answers.values()):
                    del self._asks[key]
            for node_id, when in list(self._node_changes.items()):
                if when < limit - self._limits.predicate_age_s:
                    del self._node_changes[node_id]
            return bool(self._asks)

    def node_changed(self, node_id: str) -> None:
        """Invalidate all answers about the node, pending ones included."""
        with self._lock:
            if self._asks:
                self._node_changes[node_id] = self._clock()

    def ask_changed(self, allocation_key: str) -> None:
        """Invalidate all answers about the ask, pending ones included."""
        with self._lock:
            self._asks.pop(allocation_key, None)
            self._awaited.discard(allocation_key)
            for kind in [kind for key, kind in self._batches if key == allocation_key]:
                del self._batches[allocation_key, kind]

    def disconnected(self) -> None:
        """Drop all pending questions: the Callbacks stream is lost, and they will be asked again."""
        with self._lock:
            self._sent.clear()
            self._batches.clear()
            self._awaited.clear()
            for ask in self._asks.values():
                ask.pending.clear()


class QueuedPredicates(PendingQuestions):
    """A `RemotePredicate`: may the ask go to the node? A subject is a node and whether to allocate."""

    no_answer = ANSWER_PENDING

    def __call__(self, allocation_key: str, node_id: str, allocate: bool, /) -> str | None:
        reason: str | None = self._look_up(allocation_key, allocate, (node_id, allocate), node_id)
        return reason

    def known(self, allocation_key: str, node_id: str, allocate: bool, /) -> str | None:
        """The answer that is there and still valid, else `ANSWER_PENDING`. Nothing is asked."""
        with self._lock:
            ask = self._asks.get(allocation_key)
            answer = None if ask is None else ask.answers.get((node_id, allocate))
            if answer is None or not self._is_valid(answer, node_id):
                return ANSWER_PENDING
            reason: str | None = answer.value
            return reason

    def allowed(self, allocation_key: str) -> frozenset[str]:
        """The nodes to which the ask may be allocated according to answers that are still valid."""
        with self._lock:
            ask = self._asks.get(allocation_key)
            if ask is None:
                return frozenset()
            answers: Any = ask.answers
            return frozenset(
                node_id
                for (node_id, allocate), answer in answers.items()
                if allocate and answer.value is None and self._is_valid(answer, node_id)
            )

    def look_ahead(self, allocation_key: str, node_ids: Iterable[str], allocate: bool) -> None:
        """Add these nodes to the question that is being prepared, as many as it may have."""
        with self._lock:
            ask = self._asks.get(allocation_key)
            batch = self._batches.get((allocation_key, allocate))
            if ask is None or batch is None:  # the question has been sent already
                return
            for node_id in node_ids:
                subject = (node_id, allocate)
                answer = ask.answers.get(subject)
                valid = answer is not None and self._is_valid(answer, node_id)
                if not valid and not self._enqueue(allocation_key, allocate, subject):
                    return

    def _message(
        self, question_id: int, key: str, kind: Hashable, subjects: Sequence[Any]
    ) -> Callback:
        return about_nodes(question_id, key, bool(kind), [node_id for node_id, _ in subjects])


class QueuedPreemption(PendingQuestions):
    """A `RemotePreemption`: how many victims must be evicted? A subject is a node, a
    list of victims and the start index."""

    no_answer = ANSWER_PENDING_INDEX

    def __call__(
        self, allocation_key: str, node_id: str, victims: list[str], start: int, /
    ) -> int | None:
        subject = (node_id, tuple(victims), start)
        index: int | None = self._look_up(allocation_key, None, subject, node_id)
        return index

    def _message(
        self, question_id: int, key: str, kind: Hashable, subjects: Sequence[Any]
    ) -> Callback:
        return about_victims(question_id, key, subjects)
