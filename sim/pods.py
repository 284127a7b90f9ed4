"""What the simulated resource manager keeps of a job that is alive: its application and pods."""

from __future__ import annotations

from typing import Any

from quadriga.si import TerminationType
from quadriga.sim import lifecycles
from quadriga.sim.workload.model import Job, Resources

__all__ = ["Pod", "Run"]


class Pod:
    """A placeholder or a real pod. `key` is its allocation key; it lives a ``shim-task``.

    `uuid` is that of its allocation and `node` where that is, both empty before there is one;
    `holds` what it takes of the watched resource; `kind` why it is being stopped (a
    TerminationType).
    """

    __slots__ = ("group", "holds", "key", "kind", "node", "placeholder", "run", "state", "uuid")

    def __init__(self, run: Run, key: str, group: int, placeholder: bool) -> None:
        self.state: lifecycles.TaskState = lifecycles.NEW
        self.run = run
        self.key = key
        self.group = group
        self.placeholder = placeholder
        self.uuid = ""
        self.node = ""
        self.holds = 0
        self.kind: Any = 0

    @property
    def resources(self) -> Resources:
        """What it asks for."""
        return self.run.job.members[self.group].resources


class Run:
    """A job with its application in the scheduler; `key` is the application's id.

    It lives a ``shim-application``. Times are ns, -1 before they are known. `held` counts the
    placeholders that run, by task group, and `alive` those that are not gone.
    """

    __slots__ = (
        "alive",
        "asked",
        "bound",
        "gang",
        "held",
        "job",
        "key",
        "lives",
        "placeholders",
        "pods",
        "queue",
        "real",
        "reason",
        "started",
        "state",
    )

    def __init__(self, job: Job, key: str, lives: int = 1) -> None:
        self.state: lifecycles.ApplicationState = lifecycles.NEW
        self.job = job
        self.key = key
        self.lives = lives  # how often it has been submitted
        self.gang = job.gang
        self.started = -1
        self.asked = False  # its real asks were sent
        self.reason = ""  # why it dies
        self.queue = ""  # where it was placed, if that is not its own queue
        self.bound = 0
        self.held = [0] * len(job.members)
        groups = [g for g, member in enumerate(job.members) for _ in range(member.count)]
        self.real = [Pod(self, f"{key}-{n}", g, False) for n, g in enumerate(groups)]
        self.placeholders = (
            [Pod(self, f"{key}-tg-{n}", g, True) for n, g in enumerate(groups)] if self.gang else []
        )
        self.alive = len(self.placeholders)
        #: by allocation key
        self.pods = {pod.key: pod for pod in (*self.placeholders, *self.real)}

    @property
    def reserved(self) -> bool:
        """Whether every task group has its placeholders running."""
        return all(
            held >= member.count for held, member in zip(self.held, self.job.members, strict=True)
        )

    @property
    def begun(self) -> bool:
        """Whether a real pod has, or had, its place: from then on no placeholder is asked for."""
        return any(pod.state in lifecycles.PLACED for pod in self.real)

    @property
    def over(self) -> bool:
        """Whether no pod of the job is left."""
        return all(pod.state == lifecycles.COMPLETED for pod in self.real)

    def begin_anew(self, remembers: bool) -> list[Pod]:
        """All that waits asks again. Without a memory so does what was about to be bound: the
        cluster does not know of its allocation. Returns the pods that lose theirs so.

        A gang none of whose real pods has a place needs all its placeholders, so it makes new ones
        for those that are gone or about to go.
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
                pod.kind = TerminationType.STOPPED_BY_RM  # nobody knows any more who wanted it
        self.asked = False
        self.renew_placeholders()
        return lost

    def renew_placeholders(self) -> None:
        """A gang that still gathers makes new placeholders for those that it has not any more."""
        if not self.gang or self.begun:
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
