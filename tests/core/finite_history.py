"""The life of finite jobs in a small cluster, in virtual time (Q6), with a shim that behaves like Kubernetes'.

A gang asks for its placeholders, then for its real pods; the job runs for a fixed time when all are there. A
job that loses a pod starts over as a new application. A placeholder that is lost is asked for again.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from finite_jobs import Job, Setting

from quadriga.core import Options, Output, Scheduler
from quadriga.si import (
    AllocationResponse,
    ApplicationResponse,
    EventRecord,
    NodeInfo,
    NodeResponse,
    TerminationType,
    UpdateContainerSchedulingStateRequest,
)
from quadriga.sim.scripted.script import Script, lines

SECOND = 1_000_000_000

PREEMPTED = TerminationType.PREEMPTED_BY_SCHEDULER
STOPPED = TerminationType.STOPPED_BY_RM


# -- a job in the cluster --------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class Run:
    """An attempt at a job. ``groups`` has the task group of each key ever asked for."""

    job: Job
    attempt: int
    app_id: str
    groups: dict[str, int] = field(default_factory=dict)
    #: placeholders that are asked for and not allocated, that are allocated, and that are being given back
    wanted: set[str] = field(default_factory=set)
    held: set[str] = field(default_factory=set)
    leaving: set[str] = field(default_factory=set)
    #: real pods by key: node
    placed: dict[str, str] = field(default_factory=dict)
    #: placeholders that are asked for later
    postponed: int = 0
    placeholders: int = 0
    asked: bool = False
    alone: int = 0  # real pods of an elastic gang that have run
    resumed: bool = False
    started: int = -1
    ended: int = -1
    outcome: str = ""
    submitted: int = -1
    first_held: int = -1
    lost: bool = False

    @property
    def on_its_own(self) -> bool:
        """Whether each member runs by itself."""
        return self.job.elastic and self.resumed


class _Voice(Script):
    """Sends messages; the answers are for the history."""

    history: History

    def _heard(self, outputs: list[Output]) -> list[str]:
        for output in outputs:
            if not isinstance(output.message, EventRecord):
                self.history.inbox.append(output.message)
        return []


class History:
    """``run`` returns the jobs that never end; none may be rejected, or killed before its timeout."""

    #: nothing changes any more if nothing has changed for this long (s): every timer of the scheduler
    #: that could help is shorter
    PATIENCE = 4 * 3600

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.inbox: deque[Any] = deque()
        self.log: list[tuple[int, object]] = []
        self.now = 0
        self.changed = 0
        self.runs: dict[str, Run] = {}
        self.ended: dict[str, Run] = {}
        self.counts: Counter[str] = Counter()
        self._agenda: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._number = 0
        self.voice = _Voice.__new__(_Voice)
        self.voice.history = self
        self.voice.__init__(  # type: ignore[misc]
            setting.config(),
            extra={
                "event.trackingEnabled": "false",
                "si.messageOrder": setting.message_order,
                "scheduler.disableReservation": str(not setting.reservations).lower(),
            },
            scheduler=Scheduler(
                Options(
                    inspect_interval=600 * SECOND,  # hints are not read here
                    reservation_give_up=setting.give_up * SECOND,
                )
            ),
            check=False,
        )
        for at in range(len(setting.nodes)):
            self.node(at)

    # -- time --------------------------------------------------------------------------------------

    def at(self, seconds: int, do: Callable[..., None], *args: Any) -> None:
        """Do something at a time; what is planned first is done first."""
        self._number += 1
        heapq.heappush(self._agenda, (seconds, self._number, do, args))

    def run(self) -> list[Run]:
        """Run to the end. Returns the attempts that never end."""
        for job in self.setting.jobs:
            self.at(job.arrives, self.submit, job)
        for loss in self.setting.losses:
            self.at(loss.at, self.lose, loss.node)
            self.at(loss.back, self.node, loss.node)
        while self._agenda or self.runs:
            if not self.step():
                break
        assert not (wrong := self.voice.scheduler.check()), "\n".join(wrong)
        return list(self.runs.values())

    def step(self) -> bool:
        """Go on to the next instant at which something may happen; False if there is none."""
        mine = self._agenda[0][0] * SECOND if self._agenda else None
        theirs = self.voice.scheduler.next_deadline()
        if mine is None and theirs is None:
            return False
        if mine is None or (theirs is not None and theirs < mine):
            assert theirs is not None
            if mine is None and theirs > (self.changed + self.PATIENCE) * SECOND:
                return False
            self._to(theirs)
            self.voice._heard(self.voice.scheduler.advance(theirs))
        else:
            self._to(mine)
            while self._agenda and self._agenda[0][0] * SECOND <= mine:
                _, _, do, args = heapq.heappop(self._agenda)
                do(*args)
        self.settle()
        return True

    def wait(self, seconds: int) -> None:
        """Let time pass."""
        until = self.now + seconds
        self.at(until, lambda: None)
        while self.now < until:
            self.step()

    def _to(self, ns: int) -> None:
        self.voice.now = ns
        self.now = ns // SECOND

    def settle(self) -> None:
        """Exchange messages and make decisions until both sides have nothing to say."""
        while True:
            while self.inbox:
                self._read(self.inbox.popleft())
            self.voice.schedule()
            if not self.inbox:
                return

    # -- what happens in the cluster ---------------------------------------------------------------

    def node(self, at: int) -> None:
        cores, memory = self.setting.nodes[at]
        self.changed = self.now
        self.voice.node(f"n{at}", vcore=cores * 1000, memory=memory)

    def lose(self, at: int) -> None:
        self.counts["nodes lost"] += 1
        self.voice.node(f"n{at}", NodeInfo.DECOMISSION)

    def submit(self, job: Job, attempt: int = 1) -> None:
        app_id = job.name if attempt == 1 else f"{job.name}.{attempt}"
        self.runs[app_id] = Run(job, attempt, app_id, submitted=self.now)
        self.changed = self.now
        gang = None
        if job.gang and job.announced:
            cores, memory = job.total
            gang = {"vcore": cores * 1000, "memory": memory}
        self.voice.app(
            app_id,
            job.queue,
            gang=gang,
            style=job.style,
            timeout_ms=job.timeout * 1000 if job.gang else 0,
            tags={"gang.elastic": "true"} if job.elastic else None,
        )

    def _start_over(self, run: Run, *, remove: bool = True) -> None:
        """The job lost a pod: it begins again as a new application."""
        if self.runs.pop(run.app_id, None) is None:
            return
        self.counts["started over"] += 1
        run.outcome = "started over"
        if remove:
            self.voice.remove_app(run.app_id)
        self.at(self.now + 1, self.submit, run.job, run.attempt + 1)

    def _end(self, run: Run, outcome: str) -> None:
        if self.runs.pop(run.app_id, None) is None:
            return
        run.outcome, run.ended = outcome, self.now
        self.ended[run.job.name] = run
        self.changed = self.now

    # -- asks --------------------------------------------------------------------------------------

    def _ask(self, run: Run, keys: list[str], *, placeholder: bool) -> None:
        """Ask for pods, with one message for each task group."""
        for at, group in enumerate(run.job.groups):
            if mine := [key for key in keys if run.groups[key] == at]:
                self.voice.ask(
                    run.app_id,
                    *mine,
                    group=f"tg{at}" if run.job.gang else "",
                    placeholder=placeholder,
                    priority=run.job.priority,
                    vcore=group.cores * 1000,
                    memory=group.memory,
                )

    def _ask_placeholders(self, run: Run, groups: list[int]) -> None:
        keys = []
        for at in groups:
            keys.append(key := f"p{run.placeholders}")
            run.placeholders += 1
            run.groups[key] = at
        run.wanted.update(keys)
        self._ask(run, keys, placeholder=True)

    def _ask_late(self, run: Run) -> None:
        late, run.postponed = run.postponed, 0
        if run.app_id in self.runs and not run.resumed and not run.asked and late:
            self._ask_placeholders(run, self._by_member(run.job)[-late:])

    def _ask_real(self, run: Run) -> None:
        run.asked = True
        for n, at in enumerate(self._by_member(run.job)):
            run.groups[f"m{n}"] = at
        self._ask(run, [f"m{n}" for n in range(len(run.job.members))], placeholder=False)

    @staticmethod
    def _by_member(job: Job) -> list[int]:
        return [at for at, group in enumerate(job.groups) for _ in range(group.count)]

    # -- answers -----------------------------------------------------------------------------------

    def _read(self, message: Any) -> None:
        self.log.append((self.now, message))
        if isinstance(message, AllocationResponse):
            self._read_allocations(message)
        elif isinstance(message, ApplicationResponse):
            self._read_applications(message)
        elif isinstance(message, NodeResponse):
            assert not message.rejected, message
        else:
            assert isinstance(message, UpdateContainerSchedulingStateRequest)

    def _read_applications(self, message: ApplicationResponse) -> None:
        assert not message.rejected, message
        for accepted in message.accepted:
            run = self.runs[accepted.applicationID]
            job = run.job
            if not job.gang:
                self._ask_real(run)
                continue
            groups = self._by_member(job)
            run.postponed = min(job.late, len(groups) - 1)
            self._ask_placeholders(run, groups[: len(groups) - run.postponed])
            if run.postponed:
                self.at(self.now + job.late_by, self._ask_late, run)
        for update in message.updated:
            if (run_ := self.runs.get(update.applicationID)) is not None:
                self._updated(run_, update.state, update.message)

    def _updated(self, run: Run, state: str, message: str) -> None:
        if state == "Resuming":
            self.counts["soft timeouts"] += 1
            self._check_timeout(run, message)
            run.resumed = True
            run.wanted.clear()
            self._ask_if_resumed(run)
        elif state == "Killing":
            self.counts["hard timeouts"] += 1
            assert run.job.style == "Hard", f"{run.app_id} was killed: {message}"
            self._check_timeout(run, message)
            run.asked = True  # nothing more is asked for
        elif state == "Killed":
            self._end(run, "killed")
        elif state == "Completed":
            # It lost all its pods, and had no pending ask at that time.
            assert run.lost, f"{run.app_id} was completed before it ran"
            self._start_over(run, remove=False)

    def _check_timeout(self, run: Run, message: str) -> None:
        """A gang fails at its placeholder timeout only (G44, G45), or if asks of it have not arrived (G24)."""
        timeout = run.job.timeout or 900
        waited = self.now - max(run.first_held, run.submitted)
        assert message == "ResourceReservationTimeout", f"{run.app_id}: {message}"
        assert timeout > 0, f"{run.app_id} has no timeout"
        assert run.first_held >= 0 or run.postponed, f"{run.app_id} has asked for all its members"
        assert waited >= timeout, f"{run.app_id} failed after {waited} s"

    def _ask_if_resumed(self, run: Run) -> None:
        if run.resumed and not run.asked and not run.held and not run.leaving:
            self._ask_real(run)

    def _read_allocations(self, message: AllocationResponse) -> None:
        assert not message.rejected, message
        for new in message.new:
            self.changed = self.now
            if (run := self.runs.get(new.applicationID)) is None:
                continue  # removed before this arrived
            if new.placeholder:
                self._held(run, new.allocationKey)
            else:
                self._placed(run, new.allocationKey, new.UUID, new.nodeID)
        for gone in message.released:
            if (run := self.runs.get(gone.applicationID)) is None:
                if gone.terminationType != STOPPED:
                    self.voice._release(gone)
                continue
            if gone.terminationType == STOPPED:
                self._lost(run, gone.allocationKey)
            else:
                run.held.discard(gone.allocationKey)
                run.leaving.add(gone.allocationKey)
                self.at(self.now + self.setting.confirms_in, self._confirm, run, gone)
        for ask in message.releasedAsks:
            if (run := self.runs.get(ask.applicationID)) is not None:
                run.wanted.discard(ask.allocationKey)

    def _held(self, run: Run, key: str) -> None:
        if run.first_held < 0:
            run.first_held = self.now
        run.wanted.discard(key)
        run.held.add(key)
        if not run.asked and len(run.held) == len(run.job.members):
            self._ask_real(run)

    def _placed(self, run: Run, key: str, uuid: str, node: str) -> None:
        run.placed[key] = node
        if run.on_its_own:
            self.at(self.now + run.job.runs, self._member_ends, run, key, uuid)
        elif len(run.placed) == len(run.job.members):
            run.started = self.now
            self.started(run)

    def started(self, run: Run) -> None:
        """All pods of the job are there: plan its end."""
        self.at(self.now + run.job.runs, self.finish, run)

    def finish(self, run: Run) -> None:
        """The job has run: its pods end."""
        if run.app_id in self.runs:
            self._end(run, "completed")
            self.voice.release(run.app_id)

    def _member_ends(self, run: Run, key: str, uuid: str) -> None:
        if run.app_id in self.runs:
            run.alone += 1
            del run.placed[key]
            if run.alone == len(run.job.members):
                self._end(run, "completed")
            self.voice.release(run.app_id, uuid)
            self.changed = self.now

    def _confirm(self, run: Run, release: Any) -> None:
        key = release.allocationKey
        run.leaving.discard(key)
        if run.app_id in self.runs and release.terminationType == PREEMPTED:
            self._lost(run, key, held=True)
        self.voice._release(release)
        if run.app_id in self.runs:
            self._ask_if_resumed(run)

    def _lost(self, run: Run, key: str, *, held: bool = False) -> None:
        """A pod is gone with its node, or was preempted."""
        run.lost = True
        if key in run.placed:
            self._start_over(run)
        elif held or key in run.held:
            run.held.discard(key)
            if not run.asked and not run.resumed:
                self._ask_placeholders(run, [run.groups[key]])
        run.leaving.discard(key)
        self._ask_if_resumed(run)

    # -- what is seen ------------------------------------------------------------------------------

    def picture(self) -> str:
        """The state in words: nodes with what is on them, and the jobs that have not ended."""
        partition = self.voice.scheduler.partition()
        found = [f"at {self.now} s"]
        for node in partition.nodes.values():
            held = Counter(
                a.ask.app.app_id + "*" * a.ask.kind.placeholder for a in node.allocations
            )
            kept = node.reservation.ask.app.app_id if node.reservation else ""
            found.append(
                f"  {node.node_id}: free {list(node.available)}"
                + "".join(f", {n} of {app}" for app, n in held.items())
                + (f", reserved for {kept}" if kept else "")
            )
        for run in self.runs.values():
            app = self.voice.scheduler.application(run.app_id)
            sizes = " ".join(f"{g.count}x{g.cores}" for g in run.job.groups)
            found.append(
                f"  {run.app_id} ({sizes}) {app.state}: {len(run.held)} placeholders, "
                f"{len(run.wanted)} wanted, {len(run.placed)} of {len(run.job.members)} placed"
            )
        return "\n".join(found)

    def story(self) -> str:
        """What the scheduler said, and when."""
        return "\n".join(f"{at:6} {line}" for at, said in self.log for line in lines(said))  # type: ignore[arg-type]
