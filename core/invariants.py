"""What must hold between any two steps (BEHAVIOUR 6.1, V1 to V9).

Everything that the hot path keeps as a running total is counted here from scratch and compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import TYPE_CHECKING

from quadriga.core.model.queue import LeafQueue
from quadriga.core.resources import Book, Vector
from quadriga.fsm import allocation as allocation_life
from quadriga.fsm import application as life
from quadriga.fsm import ask as ask_life

if TYPE_CHECKING:
    from quadriga.core.model.application import Application
    from quadriga.core.model.node import Node
    from quadriga.core.model.partition import Partition

__all__ = ["violations"]


def violations(partition: Partition) -> list[str]:
    """Every invariant of the partition that does not hold, in words; empty when all do."""
    size = len(partition.registry)
    found = [*_queues(partition, size), *_users(partition, size), *_waiting(partition)]
    for node in partition.nodes.values():
        found.extend(_node(node, size))
    for app in partition.applications.values():
        found.extend(_application(app, size))
    for app in partition.ended:
        found.extend(_ended(app))
    return [f"{partition.key}: {text}" for text in found]


def _total(vectors: Iterable[Vector | Book], size: int) -> Book:
    total = list(map(sum, zip_longest(*vectors, fillvalue=0)))
    return total + [0] * (size - len(total))


def _queues(partition: Partition, size: int) -> Iterator[str]:
    for queue in partition.queues():
        children = list(queue.children.values())
        if isinstance(queue, LeafQueue):
            apps = list(queue.apps.values())
            allocated = _total(
                (book for app in apps for book in (app.allocated, app.allocated_placeholder)), size
            )
            pending = _total((app.pending for app in apps), size)
            promised = _total((app.promised for app in apps), size)
            running = sum(app.state in life.COUNTED for app in apps)
        else:
            allocated = _total((child.allocated for child in children), size)
            pending = _total((child.pending for child in children), size)
            promised = _total((child.promised for child in children), size)
            running = sum(child.running for child in children)
        if allocated != queue.allocated:
            yield f"V1 queue {queue.path}: allocated {queue.allocated}, below it {allocated}"
        if pending != queue.pending:
            yield f"V1 queue {queue.path}: pending {queue.pending}, below it {pending}"
        if promised != queue.promised:
            yield f"X16 queue {queue.path}: promised {queue.promised}, below it {promised}"
        if running != queue.running:
            yield f"V5 queue {queue.path}: running {queue.running}, below it {running}"
    planned = [
        a.vector
        for node in partition.nodes.values()
        for a in node.allocations
        if a.state == allocation_life.PLANNED
    ]
    on_nodes = _total((node.allocated for node in partition.nodes.values()), size)
    held = _total((partition.root.allocated, *planned), size)
    if held != on_nodes:
        yield f"V1 root and planned hold {held}, the nodes {on_nodes}"
    capacity = _total((node.total for node in partition.nodes.values()), size)
    if capacity != partition.capacity:
        yield f"V2 capacity {partition.capacity}, the nodes have {capacity}"


def _users(partition: Partition, size: int) -> Iterator[str]:
    held: dict[str, list[Book]] = {user: [] for user in partition.usage}
    for app in partition.applications.values():
        held[app.user] += (app.allocated, app.allocated_placeholder)
    for user, book in partition.usage.items():
        if book != (total := _total(held[user], size)):
            yield f"V1 user {user}: usage {book}, applications hold {total}"


def _node(node: Node, size: int) -> Iterator[str]:
    sums = _total((node.allocated, node.occupied, node.available), size)
    if sums != node.total:
        yield f"V2 node {node.node_id}: {sums} is not its total {node.total}"
    allocated = _total((a.vector for a in node.allocations), size)
    if allocated != node.allocated:
        yield f"V2 node {node.node_id}: allocated {node.allocated}, there are {allocated}"
    for allocation in node.allocations:
        if allocation.node is not node:
            yield f"V3 allocation {allocation.key} is on two nodes"
        app = allocation.ask.app
        held = app.allocations.get(allocation.uuid) or app.placeholders.get(allocation.uuid)
        planned = allocation.state == allocation_life.PLANNED
        if (held is allocation) == planned:
            yield f"V3 allocation {allocation.key} is {allocation.state} and in the wrong books"
    if node.reservation is not None and node.reservation.node is not node:
        yield f"V3 the reservation of node {node.node_id} is for another node"


def _application(app: Application, size: int) -> Iterator[str]:
    for book, held in (
        (app.allocated, app.allocations),
        (app.allocated_placeholder, app.placeholders),
    ):
        if held:
            right = book == _total((a.vector for a in held.values()), size)
        else:  # by far the most in a full cluster
            right = not any(book)
        if not right:
            yield f"V1 application {app.app_id}: its books differ from its allocations"
    waiting = _total(
        (
            tuple(value * (ask.pending - (ask.planned is not None)) for value in ask.vector)
            for ask in app.asks.values()
        ),
        size,
    )
    if waiting != app.pending:
        yield f"V1 application {app.app_id}: pending {app.pending}, its asks want {waiting}"
    for allocation in (*app.allocations.values(), *app.placeholders.values()):
        if allocation not in allocation.node.allocations:
            yield f"V3 allocation {allocation.key} is on no node"
        releasing = allocation.state == allocation_life.RELEASING
        if releasing != (allocation.reason is not None):
            yield f"V6 allocation {allocation.key} is {allocation.state} for {allocation.reason}"
    for ask in app.asks.values():
        if (ask.state == ask_life.PARKED) != (ask.planned is not None):
            yield f"G29 ask {ask.key} is {ask.state} with planned {ask.planned}"
        if ask.reservations > ask.pending:
            yield f"V3 ask {ask.key} has {ask.reservations} reservations for {ask.pending}"
    yield from _task_groups(app)


def _task_groups(app: Application) -> Iterator[str]:
    for group in app.task_groups.values():
        pending = sum(
            ask.pending
            for ask in app.asks.values()
            if ask.placeholder and ask.task_group == group.name
        )
        allocated = sum(a.ask.task_group == group.name for a in app.placeholders.values())
        if (pending, allocated) != (group.pending, group.allocated):
            yield (
                f"V4 task group {app.app_id}/{group.name}: pending {group.pending}, "
                f"allocated {group.allocated}; there are {pending} and {allocated}"
            )
        if group.count != group.pending + group.allocated + group.replaced + group.timed_out:
            yield f"V4 task group {app.app_id}/{group.name}: its count does not add up"


def _ended(app: Application) -> Iterator[str]:
    if app.asks or app.allocations or app.placeholders or app.reservations:
        yield f"V8 application {app.app_id} is {app.state} and holds something"
    if any(app.allocated) or any(app.allocated_placeholder) or any(app.pending):
        yield f"V8 application {app.app_id} is {app.state} and has usage"


def _waiting(partition: Partition) -> Iterator[str]:
    """The masks of the tree say exactly what the groups at its leaves want."""
    for leaf in partition.leaves():
        for app in leaf.apps.values():
            wants = 0
            for group in app.groups.values():
                if group.bits != group.wants():
                    yield f"V7 group of {app.app_id} announces {group.bits}, wants {group.wants()}"
                wants |= group.bits
            if wants != app.mask:
                yield f"V7 application {app.app_id}: mask {app.mask}, its groups want {wants}"
        below = leaf.serving.offered | leaf.admission.offered
        if below != leaf.mask:
            yield f"V7 leaf {leaf.path}: mask {leaf.mask}, its lanes offer {below}"
        for lane in (leaf.serving, leaf.admission):
            offered = 0
            for app in leaf.apps.values():
                if app.above is lane:
                    offered |= app.offered
            if offered != lane.mask:
                yield f"V7 leaf {leaf.path}: a lane's mask {lane.mask}, apps offer {offered}"
    for queue in partition.queues():
        if not isinstance(queue, LeafQueue):
            offered = 0
            for child in queue.children.values():
                offered |= child.offered
            if offered != queue.mask:
                yield f"V7 queue {queue.path}: mask {queue.mask}, children offer {offered}"
