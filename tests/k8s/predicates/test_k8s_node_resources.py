"""The core's check of room is the filter NodeResourcesFit: number of pods and each requested resource (K124).

The judge counts pods as the reference of ``test_k8s_resizes`` does, so it shares no code with the conversion
or the core.
"""

from collections import Counter
from random import Random
from typing import Any

from decoded import decoded
from hypothesis import given, settings
from hypothesis import strategies as st

from quadriga import si
from quadriga.core import Options, Scheduler
from quadriga.k8s.conversion import messages
from quadriga.k8s.conversion.settings import Settings
from quadriga.k8s.objects import Node, Pod
from tests.k8s.predicates.test_k8s_resizes import NAMES, RandomResizes, naive

Manifest = dict[str, Any]
SETTINGS = Settings()
RM = SETTINGS.cluster_id


class Judge:
    def __init__(self, nodes: dict[str, dict[str, int]]) -> None:
        self.nodes = nodes
        self.pods: dict[str, list[Manifest]] = {name: [] for name in nodes}

    def fits(self, pod: Manifest, node: str) -> bool:
        has = Counter(self.nodes[node])
        has["vcore"] = 1000 * has.pop("cpu", 0)
        for other in self.pods[node]:
            has.subtract({**naive(other), "pods": 1})
        return all(value <= has[name] for name, value in {**naive(pod), "pods": 1}.items())


class Core:
    def __init__(self, nodes: dict[str, dict[str, int]]) -> None:
        self.scheduler = Scheduler(Options())
        self.tell(messages.register(SETTINGS, {}))
        for name, allocatable in nodes.items():
            status = {"allocatable": {key: str(value) for key, value in allocatable.items()}}
            node = decoded(Node, {"metadata": {"name": name}, "status": status})
            self.tell(messages.nodes(SETTINGS, [messages.node_created(node, SETTINGS)]))
            self.tell(messages.nodes(SETTINGS, [messages.node_opened(name)]))
        request = si.ApplicationRequest(rmID=RM)
        user = si.UserGroupInformation(user="user")
        request.new.add(applicationID="app", ugi=user, tags={"namespace": "team"})
        self.tell(request)

    def tell(self, request: Any) -> None:
        for _, message in self.scheduler.apply(request, 0):
            assert not list(getattr(message, "rejected", ())), message

    def foreign(self, pod: Manifest) -> None:
        allocation = messages.foreign_allocation(decoded(Pod, pod))
        self.tell(messages.allocations(SETTINGS, existing=[allocation]))

    def place(self, pod: Manifest) -> str:
        """The node of the pod; "" if it gets none."""
        made = decoded(Pod, pod)
        self.tell(messages.allocations(SETTINGS, [messages.ask(made, "app", SETTINGS)]))
        for _, message in self.scheduler.schedule(0):
            if isinstance(message, si.AllocationResponse):
                for new in message.new:
                    assert new.allocationKey == made.uid
                    return new.nodeID
        released = messages.release_ask(made.uid, "app")
        self.tell(messages.allocations(SETTINGS, ask_releases=[released]))
        return ""


class RandomCluster(RandomResizes):
    def node(self) -> dict[str, int]:
        """What it offers; some resources it does not have, and it may take no pods."""
        sizes = (0, 20, 40, 80, 80)
        offered = {name: self.random.choice(sizes) for name in NAMES if self.likely(0.95)}
        return {**offered, "pods": self.random.choice((0, 1, 2, 9))}

    def likely(self, chance: float) -> bool:
        return self.random.random() < chance

    def named(self, uid: str, **spec: Any) -> Manifest:
        pod = self.pod()
        metadata = {"name": uid, "namespace": "team", "uid": uid}
        return {**pod, "metadata": metadata, "spec": {**pod["spec"], **spec}}


@given(st.integers(min_value=0, max_value=2**63))
@settings(print_blob=True)
def test_k124_the_core_and_the_filter_agree(seed: int) -> None:
    make = RandomCluster(Random(seed))
    nodes = {f"n{number}": make.node() for number in range(3)}
    judge, core = Judge(nodes), Core(nodes)
    for number in range(make.random.randint(0, 3)):  # also more than the node has
        node = make.random.choice(list(nodes))
        pod = make.named(f"foreign-{number}", nodeName=node, schedulerName="default-scheduler")
        judge.pods[node].append(pod)
        core.foreign(pod)
    for number in range(6):
        pod = make.named(f"p{number}", schedulerName="yunikorn")
        fitting = [name for name in nodes if judge.fits(pod, name)]
        node = core.place(pod)
        assert node in fitting if fitting else node == ""
        if node:
            judge.pods[node].append(pod)
