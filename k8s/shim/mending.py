"""Repairs of differences that stand (K176).

The objects of the API server are right. The core receives again what it should have received, with the messages
and triggers that should have done it; what it counts without a reason is released. Each repair looks at the
present state first: a difference that has ended meanwhile needs none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from quadriga.k8s.conversion import messages, resources
from quadriga.k8s.lifecycles import application as application_fsm
from quadriga.k8s.lifecycles import node as node_fsm
from quadriga.k8s.lifecycles import task as task_fsm
from quadriga.k8s.shim import differences
from quadriga.k8s.shim.core_messages import dropped
from quadriga.k8s.shim.differences import Difference
from quadriga.k8s.shim.kernel import Kernel
from quadriga.k8s.shim.nodes import leave_all, send_open_state
from quadriga.k8s.shim.pods import pod_changed, report_foreign
from quadriga.k8s.shim.tasks import ask_of, is_known, report_as_foreign


def mend(kernel: Kernel, difference: Difference, subject: Any) -> None:
    """Repair a difference by telling the core, or the shim itself, what it missed. ``subject`` is the watched
    pod, or the id of the application for which the core counts an allocation."""
    _MENDS[difference.kind](kernel, difference, subject)


def _watched(kernel: Kernel, found: Difference, subject: Any) -> None:
    if subject is not None:
        pod_changed(kernel, "MODIFIED", subject)
        return
    cached = kernel.cache.pod(found.what)
    if cached is not None and found.cluster == differences.NOTHING:
        pod_changed(kernel, "DELETED", cached)


def _assumed(kernel: Kernel, found: Difference, subject: Any) -> None:
    task = kernel.tasks.get(found.what)
    if kernel.cache.assumed(found.what) == found.where and (
        task is None or task.node != found.where
    ):
        kernel.cache.forget(found.what)


def _node(kernel: Kernel, found: Difference, subject: Any) -> None:
    name = found.where
    entry = kernel.nodes.get(name)
    if entry is None:
        kernel.outbox.node(messages.node_removed(name))
    elif entry.state in node_fsm.KNOWN:
        leave_all(kernel, entry)
        kernel.fire_node(entry, node_fsm.FORGOTTEN)
        kernel.fire_node(entry, node_fsm.CREATE)


def _capacity(kernel: Kernel, found: Difference, subject: Any) -> None:
    entry = kernel.nodes.get(found.where)
    if entry is not None and entry.state in node_fsm.KNOWN:
        kernel.fire_node(entry, node_fsm.CHANGED)


def _schedulable(kernel: Kernel, found: Difference, subject: Any) -> None:
    entry = kernel.nodes.get(found.where)
    if entry is not None and entry.state in node_fsm.KNOWN:
        send_open_state(kernel, entry)


def _allocation(kernel: Kernel, found: Difference, subject: Any) -> None:
    """Repair the allocation of a pod, of either scheduler, that is on the node without being counted, or the
    other way round."""
    uid, node = found.what, found.where
    task, foreign = kernel.tasks.get(uid), kernel.foreign.get(uid)
    if uid in kernel.on_node.get(node, ()) and is_known(kernel, node):
        if foreign is not None:
            foreign.amounts = resources.of_pod(foreign.pod)
            report_foreign(kernel, foreign)
        elif task is not None and task.is_foreign:
            report_as_foreign(kernel, task)
        elif task is not None and found.core == differences.NOTHING:
            dropped(kernel, task)
        elif task is not None and task.state in task_fsm.SIZED:
            kernel.fire_task(task, task_fsm.RESIZED)
    elif found.kind == differences.FOREIGN:
        kernel.outbox.release(messages.release(uid))
    else:
        _give_back(kernel, uid, subject)


def _give_back(kernel: Kernel, uid: str, app_id: str) -> None:
    """Release an allocation that the pod does not have."""
    release = messages.release(uid, app_id)
    task = kernel.tasks.get(uid)
    if task is not None and task.state in task_fsm.SOUGHT:
        kernel.outbox.ask_instead(ask_of(kernel, task), release)
    else:
        kernel.outbox.release(release)


def _ask(kernel: Kernel, found: Difference, subject: Any) -> None:
    task = kernel.tasks.get(found.what)
    if task is None or task.state not in task_fsm.SOUGHT:
        kernel.outbox.release_ask(messages.release_ask(found.what, found.where))
    elif found.core == differences.NOTHING:
        kernel.fire_task(task, task_fsm.ASK)
    else:
        kernel.fire_task(task, task_fsm.RESIZED)


def _application(kernel: Kernel, found: Difference, subject: Any) -> None:
    app = kernel.applications.get(found.what)
    if app is None:
        kernel.outbox.remove_application(found.what)
    elif app.state in application_fsm.IN_CORE:
        for task in list(app.tasks.values()):
            kernel.fire_task(task, task_fsm.FORGOTTEN)
            task.uuid = ""
        kernel.fire_application(app, application_fsm.FORGOTTEN)
        kernel.look_at(app)


_MENDS: Final[dict[str, Callable[[Kernel, Difference, Any], None]]] = {
    differences.WATCHED: _watched,
    differences.ASSUMED: _assumed,
    differences.NODE: _node,
    differences.CAPACITY: _capacity,
    differences.SCHEDULABLE: _schedulable,
    differences.POD: _allocation,
    differences.FOREIGN: _allocation,
    differences.ASK: _ask,
    differences.APPLICATION: _application,
}
