"""How the effects of a task are executed, and which trigger a waiting pod gets."""

from __future__ import annotations

from typing import Final

from quadriga.k8s.conversion import messages, pod_groups, resources
from quadriga.k8s.conversion.problems import CLAIMS_UNREAD
from quadriga.k8s.lifecycles import application as application_fsm
from quadriga.k8s.lifecycles import node as node_fsm
from quadriga.k8s.lifecycles import task as task_fsm
from quadriga.k8s.lifecycles.effects import (
    AbandonAssumption,
    AnnouncePlaceholder,
    AskAgain,
    BindPod,
    CancelBind,
    ConfirmRelease,
    DeletePod,
    GiveBack,
    Reconcile,
    RefuseNode,
    ReleaseAsk,
    ReleaseForeign,
    ReportForeign,
    ReportPod,
    Say,
    SendAsk,
    Warn,
)
from quadriga.k8s.objects import Pod, PriorityClass
from quadriga.k8s.shim import actions
from quadriga.k8s.shim.kernel import Handlers, Kernel
from quadriga.k8s.shim.model import Application, Task, ref_of
from quadriga.k8s.shim.pod_groups import entry_of, priority_of, say_waiting
from quadriga.si import Allocation, AllocationAsk, TerminationType
from quadriga.si.constants import TAG_DEVICES

#: termination types by number
_TYPES: Final[dict[int, TerminationType]] = {
    int(each): each
    for each in (
        TerminationType.STOPPED_BY_RM,
        TerminationType.TIMEOUT,
        TerminationType.PREEMPTED_BY_SCHEDULER,
        TerminationType.PLACEHOLDER_REPLACED,
    )
}

#: reported to pods whose application starts again with them (K60, K200)
_FOLLOWS: Final = "Earlier pods of the application have not ended yet. It starts again after them."

#: reason of a condition: more nodes would not help (K155)
SKIPPED: Final = "SchedulingSkipped"


def reconcile(kernel: Kernel, task: Task) -> None:
    """Fire the trigger that the pod and its application allow now, if the task waits."""
    if task.state not in task_fsm.LOOKED_AT or not kernel.serving:
        return
    pod = task.pod
    if pod.spec.node_name:
        kernel.place_task(task, task_fsm.RECOVER, pod.spec.node_name, "")
        return
    if pod.metadata.deletion_timestamp:  # K90
        return
    if pod.spec.scheduling_gates:
        if task.state in task_fsm.WAITS:
            gates = ", ".join(each.name for each in pod.spec.scheduling_gates)
            kernel.fire_task(task, task_fsm.GATE, gates=gates)
        return
    if task.state not in task_fsm.WAITS:
        kernel.fire_task(task, task_fsm.UNGATE)
        return
    app = task.app
    if task.key in app.later:
        say_why(kernel, task, SKIPPED, _FOLLOWS)
    elif task.is_placeholder:
        if app.state in application_fsm.NEEDS_NO_PLACEHOLDER:
            kernel.fire_task(task, task_fsm.DISCARD)
        elif app.state in application_fsm.ASKS_PLACEHOLDERS:
            kernel.fire_task(task, task_fsm.ASK)
    elif app.asks_for(task):
        _ask(kernel, task)
    elif app.held_because and app.state in application_fsm.SAYS_WHY:
        _report_held(kernel, task)


def report_to_members(kernel: Kernel, app: Application, reason: str) -> None:
    """Report to the real pods of a gang, which are not asked for, that its placeholders wait, once;
    explanations follow. The condition is not Unschedulable, because the nodes are needed for placeholders."""
    if app.held_because or app.state not in application_fsm.ASKS_PLACEHOLDERS:
        return
    app.held_because = f"The gang waits for its placeholders: {reason}."
    for task in app.tasks.values():
        if not task.is_placeholder and task.state in task_fsm.WAITS:
            _report_held(kernel, task)


def _report_held(kernel: Kernel, task: Task) -> None:
    say_why(kernel, task, SKIPPED, task.app.held_because)


def say_why(kernel: Kernel, task: Task, reason: str, message: str) -> bool:
    """Set the condition of a waiting pod and of its PodGroup (K155, K205). Return whether it is a new one."""
    if task.condition == (reason, message):
        return False
    task.condition = reason, message
    kernel.actions.append(actions.SetCondition(ref_of(task.pod), reason, message))
    say_waiting(kernel, task.app.pod_group or entry_of(kernel, task.pod), message)
    return True


def _ask(kernel: Kernel, task: Task) -> None:
    """Ask for the pod unless a check fails. A failed check is reported once, until another one fails (K88)."""
    pod = task.pod
    blocked_reason = "" if task.group in task.app.groups else pod_groups.not_supported(pod)
    blocked_reason = blocked_reason or kernel.blocked_reason(pod)
    if blocked_reason and blocked_reason == task.blocked_reason:
        return
    task.blocked_reason = blocked_reason
    unread = blocked_reason == CLAIMS_UNREAD
    kernel.fire_task(task, task_fsm.ASK, blocked_reason=blocked_reason, unread=unread)


def is_known(kernel: Kernel, node: str) -> bool:
    """Return whether the core has the node, so that its pods can be reported."""
    entry = kernel.nodes.get(node)
    return entry is not None and entry.state in node_fsm.KNOWN


# -- messages ----------------------------------------------------------------------------------


def _class_of(kernel: Kernel, pod: Pod) -> PriorityClass | None:
    return kernel.classes.get(pod.spec.priority_class_name) if kernel.classes else None


def _originates(task: Task) -> bool:
    originator = task.app.originator
    whole = task.app.pod_group is not None  # its members are equal (K204)
    return originator is not None and not whole and originator.metadata.uid == task.key


def ask_of(kernel: Kernel, task: Task) -> AllocationAsk:
    """Return the ask for the pod as it is now."""
    pod, amounts = task.pod, resources.of_pod(task.pod)
    if task.amounts not in (None, amounts):
        task.resized = True
    task.amounts = amounts
    return messages.ask(
        pod,
        task.app.key,
        kernel.settings,
        amounts=amounts,
        originator=_originates(task),
        priority=priority_of(task),
        priority_class=_class_of(kernel, pod),
    )


def enters_core(task: Task) -> None:
    """Note that the core gets an ask or an allocation of the pod, so that it will complete the application
    (K178)."""
    if not task.in_core:
        task.in_core = True
        task.app.core_pods += 1


def _send_ask(kernel: Kernel, task: Task, effect: SendAsk) -> None:
    enters_core(task)
    kernel.outbox.ask(ask_of(kernel, task))


def report(kernel: Kernel, task: Task) -> bool:
    """Report the pod with its node if the core knows the node and the application (K91). Return whether it was
    reported."""
    if task.app.state not in application_fsm.IN_CORE or not is_known(kernel, task.node):
        return False
    pod = task.pod
    task.amounts = resources.of_pod(pod)
    enters_core(task)
    kernel.outbox.report(
        messages.allocation(
            pod,
            task.app.key,
            kernel.settings,
            node=task.node,
            devices=task.devices,
            originator=_originates(task),
            priority=priority_of(task),
            priority_class=_class_of(kernel, pod),
        )
    )
    return True


def allocated(kernel: Kernel, allocation: Allocation, refusal: str = "") -> None:
    """Handle a node that the core has chosen or confirmed. ``refusal`` is the cluster's reason against it."""
    key = allocation.allocationKey
    # since SI 1.6 the key alone identifies an allocation
    uuid = allocation.UUID or allocation.allocationID or key
    task = kernel.tasks.get(key)
    if task is None:  # its pod has terminated (K111)
        kernel.cache.forget(key)
        if allocation.applicationID in kernel.applications:
            kernel.outbox.release(messages.release(key, allocation.applicationID, uuid=uuid))
        return
    enters_core(task)
    task.devices = allocation.allocationTags.get(TAG_DEVICES, "")
    kernel.place_task(task, task_fsm.ALLOCATED, allocation.nodeID, uuid, refusal=refusal)
    if task.resized and task.node:  # the core may have decided by the former amounts
        task.resized = False
        kernel.fire_task(task, task_fsm.RESIZED)
    kernel.unreported.discard(key)


def _report_pod(kernel: Kernel, task: Task, effect: ReportPod) -> None:
    if kernel.serving:
        report(kernel, task)


def _ask_again(kernel: Kernel, task: Task, effect: AskAgain) -> None:
    """Release the allocation and ask again in one message, so that the application is never without ask and
    allocation (K108)."""
    release = messages.release(task.key, task.app.key, uuid=effect.uuid) if effect.uuid else None
    kernel.outbox.ask_instead(ask_of(kernel, task), release)


def _give_back(kernel: Kernel, task: Task, effect: GiveBack) -> None:
    kernel.outbox.release(messages.release(task.key, task.app.key, uuid=effect.uuid))


def _release_ask(kernel: Kernel, task: Task, effect: ReleaseAsk) -> None:
    if task.app.state in application_fsm.IN_CORE:
        kernel.outbox.release_ask(messages.release_ask(task.key, task.app.key))


def _confirm_release(kernel: Kernel, task: Task, effect: ConfirmRelease) -> None:
    if task.is_foreign:
        kernel.outbox.release(messages.release(task.key))
    elif task.app.state in application_fsm.IN_CORE:
        kind = _TYPES[effect.type]
        kernel.outbox.release(messages.release(task.key, task.app.key, kind, task.uuid))


def _report_foreign(kernel: Kernel, task: Task, effect: ReportForeign) -> None:
    task.is_foreign = True
    report_as_foreign(kernel, task)


def _release_foreign(kernel: Kernel, task: Task, effect: ReleaseForeign) -> None:
    task.is_foreign = False
    if is_known(kernel, task.node):
        kernel.outbox.release(messages.release(task.key))


def report_or_count(kernel: Kernel, task: Task) -> bool:
    """Report the pod with its node, or let it count as foreign if the core does not have its application any
    more (K96). Return whether an answer will come."""
    if task.is_foreign:
        report_as_foreign(kernel, task)
    elif task.app_has_ended:
        kernel.fire_task(task, task_fsm.REJECTED, reason="its application has ended")
    else:
        return report(kernel, task)
    return False


def report_as_foreign(kernel: Kernel, task: Task) -> None:
    """Report a pod that the core has rejected as foreign."""
    if is_known(kernel, task.node):
        kernel.outbox.report(messages.foreign_allocation(task.pod))


# -- writes ------------------------------------------------------------------------------------


def _bind_pod(kernel: Kernel, task: Task, effect: BindPod) -> None:
    member = not task.is_placeholder and task.group in task.app.groups
    kernel.actions.append(
        actions.Bind(ref_of(task.pod), task.node, task.is_placeholder, member, task.devices)
    )


def _cancel_bind(kernel: Kernel, task: Task, effect: CancelBind) -> None:
    kernel.actions.append(actions.CancelBind(task.key))


def _delete_pod(kernel: Kernel, task: Task, effect: DeletePod) -> None:
    grace = 0 if task.is_placeholder else None
    kernel.actions.append(actions.Delete(ref_of(task.pod), grace, effect.preempted))


def _abandon_assumption(kernel: Kernel, task: Task, effect: AbandonAssumption) -> None:
    kernel.cache.forget(task.key)


def _refuse_node(kernel: Kernel, task: Task, effect: RefuseNode) -> None:
    kernel.try_again_in(kernel.cache.refuse(task.key, effect.node))


# -- others ------------------------------------------------------------------------------------


def _announce(kernel: Kernel, task: Task, effect: AnnouncePlaceholder) -> None:
    app = task.app
    if app.state not in application_fsm.GONE:
        kernel.fire_application(
            app,
            application_fsm.PLACEHOLDER_BOUND,
            name=task.pod.metadata.name,
            group=task.group,
            node=task.node,
        )


def _reconcile(kernel: Kernel, task: Task, effect: Reconcile) -> None:
    reconcile(kernel, task)


def _say(kernel: Kernel, entity: Task | Application, effect: Say) -> None:
    if isinstance(entity, Task) and not effect.originator:
        pod: Pod | None = entity.pod
    else:
        app = entity.app if isinstance(entity, Task) else entity
        pod = app.originator
    if pod is not None:
        record_about(kernel, pod, effect.reason, effect.action, effect.note, effect.warning)


def _warn(kernel: Kernel, entity: object, effect: Warn) -> None:
    kernel.actions.append(actions.LogWarning(effect.text))


def record_about(
    kernel: Kernel,
    pod: Pod,
    reason: str,
    action: str,
    note: str,
    warning: bool = True,
    may_exist: bool = False,
) -> None:
    """Record a Kubernetes event about a pod."""
    meta = pod.metadata
    kernel.actions.append(
        actions.Record(
            "Pod",
            meta.namespace,
            meta.name,
            meta.uid,
            "Warning" if warning else "Normal",
            reason,
            action,
            note,
            may_exist or kernel.starting,
        )
    )


# fmt: off
#: what executes the effects of this module
EFFECTS: Final[Handlers] = {
    SendAsk:             _send_ask,
    ReportPod:           _report_pod,
    AskAgain:            _ask_again,
    GiveBack:            _give_back,
    ReleaseAsk:          _release_ask,
    ConfirmRelease:      _confirm_release,
    ReportForeign:       _report_foreign,
    ReleaseForeign:      _release_foreign,
    BindPod:             _bind_pod,
    CancelBind:          _cancel_bind,
    DeletePod:           _delete_pod,
    AbandonAssumption:   _abandon_assumption,
    RefuseNode:          _refuse_node,
    AnnouncePlaceholder: _announce,
    Reconcile:           _reconcile,
    Say:                 _say,
    Warn:                _warn,
}
# fmt: on
