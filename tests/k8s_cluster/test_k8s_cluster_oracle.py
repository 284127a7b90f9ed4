"""K138: the predicates agree with the real kube-scheduler, on random clusters.

``QUADRIGA_ORACLE_CASES=10000`` asks that many questions (pod, node), by default some hundred.
"""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from control_plane import ControlPlane
from judging_scheduler import NAME, Judge
from naive_predicates import NaiveCluster
from plain_client import History, Object, PlainClient
from random_pods import RandomPods
from server_version import Version, filters_in_order, spreads_over_all_nodes

from quadriga.k8s.cluster import ClusterCache
from quadriga.k8s.objects import Node, Pod

CASES = int(os.environ.get("QUADRIGA_ORACLE_CASES") or 600)
SEED = int(os.environ.get("QUADRIGA_ORACLE_SEED") or 1)
NODES, PLACED, ASKED = 6, 10, 20
NAMESPACES = ("oracle-a", "oracle-b")


@pytest.fixture
def judge(control_plane: ControlPlane, pods: History, tmp_path: Path) -> Iterator[Judge]:
    made = Judge(control_plane, tmp_path, pods)
    yield made
    made.stop()


class Case:
    """A random cluster: nodes, pods that are placed, and pods that are asked about."""

    def __init__(
        self, number: int, admin: PlainClient, judge: Judge, pods: History, version: Version
    ) -> None:
        self.version = version
        self.random = Random(f"{SEED}/{number}")
        self.make = RandomPods(self.random, old=True, namespaces=NAMESPACES)
        self.names = tuple(f"c{number}-n{index}" for index in range(NODES))
        self.admin, self.judge, self.pods = admin, judge, pods
        self.cache = ClusterCache(lambda: 0)
        self.naive = NaiveCluster()
        self.made: list[Object] = []
        #: what the cache has said, by whether it was what the judge had to say
        self.answers: dict[bool, Counter[str]] = {False: Counter(), True: Counter()}

    def set_up(self) -> None:
        for name in self.names:
            manifest = self.make.node(name)
            manifest.update(apiVersion="v1", kind="Node")
            manifest["status"] = {"allocatable": {"pods": "110"}, "capacity": {"pods": "110"}}
            node = self.admin.create(manifest)
            self.naive.nodes[name] = node
            self.cache.set_node(decoded(node, Node))
        for index in range(PLACED):
            pod = self.make.pod(f"placed-{index}", self.names)
            pod["spec"]["nodeName"] = self.random.choice(self.names)
            uid = self._create(pod)["metadata"]["uid"]
            if self.random.random() < 0.1:
                self.admin.delete("Pod", pod["metadata"]["namespace"], pod["metadata"]["name"])
                self._take(uid, deleted=True)
        self._wait_for_nodes()

    def _wait_for_nodes(self) -> None:
        """The judge hears of nodes and pods on different ways: until it knows each of the nodes."""
        for attempt in range(100):
            probe = {
                "metadata": {"name": f"probe-{attempt}", "namespace": "default"},
                "spec": {
                    "containers": [{"name": "main", "image": "none"}],
                    "tolerations": [{"operator": "Exists"}],
                },
            }
            pod = self._create(probe, count=False)
            # None of the placed pods is in its namespace, and terms do not name it.
            passing, _ = self.judge.passing(pod["metadata"]["uid"])
            if passing == set(self.names):
                return
        raise AssertionError("the judge does not see all nodes")

    def ask(self) -> Iterator[tuple[str, list[str]]]:
        """Each pod that is asked about, with what the judge and the predicates disagree on."""
        for pod in [self._create(self.make.pod(f"asked-{i}", self.names)) for i in range(ASKED)]:
            yield pod["metadata"]["uid"], self.disagreements(pod)

    def disagreements(self, pod: Object) -> list[str]:
        """The judge says what the naive filters say of its version. The cache says what they say of
        today, which is mostly the same."""
        uid = pod["metadata"]["uid"]
        passing, refused = self.judge.passing(uid)
        found = []
        first: Counter[str] = Counter()
        for name in self.names:
            naive = replace(self.naive, old=spreads_over_all_nodes(self.version))
            expected = naive.refusals(uid, name)
            first.update(expected[:1])
            if (name in passing) == bool(expected):
                found.append(
                    f"{name}: {'passes' if name in passing else 'refused'}, not {expected}"
                )
            reasons = self.cache.refusals(uid, name)
            ours = list(dict.fromkeys(each.partition(":")[0] for each in reasons))
            if ours != self.naive.refusals(uid, name):
                found.append(f"{name}: the cache says {reasons}")
            self.answers[ours == expected].update(ours or ["yes"])
        if not filters_in_order(self.version):
            refused, first = (Counter(all=each.total()) for each in (refused, first))
        if refused.total() and refused != first:
            found.append(f"first refusals: {refused}, not {first}")
        return found

    def _create(self, manifest: Object, *, count: bool = True) -> Object:
        manifest.update(apiVersion="v1", kind="Pod")
        manifest["metadata"].pop("uid", None)
        manifest["spec"]["schedulerName"] = NAME
        pod = self.admin.create(manifest)
        self.made.append(pod)
        if count:
            self.naive.pods[pod["metadata"]["uid"]] = pod
            self.cache.set_pod(decoded(pod, Pod))
        return pod

    def _take(self, uid: str, *, deleted: bool) -> None:
        """The pod's newest version, once it is being deleted."""
        present = self.pods.until(
            lambda present: any(
                each["metadata"]["uid"] == uid and "deletionTimestamp" in each["metadata"]
                for each in present
            )
        )
        pod = next(each for each in present if each["metadata"]["uid"] == uid)
        self.naive.pods[uid] = pod
        self.cache.set_pod(decoded(pod, Pod))

    def clean_up(self) -> None:
        for pod in reversed(self.made):
            meta = pod["metadata"]
            self.admin.delete("Pod", meta["namespace"], meta["name"], grace=0)
        for name in self.names:
            self.admin.delete("Node", None, name)
        self.pods.until(lambda present: not present, what="no pods are left")


def decoded(thing: Object, kind: Any) -> Any:
    """From the API server's JSON."""
    return msgspec.json.decode(msgspec.json.encode(thing), type=kind)


def test_k138_predicates_agree_with_kube_scheduler(
    control_plane: ControlPlane, admin: PlainClient, pods: History, empty: None, judge: Judge
) -> None:
    for name in NAMESPACES:
        admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    wrong = []
    same: Counter[str] = Counter()
    other: Counter[str] = Counter()
    for number in range(-(-CASES // (NODES * ASKED))):
        case = Case(number, admin, judge, pods, control_plane.version)
        case.set_up()
        for uid, disagreements in case.ask():
            if disagreements:
                pod = case.naive.pods[uid]
                wrong.append(f"cluster {number}: {pod['metadata']['name']} {pod['spec']}")
                wrong += disagreements
        case.clean_up()
        same += case.answers[True]
        other += case.answers[False]
    print(f"agreed: {dict(same)}; where the judge is different: {dict(other)}")
    assert not wrong, "\n".join(wrong)
    # All filters have had their say, both ways, and the judge is rarely different.
    assert min(same[name] for name in FILTERS) > 0, same
    assert other.total() < same.total() / 50


FILTERS = (
    *("yes", "NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodePorts"),
    *("PodTopologySpread", "InterPodAffinity"),
)
