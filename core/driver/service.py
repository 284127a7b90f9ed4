"""The scheduler as a service in this process: ``SchedulerAPI`` with callbacks (I3 to I5).

A thread owns the scheduler and does the work (``owner``); ``reads`` has the questions to it. This module says what
each request is as work for the owner.

A request that the core refuses as a whole raises ``RequestError`` at the caller, so requests wait until
the owner has applied them. One that a callback sends is applied at once, except while groups are looked up
for it or for an earlier one of its resource manager: then it waits in the queue, and an error is logged.
See D103.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future
from contextlib import suppress
from functools import partial

from quadriga.core.config import Configuration
from quadriga.core.driver.chunks import ChunkedRequest
from quadriga.core.driver.group_lookups import Lookup
from quadriga.core.driver.owner import running_future
from quadriga.core.driver.reads import ReadableOwner
from quadriga.core.driver.work_queue import Work, WorkItem
from quadriga.core.intake.dispatcher import Request
from quadriga.core.intake.registration import read_configuration
from quadriga.core.runtime.outbox import Output
from quadriga.core.scheduler import Predicate, PreemptionPredicate
from quadriga.fsm.lifecycles import resource_manager as resource_manager_fsm
from quadriga.si import (
    AllocationRequest,
    ApplicationRequest,
    NodeRequest,
    RegisterResourceManagerRequest,
    RegisterResourceManagerResponse,
    RequestError,
    ResourceManagerCallback,
    UpdateConfigurationRequest,
)
from quadriga.si.api import Outcome, has_own
from quadriga.si.items import count

_log = logging.getLogger("quadriga.service")


class SchedulerService(ReadableOwner):
    """Implements ``SchedulerAPI``; ``Owner`` has the settings."""

    # -- SchedulerAPI -------------------------------------------------------------------------------

    def register_resource_manager(
        self, request: RegisterResourceManagerRequest, callback: ResourceManagerCallback
    ) -> RegisterResourceManagerResponse:
        """Register, with the callback for everything that follows (I5, I7)."""
        self._do(partial(self._register, request, callback), request.rmID)
        return RegisterResourceManagerResponse()

    def update_allocation(self, request: AllocationRequest) -> None:
        """Asks, ask releases, allocation releases, in that order (M2)."""
        self._send(request)

    def update_application(self, request: ApplicationRequest) -> None:
        """New applications, then removals (M5)."""
        self._send(request)

    def update_node(self, request: NodeRequest) -> None:
        """Nodes by their actions (M7)."""
        self._send(request)

    def update_configuration(self, request: UpdateConfigurationRequest) -> None:
        """Reload the queues of one resource manager (I39)."""
        self._do(partial(self._update, request), request.rmID)

    # -- without waiting ----------------------------------------------------------------------------

    def submit(
        self,
        request: Request | RegisterResourceManagerRequest | UpdateConfigurationRequest,
        callback: ResourceManagerCallback | None = None,
    ) -> Future[None]:
        """As the methods above, without waiting: the future gets what they would raise.

        The requests of one resource manager are applied in the order of the calls. A registration
        needs its ``callback``.
        """
        if isinstance(request, RegisterResourceManagerRequest):
            if callback is None:
                raise TypeError("a registration needs a callback")
            return self.begin(partial(self._register, request, callback), request.rmID)
        if isinstance(request, UpdateConfigurationRequest):
            return self.begin(partial(self._update, request), request.rmID)
        done = running_future()
        self.post(request, done)
        return done

    def post(self, request: Request, outcome: Outcome) -> None:
        """As ``submit``, for callers with many requests: the outcome is set in the owner's thread."""
        self._hand_over(self._work_item(request, outcome, self._look_up_groups(request)))

    def prepare(self, request: RegisterResourceManagerRequest | UpdateConfigurationRequest) -> None:
        """Parse the request's queues, which may take seconds, in the caller's thread instead of the
        owner's. Errors are raised when the request is applied."""
        with suppress(RequestError):
            self.read_configuration(type(request).__name__, request.config)

    # -- configuration ------------------------------------------------------------------------------

    def configure(self, text: str) -> None:
        """Set the queues of resource managers that register with an empty configuration, also of those
        that have done so (``default_queues``). Raises ``RequestError``; then nothing has changed."""
        self._do(lambda: self._queues.replace(text, self._now()))
        self._log_node_order("default queues", self._queues.text)

    def read_configuration(self, request: str, text: str) -> Configuration:
        """Parse queues in the caller's thread, and cache them for the owner. Raises
        ``RequestError``."""
        return read_configuration(request, text, self.scheduler.options)

    def _log_node_order(self, whose: str, text: str) -> None:
        """Log the node order, and the first warning unless who gave the default queues has read it."""
        if text.strip():
            found = self.read_configuration("Configuration", text)
            _log.info("%s: nodes are ordered by %s", whose, found.node_order)
            if found.warnings and text != self._queues.text:
                _log.warning(
                    "%s: warning 1 of %d: %s", whose, len(found.warnings), found.warnings[0]
                )

    # -- connections --------------------------------------------------------------------------------

    def disconnect(self, rm_id: str) -> None:
        """The connection to the resource manager is lost (I6): its asks are not scheduled."""
        self._do(lambda: self.scheduler.disconnect(rm_id, self._now()), rm_id)

    def reconnect(self, rm_id: str) -> None:
        """The resource manager is connected again, in time: nothing was lost."""
        self._do(lambda: self.scheduler.reconnect(rm_id, self._now()), rm_id)

    def shutdown(self, rm_id: str) -> None:
        """The resource manager leaves: its state is dropped."""
        self._do(lambda: self.scheduler.shutdown(rm_id, self._now()), rm_id)

    def connection(self, rm_id: str, trigger: str) -> Future[None]:
        """``disconnect``, ``reconnect`` or ``shutdown`` as above, without waiting for it."""
        change = {
            resource_manager_fsm.DISCONNECT: self.scheduler.disconnect,
            resource_manager_fsm.RECONNECT: self.scheduler.reconnect,
            resource_manager_fsm.SHUTDOWN: self.scheduler.shutdown,
        }[trigger]
        return self.begin(lambda: change(rm_id, self._now()), rm_id)

    def set_predicates(
        self, rm_id: str, predicate: Predicate | None, preemption: PreemptionPredicate | None
    ) -> Future[None]:
        """Use these predicates (``Scheduler.set_predicate``) instead of the resource manager's callback,
        until it registers again."""

        def work() -> list[Output]:
            # A remote predicate answers later: it takes no time here, and is more than a function.
            remote = hasattr(predicate, "look_ahead")
            timed = predicate if remote else self._watch.timed(predicate)
            self.scheduler.set_predicate(rm_id, timed)
            self.scheduler.set_preemption_predicate(rm_id, preemption)
            return []

        return self.begin(work, rm_id)

    def set_events(self, rm_id: str, wanted: bool) -> Future[None]:
        """Send event records to the resource manager, or not, until it registers again."""

        def work() -> list[Output]:
            self.scheduler.set_events(rm_id, wanted)
            return []

        return self.begin(work, rm_id)

    # -- requests as work ---------------------------------------------------------------------------

    def _register(
        self, request: RegisterResourceManagerRequest, callback: ResourceManagerCallback
    ) -> list[Output]:
        rm_id = request.rmID
        outputs = self._queues.register(request, self._now())
        self._callbacks.of[rm_id] = callback
        # without a method for events of its own, none need be sent (I40)
        self.scheduler.set_events(rm_id, has_own(callback, "send_event"))
        predicate = self._watch.timed(self._callbacks.predicate(callback))
        self.scheduler.set_predicate(rm_id, predicate, self._callbacks.refusal(callback))
        preemption = self._callbacks.preemption_predicate(callback)
        self.scheduler.set_preemption_predicate(rm_id, preemption)
        text = request.config.strip() or self._queues.text
        self._log_node_order(f"resource manager {rm_id}", text)
        return outputs

    def _update(self, request: UpdateConfigurationRequest) -> list[Output]:
        outputs = self._queues.update(request, self._now())
        self._log_node_order(f"resource manager {request.rmID}", request.config)
        return outputs

    def _send(self, request: Request) -> None:
        done: Future[None] = Future()
        lookup = self._look_up_groups(request)
        work = self._with(lookup, partial(self._apply, request))
        self._do_item(self._work_item(request, done, lookup), done, work)

    def _work_item(self, request: Request, outcome: Outcome, lookup: Lookup | None) -> WorkItem:
        """The work of a request, in chunks if it is large and a thread serves other callers too."""
        size = max(1, count(request))
        waits_for = None if lookup is None or lookup.done else lookup
        if size <= self._slice or self._thread is None:
            work = self._with(lookup, partial(self._apply, request))
            return WorkItem(work, outcome, request.rmID, size, lookup=waits_for)
        chunks = ChunkedRequest(request, self._slice)
        work = self._with(lookup, partial(self._apply_chunk, chunks))
        return WorkItem(work, outcome, request.rmID, chunks.next_size, chunks, waits_for)

    def _look_up_groups(self, request: Request) -> Lookup | None:
        """Begin to look up the groups that the request needs and does not name."""
        if self._lookups is None or not isinstance(request, ApplicationRequest):
            return None
        users = [app.ugi.user for app in request.new if app.ugi.user and not app.ugi.groups]
        if not users:
            return None
        return self._lookups.begin(users, partial(self._work_queue.wake, request.rmID))

    def _with(self, lookup: Lookup | None, work: Work) -> Work:
        """The work, with the groups that were looked up for it."""
        lookups = self._lookups
        if lookup is None or lookups is None:
            return work

        def answered() -> list[Output]:
            lookups.answering = lookup
            try:
                return work()
            finally:
                lookups.answering = None

        return answered

    def _apply(self, request: Request) -> list[Output]:
        return self.scheduler.apply(request, self._now())

    def _apply_chunk(self, chunks: ChunkedRequest) -> list[Output]:
        return chunks.apply(self.scheduler, self._now())
