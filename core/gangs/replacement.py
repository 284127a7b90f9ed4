"""Replacement: a gang member takes over a placeholder of its task group (G27 to G33).

A replacement has two steps. First the scheduler requests the release of one placeholder and parks the
real ask with a planned allocation, on the placeholder's node or on another one (X18); nothing is
refunded yet. When the resource manager confirms, the accounting exchanges the two in one update (G31),
and only then is the real allocation announced (G33).

A member that is larger than every placeholder of its group replaces one of them as well. What it needs
beyond the placeholder's resources is reserved when the replacement is planned (X37). A member is not
placed on a draining node unless it requires the node. If no other node has room when the placeholder
is gone, the ask stays parked and keeps its quota until a node has room (X39). See D22.
"""

from __future__ import annotations

from itertools import chain, islice, zip_longest
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from quadriga.core.model import accounting, usage
from quadriga.core.model.allocation import Allocation, next_uuid
from quadriga.core.resources.shapes import Requirements, Shape, shape_of
from quadriga.core.resources.vectors import Vector, covers
from quadriga.core.runtime.kernel import Kernel
from quadriga.core.runtime.remote_predicates import TooManyPending, awaited, look_ahead
from quadriga.core.steps import reservation
from quadriga.core.steps.gang import placeholder_gone
from quadriga.core.steps.refused import known_refusals
from quadriga.core.steps.releasing import mark_released, release
from quadriga.core.topology.members import predicate_of
from quadriga.fsm import ALLOCATION, APPLICATION, ASK
from quadriga.fsm.lifecycles import allocation as allocation_fsm
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.fsm.lifecycles import ask as ask_fsm
from quadriga.si import TerminationType
from quadriga.si.predicates import ANSWER_PENDING

if TYPE_CHECKING:
    from quadriga.core.model.ask import Ask
    from quadriga.core.model.gang import TaskGroup
    from quadriga.core.model.node import Node
    from quadriga.core.model.partition import Partition
    from quadriga.si.predicates import KnownRefusals

#: a gang member, and the placeholder that it replaces
Replacement = tuple["Ask", "Allocation"]

#: read once, because attributes of the enumeration are slow
_REPLACED: Final = TerminationType.PLACEHOLDER_REPLACED


# -- the plan --------------------------------------------------------------------------------------


def replace(kernel: Kernel, ask: Ask, planned: list[Replacement] | None = None) -> bool:
    """Find a placeholder that the ask can replace, and request its release (G27, G28, X18).

    Return False if there is none; the ask is then deferred or scheduled like other asks until
    something changes. With ``planned``, a replacement from which nothing else follows is added to it,
    and the caller carries it out later with ``carry_out``.
    """
    app = ask.app
    group = app.gang.task_groups[ask.kind.task_group]
    predicate = kernel.predicates.get(app.partition.rm.rm_id)
    first: Allocation | None = None
    for placeholder in group.available:
        if placeholder.vector != ask.kind.vector and not covers(
            placeholder.vector, ask.kind.vector
        ):
            continue
        first = first or placeholder
        node = placeholder.node
        if not (node.open or _accepts(node, ask)):
            continue
        said = predicate and predicate(ask.ask_key, node.node_id, False)
        if said is None:
            _plan(kernel, ask, placeholder, node, planned)
            return True
        if said is ANSWER_PENDING:
            return _wait_for_answers(kernel, ask, group)
    if planned is not None:  # what follows here comes after the replacements before it
        carry_out(kernel, planned)
    if first is None:
        return _replace_smaller(kernel, ask, group)
    other, _ = _free_node(kernel, ask)
    if other is None:
        app.partition.waiting.defer(ask)
        return False
    _plan(kernel, ask, first, other)
    return True


def _replace_smaller(kernel: Kernel, ask: Ask, group: TaskGroup) -> bool:
    """Replace a placeholder that is smaller than the ask, as all of its group are (X37).

    The first choice is a placeholder whose node will have room for the ask, the second the oldest
    placeholder if another node has room.
    """
    app = ask.app
    partition = app.partition
    predicate = kernel.predicates.get(partition.rm.rm_id)
    within: dict[Vector, bool] = {}
    oldest: Allocation | None = None
    refused = False
    for placeholder in group.available:
        size = placeholder.vector
        if size not in within:
            within[size] = _has_quota(ask, _excess(size, ask.kind.vector))
        if not within[size]:
            continue
        oldest = oldest or placeholder
        node = placeholder.node
        if not _accepts(node, ask) or not fits_after(ask, placeholder):
            continue
        said = predicate and predicate(ask.ask_key, node.node_id, False)
        if said is None:
            _plan(kernel, ask, placeholder, node)
            return True
        if said is ANSWER_PENDING:
            return _wait_for_answers(kernel, ask, group)
        refused = True
    if oldest is not None:
        other, asked = _free_node(kernel, ask)
        if other is not None:
            _plan(kernel, ask, oldest, other)
            return True
        if refused or asked:  # predicates refused this ask, but may accept others of its group
            partition.waiting.defer(ask)
            return False
    waits_in = ask.group
    assert waits_in is not None
    waits_in.too_large_to_replace, waits_in.retries = True, False
    app.gang.too_large[waits_in] = None
    partition.waiting.too_large_to_replace[waits_in] = partition.waiting.epoch
    partition.waiting.refresh_group(waits_in)
    return False


def _wait_for_answers(kernel: Kernel, ask: Ask, group: TaskGroup) -> bool:
    predicate = kernel.predicates.get(ask.app.partition.rm.rm_id)
    look_ahead(predicate, ask, map(attrgetter("node"), group.available), allocate=False)
    ask.app.partition.waiting.defer(ask)
    return False


def _accepts(node: Node, ask: Ask) -> bool:
    """X39: a draining node accepts only asks that require it."""
    return node.open or ask.required_node == node.node_id


def fits_after(ask: Ask, placeholder: Allocation) -> bool:
    """Whether the placeholder's node has room for the ask once the placeholder is gone."""
    node, size = placeholder.node, placeholder.vector
    if node.reservation is not None and node.reservation.ask is not ask:
        return False
    for index, value in enumerate(ask.kind.vector):
        back = size[index] if index < len(size) else 0
        if value and node.available[index] + back < value:
            return False
        if value > back and index in node.partition.registry.shared:
            return False  # units are not added to those of a placeholder
    return True


def _excess(size: Vector, vector: Vector) -> Vector:
    """Return what the vector needs beyond this size, by type."""
    return tuple([max(0, value - have) for have, value in zip_longest(size, vector, fillvalue=0)])


def _has_quota(ask: Ask, more: Vector) -> bool:
    """Whether all quotas and limits of the ask have room for ``more``."""
    app = ask.app
    shape = Shape(0, Requirements(more, ask.required_node))
    return all(queue.has_room(shape) for queue in app.queue.lineage) and (
        all(shape.stays_within(ledger.resources, ledger.usage) for ledger in app.limiting)
    )


def _free_node(kernel: Kernel, ask: Ask) -> tuple[Node | None, bool]:
    """Return the first node in order that has room and that the predicates accept.

    The second value says whether the predicates were asked.
    """
    partition, group = ask.app.partition, ask.group
    assert group is not None
    node_index, shape = partition.node_index, group.shape
    if predicate_of(kernel, ask) is None:
        return (node_index.best(shape) if node_index.feasible & shape.allocate else None), False
    node_index.watch(shape)
    return _first_accepted(kernel, ask, node_index.in_order(shape))


def _first_accepted(kernel: Kernel, ask: Ask, nodes: list[Node]) -> tuple[Node | None, bool]:
    partition = ask.app.partition
    predicate = predicate_of(kernel, ask)
    known: KnownRefusals | None = None
    for index, node in enumerate(nodes):
        if known is not None and known.numbers[partition.node_index.position(node)]:
            continue
        said = predicate and predicate(ask.ask_key, node.node_id, True)
        if said is None:
            return node, True
        if said is ANSWER_PENDING:
            look_ahead(predicate, ask, islice(nodes, index + 1, None))
            return None, True
        if known is None:
            known = known_refusals(predicate, ask, partition.node_index)
    return None, bool(nodes)


def _plan(
    kernel: Kernel,
    ask: Ask,
    placeholder: Allocation,
    node: Node,
    planned: list[Replacement] | None = None,
) -> None:
    """Park the ask, link its planned allocation to the placeholder, and request the release of that."""
    app = ask.app
    observer = app.partition.rm.observer
    real = Allocation(ask, next_uuid(ask), node, kernel.now)
    real.partner, placeholder.partner = placeholder, real
    ask.planned = real
    accounting.remove_pending(ask, 1)
    reservation.cancel_all_of(app.partition, ask)
    app.partition.waiting.remove(ask)
    text = f"replacing allocation with UUID: {real.uuid}"
    if planned is not None:
        if node is placeholder.node and real.vector == placeholder.vector:
            mark_released(placeholder, allocation_fsm.REPLACEMENT, text)
            planned.append((ask, placeholder))
            return
        carry_out(kernel, planned)
    kernel.fire(ASK, ask, ask_fsm.PARK)
    if real.vector != placeholder.vector and any(more := _excess(placeholder.vector, real.vector)):
        accounting.reserve_growth(real, more)
        observer.placeholder_too_small(placeholder, ask)
    if node is not placeholder.node:
        accounting.charge_node(real)
        observer.node_charged(real)
    elif real.growth:
        accounting.reserve_growth_on_node(real)
    release(kernel, placeholder, allocation_fsm.REPLACEMENT, text)


def carry_out(kernel: Kernel, planned: list[Replacement]) -> None:
    """Park the asks and request the releases of the placeholders, in this order, and empty the list."""
    if not planned:
        return
    parked = kernel.fire_all(ASK, [ask for ask, _ in planned], ask_fsm.PARK)
    placeholders = [placeholder for _, placeholder in planned]
    planned.clear()
    asked_back = kernel.fire_all(ALLOCATION, placeholders, allocation_fsm.RELEASE)
    changes = chain.from_iterable(zip(parked, asked_back, strict=True))
    kernel.journal.add_all(kernel.now, changes, kernel.cause)


def retry_too_large(partition: Partition) -> None:
    """Retry members that were too large for a placeholder plus free room, if something has changed."""
    for group, version in list(partition.waiting.too_large_to_replace.items()):
        if version != partition.waiting.epoch:
            del partition.waiting.too_large_to_replace[group]
            group.retries = True
            partition.waiting.refresh_group(group)


# -- discarded plans -------------------------------------------------------------------------------


def discard(kernel: Kernel, real: Allocation, *, again: bool) -> None:
    """Discard a planned allocation. With ``again`` its ask waits again, else it ends (X18, X28)."""
    ask = real.ask
    _refund_planned_node(kernel, real)
    if real.growth:
        accounting.refund_growth(real)
    if (placeholder := real.partner) is not None:
        placeholder.partner = real.partner = None
    ask.app.partition.waiting.stranded.pop(real, None)
    ask.planned = None
    kernel.fire(ALLOCATION, real, allocation_fsm.DISCARD)
    if again:
        kernel.fire(ASK, ask, ask_fsm.UNPARK)
        accounting.add_pending(ask, 1)
        reservation.enqueue(kernel, ask)


def _refund_planned_node(kernel: Kernel, real: Allocation) -> None:
    """Refund what the planned allocation holds of its node, if it holds anything."""
    if real not in real.node.allocations:
        return
    if real.partner is not None and real.partner.node is real.node:
        accounting.refund_growth_on_node(real)
        return
    accounting.refund_node(real)
    real.ask.app.partition.rm.observer.node_refunded(real)


# -- the confirmation ------------------------------------------------------------------------------


def confirm_replacement(
    kernel: Kernel,
    placeholder: Allocation,
    confirm: allocation_fsm.Trigger = allocation_fsm.CONFIRM,
) -> Allocation | None:
    """Replace a placeholder whose release is confirmed by its real allocation (G30, G31, G33).

    Return the real allocation, or ``None`` if its ask has ended (X28), or if the node drains and no
    other node has room (X39).
    """
    app = placeholder.ask.app
    real = placeholder.partner
    observer = app.partition.rm.observer
    kernel.fire(ALLOCATION, placeholder, confirm)
    app.released += 1
    if real is None:
        accounting.refund_node(placeholder)
        accounting.refund(placeholder)
        usage.ended(placeholder, kernel.now)
        observer.allocation_ended(placeholder, _REPLACED)
        placeholder_gone(kernel, placeholder, replaced=False)
        return None
    lands = real.node.open or _accepts(real.node, real.ask) or _plan_other_node(kernel, real)
    placeholder.partner = real.partner = None
    if lands and real.node is placeholder.node:
        accounting.replace_on_node(placeholder, real)
    else:
        accounting.refund_node(placeholder)
    first = not app.allocations
    accounting.replace(placeholder, real, lands=lands)
    usage.ended(placeholder, kernel.now)
    app.gang.task_groups[placeholder.ask.kind.task_group].placeholder_created_at[real.uuid] = (
        placeholder.created
    )
    if not lands:
        app.partition.waiting.stranded[real] = app.partition.waiting.epoch
        observer.allocation_ended(placeholder, _REPLACED)
        placeholder_gone(kernel, placeholder, replaced=True)
        return None
    _allocate_planned(kernel, real)
    placeholder_gone(kernel, placeholder, replaced=True)
    _run_application(kernel, real, first=first)
    observer.replaced(placeholder, real)
    kernel.outbox.allocated((real,))
    return real


def _allocate_planned(kernel: Kernel, real: Allocation) -> None:
    """Turn the planned allocation into a real one, and count down its ask."""
    ask = real.ask
    ask.planned = None
    real.created = kernel.now
    kernel.fire(ALLOCATION, real, allocation_fsm.ALLOCATE)
    kernel.fire(ASK, ask, ask_fsm.ALLOCATE)
    ask.pending -= 1
    if ask.pending:
        reservation.enqueue(kernel, ask)
    else:
        del ask.app.asks[ask.ask_key]
        ask.app.partition.hints.asks.pop(ask, None)


def _run_application(kernel: Kernel, real: Allocation, *, first: bool) -> None:
    """Let the application take its next step after a replacement."""
    app = real.ask.app
    # X28: it runs because it has allocations.
    if APPLICATION.allows(app.state, application_fsm.RESUMED):
        kernel.fire(APPLICATION, app, application_fsm.RESUMED)
    if app.state in application_fsm.RUNS_ON_ALLOCATION and not APPLICATION.idles(
        app.state, application_fsm.RUN
    ):
        kernel.fire(APPLICATION, app, application_fsm.RUN, first_replacement=first)


# -- members whose node drains (X39) ---------------------------------------------------------------


def _plan_other_node(kernel: Kernel, real: Allocation) -> bool:
    """Plan another node for a member whose planned node drains; return False if none has room.

    The node of its placeholder, which is about to be free, is tried first.
    """
    placeholder = real.partner
    assert placeholder is not None
    _refund_planned_node(kernel, real)
    if _fits_on_placeholder_node(kernel, real, placeholder):
        real.node = placeholder.node
        return True
    node, _ = _open_node(kernel, real)
    if node is None or node is placeholder.node:
        return False
    _set_node(kernel, real, node)
    return True


def _fits_on_placeholder_node(kernel: Kernel, real: Allocation, placeholder: Allocation) -> bool:
    """Whether the planned allocation fits on the node of its placeholder."""
    ask, node = real.ask, placeholder.node
    if not _accepts(node, ask):
        return False
    if real.growth and not fits_after(ask, placeholder):
        return False
    predicate = kernel.predicates.get(node.partition.rm.rm_id)
    return predicate is None or predicate(ask.ask_key, node.node_id, False) is None


def _set_node(kernel: Kernel, real: Allocation, node: Node) -> None:
    real.node = node
    accounting.charge_node(real)
    real.ask.app.partition.rm.observer.node_charged(real)


def _open_node(kernel: Kernel, real: Allocation) -> tuple[Node | None, bool]:
    """Like ``_free_node``, for a parked ask. The second value says if a predicate answer is pending."""
    ask = real.ask
    node_index = ask.app.partition.node_index
    if not node_index.nodes:
        return None, False
    shares = real.node.partition.registry.shares_of(real.vector)
    requires = ask.kind.requires._replace(vector=real.vector, shares=shares)
    nodes = node_index.in_order(shape_of(0, requires))
    try:
        node, _ = _first_accepted(kernel, ask, nodes)
    except TooManyPending:
        return None, True
    return node, node is None and awaited(kernel, ask)


def place_stranded(kernel: Kernel, partition: Partition) -> None:
    """Place members whose placeholder is gone and whose planned node drained, if a node has room now."""
    has_predicate = partition.rm.rm_id in kernel.predicates
    for real, version in list(partition.waiting.stranded.items()):
        if version == partition.waiting.epoch and not has_predicate:
            continue
        node, awaits = _open_node(kernel, real)
        if node is None:
            partition.waiting.stranded[real] = -1 if awaits else partition.waiting.epoch
            continue
        del partition.waiting.stranded[real]
        app = real.ask.app
        first = not app.allocations
        _set_node(kernel, real, node)
        accounting.adopt_growth(real)
        _allocate_planned(kernel, real)
        _run_application(kernel, real, first=first)
        partition.rm.observer.allocated((real,))
        kernel.outbox.allocated((real,))
