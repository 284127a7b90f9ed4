"""The callbacks of a resource manager: announcing them, and answering the scheduler's questions."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from quadriga.si import PredicatesArgs, PreemptionPredicatesResponse
from quadriga.si.api import has_own
from quadriga.si.extension.extension_pb2 import (
    Callback,
    CallbackAnswer,
    Hello,
    PredicatesAnswer,
    PredicatesQuestion,
    PreemptionPredicatesAnswer,
    PreemptionPredicatesQuestion,
    StateDumpAnswer,
    StateDumpQuestion,
)

_log = logging.getLogger("quadriga.client")

#: calls a method of the callback with its argument, in the thread or loop that the client uses for
#: it
Ask = Callable[..., Awaitable[Any]]


def hello(rm_id: str, callback: object) -> Hello:
    """The message that announces which callbacks the resource manager implements."""
    return Hello(
        rmID=rm_id,
        predicates=has_own(callback, "predicates"),
        preemptionPredicates=has_own(callback, "preemption_predicates"),
        events=has_own(callback, "send_event"),
        schedulingStates=has_own(callback, "update_container_scheduling_state"),
        stateDump=has_own(callback, "get_state_dump"),
    )


async def answer(question: Callback, callback: Any, ask: Ask) -> CallbackAnswer | None:
    """The answer to a question of the scheduler; None for a message that is no question."""
    if question.HasField("predicates"):
        return CallbackAnswer(predicates=await _predicates(question.predicates, callback, ask))
    if question.HasField("preemptionPredicates"):
        answered = await _preemption_predicates(question.preemptionPredicates, callback, ask)
        return CallbackAnswer(preemptionPredicates=answered)
    if question.HasField("stateDump"):
        return CallbackAnswer(stateDump=await _state_dump(question.stateDump, callback, ask))
    return None


async def _predicates(question: PredicatesQuestion, callback: Any, ask: Ask) -> PredicatesAnswer:
    """If the predicates raise, the node is refused, as in process: a node that was not checked gets
    no pod."""
    reasons = []
    for node in question.nodeIDs:
        args = PredicatesArgs(
            allocationKey=question.allocationKey, nodeID=node, allocate=question.allocate
        )
        try:
            reason = await ask(callback.predicates, args)
        except Exception as error:
            _log.exception("predicates of %s on node %s failed", question.allocationKey, node)
            reason = f"predicates failed: {error!r}"
        # an empty text means acceptance here, but an objection in process
        reasons.append("" if reason is None else str(reason) or "refused without a reason")
    return PredicatesAnswer(id=question.id, reasons=reasons)


async def _preemption_predicates(
    question: PreemptionPredicatesQuestion, callback: Any, ask: Ask
) -> PreemptionPredicatesAnswer:
    """If the predicates raise or return nothing, the answer is no: nothing is evicted for a pod
    that may not fit."""
    responses = []
    for args in question.args:
        try:
            response = await ask(callback.preemption_predicates, args)
        except Exception:
            _log.exception(
                "preemption predicates of %s on node %s failed", args.allocationKey, args.nodeID
            )
            response = None
        responses.append(response or PreemptionPredicatesResponse(success=False, index=-1))
    return PreemptionPredicatesAnswer(id=question.id, responses=responses)


async def _state_dump(question: StateDumpQuestion, callback: Any, ask: Ask) -> StateDumpAnswer:
    try:
        return StateDumpAnswer(id=question.id, json=await ask(callback.get_state_dump))
    except Exception as error:
        _log.exception("the state dump of the resource manager failed")
        return StateDumpAnswer(id=question.id, error=repr(error))
