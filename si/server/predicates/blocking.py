"""Predicates of a remote resource manager (RM) for a scheduler that runs by a client's clock.

Time stands still until the step ends, so the scheduler waits for each answer.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any

from quadriga.si.extension.extension_pb2 import Callback
from quadriga.si.server.limits import Limits
from quadriga.si.server.predicates.questions import QuestionIds, about_nodes, about_victims

_log = logging.getLogger("quadriga.grpc")


class _BlockingQuestions:
    """Sends one question at a time and waits for its answer.

    ``send`` puts a question on the stream; it returns False if there is no stream.
    """

    def __init__(self, limits: Limits, ids: QuestionIds, send: Callable[[Callback], bool]) -> None:
        self._limits = limits
        self._ids = ids
        self._send = send
        self._lock = threading.Lock()
        #: question id -> event to set, and values of the answer
        self._pending: dict[int, tuple[threading.Event, list[Any]]] = {}
        #: number of questions that were not answered in time
        self.timed_out = 0

    def _ask(self, question_id: int, question: Callback) -> list[Any]:
        event, values = threading.Event(), list[Any]()
        with self._lock:
            self._pending[question_id] = event, values
        answered = self._send(question) and event.wait(self._limits.predicate_timeout_s)
        with self._lock:
            del self._pending[question_id]
        if not answered:
            self.timed_out += 1
            _log.warning("predicates: no answer within %g s", self._limits.predicate_timeout_s)
        return values

    def answer(self, question_id: int, values: Sequence[Any], missing: Any) -> bool:
        """Pass on an answer; ``missing`` replaces an empty one. Return False if no question of this id
        is pending."""
        with self._lock:
            pending = self._pending.get(question_id)
            if pending is None:
                return False
            event, received = pending
            received.extend(values or [missing])
            event.set()
            return True

    def disconnected(self) -> None:
        """Stop waiting: the Callbacks stream is lost, so no answer will come."""
        with self._lock:
            for event, _ in self._pending.values():
                event.set()


class BlockingPredicates(_BlockingQuestions):
    """The predicate: may the ask go to the node?"""

    def __call__(self, allocation_key: str, node_id: str, allocate: bool, /) -> str | None:
        question_id = self._ids.next()
        question = about_nodes(question_id, allocation_key, allocate, [node_id])
        reasons: list[str | None] = self._ask(question_id, question)
        return reasons[0] if reasons else "predicates did not answer"


class BlockingPreemption(_BlockingQuestions):
    """The preemption predicate: how many victims must be evicted?"""

    def __call__(
        self, allocation_key: str, node_id: str, victims: list[str], start: int, /
    ) -> int | None:
        question_id = self._ids.next()
        question = about_victims(question_id, allocation_key, [(node_id, victims, start)])
        indices: list[int | None] = self._ask(question_id, question)
        return indices[0] if indices else None
