"""A foreign allocation: what somebody whom the scheduler does not know uses of a node (X19)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.core.model.resources import Vector

if TYPE_CHECKING:
    from quadriga.core.model.node import Node

__all__ = ["ForeignAllocation"]


class ForeignAllocation:
    """``vector`` of ``node``, known by ``allocation_key``, which is unique in the partition.

    It has no ask, no application and no life of its own: it occupies the node from the moment it is
    reported to the moment it is said to be gone. ``created`` is ns, by the tag ``creationTime`` where
    there is one. ``preemptable`` is false for static ones, which belong to the node itself.
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
