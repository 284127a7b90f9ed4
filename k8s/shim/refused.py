"""Objects that exceed the bounds (Q16, `conversion.bounds`).

A pod without a node is left out: it is not asked for and creates no application. A known pod keeps what its
last version within the bounds had, but takes its node, its deletion and its status from the new version. A pod
that was never seen within the bounds and has a node counts without the parts that are too large. Each is
reported once in an event and in the log, and for a waiting pod in its condition.
"""

from __future__ import annotations

from msgspec.structs import replace

from quadriga.k8s.objects import Namespace, Node, Pod
from quadriga.k8s.shim import actions
from quadriga.k8s.shim.kernel import Kernel
from quadriga.k8s.shim.model import ref_of
from quadriga.k8s.shim.tasks import SKIPPED

_REASON = "BeyondBounds"


def is_left_out(pod: Pod) -> bool:
    """Return whether the pod is not scheduled because of the bounds."""
    return pod.refusal != "" and not pod.spec.node_name


def what_counts(kernel: Kernel, pod: Pod) -> Pod:
    """Return the version that counts of a pod beyond the bounds, and report it."""
    uid = pod.metadata.uid
    task, foreign = kernel.tasks.get(uid), kernel.foreign.get(uid)
    known = task.pod if task is not None else foreign.pod if foreign is not None else None
    if known is None or known.refusal:
        if pod.spec.node_name:
            report(kernel, pod, "the pod has a node and counts without them")
        return pod
    report(kernel, pod, "the change is not taken")
    old, new = known.metadata, pod.metadata
    metadata = replace(
        new, labels=old.labels, annotations=old.annotations, owner_references=old.owner_references
    )
    spec = replace(
        known.spec, node_name=pod.spec.node_name, scheduling_gates=pod.spec.scheduling_gates
    )
    return replace(pod, metadata=metadata, spec=spec, refusal="")


def hold(kernel: Kernel, pod: Pod) -> None:
    """Let a pod with our scheduler name and without a node wait until it is within the bounds."""
    note = f"the pod is not scheduled: it has {pod.refusal}"
    if report(kernel, pod, "the pod is not scheduled"):
        kernel.actions.append(actions.SetCondition(ref_of(pod), SKIPPED, note))


def report(kernel: Kernel, pod: Pod, consequence: str) -> bool:
    """Report a pod, once for each text; return whether it was reported now."""
    meta = pod.metadata
    note = f"{consequence}: it has {pod.refusal}"
    if kernel.refusals.get(meta.uid) == note:
        return False
    kernel.refusals[meta.uid] = note
    _record(kernel, "Pod", pod, note)
    return True


def forget(kernel: Kernel, uid: str) -> None:
    """Forget a pod that is within the bounds again, or gone."""
    del kernel.refusals[uid]
    if uid not in kernel.tasks:
        kernel.actions.append(actions.DropCondition(uid))


def report_node_or_namespace(kernel: Kernel, found: Node | Namespace, consequence: str) -> None:
    """Report a node or a namespace, once for each text. ``consequence`` follows its name."""
    kind = found.__class__.__name__
    key, note = f"{kind} {found.metadata.name}", f"{consequence}: it has {found.refusal}"
    if not found.refusal:
        kernel.refusals.pop(key, None)
    elif kernel.refusals.get(key) != note:
        kernel.refusals[key] = note
        _record(kernel, kind, found, note)


def _record(kernel: Kernel, kind: str, found: Pod | Node | Namespace, note: str) -> None:
    meta = found.metadata
    kernel.actions.append(
        actions.Record(
            kind,  # type: ignore[arg-type]
            meta.namespace,
            meta.name,
            meta.uid,
            "Warning",
            _REASON,
            "Scheduling",
            note,
            kernel.starting,
        )
    )
    name = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
    kernel.actions.append(actions.LogWarning(f"{kind.lower()} {name}: {note}"))
