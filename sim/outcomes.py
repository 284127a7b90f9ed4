"""What became of each job of a simulation."""

# Not compiled: it does not run for every message.

from __future__ import annotations

from typing import Final, NamedTuple

from quadriga.base.times import SECOND
from quadriga.sim.workload.model import Job

COMPLETED: Final = "completed"
#: it could not run on the empty cluster
UNSCHEDULABLE: Final = "unschedulable"
#: it fits the empty cluster, and others hold what it needs
NEVER_STARTED: Final = "never_started"
#: the scheduler refused it
REJECTED: Final = "rejected"
#: it was killed, or lost a pod
FAILED: Final = "failed"

OUTCOMES: Final = (COMPLETED, UNSCHEDULABLE, NEVER_STARTED, REJECTED, FAILED)


class ReservedNode(NamedTuple):
    """A node that is reserved for an ask of an application."""

    node: str
    application: str
    ask: str


class HeldBy(NamedTuple):
    """What one job needs and others hold.

    ``gathering`` and ``running`` are applications with pods on nodes that it needs, or in a quota that
    has too little room for it: placeholders of a gang that gathers, or other pods. ``reservations`` are
    nodes with room for it. ``quotas`` are the owners of quotas with too little room.
    """

    gathering: tuple[str, ...] = ()
    running: tuple[str, ...] = ()
    reservations: tuple[ReservedNode, ...] = ()
    quotas: tuple[str, ...] = ()


class Fate(NamedTuple):
    """The end of a job. `started` and `ended` are in ns, -1 if it never ran, or has not ended; `queue` is the queue
    it was placed in, empty if that is its own; `nodes` are those of its last pods. A job that never started has
    `held_by`. `waited_for` is what it waited for most, as far as causes were watched."""

    job: Job
    outcome: str
    started: int
    reasons: tuple[str, ...] = ()
    queue: str = ""
    held_by: HeldBy | None = None
    ended: int = -1
    nodes: tuple[str, ...] = ()
    waited_for: str = ""

    @property
    def wait(self) -> int:
        """From its submission until its last pod ran (ns)."""
        return self.started - self.job.submit_s * SECOND
