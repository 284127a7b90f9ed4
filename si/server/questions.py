"""What the scheduler asks a remote resource manager (RM): predicates, preemption predicates (I36, I37).

The scheduler's thread serves all RMs and must not wait for one. So a question without an answer is
`UNANSWERED` at first: the scheduler sets the ask aside and goes on, the question goes out together
with the other nodes that are likely next, and when the answer is there the ask is tried again. What
is not answered in time counts as refused, for as long as an answer holds, and is counted and logged.

An answer holds for a short while, and no longer than the ask and the node are as they were when it
was asked for: whatever the RM says about either makes it void. With a client's clock there is nobody
to hold up, and the scheduler waits (`WaitingPredicates`).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from quadriga.si.answers import UNANSWERED, UNANSWERED_INDEX
from quadriga.si.extension.extension_pb2 import (
    Callback,
    PredicatesQuestion,
    PreemptionPredicatesQuestion,
)
from quadriga.si.server.limits import Limits
from quadriga.si.v1.si_pb2 import PreemptionPredicatesArgs, PreemptionPredicatesResponse

__all__ = [
    "Numbers",
    "Predicates",
    "Preemption",
    "WaitingPredicates",
    "WaitingPreemption",
    "index_of",
]

_log = logging.getLogger("quadriga.grpc")

#: what the first question about an ask is about; each further one about four times as much
_FIRST_BATCH = 16


class Numbers:
    """The ids of questions: one row for all of an RM."""

    __slots__ = ("_last", "_lock")

    def __init__(self) -> None:
        self._last = 0
        self._lock = threading.Lock()

    def next(self) -> int:
        with self._lock:
            self._last += 1
            return self._last


class _Answer(NamedTuple):
    value: Any
    asked: float
    answered: float


@dataclass(slots=True)
class _Question:
    key: str
    subjects: list[Hashable]
    asked: float
    kind: Hashable = None


@dataclass(slots=True)
class _Ask:
    """What is known and what is on its way about one ask."""

    answers: dict[Hashable, _Answer] = field(default_factory=dict)
    asked: set[Hashable] = field(default_factory=set)
    #: how many questions there were about it
    rounds: int = 0


class _Desk:
    """Questions that go out in batches, and answers that hold for a while.

    Called by the scheduler's thread, and by the server's when an answer comes in. A subject is what
    is asked about an ask: a node and whether to allocate, or a list of victims.
    """

    nothing: Any = None

    def __init__(
        self,
        limits: Limits,
        numbers: Numbers,
        clock: Callable[[], float],
        wake: Callable[[], object],
    ) -> None:
        self._limits = limits
        self._numbers = numbers
        self._clock = clock
        self._wake = wake
        self._lock = threading.Lock()
        self._asks: dict[str, _Ask] = {}
        #: those about which something is on its way
        self._awaited: set[str] = set()
        #: ask and kind of question -> subjects to ask about with the next batch
        self._open: dict[tuple[str, Hashable], list[Hashable]] = {}
        self._questions: dict[int, _Question] = {}
        #: when nodes have changed
        self._changed: dict[str, float] = {}
        #: questions that nobody has answered in time
        self.unanswered = 0

    # -- the scheduler's side --------------------------------------------------------------------

    def _find(self, key: str, kind: Hashable, subject: Hashable, node_id: str) -> Any:
        """The answer, or ``self.nothing`` and the question is on its way."""
        with self._lock:
            ask = self._asks.get(key)
            if ask is not None:
                answer = ask.answers.get(subject)
                if answer is not None:
                    if self._holds(answer, node_id):
                        return answer.value
                    del ask.answers[subject]
            self._want(key, kind, subject)
            return self.nothing

    def _holds(self, answer: _Answer, node_id: str) -> bool:
        if self._clock() - answer.answered > self._limits.predicate_age_s:
            return False
        return answer.asked > self._changed.get(node_id, -1.0)

    def _want(self, key: str, kind: Hashable, subject: Hashable) -> bool:
        """Ask about it soon. Whether there was room for one more."""
        if key not in self._awaited and len(self._awaited) >= self._limits.predicate_asks:
            return False
        ask = self._asks.get(key)
        if ask is None:
            ask = self._asks[key] = _Ask()
        if subject in ask.asked:
            return True
        batch = self._open.get((key, kind))
        if batch is None:
            if not self._open:
                self._wake()
            batch = self._open[key, kind] = []
        # mostly one of the first nodes will do; the longer that is not so, the more are asked about
        if len(batch) >= min(_FIRST_BATCH << 2 * ask.rounds, self._limits.predicate_batch):
            return False
        batch.append(subject)
        ask.asked.add(subject)
        self._awaited.add(key)
        return True

    def awaits(self, allocation_key: str) -> bool:
        """Whether some answer for this ask is on its way."""
        return allocation_key in self._awaited

    # -- the server's side -----------------------------------------------------------------------

    def flush(self) -> list[Callback]:
        """The questions to send now."""
        with self._lock:
            batches, self._open = self._open, {}
            now = self._clock()
            messages = []
            for (key, kind), subjects in batches.items():
                number = self._numbers.next()
                self._questions[number] = _Question(key, subjects, now, kind)
                if key in self._asks:
                    self._asks[key].rounds += 1
                messages.append(self._message(number, key, kind, subjects))
            return messages

    def _message(self, number: int, key: str, kind: Hashable, subjects: Sequence[Any]) -> Callback:
        raise NotImplementedError

    def take(self, number: int, values: Sequence[Any], missing: Any) -> bool:
        """An answer has come: a value for each subject, ``missing`` for those without one. Whether
        there was such a question; one that is late, or void, is nobody's mistake."""
        with self._lock:
            question = self._questions.pop(number, None)
            if question is None:
                return False
            self._settle(question, [*values[: len(question.subjects)]], missing)
            return True

    def _settle(self, question: _Question, values: list[Any], missing: Any) -> None:
        ask = self._asks.get(question.key)
        if ask is None:
            return
        now = self._clock()
        values += [missing] * (len(question.subjects) - len(values))
        for subject, value in zip(question.subjects, values, strict=True):
            if subject in ask.asked:  # the ask has not changed since
                ask.asked.discard(subject)
                ask.answers[subject] = _Answer(value, question.asked, now)
        if not ask.asked:
            self._awaited.discard(question.key)

    def expire(self, late: Any) -> bool:
        """Whatever was not answered in time is ``late`` now, and old answers go. Whether anything is
        left to look after."""
        with self._lock:
            now = self._clock()
            limit = now - self._limits.predicate_timeout_s
            late_ones = []
            for number, question in list(self._questions.items()):
                if question.asked <= limit:
                    del self._questions[number]
                    late_ones.append(question.key)
                    self._settle(question, [], late)
            if late_ones:
                self.unanswered += len(late_ones)
                _log.warning(
                    "predicates: %d questions without an answer within %g s, of ask %s first: "
                    "they count as refused",
                    len(late_ones),
                    self._limits.predicate_timeout_s,
                    late_ones[0],
                )
            oldest = now - self._limits.predicate_age_s
            for key, ask in list(self._asks.items()):
                if not ask.asked and all(a.answered < oldest for a in ask.answers.values()):
                    del self._asks[key]
            for node_id, when in list(self._changed.items()):
                if when < limit - self._limits.predicate_age_s:
                    del self._changed[node_id]
            return bool(self._asks)

    def node_changed(self, node_id: str) -> None:
        """What was asked about it until now is void."""
        with self._lock:
            if self._asks:
                self._changed[node_id] = self._clock()

    def ask_changed(self, allocation_key: str) -> None:
        """What was asked about it until now is void."""
        with self._lock:
            self._asks.pop(allocation_key, None)
            self._awaited.discard(allocation_key)
            for kind in [kind for key, kind in self._open if key == allocation_key]:
                del self._open[allocation_key, kind]

    def lost(self) -> None:
        """The RM is out of reach: what it was asked about it is asked about again."""
        with self._lock:
            self._questions.clear()
            self._open.clear()
            self._awaited.clear()
            for ask in self._asks.values():
                ask.asked.clear()


class Predicates(_Desk):
    """May the ask go to the node? A `FarPredicate`."""

    nothing = UNANSWERED

    def __call__(self, allocation_key: str, node_id: str, allocate: bool, /) -> str | None:
        found: str | None = self._find(allocation_key, allocate, (node_id, allocate), node_id)
        return found

    def allowed(self, allocation_key: str) -> frozenset[str]:
        """The nodes to which the ask may be allocated by an answer that holds."""
        with self._lock:
            ask = self._asks.get(allocation_key)
            if ask is None:
                return frozenset()
            answers: Any = ask.answers
            return frozenset(
                node_id
                for (node_id, allocate), answer in answers.items()
                if allocate and answer.value is None and self._holds(answer, node_id)
            )

    def look_ahead(self, allocation_key: str, node_ids: Iterable[str], allocate: bool) -> None:
        """Ask about these as well, as far as one question goes."""
        with self._lock:
            ask = self._asks.get(allocation_key)
            batch = self._open.get((allocation_key, allocate))
            if ask is None or batch is None:  # it has gone out already
                return
            for node_id in node_ids:
                subject = (node_id, allocate)
                answer = ask.answers.get(subject)
                holds = answer is not None and self._holds(answer, node_id)
                if not holds and not self._want(allocation_key, allocate, subject):
                    return

    def _message(self, number: int, key: str, kind: Hashable, subjects: Sequence[Any]) -> Callback:
        return _about_nodes(number, key, bool(kind), [node_id for node_id, _ in subjects])


class Preemption(_Desk):
    """How many victims have to go? A `FarPreemption`."""

    nothing = UNANSWERED_INDEX

    def __call__(
        self, allocation_key: str, node_id: str, victims: list[str], start: int, /
    ) -> int | None:
        subject = (node_id, tuple(victims), start)
        found: int | None = self._find(allocation_key, None, subject, node_id)
        return found

    def _message(self, number: int, key: str, kind: Hashable, subjects: Sequence[Any]) -> Callback:
        return _about_victims(number, key, subjects)


class _Waiting:
    """Questions one at a time, with the scheduler waiting for each: for a client's clock.

    ``send`` puts a question on the stream, and says whether there is one.
    """

    def __init__(self, limits: Limits, numbers: Numbers, send: Callable[[Callback], bool]) -> None:
        self._limits = limits
        self._numbers = numbers
        self._send = send
        self._lock = threading.Lock()
        self._waits: dict[int, tuple[threading.Event, list[Any]]] = {}
        self.unanswered = 0

    def _ask(self, number: int, question: Callback) -> list[Any]:
        event, values = threading.Event(), list[Any]()
        with self._lock:
            self._waits[number] = event, values
        answered = self._send(question) and event.wait(self._limits.predicate_timeout_s)
        with self._lock:
            del self._waits[number]
        if not answered:
            self.unanswered += 1
            _log.warning("predicates: no answer within %g s", self._limits.predicate_timeout_s)
        return values

    def take(self, number: int, values: Sequence[Any], missing: Any) -> bool:
        """An answer has come. Whether somebody waits for it."""
        with self._lock:
            wait = self._waits.get(number)
            if wait is None:
                return False
            wait[1].extend(values or [missing])
            wait[0].set()
            return True

    def lost(self) -> None:
        """The RM is out of reach: nobody will answer."""
        with self._lock:
            for event, _ in self._waits.values():
                event.set()


class WaitingPredicates(_Waiting):
    """May the ask go to the node?"""

    def __call__(self, allocation_key: str, node_id: str, allocate: bool, /) -> str | None:
        number = self._numbers.next()
        question = _about_nodes(number, allocation_key, allocate, [node_id])
        reasons: list[str | None] = self._ask(number, question)
        return reasons[0] if reasons else "predicates did not answer"


class WaitingPreemption(_Waiting):
    """How many victims have to go?"""

    def __call__(
        self, allocation_key: str, node_id: str, victims: list[str], start: int, /
    ) -> int | None:
        number = self._numbers.next()
        question = _about_victims(number, allocation_key, [(node_id, victims, start)])
        indices: list[int | None] = self._ask(number, question)
        return indices[0] if indices else None


def _about_nodes(number: int, key: str, allocate: bool, node_ids: Sequence[str]) -> Callback:
    return Callback(
        predicates=PredicatesQuestion(
            id=number, allocationKey=key, allocate=allocate, nodeIDs=node_ids
        )
    )


def _about_victims(number: int, key: str, subjects: Sequence[Any]) -> Callback:
    """Subjects are a node, the keys of the victims, the start index."""
    args = [
        PreemptionPredicatesArgs(
            allocationKey=key, nodeID=node_id, preemptAllocationKeys=victims, startIndex=start
        )
        for node_id, victims, start in subjects
    ]
    return Callback(preemptionPredicates=PreemptionPredicatesQuestion(id=number, args=args))


def index_of(response: PreemptionPredicatesResponse) -> int | None:
    """The index of a response that is a success."""
    return response.index if response.success else None
