"""The allocated amount of one resource, as a step function of virtual time."""

from __future__ import annotations

from quadriga.sim.workload.model import GPU, VCORE, Workload

DAY = 86_400_000_000_000  # ns


def resource_of(workload: Workload) -> str:
    """The resource to watch: GPUs if nodes have them and jobs ask for them, else vcores."""
    if workload.capacity().get(GPU):
        for job in workload.jobs:
            if any(member.resources.get(GPU) for member in job.members):
                return GPU
    return VCORE


class Usage:
    """Integrates allocated amounts exactly over days of virtual time; all sums are integers.

    `held` is the part that placeholders occupy.
    """

    __slots__ = ("_since", "allocated", "days", "held", "held_area", "peak", "resource")

    def __init__(self, resource: str) -> None:
        self.resource = resource
        self.allocated = 0
        self.held = 0
        self.peak = 0
        self.held_area = 0
        self.days: list[int] = []  # amount times ns, by day
        self._since = 0

    def change(self, now: int, amount: int, placeholder: bool) -> None:
        """Add `amount`, which may be negative, from `now` on."""
        if now != self._since:
            self.settle(now)
        self.allocated += amount
        if placeholder:
            self.held += amount

    def settle(self, now: int) -> None:
        """Integrate up to `now`. The peak is taken over completed instants."""
        since, allocated = self._since, self.allocated
        self._since = max(since, now)
        self.held_area += self.held * (self._since - since)
        if allocated > self.peak:
            self.peak = allocated
        while since < now:
            day, into = divmod(since, DAY)
            until = min(now, since + DAY - into)
            while len(self.days) <= day:
                self.days.append(0)
            self.days[day] += allocated * (until - since)
            since = until

    @property
    def until(self) -> int:
        """The time up to which the usage is integrated, in ns."""
        return self._since

    @property
    def area(self) -> int:
        """Amount times ns over the whole run."""
        return sum(self.days)
