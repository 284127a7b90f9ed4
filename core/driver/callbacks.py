"""The callbacks of resource managers in this process: messages to them, and questions.

They are called on the thread that owns the scheduler. An exception in a callback is logged and has no
other effect.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Any

from quadriga.core.runtime.outbox import Output
from quadriga.core.scheduler import Predicate, PreemptionPredicate
from quadriga.si import (
    AllocationResponse,
    ApplicationResponse,
    EventRecord,
    NodeResponse,
    PredicatesArgs,
    PreemptionPredicatesArgs,
    PreemptionPredicatesResponse,
    RefusalPlugin,
    ResourceManagerCallback,
    UpdateContainerSchedulingStateRequest,
)
from quadriga.si.api import has_own
from quadriga.si.predicates import KnownRefusals

_log = logging.getLogger("quadriga.service")


class Callbacks:
    """``of`` holds the callback of each registered resource manager, by rmID."""

    def __init__(self) -> None:
        self.of: dict[str, ResourceManagerCallback] = {}
        #: a predicate is being called: the scheduler is in the middle of a decision
        self.asking = False
        #: messages to deliver, and whether a call of ``deliver`` is in progress
        self._undelivered: deque[tuple[str, ResourceManagerCallback, Any]] = deque()
        self._delivering = False

    # -- messages --------------------------------------------------------------------------------

    def deliver(self, outputs: list[Output]) -> int:
        """Call the callbacks in order and return the number of calls.

        Messages that follow from a request made within a callback come after those that were waiting.
        """
        for rm_id, message in outputs:
            callback = self.of.get(rm_id)
            if callback is not None:
                self._undelivered.append((rm_id, callback, message))
        if self._delivering:
            return 0
        delivered = 0
        self._delivering = True
        try:
            while self._undelivered:
                rm_id, callback, message = self._undelivered.popleft()
                delivered += 1
                payload: object = message
                if isinstance(message, EventRecord):
                    payload = [message, *self._events_that_follow(rm_id)]
                try:
                    _DELIVER[type(payload)](callback, payload)
                except Exception:
                    _log.exception("callback of resource manager %s failed", rm_id)
        finally:
            self._delivering = False
        return delivered

    def _events_that_follow(self, rm_id: str) -> list[EventRecord]:
        """The event records that directly follow; they are delivered in one call (I40)."""
        found: list[EventRecord] = []
        waiting = self._undelivered
        while waiting and waiting[0][0] == rm_id and isinstance(waiting[0][2], EventRecord):
            found.append(waiting.popleft()[2])
        return found

    # -- questions -------------------------------------------------------------------------------

    def predicate(self, callback: ResourceManagerCallback) -> Predicate | None:
        """The callback's predicates, or ``None`` if it has none of its own: any node is allowed then.

        An exception refuses the node: a pod must not go to a node that was not checked.
        """
        if not has_own(callback, "predicates"):
            return None
        if has_own(callback, "refused_nodes"):
            return _KnowingPredicate(self, callback)
        return _Predicate(self, callback.predicates)

    def refusal(self, callback: ResourceManagerCallback) -> Predicate | None:
        """The callback's predicates for explanations, if it has any beside those for decisions."""
        return _Predicate(self, callback.refusal) if isinstance(callback, RefusalPlugin) else None

    def preemption_predicate(self, callback: ResourceManagerCallback) -> PreemptionPredicate | None:
        """The callback's preemption predicates, or ``None`` if it has none of its own (X24).

        An exception or a missing answer refuses: no victim is evicted for a pod that may not fit.
        """
        if not has_own(callback, "preemption_predicates"):
            return None
        method: Callable[[Any], PreemptionPredicatesResponse | None] = (
            callback.preemption_predicates
        )

        def ask(key: str, node_id: str, victims: list[str], start: int) -> int | None:
            args = PreemptionPredicatesArgs(
                allocationKey=key, nodeID=node_id, preemptAllocationKeys=victims, startIndex=start
            )
            self.asking = True
            try:
                answer = method(args)
            except Exception:
                _log.exception("preemption predicates of %s on node %s failed", key, node_id)
                return None
            finally:
                self.asking = False
            return answer.index if answer is not None and answer.success else None

        return ask


class _Predicate:
    """The predicates of a callback."""

    __slots__ = ("_callbacks", "_method")

    def __init__(
        self, callbacks: Callbacks, method: Callable[[PredicatesArgs], str | None]
    ) -> None:
        self._callbacks = callbacks
        self._method = method

    def __call__(self, key: str, node_id: str, allocate: bool) -> str | None:
        args = PredicatesArgs(allocationKey=key, nodeID=node_id, allocate=allocate)
        self._callbacks.asking = True
        try:
            return self._method(args)
        except Exception as error:
            _log.exception("predicates of %s on node %s failed", key, node_id)
            return f"predicates failed: {error!r}"
        finally:
            self._callbacks.asking = False


class _KnowingPredicate(_Predicate):
    """The predicates of a callback that knows the refused nodes of an ask (``KnowsRefusals``)."""

    __slots__ = ("_find",)

    def __init__(self, callbacks: Callbacks, callback: Any) -> None:
        super().__init__(callbacks, callback.predicates)
        self._find: Callable[[str, tuple[str, ...]], KnownRefusals | None] = callback.refused_nodes

    def refused_nodes(self, key: str, node_ids: tuple[str, ...]) -> KnownRefusals | None:
        """After an exception each node is asked about."""
        self._callbacks.asking = True
        try:
            return self._find(key, node_ids)
        except Exception:
            _log.exception("the refused nodes of %s are not known", key)
            return None
        finally:
            self._callbacks.asking = False


#: one callback method for each kind of response (M8); event records are delivered as a list
_DELIVER: dict[type[Any], Callable[[ResourceManagerCallback, Any], None]] = {
    list: lambda callback, message: callback.send_event(message),
    AllocationResponse: lambda callback, message: callback.update_allocation(message),
    ApplicationResponse: lambda callback, message: callback.update_application(message),
    NodeResponse: lambda callback, message: callback.update_node(message),
    UpdateContainerSchedulingStateRequest: (
        lambda callback, message: callback.update_container_scheduling_state(message)
    ),
}
