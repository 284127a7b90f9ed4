"""The number of running applications and of containers, sampled every minute (2.10)."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from quadriga.base.times import MINUTE

if TYPE_CHECKING:
    from quadriga.core.views.objects import ApplicationSample, ContainerSample

#: ns between two samples
INTERVAL: Final = MINUTE


class Sample(NamedTuple):
    """Running applications and held allocations, over all partitions, at ``time`` (ns)."""

    time: int
    applications: int
    containers: int


class History:
    """The last ``size`` samples; 1440 are those of a day."""

    __slots__ = ("_samples",)

    def __init__(self, size: int = 1440) -> None:
        self._samples: deque[Sample] = deque(maxlen=size)

    def __len__(self) -> int:
        return len(self._samples)

    def add(self, sample: Sample) -> None:
        """Add a sample; the oldest is dropped if there are too many."""
        self._samples.append(sample)

    def applications(self) -> list[ApplicationSample]:
        """Oldest first; the numbers are texts (2.14)."""
        return [
            {"timestamp": each.time, "totalApplications": str(each.applications)}
            for each in self._samples
        ]

    def containers(self) -> list[ContainerSample]:
        """Oldest first; the numbers are texts (2.14)."""
        return [
            {"timestamp": each.time, "totalContainers": str(each.containers)}
            for each in self._samples
        ]
