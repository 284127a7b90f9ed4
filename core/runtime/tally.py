"""What has happened so far and no book remembers: numbers for metrics that only grow (2.15)."""

from __future__ import annotations

from collections import Counter
from typing import Final

__all__ = ["Tally"]

#: queues whose ends are counted, those that are gone among them
_QUEUES: Final = 10_000


class Tally:
    """Counts since the scheduler started, over all resource managers and partitions."""

    __slots__ = (
        "applications_accepted",
        "applications_rejected",
        "asks_rejected",
        "ended",
        "forgotten",
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
        #: how many applications have ended in a state, by the key of a partition and the path of a queue;
        #: each counts in its queue and all above. The least used paths are forgotten
        self.ended: dict[tuple[str, str], Counter[str]] = {}
        #: ended and rejected applications that expired before their time, as there were too many
        self.forgotten: Counter[str] = Counter()
        self.nodes_removed = 0
        #: what was rejected on arrival, by what it is and the kind of reason (``refusal.Refused``)
        self.rejected: Counter[tuple[str, str]] = Counter()
        #: reservations that were made
        self.reservations = 0
        #: rounds of scheduling (5.2), also those in which nothing was to be decided
        self.rounds = 0
        #: the watchdog's reports, by lifecycle and state
        self.watchdog: Counter[tuple[str, str]] = Counter()

    def application_ended(self, partition: str, path: str, state: str) -> None:
        """An application of this queue ended. The counts stay when the queue goes, and it may come
        back."""
        ended = self.ended
        while path:
            counts = ended.pop((partition, path), None)
            if counts is None:
                counts = Counter()
            counts[state] += 1
            ended[partition, path] = counts  # the least used ones are first
            path = path.rpartition(".")[0]
        while len(ended) > _QUEUES:
            del ended[next(iter(ended))]
