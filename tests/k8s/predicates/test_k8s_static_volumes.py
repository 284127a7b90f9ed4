"""Volumes that are there already, made by hand: which one a claim gets (K102, K103, K129)."""

from typing import Any

import pytest
from small_cluster import expression

from quadriga.k8s.cluster.free_volumes import FreeVolumes
from quadriga.k8s.objects import PersistentVolumeClaim
from tests.k8s.predicates.test_k8s_predicates_volumes import BOUND, Storage, thing

Json = dict[str, Any]

HOST = "kubernetes.io/hostname"
NO_FIT = (
    "VolumeBinding: no free volume on the node fits the claim data, and its storage class has no"
    " provisioner"
)
ELSEWHERE = "VolumeBinding: the volume that the claim data is to have cannot be used on the node"


def on(*nodes: str) -> Json:
    term = {"matchExpressions": [expression(HOST, "In", *nodes)]}
    return {"required": {"nodeSelectorTerms": [term]}}


class Local(Storage):
    """Two nodes, the class ``local`` without a provisioner, and a pod ``p`` whose claim ``data`` asks for
    10 Gi."""

    def __init__(self) -> None:
        super().__init__()
        self.storage_class("local", provisioner="kubernetes.io/no-provisioner")
        self.wants("data")

    def wants(self, name: str, size: str = "10Gi", **spec: Any) -> None:
        spec = {
            "resources": {"requests": {"storage": size}},
            "accessModes": ["ReadWriteOnce"],
            **spec,
        }
        self.claim(name, storage_class=spec.pop("class", "local"), spec=spec, uid=f"uid-{name}")

    def volume(self, name: str, *nodes: str, size: str = "10Gi", **more: Any) -> None:
        """A free one, which these nodes can use; with ``spec``, ``labels``, ``phase`` and so on as given."""
        metadata = {key: more.pop(key) for key in ("labels", "deletionTimestamp") if key in more}
        status = {"phase": more.pop("phase", "Available")}
        spec = {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            **more,
        }
        if nodes:
            spec["nodeAffinity"] = on(*nodes)
        self.set("PersistentVolume", name, metadata=metadata, spec=spec, status=status)

    def given(self, name: str, claim: str, uid: str = "", size: str = "10Gi", **more: Any) -> None:
        reference = {"namespace": "team", "name": claim, "uid": uid}
        self.volume(name, *more.pop("nodes", ()), size=size, claimRef=reference, **more)

    def place(self, name: str, node: str) -> dict[str, str]:
        """The core places the pod: the volumes that its claims are to get."""
        assert self.cache.predicates(name, node, True) is None
        assert self.cache.assume(name, node) is None
        chosen = self.cache.chosen_volumes(name)
        return {claim: volume for (_, claim), volume in chosen.items()}


@pytest.fixture
def local() -> Local:
    return Local()


def test_k103_a_claim_waits_for_a_volume_that_its_node_can_use(local: Local) -> None:
    assert local.why() == [NO_FIT]
    local.volume("v", "n2")
    assert local.allows("p") == "n2"
    assert local.why() == [NO_FIT]
    assert local.place("p", "n2") == {"data": "v"}


def test_k103_the_smallest_volume_that_fits(local: Local) -> None:
    for name, size, *nodes in (
        ("huge", "100Gi"),
        ("small", "9Gi", "n1"),
        ("fits", "12Gi", "n1"),
        ("other", "11Gi", "n2"),
        ("large", "20Gi", "n1", "n2"),
    ):
        local.volume(name, *nodes, size=size)
    assert local.place("p", "n1") == {"data": "fits"}
    assert local.place("p", "n2") == {"data": "other"}
    local.remove("PersistentVolume", "other")
    assert local.place("p", "n2") == {"data": "large"}


#: what a claim and a volume say
NO_FITS: tuple[tuple[Any, Any], ...] = (
    ({}, {"phase": "Pending"}),
    ({}, {"phase": "Released"}),
    ({}, {"deletionTimestamp": "2026-01-02T03:04:05Z"}),
    ({}, {"storageClassName": "other"}),
    ({}, {"storageClassName": ""}),
    ({}, {"size": "10M"}),
    ({}, {"size": "much"}),
    ({"accessModes": ["ReadWriteMany"]}, {}),
    ({"accessModes": ["ReadWriteOnce", "ReadOnlyMany"]}, {}),
    ({"volumeMode": "Block"}, {}),
    ({}, {"volumeMode": "Block"}),
    ({"volumeAttributesClassName": "gold"}, {}),
    ({"selector": {"matchLabels": {"disk": "ssd"}}}, {"labels": {"disk": "hdd"}}),
    ({"selector": {"matchExpressions": [expression("disk", "In")]}}, {}),
    ({}, {"nodeAffinity": {"required": {"nodeSelectorTerms": []}}}),
    ({}, {"claimRef": {"namespace": "team", "name": "other", "uid": "uid-other"}}),
    ({}, {"claimRef": {"namespace": "else", "name": "data"}}),
    ({}, {"claimRef": {"namespace": "team", "name": "data", "uid": "an-older-one"}}),
)
FITS: tuple[tuple[Any, Any], ...] = (
    ({"accessModes": ["ReadOnlyMany"]}, {"accessModes": ["ReadWriteOnce", "ReadOnlyMany"]}),
    ({"accessModes": []}, {}),
    ({"volumeMode": "Block"}, {"volumeMode": "Block"}),
    ({"volumeMode": "Filesystem"}, {}),
    ({"selector": {"matchLabels": {"disk": "ssd"}}}, {"labels": {"disk": "ssd"}}),
    ({"selector": {}}, {}),
    ({"volumeAttributesClassName": "gold"}, {"volumeAttributesClassName": "gold"}),
)


@pytest.mark.parametrize(("claim", "volume"), [*NO_FITS, *FITS])
def test_k103_a_volume_fits_or_does_not(local: Local, claim: Json, volume: Json) -> None:
    local.wants("data", **claim)
    local.volume("v", **volume)
    if (claim, volume) in FITS:
        assert local.place("p", "n1") == {"data": "v"}
    else:
        assert (local.allows("p"), local.why()) == ("", [NO_FIT])


def test_k103_the_labels_of_the_node_are_looked_at_as_they_are(local: Local) -> None:
    """A volume may be for a host name and more, or for other labels."""
    zone = {"matchExpressions": [expression("zone", "In", "a"), expression(HOST, "Exists")]}
    exact = {"matchExpressions": [expression(HOST, "In", "n1"), expression("disk", "Exists")]}
    local.volume("v", nodeAffinity={"required": {"nodeSelectorTerms": [zone, exact]}})
    assert local.allows("p") == ""
    local.node("n1", {"disk": ""})
    assert local.allows("p") == "n1"
    local.node("n2", {"zone": "a"})
    assert local.allows("p") == "n1 n2"
    local.node("n1", {})
    assert local.allows("p") == "n2"


def test_k103_a_free_volume_comes_before_a_provisioner(local: Local) -> None:
    local.storage_class("fast")
    local.wants("data", **{"class": "fast"})
    local.volume("v", "n1", storageClassName="fast")
    assert local.place("p", "n1") == {"data": "v"}
    assert local.place("p", "n2") == {}, "its provisioner makes one"
    selected = {"volume.kubernetes.io/selected-node": "n1"}
    local.claim(storage_class="fast", annotations=selected)
    assert local.place("p", "n1") == {}, "its provisioner makes one already"


def test_k103_the_class_of_an_old_annotation(local: Local) -> None:
    annotation = {"volume.beta.kubernetes.io/storage-class": "local"}
    local.claim(annotations=annotation)
    metadata = {"annotations": annotation}
    status = {"phase": "Available"}
    local.set("PersistentVolume", "v", metadata=metadata, spec={}, status=status)
    assert local.place("p", "n1") == {"data": "v"}


def test_k103_two_claims_of_a_pod_get_two_volumes_the_small_one_first(local: Local) -> None:
    local.use("p", "data", "log")
    local.wants("log", "2Gi")
    local.volume("v")
    assert local.why() == [NO_FIT], "log has it, since it is smaller"
    local.volume("w", "n1", size="15Gi")
    local.volume("x", size="5Gi")
    assert local.place("p", "n1") == {"log": "x", "data": "v"}
    assert local.place("p", "n2") == {"log": "x", "data": "v"}
    local.remove("PersistentVolume", "x")
    assert local.place("p", "n1") == {"log": "v", "data": "w"}
    assert local.allows("p") == "n1"


@pytest.mark.parametrize("uid", ["", "uid-data"])
def test_k103_a_volume_that_is_set_aside_for_the_claim_comes_first(local: Local, uid: str) -> None:
    local.volume("smaller")
    local.given("aside", "data", uid, size="50Gi", phase="Pending", nodes=("n1",))
    assert local.place("p", "n1") == {"data": "aside"}
    local.cache.forget("p")
    assert local.why("p", "n2") == [ELSEWHERE]


@pytest.mark.parametrize("more", [{"size": "1Gi"}, {"storageClassName": "x"}])
def test_k103_a_volume_that_is_set_aside_must_fit(local: Local, more: Json) -> None:
    local.given("aside", "data", **more)
    assert local.why() == [NO_FIT]
    local.volume("v")
    assert local.place("p", "n1") == {"data": "v"}


def test_k103_two_pods_in_flight_do_not_get_the_same_volume(local: Local) -> None:
    local.use("q", "more")
    local.wants("more", "1Gi")
    local.volume("v", "n1")
    assert local.cache.predicates("p", "n1", True) is None, "held for a moment (K99)"
    assert local.cache.predicates("q", "n1", True) == NO_FIT.replace("data", "more")
    assert local.cache.assume("q", "n1") == NO_FIT.replace("data", "more"), "K100"
    assert local.cache.assume("p", "n1") is None
    assert local.allows("q") == ""
    local.volume("w", "n1", size="60Gi")
    assert local.place("q", "n1") == {"more": "w"}
    local.cache.forget("p")
    local.use("r", "third")
    local.wants("third")
    assert local.place("r", "n1") == {"third": "v"}


def test_k103_two_pods_with_one_claim_go_where_its_volume_is(local: Local) -> None:
    local.use("q", "data")
    local.volume("v", "n1")
    local.volume("w", "n2", size="10M")
    assert local.place("p", "n1") == {"data": "v"}
    assert local.why("q", "n2") == [ELSEWHERE]
    assert local.place("q", "n1") == {"data": "v"}
    local.cache.forget("p")
    assert local.cache.chosen_volumes("q") == {("team", "data"): "v"}
    local.use("r", "third")
    local.wants("third")
    assert local.allows("r") == ""
    local.cache.forget("q")
    assert local.allows("r") == "n1"


def test_k103_the_volume_of_a_bound_claim_is_taken_before_it_says_so_itself(local: Local) -> None:
    """Claims and volumes are watched apart."""
    local.volume("v", "n1")
    assert local.place("p", "n1") == {"data": "v"}
    local.claim("data", "v", storage_class="local")
    local.use("p", "data", node="n1")
    local.use("q", "more")
    local.wants("more")
    assert local.allows("q") == ""
    local.given("v", "data", "uid-data", nodes=("n1",), phase="Bound")
    assert local.allows("q") == ""
    local.remove("PersistentVolumeClaim", "data", metadata={"namespace": "team"})
    local.volume("v", "n1")  # somebody has cleaned it
    assert local.allows("q") == "n1"


def test_k103_a_claim_that_only_names_a_volume_does_not_have_it(local: Local) -> None:
    """Anybody may write such a claim; the controller of volumes decides whether it gets the volume."""
    local.volume("v", "n1")
    local.claim("other", storage_class="else", spec={"volumeName": "v"})
    assert local.allows("p") == "n1"
    local.claim("other", "v", storage_class="else")
    assert BOUND and local.allows("p") == ""


def test_k103_a_volume_that_is_given_away_while_it_is_held(local: Local) -> None:
    """A user sets it aside for another claim: neither gets it until the first has given up."""
    local.use("q", "more")
    local.wants("more")
    local.volume("v", "n1")
    assert local.place("p", "n1") == {"data": "v"}
    local.given("v", "more", nodes=("n1",))
    assert local.allows("q") == ""
    local.cache.forget("p")
    assert local.allows("p") == ""
    assert local.place("q", "n1") == {"more": "v"}
    local.cache.forget("q")


def test_k103_volumes_of_other_nodes_cost_nothing() -> None:
    """A look at a node goes through its own volumes only, and past those that are too small at once."""
    looked: list[str] = []

    class Counted(FreeVolumes):
        def _may_hold(self, volume: str, claim: tuple[str, str], uid: str) -> bool:
            looked.append(volume)
            return super()._may_hold(volume, claim, uid)

    local = Local()
    free = Counted()
    local.cache._volumes._free = free
    for index in range(300):
        local.node(f"m{index}")
        local.volume(f"v{index}", f"m{index}", size="10Gi")
        local.volume(f"small{index}", size="1Gi")
    assert local.cache.refusals("p", "m7") == []
    assert looked == ["v7"]
    claim = thing("PersistentVolumeClaim", "data", metadata={"namespace": "team"})
    assert isinstance(claim, PersistentVolumeClaim)
    for index in range(300):
        free.remove(f"v{index}")
        free.remove(f"small{index}")
        free.remove("unknown")
    assert not free._shelves
    assert not free._aside
