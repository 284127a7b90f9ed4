"""Changes of nodes, and how the effects of a node are executed (K94 to K97)."""

from __future__ import annotations

from typing import Final

from quadriga.k8s.conversion import messages
from quadriga.k8s.lifecycles import node as node_fsm
from quadriga.k8s.lifecycles import task as task_fsm
from quadriga.k8s.lifecycles.effects import (
    CloseNode,
    CreateNode,
    DropNode,
    OpenNode,
    ReportPodsOfNode,
    SayNode,
    UpdateNode,
)
from quadriga.k8s.objects import Node
from quadriga.k8s.shim import actions, refused
from quadriga.k8s.shim.inputs import Change
from quadriga.k8s.shim.kernel import Handlers, Kernel
from quadriga.k8s.shim.model import NodeEntry, order_of
from quadriga.k8s.shim.pods import report_foreign
from quadriga.k8s.shim.tasks import report_or_count
from quadriga.si import NodeInfo, NodeResponse


def node_changed(kernel: Kernel, change: Change, node: Node) -> None:
    """Handle a node that was added, changed or deleted."""
    name = node.metadata.name
    entry = kernel.nodes.get(name)
    if change == "DELETED":
        kernel.refusals.pop(f"Node {name}", None)
        if entry is not None:
            _remove(kernel, entry)
        return
    if node.refusal or f"Node {name}" in kernel.refusals:
        refused.report_node_or_namespace(kernel, node, "the node takes no new pods")
    if kernel.cache.set_node(node):
        kernel.wake_core()
    if entry is None:
        entry = kernel.nodes[name] = NodeEntry(node)
        kernel.room.set(node)
        kernel.room_changed()
        if kernel.serving:
            kernel.fire_node(entry, node_fsm.CREATE)
        return
    old, entry.node = entry.node, node
    if (
        old.status.allocatable != node.status.allocatable
        or old.metadata.labels != node.metadata.labels
    ):
        kernel.room.set(node)
        kernel.room_changed()
    if entry.state in node_fsm.OFFERED_AGAIN:
        kernel.fire_node(entry, node_fsm.CHANGED)
        return
    if (
        old.status.allocatable != node.status.allocatable
        or old.status.conditions != node.status.conditions
        or old.metadata.labels != node.metadata.labels
    ) and messages.node_updated(node, kernel.settings) != entry.sent:
        kernel.fire_node(entry, node_fsm.CHANGED)
    if old.spec.unschedulable != node.spec.unschedulable:
        kernel.fire_node(entry, node_fsm.CLOSE if entry.is_cordoned else node_fsm.OPEN_)


def _remove(kernel: Kernel, entry: NodeEntry) -> None:
    """Remove the node. Pods assumed there wait again; pods bound there are orphans (K97)."""
    kernel.cache.remove_node(entry.key)
    kernel.room.remove(entry.key)
    leave_all(kernel, entry)
    kernel.fire_node(entry, node_fsm.REMOVED_)
    del kernel.nodes[entry.key]
    kernel.unanswered_nodes.discard(entry.key)
    kernel.timers.stop(node_fsm.NODE, entry)


def leave_all(kernel: Kernel, entry: NodeEntry) -> None:
    """Note that the core counts nothing on the node any more."""
    for uid in list(kernel.on_node.get(entry.key, ())):
        foreign = kernel.foreign.get(uid)
        if foreign is not None:
            foreign.reported = False  # the core forgets it with the node
            continue
        task = kernel.tasks[uid]
        kernel.fire_task(task, task_fsm.NODE_LOST)
        task.uuid = ""


def send_changes(kernel: Kernel) -> None:
    """Tell the core of nodes that it has to know otherwise with other settings."""
    for entry in kernel.nodes.values():
        if (
            entry.sent is not None
            and messages.node_updated(entry.node, kernel.settings) != entry.sent
        ):
            kernel.fire_node(entry, node_fsm.CHANGED)


def nodes_answered(kernel: Kernel, response: NodeResponse) -> None:
    """Handle nodes that the core has accepted or rejected."""
    for accepted in response.accepted:
        kernel.unanswered_nodes.discard(accepted.nodeID)
        entry = kernel.nodes.get(accepted.nodeID)
        if entry is not None:
            kernel.fire_node(entry, node_fsm.ACCEPTED)
    for rejected in response.rejected:
        kernel.unanswered_nodes.discard(rejected.nodeID)
        entry = kernel.nodes.get(rejected.nodeID)
        if entry is not None:
            kernel.fire_node(entry, node_fsm.REJECTED_, reason=rejected.reason)


# -- effects -----------------------------------------------------------------------------------


def _next_info(kernel: Kernel, entry: NodeEntry) -> NodeInfo:
    info = messages.node_updated(entry.node, kernel.settings)
    entry.sent = info
    return info


def _create(kernel: Kernel, entry: NodeEntry, effect: CreateNode) -> None:
    _next_info(kernel, entry)
    kernel.unanswered_nodes.add(entry.key)
    kernel.outbox.node(messages.node_created(entry.node, kernel.settings))


def _update(kernel: Kernel, entry: NodeEntry, effect: UpdateNode) -> None:
    kernel.outbox.node(_next_info(kernel, entry))


def _open(kernel: Kernel, entry: NodeEntry, effect: OpenNode) -> None:
    kernel.outbox.node(messages.node_opened(entry.key))


def _close(kernel: Kernel, entry: NodeEntry, effect: CloseNode) -> None:
    kernel.outbox.node(messages.node_drained(entry.key))


def send_open_state(kernel: Kernel, entry: NodeEntry) -> None:
    """Tell the core again whether the node accepts new pods."""
    message = messages.node_opened if entry.state in node_fsm.OPENED else messages.node_drained
    kernel.outbox.node(message(entry.key))


def _drop(kernel: Kernel, entry: NodeEntry, effect: DropNode) -> None:
    kernel.outbox.node(messages.node_removed(entry.key))


def _report_pods(kernel: Kernel, entry: NodeEntry, effect: ReportPodsOfNode) -> None:
    """Report the pods of the node in the order of creation. A recovery reports the pods of all nodes together."""
    if not kernel.serving:
        return
    found = [
        (order_of(each.pod), each)
        for uid in kernel.on_node.get(entry.key, ())
        if (each := kernel.foreign.get(uid)) is not None
    ]
    for _, foreign in sorted(found, key=lambda each: each[0]):
        report_foreign(kernel, foreign)
    tasks = [
        (order_of(task.pod), task)
        for uid in kernel.on_node.get(entry.key, ())
        if (task := kernel.tasks.get(uid)) is not None
        and (task.is_foreign or task.state in task_fsm.UNCONFIRMED)
    ]
    for _, task in sorted(tasks, key=lambda each: each[0]):
        report_or_count(kernel, task)


def _say(kernel: Kernel, entry: NodeEntry, effect: SayNode) -> None:
    meta = entry.node.metadata
    kernel.actions.append(
        actions.Record(
            "Node",
            "",
            meta.name,
            meta.uid,
            "Warning" if effect.warning else "Normal",
            effect.reason,
            "Node",
            effect.note,
            kernel.starting,
        )
    )


# fmt: off
#: what executes the effects of this module
EFFECTS: Final[Handlers] = {
    CreateNode:       _create,
    UpdateNode:       _update,
    OpenNode:         _open,
    CloseNode:        _close,
    DropNode:         _drop,
    ReportPodsOfNode: _report_pods,
    SayNode:          _say,
}
# fmt: on
