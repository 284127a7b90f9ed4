"""The changes of a partition that the next quota events must examine.

The entities mark their changes here while their resource manager tracks events;
``events.quota_events`` empties the marks at the end of a round.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quadriga.core.model.account import Ledger
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import AskGroup
    from quadriga.core.model.queue import LeafQueue, Queue
    from quadriga.core.model.shapes import Shape

__all__ = ["QuotaChanges"]


class QuotaChanges:
    """Changes in one partition since its last quota events. Each mapping is an ordered set."""

    __slots__ = ("applications", "groups", "leaves", "ledgers", "queues", "shapes")

    def __init__(self) -> None:
        #: groups with new asks, or of an application that changed its lane or state
        self.groups: dict[AskGroup, None] = {}
        #: shapes that a quota has blocked or unblocked
        self.shapes: dict[Shape, None] = {}
        #: applications with other allocated resources
        self.applications: dict[Application, None] = {}
        #: queues with another quota
        self.queues: dict[Queue, None] = {}
        #: leaves and ledgers with another number of counted applications, or another limit of it
        self.leaves: dict[LeafQueue, None] = {}
        self.ledgers: dict[Ledger, None] = {}
