"""A core that knows the refused nodes decides as one that asks the cache about each node (K99, K115, K137)."""

from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter
from random import Random
from typing import Any

import pytest
from decoded import decoded
from hypothesis import given, settings
from hypothesis import strategies as st
from random_pods import RandomPods
from small_cluster import SmallCluster, apart, near, spread, term

from quadriga import si
from quadriga.core import Options, Scheduler, SchedulerService
from quadriga.core.events.records import message_of
from quadriga.k8s.cluster import ClusterCache
from quadriga.k8s.driver.core_callback import CoreCallback
from quadriga.k8s.objects import Node, Pod
from quadriga.k8s.shim.inputs import CoreAnswered
from quadriga.si.predicates import KnownRefusals
from quadriga.sim.scripted.script import resource

RM = "rm"
CREATE = si.NodeInfo.CREATE
CONFIG = """
partitions:
  - name: default
    nodesortpolicy: {{type: {policy}}}
    queues: [{{name: root, submitacl: '*', queues: [{{name: a}}]}}]
"""
SECOND = 1_000_000_000
Output = tuple[str, object]


class Predicates:
    def __init__(self, cache: ClusterCache, *, revisions: bool) -> None:
        self.cache = cache
        self.revisions = revisions
        self.asked = 0

    def __call__(self, uid: str, node: str, allocate: bool) -> str | None:
        self.asked += 1
        return self.cache.predicates(uid, node, allocate)

    def refused_nodes(self, uid: str, nodes: tuple[str, ...]) -> KnownRefusals | None:
        found = self.cache.refused_nodes(uid, nodes)
        return found if found is None or self.revisions else replace(found, revisions=None)


def registration(policy: str) -> si.RegisterResourceManagerRequest:
    return si.RegisterResourceManagerRequest(rmID=RM, config=CONFIG.format(policy=policy))


def application() -> si.ApplicationRequest:
    request = si.ApplicationRequest(rmID=RM)
    user = si.UserGroupInformation(user="user")
    request.new.add(applicationID="app", queueName="root.a", ugi=user)
    return request


def nodes_of(size: int, action: si.NodeInfo.ActionFromRM, *names: str) -> si.NodeRequest:
    size_of = resource({"vcore": 1_000 * size})
    infos = [si.NodeInfo(nodeID=n, action=action, schedulableResource=size_of) for n in names]
    return si.NodeRequest(rmID=RM, nodes=infos)


def ask_of(uid: str, cores: int = 1) -> si.AllocationRequest:
    request = si.AllocationRequest(rmID=RM)
    amount = resource({"vcore": 1_000 * cores})
    where = {"applicationID": "app", "partitionName": "default"}
    request.asks.add(allocationKey=uid, resourceAsk=amount, maxAllocations=1, **where)
    return request


class World:
    def __init__(
        self,
        policy: str,
        *,
        knows: bool,
        revisions: bool = False,
        most: int = 64,
        delay: int = 2 * SECOND,
    ) -> None:
        self.most = most  # decisions of a call
        self.cluster = SmallCluster()
        self.cache = self.cluster.cache
        self.predicates = Predicates(self.cache, revisions=revisions)
        self.scheduler = Scheduler(Options(reservation_delay=delay))
        self.said: list[str] = []
        self.running: dict[str, str] = {}
        self.tell(registration(policy))
        self.scheduler.set_predicate(RM, self.predicates if knows else self.predicates.__call__)
        self.tell(application())

    def tell(self, request: Any) -> None:
        self.hear(self.scheduler.apply(request, self.cluster.now))

    def hear(self, outputs: list[Output]) -> None:
        for _, message in outputs:
            self.said.append(f"{type(message).__name__}: {message}")
            if isinstance(message, si.AllocationResponse):
                for each in message.new:
                    # A later pod of the same call may stand in its way (K100).
                    self.said.append(str(self.cache.assume(each.allocationKey, each.nodeID)))
                    self.running[each.allocationKey] = each.UUID

    def node(self, node: Node, size: int, action: si.NodeInfo.ActionFromRM) -> None:
        self.cache.set_node(node)
        self.tell(nodes_of(size, action, node.name))

    def add_node(self, name: str, labels: dict[str, str] | None = None, **spec: Any) -> None:
        self.cluster.node(name, labels, **spec)
        self.tell(nodes_of(10, CREATE, name))

    def add_pod(self, name: str, **more: Any) -> None:
        self.cluster.pod(name, labels={"app": "web"}, **more)
        self.tell(ask_of(name))

    def remove_node(self, name: str) -> None:
        for uid in self.cache.remove_node(name):
            self.running.pop(uid, None)
        gone = si.NodeInfo(nodeID=name, action=si.NodeInfo.DECOMISSION)
        self.tell(si.NodeRequest(rmID=RM, nodes=[gone]))

    def ask(self, pod: Pod, cores: int) -> None:
        self.cache.set_pod(pod)
        self.tell(ask_of(pod.uid, cores))

    def end(self, uid: str) -> None:
        self.cache.remove_pod(uid)
        request = si.AllocationRequest(rmID=RM)
        request.releases.allocationsToRelease.add(
            partitionName="default",
            applicationID="app",
            UUID=self.running.pop(uid),
            allocationKey=uid,
            terminationType=si.TerminationType.STOPPED_BY_RM,
        )
        self.tell(request)

    def decide(self, seconds: int) -> None:
        self.cluster.now += seconds * SECOND
        self.hear(self.scheduler.advance(self.cluster.now))
        for _ in range(20 * 64 // self.most):
            outputs = self.scheduler.schedule(self.cluster.now, self.most)
            self.hear(outputs)
            if not outputs:
                break

    def events(self) -> list[str]:
        """All event records, with the numbers of nodes by reason."""
        records = self.scheduler.events.batch(0, 10**9).records
        return [str(message_of(record)) for record in records]


def history(random: Random, worlds: tuple[World, World], what: Callable[[World], object]) -> None:
    """The same steps in both worlds, as long as this is the same of both."""
    first, second = worlds
    make = RandomPods(random, namespaces=("team", "shared"))
    names = tuple(f"n{number}" for number in range(6))
    there: set[str] = set()
    pods = 0
    for _ in range(30):
        step = random.choice(("node", "pods", "pods", "end", "remove", "refuse", "decide"))
        name = random.choice(names)
        if step == "node" or not there:
            node, size = decoded(Node, make.node(name)), random.choice((2, 4, 8))
            action = si.NodeInfo.UPDATE if name in there else si.NodeInfo.CREATE
            for world in worlds:
                world.node(node, size, action)
            there.add(name)
        elif step == "pods":
            pod = make.pod("pod", names)
            cores = random.choice((1, 1, 2))
            for _ in range(random.choice((1, 3, 6))):  # of one signature
                pods += 1
                pod["metadata"]["name"] = pod["metadata"]["uid"] = f"p{pods}"
                for world in worlds:
                    world.ask(decoded(Pod, pod), cores)
        elif step == "end" and first.running:
            uid = random.choice(sorted(first.running))
            for world in worlds:
                world.end(uid)
        elif step == "remove" and name in there:
            there.remove(name)
            for world in worlds:
                world.remove_node(name)
        elif step == "refuse":
            for world in worlds:
                world.cache.refuse(f"p{pods}", name)
        seconds = random.choice((0, 1, 20))
        for world in worlds:
            world.decide(seconds)
        assert what(first) == what(second)


@given(st.integers(min_value=0, max_value=2**63), st.sampled_from(("fair", "binpacking")))
@settings(print_blob=True, max_examples=settings.default.max_examples // 8)
def test_k137_with_known_refusals_the_core_says_the_same(seed: int, policy: str) -> None:
    worlds = World(policy, knows=True), World(policy, knows=False)
    history(Random(seed), worlds, attrgetter("said"))
    assert worlds[0].events() == worlds[1].events()


@given(st.integers(min_value=0, max_value=2**63), st.sampled_from(("fair", "binpacking")))
@settings(print_blob=True, max_examples=settings.default.max_examples // 10)
def test_q16_an_ask_that_is_not_tried_again_would_have_been_refused(seed: int, policy: str) -> None:
    """One decision a call, since what a placement makes possible is tried in the next one, and without
    reservations, which such an ask makes later (D310)."""
    how: dict[str, Any] = {"knows": True, "most": 1, "delay": 10**6 * SECOND}
    worlds = World(policy, revisions=True, **how), World(policy, **how)
    history(Random(seed), worlds, attrgetter("running"))
    assert worlds[0].predicates.asked <= worlds[1].predicates.asked


SPECS: dict[str, dict[str, Any]] = {
    "selector": {"nodeSelector": {"rack": "r1"}},
    "together": {"affinity": near(term("zone"))},
    "apart": {"affinity": apart(term())},
    "spread": {"topologySpreadConstraints": [spread()]},
    "ports": {"containers": [{"name": "main", "ports": [{"hostPort": 80}]}]},
}


@pytest.mark.parametrize("kind", SPECS)
def test_k137_refused_nodes_are_never_tried(kind: str) -> None:
    """On packed nodes, where the first node in order is mostly refused."""
    asked = {}
    placed = {}
    for knows in (True, False):
        world = World("binpacking", knows=knows)
        for number in range(40):
            labels = {"zone": f"z{number % 4}", "rack": f"r{number % 8}"}
            world.add_node(f"n{number:02}", labels)
        for number in range(20):
            world.add_pod(f"p{number}", **SPECS[kind])
        world.decide(1)
        asked[knows], placed[knows] = world.predicates.asked, sorted(world.running)
    assert placed[True] == placed[False] == sorted(f"p{number}" for number in range(20))
    # One question about the best node, and one about the first that is not refused.
    assert asked[True] <= 40
    if kind in ("apart", "ports"):
        assert asked[False] > 200


def test_k137_the_service_asks_the_shims_callback_for_the_refused_nodes() -> None:
    """Through the service, with a meter as well."""
    cluster = SmallCluster()
    heard: list[CoreAnswered] = []

    class Counting(CoreCallback):
        questions = 0

        def predicates(self, args: si.PredicatesArgs) -> str | None:
            self.questions += 1
            return super().predicates(args)

    callback = Counting(cluster.cache, heard.append, lambda: "{}")
    service = SchedulerService(manual=True, clock=lambda: 0)
    service.register_resource_manager(registration("fair"), callback)
    names = [f"n{number:02}" for number in range(20)]
    for name in names:
        cluster.node(name, {"rack": "last" if name == "n19" else "other"})
    service.update_node(nodes_of(10, CREATE, *names))
    service.update_application(application())
    cluster.pod("p", nodeSelector={"rack": "last"})
    service.update_allocation(ask_of("p"))
    service.step(1)
    assert cluster.cache.assumed("p") == "n19"
    assert callback.questions == 2
