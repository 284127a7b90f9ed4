"""Questions to a resource manager in Callbacks: their ids, their messages, and what the answers mean."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from quadriga.si.extension.extension_pb2 import (
    Callback,
    PredicatesQuestion,
    PreemptionPredicatesQuestion,
)
from quadriga.si.v1.si_pb2 import PreemptionPredicatesArgs, PreemptionPredicatesResponse


class QuestionIds:
    """The ids of all questions to one resource manager, from 1. Safe for threads."""

    __slots__ = ("_last", "_lock")

    def __init__(self) -> None:
        self._last = 0
        self._lock = threading.Lock()

    def next(self) -> int:
        with self._lock:
            self._last += 1
            return self._last


def about_nodes(
    question_id: int, allocation_key: str, allocate: bool, node_ids: Sequence[str]
) -> Callback:
    """Ask whether the ask may go to each of these nodes."""
    return Callback(
        predicates=PredicatesQuestion(
            id=question_id, allocationKey=allocation_key, allocate=allocate, nodeIDs=node_ids
        )
    )


def about_victims(question_id: int, allocation_key: str, subjects: Sequence[Any]) -> Callback:
    """Ask how many victims must be evicted. A subject is a node, the keys of the victims and the
    start index."""
    args = [
        PreemptionPredicatesArgs(
            allocationKey=allocation_key,
            nodeID=node_id,
            preemptAllocationKeys=victims,
            startIndex=start,
        )
        for node_id, victims, start in subjects
    ]
    return Callback(preemptionPredicates=PreemptionPredicatesQuestion(id=question_id, args=args))


def index_of(response: PreemptionPredicatesResponse) -> int | None:
    """The index in a successful response, else ``None``."""
    return response.index if response.success else None
