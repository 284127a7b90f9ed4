"""The scheduler as an object in somebody's process: ``SchedulerAPI`` with callbacks (I3 to I5).

A thread of its own owns the scheduler. Requests are queued and return at once; what follows from
them reaches the resource manager through its callback, on that thread, in order. With
``manual=True`` there is no thread: the caller says when, by ``step(now)``, and everything happens
inside that call.

A request that the core refuses whole raises ``RequestError`` at the caller, as the API says, so
requests wait for the owner to look at them. A callback that raises is logged and does not stop the
service; an illegal trigger of our own is a bug of ours: that one message is refused, its story is
logged and counted, and the service goes on.
"""

from __future__ import annotations

import json
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, Protocol, TypeVar

from quadriga.core.default_queues import DefaultQueues
from quadriga.core.dispatcher import Request
from quadriga.core.kernel import Options
from quadriga.core.metering import Meter
from quadriga.core.os_groups import OsGroups
from quadriga.core.outbox import Output
from quadriga.core.registration import read_configuration
from quadriga.core.scheduler import Predicate, PreemptionPredicate, Scheduler
from quadriga.core.views import Views, as_text, diagnostics_of
from quadriga.fsm import RESOURCE_MANAGER, InvalidTransition
from quadriga.fsm import resource_manager as life
from quadriga.si import (
    AllocationRequest,
    AllocationResponse,
    ApplicationRequest,
    ApplicationResponse,
    EventRecord,
    NodeRequest,
    NodeResponse,
    NullCallback,
    PredicatesArgs,
    PreemptionPredicatesArgs,
    PreemptionPredicatesResponse,
    RegisterResourceManagerRequest,
    RegisterResourceManagerResponse,
    RequestError,
    ResourceManagerCallback,
    UpdateConfigurationRequest,
    UpdateContainerSchedulingStateRequest,
)

__all__ = ["SchedulerService"]

_log = logging.getLogger("quadriga.service")
_summaries = logging.getLogger("quadriga.applications")

Work = Callable[[], list[Output]]

T = TypeVar("T")

#: so long requests are taken up before decisions are made again, in s
_LONGEST_INTAKE = 0.005

#: the longest wait for work, in s; a timer may be further away than a wait can be long
_LONGEST_WAIT = 3600.0


class Outcome(Protocol):
    """Whoever is told what became of a request: a future, or what has this of one."""

    def set_result(self, result: None) -> None: ...

    def set_exception(self, exception: BaseException | None) -> None: ...


class SchedulerService:
    """Implements ``SchedulerAPI``. ``clock`` gives ns; decisions between two looks at the inbox
    number at most ``slice_size``. ``groups_of`` gives the groups of a user whose application names
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
        #: messages refused because of a bug of ours
        self.failures = 0
        #: who measures, if anybody does (``attach``)
        self.meter: Meter | None = None
        self._queues = DefaultQueues(self.scheduler)
        self._clock = clock
        self._slice = slice_size
        self._callbacks: dict[str, ResourceManagerCallback] = {}
        self._inbox: queue.SimpleQueue[tuple[Work, Outcome] | None] = queue.SimpleQueue()
        self._latest = 0
        #: what is on its way to the callbacks, and whether the owner is at it
        self._undelivered: deque[tuple[str, ResourceManagerCallback, Any]] = deque()
        self._delivering = False
        #: a predicate is being asked: the scheduler is in the middle of a decision
        self._asking = False
        self._lock = threading.Lock()
        self._stopped = False
        self._thread: threading.Thread | None = None
        if not manual:
            self._thread = threading.Thread(target=self._own, name="quadriga", daemon=True)
            self._thread.start()

    # -- SchedulerAPI ----------------------------------------------------------------------------

    def register_resource_manager(
        self, request: RegisterResourceManagerRequest, callback: ResourceManagerCallback
    ) -> RegisterResourceManagerResponse:
        """Register, with the callback for everything that follows (I5, I7)."""
        self._do(self._registration(request, callback))
        return RegisterResourceManagerResponse()

    def _registration(
        self, request: RegisterResourceManagerRequest, callback: ResourceManagerCallback
    ) -> Work:
        def work() -> list[Output]:
            outputs = self._queues.register(request, self._now())
            self._callbacks[request.rmID] = callback
            self.scheduler.set_events(request.rmID, self._hears_events(callback))
            self.scheduler.set_predicate(request.rmID, self._timed(self._predicate(callback)))
            self.scheduler.set_preemption_predicate(
                request.rmID, self._preemption_predicate(callback)
            )
            return outputs

        return work

    def update_allocation(self, request: AllocationRequest) -> None:
        """Asks, ask releases, allocation releases, in that order (M2)."""
        self._do(lambda: self.scheduler.apply(request, self._now()))

    def update_application(self, request: ApplicationRequest) -> None:
        """New applications, then removals (M5)."""
        self._do(lambda: self.scheduler.apply(request, self._now()))

    def update_node(self, request: NodeRequest) -> None:
        """Nodes by their actions (M7)."""
        self._do(lambda: self.scheduler.apply(request, self._now()))

    def update_configuration(self, request: UpdateConfigurationRequest) -> None:
        """Reload the queues of one resource manager (I39)."""
        self._do(lambda: self._queues.update(request, self._now()))

    def submit(
        self,
        request: Request | RegisterResourceManagerRequest | UpdateConfigurationRequest,
        callback: ResourceManagerCallback | None = None,
    ) -> Future[None]:
        """As the methods above, without waiting: the future will have what they would raise. In the
        order of the calls. A registration needs its ``callback``."""
        if isinstance(request, RegisterResourceManagerRequest):
            if callback is None:
                raise TypeError("a registration needs a callback (I5)")
            return self.begin(self._registration(request, callback))
        if isinstance(request, UpdateConfigurationRequest):
            return self.begin(lambda: self._queues.update(request, self._now()))
        return self.begin(lambda: self.scheduler.apply(request, self._now()))

    def prepare(self, request: RegisterResourceManagerRequest | UpdateConfigurationRequest) -> None:
        """Read its queues in the caller's thread, which may take seconds, so that the owner need not.
        What is wrong with them is said when the request is applied."""
        with suppress(RequestError):
            read_configuration(type(request).__name__, request.config)

    def post(self, request: Request, outcome: Outcome) -> None:
        """As ``submit``, for many requests: the outcome is told in the owner's thread."""
        work = partial(self._applied, request)
        with self._lock:
            if self._stopped:
                raise RuntimeError("the service has been stopped")
            if self._thread is not None:
                self._inbox.put((work, outcome))
                return
        self._handle((work, outcome))

    def _applied(self, request: Request) -> list[Output]:
        return self.scheduler.apply(request, self._now())

    def begin(self, work: Work) -> Future[None]:
        """Have the owner do it, without waiting for it; what comes out is delivered."""
        done: Future[None] = Future()
        done.set_running_or_notify_cancel()  # it will be done, whoever still waits for it
        with self._lock:
            if self._stopped:
                raise RuntimeError("the service has been stopped")
            if self._thread is not None:
                self._inbox.put((work, done))
                return done
        self._handle((work, done))
        return done

    def configure(self, text: str) -> None:
        """The queues of all who register with an empty configuration, from now on and at once for
        those who did (``default_queues``). Raises ``RequestError``; then nothing has changed."""
        self._do(lambda: self._queues.replace(text, self._now()))

    # -- connections -----------------------------------------------------------------------------

    def disconnect(self, rm_id: str) -> None:
        """The resource manager is out of reach for now (I6): nothing of it is scheduled."""
        self._do(lambda: self.scheduler.disconnect(rm_id, self._now()))

    def reconnect(self, rm_id: str) -> None:
        """It is back in time, and nothing was lost."""
        self._do(lambda: self.scheduler.reconnect(rm_id, self._now()))

    def shutdown(self, rm_id: str) -> None:
        """It leaves for good: its state is dropped."""
        self._do(lambda: self.scheduler.shutdown(rm_id, self._now()))

    def connection(self, rm_id: str, trigger: str) -> Future[None]:
        """``disconnect``, ``reconnect`` or ``shutdown`` as above, without waiting for it."""
        change = {
            life.DISCONNECT: self.scheduler.disconnect,
            life.RECONNECT: self.scheduler.reconnect,
            life.SHUTDOWN: self.scheduler.shutdown,
        }[trigger]
        return self.begin(lambda: change(rm_id, self._now()))

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
            self.scheduler.set_predicate(rm_id, predicate if far else self._timed(predicate))
            self.scheduler.set_preemption_predicate(rm_id, preemption)
            return []

        return self.begin(work)

    def set_events(self, rm_id: str, wanted: bool) -> Future[None]:
        """Whether the resource manager wants event records; until it registers again."""

        def work() -> list[Output]:
            self.scheduler.set_events(rm_id, wanted)
            return []

        return self.begin(work)

    # -- driving ---------------------------------------------------------------------------------

    def step(self, now: int | None = None, limit: int | None = None) -> int:
        """Manual mode: fire due timers, schedule, deliver. Returns how many messages went out.

        Without ``now`` the clock is asked. ``limit`` is the most scheduling rounds.
        """
        if self._thread is not None:
            raise RuntimeError("this service steps itself; make it with manual=True")
        self._latest = max(self._latest, self._clock() if now is None else now)
        latest = self._latest
        delivered = self._deliver(self._guarded(lambda: self.scheduler.advance(latest)))
        decided = self._guarded(lambda: self._schedule(latest, limit))
        return delivered + self._deliver(decided)

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
        if self._thread is not None:
            raise RuntimeError("this service steps itself; make it with manual=True")
        scheduler = self.scheduler
        before = max(scheduler.now, self._latest)
        if now < before:
            raise RequestError("time", "now", f"went back from {before} to {now} ns")
        self._latest = now
        if advance:
            self._deliver(self._work(lambda: scheduler.advance(now)))
        refused = []
        for place, request in enumerate(requests):
            try:
                outputs = self._work(partial(scheduler.apply, request, now))
            except RequestError as error:
                refused.append((place, error))
                continue
            self._deliver(outputs)
        if schedule:
            self._deliver(self._guarded(lambda: self._schedule(now, limit)))
        return refused

    def stop(self) -> None:
        """End the service after what is queued; later requests raise ``RuntimeError``.

        Safe to call twice, and from a callback (which then returns before the end).
        """
        with self._lock:
            if not self._stopped:
                self._stopped = True
                self._inbox.put(None)
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def __enter__(self) -> SchedulerService:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def read(self, look: Callable[[Scheduler], Any]) -> Any:
        """Call ``look`` with the scheduler, between two steps of its owner."""
        found: list[Any] = []

        def work() -> list[Output]:
            found.append(look(self.scheduler))
            return []

        self._do(work)
        return found[0]

    def read_later(self, look: Callable[[Scheduler], T]) -> Future[T]:
        """As ``read``, without waiting for it: the future will have what ``look`` gives or raises."""
        answer: Future[T] = Future()
        found: list[T] = []

        def work() -> list[Output]:
            found.append(look(self.scheduler))
            return []

        def told(done: Future[None]) -> None:
            error = done.exception()
            if error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(found[0])

        answer.set_running_or_notify_cancel()  # it will be looked at, whoever still wants to know
        done: Future[None] = Future()
        done.add_done_callback(told)
        with self._lock:
            if self._stopped:
                raise RuntimeError("the service has been stopped")
            owner = self._thread is None or threading.current_thread() is self._thread
            if not owner:
                self._inbox.put((work, done))
        if owner:
            self._handle((work, done))
        return answer

    def explain(
        self, rm_id: str, partition: str, application_id: str, allocation_key: str = ""
    ) -> Future[tuple[str, str, tuple[str, ...]]]:
        """The queue of an application, its state in the resource manager's dialect (X1), and why its
        ask waits; without a key only the former. The future has ``KeyError`` for what is not known."""

        def look(scheduler: Scheduler) -> tuple[str, str, tuple[str, ...]]:
            app = scheduler.application(application_id, partition, rm_id)
            reasons: tuple[str, ...] = ()
            if allocation_key:
                told = scheduler.explain(application_id, allocation_key, partition, rm_id)
                reasons = tuple(told.reasons)
            return app.queue.path, app.partition.rm.dialect.state(app.state), reasons

        return self.read_later(look)

    def attach(self, meter: Meter | None) -> None:
        """Let somebody measure from now on, or nobody."""

        def look(scheduler: Scheduler) -> None:
            self.meter = meter
            scheduler.set_measure(meter.measure if meter is not None else None)

        self.read(look)

    def now(self) -> int:
        """The time (ns) as the scheduler would be told it now; nothing is changed by asking."""
        return self._latest if self._thread is None else max(self._latest, self._clock())

    @property
    def alive(self) -> bool:
        """Whether requests are still taken."""
        return not self._stopped and (self._thread is None or self._thread.is_alive())

    @property
    def waiting(self) -> int:
        """How many pieces of work wait for the owner, about."""
        return self._inbox.qsize()

    def diagnostics(self) -> dict[str, Any]:
        """What resource managers say of themselves (I4); they may take their time."""
        return diagnostics_of(dict(self._callbacks))

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

    def _do(self, work: Work) -> None:
        """Have the owner do it; raises what the core raises."""
        done: Future[None] = Future()
        with self._lock:
            if self._stopped:
                raise RuntimeError("the service has been stopped")
            owner = self._thread is None or threading.current_thread() is self._thread
            if not owner:
                self._inbox.put((work, done))
        if not owner:
            done.result()
        elif self._asking:
            raise RuntimeError("the scheduler is deciding: a predicate cannot send requests")
        else:
            self._deliver(self._work(work))

    def _schedule(self, now: int, limit: int | None) -> list[Output]:
        """Let the scheduler decide; how long that takes is measured here, outside of it."""
        meter, scheduler = self.meter, self.scheduler
        if meter is None:
            return scheduler.schedule(now, limit)
        began, rounds = meter.clock(), scheduler.tally.rounds
        outputs = scheduler.schedule(now, limit)
        took = meter.clock() - began
        meter.scheduled(scheduler, took, scheduler.tally.rounds - rounds, len(outputs))
        return outputs

    def _work(self, work: Work) -> list[Output]:
        """What somebody asked for. Raises what it raises."""
        meter = self.meter
        if meter is None:
            return self._guarded(work)
        began = meter.clock()
        try:
            return self._guarded(work)
        finally:
            meter.worked(self.scheduler, meter.clock() - began)

    def _timed(self, predicate: Predicate | None) -> Predicate | None:
        """The same predicate; how long it takes is told to whoever measures."""
        if predicate is None:
            return None

        def ask(key: str, node_id: str, allocate: bool) -> str | None:
            meter = self.meter
            if meter is None:
                return predicate(key, node_id, allocate)
            began = meter.clock()
            try:
                return predicate(key, node_id, allocate)
            finally:
                meter.asked(meter.clock() - began)

        return ask

    def _guarded(self, work: Work) -> list[Output]:
        try:
            outputs = work()
            for summary in self.scheduler.take_summaries():
                _summaries.info("YK_APP_SUMMARY: %s", json.dumps(summary.fields()))
            return outputs
        except InvalidTransition as bug:
            self.failures += 1
            story = self.scheduler.story(f"{bug.lifecycle}/{bug.key}")
            _log.exception("refused: %s\n%s", bug, "\n".join(map(str, story)))
            return []

    def _own(self) -> None:
        try:
            self._serve()
        finally:  # whatever ended it, nobody waits for an answer that does not come
            with self._lock:
                self._stopped = True
            while not self._inbox.empty():
                item = self._inbox.get()
                if item is not None:
                    item[1].set_exception(RuntimeError("the service has been stopped"))

    def _serve(self) -> None:
        busy = False
        while True:
            item = self._take(busy)
            if item is _STOP:
                return
            if item is not None:
                self._handle(item)
                if self._handle_more():
                    return
            self._deliver(self._tried(lambda: self.scheduler.advance(self._now())))
            outputs = self._tried(lambda: self._schedule(self._now(), self._rounds()))
            self._deliver(outputs)
            busy = bool(outputs) or self.scheduler.unfinished

    def _rounds(self) -> int:
        """In each round every partition may have a decision."""
        return max(1, self._slice // max(1, sum(1 for _ in self.scheduler.partitions())))

    def _tried(self, work: Work) -> list[Output]:
        """Work that nobody asked for, so that nobody else hears of a bug in it."""
        try:
            return self._guarded(work)
        except Exception:
            self.failures += 1
            _log.exception("failed, and goes on")
            return []

    def _take(self, busy: bool) -> Any:
        """The next piece of work; waits for it until the next timer unless there is more to do."""
        timeout: float | None = 0.0
        if not busy:
            deadline = self.scheduler.next_deadline()
            if deadline is None:
                timeout = None
            else:
                timeout = min(max(0.0, (deadline - self._now()) / 1e9), _LONGEST_WAIT)
        try:
            item = self._inbox.get(timeout=timeout) if timeout != 0.0 else self._inbox.get_nowait()
        except queue.Empty:
            return None
        return _STOP if item is None else item

    def _handle_more(self) -> bool:
        """What else has come in, so that many small requests do not wait for a slice of decisions
        each, nor decisions for large ones. Whether the service was stopped meanwhile."""
        end = time.monotonic() + _LONGEST_INTAKE
        for _ in range(self._slice):
            if time.monotonic() > end:
                break
            try:
                item = self._inbox.get_nowait()
            except queue.Empty:
                return False
            if item is None:
                return True
            self._handle(item)
        return False

    def _handle(self, item: tuple[Work, Outcome]) -> None:
        work, done = item
        try:
            outputs = self._work(work)
        except Exception as error:
            done.set_exception(error)
            return
        done.set_result(None)
        self._deliver(outputs)

    def _deliver(self, outputs: list[Output]) -> int:
        """Call the callbacks, in order. What a request from within a callback brings comes after
        what was on its way already. Returns how many messages went out."""
        for rm_id, message in outputs:
            callback = self._callbacks.get(rm_id)
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
                said: object = message
                if isinstance(message, EventRecord):
                    said = [message, *self._events_that_follow(rm_id)]
                try:
                    _DELIVER[type(said)](callback, said)
                except Exception:
                    _log.exception("callback of resource manager %s failed", rm_id)
        finally:
            self._delivering = False
        return delivered

    def _events_that_follow(self, rm_id: str) -> list[EventRecord]:
        """Event records that stand together are delivered together (I40)."""
        found: list[EventRecord] = []
        waiting = self._undelivered
        while waiting and waiting[0][0] == rm_id and isinstance(waiting[0][2], EventRecord):
            found.append(waiting.popleft()[2])
        return found

    def _predicate(
        self, callback: ResourceManagerCallback
    ) -> Callable[[str, str, bool], str | None] | None:
        """The callback's predicates, or nothing if it has none of its own: any node will do then.

        Predicates that raise say no: better no pod than one on a node that nobody has checked.
        """
        method: Any = getattr(callback, "predicates", None)
        if method is None or getattr(method, "__func__", None) is NullCallback.predicates:
            return None

        def ask(key: str, node_id: str, allocate: bool) -> str | None:
            args = PredicatesArgs(allocationKey=key, nodeID=node_id, allocate=allocate)
            self._asking = True
            try:
                answer: str | None = method(args)
            except Exception as error:
                _log.exception("predicates of %s on node %s failed", key, node_id)
                answer = f"predicates failed: {error!r}"
            finally:
                self._asking = False
            return answer

        return ask

    def _hears_events(self, callback: ResourceManagerCallback) -> bool:
        """Not where nothing of its own would hear them: then they need not be made (I40)."""
        method: Any = getattr(callback, "send_event", None)
        return getattr(method, "__func__", None) is not NullCallback.send_event

    def _preemption_predicate(
        self, callback: ResourceManagerCallback
    ) -> Callable[[str, str, list[str], int], int | None] | None:
        """The callback's preemption predicates, or nothing if it has none of its own (X24).

        Ones that raise, or answer nothing, say no: nobody has to go for a pod that may not fit.
        """
        method: Any = getattr(callback, "preemption_predicates", None)
        if (
            method is None
            or getattr(method, "__func__", None) is NullCallback.preemption_predicates
        ):
            return None

        def ask(key: str, node_id: str, victims: list[str], start: int) -> int | None:
            args = PreemptionPredicatesArgs(
                allocationKey=key, nodeID=node_id, preemptAllocationKeys=victims, startIndex=start
            )
            self._asking = True
            try:
                answer: PreemptionPredicatesResponse | None = method(args)
            except Exception:
                _log.exception("preemption predicates of %s on node %s failed", key, node_id)
                return None
            finally:
                self._asking = False
            return answer.index if answer is not None and answer.success else None

        return ask


_STOP = object()

#: each entity's responses have a callback of their own (M8); event records come in a list
_DELIVER: dict[type[Any], Callable[[ResourceManagerCallback, Any], None]] = {
    list: lambda callback, message: callback.send_event(message),
    AllocationResponse: lambda callback, message: callback.update_allocation(message),
    ApplicationResponse: lambda callback, message: callback.update_application(message),
    NodeResponse: lambda callback, message: callback.update_node(message),
    UpdateContainerSchedulingStateRequest: (
        lambda callback, message: callback.update_container_scheduling_state(message)
    ),
}
