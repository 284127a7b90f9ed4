"""The thread that owns a scheduler: it does the work of all callers, and makes decisions between.

It takes requests from the resource managers in turn, those of each in the order of the calls (``work_queue``), and
large ones in chunks (``chunks``). The messages that follow reach the resource manager through its callback, on that
thread, in order (``callbacks``). With ``manual=True`` there is no thread: the caller drives the scheduler by
``step(now)``, and everything happens inside that call.

An exception in a callback is logged and does not stop the owner. An illegal trigger of our own is a
bug: that one message is refused, the entity's story is logged and counted, and the owner goes on.
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
from typing import Self

from quadriga.base.times import SECOND
from quadriga.core.checks.failures import FailureLog
from quadriga.core.config import DEFAULT_CONFIGURATION
from quadriga.core.driver.callbacks import Callbacks
from quadriga.core.driver.clock import Standstill, SteadyClock
from quadriga.core.driver.group_lookups import DEADLINE_S, GroupLookups
from quadriga.core.driver.metering import Stopwatch
from quadriga.core.driver.os_groups import MANY, OsGroups
from quadriga.core.driver.watchdog import Watchdog
from quadriga.core.driver.work_queue import Closed, Work, WorkItem, WorkQueue, described
from quadriga.core.intake.dispatcher import Request
from quadriga.core.intake.registration import read_configuration
from quadriga.core.runtime.kernel import Options
from quadriga.core.runtime.outbox import Output
from quadriga.core.scheduler import Scheduler, check_time
from quadriga.fsm import RESOURCE_MANAGER, InvalidTransition
from quadriga.fsm.lifecycles import resource_manager as resource_manager_fsm
from quadriga.si import RegisterResourceManagerRequest, RequestError, UpdateConfigurationRequest

_log = logging.getLogger("quadriga.service")
_summaries = logging.getLogger("quadriga.applications")

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


class Owner:
    """Owns a scheduler, in a thread or by hand.

    ``clock`` gives ns; the default is a ``SteadyClock``. At most ``slice_size`` decisions are made before
    the next work item is taken, and at most as many request items of one resource manager are applied
    before the turn of the next one.
    ``groups_of`` gives the groups of a user whose application names none (I24), and is called while the
    request is applied. By default the operating system is asked, by `GroupLookups` if there is a
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

    def stop(self) -> None:
        """End the service once the queued work is done; later requests raise ``RuntimeError``.

        Safe to call twice, and from a callback (the call then returns before the end).
        """
        self._work_queue.close()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    # -- how it is ----------------------------------------------------------------------------------

    @property
    def is_owner(self) -> bool:
        """Whether the caller does the scheduler's work: there is no thread for it, or this is it."""
        return self._thread in (None, threading.current_thread())

    @property
    def alive(self) -> bool:
        """Whether requests are still accepted."""
        return not self._work_queue.is_closed and (self._thread is None or self._thread.is_alive())

    def now(self) -> int:
        """The time (ns) as the scheduler would get it now."""
        return self._latest if self._thread is None else max(self._latest, self._clock())

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

    @property
    def failures(self) -> int:
        """The number of errors in the scheduler that the service survived."""
        return self.failure_log.count

    # -- driving by hand ----------------------------------------------------------------------------

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

    # -- work for the owner -------------------------------------------------------------------------

    def begin(self, work: Work, rm_id: str = "") -> Future[None]:
        """Have the owner do the work, before any request or in the turn of a resource manager, without waiting for
        it, and deliver the messages that it returns."""
        done = running_future()
        self._hand_over(WorkItem(work, done, rm_id))
        return done

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

    # -- the work of the owner ----------------------------------------------------------------------

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

    def _is_due(self) -> bool:
        """Whether a timer is due now."""
        deadline = self.scheduler.next_deadline()
        return deadline is not None and deadline <= self._now()

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

    def _decide_some(self) -> list[Output]:
        decide = partial(self.scheduler.schedule, self._now(), budget=self._slice)
        return self._watch.schedule(self.scheduler, decide)

    def _schedule(self, now: int, limit: int | None = None) -> list[Output]:
        return self._watch.schedule(self.scheduler, partial(self.scheduler.schedule, now, limit))

    def _work(self, work: Work) -> list[Output]:
        """Do and time the work of a caller. Raises what it raises."""
        return self._watch.work(self.scheduler, partial(self._guarded, work))

    def _tried(self, work: Work) -> list[Output]:
        """Do the scheduler's own work: there is no caller to raise an error at, so it is logged."""
        try:
            return self._guarded(work)
        except Exception as error:
            self.failure_log.note(error, self._latest)
            _log.exception("failed, and goes on")
            return []

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

    def _now(self) -> int:
        """The clock's time, or the last one if the clock went back."""
        if self._thread is not None or self._latest == 0:
            self._latest = max(self._latest, self._clock())
        return self._latest


def _log_error(rm_id: str, done: Future[None]) -> None:
    if (error := done.exception()) is not None:
        _log.error("a request that a callback of %s sent was refused: %s", rm_id, error)


def running_future() -> Future[None]:
    """A future that cannot be cancelled: its work is done whether or not the caller waits."""
    done: Future[None] = Future()
    done.set_running_or_notify_cancel()
    return done


class DefaultQueues:
    """The queues of resource managers that register without a configuration.

    Queues come from the operator of the scheduler, or from a resource manager when it registers. A
    resource manager's own configuration takes precedence, as YuniKorn's shim expects. One that registers
    with an empty configuration gets the operator's, and follows its changes until it sends its own.
    ``text`` is the operator's; YuniKorn's default without one.
    """

    __slots__ = ("_followers", "_scheduler", "text")

    def __init__(self, scheduler: Scheduler) -> None:
        self.text = DEFAULT_CONFIGURATION
        self._scheduler = scheduler
        self._followers: set[str] = set()

    def register(self, request: RegisterResourceManagerRequest, now: int) -> list[Output]:
        """Apply a registration, with the operator's queues if it has none. Raises ``RequestError``."""
        follows = not request.config.strip()
        if follows:
            filled = RegisterResourceManagerRequest()
            filled.CopyFrom(request)
            filled.config = self.text
            request = filled
        outputs = self._scheduler.apply(request, now)
        (self._followers.add if follows else self._followers.discard)(request.rmID)
        return outputs

    def update(self, request: UpdateConfigurationRequest, now: int) -> list[Output]:
        """Apply a resource manager's own update (I39). Raises ``RequestError``."""
        outputs = self._scheduler.apply(request, now)
        if request.config.strip():
            self._followers.discard(request.rmID)
        return outputs

    def followers(self) -> list[str]:
        """The rmIDs of resource managers that have the operator's queues now."""
        alive = {
            rm.rm_id
            for rm in self._scheduler.resource_managers()
            if RESOURCE_MANAGER.allows(rm.state, resource_manager_fsm.SHUTDOWN)
        }
        return sorted(self._followers & alive)

    def replace(self, text: str, now: int) -> list[Output]:
        """Replace the operator's queues, also those of all followers; an empty text is the default.

        Raises ``RequestError`` with all problems of the text, or with every queue in use that would
        have to change between leaf and parent. Then nothing has changed for any resource manager.
        """
        text = text if text.strip() else DEFAULT_CONFIGURATION
        read_configuration("Configuration", text, self._scheduler.options)
        updates = [
            UpdateConfigurationRequest(rmID=rm_id, config=text) for rm_id in self.followers()
        ]
        refusals = []
        for update in updates:
            try:
                self._scheduler.check_update(update)
            except RequestError as error:
                refusals.append(f"resource manager {update.rmID!r}: {error.reason}")
        if refusals:
            raise RequestError("Configuration", "config", "; ".join(refusals))
        self.text = text
        return [output for update in updates for output in self._scheduler.apply(update, now)]
