"""Handle messages of the core, each in the order that it prescribes (K38, K39)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from quadriga.k8s.conversion import messages
from quadriga.k8s.lifecycles import application as application_fsm
from quadriga.k8s.lifecycles import task as task_fsm
from quadriga.k8s.shim import actions
from quadriga.k8s.shim.applications import hold, leave_behind, settle, start, withdraw
from quadriga.k8s.shim.kernel import Kernel
from quadriga.k8s.shim.model import Application, Task
from quadriga.k8s.shim.pod_groups import is_whole, say_waiting
from quadriga.k8s.shim.tasks import (
    SKIPPED,
    allocated,
    reconcile,
    record_about,
    report,
    report_or_count,
    report_to_members,
    say_why,
)
from quadriga.si import (
    Allocation,
    AllocationRelease,
    AllocationResponse,
    ApplicationResponse,
    EventRecord,
    RejectedAllocation,
    RejectedAllocationAsk,
    TerminationType,
    UpdateContainerSchedulingStateRequest,
)

#: what each new state in the core means here, in both of its dialects (K8)
_UPDATES: Final[dict[str, application_fsm.Trigger]] = {
    "Resuming": application_fsm.RESUME,
    "Completed": application_fsm.COMPLETE,
    "Killing": application_fsm.FAIL,
    "Failing": application_fsm.FAIL,
    "Killed": application_fsm.FAILED_,
    "Failed": application_fsm.FAILED_,
}
#: types of releases that only confirm what the shim has requested
_CONFIRMATIONS: Final = frozenset(
    {TerminationType.UNKNOWN_TERMINATION_TYPE, TerminationType.STOPPED_BY_RM}
)
#: reasons of the condition of a waiting pod, and whether an autoscaler should add nodes for it (K155)
_CONDITIONS: Final = {
    UpdateContainerSchedulingStateRequest.SKIPPED: SKIPPED,
    UpdateContainerSchedulingStateRequest.FAILED: "Unschedulable",
}


# -- allocations -------------------------------------------------------------------------------


def allocations_answered(
    kernel: Kernel, response: AllocationResponse, refusals: Mapping[str, str]
) -> None:
    """Handle new, rejected and released allocations and asks."""
    for allocation in response.new:
        refusal = refusals.get(allocation.allocationKey, "") if refusals else ""
        if not _is_kept(kernel, allocation, refusal):
            allocated(kernel, allocation, refusal)
    for ask in response.rejected:
        _rejected(kernel, ask)
    for rejected in response.rejectedAllocations:
        _rejected(kernel, rejected)
    for release in response.released:
        _released(kernel, release)
    for ask_release in response.releasedAsks:
        if ask_release.terminationType == TerminationType.TIMEOUT:
            task = kernel.tasks.get(ask_release.allocationKey)
            if task is not None:
                kernel.fire_task(task, task_fsm.ASK_RELEASED)


def _is_kept(kernel: Kernel, allocation: Allocation, refusal: str) -> bool:
    """Return whether the allocation is kept until the other members have theirs: none is bound before all can
    be (K204)."""
    task = kernel.tasks.get(allocation.allocationKey)
    if task is None or task.app.state not in application_fsm.ASKS_CHOSEN:
        return False
    app, kept = task.app, task.app.allocations
    if task.key not in app.chosen:
        return False
    kept[task.key] = allocation, refusal
    if len(kept) < len(app.chosen):
        return True
    refused = [(uid, each.nodeID) for uid, (each, why) in kept.items() if why]
    if not refused and is_whole(kernel, app):
        start(kernel, app)
        return True
    for uid, node in refused:
        kernel.try_again_in(kernel.cache.refuse(uid, node))
    withdraw(kernel, app)
    return True


def _rejected(kernel: Kernel, rejected: RejectedAllocationAsk | RejectedAllocation) -> None:
    key = rejected.allocationKey
    kernel.unreported.discard(key)
    task = kernel.tasks.get(key)
    if task is not None:
        task.failures += 1
        if task.in_core:
            task.in_core = False
            task.app.core_pods -= 1
        kernel.fire_task(task, task_fsm.REJECTED, reason=rejected.reason)
        return
    foreign = kernel.foreign.get(key)
    if foreign is not None:
        foreign.reported = False
        text = f"the core does not count pod {key} of another scheduler: {rejected.reason}"
        kernel.actions.append(actions.LogWarning(text))
        return
    app = kernel.applications.get(rejected.applicationID)
    if app is not None and app.core_pods and app.state in application_fsm.IN_CORE:
        app.core_pods -= 1  # the pod has terminated before the answer came
        settle(kernel, app)


def _released(kernel: Kernel, release: AllocationRelease) -> None:
    key, kind = release.allocationKey, release.terminationType
    uuid = release.UUID or release.allocationID
    task = kernel.tasks.get(key)
    if kind in _CONFIRMATIONS:
        if task is not None and uuid and task.uuid == uuid:
            dropped(kernel, task)
        return
    app = kernel.applications.get(release.applicationID)
    if task is None:
        # the pod is gone, so the release is complete (K39)
        if app is not None:
            kernel.outbox.release(messages.release(key, release.applicationID, kind, uuid))
        return
    if app is None or task.app is not app or (task.uuid and uuid and task.uuid != uuid):
        return
    if kind == TerminationType.TIMEOUT and not uuid and task.state in task_fsm.SOUGHT:
        kernel.fire_task(task, task_fsm.ASK_RELEASED)  # the form of SI 1.6 (X45)
        return
    kernel.fire_application(app, application_fsm.RELEASE, key=key, type=kind)


def dropped(kernel: Kernel, task: Task) -> None:
    """Handle a pod that the core no longer counts although the shim did not request that: its node was removed
    before the allocation was known here (K97). If the pod has a node, report it again."""
    kernel.fire_task(task, task_fsm.NODE_LOST)
    task.uuid = ""
    if task.state in task_fsm.UNCONFIRMED and kernel.serving:
        report_or_count(kernel, task)


# -- applications ------------------------------------------------------------------------------


def applications_answered(kernel: Kernel, response: ApplicationResponse) -> None:
    """Handle accepted, rejected and updated applications."""
    for accepted in response.accepted:
        app = _answered(kernel, accepted.applicationID)
        if app is not None:
            kernel.rejected_applications.forget(app.key)
            kernel.fire_application(app, application_fsm.ACCEPT)
            _after_accept(kernel, app)
            settle(kernel, app)
    for rejected in response.rejected:
        app = _answered(kernel, rejected.applicationID)
        if app is not None:
            _reject(kernel, app, rejected.reason)
    for updated in response.updated:
        trigger = _UPDATES.get(updated.state)
        app = kernel.applications.get(updated.applicationID)
        if trigger is None or app is None:
            continue
        if app.state in application_fsm.UNTOLD or app.key in kernel.unanswered:
            continue  # until its own answer has come, the update is about the previous application (K60)
        app.core_waits = app.core_waits and trigger != application_fsm.RESUME
        kernel.fire_application(app, trigger, reason=updated.message)
        if app.state in application_fsm.DONE:
            leave_behind(kernel, app)
        settle(kernel, app)


def _answered(kernel: Kernel, app_id: str) -> Application | None:
    """Return the application that the answer is about, if it still waits for one."""
    waiting = kernel.unanswered.get(app_id)
    if not waiting:
        return None
    app = waiting.popleft()
    if not waiting:
        del kernel.unanswered[app_id]
    is_present = kernel.applications.get(app_id) is app and app not in waiting
    return app if is_present and app.state in application_fsm.UNANSWERED else None


def _after_accept(kernel: Kernel, app: Application) -> None:
    """Ask for the placeholders that exist; the real pods were asked for or reported already."""
    if not kernel.serving or app.state in application_fsm.GONE:
        return
    for task in list(app.placeholders.values()):
        if task.state in task_fsm.UNCONFIRMED:
            report(kernel, task)
        else:
            reconcile(kernel, task)


def _reject(kernel: Kernel, app: Application, reason: str) -> None:
    """Reject the application. Pods that already run keep running and are counted as foreign (K143)."""
    kernel.rejected_applications.note(app.metadata, reason, kernel.now)
    hold(kernel, app)
    say_waiting(kernel, app.pod_group, f"The application was rejected: {reason}.")
    kernel.fire_application(app, application_fsm.REJECT, reason=reason)
    if app.state in application_fsm.HOLDS:
        for task in list(app.tasks.values()):
            reconcile(kernel, task)
    for task in list(app.tasks.values()):
        if task.state in task_fsm.UNCONFIRMED:
            kernel.fire_task(task, task_fsm.REJECTED, reason=reason)
    settle(kernel, app)


# -- what is reported ------------------------------------------------------------------------------


def scheduling_state_updated(
    kernel: Kernel, message: UpdateContainerSchedulingStateRequest
) -> None:
    """Update the condition of a waiting pod if its reason or message has changed (K155)."""
    task = kernel.tasks.get(message.allocationKey)
    reason = _CONDITIONS.get(message.state)
    if task is None or reason is None or task.state not in task_fsm.SOUGHT:
        return
    text = message.reason
    if say_why(kernel, task, reason, text) and task.is_placeholder:
        report_to_members(kernel, task.app, text or "no node was found")


def events_sent(kernel: Kernel, events: Sequence[EventRecord]) -> None:
    """Record the core's events about asks as events of their pods (K153); the other records stay in the core
    (K154)."""
    for event in events:
        if event.type != EventRecord.REQUEST:
            continue
        task = kernel.tasks.get(event.objectID) or kernel.tasks.get(event.referenceID)
        if task is not None and event.eventChangeDetail == EventRecord.QUEUE_MAX:  # K209
            record_about(kernel, task.pod, "ResizedBeyondQuota", "Resizing", event.message)
        elif task is not None:  # a restarted core finds the same again
            record_about(
                kernel,
                task.pod,
                "Informational",
                "Informational",
                event.message,
                warning=False,
                may_exist=True,
            )
