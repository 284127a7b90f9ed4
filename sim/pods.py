"""The simulated resource manager's record of an active job: its application and its pods."""

from __future__ import annotations

from typing import Any

from quadriga.base.times import SECOND
from quadriga.si import TerminationType
from quadriga.sim import lifecycles
from quadriga.sim.fragmentation import Holding
from quadriga.sim.workload.model import Job, Resources


class Pod:
    """A placeholder or a real pod with the lifecycle ``shim-task``. `key` is its allocation key.

    `uuid` and `node` belong to its allocation and are empty before there is one. `holding` is what
    it takes of a node from the allocation until the scheduler is told that it ended. `kind` is the
    reason why it is being stopped (a TerminationType).
    """

    __slots__ = ("group", "holding", "key", "kind", "node", "placeholder", "run", "state", "uuid")

    def __init__(self, run: Run, key: str, group: int, placeholder: bool) -> None:
        self.state: lifecycles.TaskState = lifecycles.NEW
        self.run = run
        self.key = key
        self.group = group
        self.placeholder = placeholder
        self.uuid = ""
        self.node = ""
        self.holding: Holding | None = None
        self.kind: Any = 0

    @property
    def resources(self) -> Resources:
        """The resources that it asks for."""
        return self.run.job.members[self.group].resources


class Run:
    """A job with its application, which has the lifecycle ``shim-application``. `key` is the
    application id.

    Times are in ns, -1 before they are known. `held` counts the running placeholders by task group,
    `alive` those that have not ended.
    """

    __slots__ = (
        "alive",
        "asked",
        "bound",
        "gang",
        "held",
        "job",
        "key",
        "attempt",
        "nodes",
        "placeholders",
        "pods",
        "queue",
        "real",
        "reason",
        "started",
        "state",
        "waited_for",
    )

    def __init__(self, job: Job, key: str, attempt: int = 1) -> None:
        self.state: lifecycles.ApplicationState = lifecycles.NEW
        self.job = job
        self.key = key
        self.attempt = attempt  # number of submissions
        self.gang = job.gang
        self.started = -1
        self.asked = False  # whether its real asks were sent
        self.reason = ""  # reason of its failure
        self.queue = ""  # the queue it was placed in, if not its own
        self.nodes: tuple[str, ...] = ()  # of its pods, when it started
        self.waited_for = ""  # what it waited for when that was last watched
        self.bound = 0
        self.held = [0] * len(job.members)
        groups = [g for g, member in enumerate(job.members) for _ in range(member.count)]
        self.real = [Pod(self, f"{key}-{n}", g, False) for n, g in enumerate(groups)]
        self.placeholders = (
            [Pod(self, f"{key}-tg-{n}", g, True) for n, g in enumerate(groups)] if self.gang else []
        )
        self.alive = len(self.placeholders)
        #: allocation key -> pod
        self.pods = {pod.key: pod for pod in (*self.placeholders, *self.real)}

    @property
    def reserved(self) -> bool:
        """Whether every task group has all its placeholders running."""
        return all(
            held >= member.count for held, member in zip(self.held, self.job.members, strict=True)
        )

    @property
    def has_started(self) -> bool:
        """Whether a real pod has or had an allocation: from then on no placeholders are asked
        for."""
        return any(pod.state in lifecycles.PLACED for pod in self.real)

    @property
    def over(self) -> bool:
        """Whether the job has no pods left."""
        return all(pod.state == lifecycles.COMPLETED for pod in self.real)

    @property
    def ended(self) -> int:
        """When the job ends that has started."""
        return self.started + self.job.runtime_s * SECOND

    def start_over(self, remembers: bool) -> list[Pod]:
        """Send all pending asks again. Without memory this includes pods that were about to be
        bound, as the cluster does not know their allocations yet. Returns the pods that lose their
        allocations this way.

        A gang without an allocated real pod needs all its placeholders, so it creates new ones for
        those that have ended or are about to.
        """
        lost = []
        for pod in self.pods.values():
            forgotten = pod.state == lifecycles.ALLOCATED and not remembers
            if forgotten:
                lost.append(pod)
                pod.uuid = pod.node = ""
            if forgotten or pod.state in lifecycles.WAITS:
                lifecycles.SHIM_TASK.fire(pod, lifecycles.FORGET)
            elif pod.state == lifecycles.KILLING and not remembers:
                pod.kind = TerminationType.STOPPED_BY_RM  # the original reason is no longer known
        self.asked = False
        self.renew_placeholders()
        return lost

    def renew_placeholders(self) -> None:
        """Create new placeholders for a gang that still gathers, in place of those that have
        ended."""
        if not self.gang or self.has_started:
            return
        for at, pod in enumerate(self.placeholders):
            if pod.state not in lifecycles.WANTED:
                fresh = Pod(self, f"{self.key}-tg-{len(self.pods)}", pod.group, True)
                self.placeholders[at] = self.pods[fresh.key] = fresh
        self.held = [0] * len(self.held)
        for pod in self.placeholders:
            self.held[pod.group] += pod.state == lifecycles.BOUND
        everyone = [pod for pod in self.pods.values() if pod.placeholder]
        self.alive = sum(pod.state != lifecycles.COMPLETED for pod in everyone)
