"""Applications: which pods create them, and how their effects are executed (K26 to K35, K52 to K60)."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from quadriga.base.times import SECOND
from quadriga.k8s.conversion import annotated_tags, identity, keys, messages, task_groups
from quadriga.k8s.conversion import applications as metadata_of
from quadriga.k8s.conversion.applications import ApplicationMetadata
from quadriga.k8s.conversion.pod_groups import overruled
from quadriga.k8s.conversion.problems import Problem
from quadriga.k8s.conversion.task_groups import TaskGroups
from quadriga.k8s.lifecycles import application as application_fsm
from quadriga.k8s.lifecycles import task as task_fsm
from quadriga.k8s.lifecycles.effects import (
    AddApplication,
    AskForPods,
    FailPods,
    HasEnded,
    MarkResumed,
    ReleasePod,
    RemoveApplication,
)
from quadriga.k8s.objects import Pod
from quadriga.k8s.shim import actions, pod_groups
from quadriga.k8s.shim.kernel import Handlers, Kernel
from quadriga.k8s.shim.model import Application, Group, Task, ref_of
from quadriga.k8s.shim.tasks import allocated, reconcile, record_about, report
from quadriga.k8s.tuning import TUNING

if TYPE_CHECKING:
    from collections.abc import Iterable

# -- pods --------------------------------------------------------------------------------------


def create_application(kernel: Kernel, pod: Pod) -> Application:
    """Create an application from the metadata of this pod (K58)."""
    namespace = kernel.namespaces.get(pod.metadata.namespace)
    metadata = _read(kernel, pod)
    app = Application(metadata, pod, kernel.created_applications, kernel.nodes)
    kernel.created_applications += 1
    kernel.applications[app.key] = app
    app.resumed = identity.is_resumed(pod)
    app.whole = not kernel.settings.gang_placeholders
    app.pod_group = pod_groups.gang_of(kernel, pod)
    if app.pod_group is not None:
        app.pod_group.app = app
    for problem in metadata.problems:
        _record_problem(kernel, pod, problem)
    if namespace is not None:
        for problem in metadata.namespace_problems:
            kernel.actions.append(
                actions.Record(
                    "Namespace",
                    "",
                    namespace.metadata.name,
                    namespace.metadata.uid,
                    "Warning",
                    problem.reason,
                    problem.action,
                    problem.note,
                    kernel.starting,
                )
            )
    return app


def _read(kernel: Kernel, pod: Pod) -> ApplicationMetadata:
    """Read the metadata of the pod's application. The gang of a PodGroup has no task groups."""
    namespace = kernel.namespaces.get(pod.metadata.namespace)
    metadata = metadata_of.read(pod, namespace, kernel.settings)
    if pod_groups.gang_of(kernel, pod) is None:
        return metadata
    tags = {**metadata.tags, keys.TASK_GROUPS: "", keys.POLICY_PARAMETERS: ""}
    gang_id = pod_groups.application_id(kernel, pod)
    return replace(metadata, id=gang_id, gang=TaskGroups(), definition_hash="", tags=tags)


def _record_problem(kernel: Kernel, pod: Pod, problem: Problem | None) -> None:
    if problem is not None:
        record_about(kernel, pod, problem.reason, problem.action, problem.note)


def join(kernel: Kernel, pod: Pod) -> Task | None:
    """Add a pod with our scheduler name to its application as a task. Return ``None`` for a placeholder without
    an application (K59, K147)."""
    is_placeholder = identity.is_placeholder(pod)
    app = kernel.applications.get(pod_groups.application_id(kernel, pod))
    if app is None:
        if is_placeholder:
            return None
        app = create_application(kernel, pod)
    elif app.state in application_fsm.HOLDS and not is_placeholder:
        app = _mended(kernel, app, pod)
    task = Task(pod, app, is_placeholder, identity.task_group_name(pod, kernel.settings))
    kernel.tasks[task.key] = task
    if app.state in application_fsm.JOINABLE and not _starts_anew(app, task):
        _enter(kernel, app, task)
    else:
        app.later[task.key] = task
    kernel.enter_node(task.key, task.node)
    if is_placeholder:
        _take_sample(kernel, app, task)
    else:
        _record_differences(kernel, app, task)
    if app.later and not app.real:
        settle(kernel, app)
    return task


def _starts_anew(app: Application, task: Task) -> bool:
    """Return whether the task belongs to the next run of the gang: all other members are gone or terminating,
    no matter for how long (K200). Pods that come later belong to that run too."""
    if task.node:
        return False
    return bool(app.later) or (
        app.is_over and bool(task.group) and not task.is_placeholder and bool(app.groups)
    )


def _mended(kernel: Kernel, held: Application, pod: Pod) -> Application:
    """Replace the held application if the pod differs from what was rejected: its template was corrected, and
    pods of the old template may stay until the new one runs (K60)."""
    metadata, down = _read(kernel, pod), kernel.rejected_applications
    if down.delay(metadata, kernel.now):
        return held
    waits = held.gathers_members and not held.is_too_large
    if waits and not down.delay(held.metadata, kernel.now):
        return held  # the application waits for this pod (K204)
    gang = held.metadata.gang
    if (gang.refusal or held.is_too_large) and metadata.gang in (gang, TaskGroups()):
        return held
    tasks = list(held.tasks.values())
    kernel.fire_application(held, application_fsm.IDLE)
    kernel.too_large.pop(held, None)
    kernel.timers.stop(application_fsm.APPLICATION, held)
    app = create_application(kernel, pod)
    for task in tasks:
        _enter(kernel, app, task)
    return app


def _enter(kernel: Kernel, app: Application, task: Task) -> None:
    app.tasks[task.key] = task
    task.app = app
    task.in_core = False
    kernel.look_at(app, task)
    if task.is_placeholder:
        app.placeholders[task.key] = task
        app.count_live(task.group, task.state in task_fsm.LOSES)
    else:
        app.real += 1
        app.with_node += bool(task.pod.spec.node_name)
        app.leaving += bool(task.pod.metadata.deletion_timestamp)


def _leave(app: Application, task: Task) -> None:
    app.real -= 1
    app.with_node -= bool(task.pod.spec.node_name)
    app.leaving -= bool(task.pod.metadata.deletion_timestamp)


def _record_differences(kernel: Kernel, app: Application, task: Task) -> None:
    """Record an event for each setting of the pod that differs from its application and has no effect (K56,
    K58, K65, K70)."""
    pod = task.pod
    if pod.spec.node_name:
        return
    if refusal := app.metadata.gang.refusal:
        _report_refusal(kernel, app, pod, refusal)
        return
    _record_problem(kernel, pod, identity.ambiguity(pod))
    _record_problem(kernel, pod, _topology_problem(kernel, app, pod))
    if pod is not app.originator:
        _record_problem(kernel, pod, metadata_of.deviation(pod, app.metadata))
        _record_problem(kernel, pod, metadata_of.sharing(pod, app.metadata))
    if task.group:
        group = app.groups.get(task.group)
        if group is None:
            _record_problem(
                kernel, pod, task_groups.unknown_group(pod, task.group, app.metadata.gang)
            )
        else:
            _compare(kernel, app, group, task)
            _record_problem(kernel, pod, overruled(pod))


def _topology_problem(kernel: Kernel, app: Application, pod: Pod) -> Problem | None:
    entry = app.pod_group
    group = None if entry is None else entry.group
    in_gang = bool(app.groups) or entry is not None
    return annotated_tags.problem_of(pod, kernel.settings, group, in_gang=in_gang)


def _compare(kernel: Kernel, app: Application, group: Group, task: Task) -> None:
    """Compare the task with a placeholder of its group as the API server stored it, once there is one (K203)."""
    if group.sample is None:
        if app.state in application_fsm.ASKS_REAL and app.whole:
            return  # it has started without placeholders
        group.early.append(task)
    else:
        _record_problem(
            kernel, task.pod, task_groups.differences(task.pod, group.spec, group.sample)
        )


def _take_sample(kernel: Kernel, app: Application, placeholder: Task) -> None:
    group = app.groups.get(placeholder.group)
    if group is None or group.sample is not None:
        return
    group.sample = placeholder.pod
    early, group.early = group.early, []
    for task in early:
        if kernel.tasks.get(task.key) is task and not task.pod.spec.node_name:
            _compare(kernel, app, group, task)


def _report_refusal(kernel: Kernel, app: Application, pod: Pod, refusal: str) -> None:
    """Report the refusal as an event of the pod and in the log, because an operator looks at both (Q16)."""
    _record_problem(kernel, pod, task_groups.refusal_of(app.metadata.gang))
    where = f"pod {pod.metadata.namespace}/{pod.metadata.name} of application {app.key}"
    kernel.actions.append(actions.LogWarning(f"{where} is not scheduled: {refusal}"))


def submit_if_ready(kernel: Kernel, app: Application, tasks: Iterable[Task]) -> None:
    """Submit the application with its first pod that may be scheduled (K32). ``tasks`` are those that came or
    changed since the last look. Pods that already run do not wait for their report."""
    if app.state in application_fsm.UNSUBMITTED and (
        app.with_node or any(map(_may_be_scheduled, tasks))
    ):
        _hold_gang(kernel, app)
        if kernel.serving and not app.with_node and not app.delay:
            hold(kernel, app)
        kernel.fire_application(app, application_fsm.SUBMIT)


def _may_be_scheduled(task: Task) -> bool:
    return not (task.pod.spec.scheduling_gates or task.is_placeholder)


def hold(kernel: Kernel, app: Application) -> None:
    """Hold the application for a while if the core has just rejected the same one (K60)."""
    app.delay = kernel.rejected_applications.delay(app.metadata, kernel.now)
    if app.delay:
        reason = kernel.rejected_applications.reason(app.key)
        seconds = -(-app.delay // SECOND)
        app.held_because = (
            f"The application was rejected: {reason}. It is tried again in {seconds} s."
        )


def _hold_gang(kernel: Kernel, app: Application) -> None:
    """Hold a gang while its definition exceeds a bound or the nodes cannot hold it. A gang that already has
    placeholders, or pods on nodes, goes on."""
    app.delay = 0
    if app.pod_group is not None:
        if lacks := pod_groups.lacks(kernel, app):
            app.delay, app.held_because = TUNING.gang_check_ns, lacks
        elif not app.has_started:
            hold(kernel, app)
        return
    if app.with_node or app.placeholders:
        return
    refusal = app.metadata.gang.refusal
    if refusal and not app.resumed:
        app.delay = TUNING.gang_check_ns
        app.held_because = f"The gang is not scheduled: {refusal}."
        return
    if app.gathers_members:
        _hold_for_members(kernel, app)
        if app.delay or app.patience:
            return
    lacks = shortage(kernel, app)
    if not lacks:
        return
    app.delay = _time_left(kernel, app)
    if app.delay:
        app.held_because = f"The gang waits for nodes: {lacks}."
        wait_for_nodes(kernel, app, lacks)


def _time_left(kernel: Kernel, app: Application) -> int:
    """Return how long (ns) the gang may wait for nodes before it is checked again; 0 if its timeout is over."""
    seconds = app.metadata.policy.timeout_seconds
    if seconds <= 0:
        return TUNING.gang_check_ns
    began, created = kernel.now, app.metadata.created
    if not kernel.serving and created is not None:  # waited since an earlier process
        began = min(began, created * SECOND)
    app.waits_until = app.waits_until or began + seconds * SECOND
    left = max(0, min(TUNING.gang_check_ns, app.waits_until - kernel.now))
    app.timeout_over = not left
    return left


def _hold_for_members(kernel: Kernel, app: Application) -> None:
    """Hold the gang for a while until its members exist. ``patience`` is above 0 if they do: then it is placed
    without placeholders (D356)."""
    lacks = pod_groups.lacks(kernel, app)
    app.patience = 0 if lacks else _time_left(kernel, app)
    if lacks:
        app.members_until = app.members_until or kernel.now + TUNING.gang_members_ns
        app.delay = max(0, app.members_until - kernel.now)
        app.held_because = lacks
    if not app.delay:
        hold(kernel, app)


def wait_is_over(kernel: Kernel, app: Application) -> None:
    """Give up a gang whose members have waited for nodes until its timeout (D356)."""
    if app.pod_group is None:
        app.patience = _time_left(kernel, app)
        if not app.patience:
            withdraw(kernel, app)
            return
    kernel.timers.entered(application_fsm.APPLICATION, app, kernel.now)


def shortage(kernel: Kernel, app: Application) -> str:
    """Return why the nodes cannot hold the gang; "" if they may, or if an autoscaler adds nodes for waiting
    pods."""
    if not app.is_gang or app.timeout_over or kernel.settings.gang_scale_up:
        return ""
    return kernel.room.shortage(app.metadata.groups)


def wait_for_nodes(kernel: Kernel, app: Application, lacks: str) -> None:
    """Create no placeholders for the gang until the nodes change, and report that once."""
    kernel.too_large[app] = None
    if app.is_too_large or app.originator is None:
        return
    app.is_too_large = True
    note = (
        f"no placeholders are created, the nodes cannot hold the gang: {lacks}. It is tried again when "
        "nodes change. If nodes are added for waiting pods, set service.gangScaleUp"
    )
    record_about(kernel, app.originator, "GangScheduling", "WaitingForNodes", note)


def look_again(kernel: Kernel, app: Application) -> None:
    """Submit a held application unless there is still a reason to hold it."""
    before = app.held_because
    _hold_gang(kernel, app)
    if not app.delay:
        kernel.fire_application(app, application_fsm.AGAIN)
        return
    kernel.timers.entered(application_fsm.APPLICATION, app, kernel.now)
    if app.held_because != before:
        for task in app.tasks.values():
            reconcile(kernel, task)


def look_at_changed(kernel: Kernel, app: Application) -> None:
    """Look at a held gang whose members have changed; not at once if it waits for more, because a look visits all."""
    if not pod_groups.lacks_still(kernel, app):
        look_again(kernel, app)
    elif not app.put_off:
        app.put_off = True
        ends = (app.members_until - kernel.now, app.waits_until - kernel.now)
        delay = len(app.tasks) * TUNING.gang_look_ns
        app.delay = min([delay, *(left for left in ends if left > 0)])
        kernel.timers.entered(application_fsm.APPLICATION, app, kernel.now)


def end_task(kernel: Kernel, task: Task) -> None:
    """End the task: its pod has terminated or is gone (K91 to K93)."""
    was_lost = task.is_placeholder and task.state in task_fsm.LOSES
    kernel.fire_task(task, task_fsm.ENDED_)
    del kernel.tasks[task.key]
    kernel.leave_node(task.key, task.node)
    app = task.app
    if app.later.pop(task.key, None) is not None:
        return
    del app.tasks[task.key]
    if task.is_placeholder:
        app.placeholders.pop(task.key)
    else:
        _leave(app, task)
        if app.originator is not None and app.originator.metadata.uid == task.key:
            _replace_originator(app)
    if app.state in application_fsm.GONE:
        return
    if was_lost:
        kernel.fire_application(app, application_fsm.PLACEHOLDER_LOST, group=task.group)
    settle(kernel, app)


def _replace_originator(app: Application) -> None:
    """Make the oldest other real pod the originator, because placeholders need an owner that lives."""
    app.originator = next(
        (task.pod for task in app.tasks.values() if not task.is_placeholder), app.originator
    )


def settle(kernel: Kernel, app: Application) -> None:
    """Fire what follows from the pods that the application still has."""
    if app.state in application_fsm.SETTLES and not app.placeholders:
        kernel.fire_application(app, application_fsm.SETTLED)
    if not app.real and app.state not in application_fsm.GONE:
        kernel.fire_application(app, application_fsm.IDLE)
    if not app.tasks and app.state in application_fsm.ENDED:
        kernel.fire_application(app, application_fsm.FORGET)
    elif not app.tasks and app.state in application_fsm.ENDING:
        kernel.timers.entered(application_fsm.APPLICATION, app, kernel.now)  # the 60 s start now
    if app.state in application_fsm.GONE and kernel.applications.get(app.key) is app:
        del kernel.applications[app.key]
        kernel.too_large.pop(app, None)
        kernel.timers.stop(application_fsm.APPLICATION, app)
        _start_anew(kernel, app)


def _start_anew(kernel: Kernel, old: Application) -> None:
    """Create a new application from the pods that waited for the end of the old one (K60)."""
    later = old.later
    first = next((task for task in later.values() if not task.is_placeholder), None)
    if first is None:
        for task in later.values():  # these end as pods of the old application
            kernel.fire_task(task, task_fsm.DISCARD)
        return
    old.later = {}
    app = create_application(kernel, first.pod)
    for task in later.values():
        _enter(kernel, app, task)
    submit_if_ready(kernel, app, app.tasks.values())
    for task in later.values():
        reconcile(kernel, task)


def leave_behind(kernel: Kernel, app: Application) -> None:
    """Drop the tasks that a completed application leaves: pods without a node came too late for it, and pods
    whose node was gone are not counted by the core (K60, K97)."""
    for task in list(app.tasks.values()):
        if task.is_placeholder or task.is_foreign:
            continue
        if task.state in task_fsm.UNPLACED or task.state in task_fsm.UNCONFIRMED:
            del app.tasks[task.key]
            _leave(app, task)
            app.later[task.key] = task
            kernel.fire_task(task, task_fsm.FORGOTTEN)


# -- the gang of a PodGroup ----------------------------------------------------------------------


def start(kernel: Kernel, app: Application) -> None:
    """Let the core place the remaining members too: one member has a node, or all have (K146, K204)."""
    allocations, app.allocations = app.allocations, {}
    kernel.fire_application(app, application_fsm.MEMBER_PLACED)
    if app.pod_group is None:
        app.chosen = {}
    for allocation, refusal in allocations.values():
        allocated(kernel, allocation, refusal)


def withdraw(kernel: Kernel, app: Application) -> None:
    """Tell the core not to place the chosen members. Others may be chosen at once."""
    kernel.fire_application(app, application_fsm.WITHDRAW)
    app.members_until = 0
    for task in app.chosen.values():
        if task.state in task_fsm.SOUGHT:
            kernel.fire_task(task, task_fsm.FORGOTTEN)
    look_again(kernel, app)


# -- effects -----------------------------------------------------------------------------------


def _add(kernel: Kernel, app: Application, effect: AddApplication) -> None:
    app.held_because = ""
    kernel.too_large.pop(app, None)
    gang = effect.gang and app.is_gang and not (app.timeout_over and not app.hard)
    if not effect.gang:
        app.resumed = True
    app.core_waits = gang
    app.core_pods = 0
    for task in app.tasks.values():
        task.in_core = False
    request = messages.add_application(app.metadata, force=app.with_node > 0, gang=gang)
    pod_groups.choose(kernel, app, request)
    kernel.outbox.add_application(request)
    kernel.unanswered.setdefault(app.key, deque()).append(app)


def _remove(kernel: Kernel, app: Application, effect: RemoveApplication) -> None:
    kernel.outbox.remove_application(app.key)


def _ask_for_pods(kernel: Kernel, app: Application, effect: AskForPods) -> None:
    if not kernel.serving:
        return
    app.changed = None  # from now on each member has to be asked for
    for task in list(app.tasks.values()):
        if task.is_placeholder:
            continue
        if task.state in task_fsm.UNCONFIRMED:
            report(kernel, task)
        elif task.is_foreign:
            kernel.place_task(task, task_fsm.RECOVER, task.node, "")
        elif effect.again and task.state in task_fsm.SOUGHT:
            kernel.fire_task(task, task_fsm.ASK)
        else:
            reconcile(kernel, task)


def _release_pod(kernel: Kernel, app: Application, effect: ReleasePod) -> None:
    task = kernel.tasks[effect.key]
    kernel.fire_task(task, task_fsm.RELEASE, type=effect.type)
    if task.state in task_fsm.LEAVING and not task.release_type:
        task.release_type = effect.type


def _mark_resumed(kernel: Kernel, app: Application, effect: MarkResumed) -> None:
    app.resumed = True
    if app.originator is not None:
        ref = ref_of(app.originator)
        kernel.actions.append(actions.Annotate(ref, {keys.GANG_RESUMED: "true"}))


def _has_ended(kernel: Kernel, app: Application, effect: HasEnded) -> None:
    kernel.fire_application(app, application_fsm.FAILED_, reason="")


def _fail_pods(kernel: Kernel, app: Application, effect: FailPods) -> None:
    """Write the whole reason to the pods' status, and fail the pods for two kinds of failure (K34). Pods of a
    held application that would be replaced at once stay (K60)."""
    reason = effect.reason.encode()[: TUNING.status_reason_bytes].decode(errors="ignore")
    phase_reason = next(
        (
            kind
            for kind in (application_fsm.TIMED_OUT, application_fsm.REJECTED_PREFIX)
            if kind in effect.reason
        ),
        "",
    )
    message = reason
    if phase_reason == application_fsm.TIMED_OUT:
        message = "the gang was not scheduled in time because resources were lacking"
    elif phase_reason == application_fsm.REJECTED_PREFIX:
        message = reason.removeprefix(application_fsm.REJECTED_PREFIX).removeprefix(": ")
    for task in app.tasks.values():
        if task.is_placeholder or task.node or task.state not in task_fsm.UNPLACED:
            continue
        stays = app.state in application_fsm.HOLDS and identity.is_replaced(task.pod)
        what = f"was rejected: {message}" if stays else f"has failed: {reason}"
        note = f"application {app.key} {what}"
        record_about(kernel, task.pod, "ApplicationFailed", "Scheduling", note)
        if stays:
            continue
        if phase_reason:
            kernel.actions.append(actions.FailPod(ref_of(task.pod), phase_reason, message))


# fmt: off
#: what executes the effects of this module
EFFECTS: Final[Handlers] = {
    AddApplication:    _add,
    RemoveApplication: _remove,
    AskForPods:        _ask_for_pods,
    ReleasePod:        _release_pod,
    MarkResumed:       _mark_resumed,
    HasEnded:          _has_ended,
    FailPods:          _fail_pods,
}
# fmt: on
