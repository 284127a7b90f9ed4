"""The cluster cache: nodes, pods, assumed placements, and counters over them.

The shim's thread writes; the core's thread asks (`predicates`) and confirms (`assume`). One lock is held for
each call, and each call is short (K3). See D315.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import Any

from quadriga.k8s.cluster.pod_filters import (
    affinity_refuses,
    anti_affinity_refuses,
    others_refuse,
    ports_refuse,
    spread_refuses,
)
from quadriga.k8s.cluster.pod_signatures import PodSignatures
from quadriga.k8s.cluster.ports import HostPorts
from quadriga.k8s.cluster.records import NodeRecord, PodRecord
from quadriga.k8s.cluster.refused_nodes import RefusedNodes, RefusedPairs
from quadriga.k8s.cluster.selections import Selections
from quadriga.k8s.cluster.volumes import PodVolumes, Volumes
from quadriga.k8s.objects import Namespace, Node, Pod, VolumeObject
from quadriga.k8s.tuning import TUNING
from quadriga.si.predicates import KnownRefusals

_NODE_NAME = "NodeName: the pod names another node"
_RETRY = "LastBindFailed: binding the pod to this node failed, so other nodes are tried first"
_NONE: frozenset[str] = frozenset()
_RESOURCE_CLAIMS = "DynamicResources: resource claims are not supported yet"


class ClusterCache:
    """Holds nodes, pods and assumed placements, and answers predicates.

    Pods are known by UID, nodes by name. A reason is a text that begins with the name of the filter that
    refuses; no reason means that the node is feasible. ``clock`` gives ns and never goes back.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._lock = Lock()
        self._nodes: dict[str, NodeRecord] = {}
        #: the same nodes, for the counters
        self._objects: dict[str, Node] = {}
        self._free_indexes: list[int] = []
        self._pods: dict[str, PodRecord] = {}
        #: pods that are assumed on a node and not bound, by node
        self._assumed_on: dict[str, dict[str, None]] = {}
        #: deadlines of tentative assumptions, oldest first; some are out of date
        self._tentative: deque[tuple[int, PodRecord]] = deque()
        self._selections = Selections(self._objects)
        self._signatures = PodSignatures(self._selections)
        self._ports = HostPorts()
        self._refused = RefusedPairs()
        self._refused_nodes = RefusedNodes(self._nodes, self._ports)
        self._volumes = Volumes()

    # ---- the cluster

    def set_node(self, node: Node) -> bool:
        """Add or update a node. Return whether it was known and may now take a pod that it refused before."""
        with self._lock:
            name = node.name
            record = self._nodes.get(name)
            if record is None:
                index = self._free_indexes.pop() if self._free_indexes else len(self._nodes)
                self._nodes[name] = NodeRecord(node, index)
                self._objects[name] = node
                self._signatures.node_changed(index, None, node)
                self._selections.node_changed(name, None, node)
                self._refused_nodes.node_changed(index, node, known=False)
                return False
            old = record.node
            record.node = self._objects[name] = node
            if (
                old.spec != node.spec
                or old.metadata.labels != node.metadata.labels
                or old.status.declared_features != node.status.declared_features
            ):
                self._signatures.node_changed(record.index, old, node)
                self._selections.node_changed(name, old, node)
                self._refused_nodes.node_changed(record.index, node, known=True)
                self._refused.node_changed(name)
                return True
            return old.status != node.status and self._refused.node_changed(name)

    def remove_node(self, name: str) -> tuple[str, ...]:
        """Remove a node. Return the UIDs of the pods that were assumed there and so have no node any more
        (K97). A pod that is bound there keeps the node and counts again when the node comes back."""
        with self._lock:
            record = self._nodes.get(name)
            if record is None:
                return ()
            undone = tuple(self._assumed_on.get(name, ()))
            for uid in undone:
                self._undo(self._pods[uid])
            for _, pod in self._tentative:
                if pod.tentative == name:
                    self._undo(pod)
            del self._nodes[name]
            del self._objects[name]
            self._free_indexes.append(record.index)
            self._signatures.node_changed(record.index, record.node, None)
            self._refused_nodes.node_changed(record.index, None, known=True)
            self._selections.node_changed(name, record.node, None)
            self._refused.node_changed(name)
            return undone

    def set_pod(self, pod: Pod) -> bool:
        """Add or update a pod. It counts on the node in its spec, else on the node where it is assumed; a
        terminated pod counts nowhere. Return whether a known pod has changed in a way that predicates look at.
        """
        with self._lock:
            changed = False
            record = self._pods.get(pod.uid)
            if pod.ended:
                self._forget_pod(pod.uid)
                return False
            key = self._signatures.key(pod)
            if record is None:
                deque(self._prepare(key, pod), 0)
                record = PodRecord(
                    pod, self._signatures.take(key, pod), self._selections.profile(pod)
                )
                self._pods[pod.uid] = record
            elif key != record.signature.key or self._other_profile(record.pod, pod):
                deque(self._prepare(key, pod), 0)
                self._count(record, "")
                signature, profile = record.signature, record.profile
                record.signature = self._signatures.take(key, pod)
                record.profile = self._selections.profile(pod)
                changed = signature is not record.signature or (
                    profile is not record.profile
                    and any(map(self._selections.may_belong, (profile, record.profile)))
                )
                self._signatures.drop(signature)
                self._selections.drop_profile(profile)
                if changed:
                    self._refused_nodes.object_changed()
            volumes = PodVolumes.of(pod) if pod.spec.volumes else None
            if volumes != record.volumes:
                self._volumes.drop(pod.uid)
                self._count(record, "")
                record.volumes = volumes
            record.pod = pod
            if pod.spec.node_name:
                self._assume(record, "")
                record.tentative = ""
                self._choose(record, None)
            self._count(record, record.place)
            self._selections.let_go()
            return changed

    def preparing(self, pod: Pod) -> Iterator[None]:
        """Do in slices what the terms of a new pod need before ``set_pod`` (Q16). No object may change in
        between."""
        spec = pod.spec
        if pod.ended or (spec.affinity is None and not spec.topology_spread_constraints):
            return
        slices = self._prepare(self._signatures.key(pod), pod)
        while True:
            with self._lock:
                if next(slices, self) is self:
                    return
            yield

    def remove_pod(self, uid: str) -> None:
        """Remove a pod; do nothing if it is unknown."""
        with self._lock:
            self._forget_pod(uid)

    def set_namespace(self, namespace: Namespace) -> None:
        """Add or update a namespace: terms may select namespaces by their labels."""
        with self._lock:
            meta = namespace.metadata
            self._refused_nodes.counts_changed()
            self._selections.set_namespace(meta.name, meta.labels)

    def remove_namespace(self, name: str) -> None:
        """Remove a namespace; do nothing if it is unknown."""
        with self._lock:
            self._refused_nodes.counts_changed()
            self._selections.set_namespace(name, None)

    def set_volume_object(self, thing: VolumeObject) -> None:
        """Add or update a claim, a volume, a storage class or another storage object (K9)."""
        with self._lock:
            self._refused_nodes.volumes_changed()
            self._volumes.set(thing)

    def remove_volume_object(self, thing: VolumeObject) -> None:
        """Remove a storage object; do nothing if it is unknown."""
        with self._lock:
            self._refused_nodes.volumes_changed()
            self._volumes.remove(thing)

    def claim_problems(self, uid: str) -> list[str]:
        """Return why the pod must not be asked for yet: claims that are missing or being deleted (K88)."""
        with self._lock:
            volumes = self._volumes_of(uid)
            return [] if volumes is None else self._volumes.problems(volumes)

    def chosen_volumes(self, uid: str) -> dict[tuple[str, str], str]:
        """Return the volumes that the pod's claims will be bound to, by namespace and name of the claims. They
        are held since the pod was assumed on its node (K102)."""
        with self._lock:
            return self._volumes.chosen(uid)

    def pod(self, uid: str) -> Pod | None:
        """Return the newest version of a pod that has not terminated."""
        record = self._pods.get(uid)
        return None if record is None else record.pod

    def node(self, name: str) -> Node | None:
        """Return the newest version of a node."""
        return self._objects.get(name)

    def node_names(self) -> tuple[str, ...]:
        """Return the names of all nodes."""
        return tuple(self._objects)

    def pod_uids(self) -> tuple[str, ...]:
        """Return the UIDs of all pods that have not terminated."""
        return tuple(self._pods)

    # ---- assumptions

    def assume(self, uid: str, node: str) -> str | None:
        """Assume the pod on the node that the core has chosen: it counts there from now on. Filters that look
        at other pods are evaluated once more (K100); return the reason if one refuses, and assume nothing."""
        with self._lock:
            self._expire()
            record, there = self._pods.get(uid), self._nodes.get(node)
            if record is None or there is None:
                return _unknown(uid, node, record is None)
            bound = record.pod.spec.node_name
            if bound:
                return None if bound == node else _NODE_NAME
            self._count(record, "")
            record.tentative = ""
            reasons = self._changed(record, there)
            if not reasons:
                self._assume(record, node)
                self._choose(record, there.node)
            elif not record.assumed:
                self._choose(record, None)
            self._count(record, record.place)
            return reasons[0] if reasons else None

    def forget(self, uid: str) -> None:
        """Undo the assumption: the pod counts nowhere, and any node may be chosen next (K108, K109). A bound
        pod stays where it is."""
        with self._lock:
            record = self._pods.get(uid)
            if record is not None:
                self._undo(record)

    def assumed(self, uid: str) -> str | None:
        """Return the node where the pod is assumed and not yet bound."""
        record = self._pods.get(uid)
        return (record.assumed or None) if record is not None else None

    def refuse(self, uid: str, node: str) -> int:
        """Refuse the node to the pod for 30 s because a bind failed, twice as long each time up to 5 minutes; a
        change of the node ends it (K110). Return for how long (ns), 0 if the pod or node is unknown."""
        with self._lock:
            if uid not in self._pods or node not in self._nodes:
                return 0
            return self._refused.add(uid, node, self._clock())

    # ---- predicates

    def predicates(self, uid: str, node: str, allocate: bool) -> str | None:
        """Return ``None`` if the pod may go to the node, else the first reason against it (K115, K118).

        With ``allocate`` a positive answer counts the pod there for at most 1 s, until it is assumed or the
        next positive answer replaces this one (K99). Without it, as for a reservation, the filters that need
        free resources are skipped (K116).
        """
        # For a pod that fits on few nodes the core asks about thousands. What the signature has kept is read
        # without the lock: it is one look-up, and true at that moment.
        record, there = self._pods.get(uid), self._nodes.get(node)
        if record is not None and there is not None and not record.pod.spec.node_name:
            kept = record.signature.refusals.get(there.index)
            if kept is not None:
                return kept
        with self._lock:
            self._expire()
            record, there = self._pods.get(uid), self._nodes.get(node)
            if record is None or there is None:
                return _unknown(uid, node, record is None)
            if record.counted:
                self._count(record, "")
            reasons = self._reasons(record, there, allocate)
            if not reasons and allocate and not record.pod.spec.node_name and not record.assumed:
                record.tentative = node
                record.deadline = self._clock() + TUNING.tentative_ns
                self._tentative.append((record.deadline, record))
                self._choose(record, there.node)
            self._count(record, record.place)
            return reasons[0] if reasons else None

    def refused_nodes(self, uid: str, names: tuple[str, ...]) -> KnownRefusals | None:
        """Return which of the nodes refuse the pod for an allocation, and why (K137). For each node the answer
        is that of ``predicates``; nodes where only that can decide are left out. ``names`` must be the same
        object as long as the nodes are the same. Return ``None`` for a pod that is unknown or has a node."""
        with self._lock:
            self._expire()
            record = self._pods.get(uid)
            if record is None or record.pod.spec.node_name:
                return None
            self._count(record, "")
            try:
                retry = self._refused.nodes(uid, self._clock())
                last = _RESOURCE_CLAIMS if record.pod.spec.resource_claims else ""
                self._selections.settle(record.signature.selections)
                return self._refused_nodes.of(record, names, retry, _RETRY, last)
            finally:
                self._count(record, record.place)

    def refusals(self, uid: str, node: str) -> list[str]:
        """Return all reasons against the node in the order of the filters, empty if it is feasible. Assume
        nothing."""
        with self._lock:
            self._expire()
            record, there = self._pods.get(uid), self._nodes.get(node)
            if record is None or there is None:
                return [_unknown(uid, node, record is None)]
            self._count(record, "")
            try:
                return list(self._reasons(record, there, True, every=True))
            finally:
                self._count(record, record.place)

    def preemption_predicates(
        self, uid: str, node: str, victims: Sequence[str], start: int
    ) -> int | None:
        """Return the index of the last victim that must be evicted before the pod may go to the node (K117).
        The first attempt is without victims 0 to ``start``, each further one without one more.

        Pods that are unknown or elsewhere are skipped. Return ``None`` if evicting all is not enough.
        """
        with self._lock:
            self._expire()
            record, there = self._pods.get(uid), self._nodes.get(node)
            if record is None or there is None or start < 0:
                return None
            away = [record]
            self._count(record, "")
            try:
                for index, victim in enumerate(victims):
                    gone = self._pods.get(victim)
                    if gone is not None and gone.counted == node:
                        self._count(gone, "")
                        away.append(gone)
                    if index >= start and not self._reasons(record, there, True):
                        return index
                return None
            finally:
                for each in away:
                    self._count(each, each.place)

    def dump(self) -> dict[str, Any]:
        """Return the cache as data for JSON, without values of annotations or environment variables (K17)."""
        with self._lock:
            return {
                "nodes": {
                    name: {"unschedulable": record.node.spec.unschedulable}
                    for name, record in sorted(self._nodes.items())
                },
                "pods": {uid: self._dumped(record) for uid, record in sorted(self._pods.items())},
            }

    # ---- inside

    def _reasons(
        self, record: PodRecord, there: NodeRecord, allocate: bool, every: bool = False
    ) -> Sequence[str]:
        """Return the first reason against the node, or with ``every`` all reasons in the order of the filters."""
        pod, node, signature = record.pod, there.node, record.signature
        found: list[str] = []
        named = pod.spec.node_name
        elsewhere = named != "" and named != node.name
        if elsewhere or signature.refuses(there.index, node) is not None:
            found += signature.reasons(node, _NODE_NAME if elsewhere else None)
            if not every:
                return found
        if pod.uid in self._refused.pairs and self._refused.refuses(
            pod.uid, node.name, self._clock()
        ):
            found.append(_RETRY)
            if not every:
                return found
        if signature.ports and (reason := ports_refuse(signature, node.name, self._ports)):
            found.append(reason)
            if not every:
                return found
        if allocate and record.volumes is not None:
            found += self._volumes.reasons(record.volumes, node)
            if found and not every:
                return found
        if signature.selections or record.profile.against:
            found += self._of_domains(record, there, every)
            if found and not every:
                return found
        if allocate and pod.spec.resource_claims:
            found.append(_RESOURCE_CLAIMS)
        return found

    def _changed(self, record: PodRecord, there: NodeRecord) -> Sequence[str]:
        """Return the first reason that results from other pods (K100)."""
        node, signature = there.node, record.signature
        if signature.ports and (reason := ports_refuse(signature, node.name, self._ports)):
            return (reason,)
        if record.volumes is not None:
            if reason := self._volumes.of_other_pods(record.volumes, node):
                return (reason,)
        return self._of_domains(record, there, False)

    def _of_domains(self, record: PodRecord, there: NodeRecord, every: bool) -> Sequence[str]:
        """Return the reasons that result from pods in the node's domains, or only the first."""
        node, signature, profile = there.node, record.signature, record.profile
        self._selections.settle(signature.selections)
        found: list[str] = []
        if signature.spread and (reason := spread_refuses(signature, profile, node)):
            found.append(reason)
            if not every:
                return found
        if signature.affinity and (reason := affinity_refuses(signature, profile, node)):
            found.append(reason)
            if not every:
                return found
        if signature.anti_affinity and (reason := anti_affinity_refuses(signature, node)):
            found.append(reason)
            if not every:
                return found
        if profile.against and (reason := others_refuse(profile, node)):
            found.append(reason)
        return found

    def _volumes_of(self, uid: str) -> PodVolumes | None:
        record = self._pods.get(uid)
        return None if record is None else record.volumes

    def _count(self, record: PodRecord, name: str) -> None:
        """Count the pod on the node of this name from now on; "" for nowhere."""
        before = record.counted
        if before == name:
            return
        record.counted = name
        signature = record.signature
        selections = self._selections
        if signature.ports or signature.anti_affinity or selections.may_belong(record.profile):
            self._refused_nodes.counts_changed()
        for place, number in ((before, -1), (name, 1)):
            if not place:
                continue
            selections.count(record.profile, place, number)
            if signature.ports:
                self._ports.add(place, signature.ports, number)
            for anti in signature.anti_affinity:
                selections.count_holder(anti.holders, place, number)
        if record.volumes is not None:
            self._refused_nodes.volumes_changed()
            if before:
                self._volumes.leave(record.volumes, before)
            if name:
                self._volumes.place(record.volumes, name)

    def _prepare(self, key: bytes, pod: Pod) -> Iterator[None]:
        """Prepare a new signature in slices: pods with labels that no term looked at get other profiles, and
        its terms get their counts."""
        if self._signatures.known(key):
            return
        selections = self._selections
        matchers = self._signatures.matchers(pod)
        keys = set[tuple[str, str]]().union(*map(selections.new_keys, matchers))
        selections.look_at(keys)
        labels: dict[str, set[str]] = {}
        for namespace, label in keys:
            labels.setdefault(namespace, set()).add(label)
        everywhere = labels.get("", _NONE)
        for at, record in enumerate(tuple(self._pods.values()) if keys else (), 1):
            if at % TUNING.cluster_slice == 0:
                yield
            meta = record.pod.metadata
            if (everywhere | labels.get(meta.namespace, _NONE)).isdisjoint(meta.labels):
                continue
            old = record.profile
            record.profile = selections.profile(record.pod)
            if record.counted:
                selections.count_profile(old, record.counted, -1)
                selections.count_profile(record.profile, record.counted, 1)
            selections.drop_profile(old)
        for each in matchers:
            yield from selections.make(each)

    @staticmethod
    def _other_profile(old: Pod, new: Pod) -> bool:
        return (
            old.metadata.labels != new.metadata.labels
            or old.terminating != new.terminating
            or old.metadata.namespace != new.metadata.namespace
        )

    def _dumped(self, record: PodRecord) -> dict[str, Any]:
        meta, spec, volumes = record.pod.metadata, record.pod.spec, record.volumes
        return {
            "namespace": meta.namespace,
            "name": meta.name,
            "node": spec.node_name,
            "assumed": record.assumed,
            "tentative": record.tentative,
            "volumes_bound": volumes is None or not self._volumes.unbound(volumes),
            "orphan": bool(spec.node_name) and spec.node_name not in self._nodes,
        }

    def _assume(self, record: PodRecord, node: str) -> None:
        uid, before = record.pod.uid, record.assumed
        if before == node:
            return
        if before:
            there = self._assumed_on[before]
            del there[uid]
            if not there:
                del self._assumed_on[before]
        record.assumed = node
        if node:
            self._assumed_on.setdefault(node, {})[uid] = None

    def _choose(self, record: PodRecord, node: Node | None) -> None:
        """Choose volumes for the pod on the node and hold them; with ``None`` release them."""
        if record.volumes is None:
            return
        self._refused_nodes.volumes_changed()
        if node is None:
            self._volumes.drop(record.pod.uid)
        else:
            self._volumes.choose(record.volumes, node)

    def _undo(self, record: PodRecord) -> None:
        self._assume(record, "")
        record.tentative = ""
        self._choose(record, None)
        self._count(record, record.place)

    def _forget_pod(self, uid: str) -> None:
        record = self._pods.get(uid)
        if record is None:
            return
        self._assume(record, "")
        record.tentative = ""
        self._choose(record, None)
        self._count(record, "")
        self._signatures.drop(record.signature)
        self._selections.drop_profile(record.profile)
        self._refused.forget(uid)
        del self._pods[uid]

    def _expire(self) -> None:
        """Drop tentative assumptions that are too old."""
        waiting = self._tentative
        if not waiting:
            return
        now = self._clock()
        while waiting and waiting[0][0] <= now:
            deadline, record = waiting.popleft()
            if record.tentative and record.deadline == deadline:
                record.tentative = ""
                self._choose(record, None)
                self._count(record, record.place)


def _unknown(uid: str, node: str, pod: bool) -> str:
    return f"the pod {uid} is unknown" if pod else f"the node {node} is unknown"
