"""Who holds what: the only place where allocations enter and leave the books.

An allocation stands in the books of its node (from the decision on) and of its application, the
queues above it and its user (from the moment the application holds it). Pending is what is asked for
and neither allocated nor on its way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.core.resources import Vector, add, plus, subtract

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask
    from quadriga.core.model.node import Node

__all__ = [
    "expect",
    "free_node",
    "give_up",
    "hold",
    "node_gained",
    "owe",
    "swap_on_node",
    "unexpect",
    "use_node",
]


# -- nodes -----------------------------------------------------------------------------------------


def use_node(allocation: Allocation) -> None:
    """The allocation takes its place on its node."""
    node = allocation.node
    node.allocations[allocation] = None
    allocated, available = node.allocated, node.available
    for place, value in enumerate(allocation.vector):
        allocated[place] += value
        available[place] -= value
    node.partition.board.changed(node)


def free_node(allocation: Allocation) -> None:
    """The allocation leaves its node."""
    node = allocation.node
    del node.allocations[allocation]
    subtract(node.allocated, allocation.vector)
    add(node.available, allocation.vector)
    node_gained(node)


def swap_on_node(placeholder: Allocation, real: Allocation) -> None:
    """The real allocation takes its placeholder's place on the same node, in one step (G31)."""
    node = real.node
    del node.allocations[placeholder]
    node.allocations[real] = None
    subtract(node.allocated, placeholder.vector)
    add(node.allocated, real.vector)
    add(node.available, placeholder.vector)
    subtract(node.available, real.vector)
    node_gained(node)


def node_gained(node: Node) -> None:
    """The node may have more room: shapes and its reservation look again."""
    partition = node.partition
    partition.board.gained(node)
    if node.reservation is not None:
        partition.woken[node.reservation] = None


# -- applications, queues, users -------------------------------------------------------------------


def hold(allocation: Allocation) -> None:
    """The application holds the allocation; it counts in every queue above and for the user."""
    app = allocation.ask.app
    vector = allocation.vector
    if allocation.ask.placeholder:
        app.placeholders[allocation.uuid] = allocation
        book = app.allocated_placeholder
    else:
        app.allocations[allocation.uuid] = allocation
        book = app.allocated
        if app.queue.fair:
            app.rank = None
    most, usage = app.max_allocated, app.partition.usage[app.user]
    for place, value in enumerate(vector):
        if value:
            now = book[place] = book[place] + value
            usage[place] += value
            if now > most[place]:
                most[place] = now
    for queue in app.queue.lineage:
        allocated = queue.allocated
        for place, value in enumerate(vector):
            allocated[place] += value
        queue.rank = None


def give_up(allocation: Allocation) -> None:
    """The application no longer holds it. Whoever waited for quota may ask again."""
    app = allocation.ask.app
    if allocation.ask.placeholder:
        del app.placeholders[allocation.uuid]
        subtract(app.allocated_placeholder, allocation.vector)
    else:
        del app.allocations[allocation.uuid]
        subtract(app.allocated, allocation.vector)
    return_quota(app, allocation.vector)


def return_quota(app: Application, vector: Vector) -> None:
    """Take a vector out of the books of the user and of every queue above the application."""
    subtract(app.partition.usage[app.user], vector)
    app.partition.news += 1
    app.touch()
    for queue in app.queue.lineage:
        subtract(queue.allocated, vector)
        queue.touch()
    for queue in app.queue.lineage:
        queue.regained()


def replace_in_books(placeholder: Allocation, real: Allocation) -> None:
    """One update of application, queues and user: the placeholder out, the real one in (G31).

    Never larger than the placeholder, so no quota can be exceeded in between.
    """
    app = real.ask.app
    del app.placeholders[placeholder.uuid]
    subtract(app.allocated_placeholder, placeholder.vector)
    app.allocations[real.uuid] = real
    add(app.allocated, real.vector)
    app.max_allocated = list(map(max, app.max_allocated, app.allocated))
    negative = tuple(-value for value in real.vector)
    delta = plus(placeholder.vector, negative)
    if any(delta):
        return_quota(app, delta)
    elif app.queue.fair:
        app.touch()


# -- pending ---------------------------------------------------------------------------------------


def expect(ask: Ask, repeats: int) -> None:
    """So many more allocations of the ask are pending (negative: fewer)."""
    app = ask.app
    for place, value in enumerate(ask.vector):
        if value:
            value *= repeats
            app.pending[place] += value
            for queue in app.queue.lineage:
                queue.pending[place] += value


def unexpect(ask: Ask, repeats: int) -> None:
    """So many allocations of the ask are no longer pending."""
    expect(ask, -repeats)


# -- promises to gangs -----------------------------------------------------------------------------


def owe(app: Application) -> None:
    """Bring what the queues have promised to a started gang up to date (X16)."""
    remainder = app.remainder
    promised = app.promised
    lowered = False
    for place in range(len(promised)):
        due = remainder[place] if place < len(remainder) else 0
        change = due - promised[place]
        if change:
            lowered = lowered or change < 0
            promised[place] = due
            for queue in app.queue.lineage:
                queue.promised[place] += change
    if lowered:
        for queue in app.queue.lineage:
            if queue.gated:
                queue.regained()
