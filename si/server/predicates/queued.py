"""Predicates of a remote resource manager, as the scheduler calls them (I36, I37)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from quadriga.si.extension.extension_pb2 import Callback
from quadriga.si.remote_predicates import ANSWER_PENDING, ANSWER_PENDING_INDEX
from quadriga.si.server.predicates.pending_questions import PendingQuestions
from quadriga.si.server.predicates.questions import about_nodes, about_victims


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
