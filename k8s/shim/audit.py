"""The audit: compare the watch with the cache, the cache with the shim, and both with the core (K176).

All parts of the audit come through the queue, so everything that the core or the watch said before is known
when they are handled. A remaining difference is either a message to the core under way or an error. A
difference that the next audit finds again is reported and repaired (``mending``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quadriga.k8s.conversion import identity, resources
from quadriga.k8s.lifecycles import application as application_fsm
from quadriga.k8s.lifecycles import node as node_fsm
from quadriga.k8s.lifecycles import task as task_fsm
from quadriga.k8s.objects import Pod
from quadriga.k8s.shim import actions, differences, pod_groups, refused
from quadriga.k8s.shim.differences import Difference
from quadriga.k8s.shim.inputs import (
    AuditBegins,
    AuditEnds,
    CoreAllocation,
    CoreNode,
    CoreShows,
    WatchShows,
)
from quadriga.k8s.shim.kernel import Kernel
from quadriga.k8s.shim.mending import mend
from quadriga.k8s.shim.model import NodeEntry, Task
from quadriga.k8s.tuning import TUNING


def begin(kernel: Kernel, input: AuditBegins) -> None:
    """Start an audit, or abandon it if the shim is not serving."""
    if kernel.serving:
        kernel.audit.begin(input.with_core)
    else:
        kernel.audit.give_up()


def end(kernel: Kernel, input: AuditEnds) -> None:
    """End the audit: report and repair the differences that stand."""
    audit = kernel.audit
    if not audit.runs:
        return
    reported = 0
    for difference, subject, is_new in list(audit.end(kernel.now)):
        if is_new:
            reported += 1
            if reported <= TUNING.differences_reported:
                _report(kernel, difference)
        mend(kernel, difference, subject)
    if reported > TUNING.differences_reported:
        kernel.actions.append(
            actions.LogWarning(
                f"audit: {reported - TUNING.differences_reported} more differences are not named"
            )
        )


# -- the watch, the cache, the shim ------------------------------------------------------------


def watch_shows(kernel: Kernel, input: WatchShows) -> None:
    """Compare the watch with the cache and the shim."""
    audit, cache = kernel.audit, kernel.cache
    if not audit.runs:
        return
    audit.compared["pods"] += len(input.pods)
    for pod in input.pods:
        meta = pod.metadata
        uid = meta.uid
        cached = cache.pod(uid)
        if pod.ended:
            if cached is not None:
                audit.differs(differences.WATCHED, meta.namespace, uid, "ended", "counted", pod)
        elif cached is None:
            audit.differs(differences.WATCHED, meta.namespace, uid, _of(pod), "unknown", pod)
        elif cached is not pod and cached.metadata.resource_version != meta.resource_version:
            new, old = meta.resource_version, cached.metadata.resource_version
            audit.differs(
                differences.WATCHED, meta.namespace, uid, f"version {new}", f"version {old}", pod
            )
        else:
            _compare_known(kernel, pod)
    for uid in input.gone:
        if cache.pod(uid) is not None:
            audit.differs(differences.WATCHED, "", uid, differences.NOTHING, "counted")


def _compare_known(kernel: Kernel, pod: Pod) -> None:
    """Check that the shim has a cached pod where the cache has it."""
    uid = pod.metadata.uid
    task = kernel.tasks.get(uid)
    node = pod.spec.node_name
    if task is None and uid not in kernel.foreign:
        if _should_be_known(kernel, pod):
            kernel.audit.differs(
                differences.WATCHED, pod.metadata.namespace, uid, _of(pod), "left out", pod
            )
        return
    if node and uid not in kernel.on_node.get(node, ()):
        where = task.node if task is not None else ""
        kernel.audit.differs(differences.WATCHED, pod.metadata.namespace, uid, _of(pod), _at(where))
    assumed = kernel.cache.assumed(uid)
    if assumed and (task is None or task.node != assumed):
        chosen = task.node if task is not None else ""
        kernel.audit.differs(differences.ASSUMED, assumed, uid, f"counts on {assumed}", _at(chosen))


def _should_be_known(kernel: Kernel, pod: Pod) -> bool:
    """Return whether the shim should have the pod: some pods with our scheduler name are deliberately ignored
    (K90, K147)."""
    if not identity.is_ours(pod, kernel.settings):
        return bool(pod.spec.node_name)
    if refused.is_left_out(pod) or pod_groups.why_left_out(kernel, pod):
        return False
    return not identity.is_being_deleted_unplaced(pod) and not identity.is_placeholder(pod)


# -- the core ----------------------------------------------------------------------------------


def core_shows(kernel: Kernel, input: CoreShows) -> None:
    """Compare nodes and applications of the core with the shim."""
    if not kernel.audit.runs:
        return
    for name in input.nodes_asked:
        _compare_node(kernel, name, input.nodes.get(name))
    for app_id in input.applications_asked:
        _compare_application(kernel, app_id, input.applications.get(app_id))


def _compare_node(kernel: Kernel, name: str, core: CoreNode | None) -> None:
    audit, entry = kernel.audit, kernel.nodes.get(name)
    if entry is None or entry.state not in node_fsm.KNOWN:
        if core is not None and (entry is None or entry.state not in node_fsm.UNANSWERED):
            state = "no such node" if entry is None else f"a node that is {entry.state}"
            audit.differs(differences.NODE, name, name, state, "has the node")
        return
    if core is None:
        audit.differs(differences.NODE, name, name, f"a node that is {entry.state}", "unknown")
        return
    audit.compared["nodes"] += 1
    capacity = _without_zeros(resources.of_node(entry.node))
    if capacity != core.capacity:
        audit.differs(differences.CAPACITY, name, name, _text(capacity), _text(core.capacity))
    if _takes_pods(entry) != core.is_open:
        audit.differs(
            differences.SCHEDULABLE, name, name, _open(_takes_pods(entry)), _open(core.is_open)
        )
    _compare_pods(kernel, name, core)


def _takes_pods(entry: NodeEntry) -> bool:
    return entry.state in node_fsm.OPENED and not entry.is_cordoned


def _compare_pods(kernel: Kernel, name: str, core: CoreNode) -> None:
    audit = kernel.audit
    here = kernel.on_node.get(name, {})
    for uid in here:
        told = core.pods.get(uid)
        task = kernel.tasks.get(uid)
        if task is not None and not _counts(task):
            continue
        audit.compared["allocations"] += 1
        pod = kernel.cache.pod(uid)
        if pod is None:
            continue  # the watch reports it too
        is_foreign = task is None or task.is_foreign
        kind = differences.FOREIGN if is_foreign else differences.POD
        if told is None:
            amounts = _text(_without_zeros(resources.of_pod(pod)))
            audit.differs(kind, name, uid, f"{_named(pod)} takes {amounts}", differences.NOTHING)
        elif bool(told.application) == is_foreign:
            whose = ("one of ours", "of another scheduler")
            audit.differs(kind, name, uid, f"{_named(pod)} is {whose[is_foreign]}", _whose(told))
        elif task is None or task.state in task_fsm.SIZED or task.is_foreign:
            amounts_of = _without_zeros(resources.of_pod(pod))
            if amounts_of != told.amounts:
                ours = f"{_named(pod)} takes {_text(amounts_of)}"
                audit.differs(kind, name, uid, ours, _text(told.amounts))
    for uid, told in core.pods.items():
        if uid not in here:
            kind = differences.POD if told.application else differences.FOREIGN
            found = kernel.cache.pod(uid)
            there = "no such pod" if found is None else f"{_named(found)} is not there"
            said = f"{_whose(told)}, {_text(told.amounts)}"
            audit.differs(kind, name, uid, there, said, told.application)


def _counts(task: Task) -> bool:
    """Return whether the core should count the task. It should not if it has released it, never reported it,
    or if its pod is terminating."""
    return task.state not in task_fsm.LEAVING or bool(task.uuid)


def _compare_application(
    kernel: Kernel, app_id: str, core: Mapping[str, Mapping[str, int]] | None
) -> None:
    audit, app = kernel.audit, kernel.applications.get(app_id)
    audit.compared["applications"] += 1
    if app is None or app.state not in application_fsm.TOLD:
        if core is not None:
            state = "no such application" if app is None else f"one that is {app.state}"
            audit.differs(differences.APPLICATION, app_id, app_id, state, "has it")
        return
    if app.state not in application_fsm.IN_CORE:
        return  # an answer is still due
    if core is None:
        audit.differs(
            differences.APPLICATION, app_id, app_id, f"one that is {app.state}", "unknown"
        )
        return
    asks = app.state in application_fsm.HAS_ASKS
    for uid, task in app.tasks.items():
        seeks = task.state in task_fsm.SOUGHT
        told = core.get(uid)
        audit.compared["asks"] += seeks
        if seeks and told is None:
            if asks:
                audit.differs(differences.ASK, app_id, uid, _asks(task), differences.NOTHING)
        elif told is not None and not seeks:
            audit.differs(
                differences.ASK, app_id, uid, f"{_named(task.pod)} is {task.state}", _text(told)
            )
        elif told is not None and _without_zeros(task.amounts or {}) != told:
            audit.differs(differences.ASK, app_id, uid, _asks(task), _text(told))
    for uid, told in core.items():
        if uid not in app.tasks:
            audit.differs(differences.ASK, app_id, uid, "no such pod", _text(told))


# -- texts -------------------------------------------------------------------------------------


def _report(kernel: Kernel, difference: Difference) -> None:
    """Log the difference and record a Kubernetes event on the object."""
    kind, where, what, cluster, core = difference
    note = f"audit: {kind} {what}"
    if where and where != what:
        note += f" ({where})"
    note += f" differs: the cluster has {cluster}, the scheduler counts {core}"
    kernel.actions.append(actions.LogWarning(note))
    pod = kernel.cache.pod(what)
    if pod is None and kind == differences.APPLICATION:
        app = kernel.applications.get(what)
        pod = app.originator if app is not None else None
    node = kernel.nodes.get(where)
    if pod is not None:
        meta, about = pod.metadata, "Pod"
    elif node is not None:
        meta, about = node.node.metadata, "Node"
    else:
        return
    kernel.actions.append(
        actions.Record(
            about,  # type: ignore[arg-type]
            meta.namespace,
            meta.name,
            meta.uid,
            "Warning",
            "AuditDifference",
            "Audit",
            note,
        )
    )


def _named(pod: Pod) -> str:
    return f"pod {pod.metadata.namespace}/{pod.metadata.name}"


def _of(pod: Pod) -> str:
    return f"{_named(pod)} {_at(pod.spec.node_name)}"


def _at(node: str) -> str:
    return f"on {node}" if node else "without a node"


def _asks(task: Task) -> str:
    return f"{_named(task.pod)} asks for {_text(_without_zeros(task.amounts or {}))}"


def _whose(told: CoreAllocation) -> str:
    return f"a pod of {told.application}" if told.application else "a pod of another scheduler"


def _open(is_open: bool) -> str:
    return "open" if is_open else "closed"


def _without_zeros(amounts: Mapping[str, int]) -> dict[str, int]:
    return {name: value for name, value in amounts.items() if value}


def _text(amounts: Mapping[str, int]) -> str:
    return (
        " ".join(f"{name}={value}" for name, value in sorted(amounts.items()))
        or differences.NOTHING
    )


def dump(kernel: Kernel) -> dict[str, Any]:
    """Return the last audit for a state dump."""
    report = kernel.audit.report
    if report is None:
        return {}
    return {
        "at": report.at,
        "number": report.number,
        "withCore": report.with_core,
        "compared": report.compared,
        "stood": dict(sorted(kernel.audit.stood.items())),
        "fleeting": report.fleeting,
        "standing": [each._asdict() for each in report.standing[: TUNING.differences_dumped]],
    }
