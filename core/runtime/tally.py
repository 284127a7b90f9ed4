"""Counters of what has happened, for metrics that only grow (2.15)."""

from __future__ import annotations

from collections import Counter
from typing import Final

#: applications that ended are counted for at most this number of queues, removed ones included
_QUEUES: Final = 10_000


class Tally:
    """Counts since the scheduler started, over all resource managers and partitions."""

    __slots__ = (
        "applications_accepted",
        "applications_rejected",
        "asks_rejected",
        "ended",
        "forgotten",
        "gang_attempts",
        "nodes_removed",
        "rejected",
        "reservations",
        "rounds",
        "watchdog",
    )

    def __init__(self) -> None:
        self.applications_accepted = 0
        self.applications_rejected = 0
        #: asks, and allocations that could not be recovered
        self.asks_rejected = 0
        #: the number of applications that ended in each state, by partition key and queue path; each counts
        #: in its queue and all above. The paths that were not used for longest are dropped
        self.ended: dict[tuple[str, str], Counter[str]] = {}
        #: ended and rejected applications that expired early because there were too many
        self.forgotten: Counter[str] = Counter()
        #: attempts to place all members of a gang in one step, by result: placed, preempted, or what the
        #: gang lacked
        self.gang_attempts: Counter[str] = Counter()
        self.nodes_removed = 0
        #: rejections on arrival, by kind of entity and kind of reason (``refusal.Refused``)
        self.rejected: Counter[tuple[str, str]] = Counter()
        #: reservations that were made
        self.reservations = 0
        #: rounds of scheduling (5.2), with or without a decision
        self.rounds = 0
        #: the watchdog's reports, by lifecycle and state
        self.watchdog: Counter[tuple[str, str]] = Counter()

    def application_ended(self, partition: str, path: str, state: str) -> None:
        """Count an application of this queue that ended. The counts outlast the queue, which may be
        created again."""
        ended = self.ended
        while path:
            counts = ended.pop((partition, path), None)
            if counts is None:
                counts = Counter()
            counts[state] += 1
            ended[partition, path] = (
                counts  # moved to the end: the first ones were not used for longest
            )
            path = path.rpartition(".")[0]
        while len(ended) > _QUEUES:
            del ended[next(iter(ended))]
