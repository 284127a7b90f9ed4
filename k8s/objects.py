"""The objects of a cluster, with only the fields that are used, as msgspec structs.

Field names are those of the Kubernetes API in snake case, and the JSON is the API's. Unknown fields are dropped
while decoding, so 50,000 pods take about 250 MB rather than one GB. The structs are not tracked by the garbage
collector (``gc=False``), because they have no cycles.

An object is never changed: its next version replaces it.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec


class _Struct(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    pass


class OwnerReference(_Struct):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class Metadata(_Struct):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    #: RFC 3339, whole seconds, as the API writes it; "" if there is none
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()


class Requirement(_Struct):
    """A requirement of a label selector (``In``, ``NotIn``, ``Exists``, ``DoesNotExist``) or of a node
    selector, which has ``Gt`` and ``Lt`` as well."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(_Struct):
    match_labels: dict[str, str] = {}
    match_expressions: tuple[Requirement, ...] = ()


class NodeSelectorTerm(_Struct):
    match_expressions: tuple[Requirement, ...] = ()
    match_fields: tuple[Requirement, ...] = ()


class NodeSelector(_Struct):
    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class NodeAffinity(_Struct):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None


class PodAffinityTerm(_Struct):
    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None


class PodAffinity(_Struct):
    """Pod affinity or ``podAntiAffinity``. Preferred terms are not used."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()


class Affinity(_Struct):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(_Struct):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class SpreadConstraint(_Struct):
    topology_key: str = ""
    max_skew: int = 1
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    match_label_keys: tuple[str, ...] = ()
    node_affinity_policy: str = ""
    node_taints_policy: str = ""


#: quantities as the API writes them: strings, and numbers in old manifests
Quantities = dict[str, str | int | float]


class ResourceRequirements(_Struct):
    requests: Quantities = {}


class ContainerPort(_Struct):
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = ""
    container_port: int = 0


class RestartRule(_Struct):
    action: str = ""


class Container(_Struct):
    name: str = ""
    resources: ResourceRequirements | None = None
    ports: tuple[ContainerPort, ...] = ()
    #: ``Always`` makes an init container a sidecar
    restart_policy: str = ""
    restart_policy_rules: tuple[RestartRule, ...] = ()


class NamedReference(_Struct):
    name: str = ""


class ClaimSource(_Struct):
    claim_name: str = ""
    read_only: bool = False


class Volume(_Struct):
    """A volume of a pod: with a claim, ephemeral (its claim is named after pod and volume), or an inline disk
    of an in-tree plugin."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: dict[str, Any] | None = None
    csi: dict[str, Any] | None = None
    gce_persistent_disk: dict[str, Any] | None = None
    aws_elastic_block_store: dict[str, Any] | None = None
    rbd: dict[str, Any] | None = None
    iscsi: dict[str, Any] | None = None


class SchedulingGroup(_Struct):
    """The PodGroup that the pod belongs to (since 1.36)."""

    pod_group_name: str = ""


class WorkloadReference(_Struct):
    """A group of a Workload that the pod belongs to (1.35 only)."""

    name: str = ""
    pod_group: str = ""


#: the parts of an object beyond a bound (``conversion.bounds``), which are dropped from it; "" for nearly all.
#: It is no field of the API.
_REFUSAL: Final = "quadriga/refusal"


class PodSpec(_Struct):
    scheduler_name: str = ""
    node_name: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str = ""
    host_network: bool = False
    host_users: bool | None = None
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[SpreadConstraint, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: Quantities = {}
    resources: ResourceRequirements | None = None
    volumes: tuple[Volume, ...] = ()
    image_pull_secrets: tuple[NamedReference, ...] = ()
    scheduling_gates: tuple[NamedReference, ...] = ()
    resource_claims: tuple[NamedReference, ...] = ()
    restart_policy: str = ""
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    scheduling_group: SchedulingGroup | None = None
    workload_ref: WorkloadReference | None = None


class PodCondition(_Struct):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class ContainerStatus(_Struct):
    name: str = ""
    allocated_resources: Quantities = {}
    resources: ResourceRequirements | None = None


class PodStatus(_Struct):
    phase: str = ""
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resize: str = ""
    #: resources of the pod as a whole
    allocated_resources: Quantities = {}
    resources: ResourceRequirements | None = None


class Pod(_Struct):
    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)
    refusal: str = msgspec.field(default="", name=_REFUSAL)

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def ended(self) -> bool:
        """Whether the pod has terminated: its phase is final (K92)."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def terminating(self) -> bool:
        return self.metadata.deletion_timestamp != ""


class Taint(_Struct):
    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(_Struct):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeCondition(_Struct):
    type: str = ""
    status: str = ""


class NodeStatus(_Struct):
    allocatable: Quantities = {}
    conditions: tuple[NodeCondition, ...] = ()
    #: features of the kubelet that not every kubelet has (since 1.35)
    declared_features: tuple[str, ...] = ()


class Node(_Struct):
    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)
    refusal: str = msgspec.field(default="", name=_REFUSAL)

    @property
    def name(self) -> str:
        return self.metadata.name


class Namespace(_Struct):
    metadata: Metadata = msgspec.field(default_factory=Metadata)
    refusal: str = msgspec.field(default="", name=_REFUSAL)


class PriorityClass(_Struct):
    metadata: Metadata = msgspec.field(default_factory=Metadata)
    value: int = 0
    preemption_policy: str = ""


class GangPolicy(_Struct):
    min_count: int = 0


class SchedulingPolicy(_Struct):
    """The policy of a PodGroup: one of both. Other policies may follow."""

    basic: dict[str, Any] | None = None
    gang: GangPolicy | None = None


class TopologyConstraint(_Struct):
    key: str = ""


class SchedulingConstraints(_Struct):
    topology: tuple[TopologyConstraint, ...] = ()


class PodGroupSpec(_Struct):
    scheduling_policy: SchedulingPolicy = msgspec.field(default_factory=SchedulingPolicy)
    scheduling_constraints: SchedulingConstraints | None = None
    #: a string in 1.36, an object since 1.37
    disruption_mode: Any = None
    priority: int | None = None
    resource_claims: tuple[NamedReference, ...] = ()
    parent_composite_pod_group_name: str = ""


class PodGroupStatus(_Struct):
    conditions: tuple[PodCondition, ...] = ()


class PodGroup(_Struct):
    """A group of pods of the Workload API (since 1.36), with all facts of the group."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: PodGroupSpec = msgspec.field(default_factory=PodGroupSpec)
    status: PodGroupStatus = msgspec.field(default_factory=PodGroupStatus)


class ConfigMap(_Struct):
    metadata: Metadata = msgspec.field(default_factory=Metadata)
    data: dict[str, str] = {}
    #: decoded from base64
    binary_data: dict[str, bytes] = {}


# -- storage objects, which are watched once a pod with a claim is seen (K9) -----------------------


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
