"""The scheduler as an object in somebody's process: ``SchedulerAPI`` with callbacks (I3 to I5).

A thread of its own owns the scheduler. It takes requests from the resource managers in turn, those of
each in the order in which they come (``inbox``), and large ones in portions (``portions``). What
follows from them reaches the resource manager through its callback, on that thread, in order
(``callbacks``). With ``manual=True`` there is no thread: the caller says when, by ``step(now)``, and
everything happens inside that call.

A request that the core refuses whole raises ``RequestError`` at the caller, as the API says, so
requests wait for the owner to look at them. A callback that raises is logged and does not stop the
service; an illegal trigger of our own is a bug of ours: that one message is refused, its story is
logged and counted, and the service goes on.
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

from quadriga.core.checks.failures import FailureLog
from quadriga.core.driver.callbacks import Callbacks
from quadriga.core.driver.default_queues import DefaultQueues
from quadriga.core.driver.inbox import Closed, Inbox, Piece, Work
from quadriga.core.driver.metering import Meter, Stopwatch
from quadriga.core.driver.os_groups import OsGroups
from quadriga.core.driver.portions import Portions
from quadriga.core.intake.dispatcher import Request
from quadriga.core.intake.registration import read_configuration
from quadriga.core.runtime.dialect import Dialect
from quadriga.core.runtime.kernel import Options
from quadriga.core.runtime.outbox import Output
from quadriga.core.scheduler import Predicate, PreemptionPredicate, Scheduler, check_time
from quadriga.core.views import Views, as_text, diagnostics_of
from quadriga.fsm import RESOURCE_MANAGER, InvalidTransition
from quadriga.fsm import resource_manager as life
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
from quadriga.si.items import count
from quadriga.si.outcome import Outcome

__all__ = ["SchedulerService"]

_log = logging.getLogger("quadriga.service")
_summaries = logging.getLogger("quadriga.applications")

T = TypeVar("T")

#: so long requests are taken up before decisions are made again, in s
_LONGEST_INTAKE = 0.005

#: no time is earlier: one that goes back does no harm here
_ANY = -(1 << 62)

#: the longest wait for work, in s; a timer may be further away than a wait can be long
_LONGEST_WAIT = 3600.0


class SchedulerService:
    """Implements ``SchedulerAPI``. ``clock`` gives ns; decisions between two looks at the inbox
    number at most ``slice_size``, and so do the items that one resource manager may have taken up
    before it is the turn of another. ``groups_of`` gives the groups of a user whose application names
    none (I24); without it the operating system is asked."""

    def __init__(
        self,
        options: Options | None = None,
        *,
        manual: bool = False,
        clock: Callable[[], int] = time.time_ns,
        slice_size: int = 256,
        groups_of: Callable[[str], tuple[str, ...]] | None = None,
    ) -> None:
        self.scheduler = Scheduler(options)
        self.scheduler.set_group_resolver(groups_of or OsGroups(clock))
        self.scheduler.set_hints_in_slices(not manual)
        #: bugs of ours that were met and survived
        self.failure_log = FailureLog()
        self._queues = DefaultQueues(self.scheduler)
        self._clock = clock
        self._slice = slice_size
        self._callbacks = Callbacks()
        self._watch = Stopwatch()
        self._latest = 0
        self._thread: threading.Thread | None = None
        if not manual:
            self._thread = threading.Thread(target=self._own, name="quadriga", daemon=True)
        self._inbox = Inbox(self._thread, slice_size)
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
        # where nothing of its own would hear events they need not be made (I40)
        self.scheduler.set_events(rm_id, has_own(callback, "send_event"))
        self.scheduler.set_predicate(rm_id, self._watch.timed(self._callbacks.predicate(callback)))
        preemption = self._callbacks.preemption_predicate(callback)
        self.scheduler.set_preemption_predicate(rm_id, preemption)
        return outputs

    def _send(self, request: Request) -> None:
        done: Future[None] = Future()
        if self._inbox.put(self._piece(request, done), at_once=True):
            done.result()
        else:
            self._do_now(partial(self._apply, request))

    def _piece(self, request: Request, outcome: Outcome) -> Piece:
        """The work of a request: in portions if it is large, unless there is no other work to wait."""
        items = max(1, count(request))
        if items <= self._slice or self._thread is None:
            return Piece(partial(self._apply, request), outcome, request.rmID, items)
        portions = Portions(request, self._slice)
        work = partial(self._apply_some, portions)
        return Piece(work, outcome, request.rmID, portions.items, portions)

    def _apply_some(self, portions: Portions) -> list[Output]:
        return portions.apply(self.scheduler, self._now())

    def _apply(self, request: Request) -> list[Output]:
        return self.scheduler.apply(request, self._now())

    def _update(self, request: UpdateConfigurationRequest) -> list[Output]:
        return self._queues.update(request, self._now())

    # -- the same without waiting ----------------------------------------------------------------

    def submit(
        self,
        request: Request | RegisterResourceManagerRequest | UpdateConfigurationRequest,
        callback: ResourceManagerCallback | None = None,
    ) -> Future[None]:
        """As the methods above, without waiting: the future will have what they would raise. Those of
        one resource manager are done in the order of the calls. A registration needs its
        ``callback``."""
        if isinstance(request, RegisterResourceManagerRequest):
            if callback is None:
                raise TypeError("a registration needs a callback (I5)")
            return self._begin(partial(self._register, request, callback), request.rmID)
        if isinstance(request, UpdateConfigurationRequest):
            return self._begin(partial(self._update, request), request.rmID)
        done = _promised()
        self.post(request, done)
        return done

    def prepare(self, request: RegisterResourceManagerRequest | UpdateConfigurationRequest) -> None:
        """Read its queues in the caller's thread, which may take seconds, so that the owner need not.
        What is wrong with them is said when the request is applied."""
        with suppress(RequestError):
            read_configuration(type(request).__name__, request.config)

    def post(self, request: Request, outcome: Outcome) -> None:
        """As ``submit``, for many requests: the outcome is told in the owner's thread."""
        self._hand_over(self._piece(request, outcome))

    def begin(self, work: Work) -> Future[None]:
        """Have the owner do it, before any request and without waiting for it; what comes out is
        delivered."""
        return self._begin(work)

    def _begin(self, work: Work, rm_id: str = "") -> Future[None]:
        done = _promised()
        self._hand_over(Piece(work, done, rm_id))
        return done

    def configure(self, text: str) -> None:
        """The queues of all who register with an empty configuration, from now on and at once for
        those who did (``default_queues``). Raises ``RequestError``; then nothing has changed."""
        self._do(lambda: self._queues.replace(text, self._now()))

    # -- connections -----------------------------------------------------------------------------

    def disconnect(self, rm_id: str) -> None:
        """The resource manager is out of reach for now (I6): nothing of it is scheduled."""
        self._do(lambda: self.scheduler.disconnect(rm_id, self._now()), rm_id)

    def reconnect(self, rm_id: str) -> None:
        """It is back in time, and nothing was lost."""
        self._do(lambda: self.scheduler.reconnect(rm_id, self._now()), rm_id)

    def shutdown(self, rm_id: str) -> None:
        """It leaves for good: its state is dropped."""
        self._do(lambda: self.scheduler.shutdown(rm_id, self._now()), rm_id)

    def connection(self, rm_id: str, trigger: str) -> Future[None]:
        """``disconnect``, ``reconnect`` or ``shutdown`` as above, without waiting for it."""
        change = {
            life.DISCONNECT: self.scheduler.disconnect,
            life.RECONNECT: self.scheduler.reconnect,
            life.SHUTDOWN: self.scheduler.shutdown,
        }[trigger]
        return self._begin(lambda: change(rm_id, self._now()), rm_id)

    def registered(self) -> Future[frozenset[str]]:
        """The resource managers that are running or paused, so that they need not register again."""
        return self.read_later(
            lambda scheduler: frozenset(
                rm.rm_id
                for rm in scheduler.resource_managers()
                if RESOURCE_MANAGER.allows(rm.state, life.SHUTDOWN)
            )
        )

    def set_predicates(
        self,
        rm_id: str,
        predicate: Predicate | None,
        preemption: PreemptionPredicate | None,
    ) -> Future[None]:
        """Ask these for a resource manager (``Scheduler.set_predicate``) instead of the callback that
        it registered with; until it registers again."""

        def work() -> list[Output]:
            # one that answers later takes no time here, and is more than a function
            far = hasattr(predicate, "look_ahead")
            self.scheduler.set_predicate(rm_id, predicate if far else self._watch.timed(predicate))
            self.scheduler.set_preemption_predicate(rm_id, preemption)
            return []

        return self._begin(work, rm_id)

    def set_events(self, rm_id: str, wanted: bool) -> Future[None]:
        """Whether the resource manager wants event records; until it registers again."""

        def work() -> list[Output]:
            self.scheduler.set_events(rm_id, wanted)
            return []

        return self._begin(work, rm_id)

    # -- driving ---------------------------------------------------------------------------------

    def step(self, now: int | None = None, limit: int | None = None) -> int:
        """Manual mode: fire due timers, schedule, deliver. Returns how many messages went out.

        Without ``now`` the clock is asked. ``limit`` is the most scheduling rounds.
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
        """Manual mode: one instant, all at ``now``, as somebody with the scheduler at hand would have
        it: fire its own timers (``advance``), apply the requests, schedule.

        Returns which requests were refused as a whole. Raises ``RequestError`` for time that goes
        back.
        """
        self._must_be_manual()
        scheduler = self.scheduler
        before = max(scheduler.now, self._latest)
        self._latest = check_time(now, before)
        if advance:
            self._callbacks.deliver(self._work(lambda: scheduler.advance(now)))
        refused = []
        for place, request in enumerate(requests):
            try:
                outputs = self._work(partial(scheduler.apply, request, now))
            except RequestError as error:
                refused.append((place, error))
                continue
            self._callbacks.deliver(outputs)
        if schedule:
            self._callbacks.deliver(self._guarded(lambda: self._schedule(now, limit)))
        return refused

    def _must_be_manual(self) -> None:
        if self._thread is not None:
            raise RuntimeError("this service steps itself; make it with manual=True")

    def stop(self) -> None:
        """End the service after what is queued; later requests raise ``RuntimeError``.

        Safe to call twice, and from a callback (which then returns before the end).
        """
        self._inbox.close()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def __enter__(self) -> SchedulerService:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def read(self, look: Callable[[Scheduler], T]) -> T:
        """Call ``look`` with the scheduler, between two steps of its owner and before any request."""
        found: list[T] = []
        self._do(partial(self._look, look, found))
        return found[0]

    def read_later(self, look: Callable[[Scheduler], T]) -> Future[T]:
        """As ``read``, without waiting for it: the future will have what ``look`` gives or raises."""
        return self._read_later(look)

    def _read_later(self, look: Callable[[Scheduler], T], rm_id: str = "") -> Future[T]:
        answer: Future[T] = Future()
        found: list[T] = []

        def told(done: Future[None]) -> None:
            error = done.exception()
            if error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(found[0])

        answer.set_running_or_notify_cancel()  # it will be looked at, whoever still wants to know
        done: Future[None] = Future()
        done.add_done_callback(told)
        piece = Piece(partial(self._look, look, found), done, rm_id)
        self._hand_over(piece, at_once=True)
        return answer

    def _look(self, look: Callable[[Scheduler], T], found: list[T]) -> list[Output]:
        found.append(look(self.scheduler))
        return []

    def explain(
        self, rm_id: str, partition: str, application_id: str, allocation_key: str = ""
    ) -> Future[tuple[str, str, tuple[str, ...], str]]:
        """The queue of an application, its state in the resource manager's dialect (X1), why its ask
        waits, and that in one sentence; without a key only the first two. After what the resource
        manager has sent before. The future has ``KeyError`` for what is not known."""

        def look(scheduler: Scheduler) -> tuple[str, str, tuple[str, ...], str]:
            app = scheduler.application(application_id, partition, rm_id)
            reasons: tuple[str, ...] = ()
            verdict = ""
            if allocation_key:
                told = scheduler.explain(application_id, allocation_key, partition, rm_id)
                reasons, verdict = told.reasons, told.verdict
            return (
                app.queue_path,
                Dialect(app.partition.rm.dialect).state(app.state),
                reasons,
                verdict,
            )

        return self._read_later(look, rm_id)

    def attach(self, meter: Meter | None) -> None:
        """Let somebody measure from now on, or nobody."""

        def look(scheduler: Scheduler) -> None:
            self._watch.meter = meter
            scheduler.set_measure(meter.measure if meter is not None else None)

        self.read(look)

    @property
    def failures(self) -> int:
        """How many bugs of ours were met and survived."""
        return self.failure_log.count

    @property
    def meter(self) -> Meter | None:
        """Who measures, if anybody does."""
        return self._watch.meter

    def now(self) -> int:
        """The time (ns) as the scheduler would be told it now; nothing is changed by asking."""
        return self._latest if self._thread is None else max(self._latest, self._clock())

    @property
    def alive(self) -> bool:
        """Whether requests are still taken."""
        return not self._inbox.is_closed and (self._thread is None or self._thread.is_alive())

    @property
    def waiting(self) -> int:
        """How many pieces of work wait for the owner."""
        return len(self._inbox)

    def diagnostics(self) -> dict[str, Any]:
        """What resource managers say of themselves (I4); they may take their time."""
        return diagnostics_of(dict(self._callbacks.of))

    def state_dump(self, views: Views, log_level: str = "INFO") -> str:
        """Everything at one moment, as JSON, with what resource managers add to it (2.13, I4)."""
        said = self.diagnostics()

        def look(scheduler: Scheduler) -> dict[str, Any]:
            return views.state_dump(diagnostics=said, log_level=log_level)

        return as_text(self.read(look))  # a copy: the owner need not wait for its spelling

    # -- the owner -------------------------------------------------------------------------------

    def _now(self) -> int:
        """A clock that does not go back, whatever the wall clock does."""
        if self._thread is not None or self._latest == 0:
            self._latest = max(self._latest, self._clock())
        return self._latest

    def _hand_over(self, piece: Piece, *, at_once: bool = False) -> None:
        """Have the owner do it; here and now where there is none, or it is ``at_once`` and he
        calls."""
        if not self._inbox.put(piece, at_once=at_once):
            self._handle(piece)

    def _do(self, work: Work, rm_id: str = "") -> None:
        """Have the owner do it; raises what the core raises."""
        done: Future[None] = Future()
        if self._inbox.put(Piece(work, done, rm_id), at_once=True):
            done.result()
        else:
            self._do_now(work)

    def _do_now(self, work: Work) -> None:
        if self._callbacks.asking:
            raise RuntimeError("the scheduler is deciding: a predicate cannot send requests")
        self._callbacks.deliver(self._work(work))

    def _schedule(self, now: int, limit: int | None = None) -> list[Output]:
        return self._watch.schedule(self.scheduler, partial(self.scheduler.schedule, now, limit))

    def _decide_some(self) -> list[Output]:
        decide = partial(self.scheduler.schedule, self._now(), budget=self._slice)
        return self._watch.schedule(self.scheduler, decide)

    def _work(self, work: Work) -> list[Output]:
        """What somebody asked for. Raises what it raises."""
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
            self._inbox.abandon()

    def _serve(self) -> None:
        """Until the inbox is closed, which it raises."""
        busy = False
        while True:
            piece = self._take(busy)
            if piece is not None:
                self._handle(piece)
                self._handle_more()
            self._callbacks.deliver(self._tried(lambda: self.scheduler.advance(self._now())))
            outputs = self._tried(self._decide_some)
            self._callbacks.deliver(outputs)
            busy = bool(outputs) or self.scheduler.unfinished

    def _take(self, busy: bool) -> Piece | None:
        """The next piece of work; waits for it until the next timer unless there is more to do."""
        if busy:
            return self._inbox.take()
        deadline = self.scheduler.next_deadline()
        if deadline is None:
            return self._inbox.take(None)
        return self._inbox.take(min(max(0.0, (deadline - self._now()) / 1e9), _LONGEST_WAIT))

    def _tried(self, work: Work) -> list[Output]:
        """Work that nobody asked for, so that nobody else hears of a bug in it."""
        try:
            return self._guarded(work)
        except Exception as error:
            self.failure_log.note(error, self._latest)
            _log.exception("failed, and goes on")
            return []

    def _handle_more(self) -> None:
        """What else has come in, so that many small requests do not wait for a slice of decisions
        each, nor decisions for large ones."""
        end = time.monotonic() + _LONGEST_INTAKE
        for _ in range(self._slice):
            if time.monotonic() > end:
                return
            piece = self._inbox.take()
            if piece is None:
                return
            self._handle(piece)

    def _handle(self, piece: Piece) -> None:
        try:
            outputs = self._work(piece.work)
        except Exception as error:
            piece.outcome.set_exception(error)
            return
        portions = piece.portions
        if portions is not None and portions.items:
            self._inbox.put_back(piece._replace(items=portions.items))
        else:
            if portions is not None:
                outputs += portions.rejected()  # of one that a bug of ours has ended
            piece.outcome.set_result(None)
        self._callbacks.deliver(outputs)


def _promised() -> Future[None]:
    """It will be done, whether or not the caller still waits for it."""
    done: Future[None] = Future()
    done.set_running_or_notify_cancel()
    return done
