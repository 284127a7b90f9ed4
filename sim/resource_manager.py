"""A resource manager (RM) in virtual time, which behaves like the Kubernetes shim.

It processes the scheduler's answers in the shim's order (5.14): new allocations, rejected asks,
released allocations, released asks; accepted, rejected and updated applications. All states change
through the tables of `quadriga.sim.lifecycles`. Delays are planned on the clock: pods start, stop,
and are reported, each after its latency.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, Final

from quadriga import si
from quadriga.core import Output
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.sim import lifecycles
from quadriga.sim.destinations import Destinations
from quadriga.sim.errors import SimulationError
from quadriga.sim.fragmentation import Holding
from quadriga.sim.options import SimulationOptions, nanoseconds
from quadriga.sim.outbox import Outbox, Request
from quadriga.sim.outcomes import COMPLETED, FAILED, REJECTED, Fate
from quadriga.sim.pods import Pod, Run
from quadriga.sim.usage import Usage
from quadriga.sim.workload.model import Job

_STOPPED = (si.TerminationType.STOPPED_BY_RM, si.TerminationType.UNKNOWN_TERMINATION_TYPE)
_REPLACED = si.TerminationType.PLACEHOLDER_REPLACED
_PREEMPTED = si.TerminationType.PREEMPTED_BY_SCHEDULER

#: a job that is preempted this often is given up
_MAX_ATTEMPTS = 10

_APPLICATION: Final = lifecycles.SHIM_APPLICATION
_TASK: Final = lifecycles.SHIM_TASK

#: the parts of each response, in the order in which the shim reads them
_PARTS = {
    "AllocationResponse": ("new", "rejected", "rejectedAllocations", "released", "releasedAsks"),
    "ApplicationResponse": ("accepted", "rejected", "updated"),
}


class ResourceManager:
    """Jobs come in through `submit`, the scheduler's answers through `receive`; `requests` returns
    outgoing messages.

    `runs` has the active jobs by application id, `fates` the ended ones, `holdings` what ended pods
    have held. `received` counts the answers and their items, `gangs` the outcomes of gangs. `placed`,
    if given, returns the queue of an application.
    """

    def __init__(
        self,
        options: SimulationOptions,
        usage: Usage,
        destinations: Destinations,
        placed: Callable[[str], str] | None = None,
    ) -> None:
        self.clock = Clock()
        self.outbox = Outbox(options, destinations)
        self._placed = placed
        self.usage = usage
        self.runs: dict[str, Run] = {}
        self.fates: list[Fate] = []
        self.holdings: list[Holding] = []
        self.received: Counter[str] = Counter()
        self.gangs: Counter[str] = Counter()
        #: number of resubmissions of jobs that lost a pod to preemption
        self.restarts = 0
        #: number of jobs that have started and not ended
        self.running = 0
        self._ready: list[Run] = []
        self._readers: dict[str, Callable[[Any], None]] = {
            "AllocationResponse.new": self._read_new,
            "AllocationResponse.rejected": self._read_rejected_asks,
            "AllocationResponse.rejectedAllocations": self._read_rejected_allocations,
            "AllocationResponse.released": self._read_released,
            "AllocationResponse.releasedAsks": self._read_released_asks,
            "ApplicationResponse.accepted": self._read_accepted,
            "ApplicationResponse.rejected": self._read_rejected,
            "ApplicationResponse.updated": self._read_updated,
        }
        self._by_key = options.ask_form == "allocation"
        self._start = nanoseconds(options.start_s)
        self._release = nanoseconds(options.release_s)
        self._confirmation = nanoseconds(options.confirm_s)
        self._lose = options.lose
        self._repeat = options.repeat
        self._chance = random.Random(options.seed)

    def submit(self, job: Job, key: str, attempt: int = 1) -> None:
        """Submit a job, possibly for another time. `key` becomes the application id."""
        run = self.runs[key] = Run(job, key, attempt)
        _APPLICATION.take(run, lifecycles.SUBMIT)
        self.outbox.add(run)

    def requests(self) -> list[Request]:
        """The messages to send now. As in the shim, running applications send their asks in a loop
        of their own and not while an answer is processed, since the rest of the answer may end
        them."""
        if self._ready:
            for run in self._ready:
                if run.state == lifecycles.RUNNING and not run.asked:
                    run.asked = True
                    self._ask(run.real)
            self._ready.clear()
        return [] if self.outbox.empty else self.outbox.requests()

    def receive(self, outputs: Iterable[Output]) -> None:
        """Process the scheduler's answers in order."""
        received = self.received
        for output in outputs:
            message = output.message
            name = message.__class__.__name__
            received[name] += 1
            if name in _PARTS:
                self._read(name, message)
            elif isinstance(message, si.NodeResponse):
                self._read_nodes(message)

    def _read(self, name: str, message: Any) -> None:
        """Read the parts of a response that are not empty."""
        present = message.ListFields()  # faster than a look at each part: most are empty
        if len(present) > 1:
            order = _PARTS[name]
            present.sort(key=lambda part: order.index(part[0].name))
        for field, items in present:
            self._readers[f"{name}.{field.name}"](items)

    def restart(self, remembers: bool) -> None:
        """Start over with what runs in the cluster: every application is added again (I7, I8).

        Without memory, as after a restart of its own, the RM forgets what was about to be bound.
        Applications that have nothing left to schedule end.
        """
        self.outbox.clear()
        self._ready.clear()
        for run in list(self.runs.values()):
            if run.over or run.state == lifecycles.FAILING:
                for pod in run.pods.values():
                    self._let_go(pod)
                    if pod.state != lifecycles.COMPLETED:
                        _TASK.take(pod, lifecycles.COMPLETE)
                if run.over and run.started >= 0:
                    self._finish(run, COMPLETED)
                else:
                    self._finish(run, FAILED, run.reason)
                continue
            for pod in run.start_over(remembers):
                self._let_go(pod)
            _APPLICATION.take(run, lifecycles.RESTART)
            self.outbox.add(run)

    def pods_on_nodes(self) -> list[Pod]:
        """The pods that occupy resources in the cluster."""
        pods = (pod for run in self.runs.values() for pod in run.pods.values())
        return [pod for pod in pods if pod.state in lifecycles.ON_NODE]

    def held_until(self, end: int) -> list[Holding]:
        """What all pods have held, up to `end` if they still do."""
        pods = (pod for run in self.runs.values() for pod in run.pods.values())
        still = (pod.holding for pod in pods if pod.holding is not None)
        return [*self.holdings, *(each._replace(until=end) for each in still)]

    # -- answers -------------------------------------------------------------------------------

    def _read_new(self, allocations: Sequence[si.Allocation]) -> None:
        self.received["AllocationResponse.new"] += len(allocations)
        for allocation in allocations:
            self._allocated(allocation)

    def _read_rejected_asks(self, refusals: Sequence[si.RejectedAllocationAsk]) -> None:
        self.received["AllocationResponse.rejected"] += len(refusals)
        for refusal in refusals:
            self._refused(refusal)

    def _read_rejected_allocations(self, refusals: Sequence[si.RejectedAllocation]) -> None:
        self.received["AllocationResponse.rejectedAllocations"] += len(refusals)
        if self._by_key:
            for refusal in refusals:
                self._refused(refusal)

    def _read_released(self, releases: Sequence[si.AllocationRelease]) -> None:
        count = self.received
        for release in releases:
            count[_released_of(release.terminationType)] += 1
            self._released(release)

    def _read_released_asks(self, releases: Sequence[si.AllocationAskRelease]) -> None:
        for release in releases:
            self.received[f"AllocationResponse.releasedAsks.{_name(release.terminationType)}"] += 1
            self._ask_released(release)

    def _read_accepted(self, applications: Sequence[si.AcceptedApplication]) -> None:
        self.received["ApplicationResponse.accepted"] += len(applications)
        for accepted in applications:
            if known := self.runs.get(accepted.applicationID):  # else given up meanwhile
                self._accepted(known)

    def _read_rejected(self, applications: Sequence[si.RejectedApplication]) -> None:
        self.received["ApplicationResponse.rejected"] += len(applications)
        for rejected in applications:
            run = self.runs[rejected.applicationID]
            _APPLICATION.take(run, lifecycles.REJECT)
            self._discard_unplaced(run)
            _APPLICATION.take(run, lifecycles.FAIL)
            self._finish(run, REJECTED, rejected.reason)

    def _read_updated(self, applications: Sequence[si.UpdatedApplication]) -> None:
        count = self.received
        for updated in applications:
            state = updated.state
            count[f"ApplicationResponse.updated.{state}"] += 1
            if run := self.runs.get(updated.applicationID):
                self._updated(run, state, updated.message)

    def _read_nodes(self, response: si.NodeResponse) -> None:
        self.received["NodeResponse.accepted"] += len(response.accepted)
        for rejected in response.rejected:
            raise SimulationError(f"node {rejected.nodeID} was rejected: {rejected.reason}")

    # -- applications --------------------------------------------------------------------------

    def _accepted(self, run: Run) -> None:
        _APPLICATION.take(run, lifecycles.ACCEPT)
        if self._placed is not None:
            run.queue = self._placed(run.key)
        if run.gang and not run.has_started:
            _APPLICATION.take(run, lifecycles.TRY_RESERVE)
            self._ask(run.placeholders)
            if run.reserved:  # before a restart of the scheduler or the resource manager
                self._run(run)
        else:
            self._run(run)

    def _run(self, run: Run) -> None:
        _APPLICATION.take(run, lifecycles.RUN)
        self._ready.append(run)

    def _updated(self, run: Run, state: str, message: str) -> None:
        if state == application_fsm.COMPLETED:
            _APPLICATION.take(run, lifecycles.COMPLETE)
            if run.started >= 0:
                self._finish(run, COMPLETED)
            else:
                self._finish(run, FAILED, "the scheduler completed it before all its pods ran")
        elif state == application_fsm.RESUMING:
            self.gangs["soft_timeouts"] += 1
            if run.state == lifecycles.RESERVING:
                _APPLICATION.take(run, lifecycles.RESUME)
        elif state == application_fsm.KILLING:
            self.gangs["hard_timeouts"] += run.gang
            run.reason = message
            _APPLICATION.take(run, lifecycles.FAIL)
            self._discard_unplaced(run)
        elif state == application_fsm.KILLED and run.state == lifecycles.FAILING:
            _APPLICATION.take(run, lifecycles.FAIL)
            self._finish(run, FAILED, run.reason)

    def _discard_unplaced(self, run: Run) -> None:
        """Discard pods that wait for an allocation."""
        for pod in run.real:
            if pod.state in lifecycles.UNPLACED:
                _TASK.take(pod, lifecycles.FAIL)
                _TASK.take(pod, lifecycles.COMPLETE)

    def _give_up(self, run: Run, outcome: str, reason: str) -> None:
        """Remove the application: the job cannot continue."""
        self._withdraw(run)
        self._finish(run, outcome, reason)

    def _resubmit(self, run: Run) -> None:
        """Submit the whole job again, from its beginning, after one of its pods was preempted."""
        self._withdraw(run)
        del self.runs[run.key]
        first = run.key.removesuffix(f"-again-{run.attempt - 1}")
        self.restarts += 1
        self.submit(run.job, f"{first}-again-{run.attempt}", run.attempt + 1)

    def _withdraw(self, run: Run) -> None:
        _APPLICATION.take(run, lifecycles.FAIL)
        _APPLICATION.take(run, lifecycles.FAIL)
        for pod in run.pods.values():
            self._let_go(pod)
            if pod.state != lifecycles.COMPLETED:
                _TASK.take(pod, lifecycles.COMPLETE)
        self.outbox.remove(run)

    def _finish(self, run: Run, outcome: str, *reasons: str) -> None:
        del self.runs[run.key]
        self.fates.append(
            Fate(
                run.job,
                outcome,
                run.started,
                reasons,
                run.queue,
                ended=run.ended if outcome == COMPLETED else self.clock.now,
                nodes=run.nodes,
                waited_for=run.waited_for,
            )
        )

    # -- asks and allocations --------------------------------------------------------------------

    def _ask(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            if pod.state != lifecycles.NEW:  # it was allocated before a restart
                continue
            _TASK.take(pod, lifecycles.INIT)
            _TASK.take(pod, lifecycles.SUBMIT)
            self.outbox.ask(pod)

    def _refused(self, refusal: si.RejectedAllocationAsk | si.RejectedAllocation) -> None:
        run = self.runs.get(refusal.applicationID)
        if run is None or run.state not in lifecycles.ASKS:
            return
        pod = run.pods[refusal.allocationKey]
        _TASK.take(pod, lifecycles.REJECT)
        _TASK.take(pod, lifecycles.FAIL)
        self._give_up(run, REJECTED, refusal.reason)

    def _allocated(self, allocation: si.Allocation) -> None:
        run = self.runs.get(allocation.applicationID)
        pod = run.pods.get(allocation.allocationKey) if run else None
        if pod is None:
            raise SimulationError(
                f"allocation {allocation.UUID} of application {allocation.applicationID}"
                " belongs to no pod"
            )
        if pod.state in lifecycles.ON_NODE and (pod.uuid == allocation.UUID or self._by_key):
            pod.uuid = allocation.UUID
            return  # the echo of a report after a restart
        pod.uuid = allocation.UUID
        pod.node = allocation.nodeID
        now, resources = self.clock.now, pod.resources
        pod.holding = Holding(pod.node, resources, now, -1)
        self.usage.change(now, resources.get(self.usage.resource, 0), pod.placeholder)
        if pod.state == lifecycles.SCHEDULING:
            _TASK.take(pod, lifecycles.ALLOCATE)
            self.clock.after(self._start, self._bind, pod)
        else:
            # The pod is gone: like the shim, release the late allocation.
            self._send(pod, si.TerminationType.STOPPED_BY_RM)

    def _bind(self, pod: Pod) -> None:
        if pod.state != lifecycles.ALLOCATED:
            return  # it was stopped before it ran
        _TASK.take(pod, lifecycles.BIND)
        run = pod.run
        if not pod.placeholder:
            run.bound += 1
            if run.bound == len(run.real):
                run.started = self.clock.now
                run.nodes = tuple(sorted({each.node for each in run.real}))
                self.running += 1
                self.clock.after(run.ended - run.started, self._end, run)
            return
        run.held[pod.group] += 1
        if run.state == lifecycles.RESERVING:
            _APPLICATION.take(run, lifecycles.UPDATE_RESERVATION)
            if run.reserved:
                self.gangs["placed"] += 1
                self._run(run)

    def _end(self, run: Run) -> None:
        """The job is finished: its pods end together, which is reported after a delay."""
        self.running -= 1
        ended = [pod for pod in run.real if pod.state == lifecycles.BOUND]
        for pod in ended:
            _TASK.take(pod, lifecycles.COMPLETE)
        self.clock.after(self._confirmation, self._report_end, ended)

    def _report_end(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            self._send(pod, si.TerminationType.STOPPED_BY_RM)

    # -- releases --------------------------------------------------------------------------------

    def _released(self, release: si.AllocationRelease) -> None:
        run = self.runs.get(release.applicationID)
        pod = run.pods.get(release.allocationKey) if run else None
        if run is None or pod is None:
            return  # the application was removed together with its pods
        kind = release.terminationType
        if kind in _STOPPED:
            self._lose_pod(pod, release.message or "it lost a pod")
            return
        if self._by_key and pod.state == lifecycles.SCHEDULING:
            self._ask_released(release)
            return
        _APPLICATION.take(run, lifecycles.RELEASE_ALLOCATION)
        if pod.state in lifecycles.HOLDS:
            pod.kind = kind
            _TASK.take(pod, lifecycles.KILL)
            self.clock.after(self._release, self._stopped, pod)
        elif pod.state == lifecycles.COMPLETED:
            # Demanded again: the confirmation was lost, or the pod ended at the same moment.
            pod.kind = kind
            self.clock.after(self._confirmation, self._confirm, pod)

    def lose_node(self, node: str) -> None:
        """Remove the node and its pods."""
        for pod in self.pods_on_nodes():
            if pod.node == node:
                self._lose_pod(pod, f"node {node} is gone")

    def _lose_pod(self, pod: Pod, why: str) -> None:
        """A pod was lost with its node. A placeholder is created again if it is needed; without a
        real pod the job cannot continue."""
        self._let_go(pod)
        if pod.state == lifecycles.COMPLETED:
            return
        run = pod.run
        _TASK.take(pod, lifecycles.COMPLETE)
        if not pod.placeholder:
            if run.key in self.runs:
                self._give_up(run, FAILED, why)
            return
        run.alive -= 1
        if run.state == lifecycles.RESUMING:
            _APPLICATION.take(run, lifecycles.TASK_COMPLETED)
            if not run.alive:
                self._run(run)
            return
        run.renew_placeholders()
        if run.state == lifecycles.RESERVING:
            self._ask(run.placeholders)

    def _ask_released(self, release: si.AllocationAskRelease | si.AllocationRelease) -> None:
        run = self.runs.get(release.applicationID)
        kind = release.terminationType
        if run is None or kind in _STOPPED:
            return
        before = run.state
        _APPLICATION.take(run, lifecycles.RELEASE_ASK)
        if run.state != before:
            self._ready.append(run)
        pod = run.pods[release.allocationKey]
        if pod.state == lifecycles.SCHEDULING:
            pod.kind = kind
            _TASK.take(pod, lifecycles.KILL)
            self._stopped(pod)  # it never ran, so nothing has to stop

    def _stopped(self, pod: Pod) -> None:
        if pod.state != lifecycles.KILLING:
            return  # its job was given up meanwhile
        _TASK.take(pod, lifecycles.DIE)
        self.clock.after(self._confirmation, self._confirm, pod)

    def _confirm(self, pod: Pod) -> None:
        run = pod.run
        if pod.state == lifecycles.KILLED:
            _TASK.take(pod, lifecycles.COMPLETE)
            self._count_gone(pod)
        if run.key not in self.runs:
            return
        if self._lose and self._chance.random() < self._lose:
            self.gangs["confirmations_lost"] += 1
            return
        self._send(pod, pod.kind)
        if self._repeat and self._chance.random() < self._repeat:
            self.gangs["confirmations_repeated"] += 1
            self.clock.after(self._confirmation, self._again, pod)

    def _again(self, pod: Pod) -> None:
        self._send(pod, pod.kind)

    def _count_gone(self, pod: Pod) -> None:
        run = pod.run
        if pod.placeholder:
            run.alive -= 1
            self.gangs["replaced"] += pod.kind == _REPLACED
            if run.state == lifecycles.RESUMING:
                _APPLICATION.take(run, lifecycles.TASK_COMPLETED)
            if not run.alive and run.state in lifecycles.GATHERS:
                self._run(run)
        elif run.state == lifecycles.RUNNING:
            if pod.kind == _PREEMPTED and run.attempt < _MAX_ATTEMPTS:
                self._resubmit(run)
            else:
                self._give_up(run, FAILED, f"the scheduler took a pod back: {_name(pod.kind)}")

    def _send(self, pod: Pod, kind: Any) -> None:
        if pod.uuid:
            self._let_go(pod)
            self.outbox.release(pod, kind)
        else:
            self.outbox.release_ask(pod, kind)

    def _let_go(self, pod: Pod) -> None:
        if (held := pod.holding) is not None:
            now, resources = self.clock.now, held.resources
            if amount := resources.get(self.usage.resource, 0):
                self.usage.change(now, -amount, pod.placeholder)
            self.holdings.append(Holding(held.node, resources, held.since, now))
            pod.holding = None


@cache
def _name(kind: Any) -> str:
    return si.TerminationType.Name(kind)


@cache
def _released_of(kind: Any) -> str:
    return f"AllocationResponse.released.{_name(kind)}"


Action = Callable[[Any], None]


class Clock:
    """Virtual time. A heap of actions. `now` is in ns and never goes back; `done` counts executed actions.

    `planned` has the actions that are not executed yet, the next one first: its time in ns, its number,
    the action and the subject.
    """

    __slots__ = ("_number", "done", "now", "planned")

    def __init__(self) -> None:
        self.now = 0
        self.done = 0
        self._number = 0
        self.planned: list[tuple[int, int, Action, Any]] = []

    def after(self, ns: int, action: Action, subject: object) -> None:
        """Plan ``action(subject)`` for `ns` nanoseconds from now; 0 means later in this instant."""
        self._number += 1
        heapq.heappush(self.planned, (self.now + ns, self._number, action, subject))

    def run_due(self) -> None:
        """Execute all actions that are due now, including those that are planned for now
        meanwhile."""
        heap, now = self.planned, self.now
        while heap and heap[0][0] <= now:
            _, _, action, subject = heapq.heappop(heap)
            action(subject)
            self.done += 1
