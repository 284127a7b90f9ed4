"""A cache with a few nodes and pods, for tests of predicates."""

from typing import Any

from decoded import decoded

from quadriga.k8s.cluster import ClusterCache
from quadriga.k8s.objects import Namespace, Node, Pod

SECOND = 1_000_000_000
HOST = "kubernetes.io/hostname"


class SmallCluster:
    """Pods are known by their name, which is their uid too. The time stands still until it is moved."""

    def __init__(self, **nodes: dict[str, Any]) -> None:
        self.now = 0
        self.cache = ClusterCache(lambda: self.now)
        for name, labels in nodes.items():
            self.node(name, labels)

    def node(self, name: str, labels: dict[str, str] | None = None, **spec: Any) -> None:
        """Its label of the host name is its name."""
        metadata = {"name": name, "labels": {HOST: name, **(labels or {})}}
        self.cache.set_node(decoded(Node, {"metadata": metadata, "spec": spec}))

    def namespace(self, name: str, **labels: str) -> None:
        manifest = {"metadata": {"name": name, "labels": labels}}
        self.cache.set_namespace(decoded(Namespace, manifest))

    def pod(
        self,
        name: str,
        node: str = "",
        *,
        namespace: str = "team",
        labels: dict[str, str] | None = None,
        phase: str = "Pending",
        deleted: bool = False,
        **spec: Any,
    ) -> None:
        metadata = {"name": name, "namespace": namespace, "uid": name, "labels": labels or {}}
        if deleted:
            metadata["deletionTimestamp"] = "2026-01-02T03:04:05Z"
        if node:
            spec["nodeName"] = node
        manifest = {"metadata": metadata, "spec": spec, "status": {"phase": phase}}
        self.cache.set_pod(decoded(Pod, manifest))

    def asks(self, name: str, node: str) -> str | None:
        """The answer to a question that assumes nothing."""
        return self.cache.predicates(name, node, False)

    def allows(self, name: str) -> str:
        """The nodes where the pod may go, as one text; nothing is assumed."""
        nodes = sorted(self.cache.dump()["nodes"])
        return " ".join(node for node in nodes if not self.cache.refusals(name, node))


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def node_affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    """Required affinity to nodes, as part of a pod's spec."""
    required = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def term(key: str = HOST, selector: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A term of pod (anti-)affinity, by default about pods with the label ``app=web``."""
    chosen = {"matchLabels": {"app": "web"}} if selector is None else selector
    return {"topologyKey": key, "labelSelector": chosen, **more}


def near(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def apart(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def spread(key: str = "zone", skew: int = 1, **more: Any) -> dict[str, Any]:
    """A constraint of topology spread, by default over pods with the label ``app=web``."""
    return {
        "topologyKey": key,
        "maxSkew": skew,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        **more,
    }
