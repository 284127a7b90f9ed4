"""The core's check of room is the filter NodeResourcesFit: number of pods and each requested resource (K124).

The judge reads manifests and knows the amounts of the few quantities that they use, so it shares no code with
the conversion or the core.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from decoded import decoded
from hypothesis import given, settings
from hypothesis import strategies as st

from quadriga import si
from quadriga.core import Options, Scheduler
from quadriga.k8s.conversion import messages
from quadriga.k8s.conversion.settings import Settings
from quadriga.k8s.objects import Node, Pod

Manifest = dict[str, Any]
SETTINGS = Settings()
RM = SETTINGS.cluster_id

CPU = {
    "0": 0,
    "1m": 1,
    "100m": 100,
    "0.5": 500,
    "1": 1_000,
    "1500m": 1_500,
    "2": 2_000,
    "3e0": 3_000,
}
MEMORY = {"0": 0, "1": 1, "64Mi": 64 << 20, "1Gi": 1 << 30, "1G": 10**9, "1500M": 15 * 10**8}
NUMBER = {"0": 0, "1": 1, "2": 2}
QUANTITIES = {
    "cpu": CPU,
    "memory": MEMORY,
    "ephemeral-storage": MEMORY,
    "nvidia.com/gpu": NUMBER,
    "hugepages-2Mi": {"0": 0, "2Mi": 2 << 20, "4Mi": 4 << 20},
}


def amounts(quantities: Manifest) -> Counter[str]:
    return Counter({name: QUANTITIES[name][text] for name, text in quantities.items()})


def needs(pod: Manifest) -> Counter[str]:
    """What the scheduler of Kubernetes counts for a pod, without the pod itself."""
    spec = pod["spec"]
    running: Counter[str] = Counter()
    for each in spec["containers"]:
        running.update(amounts(each["resources"]["requests"]))
    sidecars: Counter[str] = Counter()
    starting: Counter[str] = Counter()
    for each in spec.get("initContainers", ()):
        own = amounts(each["resources"]["requests"])
        if each.get("restartPolicy") == "Always":
            sidecars.update(own)
        else:
            starting |= own + sidecars
    total = (running + sidecars) | starting
    for name, text in spec.get("resources", {}).get("requests", {}).items():
        total[name] = QUANTITIES[name][text]
    total.update(amounts(spec.get("overhead", {})))
    return total


class Judge:
    """Which nodes have room."""

    def __init__(self, nodes: dict[str, Manifest]) -> None:
        self.nodes = nodes
        self.pods: dict[str, list[Manifest]] = {name: [] for name in nodes}

    def fits(self, pod: Manifest, node: str) -> bool:
        allocatable = dict(self.nodes[node]["status"]["allocatable"])
        if len(self.pods[node]) + 1 > int(allocatable.pop("pods", 0)):
            return False
        has = amounts(allocatable)
        for other in self.pods[node]:
            has.subtract(needs(other))
        return all(value <= has[name] for name, value in needs(pod).items() if value > 0)


class Core:
    """Takes manifests through the conversion, without predicates."""

    def __init__(self, nodes: dict[str, Manifest]) -> None:
        self.scheduler = Scheduler(Options())
        self.tell(messages.register(SETTINGS, {}))
        made = [decoded(Node, manifest) for manifest in nodes.values()]
        self.tell(
            messages.nodes(SETTINGS, [messages.node_created(each, SETTINGS) for each in made])
        )
        self.tell(messages.nodes(SETTINGS, [messages.node_opened(name) for name in nodes]))
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
        ask = messages.ask(made, "app", SETTINGS)
        self.tell(messages.allocations(SETTINGS, [ask]))
        for _, message in self.scheduler.schedule(0):
            if isinstance(message, si.AllocationResponse):
                for new in message.new:
                    assert new.allocationKey == made.uid
                    return new.nodeID
        self.tell(
            messages.allocations(SETTINGS, ask_releases=[messages.release_ask(made.uid, "app")])
        )
        return ""


def quantities(*names: str) -> st.SearchStrategy[Manifest]:
    return st.fixed_dictionaries(
        {}, optional={name: st.sampled_from(list(QUANTITIES[name])) for name in names}
    )


ANY = quantities(*QUANTITIES)
CONTAINER = st.builds(
    lambda requests: {"name": "c", "resources": {"requests": requests}}, requests=ANY
)
INIT = st.builds(
    lambda made, sidecar: {**made, **({"restartPolicy": "Always"} if sidecar else {})},
    CONTAINER,
    st.booleans(),
)


@st.composite
def pods(draw: st.DrawFn) -> Manifest:
    spec: Manifest = {
        "schedulerName": "yunikorn",
        "containers": draw(st.lists(CONTAINER, min_size=1, max_size=2)),
    }
    if draw(st.booleans()):
        spec["initContainers"] = draw(st.lists(INIT, min_size=1, max_size=3))
    if draw(st.integers(0, 4)) == 0:
        spec["overhead"] = draw(quantities("cpu", "memory"))
    if draw(st.integers(0, 4)) == 0:
        spec["resources"] = {"requests": draw(quantities("cpu", "memory", "hugepages-2Mi"))}
    return {"metadata": {"name": "p", "namespace": "team"}, "spec": spec}


LARGE = {
    "cpu": ["0.5", "2", "3e0"],
    "memory": ["64Mi", "1Gi", "1500M"],
    "ephemeral-storage": ["1", "1Gi"],
    "nvidia.com/gpu": ["0", "1", "2"],
    "hugepages-2Mi": ["0", "4Mi"],
}
NODE = st.fixed_dictionaries(
    {"pods": st.sampled_from(["0", "1", "2", "3", "9"])},
    optional={name: st.sampled_from(texts) for name, texts in LARGE.items()},
)


@given(
    allocatable=st.lists(st.one_of(NODE, quantities("cpu", "memory")), min_size=1, max_size=3),
    foreign=st.lists(st.tuples(pods(), st.integers(0, 2)), max_size=3),
    asked=st.lists(pods(), min_size=1, max_size=6),
)
@settings(print_blob=True, max_examples=settings.default.max_examples // 2)
def test_k124_the_core_and_the_filter_agree(
    allocatable: list[Manifest], foreign: list[tuple[Manifest, int]], asked: list[Manifest]
) -> None:
    nodes: dict[str, Manifest] = {
        f"n{number}": {"metadata": {"name": f"n{number}"}, "status": {"allocatable": each}}
        for number, each in enumerate(allocatable)
    }
    judge, core = Judge(nodes), Core(nodes)
    for number, (pod, at) in enumerate(foreign):  # also more than the node has
        node = f"n{at % len(nodes)}"
        pod["metadata"]["uid"] = f"foreign-{number}"
        pod["spec"].update(nodeName=node, schedulerName="default-scheduler")
        judge.pods[node].append(pod)
        core.foreign(pod)
    for number, pod in enumerate(asked):
        pod["metadata"]["uid"] = f"p{number}"
        fitting = [name for name in nodes if judge.fits(pod, name)]
        node = core.place(pod)
        if not fitting:
            assert node == ""
            continue
        assert node in fitting
        judge.pods[node].append(pod)
