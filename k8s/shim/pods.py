"""Changes of pods (K89 to K93)."""

from __future__ import annotations

from quadriga.k8s.conversion import identity, messages, resources
from quadriga.k8s.lifecycles import application as application_fsm
from quadriga.k8s.lifecycles import task as task_fsm
from quadriga.k8s.objects import Pod
from quadriga.k8s.shim import actions, gangs, pod_groups, refused
from quadriga.k8s.shim.applications import end_task, join, look_again, start, submit_if_ready
from quadriga.k8s.shim.inputs import Change
from quadriga.k8s.shim.kernel import Kernel
from quadriga.k8s.shim.model import Foreign, Task, ref_of
from quadriga.k8s.shim.tasks import SKIPPED, is_known, reconcile, record_about, report_as_foreign


def pod_changed(kernel: Kernel, change: Change, pod: Pod) -> None:
    """Handle a pod that was added or changed, has terminated or was deleted."""
    uid = pod.metadata.uid
    if change == "DELETED" or pod.ended:
        deleted = change == "DELETED"
        _gone(kernel, uid, pod, deleted=deleted)
        if deleted and identity.is_placeholder(pod):
            kernel.actions.append(actions.CancelDelete(uid))
        return
    if pod.refusal:
        pod = refused.what_counts(kernel, pod)
    elif uid in kernel.refusals:
        refused.forget(kernel, uid)
    pod_groups.note(kernel, pod)
    task = kernel.tasks.get(uid)
    if task is not None:
        _change(kernel, task, pod)
        return
    if kernel.cache.set_pod(pod):
        kernel.wake_core()
    if uid in kernel.foreign:
        _change_foreign(kernel, uid, pod)
    elif identity.is_ours(pod, kernel.settings):
        add(kernel, pod)
    elif pod.spec.node_name:
        add_foreign(kernel, pod)


# -- ours --------------------------------------------------------------------------------------


def add(kernel: Kernel, pod: Pod) -> None:
    """Add an unknown pod with our scheduler name."""
    if refused.is_left_out(pod):
        refused.hold(kernel, pod)
        return
    is_placeholder = identity.is_placeholder(pod)
    if is_placeholder:
        gangs.seen(kernel, pod.metadata.name)
    if identity.is_being_deleted_unplaced(pod):  # K90
        _count_lost(kernel, pod)
        return
    if _waits_for_group(kernel, pod):
        return
    task = join(kernel, pod)
    if task is None:
        _disown(kernel, pod)
        return
    app = task.app
    if task.is_placeholder and (pod.terminating or gangs.is_excess(app, task)):
        kernel.fire_task(task, task_fsm.DISCARD)
    elif app.state in application_fsm.JOINABLE:
        if app.state in application_fsm.UNSUBMITTED and kernel.serving:
            submit_if_ready(kernel, app, (task,))
        reconcile(kernel, task)
        if pod.spec.node_name:
            _start_gang(kernel, task)
    elif pod.spec.node_name:  # it came too late for its application, and uses resources (K96)
        reconcile(kernel, task)


def _waits_for_group(kernel: Kernel, pod: Pod) -> bool:
    """Return whether the pod is left out because of its PodGroup, and report that once (K204, K206)."""
    uid, why = pod.metadata.uid, pod_groups.why_left_out(kernel, pod)
    if not why:
        kernel.left_out.pop(uid, None)
    elif kernel.left_out.get(uid) != why:
        kernel.left_out[uid] = why
        kernel.actions.append(actions.SetCondition(ref_of(pod), SKIPPED, f"The pod waits: {why}."))
        pod_groups.say_waiting(kernel, pod_groups.entry_of(kernel, pod), why)
    return why != ""


def _start_gang(kernel: Kernel, task: Task) -> None:
    """Let the core place the remaining members too: one has got a node by other means (K146)."""
    app = task.app
    if not task.is_placeholder and app.state in application_fsm.WAITS_FOR_MEMBERS:
        start(kernel, app)


def _count_lost(kernel: Kernel, pod: Pod) -> None:
    """Count a placeholder that was deleted before it was seen as missing."""
    app = kernel.applications.get(identity.application_id(pod, kernel.settings))
    if app is not None and identity.is_placeholder(pod):
        group = identity.task_group_name(pod, kernel.settings)
        kernel.fire_application(app, application_fsm.PLACEHOLDER_LOST, group=group)


def _disown(kernel: Kernel, pod: Pod) -> None:
    """Count a placeholder whose application does not exist until it is deleted (K147)."""
    kernel.actions.append(actions.Delete(ref_of(pod), 0))
    if pod.spec.node_name:
        add_foreign(kernel, pod)


def _change(kernel: Kernel, task: Task, pod: Pod) -> None:
    """Apply a change of a known pod. Even an unchanged pod is checked again if a check has failed: a claim may
    exist now (K88)."""
    old, task.pod = task.pod, pod
    if kernel.cache.set_pod(pod):
        kernel.wake_core()
    app = task.app
    kernel.look_at(app, task)
    if app.originator is old:
        app.originator = pod
    if not task.is_placeholder and task.key in app.tasks:
        app.leaving += bool(pod.metadata.deletion_timestamp) - bool(old.metadata.deletion_timestamp)
    node = pod.spec.node_name
    if node:
        if not old.spec.node_name:
            _is_placed(kernel, task, node)
            return
    elif pod.metadata.deletion_timestamp:
        kernel.fire_task(task, task_fsm.WITHDRAW)
        return
    elif task.blocked_reason or old.spec.scheduling_gates != pod.spec.scheduling_gates:
        # The driver announces a pod again when one of its claims has changed (K88).
        if kernel.serving:
            submit_if_ready(kernel, app, (task,))
        reconcile(kernel, task)
    if resources.may_differ(old, pod):
        if task.is_foreign:
            report_as_foreign(kernel, task)
        elif task.state in task_fsm.SIZED and resources.of_pod(pod) != task.amounts:
            kernel.fire_task(task, task_fsm.RESIZED)


def _is_placed(kernel: Kernel, task: Task, node: str) -> None:
    """Handle a pod that has a node according to the API server (K91, K105)."""
    app = task.app
    if not task.is_placeholder and task.key in app.tasks:
        app.with_node += 1
        if app.state in application_fsm.HOLDS:
            look_again(kernel, app)
    state = task.state
    if state in task_fsm.EXPECTS_NODE:
        if state in task_fsm.BINDS and task.node == node:
            kernel.fire_task(task, task_fsm.BOUND_)
        else:
            kernel.place_task(task, task_fsm.ELSEWHERE, node, "")
    elif state in task_fsm.FINDS_NODE:
        kernel.place_task(task, task_fsm.RECOVER, node, "")
        _start_gang(kernel, task)


def _gone(kernel: Kernel, uid: str, pod: Pod, *, deleted: bool) -> None:
    kernel.cache.remove_pod(uid)
    pod_groups.forget(kernel, pod)
    if uid in kernel.refusals:
        refused.forget(kernel, uid)
    if kernel.left_out.pop(uid, ""):
        kernel.actions.append(actions.DropCondition(uid))
    task = kernel.tasks.get(uid)
    if task is not None:
        # the pod was counted with its previous version
        if not deleted:
            note = f"the pod has ended: {pod.status.phase}"
            record_about(kernel, pod, "TaskCompleted", "Scheduling", note, warning=False)
        end_task(kernel, task)
        return
    foreign = kernel.foreign.pop(uid, None)
    if foreign is not None:
        kernel.leave_node(uid, foreign.pod.spec.node_name)
        if foreign.reported:
            kernel.outbox.release(messages.release(uid))


# -- foreign -----------------------------------------------------------------------------------


def add_foreign(kernel: Kernel, pod: Pod) -> None:
    """Add a pod whose resources count but which this scheduler does not schedule (K96)."""
    foreign = Foreign(pod)
    foreign.amounts = resources.of_pod(pod)
    kernel.foreign[pod.metadata.uid] = foreign
    kernel.enter_node(pod.metadata.uid, pod.spec.node_name)
    if kernel.serving:
        report_foreign(kernel, foreign)


def report_foreign(kernel: Kernel, foreign: Foreign) -> None:
    """Report a foreign pod once its node is known; until then it is an orphan (K91)."""
    if is_known(kernel, foreign.pod.spec.node_name):
        kernel.outbox.report(messages.foreign_allocation(foreign.pod))
        foreign.reported = True


def _change_foreign(kernel: Kernel, uid: str, pod: Pod) -> None:
    """Apply a change of a foreign pod. It is reported again only if its resources have changed (K91)."""
    foreign = kernel.foreign[uid]
    old, foreign.pod = foreign.pod, pod
    if not resources.may_differ(old, pod):
        return
    amounts = resources.of_pod(pod)
    if amounts != foreign.amounts:
        foreign.amounts = amounts
        if kernel.serving:
            report_foreign(kernel, foreign)
