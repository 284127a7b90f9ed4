"""Who holds what: the only place where allocations enter and leave the books.

An allocation stands in the books of its node (from the decision on) and of its application, the
queues above it and its user (from the moment the application holds it). Pending is what is asked for
and neither allocated nor on its way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.core.model.resources import Vector, add, plus, subtract
from quadriga.core.scheduling import limits
from quadriga.fsm.allocation import PREEMPTION

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask, AskGroup
    from quadriga.core.model.node import Node
    from quadriga.core.model.queue import Queue
    from quadriga.core.model.shapes import Shape

__all__ = [
    "claim",
    "disclaim",
    "enter",
    "expect",
    "free_node",
    "give_up",
    "hold",
    "narrow",
    "node_gained",
    "owe",
    "place",
    "place_above",
    "place_below",
    "place_in",
    "preempt",
    "resize",
    "swap_on_node",
    "take_what_is_claimed",
    "unexpect",
    "use_node",
    "widen",
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
    node.partition.node_index.changed(node)


def free_node(allocation: Allocation) -> None:
    """The allocation leaves its node."""
    node = allocation.node
    del node.allocations[allocation]
    allocated, available = node.allocated, node.available
    for place, value in enumerate(allocation.vector):
        allocated[place] -= value
        available[place] += value
    node_gained(node)


def swap_on_node(placeholder: Allocation, real: Allocation) -> None:
    """The real allocation takes its placeholder's place on the same node, in one step (G31)."""
    node = real.node
    del node.allocations[placeholder]
    if placeholder.vector == real.vector:
        node.allocations[real] = None
        _node_changed(node)
        return
    if real in node.allocations:  # with what it needs beyond its placeholder (X37)
        subtract(node.allocated, real.growth)
        add(node.available, real.growth)
    node.allocations[real] = None
    subtract(node.allocated, placeholder.vector)
    add(node.allocated, real.vector)
    add(node.available, placeholder.vector)
    subtract(node.available, real.vector)
    node_gained(node)


def node_gained(node: Node) -> None:
    """The node may have more room: shapes and its reservation look again."""
    node.partition.node_index.gained(node)
    _node_changed(node)


def _node_changed(node: Node) -> None:
    """There are others on the node: its reservation looks again, also for whom to preempt."""
    partition = node.partition
    partition.waiting.allocation_epoch += 1
    if node.reservation is not None:
        partition.waiting.retries.add(node.reservation)
        if node.also_reserved:
            partition.waiting.retries.update(node.also_reserved)


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
    if (changes := app.partition.quota_changes) is not None:
        changes.applications[app] = None
    usage = app.usage_book
    if not app.counted:
        limits.count(app)
    for place, value in enumerate(vector):
        if value:
            book[place] += value
            usage[place] += value
    for more in app.more_books:
        add(more, vector)
    for queue in app.queue.lineage:
        allocated = queue.allocated
        for place, value in enumerate(vector):
            allocated[place] += value
        queue.rank = None


def place(allocation: Allocation) -> None:
    """What was pending takes its place in all books at once, as most allocations do: ``use_node``,
    ``hold`` and ``unexpect`` in one pass."""
    group = allocation.ask.group
    assert group is not None
    app = group.app
    enter(allocation)
    if not app.counted:
        limits.count(app)
    place_below(allocation.node, group.shape, app.queue.lineage)
    place_above(group, 1)


def enter(allocation: Allocation) -> None:
    """The node and the application know the allocation by name."""
    allocation.node.allocations[allocation] = None
    ask = allocation.ask
    app = ask.app
    held = app.placeholders if ask.placeholder else app.allocations
    held[allocation.uuid] = allocation


def place_below(node: Node, shape: Shape, queues: tuple[Queue, ...]) -> None:
    """The quantities of one allocation that is placed, where every next decision looks at them: those
    of its node, and of these queues."""
    need = shape.need
    allocated, available = node.allocated, node.available
    for at, value in need:
        allocated[at] += value
        available[at] -= value
    node.partition.node_index.took(node, shape)
    for queue in queues:
        allocated, pending = queue.allocated, queue.pending
        for at, value in need:
            allocated[at] += value
            pending[at] -= value
        queue.rank = None


def place_above(group: AskGroup, number: int) -> None:
    """The quantities of so many allocations of one group of asks, in the books of its application and
    of its user."""
    app = group.app
    if (changes := app.partition.quota_changes) is not None:
        changes.applications[app] = None
    if group.placeholder:
        book = app.allocated_placeholder
    else:
        book = app.allocated
        if app.queue.fair:
            app.rank = None
    pending, usage, more_books = app.pending, app.usage_book, app.more_books
    for at, value in group.shape.need:
        value *= number
        book[at] += value
        pending[at] -= value
        usage[at] += value
        for more in more_books:
            more[at] += value


def place_in(queue: Queue, shape: Shape, number: int) -> None:
    """The quantities of so many allocations in the books of one queue."""
    for at, value in shape.need:
        queue.allocated[at] += value * number
        queue.pending[at] -= value * number
    queue.rank = None


def give_up(allocation: Allocation) -> None:
    """The application no longer holds it. Whoever waited for quota may ask again."""
    app = allocation.ask.app
    app.note_most()
    if allocation.ask.placeholder:
        del app.placeholders[allocation.uuid]
        subtract(app.allocated_placeholder, allocation.vector)
    else:
        del app.allocations[allocation.uuid]
        subtract(app.allocated, allocation.vector)
    if allocation.reason == PREEMPTION:
        app.preempting -= 1
        app.preempted += 1
        for queue in app.queue.lineage:
            subtract(queue.preempting, allocation.vector)
    return_quota(app, allocation.vector)


def return_quota(app: Application, vector: Vector) -> None:
    """Take a vector out of the books of the user, of the group, and of every queue above the
    application."""
    partition, lineage = app.partition, app.queue.lineage
    books = [ledger.usage for ledger in app.ledgers]
    books += [queue.allocated for queue in lineage]
    for place, value in enumerate(vector):
        if value:
            for book in books:
                book[place] -= value
    partition.waiting.demand_epoch += 1
    if (changes := app.partition.quota_changes) is not None:
        changes.applications[app] = None
    if app.queue.fair:
        app.touch()
    for queue in lineage:
        queue.touch()
    for queue in lineage:
        if queue.short_of or queue.above_guarantee or queue.gated:
            queue.regained()
    for ledger in app.limiting:
        if ledger.short_of:
            ledger.regained()
    partition.waiting.retry_short_of_quota()


def preempt(allocation: Allocation) -> None:
    """The allocation was asked back to make room for others (2.8). It is allocated until it ends."""
    allocation.ask.app.preempting += 1
    allocation.ask.app.partition.waiting.allocation_epoch += 1
    for queue in allocation.ask.app.queue.lineage:
        add(queue.preempting, allocation.vector)
        queue.shrunk()


def resize(allocation: Allocation, vector: Vector) -> None:
    """The allocation, which nobody has asked back, is of this size from now on, whatever the quotas
    say: everywhere at once (2.20)."""
    app = allocation.ask.app
    book = app.allocated_placeholder if allocation.ask.placeholder else app.allocated
    delta = plus(allocation.vector, tuple(-value for value in vector))
    free_node(allocation)
    allocation.vector = vector
    use_node(allocation)
    app.note_most()
    subtract(book, delta)
    return_quota(app, delta)


def replace_in_books(placeholder: Allocation, real: Allocation, *, lands: bool) -> None:
    """One update of application, queues and user: the placeholder out, the real one in (G31).

    Never larger than the placeholder and what is claimed, so no quota can be exceeded in between. If it
    has no node to land on yet, all of it is claimed from now on (X39).
    """
    app = real.ask.app
    app.note_most()
    del app.placeholders[placeholder.uuid]
    subtract(app.allocated_placeholder, placeholder.vector)
    add(app.allocated, real.vector)
    held = placeholder.vector
    if real.growth:
        subtract(app.allocated, real.growth)
        held = plus(held, real.growth)
    real.growth = () if lands else real.vector
    if lands:
        app.allocations[real.uuid] = real
    app.rank = None
    if held != real.vector:
        return_quota(app, plus(held, tuple(-value for value in real.vector)))


# -- planned allocations that are larger than their placeholders (X37), or have none left (X39) -----


def claim(real: Allocation, more: Vector) -> None:
    """Quotas and limits hold so much for a planned allocation."""
    app = real.ask.app
    real.growth = more
    add(app.allocated, more)
    if app.queue.fair:
        app.rank = None
    if (changes := app.partition.quota_changes) is not None:
        changes.applications[app] = None
    for ledger in app.ledgers:
        add(ledger.usage, more)
    for queue in app.queue.lineage:
        add(queue.allocated, more)
        queue.rank = None


def disclaim(real: Allocation) -> None:
    """Nothing is held for it any more."""
    app = real.ask.app
    app.note_most()
    subtract(app.allocated, real.growth)
    return_quota(app, real.growth)
    real.growth = ()


def take_what_is_claimed(real: Allocation) -> None:
    """All of it was claimed: the application holds it now."""
    real.growth = ()
    real.ask.app.allocations[real.uuid] = real


def widen(real: Allocation) -> None:
    """The node of a planned allocation holds what it needs beyond its placeholder there."""
    node = real.node
    node.allocations[real] = None
    add(node.allocated, real.growth)
    subtract(node.available, real.growth)
    node.partition.node_index.changed(node)


def narrow(real: Allocation) -> None:
    """The node holds it no longer."""
    node = real.node
    del node.allocations[real]
    subtract(node.allocated, real.growth)
    add(node.available, real.growth)
    node_gained(node)


# -- pending ---------------------------------------------------------------------------------------


def expect(ask: Ask, repeats: int) -> None:
    """So many more allocations of the ask are pending (negative: fewer)."""
    app = ask.app
    lineage = app.queue.lineage
    for place, value in enumerate(ask.vector):
        if value:
            value *= repeats
            app.pending[place] += value
            for queue in lineage:
                queue.pending[place] += value


def unexpect(ask: Ask, repeats: int) -> None:
    """So many allocations of the ask are no longer pending."""
    expect(ask, -repeats)


# -- promises to gangs -----------------------------------------------------------------------------


def owe(app: Application) -> None:
    """Bring what the queues have promised to a started gang up to date (X16)."""
    remainder = app.remainder
    promised = app.promised
    if not remainder and not any(promised):
        return
    lowered = False
    for place, before in enumerate(promised):
        due = remainder[place] if place < len(remainder) else 0
        if due != before:
            lowered = lowered or due < before
            promised[place] = due
            for queue in app.queue.lineage:
                queue.promised[place] += due - before
    if lowered:
        for queue in app.queue.lineage:
            if queue.gated:
                queue.regained()
