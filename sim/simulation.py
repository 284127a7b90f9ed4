"""A complete run: a workload passes through the scheduler in virtual time and results in a
report."""

# Not compiled: it does not run for every message.

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from quadriga.base.times import SECOND
from quadriga.core import Options, Output, Scheduler
from quadriga.core import RequestError as Refused
from quadriga.core.model.application import Application
from quadriga.core.model.partition import Partition
from quadriga.core.views.applications import holdings_of
from quadriga.fsm import InvalidTransition
from quadriga.si.explained import Explained
from quadriga.si.recorder import Recorder
from quadriga.sim.destinations import Destinations
from quadriga.sim.errors import ConfigurationRefused, SimulationError
from quadriga.sim.holders import Unfinished
from quadriga.sim.options import SimulationOptions, nanoseconds
from quadriga.sim.outbox import RM_ID
from quadriga.sim.pods import Pod, Run
from quadriga.sim.queues import queue_configuration, quotas_of
from quadriga.sim.reports.causes import Causes
from quadriga.sim.reports.report import Facts, Report
from quadriga.sim.resource_manager import ResourceManager
from quadriga.sim.usage import Usage, resource_of
from quadriga.sim.workload.model import Job, NodeSpec, Workload

#: called from time to time with (ended jobs, all jobs)
Progress = Callable[[int, int], None]

#: later than any time
_NEVER = 1 << 200

#: Without any change in the cluster for this long (plus configured delays), nothing will change any
#: more: it is longer than every timer of the scheduler that could still help a waiting job, such as
#: the hour after which a useless reservation is released, and the hour after that.
_IDLE_LIMIT = 6 * 3600 * SECOND
#: the same if nothing is allocated, since no job can then wait for another
_IDLE_LIMIT_EMPTY = 3600 * SECOND

#: more rounds than this at one instant mean that both sides answer each other without end
_MAX_ROUNDS = 100_000

#: records kept for the stories in error texts if no complete journal is requested
_JOURNAL_SIZE = 1000

_TELL_EVERY = 100

#: with ``check``, each step checks what it has changed; everything is checked after this many steps
_AUDIT_EVERY = 1000


class Core(Protocol):
    """The methods that a simulation needs of a scheduler: `quadriga.core.Scheduler`, or a remote
    one."""

    def apply(self, message: Any, now: int) -> list[Output]:
        """The messages that result from this one."""

    def advance(self, now: int) -> list[Output]:
        """The messages that result from timers."""

    def schedule(self, now: int) -> list[Output]:
        """The messages that result from decisions."""

    def next_deadline(self) -> int | None:
        """The time of its next timer."""


class Simulation:
    """One run over `workload`. `run` may be called once; `scheduler` and `manager` can be
    inspected.

    Raises `SimulationError` if the scheduler rejects the configuration, breaks an invariant, or
    sends an answer that no resource manager can process.
    """

    def __init__(
        self,
        workload: Workload,
        options: SimulationOptions | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.workload = workload
        self.options = options or SimulationOptions()
        self.usage = Usage(resource_of(workload))
        self.destinations = Destinations(
            workload,
            self.options.config,
            queue_map=dict(self.options.queue_map),
            user_map=dict(self.options.user_map),
        )
        self.manager = ResourceManager(
            self.options,
            self.usage,
            self.destinations,
            self._placed if self.destinations.foreign else None,
        )
        self.scheduler = self._new_scheduler()
        #: the scheduler that the resource manager talks to
        self._core: Core = self.scheduler
        self._recorder: Recorder | None = None
        self._causes: Causes | None = None
        self._longest_delay = self.destinations.longest_delay + max(
            0, nanoseconds(self.options.placeholder_timeout_s)
        )
        self.steps = 0
        self._progress = progress
        self._told = 0
        self._said = 0

    def record(self, recorder: Recorder) -> None:
        """Record the messages of both sides from now on, in virtual time."""
        self._recorder = recorder
        self._core = self._recorded(self._core)

    def watch_causes(self) -> None:
        """Note from now on what each job waits for, if the scheduler is in this process."""
        self._causes = Causes(self._application)

    def _application(self, key: str) -> Application | None:
        partition = self._partition()
        return None if partition is None else partition.applications.get(key)

    def _recorded(self, core: Core) -> Core:
        return self._recorder.scheduler(core) if self._recorder else core

    def run(self) -> Report:
        """Simulate to the end, when every job has its result."""
        began = time.perf_counter()
        try:
            self._set_up()
            self._run_to_end()
            self._check()
        except InvalidTransition as error:
            raise SimulationError(f"at {self._at()}: {error}") from error
        except Refused as error:
            raise SimulationError(f"at {self._at()}: {error}") from error
        self.usage.settle(self.manager.clock.now)
        unfinished = self._unfinished()
        self.manager.fates += unfinished.fates
        return Report(
            Facts(
                workload=self.workload,
                options=self.options,
                node_sort=self.destinations.node_sort or self.options.node_sort,
                fates=self.manager.fates,
                usage=self.usage,
                holdings=self.manager.held_until(self.usage.until),
                sent=self.manager.outbox.sent,
                received=self.manager.received,
                gangs=self.manager.gangs,
                restarts=self.manager.restarts,
                holders=unfinished.holders,
                reservations=unfinished.reservations,
                partition=self._partition(),
                ended=self.usage.until,
                steps=self.steps,
                wall_s=time.perf_counter() - began,
                checked=self._checked,
            )
        )

    # -- the loop --------------------------------------------------------------------------------

    def _new_scheduler(self) -> Scheduler:
        return Scheduler(
            Options(
                journal_size=None if self.options.journal else _JOURNAL_SIZE,
                keep_ended=None,  # the length of a log must not influence its results
                keep_ended_bytes=None,
                keep_rejected=None,
                keep_rejected_bytes=None,
                audit_every=_AUDIT_EVERY if self.options.check else 0,
            )
        )

    def _register(self) -> None:
        self._say(self.manager.outbox.registration(self._configuration))

    @property
    def _configuration(self) -> str:
        """The queue configuration in force."""
        options = self.options
        if options.config is not None:
            return options.config
        return queue_configuration(
            self.workload,
            policy=options.policy,
            node_sort=options.node_sort,
            gang_admission=options.gang_admission,
        )

    def _set_up(self) -> None:
        try:
            self._register()
        except Refused as error:
            raise ConfigurationRefused(" ".join(str(error).split())) from error
        if (partition := self._partition()) is not None:
            partition.run_times.judges = True
        if self.workload.nodes:
            self._say(self.manager.outbox.nodes(self.workload.nodes))

    def _run_to_end(self) -> None:
        """Advance from instant to instant. The end is the last change in the cluster; the
        scheduler's own timers may run on for days."""
        manager, clock = self.manager, self.manager.clock
        jobs = _with_keys(self.workload)
        following = next(jobs, None)
        last, changes, idle = 0, self._changes, 0
        runs, planned = manager.runs, clock.planned
        arrival = following[0].submit_s * SECOND if following else _NEVER
        while following or runs:
            theirs = self._core.next_deadline()
            now = arrival
            if planned and planned[0][0] < now:
                now = planned[0][0]
            if theirs is not None and theirs < now:
                now = theirs
            if now == _NEVER:
                break
            if arrival == _NEVER and not manager.running and now > last + self._patience():
                break
            idle = idle + 1 if now <= clock.now else 0
            if idle > _MAX_ROUNDS:
                timer = self.scheduler.describe_next_timer()
                raise SimulationError(f"time stands still at {self._at()}: timer {timer}")
            if now < clock.now:
                now = clock.now
            clock.now = now
            if self._causes is not None:
                self._causes.look(now, runs)
            while following and arrival <= now:
                manager.submit(*following)
                if self._causes is not None:
                    self._causes.add(following[1], now)
                following = next(jobs, None)
                arrival = following[0].submit_s * SECOND if following else _NEVER
            self._run_instant(now, theirs is not None and theirs <= now)
            before, changes = changes, self._changes
            if changes != before:
                last, idle = now, 0
            if self._progress is not None:
                self._tell()
        clock.now = last

    def _patience(self) -> int:
        alone = not self.usage.allocated
        return (_IDLE_LIMIT_EMPTY if alone else _IDLE_LIMIT) + self._longest_delay

    def _run_instant(self, now: int, deadline: bool) -> None:
        """Process one instant: timers, then messages until both sides have none."""
        manager, clock = self.manager, self.manager.clock
        planned = clock.planned
        changed = False
        if deadline:
            self._hear(self._core.advance(now))
            changed = True
        for _ in range(_MAX_ROUNDS):
            if planned and planned[0][0] <= now:
                said = self._said
                clock.run_due()
                changed = changed or self._said != said
            if requests := manager.requests():
                self._send(requests)
                changed = True
            elif changed:
                self._hear(self._core.schedule(now))
                changed = False
            else:
                return
        raise SimulationError(f"endless messages at {self._at()}")

    @property
    def _changes(self) -> int:
        """Counts changes in the cluster; a lost confirmation is none."""
        manager = self.manager
        return self._said + manager.clock.done - manager.gangs.get("confirmations_lost", 0)

    def _placed(self, key: str) -> str:
        """The queue that the application was placed in."""
        return self.scheduler.application(key, self.destinations.partition, RM_ID).queue_path

    def _send(self, requests: Iterable[Any]) -> None:
        for request in requests:
            self._say(request)

    def _say(self, request: Any) -> None:
        self._said += 1
        self._hear(self._core.apply(request, self.manager.clock.now))

    def _hear(self, outputs: Iterable[Output]) -> None:
        self.steps += 1
        if self.options.check:
            self._hold_to(self.scheduler.audit())
        self.manager.receive(outputs)

    @property
    def _checked(self) -> str:
        """When the invariants are checked."""
        return "after every step" if self.options.check else "at the end"

    def _check(self) -> None:
        self._hold_to(self.scheduler.check())

    def _hold_to(self, violations: list[str]) -> None:
        if violations:
            raise SimulationError(f"invariant violated at {self._at()}", violations)

    def _partition(self) -> Partition | None:
        """The partition as it is at the end, if the scheduler is in this process."""
        return self.scheduler.partition(self.destinations.partition, RM_ID)

    # -- the end ---------------------------------------------------------------------------------

    def _unfinished(self) -> Unfinished:
        """The jobs that have not ended and do not continue."""
        runs = list(self.manager.runs.values())
        if not runs:
            return Unfinished((), (), {}, self._explain)
        quotas = quotas_of(runs, self.options, self.destinations, self._configuration)
        return Unfinished(runs, self._nodes(), quotas, self._explain)

    def _nodes(self) -> Iterable[NodeSpec]:
        """The nodes as they are now."""
        return self.workload.nodes

    def _explain(self, run: Run, pod: Pod) -> Explained:
        """Why the pod waits, in the scheduler's words, and what its application holds."""
        app = self.scheduler.application(run.key, self.destinations.partition, RM_ID)
        told = self.scheduler.explain(
            run.key, pod.key, partition=self.destinations.partition, rm_id=RM_ID
        )
        return Explained(app.queue_path, app.state, told.reasons, told.verdict, *holdings_of(app))

    def _tell(self) -> None:
        if self._progress and (ended := len(self.manager.fates)) >= self._told + _TELL_EVERY:
            self._told = ended
            self._progress(ended, len(self.workload.jobs))

    def _at(self) -> str:
        return f"{self.manager.clock.now / SECOND:.9g} s"


def _with_keys(workload: Workload) -> Iterator[tuple[Job, str]]:
    """Jobs in order, each with a distinct application id: its own, numbered if it occurs again."""
    taken: set[str] = set()
    for job in workload.jobs:
        key, number = job.job_id, 1
        while key in taken:
            number += 1
            key = f"{job.job_id}.{number}"
        taken.add(key)
        yield job, key
