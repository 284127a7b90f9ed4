"""Start and recovery: the core learns of everything that runs before it decides anything (K139 to K152).

Each step sends requests and waits for the answers. Changes of objects wait until the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from quadriga.k8s.conversion import identity, keys, messages, placeholders, task_groups
from quadriga.k8s.lifecycles import application as application_fsm
from quadriga.k8s.lifecycles import node as node_fsm
from quadriga.k8s.lifecycles import shim as shim_fsm
from quadriga.k8s.lifecycles import task as task_fsm
from quadriga.k8s.lifecycles.effects import CreateMissing, Recover, Serve, StopProcess
from quadriga.k8s.objects import Pod
from quadriga.k8s.shim import actions, pod_groups, refused
from quadriga.k8s.shim.applications import create_application, settle, submit_if_ready
from quadriga.k8s.shim.gangs import create_missing
from quadriga.k8s.shim.kernel import Handlers, Kernel
from quadriga.k8s.shim.model import order_of
from quadriga.k8s.shim.pods import add, add_foreign, report_foreign
from quadriga.k8s.shim.tasks import reconcile, report_or_count
from quadriga.k8s.tuning import TUNING


def _begin(kernel: Kernel, shim: Kernel, effect: Recover) -> None:
    _STEPS[effect.step](kernel)


def _stop(kernel: Kernel, shim: Kernel, effect: StopProcess) -> None:
    kernel.actions.append(actions.Stop(effect.code, effect.reason))


def advance(kernel: Kernel, *, progress: bool = True) -> None:
    """Continue the recovery after an answer: the step is done, or continues."""
    state = kernel.state
    waiting = _WAITING.get(state)
    if waiting is None:
        return
    if waiting(kernel):
        if progress:
            kernel.fire_shim(shim_fsm.PROGRESS)
        return
    kernel.fire_shim(shim_fsm.DONE)
    if kernel.state in shim_fsm.ENDS_RECOVERY:
        kernel.fire_shim(shim_fsm.SERVE)


# -- register ----------------------------------------------------------------------------------


def _register(kernel: Kernel) -> None:
    """Register with the core. Everything that it knew from earlier requests is void: it starts empty (K151)."""
    kernel.serving, kernel.starting = False, True
    kernel.audit.give_up()
    kernel.outbox.clear()
    kernel.unanswered.clear()
    kernel.unreported.clear()
    kernel.unanswered_nodes.clear()
    for app in kernel.applications.values():
        if app.state in application_fsm.HOLDS:
            kernel.fire_application(app, application_fsm.FORGOTTEN)
    for entry in kernel.nodes.values():
        kernel.fire_node(entry, node_fsm.FORGOTTEN)
    for foreign in kernel.foreign.values():
        foreign.reported = False
    for task in list(kernel.tasks.values()):
        kernel.fire_task(task, task_fsm.FORGOTTEN)
        task.uuid = ""
        task.is_foreign = False
    kernel.outbox.request(messages.register(kernel.settings, kernel.build))


# -- applications ------------------------------------------------------------------------------


def _submit(kernel: Kernel) -> None:
    _sort_out(kernel)
    for app in sorted(kernel.applications.values(), key=lambda each: each.number):
        kernel.fire_application(app, application_fsm.FORGOTTEN)
        submit_if_ready(kernel, app, app.tasks.values())
        settle(kernel, app)
    advance(kernel, progress=False)


def _sort_out(kernel: Kernel) -> None:
    """Create applications, tasks and foreign pods from the live pods that were listed (K59, K71)."""
    pods = sorted(kernel.unsorted.values(), key=order_of)
    kernel.unsorted.clear()
    held: list[Pod] = []
    by_id: dict[str, list[Pod]] = {}
    for pod in pods:
        pod_groups.note(kernel, pod)
        if not identity.is_ours(pod, kernel.settings):
            if pod.spec.node_name:
                if pod.refusal:
                    refused.what_counts(kernel, pod)
                add_foreign(kernel, pod)
        elif refused.is_left_out(pod):
            pass  # ``add`` reports it
        elif identity.is_placeholder(pod):
            held.append(pod)
        elif pod_groups.gang_of(kernel, pod) or pod_groups.why_left_out(kernel, pod):
            pass  # ``add`` creates its gang, or leaves it out
        else:
            by_id.setdefault(identity.application_id(pod, kernel.settings), []).append(pod)
    of_id: dict[str, list[Pod]] = {}
    for pod in held:
        of_id.setdefault(identity.application_id(pod, kernel.settings), []).append(pod)
    for app_id, members in by_id.items():
        live = [each for each in members if not identity.is_being_deleted_unplaced(each)]
        if live and app_id not in kernel.applications:
            _create(kernel, live, of_id.get(app_id, []))
    for pod in (*(each for each in pods if not identity.is_placeholder(each)), *held):
        if identity.is_ours(pod, kernel.settings):
            if pod.refusal and pod.spec.node_name:
                refused.what_counts(kernel, pod)
            add(kernel, pod)


def _create(kernel: Kernel, members: list[Pod], held: list[Pod]) -> None:
    """Create the application of these pods. Its originator owns the placeholders if it lives (K71)."""
    owners = {placeholders.originator_uid(each) for each in held}
    originator = next((each for each in members if each.metadata.uid in owners), members[0])
    source = originator
    if held and not originator.metadata.annotations.get(keys.TASK_GROUPS):
        source = _with_groups_of(originator, _declarer(members, held), held)
    app = create_application(kernel, source)
    app.originator = originator
    app.timeout_over = app.is_gang and app.is_overdue(kernel.now)


def _declarer(members: list[Pod], held: list[Pod]) -> Pod | None:
    """Return the member with the definition that the placeholders were created from (K69)."""
    hashes = {each.metadata.annotations.get(keys.DEFINITION_HASH, "") for each in held}
    for pod in members:
        definition = pod.metadata.annotations.get(keys.TASK_GROUPS, "")
        if definition and task_groups.hash_of(definition) in hashes:
            return pod
    return None


def _with_groups_of(pod: Pod, declarer: Pod | None, held: list[Pod]) -> Pod:
    """Return the pod with the task groups of its gang if the pod that declared them is gone: another member may
    have the same definition, and the placeholders show what they were created from (K69)."""
    said = declarer.metadata.annotations if declarer is not None else {}
    copied = {
        key: text for key in (keys.TASK_GROUPS, keys.POLICY_PARAMETERS) if (text := said.get(key))
    } or placeholders.declared_by(held)
    metadata = replace(pod.metadata, annotations={**pod.metadata.annotations, **copied})
    return replace(pod, metadata=metadata)


# -- nodes -------------------------------------------------------------------------------------


def _create_nodes(kernel: Kernel) -> None:
    for _, entry in sorted(kernel.nodes.items()):
        kernel.fire_node(entry, node_fsm.CREATE)
    advance(kernel, progress=False)


# -- what runs there ---------------------------------------------------------------------------


def _report(kernel: Kernel) -> None:
    """Report the pods in the order of creation, foreign ones and ours (K141). Pods of a rejected application
    are reported as foreign."""
    found: list[tuple[tuple[str, str, str, str], str]] = [
        (order_of(foreign.pod), uid) for uid, foreign in kernel.foreign.items()
    ]
    for uid, task in kernel.tasks.items():
        if task.node:
            found.append((order_of(task.pod), uid))
    for _, uid in sorted(found):
        foreign = kernel.foreign.get(uid)
        if foreign is not None:
            report_foreign(kernel, foreign)
            continue
        task = kernel.tasks[uid]
        if task.state in task_fsm.FINDS_NODE and not task.is_foreign:
            kernel.place_task(task, task_fsm.RECOVER, task.node, "")
            if task.is_foreign:
                continue
        if task.is_foreign or task.state in task_fsm.REPORTED:
            if report_or_count(kernel, task):
                kernel.unreported.add(uid)
    advance(kernel, progress=False)


# -- serve -------------------------------------------------------------------------------------


def _serve(kernel: Kernel, shim: Kernel, effect: Serve) -> None:
    kernel.serving = True
    for _, entry in sorted(kernel.nodes.items()):
        kernel.fire_node(entry, node_fsm.OPEN_)
    for app in sorted(kernel.applications.values(), key=lambda each: each.number):
        if app.state in application_fsm.ASKS_PLACEHOLDERS:
            create_missing(kernel, app, CreateMissing())
    for task in sorted(kernel.tasks.values(), key=lambda each: order_of(each.pod)):
        reconcile(kernel, task)
    for app in list(kernel.applications.values()):
        settle(kernel, app)
    for group in kernel.pod_groups.values():
        pod_groups.say_scheduled(kernel, group)
    kernel.starting = False


# -- what is missing ---------------------------------------------------------------------------


def missing(kernel: Kernel) -> str:
    """Return what a recovery waits for, for the message of a process that ends (K142)."""
    state = kernel.state
    if state == shim_fsm.STEPS["Registering"]:
        return "the core has not answered the registration for 60 s"
    names = sorted(
        kernel.tasks[uid].pod.metadata.name for uid in kernel.unreported if uid in kernel.tasks
    )
    what = "pods"
    if state == shim_fsm.STEPS["Submitting"]:
        what, names = "applications", sorted(kernel.unanswered)
    elif state == shim_fsm.STEPS["Creating"]:
        what, names = "nodes", sorted(kernel.unanswered_nodes)
    shown = ", ".join(names[: TUNING.names_shown])
    more = f" and {len(names) - TUNING.names_shown} more" if len(names) > TUNING.names_shown else ""
    return f"the core has not answered for 60 s; {what} without an answer: {shown}{more}"


#: whether a step waits for more answers
_WAITING: Final[dict[str, Callable[[Kernel], bool]]] = {
    shim_fsm.STEPS["Registering"]: lambda kernel: False,
    shim_fsm.STEPS["Submitting"]: lambda kernel: bool(kernel.unanswered),
    shim_fsm.STEPS["Creating"]: lambda kernel: bool(kernel.unanswered_nodes),
    shim_fsm.STEPS["Reporting"]: lambda kernel: bool(kernel.unreported),
}
_STEPS: Final[dict[str, Callable[[Kernel], None]]] = {
    shim_fsm.REGISTERING: _register,
    shim_fsm.SUBMITTING: _submit,
    shim_fsm.CREATING: _create_nodes,
    shim_fsm.REPORTING: _report,
}


# fmt: off
#: what executes the effects of this module
EFFECTS: Final[Handlers] = {
    Recover:     _begin,
    StopProcess: _stop,
    Serve:       _serve,
}
# fmt: on
