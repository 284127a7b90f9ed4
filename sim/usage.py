"""How much of one resource is allocated, as a step function of virtual time."""

from __future__ import annotations

from quadriga.sim.workload.model import GPU, VCORE, Workload

__all__ = ["DAY", "Usage", "resource_of"]

DAY = 86_400_000_000_000  # ns


def resource_of(workload: Workload) -> str:
    """The resource to watch: GPUs where nodes have them and jobs ask for them, else vcores."""
    if workload.capacity().get(GPU):
        for job in workload.jobs:
            if any(member.resources.get(GPU) for member in job.members):
                return GPU
    return VCORE


class Usage:
    """Allocated amounts integrated exactly over days of virtual time; all sums are whole numbers.

    `held` is the part that placeholders hold.
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
        """From `now` on, `amount` more (or less) is allocated."""
        if now != self._since:
            self.settle(now)
        self.allocated += amount
        if placeholder:
            self.held += amount

    def settle(self, now: int) -> None:
        """Account for the time up to `now`. The peak looks at instants that are over."""
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
        """The time up to which it is accounted for, in ns."""
        return self._since

    @property
    def area(self) -> int:
        """Amount times ns over the whole run."""
        return sum(self.days)
