"""Random histories: what the counters answer is what a look at all pods would (K119 to K128, K136)."""

from copy import deepcopy
from dataclasses import replace
from random import Random
from typing import Any
from unittest.mock import patch

from decoded import decoded
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_predicates import NaiveCluster
from random_pods import RandomPods

from quadriga.k8s.cluster import ClusterCache, selections
from quadriga.k8s.cluster import cache as caches
from quadriga.k8s.objects import Namespace, Node, Pod
from quadriga.k8s.tuning import TUNING

NODES = tuple(f"n{number}" for number in range(5))
PODS = tuple(f"p{number}" for number in range(9))
NAMESPACES = ("team", "shared", "other")


class Twins:
    """The cache and the naive cluster, which are told the same."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.make = RandomPods(random, namespaces=NAMESPACES)
        self.now = 0
        self.cache = ClusterCache(lambda: self.now)
        self.naive = NaiveCluster()
        self.order: tuple[str, ...] = ()

    def set_node(self) -> None:
        name = self.random.choice(NODES)
        manifest = self.make.node(name)
        self.cache.set_node(decoded(Node, manifest))
        self.naive.nodes[name] = manifest

    def remove_node(self) -> None:
        name = self.random.choice(NODES)
        undone = self.cache.remove_node(name)
        expected = [uid for uid, node in self.naive.assumed.items() if node == name]
        if self.naive.nodes.pop(name, None) is not None:
            assert sorted(undone) == sorted(expected)
            for uid in undone:
                del self.naive.assumed[uid]

    def set_namespace(self) -> None:
        name = self.random.choice(NAMESPACES)
        labels = self.random.choice(({}, {"kind": "shared"}))
        manifest = {"metadata": {"name": name, "labels": labels}}
        self.cache.set_namespace(decoded(Namespace, manifest))
        self.naive.namespaces[name] = labels

    def remove_namespace(self) -> None:
        name = self.random.choice(NAMESPACES)
        self.cache.remove_namespace(name)
        self.naive.namespaces.pop(name, None)

    def create(self) -> None:
        uid = self.random.choice(PODS)
        if uid not in self.naive.pods:
            self.naive.pods[uid] = self.make.pod(uid, NODES)
            self._tell(uid)

    def change(self) -> None:
        """Another version: bound, ended, terminating, with other labels."""
        if not self.naive.pods:
            return
        uid = self.random.choice(sorted(self.naive.pods))
        pod = self.naive.pods[uid] = deepcopy(self.naive.pods[uid])
        match self.random.choice(("bind", "bind", "end", "delete", "label")):
            case "bind":
                assumed = self.naive.assumed.get(uid)
                pod["spec"].setdefault("nodeName", assumed or self.random.choice(NODES))
                self.naive.assumed.pop(uid, None)
            case "end":
                pod["status"] = {"phase": self.random.choice(("Succeeded", "Failed"))}
                self._tell(uid)
                del self.naive.pods[uid]
                self.naive.assumed.pop(uid, None)
                return
            case "delete":
                pod["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"
            case "label":
                pod["metadata"]["labels"] = self.make.labels()
        self._tell(uid)

    def remove_pod(self) -> None:
        uid = self.random.choice(PODS)
        self.cache.remove_pod(uid)
        self.naive.pods.pop(uid, None)
        self.naive.assumed.pop(uid, None)

    def assume(self) -> None:
        free = [uid for uid, pod in self.naive.pods.items() if "nodeName" not in pod["spec"]]
        if not free or not self.naive.nodes:
            return
        uid, node = self.random.choice(free), self.random.choice(sorted(self.naive.nodes))
        others = {"NodePorts", "PodTopologySpread", "InterPodAffinity"}
        refused = others.intersection(self.naive.refusals(uid, node))
        reason = self.cache.assume(uid, node)
        assert (reason is not None) == bool(refused)
        if reason is None:
            self.naive.assumed[uid] = node

    def forget(self) -> None:
        uid = self.random.choice(PODS)
        self.cache.forget(uid)
        self.naive.assumed.pop(uid, None)

    def refuse(self) -> None:
        """A bind has failed, so the pair is refused for a while, which may pass."""
        uid, node = self.random.choice(PODS), self.random.choice(NODES)
        self.cache.refuse(uid, node)
        self.now += self.random.choice((0, 20_000_000_000, 90_000_000_000))

    def compare_all_nodes(self) -> None:
        """The answer for all nodes at once is that for each: with a reason wherever there is one."""
        names = (*sorted(self.naive.nodes), "unknown")
        if names != self.order:  # otherwise it is the same object
            self.order = names
        for uid, pod in self.naive.pods.items():
            found = self.cache.refused_nodes(uid, self.order)
            if "nodeName" in pod["spec"]:
                assert found is None
                continue
            told = [found.reasons[number - 1] if number else None for number in found.numbers]
            assert told.pop() is None
            assert told == [self.cache.predicates(uid, node, False) for node in self.order[:-1]]

    def compare(self) -> None:
        for uid in self.naive.pods:
            assert self.cache.assumed(uid) == self.naive.assumed.get(uid)
            for node in self.naive.nodes:
                expected = self.naive.refusals(uid, node)
                reasons = self.cache.refusals(uid, node)
                assert list(dict.fromkeys(each.split(":")[0] for each in reasons)) == expected
                assert self.cache.predicates(uid, node, False) == next(iter(reasons), None)

    def _tell(self, uid: str) -> None:
        self.cache.set_pod(decoded(Pod, self.naive.pods[uid]))


STEPS = [
    *(Twins.set_node, Twins.create, Twins.create, Twins.create, Twins.change, Twins.change),
    *(Twins.assume, Twins.assume, Twins.forget, Twins.remove_pod, Twins.remove_node),
    *(Twins.set_namespace, Twins.remove_namespace),
]


@given(st.integers(min_value=0, max_value=2**63))
@settings(print_blob=True)
def test_k137_the_answer_for_all_nodes_is_that_for_each(seed: int) -> None:
    twins = Twins(Random(seed))
    for _ in range(3):
        twins.set_node()
    for _ in range(40):
        twins.random.choice((*STEPS, Twins.refuse))(twins)
        twins.compare_all_nodes()


@given(st.integers(min_value=0, max_value=2**63))
@settings(print_blob=True)
def test_k136_counters_answer_as_a_look_at_all_pods(seed: int) -> None:
    twins = Twins(Random(seed))
    for _ in range(3):
        twins.set_node()
    for _ in range(30):
        twins.random.choice(STEPS)(twins)
        twins.compare()


class SlicedTwins(Twins):
    """Terms are counted in slices before their pod is set, and the core's thread asks and assumes in between."""

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.told: dict[str, dict[str, Any]] = {}

    def _tell(self, uid: str) -> None:
        new = self.naive.pods[uid]
        old = self.told.get(uid) if self.cache.pod(uid) is not None else None
        pod = decoded(Pod, new)
        for _ in self.cache.preparing(pod):
            del self.naive.pods[uid]
            if old is not None:
                self.naive.pods[uid] = old
            self.random.choice(
                (Twins.assume, Twins.forget, Twins.compare, Twins.compare_all_nodes)
            )(self)
            self.naive.pods[uid] = new
        self.cache.set_pod(pod)
        self.told[uid] = new


@given(st.integers(min_value=0, max_value=2**63))
@settings(print_blob=True)
def test_k136_counters_that_are_made_in_slices_answer_the_same(seed: int) -> None:
    twins = SlicedTwins(Random(seed))
    with (
        patch.object(caches, "TUNING", replace(TUNING, cluster_slice=2)),
        patch.object(selections, "TUNING", replace(TUNING, cluster_slice=2, selection_changes=3)),
    ):
        for _ in range(3):
            twins.set_node()
        for _ in range(30):
            twins.random.choice(STEPS)(twins)
            twins.compare()
