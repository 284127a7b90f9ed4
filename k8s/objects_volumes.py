"""Storage objects, with only the fields that are used (K9). They are watched once a pod with a claim is seen.
Like ``objects`` they are never changed but replaced by their next version."""

from __future__ import annotations

from typing import Any

import msgspec

from quadriga.k8s.objects import LabelSelector, Metadata, NodeSelector, Quantities


class _Struct(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    pass


class ClaimResources(_Struct):
    requests: Quantities = {}


class ClaimSpec(_Struct):
    #: the volume that it is bound to, or will be bound to
    volume_name: str = ""
    #: ``None`` for the class of an old annotation, "" for no class
    storage_class_name: str | None = None
    access_modes: tuple[str, ...] = ()
    resources: ClaimResources = msgspec.field(default_factory=ClaimResources)
    #: selects volumes that were not provisioned for this claim
    selector: LabelSelector | None = None
    volume_mode: str = ""
    volume_attributes_class_name: str = ""


class PersistentVolumeClaim(_Struct):
    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: ClaimSpec = msgspec.field(default_factory=ClaimSpec)


class VolumeNodeAffinity(_Struct):
    required: NodeSelector | None = None


class CSISource(_Struct):
    driver: str = ""
    volume_handle: str = ""


class ClaimReference(_Struct):
    """The claim that a volume belongs to; without ``uid`` the volume was reserved for it by hand."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class VolumeSpec(_Struct):
    node_affinity: VolumeNodeAffinity | None = None
    csi: CSISource | None = None
    capacity: Quantities = {}
    access_modes: tuple[str, ...] = ()
    storage_class_name: str = ""
    claim_ref: ClaimReference | None = None
    volume_mode: str = ""
    volume_attributes_class_name: str = ""


class VolumeStatus(_Struct):
    phase: str = ""


class PersistentVolume(_Struct):
    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: VolumeSpec = msgspec.field(default_factory=VolumeSpec)
    status: VolumeStatus = msgspec.field(default_factory=VolumeStatus)


class TopologyRequirement(_Struct):
    key: str = ""
    values: tuple[str, ...] = ()


class TopologyTerm(_Struct):
    match_label_expressions: tuple[TopologyRequirement, ...] = ()


class StorageClass(_Struct):
    metadata: Metadata = msgspec.field(default_factory=Metadata)
    provisioner: str = ""
    volume_binding_mode: str = ""
    allowed_topologies: tuple[TopologyTerm, ...] = ()


class DriverLimit(_Struct):
    count: int | None = None


class NodeDriver(_Struct):
    name: str = ""
    allocatable: DriverLimit | None = None


class CSINodeSpec(_Struct):
    drivers: tuple[NodeDriver, ...] = ()


class CSINode(_Struct):
    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: CSINodeSpec = msgspec.field(default_factory=CSINodeSpec)


class CSIDriverSpec(_Struct):
    storage_capacity: bool = False


class CSIDriver(_Struct):
    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: CSIDriverSpec = msgspec.field(default_factory=CSIDriverSpec)


class CSIStorageCapacity(_Struct):
    metadata: Metadata = msgspec.field(default_factory=Metadata)
    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: Any = None
    maximum_volume_size: Any = None


class AttachedVolume(_Struct):
    persistent_volume_name: str = ""


class VolumeAttachmentSpec(_Struct):
    node_name: str = ""
    source: AttachedVolume = msgspec.field(default_factory=AttachedVolume)


class VolumeAttachment(_Struct):
    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: VolumeAttachmentSpec = msgspec.field(default_factory=VolumeAttachmentSpec)


VolumeObject = (
    PersistentVolumeClaim
    | PersistentVolume
    | StorageClass
    | CSINode
    | CSIDriver
    | CSIStorageCapacity
    | VolumeAttachment
)
