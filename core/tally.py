"""What has happened so far and no book remembers: numbers for metrics that only grow (2.15)."""

from __future__ import annotations

__all__ = ["Tally"]


class Tally:
    """Counts since the scheduler started, over all resource managers and partitions."""

    __slots__ = (
        "applications_accepted",
        "applications_rejected",
        "asks_rejected",
        "nodes_removed",
    )

    def __init__(self) -> None:
        self.applications_accepted = 0
        self.applications_rejected = 0
        #: asks, and allocations that could not be recovered
        self.asks_rejected = 0
        self.nodes_removed = 0
