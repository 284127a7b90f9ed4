"""What jobs wait for: looked at again each time that the wait of a job has doubled.

So what was seen last before a job started stands for half of its wait or more, and a job costs a look for each
doubling, however many wait.
"""

# Not compiled: it does not run for every message.

from __future__ import annotations

from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from typing import Final

from quadriga.base.times import SECOND
from quadriga.core.model.application import Application
from quadriga.core.scheduling.skipped import cause_of
from quadriga.sim.pods import Run

#: the first look is after this wait (ns): a shorter one has no cause but the latencies
_FIRST: Final = 2 * SECOND


class Causes:
    """`application` finds the application of a key in the scheduler, or ``None``. All times are in ns."""

    def __init__(self, application: Callable[[str], Application | None]) -> None:
        self._application = application
        #: when to look, at whom, and its submission
        self._looks: list[tuple[int, str, int]] = []

    def add(self, key: str, now: int) -> None:
        """The job of this application was submitted."""
        heappush(self._looks, (now + _FIRST, key, now))

    def look(self, now: int, runs: Mapping[str, Run]) -> None:
        """Look at those who are due before this instant, before anything happens then."""
        looks = self._looks
        while looks and looks[0][0] < now:
            due, key, since = heappop(looks)
            run, app = runs.get(key), self._application(key)
            if run is None or app is None or run.started >= 0:
                continue
            run.waited_for = _cause(app) or run.waited_for
            while due < now:  # nothing has happened in between
                due += due - since
            heappush(looks, (due, key, since))


def _cause(app: Application) -> str:
    """What the first of its asks waits for; empty if none waits, or some have nodes."""
    group = next(iter(app.groups.values()), None)
    if group is None or app.placeholders or app.allocations:  # it has nodes, and starts
        return ""
    if cause := cause_of(app, group):
        return cause[1]
    shape, nodes = group.shape, app.partition.nodes.values()
    fits = any(each.open and not each.reservation and shape.fits(each.available) for each in nodes)
    return "its turn" if fits and not app.gang.lacks else "room on nodes"
