"""What the simulated resource manager keeps of a job that is alive: its application and pods."""

from __future__ import annotations

from typing import Any

from quadriga.sim.lifecycles import NEW
from quadriga.sim.workload.model import Job, Resources

__all__ = ["Pod", "Run"]


class Pod:
    """A placeholder or a real pod. `key` is its allocation key; it lives a ``shim-task``.

    `uuid` is that of its allocation, empty before there is one; `holds` what that takes of the
    watched resource; `kind` why it is being stopped (a TerminationType).
    """

    __slots__ = ("group", "holds", "key", "kind", "placeholder", "run", "state", "uuid")

    def __init__(self, run: Run, key: str, group: int, placeholder: bool) -> None:
        self.state = NEW
        self.run = run
        self.key = key
        self.group = group
        self.placeholder = placeholder
        self.uuid = ""
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
        "placeholders",
        "pods",
        "real",
        "reason",
        "started",
        "state",
    )

    def __init__(self, job: Job, key: str) -> None:
        self.state = NEW
        self.job = job
        self.key = key
        self.gang = job.gang
        self.started = -1
        self.asked = False  # its real asks were sent
        self.reason = ""  # why it dies
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
