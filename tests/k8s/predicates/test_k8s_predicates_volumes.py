"""Volumes: claims, zones, disks and limits (K88, K129 to K132)."""

from typing import Any

import msgspec
import pytest
from small_cluster import SmallCluster, expression

from quadriga.k8s import objects
from quadriga.k8s.objects import VolumeObject

Json = dict[str, Any]

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
ON_N1 = {
    "required": {
        "nodeSelectorTerms": [
            {"matchExpressions": [expression("kubernetes.io/hostname", "In", "n1")]}
        ]
    }
}


def thing(kind: str, name: str, **fields: Any) -> VolumeObject:
    metadata = {"name": name, **fields.pop("metadata", {})}
    manifest = {"metadata": metadata, **fields}
    made: VolumeObject = msgspec.convert(manifest, getattr(objects, kind))
    return made


class Storage(SmallCluster):
    """Two nodes in two zones, and a pod ``p`` with the claim ``data``."""

    def __init__(self) -> None:
        super().__init__(n1={ZONE: "a"}, n2={ZONE: "b"})
        self.use("p", "data")

    def use(self, name: str, *claims: str, node: str = "") -> None:
        volumes = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]
        self.pod(name, node, volumes=volumes)

    def set(self, kind: str, name: str, **fields: Any) -> None:
        self.cache.set_volume_object(thing(kind, name, **fields))

    def remove(self, kind: str, name: str, **fields: Any) -> None:
        self.cache.remove_volume_object(thing(kind, name, **fields))

    def claim(
        self, name: str = "data", volume: str = "", storage_class: str | None = None, **more: Any
    ) -> None:
        spec = {"volumeName": volume, **more.pop("spec", {})}
        if storage_class is not None:
            spec["storageClassName"] = storage_class
        annotations = {**(BOUND if volume else {}), **more.pop("annotations", {})}
        metadata = {"namespace": "team", "annotations": annotations, **more}
        self.set("PersistentVolumeClaim", name, metadata=metadata, spec=spec)

    def storage_class(self, name: str = "fast", **fields: Any) -> None:
        late = {"provisioner": "disk.csi", "volumeBindingMode": "WaitForFirstConsumer"}
        self.set("StorageClass", name, **{**late, **fields})

    def why(self, name: str = "p", node: str = "n1") -> list[str]:
        return self.cache.refusals(name, node)


@pytest.fixture
def cluster() -> Storage:
    return Storage()


def test_k150_a_claim_stays_at_its_node_while_another_pod_is_placed(cluster: Storage) -> None:
    cluster.storage_class()
    cluster.claim(storage_class="fast", annotations={"volume.kubernetes.io/selected-node": "n2"})
    assert cluster.allows("p") == "n1 n2"
    cluster.use("other", "data", node="n2")
    text = "VolumeBinding: a volume for the claim data is being provisioned for another node"
    assert cluster.why() == [text]
    assert cluster.allows("p") == "n2"


def test_k129_a_claim_must_be_there(cluster: Storage) -> None:
    assert cluster.why() == ["VolumeBinding: the claim data does not exist"]
    assert cluster.asks("p", "n1") is None, "a reservation does not ask for volumes"
    cluster.claim(volume="v")
    assert cluster.why() == ["VolumeBinding: the volume of the claim data does not exist"]
    cluster.set("PersistentVolume", "v")
    assert cluster.allows("p") == "n1 n2"
    cluster.remove("PersistentVolume", "v")
    assert cluster.allows("p") == ""
    cluster.claim(volume="v", deletionTimestamp="2026-01-02T03:04:05Z")
    assert cluster.why() == ["VolumeBinding: the claim data is being deleted"]


def test_k129_a_volume_may_be_for_some_nodes(cluster: Storage) -> None:
    cluster.claim(volume="v")
    cluster.set("PersistentVolume", "v", spec={"nodeAffinity": ON_N1})
    assert cluster.allows("p") == "n1"
    assert cluster.why(node="n2") == [
        "VolumeBinding: the volume of the claim data cannot be used on the node"
    ]
    cluster.set("PersistentVolume", "v")
    assert cluster.allows("p") == "n1 n2"


NOT_YET = "the claim data is not bound yet"
NO_CLASS = "the claim data is not bound, and its storage class does not exist"
BY_HAND = "no free volume on the node fits the claim data, and its storage class has no provisioner"
FAST = {"storage_class": "fast"}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, NO_CLASS),
        ({"storage_class": "none"}, NO_CLASS),
        ({"storage_class": "now"}, NOT_YET),
        ({"storage_class": "unset"}, NOT_YET),
        ({**FAST, "spec": {"volumeName": "v"}}, NOT_YET),
        ({"storage_class": "by-hand"}, BY_HAND),
        (FAST, None),
        ({"annotations": {"volume.beta.kubernetes.io/storage-class": "fast"}}, None),
        ({**FAST, "annotations": {"volume.kubernetes.io/selected-node": "n2"}}, None),
        ({**FAST, "annotations": {"volume.kubernetes.io/selected-node": "n1"}}, None),
    ],
)
def test_k129_claims_that_are_not_bound(cluster: Storage, fields: Json, reason: str | None) -> None:
    cluster.storage_class("fast")
    cluster.storage_class("now", volumeBindingMode="Immediate")
    cluster.storage_class("unset", volumeBindingMode="")
    cluster.storage_class("by-hand", provisioner="kubernetes.io/no-provisioner")
    cluster.claim(**fields)
    assert cluster.why() == ([] if reason is None else [f"VolumeBinding: {reason}"])


def test_k129_a_class_may_be_for_some_nodes(cluster: Storage) -> None:
    cluster.claim(storage_class="fast")
    topologies = [
        {"matchLabelExpressions": [{"key": ZONE, "values": ["b", "c"]}]},
        {"matchLabelExpressions": [{"key": ZONE, "values": ["a"]}, {"key": "x", "values": ["1"]}]},
    ]
    cluster.storage_class("fast", allowedTopologies=topologies)
    assert cluster.allows("p") == "n2"
    assert cluster.why() == [
        "VolumeBinding: the storage class of the claim data provides no volumes on the node"
    ]
    cluster.node("n1", {ZONE: "a", "x": "1"})
    assert cluster.allows("p") == "n1 n2"


@pytest.mark.parametrize(
    ("capacity", "allowed"),
    [
        ({"capacity": "100Gi"}, "n1"),
        ({"capacity": "10Gi"}, "n1"),
        ({"capacity": "9Gi"}, ""),
        ({}, ""),
        ({"capacity": "lots"}, ""),
        ({"capacity": "100Gi", "maximumVolumeSize": "5Gi"}, ""),
        ({"capacity": "1Gi", "maximumVolumeSize": "10Gi"}, "n1"),
        ({"capacity": "100Gi", "storageClassName": "other"}, ""),
        ({"capacity": "100Gi", "nodeTopology": {"matchLabels": {ZONE: "b"}}}, "n2"),
        ({"capacity": "100Gi", "nodeTopology": {}}, "n1 n2"),
        ({"capacity": "100Gi", "nodeTopology": None}, ""),
    ],
)
def test_k129_a_driver_may_tell_its_room(cluster: Storage, capacity: Json, allowed: str) -> None:
    cluster.storage_class("fast")
    cluster.claim(storage_class="fast", spec={"resources": {"requests": {"storage": "10Gi"}}})
    assert cluster.allows("p") == "n1 n2"
    cluster.set("CSIDriver", "disk.csi", spec={"storageCapacity": True})
    assert cluster.allows("p") == ""
    fields = {"storageClassName": "fast", "nodeTopology": {"matchLabels": {ZONE: "a"}}, **capacity}
    cluster.set("CSIStorageCapacity", "c", metadata={"namespace": "system"}, **fields)
    assert cluster.allows("p") == allowed
    cluster.remove("CSIStorageCapacity", "c", metadata={"namespace": "system"})
    assert cluster.allows("p") == ""
    cluster.remove("CSIDriver", "disk.csi")
    assert cluster.allows("p") == "n1 n2"
    cluster.remove("StorageClass", "fast")
    assert cluster.allows("p") == ""


@pytest.mark.parametrize(
    ("volume", "node", "allowed"),
    [
        ({ZONE: "a"}, {ZONE: "a"}, True),
        ({ZONE: "a"}, {ZONE: "b"}, False),
        ({ZONE: "a__b"}, {ZONE: "b"}, True),
        ({ZONE: "ab"}, {ZONE: "a"}, False),
        ({ZONE: "a"}, {}, True),
        ({}, {ZONE: "a"}, True),
        ({OLD_ZONE: "a"}, {ZONE: "a"}, True),
        ({OLD_ZONE: "a"}, {ZONE: "b"}, False),
        ({ZONE: "a"}, {OLD_ZONE: "b"}, False),
        ({ZONE: "a"}, {OLD_ZONE: "a"}, True),
        ({ZONE: "a", REGION: "r"}, {ZONE: "a", REGION: "r"}, True),
        ({ZONE: "a", REGION: "r"}, {ZONE: "a", REGION: "s"}, False),
        ({REGION: "r"}, {ZONE: "a"}, False),
    ],
)
def test_k130_a_volume_has_a_zone(
    cluster: Storage, volume: dict[str, str], node: dict[str, str], allowed: bool
) -> None:
    cluster.node("n1", node)
    cluster.claim(volume="v")
    cluster.set("PersistentVolume", "v", metadata={"labels": volume})
    text = "VolumeZone: the volume of the claim data is in another zone or region"
    assert cluster.why() == ([] if allowed else [text])


def test_k131_a_claim_for_one_pod_only(cluster: Storage) -> None:
    cluster.claim(volume="v", spec={"accessModes": ["ReadWriteOncePod"]})
    cluster.set("PersistentVolume", "v")
    assert cluster.allows("p") == "n1 n2"
    cluster.use("q", "data")
    assert cluster.allows("p") == "n1 n2"
    assert cluster.cache.predicates("q", "n2", True) is None
    text = "VolumeRestrictions: another pod uses the claim data, which only one pod may use"
    assert cluster.why() == [text]
    # the re-check before the pod is assumed knows it as well
    assert cluster.cache.assume("p", "n1") == text
    assert cluster.why("q", "n2") == []
    cluster.cache.forget("q")
    assert cluster.allows("p") == "n1 n2"
    assert cluster.cache.assume("q", "n2") is None
    assert cluster.allows("p") == ""
    cluster.cache.remove_pod("q")
    assert cluster.allows("p") == "n1 n2"
    cluster.claim(volume="v", spec={"accessModes": ["ReadWriteOnce"]})
    cluster.use("q", "data", node="n2")
    assert cluster.allows("p") == "n1 n2"


GCE = {"gcePersistentDisk": {"pdName": "d"}}
GCE_READ = {"gcePersistentDisk": {"pdName": "d", "readOnly": True}}
EBS = {"awsElasticBlockStore": {"volumeID": "d", "readOnly": True}}
RBD = {"rbd": {"monitors": ["a", "b"], "image": "i"}}


@pytest.mark.parametrize(
    ("there", "asked", "kind"),
    [
        (GCE, GCE, "gcePersistentDisk"),
        (GCE_READ, GCE, "gcePersistentDisk"),
        (GCE, GCE_READ, "gcePersistentDisk"),
        (GCE_READ, GCE_READ, None),
        (GCE, {"gcePersistentDisk": {"pdName": "e"}}, None),
        (EBS, EBS, "awsElasticBlockStore"),
        (EBS, {"awsElasticBlockStore": {"volumeID": "e"}}, None),
        (GCE, EBS, None),
        ({"iscsi": {"iqn": "q"}}, {"iscsi": {"iqn": "q", "lun": 1}}, "iscsi"),
        ({"iscsi": {"iqn": "q"}}, {"iscsi": {"iqn": "r"}}, None),
        (RBD, {"rbd": {"monitors": ["b", "c"], "image": "i", "pool": "rbd"}}, "rbd"),
        (RBD, {"rbd": {"monitors": ["c"], "image": "i"}}, None),
        (RBD, {"rbd": {"monitors": ["a"], "image": "i", "pool": "p"}}, None),
        (RBD, {"rbd": {"monitors": ["a"], "image": "j"}}, None),
    ],
)
def test_k131_an_old_disk_has_one_pod_a_node(there: Json, asked: Json, kind: str | None) -> None:
    cluster = SmallCluster(n1={}, n2={})
    cluster.pod("other", "n1", volumes=[{"name": "v", **there}])
    cluster.pod("p", volumes=[{"name": "v", **asked}])
    text = f"VolumeRestrictions: another pod on the node uses the same {kind}"
    assert cluster.cache.refusals("p", "n1") == ([] if kind is None else [text])
    assert cluster.cache.refusals("p", "n2") == []
    cluster.pod("other", "n1", phase="Succeeded", volumes=[{"name": "v", **there}])
    assert cluster.allows("p") == "n1 n2"


class Limited(Storage):
    """Both nodes can have two volumes of the driver."""

    def __init__(self) -> None:
        super().__init__()
        for node in ("n1", "n2"):
            drivers = [{"name": "disk.csi", "allocatable": {"count": 2}}, {"name": "free.csi"}]
            self.set("CSINode", node, spec={"drivers": drivers})
        self.storage_class("fast")
        self.bound("data")

    def bound(self, name: str, driver: str = "disk.csi") -> None:
        self.claim(name, volume=f"v-{name}")
        csi = {"driver": driver, "volumeHandle": f"h-{name}"}
        self.set("PersistentVolume", f"v-{name}", spec={"csi": csi})


@pytest.fixture
def limited() -> Limited:
    return Limited()


FULL = "NodeVolumeLimits: the node cannot take another volume of disk.csi"


def test_k132_a_node_can_have_so_many_volumes_of_a_driver(limited: Limited) -> None:
    for name in ("x", "y"):
        limited.bound(name)
    limited.use("q", "x", node="n1")
    assert limited.allows("p") == "n1 n2"
    limited.use("r", "y", node="n1")
    assert limited.allows("p") == "n2"
    assert limited.why() == [FULL]
    assert limited.cache.assume("p", "n1") == FULL
    limited.cache.remove_pod("r")
    assert limited.allows("p") == "n1 n2"


def test_k132_volumes_that_are_there_or_attached_or_still_to_be_made(limited: Limited) -> None:
    limited.bound("x")
    limited.use("q", "x", "data", node="n1")
    assert limited.allows("p") == "n1 n2", "one that is there already is not one more"
    limited.cache.remove_pod("q")
    limited.bound("y")
    for name in ("x", "y"):
        spec = {"nodeName": "n1", "source": {"persistentVolumeName": f"v-{name}"}}
        limited.set("VolumeAttachment", name, spec=spec)
    assert limited.allows("p") == "n2", "attached ones without a pod count"
    limited.remove("VolumeAttachment", "x")
    assert limited.allows("p") == "n1 n2"
    limited.remove("VolumeAttachment", "y")
    for name in ("x", "y", "data"):
        limited.claim(name, storage_class="fast")
    limited.use("q", "x", "y", node="n1")
    assert limited.allows("p") == "n2", "those that are still to be made count"


@pytest.mark.parametrize("driver", ["free.csi", "unknown.csi", "disk.csi"])
def test_k132_a_driver_or_a_node_without_a_limit(limited: Limited, driver: str) -> None:
    for name in ("x", "y", "data"):
        limited.bound(name, driver)
    limited.use("q", "x", "y", node="n1")
    if driver == "disk.csi":
        limited.remove("CSINode", "n1")
    assert limited.allows("p") == "n1 n2"


def test_k88_claims_that_keep_a_pod_from_being_asked_for(cluster: Storage) -> None:
    assert cluster.cache.claim_problems("p") == ["the claim data does not exist"]
    cluster.claim(storage_class="fast")
    assert cluster.cache.claim_problems("p") == []
    cluster.remove("PersistentVolumeClaim", "data", metadata={"namespace": "team"})
    assert cluster.cache.claim_problems("p") == ["the claim data does not exist"]
    cluster.pod("plain")
    assert cluster.cache.claim_problems("plain") == cluster.cache.claim_problems("unknown") == []
    cluster.pod("e", volumes=[{"name": "scratch", "ephemeral": {}}])
    cluster.storage_class("fast")
    assert cluster.cache.claim_problems("e") == ["the claim e-scratch does not exist"]
    cluster.claim("e-scratch", storage_class="fast")
    assert cluster.cache.claim_problems("e") == ["the claim e-scratch does not belong to the pod"]
    assert cluster.why("e") == ["VolumeBinding: the claim e-scratch does not belong to the pod"]
    cluster.claim("e-scratch", storage_class="fast", ownerReferences=[{"uid": "e"}])
    assert cluster.allows("e") == "n1 n2"


def test_k102_claims_that_must_be_bound_before_the_pod(cluster: Storage) -> None:
    cluster.storage_class("fast")
    cluster.claim(storage_class="fast")
    assert cluster.cache.dump()["pods"]["p"]["volumes_bound"] is False
    cluster.claim(volume="v", storage_class="fast")
    assert cluster.cache.dump()["pods"]["p"]["volumes_bound"] is True
