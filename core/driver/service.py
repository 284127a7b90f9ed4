"""The scheduler as a service in this process: ``SchedulerAPI`` with callbacks (I3 to I5).

A thread owns the scheduler. It takes requests from the resource managers in turn, those of each in the
order of the calls (``work_queue``), and large ones in chunks (``chunks``). The messages that follow
reach the resource manager through its callback, on that thread, in order (``callbacks``). With
``manual=True`` there is no thread: the caller drives the scheduler by ``step(now)``, and everything
happens inside that call.

A request that the core refuses as a whole raises ``RequestError`` at the caller, so requests wait until
the owner has applied them. One that a callback sends is applied at once, except while groups are looked up
for it or for an earlier one of its resource manager: then it waits in the queue, and an error is logged.

An exception in a callback is logged and does not stop the service. An illegal trigger of our own is a
bug: that one message is refused, the entity's story is logged and counted, and the service goes on.
See D103.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from quadriga.base.times import SECOND
from quadriga.core.checks.failures import FailureLog
from quadriga.core.config import Configuration
from quadriga.core.driver.callbacks import Callbacks
from quadriga.core.driver.chunks import ChunkedRequest
from quadriga.core.driver.clock import SteadyClock
from quadriga.core.driver.default_queues import DefaultQueues
from quadriga.core.driver.group_lookups import DEADLINE_S, GroupLookups, Lookup
from quadriga.core.driver.metering import Meter, Stopwatch
from quadriga.core.driver.os_groups import MANY, OsGroups
from quadriga.core.driver.slices import Slices, read_in_slices
from quadriga.core.driver.standstill import Standstill
from quadriga.core.driver.watchdog import Watchdog
from quadriga.core.driver.work_queue import Closed, Work, WorkItem, WorkQueue, described
from quadriga.core.intake.dispatcher import Request
from quadriga.core.intake.registration import read_configuration
from quadriga.core.runtime.dialect import Dialect
from quadriga.core.runtime.kernel import Options
from quadriga.core.runtime.outbox import Output
from quadriga.core.runtime.stepwise import Steps
from quadriga.core.scheduler import Predicate, PreemptionPredicate, Scheduler, check_time
from quadriga.core.views import Views, as_text, diagnostics_of, formatted, holdings_of
from quadriga.fsm import RESOURCE_MANAGER, InvalidTransition
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
from quadriga.si.api import has_own
from quadriga.si.explained import Explained, FailedCheck
from quadriga.si.items import count
from quadriga.si.outcome import Outcome

_log = logging.getLogger("quadriga.service")
_summaries = logging.getLogger("quadriga.applications")

T = TypeVar("T")

#: requests are applied for at most this time (s) before decisions are made again
_LONGEST_INTAKE = 0.005

#: earlier than any time: a step may go back in time
_ANY = -(1 << 62)

#: s between looks at look-ups of groups that requests wait for
_LOOKUP_CHECK = 0.1

#: the longest wait for work (s); the next timer may be later than a wait can last
_LONGEST_WAIT = 3600.0

#: what the owner works at beside work items
_TIMERS = "timers"
_DECISIONS = "scheduling decisions"


class SchedulerService:
    """Implements ``SchedulerAPI``.

    ``clock`` gives ns; the default is a ``SteadyClock``. At most ``slice_size`` decisions are made before
    the next work item is taken, and at most as many request items of one resource manager are applied
    before the turn of the next one.
    ``groups_of`` gives the groups of a user whose application names none (I24), and is called while the
    request is applied. By default the operating system is asked, by `GroupLookups` if the service has a
    thread: these run in other threads, before the request is applied, and take ``group_deadline_s`` each at
    most; ``group_answers`` of them are kept.
    """

    def __init__(
        self,
        options: Options | None = None,
        *,
        manual: bool = False,
        clock: Callable[[], int] | None = None,
        slice_size: int = 256,
        groups_of: Callable[[str], tuple[str, ...]] | None = None,
        group_answers: int = MANY,
        group_deadline_s: float = DEADLINE_S,
    ) -> None:
        clock = clock or SteadyClock()
        self.scheduler = Scheduler(options)
        if groups_of is None and manual:
            groups_of = OsGroups(clock, most=group_answers)
        elif groups_of is None:
            groups_of = GroupLookups(clock, most=group_answers, deadline_s=group_deadline_s)
        self._lookups = groups_of if isinstance(groups_of, GroupLookups) else None
        self.scheduler.set_group_resolver(groups_of)
        self.scheduler.set_hints_in_slices(not manual)
        #: errors in the scheduler that the service survived
        self.failure_log = FailureLog()
        self._queues = DefaultQueues(self.scheduler)
        self._clock = clock
        self._slice = slice_size
        self._callbacks = Callbacks()
        #: names what the owner works at for too long, also to other threads (Q16)
        self.watchdog = Watchdog(time.monotonic_ns, described)
        self._watch = Stopwatch(self.watchdog)
        self._latest = 0
        self._thread: threading.Thread | None = None
        if not manual:
            self._thread = threading.Thread(target=self._own, name="quadriga", daemon=True)
        self._work_queue = WorkQueue(self._thread, slice_size)
        if self._thread is not None:
            self._thread.start()

    # -- SchedulerAPI ----------------------------------------------------------------------------

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

    def _log_node_order(self, whose: str, text: str) -> None:
        """Log the node order, and the first warning unless who gave the default queues has read it."""
        if text.strip():
            found = self.read_configuration("Configuration", text)
            _log.info("%s: nodes are ordered by %s", whose, found.node_order)
            if found.warnings and text != self._queues.text:
                _log.warning(
                    "%s: warning 1 of %d: %s", whose, len(found.warnings), found.warnings[0]
                )

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

    def _apply_chunk(self, chunks: ChunkedRequest) -> list[Output]:
        return chunks.apply(self.scheduler, self._now())

    def _apply(self, request: Request) -> list[Output]:
        return self.scheduler.apply(request, self._now())

    def _update(self, request: UpdateConfigurationRequest) -> list[Output]:
        outputs = self._queues.update(request, self._now())
        self._log_node_order(f"resource manager {request.rmID}", request.config)
        return outputs

    # -- without waiting -------------------------------------------------------------------------

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
            return self._begin(partial(self._register, request, callback), request.rmID)
        if isinstance(request, UpdateConfigurationRequest):
            return self._begin(partial(self._update, request), request.rmID)
        done = _running_future()
        self.post(request, done)
        return done

    def prepare(self, request: RegisterResourceManagerRequest | UpdateConfigurationRequest) -> None:
        """Parse the request's queues, which may take seconds, in the caller's thread instead of the
        owner's. Errors are raised when the request is applied."""
        with suppress(RequestError):
            self.read_configuration(type(request).__name__, request.config)

    def read_configuration(self, request: str, text: str) -> Configuration:
        """Parse queues in the caller's thread, and cache them for the owner. Raises
        ``RequestError``."""
        return read_configuration(request, text, self.scheduler.options)

    def post(self, request: Request, outcome: Outcome) -> None:
        """As ``submit``, for callers with many requests: the outcome is set in the owner's thread."""
        self._hand_over(self._work_item(request, outcome, self._look_up_groups(request)))

    def begin(self, work: Work) -> Future[None]:
        """Have the owner do the work before any request, without waiting for it, and deliver the
        messages that it returns."""
        return self._begin(work)

    def _begin(self, work: Work, rm_id: str = "") -> Future[None]:
        done = _running_future()
        self._hand_over(WorkItem(work, done, rm_id))
        return done

    def configure(self, text: str) -> None:
        """Set the queues of resource managers that register with an empty configuration, also of those
        that have done so (``default_queues``). Raises ``RequestError``; then nothing has changed."""
        self._do(lambda: self._queues.replace(text, self._now()))
        self._log_node_order("default queues", self._queues.text)

    # -- connections -----------------------------------------------------------------------------

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
        return self._begin(lambda: change(rm_id, self._now()), rm_id)

    def registered(self) -> Future[frozenset[str]]:
        """The resource managers that are running or paused: they need not register again."""
        return self.read_later(
            lambda scheduler: frozenset(
                rm.rm_id
                for rm in scheduler.resource_managers()
                if RESOURCE_MANAGER.allows(rm.state, resource_manager_fsm.SHUTDOWN)
            )
        )

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

        return self._begin(work, rm_id)

    def set_events(self, rm_id: str, wanted: bool) -> Future[None]:
        """Send event records to the resource manager, or not, until it registers again."""

        def work() -> list[Output]:
            self.scheduler.set_events(rm_id, wanted)
            return []

        return self._begin(work, rm_id)

    # -- driving ---------------------------------------------------------------------------------

    def step(self, now: int | None = None, limit: int | None = None) -> int:
        """Manual mode: fire due timers, schedule, deliver. Returns the number of messages.

        ``now`` is the clock's time by default. ``limit`` is the largest number of rounds.
        """
        self._must_be_manual()
        now = check_time(self._clock() if now is None else now, _ANY)
        latest = self._latest = max(self._latest, now)
        delivered = self._callbacks.deliver(self._guarded(lambda: self.scheduler.advance(latest)))
        decided = self._guarded(lambda: self._schedule(latest, limit))
        return delivered + self._callbacks.deliver(decided)

    def play(
        self,
        now: int,
        requests: Sequence[Request] = (),
        *,
        advance: bool = False,
        schedule: bool = False,
        limit: int | None = None,
    ) -> list[tuple[int, RequestError]]:
        """Manual mode, at the instant ``now``: fire timers (``advance``), apply the requests, schedule.

        Returns the requests that were refused as a whole, by index, with the reasons. Raises
        ``RequestError`` if ``now`` is before the last instant.
        """
        self._must_be_manual()
        scheduler = self.scheduler
        before = max(scheduler.now, self._latest)
        self._latest = check_time(now, before)
        if advance:
            self._callbacks.deliver(self._work(lambda: scheduler.advance(now)))
        refused = []
        for index, request in enumerate(requests):
            try:
                outputs = self._work(partial(scheduler.apply, request, now))
            except RequestError as error:
                refused.append((index, error))
                continue
            self._callbacks.deliver(outputs)
        if schedule:
            self._callbacks.deliver(self._guarded(lambda: self._schedule(now, limit)))
        return refused

    def _must_be_manual(self) -> None:
        if self._thread is not None:
            raise RuntimeError("this service steps itself; make it with manual=True")

    def stop(self) -> None:
        """End the service once the queued work is done; later requests raise ``RuntimeError``.

        Safe to call twice, and from a callback (the call then returns before the end).
        """
        self._work_queue.close()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def __enter__(self) -> SchedulerService:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def read(self, reader: Callable[[Scheduler], T]) -> T:
        """Return what ``reader`` returns for the scheduler, called between two steps and before any request."""
        found: list[T] = []
        self._do(partial(self._read_into, reader, found))
        return found[0]

    def read_later(
        self, reader: Callable[[Scheduler], T], rm_id: str = "", *, in_turn: bool = False
    ) -> Future[T]:
        """As ``read``, without waiting: the future gets what ``reader`` returns or raises. It is called after
        earlier requests of this resource manager, or ``in_turn`` with those of all."""
        answer: Future[T] = Future()
        found: list[T] = []

        def finish(done: Future[None]) -> None:
            error = done.exception()
            if error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(found[0])

        answer.set_running_or_notify_cancel()  # the caller cannot cancel it
        done: Future[None] = Future()
        done.add_done_callback(finish)
        work = partial(self._read_into, reader, found)
        self._hand_over(WorkItem(work, done, rm_id, in_turn=in_turn), at_once=not in_turn)
        return answer

    def _read_into(self, reader: Callable[[Scheduler], T], found: list[T]) -> list[Output]:
        found.append(reader(self.scheduler))
        return []

    def explain(
        self,
        rm_id: str,
        partition: str,
        application_id: str,
        allocation_key: str = "",
        *,
        predicates: bool = True,
    ) -> Future[Explained]:
        """Where an application is and what it holds; with ``allocation_key`` also why that ask waits.

        Read after the requests that the resource manager has sent before. The future gets ``KeyError``
        for an unknown application or ask. Without ``predicates`` the resource manager is not asked about each
        node.
        """

        def reader(scheduler: Scheduler) -> Steps[Explained]:
            app = scheduler.application(application_id, partition, rm_id)
            reasons: tuple[str, ...] = ()
            checks: tuple[FailedCheck, ...] = ()
            verdict = ""
            if allocation_key:
                explained = yield from scheduler.explain_in_steps(
                    application_id, allocation_key, partition, rm_id, predicates=predicates
                )
                reasons, verdict, checks = explained.reasons, explained.verdict, explained.failing
            state = Dialect(app.partition.rm.dialect).state(app.state)
            return Explained(app.queue_path, state, reasons, verdict, *holdings_of(app), checks)

        return read_in_slices(self, Slices(reader), rm_id)

    def attach(self, meter: Meter | None) -> None:
        """Report durations to this meter from now on, or to none."""

        def reader(scheduler: Scheduler) -> None:
            self._watch.meter = meter
            scheduler.set_measure(meter.measure if meter is not None else None)

        self.read(reader)

    @property
    def is_owner(self) -> bool:
        """Whether the caller does the scheduler's work: there is no thread for it, or this is it."""
        return self._thread in (None, threading.current_thread())

    @property
    def failures(self) -> int:
        """The number of errors in the scheduler that the service survived."""
        return self.failure_log.count

    @property
    def meter(self) -> Meter | None:
        """The meter that durations are reported to."""
        return self._watch.meter

    def now(self) -> int:
        """The time (ns) as the scheduler would get it now."""
        return self._latest if self._thread is None else max(self._latest, self._clock())

    @property
    def alive(self) -> bool:
        """Whether requests are still accepted."""
        return not self._work_queue.is_closed and (self._thread is None or self._thread.is_alive())

    @property
    def waiting(self) -> int:
        """The number of work items that wait for the owner."""
        return len(self._work_queue)

    def delays(self) -> dict[str, int]:
        """By resource manager: for how long (ns) its first request waits now. From any thread."""
        return self._work_queue.delays()

    @property
    def taken_and_waited(self) -> tuple[int, int]:
        """The number of requests that were taken, and the sum of the times (ns) that they waited."""
        return self._work_queue.taken, self._work_queue.waited

    def slow(self, longest: int) -> str:
        """Why the service answers more slowly than ``longest`` (ns), "" if it does not: its loop is at the
        same thing, or a request waits. From any thread."""
        found = [self.watchdog.stuck(longest)]
        for rm_id, waits in sorted(self.delays().items()):
            if waits > longest:
                found.append(f"a request of {rm_id} has waited for {waits / SECOND:.1f} s")
        return "; ".join(filter(None, found))

    def diagnostics(self) -> dict[str, Any]:
        """The state dumps of the resource managers themselves (I4); these may take a while."""
        return diagnostics_of(dict(self._callbacks.of))

    def state_dump(self, views: Views, log_level: str = "INFO") -> str:
        """The whole state as JSON, read in slices, with the resource managers' own dumps (2.13, I4)."""
        more: dict[str, Any] = {"diagnostics": self.diagnostics(), "log_level": log_level}
        slices = Slices[dict[str, Any]](lambda _: views.state_in_steps(**more))
        return as_text(formatted(read_in_slices(self, slices).result()))

    # -- the owner -------------------------------------------------------------------------------

    def _now(self) -> int:
        """The clock's time, or the last one if the clock went back."""
        if self._thread is not None or self._latest == 0:
            self._latest = max(self._latest, self._clock())
        return self._latest

    def _hand_over(self, item: WorkItem, *, at_once: bool = False) -> None:
        """Have the owner do the item. It is done in this call if there is no owner, or if the owner
        calls and ``at_once`` is set."""
        if not self._work_queue.put(item, at_once=at_once):
            self._handle(item)

    def _do(self, work: Work, rm_id: str = "") -> None:
        """Have the owner do the work, and wait. Raises what the core raises."""
        done: Future[None] = Future()
        self._do_item(WorkItem(work, done, rm_id), done, work)

    def _do_item(self, item: WorkItem, done: Future[None], work: Work) -> None:
        """Have the owner do the item, and wait. The owner itself does the ``work`` now, unless it has to
        wait for groups: then it is done later, and an error is logged."""
        if self.is_owner and self._callbacks.asking:
            raise RuntimeError("the scheduler is deciding: a predicate cannot send requests")
        if not self._work_queue.put(item, at_once=True):
            self._callbacks.deliver(self._work(work))
        elif self.is_owner:
            done.add_done_callback(partial(_log_error, item.rm_id))
        else:
            done.result()

    def _schedule(self, now: int, limit: int | None = None) -> list[Output]:
        return self._watch.schedule(self.scheduler, partial(self.scheduler.schedule, now, limit))

    def _decide_some(self) -> list[Output]:
        decide = partial(self.scheduler.schedule, self._now(), budget=self._slice)
        return self._watch.schedule(self.scheduler, decide)

    def _work(self, work: Work) -> list[Output]:
        """Do and time the work of a caller. Raises what it raises."""
        return self._watch.work(self.scheduler, partial(self._guarded, work))

    def _guarded(self, work: Work) -> list[Output]:
        try:
            outputs = work()
            for summary in self.scheduler.take_summaries():
                _summaries.info("YK_APP_SUMMARY: %s", json.dumps(summary.fields()))
            return outputs
        except InvalidTransition as bug:
            self.failure_log.note(bug, self._latest)
            story = self.scheduler.story(f"{bug.lifecycle}/{bug.key}")
            _log.exception("refused: %s\n%s", bug, "\n".join(map(str, story)))
            return []

    def _own(self) -> None:
        try:
            with suppress(Closed):
                self._serve()
        finally:
            self._work_queue.abandon()
            if self._lookups is not None:
                self._lookups.close()

    def _serve(self) -> None:
        """Serve until the work queue is closed (``Closed``)."""
        busy, pause = False, 0.0
        standstill = Standstill(self.scheduler.describe_next_timer)
        watchdog = self.watchdog
        while True:
            watchdog.idle()
            item = self._take(busy, pause)
            transitions = self.scheduler.journal.count
            if item is not None:
                watchdog.at(item)
                self._handle(item)
                self._handle_more()
            watchdog.at(_TIMERS)
            self._callbacks.deliver(self._tried(lambda: self.scheduler.advance(self._now())))
            watchdog.at(_DECISIONS)
            outputs = self._tried(self._decide_some)
            self._callbacks.deliver(outputs)
            busy = bool(outputs) or self.scheduler.unfinished
            changed = item is not None or busy or self.scheduler.journal.count != transitions
            pause = standstill.pause(changed=changed or not self._is_due())

    def _is_due(self) -> bool:
        """Whether a timer is due now."""
        deadline = self.scheduler.next_deadline()
        return deadline is not None and deadline <= self._now()

    def _take(self, busy: bool, pause: float) -> WorkItem | None:
        """The next work item; waits for one until the next timer, and for ``pause`` (s), unless there is
        more to decide."""
        longest = _LONGEST_WAIT
        if self._lookups is not None and self._work_queue.holds:
            self._lookups.expire()
            longest = _LOOKUP_CHECK
        if busy:
            return self._work_queue.take()
        deadline = self.scheduler.next_deadline()
        if deadline is None:
            return self._work_queue.take(longest)
        return self._work_queue.take(min(max(pause, (deadline - self._now()) / SECOND), longest))

    def _tried(self, work: Work) -> list[Output]:
        """Do the scheduler's own work: there is no caller to raise an error at, so it is logged."""
        try:
            return self._guarded(work)
        except Exception as error:
            self.failure_log.note(error, self._latest)
            _log.exception("failed, and goes on")
            return []

    def _handle_more(self) -> None:
        """Take further items for a limited time: many small requests need not wait for a slice of
        decisions each, and decisions need not wait for all requests."""
        end = time.monotonic() + _LONGEST_INTAKE
        for _ in range(self._slice):
            if time.monotonic() > end:
                return
            item = self._work_queue.take()
            if item is None:
                return
            self.watchdog.at(item)
            self._handle(item)

    def _handle(self, item: WorkItem) -> None:
        try:
            outputs = self._work(item.work)
        except Exception as error:
            item.outcome.set_exception(error)
            return
        chunks = item.chunks
        if chunks is not None and chunks.next_size:
            self._work_queue.put_back(item._replace(size=chunks.next_size))
        else:
            if chunks is not None:
                outputs += chunks.rejected()  # of a request that an error ended early
            item.outcome.set_result(None)
        self._callbacks.deliver(outputs)


def _log_error(rm_id: str, done: Future[None]) -> None:
    if (error := done.exception()) is not None:
        _log.error("a request that a callback of %s sent was refused: %s", rm_id, error)


def _running_future() -> Future[None]:
    """A future that cannot be cancelled: its work is done whether or not the caller waits."""
    done: Future[None] = Future()
    done.set_running_or_notify_cancel()
    return done
