"""The filters whose answer depends only on the pod's signature and the node object (K119 to K122, K210)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from quadriga.k8s.cluster.selectors import NodeTerm, compile_node_selector, integer
from quadriga.k8s.objects import Node, PodSpec, Taint, Toleration

NODE_UNSCHEDULABLE = "NodeUnschedulable: the node is cordoned"
NODE_AFFINITY = "NodeAffinity: the node does not match the pod's node selector or required affinity"

_CORDONED = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_REFUSING = ("NoSchedule", "NoExecute")


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Return whether the toleration tolerates the taint (K121)."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "Exists":
            return True
        case "" | "Equal":
            return toleration.key != "" and toleration.value == taint.value
        case "Gt" | "Lt" as operator:
            bound, value = integer(toleration.value), integer(taint.value)
            if not toleration.key or bound is None or value is None:
                return False
            return value > bound if operator == "Gt" else value < bound
        case _:
            return False


def untolerated(tolerations: tuple[Toleration, ...], taints: tuple[Taint, ...]) -> Taint | None:
    """Return the first taint that is not tolerated."""
    for taint in taints:
        if taint.effect in _REFUSING and not any(tolerates(each, taint) for each in tolerations):
            return taint
    return None


@dataclass(frozen=True, slots=True)
class NodeAffinity:
    """What a pod requires of the labels and the name of a node (K122)."""

    selector: tuple[tuple[str, str], ...]
    #: ``None`` without required affinity; an empty tuple matches no node
    terms: tuple[NodeTerm, ...] | None

    @classmethod
    def of(cls, spec: PodSpec) -> NodeAffinity:
        """Compile the node selector and required node affinity of a pod."""
        affinity = spec.affinity.node_affinity if spec.affinity else None
        required = (
            affinity.required_during_scheduling_ignored_during_execution if affinity else None
        )
        return cls(
            tuple(sorted(spec.node_selector.items())),
            None if required is None else compile_node_selector(required),
        )

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether a node with this name and these labels matches."""
        for key, value in self.selector:
            if labels.get(key) != value:
                return False
        return self.terms is None or any(term.matches(name, labels) for term in self.terms)


def cordoned(node: Node, tolerations: tuple[Toleration, ...]) -> bool:
    """Return whether the node is unschedulable and the pod does not tolerate that (K119)."""
    return node.spec.unschedulable and not any(tolerates(each, _CORDONED) for each in tolerations)


def needed_features(spec: PodSpec) -> tuple[str, ...]:
    """Return the features that the pod needs of a kubelet, as kube-scheduler 1.36 infers them from the spec
    (K210)."""
    containers = (*spec.containers, *spec.init_containers)
    actions = [rule.action for each in containers for rule in each.restart_policy_rules]
    restarts = "RestartAllContainers" in actions
    found = ["RestartAllContainersOnContainerExits"] if restarts else []
    if spec.host_network and spec.host_users is False:
        found.append("UserNamespacesHostNetworkSupport")
    return tuple(found)


def undeclared(features: tuple[str, ...], node: Node) -> str | None:
    """Return the reason if the node does not declare a feature that the pod needs (K210)."""
    missing = [each for each in features if each not in node.status.declared_features]
    if not missing:
        return None
    return f"NodeDeclaredFeatures: the node does not declare {' and '.join(missing)}"
