"""Volumes: the filters of claims and disks (K129 to K132).

Nothing is kept per node: few pods have volumes, and only pods with volumes on the node are looked at. Unknown
objects refuse with a reason (K103).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from quadriga.k8s.cluster.free_volumes import ClaimName, FreeVolumes, class_of, requested, size_of
from quadriga.k8s.cluster.selectors import NodeTerm, compile_node_selector, compile_selector
from quadriga.k8s.objects import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodSpec,
    StorageClass,
    VolumeAttachment,
    VolumeObject,
)


@dataclass(frozen=True, slots=True)
class Disk:
    """An inline disk, of an in-tree plugin, that two pods on a node may not both use (K131)."""

    kind: str
    name: tuple[str, ...]
    read_only: bool
    #: Ceph only: the monitors. Two disks with a common monitor are the same.
    monitors: frozenset[str] = frozenset()


def disks(spec: PodSpec) -> tuple[Disk, ...]:
    """Return all inline disks of a pod."""
    found = []
    for volume in spec.volumes:
        if (gce := volume.gce_persistent_disk) is not None:
            found.append(Disk("gcePersistentDisk", _texts(gce, "pdName"), _read_only(gce)))
        if (aws := volume.aws_elastic_block_store) is not None:
            # It cannot be attached twice, not even read-only.
            found.append(Disk("awsElasticBlockStore", _texts(aws, "volumeID"), False))
        if (iscsi := volume.iscsi) is not None:
            found.append(Disk("iscsi", _texts(iscsi, "iqn"), _read_only(iscsi)))
        if (rbd := volume.rbd) is not None:
            monitors = rbd.get("monitors")
            known = frozenset(map(str, monitors)) if isinstance(monitors, list) else frozenset()
            name = (str(rbd.get("pool") or "rbd"), *_texts(rbd, "image"))
            found.append(Disk("rbd", name, _read_only(rbd), known))
    return tuple(found)


def conflict(ours: tuple[Disk, ...], theirs: tuple[Disk, ...]) -> Disk | None:
    """Return the first of our disks that the other pod's disks prevent us from using."""
    for disk in ours:
        for other in theirs:
            if (disk.kind, disk.name) != (other.kind, other.name):
                continue
            if disk.read_only and other.read_only:
                continue
            if disk.kind != "rbd" or disk.monitors & other.monitors:
                return disk
    return None


def _texts(source: dict[str, Any], key: str) -> tuple[str, ...]:
    return (str(source.get(key, "")),)


def _read_only(source: dict[str, Any]) -> bool:
    return source.get("readOnly") is True


_BOUND = "pv.kubernetes.io/bind-completed"
_SELECTED = "volume.kubernetes.io/selected-node"
_STATIC = ("", "kubernetes.io/no-provisioner")
_LATE = "WaitForFirstConsumer"
_ALONE = "ReadWriteOncePod"

#: labels of zones and regions, each with its deprecated or current counterpart
_ZONES = {
    "topology.kubernetes.io/zone": "failure-domain.beta.kubernetes.io/zone",
    "topology.kubernetes.io/region": "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}


@dataclass(frozen=True, slots=True)
class PodVolumes:
    """The volumes of a pod: its claims, each with whether the pod must own it, and its disks."""

    uid: str
    claims: tuple[tuple[ClaimName, bool], ...]
    disks: tuple[Disk, ...]

    @classmethod
    def of(cls, pod: Pod) -> PodVolumes | None:
        """Return the volumes of the pod, ``None`` if it has none of these kinds."""
        namespace, claims = pod.metadata.namespace, {}
        for volume in pod.spec.volumes:
            if volume.persistent_volume_claim is not None:
                claims[namespace, volume.persistent_volume_claim.claim_name] = False
            elif volume.ephemeral is not None:
                claims[namespace, f"{pod.metadata.name}-{volume.name}"] = True
        inline = disks(pod.spec)
        return cls(pod.uid, tuple(claims.items()), inline) if claims or inline else None


class Volumes:
    """All storage objects, and the pods with volumes by node."""

    def __init__(self) -> None:
        self._claims: dict[ClaimName, PersistentVolumeClaim] = {}
        self._volumes: dict[str, PersistentVolume] = {}
        self._free = FreeVolumes()
        self._terms: dict[str, tuple[NodeTerm, ...]] = {}
        self._classes: dict[str, StorageClass] = {}
        self._csi_nodes: dict[str, CSINode] = {}
        self._drivers: dict[str, CSIDriver] = {}
        self._capacities: dict[tuple[str, str], CSIStorageCapacity] = {}
        self._attachments: dict[str, VolumeAttachment] = {}
        self._placed: dict[str, dict[str, PodVolumes]] = {}
        #: the placed pods that use a claim
        self._users: dict[ClaimName, dict[str, None]] = {}

    # ---- what is there

    def set(self, thing: VolumeObject) -> None:
        """Add or update an object."""
        meta = thing.metadata
        match thing:
            case PersistentVolumeClaim():
                name = (meta.namespace, meta.name)
                self._claims[name] = thing
                self._free.bind(name, thing.spec.volume_name if self._is_bound(name) else "")
            case PersistentVolume():
                self._volumes[meta.name] = thing
                affinity = thing.spec.node_affinity
                required = None if affinity is None else affinity.required
                self._terms.pop(meta.name, None)
                if required is not None:
                    self._terms[meta.name] = compile_node_selector(required)
                self._free.set(thing, self._terms.get(meta.name))
            case StorageClass():
                self._classes[meta.name] = thing
            case CSINode():
                self._csi_nodes[meta.name] = thing
            case CSIDriver():
                self._drivers[meta.name] = thing
            case CSIStorageCapacity():
                self._capacities[meta.namespace, meta.name] = thing
            case VolumeAttachment():
                self._attachments[meta.name] = thing

    def remove(self, thing: VolumeObject) -> None:
        """Remove an object; do nothing if it is unknown."""
        meta = thing.metadata
        match thing:
            case PersistentVolumeClaim():
                self._claims.pop((meta.namespace, meta.name), None)
                self._free.bind((meta.namespace, meta.name), "")
            case PersistentVolume():
                self._volumes.pop(meta.name, None)
                self._terms.pop(meta.name, None)
                self._free.remove(meta.name)
            case StorageClass():
                self._classes.pop(meta.name, None)
            case CSINode():
                self._csi_nodes.pop(meta.name, None)
            case CSIDriver():
                self._drivers.pop(meta.name, None)
            case CSIStorageCapacity():
                self._capacities.pop((meta.namespace, meta.name), None)
            case VolumeAttachment():
                self._attachments.pop(meta.name, None)

    def place(self, volumes: PodVolumes, node: str) -> None:
        """Count a pod's volumes on the node."""
        self._placed.setdefault(node, {})[volumes.uid] = volumes
        for claim, _ in volumes.claims:
            self._users.setdefault(claim, {})[volumes.uid] = None

    def leave(self, volumes: PodVolumes, node: str) -> None:
        """Stop counting a pod's volumes on the node."""
        placed = self._placed[node]
        del placed[volumes.uid]
        if not placed:
            del self._placed[node]
        for claim, _ in volumes.claims:
            del self._users[claim][volumes.uid]
            if not self._users[claim]:
                del self._users[claim]

    # ---- volumes that are chosen for pods

    def choose(self, volumes: PodVolumes, node: Node) -> None:
        """Choose and hold the volumes that the pod's claims get on the node."""
        matched = self._matched(volumes, node)
        self._free.hold(volumes.uid, {claim: name for claim, (name, _) in matched.items() if name})

    def drop(self, uid: str) -> None:
        """Release the volumes held for the pod: it has them, or will not go there."""
        self._free.drop(uid)

    def chosen(self, uid: str) -> dict[ClaimName, str]:
        """Return the volumes that are held for the pod, by its claims."""
        return self._free.chosen(uid)

    def _matched(self, volumes: PodVolumes, node: Node) -> dict[ClaimName, tuple[str, bool]]:
        """Return for each claim that may get an existing volume which one it gets on the node, "" for none, and
        whether it will get one that cannot be used there. Small claims come first, as in kube-scheduler."""
        waiting = [
            claim
            for name, _ in volumes.claims
            if (claim := self._claims.get(name)) is not None and self._may_match(name, claim)
        ]
        waiting.sort(key=requested)
        found: dict[ClaimName, tuple[str, bool]] = {}
        taken: set[str] = set()
        for claim in waiting:
            name = (claim.metadata.namespace, claim.metadata.name)
            found[name] = self._free.find(claim, node, volumes.uid, taken)
            taken.add(found[name][0])
        return found

    def _may_match(self, name: ClaimName, claim: PersistentVolumeClaim) -> bool:
        """Return whether the claim waits for its first consumer and its class has no provisioner."""
        chosen = self._class(claim)
        if chosen is None or chosen.volume_binding_mode != _LATE or claim.spec.volume_name:
            return False
        return chosen.provisioner in _STATIC or _SELECTED not in claim.metadata.annotations

    # ---- what a pod needs

    def problems(self, volumes: PodVolumes) -> list[str]:
        """Return why the pod cannot be placed anywhere yet: claims that are missing or being deleted (K88)."""
        return [
            text for claim, own in volumes.claims if (text := self._missing(claim, own, volumes))
        ]

    def unbound(self, volumes: PodVolumes) -> list[ClaimName]:
        """Return the claims that are not bound to a volume yet."""
        return [claim for claim, _ in volumes.claims if not self._is_bound(claim)]

    def _missing(self, claim: ClaimName, own: bool, volumes: PodVolumes) -> str | None:
        found = self._claims.get(claim)
        if found is None:
            return f"the claim {claim[1]} does not exist"
        if found.metadata.deletion_timestamp:
            return f"the claim {claim[1]} is being deleted"
        if own and all(each.uid != volumes.uid for each in found.metadata.owner_references):
            return f"the claim {claim[1]} does not belong to the pod"
        return None

    def _is_bound(self, name: ClaimName) -> bool:
        claim = self._claims.get(name)
        return (
            claim is not None
            and claim.spec.volume_name != ""
            and _BOUND in claim.metadata.annotations
        )

    # ---- filters

    def reasons(self, volumes: PodVolumes, node: Node) -> Iterator[str]:
        """Yield why the pod cannot use its volumes on the node, in the order of the filters."""
        if reason := self._restricted(volumes, node):
            yield f"VolumeRestrictions: {reason}"
        if reason := self._too_many(volumes, node):
            yield f"NodeVolumeLimits: {reason}"
        if reason := self._unbindable(volumes, node):
            yield f"VolumeBinding: {reason}"
        if reason := self._elsewhere(volumes, node):
            yield f"VolumeZone: {reason}"

    def of_other_pods(self, volumes: PodVolumes, node: Node) -> str | None:
        """Return the first reason that results from other pods."""
        if reason := self._restricted(volumes, node):
            return f"VolumeRestrictions: {reason}"
        if reason := self._too_many(volumes, node):
            return f"NodeVolumeLimits: {reason}"
        matched = self._matched(volumes, node)
        for claim, _ in volumes.claims:
            if claim in matched and (
                reason := self._unreachable(claim, volumes.uid, node, matched)
            ):
                return f"VolumeBinding: {reason}"
        return None

    def _unbindable(self, volumes: PodVolumes, node: Node) -> str | None:
        matched = self._matched(volumes, node)
        for claim, own in volumes.claims:
            if reason := self._missing(claim, own, volumes) or self._unreachable(
                claim, volumes.uid, node, matched
            ):
                return reason
        return None

    def _unreachable(
        self,
        name: ClaimName,
        own: str,
        node: Node,
        matched: Mapping[ClaimName, tuple[str, bool]],
    ) -> str | None:
        claim = self._claims[name]
        if self._is_bound(name):
            volume = claim.spec.volume_name
            if volume not in self._volumes:
                return f"the volume of the claim {name[1]} does not exist"
            terms = self._terms.get(volume)
            if terms is not None:
                labels = node.metadata.labels
                if not any(term.matches(node.name, labels) for term in terms):
                    return f"the volume of the claim {name[1]} cannot be used on the node"
            return None
        chosen = self._class(claim)
        if chosen is None:
            return f"the claim {name[1]} is not bound, and its storage class does not exist"
        if chosen.volume_binding_mode != _LATE or claim.spec.volume_name:
            return f"the claim {name[1]} is not bound yet"
        volume, elsewhere = matched.get(name, ("", False))
        if volume:
            return None
        if elsewhere:
            return f"the volume that the claim {name[1]} is to have cannot be used on the node"
        selected = claim.metadata.annotations.get(_SELECTED, node.name)
        if selected != node.name and any(uid != own for uid in self._users.get(name, ())):
            # A pod that is alone may take its claim to another node (K150).
            return f"a volume for the claim {name[1]} is being provisioned for another node"
        if chosen.provisioner in _STATIC:
            return (
                f"no free volume on the node fits the claim {name[1]}, and its storage class has no"
                " provisioner"
            )
        if not _allows(chosen, node.metadata.labels):
            return f"the storage class of the claim {name[1]} provides no volumes on the node"
        return self._no_capacity(claim, chosen, node)

    def _class(self, claim: PersistentVolumeClaim) -> StorageClass | None:
        return self._classes.get(class_of(claim))

    def _no_capacity(
        self, claim: PersistentVolumeClaim, chosen: StorageClass, node: Node
    ) -> str | None:
        driver = self._drivers.get(chosen.provisioner)
        if driver is None or not driver.spec.storage_capacity:
            return None
        size = size_of(claim.spec.resources.requests.get("storage", 0))
        for capacity in self._capacities.values():
            if capacity.storage_class_name != chosen.metadata.name:
                continue
            if not compile_selector(capacity.node_topology).matches(node.metadata.labels):
                continue
            most = capacity.maximum_volume_size
            room = size_of(capacity.capacity if most is None else most)
            if size is not None and room is not None and room >= size:
                return None
        return f"the node does not have enough storage for the claim {claim.metadata.name}"

    def _elsewhere(self, volumes: PodVolumes, node: Node) -> str | None:
        labels = node.metadata.labels
        if not any(key in labels for key in _ZONES):
            return None
        for name, _ in volumes.claims:
            claim = self._claims.get(name)
            volume = self._volumes.get(claim.spec.volume_name) if claim is not None else None
            if volume is None:
                continue
            for key, twin in _ZONES.items():
                allowed = volume.metadata.labels.get(key)
                if allowed is None:
                    continue
                value = labels.get(key, labels.get(twin, ""))
                if value not in allowed.split("__"):
                    return f"the volume of the claim {name[1]} is in another zone or region"
        return None

    def _restricted(self, volumes: PodVolumes, node: Node) -> str | None:
        for name, _ in volumes.claims:
            claim = self._claims.get(name)
            if claim is not None and _ALONE in claim.spec.access_modes:
                if any(uid != volumes.uid for uid in self._users.get(name, ())):
                    return f"another pod uses the claim {name[1]}, which only one pod may use"
        if volumes.disks:
            for other in self._placed.get(node.name, {}).values():
                disk = conflict(volumes.disks, other.disks)
                if disk is not None and other.uid != volumes.uid:
                    return f"another pod on the node uses the same {disk.kind}"
        return None

    def _too_many(self, volumes: PodVolumes, node: Node) -> str | None:
        csi = self._csi_nodes.get(node.name)
        limits = {
            driver.name: driver.allocatable.count
            for driver in (csi.spec.drivers if csi is not None else ())
            if driver.allocatable is not None and driver.allocatable.count is not None
        }
        if not limits:
            return None
        ours = {handle for name, _ in volumes.claims if (handle := self._handle(name))}
        ours = {handle for handle in ours if handle[0] in limits}
        if not ours:
            return None
        used = set(self._attached(node.name))
        for other in self._placed.get(node.name, {}).values():
            used.update(handle for name, _ in other.claims if (handle := self._handle(name)))
        for driver in sorted({driver for driver, _ in ours - used}):
            if sum(each == driver for each, _ in used | ours) > limits[driver]:
                return f"the node cannot take another volume of {driver}"
        return None

    def _handle(self, name: ClaimName) -> tuple[str, str] | None:
        """Return the driver and the volume of a claim; a volume that is still to be provisioned has the claim's
        name."""
        claim = self._claims.get(name)
        if claim is None:
            return None
        if claim.spec.volume_name:
            volume = self._volumes.get(claim.spec.volume_name)
            csi = None if volume is None else volume.spec.csi
            return None if csi is None else (csi.driver, csi.volume_handle)
        chosen = self._class(claim)
        # No volume handle contains a line break.
        return None if chosen is None else (chosen.provisioner, "\n".join(name))

    def _attached(self, node: str) -> Iterator[tuple[str, str]]:
        for attachment in self._attachments.values():
            if attachment.spec.node_name == node:
                volume = self._volumes.get(attachment.spec.source.persistent_volume_name)
                if volume is not None and volume.spec.csi is not None:
                    yield volume.spec.csi.driver, volume.spec.csi.volume_handle


def _allows(chosen: StorageClass, labels: Mapping[str, str]) -> bool:
    """Return whether the class provisions volumes for nodes with these labels."""
    return not chosen.allowed_topologies or any(
        all(labels.get(each.key) in each.values for each in term.match_label_expressions)
        for term in chosen.allowed_topologies
    )
