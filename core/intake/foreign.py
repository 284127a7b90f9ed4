"""What others use of the nodes: foreign allocations and occupied resources (X19, 2.20).

A node may report what others use of it as one sum, ``occupiedResource``: an anonymous foreign
allocation. Newer resource managers report each of them by itself, as an allocation with a tag. Both
occupy the node and nothing else: no queue, no application, no user is charged, nobody preempts them,
and nothing is evicted where they leave less than is allocated already (V2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.core.intake import tags
from quadriga.core.model import accounting
from quadriga.core.model.foreign import ForeignAllocation
from quadriga.core.model.resources import Vector
from quadriga.core.runtime.kernel import Kernel
from quadriga.core.runtime.outbox import BY_SCHEDULER
from quadriga.si import Allocation as AllocationMessage
from quadriga.si import AllocationRelease, TerminationType
from quadriga.si.constants import FOREIGN_STATIC, KEY_FOREIGN, TAG_FOREIGN

if TYPE_CHECKING:
    from quadriga.core.model.node import Node
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.resource_manager import ResourceManager

__all__ = ["is_foreign", "occupy", "problem_of", "release", "take_up"]

#: how the release of a foreign allocation is answered
_TEXT = "foreign allocation remove as per RM request"


def is_foreign(message: AllocationMessage) -> bool:
    """Whether the tag says that the allocation is somebody else's."""
    known = message.allocationTags
    return bool(known) and (TAG_FOREIGN in known or KEY_FOREIGN in known)


def problem_of(message: AllocationMessage) -> str:
    """Why this foreign allocation cannot be taken up, or an empty text."""
    if not message.allocationKey:
        return "is foreign and has no allocationKey"
    for name, quantity in sorted(message.resourcePerAlloc.resources.items()):
        if quantity.value < 0:
            return f"is foreign and has a negative resourcePerAlloc[{name}]"
    return ""


def take_up(
    kernel: Kernel, partition: Partition, node: Node, message: AllocationMessage
) -> ForeignAllocation:
    """A foreign allocation is new, has changed, or has moved to this node: the key says which.

    It has been checked by ``problem_of``. The resource manager gets no answer: nothing is to be
    started.
    """
    key = message.allocationKey
    known = partition.foreign.get(key)
    said = dict(message.allocationTags)
    allocation = ForeignAllocation(
        key,
        node,
        partition.registry.read(message.resourcePerAlloc),
        tags=said,
        priority=message.priority,
        created=known.created if known is not None else tags.created(said, kernel.now),
        preemptable=tags.tag(said, TAG_FOREIGN, KEY_FOREIGN) != FOREIGN_STATIC,
    )
    if known is not None:
        del known.node.foreign[key]
        if known.node is not node:
            _change(known.node, known.vector, ())
    partition.foreign[key] = node.foreign[key] = allocation
    before = known.vector if known is not None and known.node is node else ()
    _change(node, before, allocation.vector)
    return allocation


def release(kernel: Kernel, rm: ResourceManager, message: AllocationRelease) -> None:
    """A release without an application: the foreign allocation of this key is gone.

    It is confirmed like any other release by the resource manager (R3). Anything else that names no
    application is an independent allocation, which there are none of (I42).
    """
    partition = rm.partitions.get(message.partitionName or "default")
    key = message.allocationKey
    known = partition.foreign.pop(key, None) if partition is not None else None
    if known is None:
        kernel.note(f"release of unknown foreign allocation {key!r} ignored (I42)")
        return
    del known.node.foreign[key]
    _change(known.node, known.vector, ())
    if message.terminationType not in BY_SCHEDULER:  # others only confirm, and are not answered
        kernel.outbox.released_foreign(known, TerminationType.STOPPED_BY_RM, _TEXT)


def occupy(node: Node, anonymous: Vector) -> None:
    """The node reports how much of it others use, apart from what is reported by itself."""
    before, node.anonymous = node.anonymous, anonymous
    _change(node, before, anonymous)


def _change(node: Node, before: Vector, after: Vector) -> None:
    """This much of what is occupied becomes that."""
    occupied = tuple(node.occupied)
    for index, value in enumerate(before):
        node.occupied[index] -= value
        node.available[index] += value
    for index, value in enumerate(after):
        node.occupied[index] += value
        node.available[index] -= value
    accounting.node_gained(node)
    # of a new node nothing is known yet: ``node_added`` follows
    if node.entries and tuple(node.occupied) != occupied:
        node.partition.rm.observer.node_occupied(node)
