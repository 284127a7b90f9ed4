"""Which parts of a partition quota events have to look at again.

The entities mark here what has changed, as long as their resource manager tracks events, and
``events.quota_events`` empties it at the end of a round.
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
    """What has changed in one partition since its last quota events. Each mapping is an ordered set."""

    __slots__ = ("applications", "groups", "leaves", "ledgers", "queues", "shapes")

    def __init__(self) -> None:
        #: groups of asks with new asks, or of an application that is served differently now
        self.groups: dict[AskGroup, None] = {}
        #: shapes that a quota has stopped, or has room for again
        self.shapes: dict[Shape, None] = {}
        #: applications that hold more, or less
        self.applications: dict[Application, None] = {}
        #: queues whose quota is another one
        self.queues: dict[Queue, None] = {}
        #: leaves and ledgers in which the number of counted applications, or its limit, is another one
        self.leaves: dict[LeafQueue, None] = {}
        self.ledgers: dict[Ledger, None] = {}
