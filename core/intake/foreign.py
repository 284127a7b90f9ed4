"""Foreign allocations and occupied resources of nodes (X19, 2.20).

A node may report the resources used by pods of other schedulers as one sum, ``occupiedResource``: an
anonymous foreign allocation. Newer resource managers report each foreign allocation with a tag. Both
reduce only what is available on the node: no queue, application or user is charged, they are not
preempted, and nothing is evicted if the node becomes overcommitted (V2).
"""

# Not compiled: it does not run for every ask.

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.core.intake import tags
from quadriga.core.model import accounting
from quadriga.core.model.node import ForeignAllocation
from quadriga.core.resources import units as units_of
from quadriga.core.resources.vectors import Vector
from quadriga.core.runtime.kernel import Kernel
from quadriga.core.runtime.outbox import BY_SCHEDULER
from quadriga.si import Allocation as AllocationMessage
from quadriga.si import AllocationRelease, TerminationType
from quadriga.si.constants import FOREIGN_STATIC, KEY_FOREIGN, TAG_FOREIGN

if TYPE_CHECKING:
    from quadriga.core.intake.routes import Answers
    from quadriga.core.model.node import Node
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.resource_manager import ResourceManager

#: the message in the confirmation of a foreign allocation's release
_TEXT = "foreign allocation remove as per RM request"


def is_foreign(message: AllocationMessage) -> bool:
    """Whether the allocation has the tag of foreign allocations."""
    known = message.allocationTags
    return bool(known) and (TAG_FOREIGN in known or KEY_FOREIGN in known)


def problem_of(message: AllocationMessage) -> str:
    """Return what is wrong with a reported foreign allocation, or an empty text."""
    if not message.allocationKey:
        return "is foreign and has no allocationKey"
    for name, quantity in sorted(message.resourcePerAlloc.resources.items()):
        if quantity.value < 0:
            return f"is foreign and has a negative resourcePerAlloc[{name}]"
    return ""


def record(
    kernel: Kernel, partition: Partition, node: Node, message: AllocationMessage
) -> ForeignAllocation:
    """Record a foreign allocation that is new, has changed, or has moved to this node.

    ``problem_of`` has checked the message. The resource manager gets no answer.
    """
    key = message.allocationKey
    known = partition.foreign.get(key)
    said = dict(message.allocationTags)
    allocation = ForeignAllocation(
        key,
        node,
        partition.registry.read_report(message.resourcePerAlloc),
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


def release(
    kernel: Kernel, rm: ResourceManager, message: AllocationRelease, answers: Answers
) -> None:
    """Remove the foreign allocation of this key: the release names no application.

    It is confirmed like any other release by the resource manager (R3). An unknown key is noted and
    ignored: independent allocations are not supported (I42).
    """
    partition = rm.partitions.get(message.partitionName or "default")
    key = message.allocationKey
    known = partition.foreign.pop(key, None) if partition is not None else None
    if known is None:
        kernel.note(f"release of unknown foreign allocation {key!r} ignored")
        return
    del known.node.foreign[key]
    _change(known.node, known.vector, ())
    # Other types are confirmations, which have no answer.
    if message.terminationType not in BY_SCHEDULER:
        answers.released_foreign(kernel, known, TerminationType.STOPPED_BY_RM, _TEXT)


def occupy(node: Node, anonymous: Vector) -> None:
    """Set the occupied resources of a node beside its tagged foreign allocations."""
    before, node.anonymous = node.anonymous, anonymous
    _change(node, before, anonymous)


def occupy_units(node: Node) -> None:
    """Assume which units of shared devices the occupied resources are of (Q14)."""
    for device, units in node.partition.registry.shared.items():
        for at, used in units_of.occupied(units, node.total, node.occupied[device]):
            node.available[at] -= used - node.occupied[at]
            node.occupied[at] = used


def _change(node: Node, before: Vector, after: Vector) -> None:
    """Replace ``before`` by ``after`` in the occupied resources of the node."""
    occupied = tuple(node.occupied)
    for index, value in enumerate(before):
        node.occupied[index] -= value
        node.available[index] += value
    for index, value in enumerate(after):
        node.occupied[index] += value
        node.available[index] -= value
    occupy_units(node)
    accounting.node_gained(node)
    # a new node is reported by ``node_added`` later
    if node.entries and tuple(node.occupied) != occupied:
        node.partition.rm.observer.node_occupied(node)
