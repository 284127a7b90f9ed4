"""What has happened so far and no book remembers: numbers for metrics that only grow (2.15)."""

from __future__ import annotations

from collections import Counter

__all__ = ["Tally"]


class Tally:
    """Counts since the scheduler started, over all resource managers and partitions."""

    __slots__ = (
        "applications_accepted",
        "applications_rejected",
        "asks_rejected",
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
