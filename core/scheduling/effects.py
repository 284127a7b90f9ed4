"""The handlers of the lifecycles' effects: one function for each, and their table."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from quadriga.core.gangs import admission as gang_admission
from quadriga.core.gangs import replacement
from quadriga.core.model import accounting, usage
from quadriga.core.model.allocation import Allocation
from quadriga.core.model.application import Application, EndedApplication
from quadriga.core.model.gang import Gang
from quadriga.core.model.partition import Partition
from quadriga.core.model.queue import LeafQueue, Queue
from quadriga.core.runtime.kernel import Kernel
from quadriga.core.runtime.outbox import TERMINATION
from quadriga.core.scheduling import ending
from quadriga.core.scheduling.ending import Removals, end_allocation, reject_ask, report_released
from quadriga.core.steps import gang, limits, queue_tree, reservation
from quadriga.core.steps.releasing import release
from quadriga.fsm import APPLICATION, QUEUE, Effect
from quadriga.fsm.lifecycles import allocation as allocation_fsm
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.fsm.lifecycles import ask as ask_fsm
from quadriga.fsm.lifecycles import effects as fx
from quadriga.si import TerminationType

if TYPE_CHECKING:
    from quadriga.core.model.node import Node
    from quadriga.core.model.resource_manager import ResourceManager

# -- any entity ------------------------------------------------------------------------------------


_KINDS: Final[dict[type, str]] = {
    Application: "application",
    Allocation: "allocation",
    Gang: "gang",
}


def start_timer(
    kernel: Kernel, entity: Application | Allocation | Gang, effect: fx.StartTimer
) -> None:
    kind = _KINDS[type(entity)]
    timer = kernel.timers.start(kernel.now, effect.ns, f"{kind}.{effect.name}", entity)
    entity.timers = (*entity.timers, timer)


def forget(kernel: Kernel, entity: Any, effect: fx.Forget) -> None:
    if isinstance(entity, EndedApplication):
        ending.forget(entity)
    elif isinstance(entity, Queue) and entity.parent is not None:
        entity.parent.children.pop(entity.name)


# -- applications ----------------------------------------------------------------------------------


def update(kernel: Kernel, app: Application | EndedApplication, effect: fx.Update) -> None:
    living = app.partition.applications.get(app.app_id)
    if living is not None and living is not app:
        return  # its ID is in use again (G55): the update would be read as the new application's
    kernel.outbox.updated(app, effect.state, effect.message, kernel.now)


def release_asks(kernel: Kernel, app: Application, effect: fx.ReleaseAsks) -> None:
    asks = [a for a in app.asks.values() if a.placeholder or not effect.placeholders_only]
    for ask in asks:
        reject_ask(kernel, ask, ask_fsm.REJECT, timed_out=True)
    outbox, kind = kernel.outbox, TerminationType.TIMEOUT
    outbox.released_asks([a for a in asks if not a.terms.by_key], kind, effect.message)
    for ask in asks:
        if ask.terms.by_key:
            outbox.released_by_key(ask, kind, effect.message)


def release_placeholders(kernel: Kernel, app: Application, effect: fx.ReleasePlaceholders) -> None:
    if effect.completes:
        app.completing = True
    for placeholder in list(app.placeholders.values()):
        release(kernel, placeholder, allocation_fsm.TIMEOUT, effect.message)


def release_allocations(kernel: Kernel, app: Application, effect: fx.ReleaseAllocations) -> None:
    for allocation in [*app.allocations.values(), *app.placeholders.values()]:
        release(kernel, allocation, allocation_fsm.TIMEOUT, effect.message)


def started_running(kernel: Kernel, app: Application, effect: fx.StartedRunning) -> None:
    app.started = True
    for queue in app.queue.lineage:
        queue.running += 1
    app.partition.admission_changed(app.queue)


def stopped_running(kernel: Kernel, app: Application, effect: fx.StoppedRunning) -> None:
    for queue in app.queue.lineage:
        queue.running -= 1
    app.partition.admission_changed(app.queue)


def leave_queue(kernel: Kernel, app: Application, effect: fx.LeaveQueue) -> None:
    """G50, G54: remove the application from its queue; its ID is free again (G55)."""
    leaf = app.queue
    assert isinstance(leaf, LeafQueue)
    del leaf.apps[app.app_id]
    del app.partition.applications[app.app_id]
    app.finished = kernel.now
    number = max(app.serial.values(), default=app.first_number)
    if number:
        app.partition.serials.ended(app.app_id, number, kernel.now)
        app.serial = {}
    kernel.summaries.append(usage.summarise(app))
    app.partition.rm.observer.application_left(app)
    for timer in (*app.timers, app.gang.timer):
        if timer is not None:
            timer.cancel()  # V8
    for queue in leaf.lineage:
        queue.gated.pop(app, None)
        queue.released += app.released
    limits.release(app)
    ending.archive(kernel, app)
    queue_tree.application_left(kernel, leaf)


def _is_uncounted(app: Application) -> bool:
    """Whether the application no longer counts against the limits of its user and group.

    True if it waits, has ended, or is Accepted again after a Soft timeout without allocations.
    """
    if app.state in application_fsm.GATHERS:
        return not app.allocations and not app.placeholders
    return app.state in application_fsm.IDLE


def application_entered(kernel: Kernel, app: Application | EndedApplication) -> None:
    """Update what depends on the state of an application that entered a new one."""
    if isinstance(app, EndedApplication):
        return
    app.history.append((kernel.now, app.state))
    app.reason = kernel.reason
    app.completing = False
    # A Soft timeout: from now on it is an ordinary application.
    if app.state in application_fsm.GIVES_BACK:
        app.gang.over = True
    if app.state in application_fsm.GATHERS:
        gang.start_idle_timer(kernel, app)
    if app.is_gang:
        gang_admission.state_changed(kernel, app)
    if app.counted and _is_uncounted(app):
        limits.forget(app)
    elif not app.counted and app.placeholders and app.state in application_fsm.SERVED:
        # It waited with leftovers, and a new ask called it back (G40, G42).
        accounting.start_counting(app)
    leaf = app.queue
    if app.app_id not in app.partition.applications or not isinstance(leaf, LeafQueue):
        return
    if app in leaf.admitted and app.state not in application_fsm.GATHERS:
        for queue in leaf.lineage:
            del queue.admitted[app]
        app.partition.admission_changed(leaf)
    app.partition.waiting.refresh(app)
    accounting.reserve_headroom(app)


def queue_entered(kernel: Kernel, queue: Queue | Partition) -> None:
    """Record when a partition was stopped, drained or restored."""
    if isinstance(queue, Partition):
        queue.changed = kernel.now


# -- gangs -----------------------------------------------------------------------------------------


def free_nodes(kernel: Kernel, own: Gang, effect: fx.FreeNodes) -> None:
    gang_admission.nodes_freed(kernel, own.application, effect.reason)


# -- allocations, nodes, resource managers -----------------------------------------------------------


def request_release(kernel: Kernel, allocation: Allocation, effect: fx.RequestRelease) -> None:
    assert allocation.reason is not None
    kernel.outbox.released(allocation, TERMINATION[allocation.reason], allocation.message)


def open_node(kernel: Kernel, node: Node, effect: fx.OpenNode) -> None:
    node.open = True
    node.since = kernel.now
    accounting.node_gained(node)


def close_node(kernel: Kernel, node: Node, effect: fx.CloseNode) -> None:
    """Close the node to new allocations. Reservations stay: the node may be schedulable again (I29)."""
    node.open = False
    node.since = kernel.now
    node.partition.node_index.changed(node)


def node_emptied(kernel: Kernel, node: Node, effect: fx.EmptyNode) -> None:
    empty_node(kernel, node)


def drop_state(kernel: Kernel, rm: ResourceManager, effect: fx.DropState) -> None:
    """Drop all state of a resource manager that left or registered again (I6, I7)."""
    for partition in rm.partitions.values():
        partition.dropped = True
        kernel.outbox.partition_dropped(partition)
    rm.partitions = {}
    rm.serials = {}
    rm.forget_ended()
    kernel.timers.clear_out(_is_dropped)
    rm.configuration = ""
    rm.observer.state_dropped(rm)


def _is_dropped(entity: Any) -> bool:
    """Whether the entity belongs to a dropped partition."""
    entity = getattr(entity, "ask", entity)  # of an allocation
    entity = getattr(entity, "app", entity)  # of an ask
    partition = getattr(entity, "partition", entity)
    return isinstance(partition, Partition) and partition.dropped


# fmt: off
HANDLERS: Final[dict[type[Effect], Callable[..., None]]] = {
    fx.Update:              update,
    fx.StartTimer:          start_timer,
    fx.ReleaseAsks:         release_asks,
    fx.ReleasePlaceholders: release_placeholders,
    fx.ReleaseAllocations:  release_allocations,
    fx.StartedRunning:      started_running,
    fx.StoppedRunning:      stopped_running,
    fx.LeaveQueue:          leave_queue,
    fx.Forget:              forget,
    fx.FreeNodes:           free_nodes,
    fx.RequestRelease:      request_release,
    fx.OpenNode:            open_node,
    fx.CloseNode:           close_node,
    fx.EmptyNode:           node_emptied,
    fx.DropState:           drop_state,
}
# fmt: on


def install(kernel: Kernel) -> None:
    """Give the kernel its handlers."""
    kernel.effects = {effect: partial(handler, kernel) for effect, handler in HANDLERS.items()}
    kernel.on_entering(APPLICATION, partial(application_entered, kernel))
    kernel.on_entering(QUEUE, partial(queue_entered, kernel))


# -- a node is gone --------------------------------------------------------------------------------


def empty_node(kernel: Kernel, node: Node) -> None:
    """End all allocations of the node, and remove the node.

    If only the placeholder of a replacement was on the node, the replacement is complete. If the real
    allocation was planned there, its ask waits again.
    """
    partition = node.partition
    rm = partition.rm
    released: list[Allocation] = []
    confirmed: list[Allocation] = []
    removed = Removals()
    unknown = TerminationType.UNKNOWN_TERMINATION_TYPE
    while node.reservation is not None:
        reservation.cancel(partition, node.reservation)
    for allocation in sorted(node.allocations, key=lambda each: (each.uuid, each.ask.app.app_id)):
        if allocation not in node.allocations:
            continue
        if allocation.state in allocation_fsm.AHEAD:
            replacement.discard(kernel, allocation, again=True)
            continue
        released.append(allocation)
        if allocation.partner is not None and allocation.partner.node is not node:
            confirmed.append(allocation)
            continue
        end_allocation(kernel, allocation, allocation_fsm.COMPLETE, unknown)
        removed.add_allocation(allocation)
    report_released(kernel, rm, released, f"Node {node.node_id} Removed", removed)
    for placeholder in confirmed:
        partition.serials.unanswered(placeholder.ask.app.app_id, placeholder.uuid)
        replacement.confirm_replacement(kernel, placeholder)
        removed.add_allocation(placeholder)
    kernel.tally.nodes_removed += 1
    for key in node.foreign:
        del partition.foreign[key]
    del partition.nodes[node.node_id]
    partition.node_index.remove(node)
    partition.reservation_bounds.barred.pop(node, None)
    reservation.nodes_changed(partition)
    partition.capacity_changed(tuple(node.total), ())
    rm.observer.node_removed(node)
    removed.update_applications(kernel)
    queue_tree.remove_partition_if_drained(kernel, partition)
