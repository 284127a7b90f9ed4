"""A foreign allocation: resources of a node used outside this scheduler (X19)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.core.model.resources import Vector

if TYPE_CHECKING:
    from quadriga.core.model.node import Node

__all__ = ["ForeignAllocation"]


class ForeignAllocation:
    """Amounts (``vector``) of ``node`` under a key that is unique in the partition.

    A foreign allocation has no ask, no application and no lifecycle. It occupies the node until its
    removal is reported. ``created`` is an instant (ns), by the tag ``creationTime`` if present.
    ``preemptable`` is false for static ones, which belong to the node itself.
    """

    __slots__ = (
        "allocation_key",
        "created",
        "node",
        "preemptable",
        "priority",
        "tags",
        "vector",
    )

    def __init__(
        self,
        allocation_key: str,
        node: Node,
        vector: Vector,
        *,
        tags: dict[str, str],
        priority: int = 0,
        created: int = 0,
        preemptable: bool = True,
    ) -> None:
        self.allocation_key = allocation_key
        self.node = node
        self.vector = vector
        self.tags = tags
        self.priority = priority
        self.created = created
        self.preemptable = preemptable
