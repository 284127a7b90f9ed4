"""The order of applications by expected run times: the policy ``expected``. See D326.

The score is (waiting time / expected run time)³ x size, after Tang et al., "Fault-aware, utility-based job
scheduling on Blue Gene/P systems" (CLUSTER 2009), whose WFP3 it is. The size is the dominant share of the
partition. Who waits long for little comes first, and who waits long enough comes first at last.

Scores change as time passes. None is computed for a decision: a score lasts until the waiting time, which counts
in steps of an eighth at most, has reached its next step. So an application costs eight updates each time that
its waiting time doubles, however many others wait, and a decision costs what it costs in the order of
submission. The expected run time and the size are those of the last step as well.
"""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import islice
from operator import add
from typing import TYPE_CHECKING, Final, NamedTuple

from quadriga.base.times import SECOND
from quadriga.core.model import predictions
from quadriga.core.model.run_times import Expected
from quadriga.core.resources.vectors import Totals

if TYPE_CHECKING:
    from quadriga.core.model.application import Application
    from quadriga.core.model.waiting import Waiting

#: at most this many scores are computed again in one call for decisions; the others keep theirs until the next
_MOST: Final = 5_000
#: at most this many groups of an application's asks are looked at
_GROUPS: Final = 8
#: the size of the whole partition
WHOLE: Final = 1 << 32


class Terms(NamedTuple):
    """What the score of an application is made of: since when it waits (ns), its waiting time as it counts
    (s), what it is expected to run, its size in parts of `WHOLE`."""

    since: int
    waited: int
    expected: Expected
    size: int

    @property
    def run_time(self) -> int:
        """The expected run time as it counts (s)."""
        return max(1, self.expected.time // SECOND)

    @property
    def score(self) -> int:
        return self.waited**3 * self.size * WHOLE // self.run_time**3

    def __str__(self) -> str:
        return (
            f"waiting time {self.waited} s, run time {self.run_time} s ({self.expected.source}), "
            f"{self.size / WHOLE:.3g} of the partition"
        )


def terms_of(app: Application) -> Terms | None:
    """What the score is made of in this round; ``None`` while none of its asks waits."""
    heads = [group.head for group in islice(app.groups.values(), _GROUPS) if group.asks]
    if not heads:
        return None
    since = min(ask.created for ask in heads)
    known = [expected for ask in heads if (expected := predictions.run_time(ask)) is not None]
    expected = max(known) if known else predictions.typical(app)
    waited = max(0, app.partition.node_index.now - since) // SECOND
    return Terms(since, _counted(waited), expected, _size(app))


def begin(app: Application) -> None:
    """An ask of the application begins to wait, or its queue has the policy from now on."""
    own = terms_of(app)
    if own is None:
        app.score_due = 0
        return
    if own.score != app.score:
        app.score = own.score
        app.touch()
    due = own.since + _counted(own.waited, 1) * SECOND
    if due != app.score_due:
        app.score_due = due
        heappush(app.partition.waiting.to_score, (due, app.seq, app))


def renew(waiting: Waiting, now: int) -> None:
    """Decisions follow: compute the scores of those whose waiting time has reached its next step."""
    heap, left = waiting.to_score, _MOST
    while heap and heap[0][0] <= now and left:
        due, _, app = heappop(heap)
        if app.score_due == due:
            left -= 1
            app.score_due = 0
            if app.queue.expected:
                begin(app)


def _counted(waited: int, more: int = 0) -> int:
    """A waiting time (s), rounded down to one of eight steps between powers of two, or to a later step."""
    step = 1 << max(0, waited.bit_length() - 4)
    return (waited // step + more) * step


def _size(app: Application) -> int:
    """The largest share that all of its gang, else all that it holds and asks for, has of a resource type."""
    whole: Totals = app.partition.capacity
    gang = app.gang.size
    asked = gang if gang is not None else list(map(add, app.allocated, app.pending))
    return max(
        [WHOLE * each // whole[at] for at, each in enumerate(asked) if each and whole[at]],
        default=WHOLE,
    )
