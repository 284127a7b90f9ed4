"""Q16: what an object of the API server may say has bounds. What is beyond is told and not half applied."""

import gzip
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from k8s_world import World, cluster
from msgspec.structs import replace
from small_cluster import SmallCluster

from quadriga.base.times import SECOND
from quadriga.k8s.cluster.domains import CountedPods
from quadriga.k8s.cluster.terms import PodMatcher
from quadriga.k8s.conversion import keys
from quadriga.k8s.conversion import settings as configuration
from quadriga.k8s.conversion.bounds import (
    BOUNDS,
    GANG_TIMEOUT,
    NAMESPACE,
    NODE,
    POD,
    Bounds,
    numbers,
)
from quadriga.k8s.conversion.resources import of_pod
from quadriga.k8s.driver.config_maps import only_ours
from quadriga.k8s.objects import ConfigMap, Metadata, Namespace, Node, Pod
from quadriga.k8s.shim.inputs import Changed
from quadriga.k8s.transport.listing import Decoders, Event

Json = dict[str, Any]


def metadata(**of_metadata: Any) -> Json:
    return {"metadata": {"name": "a", "namespace": "team", "uid": "u", **of_metadata}}


def annotated(key: str, text: Callable[[int], str] = lambda n: "a" * n) -> Callable[[int], Json]:
    return lambda n: metadata(annotations={key: text(n)})


def spec(**of_spec: Any) -> Json:
    return {**metadata(), "spec": of_spec}


def named(number: int) -> dict[str, str]:
    return {f"example.com/k{index}": "1" for index in range(number)}


def levels(number: int) -> str:
    return ".".join(["a"] * number)


def containers(number: int) -> list[Json]:
    return [{"name": f"c{i}", "resources": {"requests": {"cpu": "1m"}}} for i in range(number)]


def requirements(number: int) -> list[Json]:
    return [{"key": f"k{index}", "operator": "Exists"} for index in range(number)]


def one_in(number: int) -> list[Json]:
    return [{"key": "k", "operator": "In", "values": [f"v{index}" for index in range(number)]}]


def on_nodes(expressions: list[Json]) -> Json:
    terms = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def away_from(*terms: Json) -> Json:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def apart(*terms: Json) -> Json:
    return spec(affinity=away_from(*terms))


def matching(expressions: list[Json]) -> Json:
    return {"matchExpressions": expressions}


def term(**of_term: Any) -> Json:
    return {"topologyKey": "zone", "labelSelector": {}, **of_term}


def spread(number: int) -> list[Json]:
    return [
        {"topologyKey": f"k{index}", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
        for index in range(number)
    ]


#: an object that says so much of one thing
EXAMPLES: dict[str, Callable[[int], Json]] = {
    "podLabels": lambda n: metadata(labels=named(n)),
    "podApplicationId": annotated(keys.APP_ID),
    "podQueue": annotated(keys.QUEUE),
    "podQueueLevels": annotated(keys.QUEUE, levels),
    "podUser": annotated(keys.USER_INFO),
    "podTaskGroupName": annotated(keys.TASK_GROUP_NAME),
    "podPolicy": annotated(keys.POLICY_PARAMETERS),
    "podContainers": lambda n: spec(containers=containers(1), initContainers=containers(n - 1)),
    "podResourceTypes": lambda n: spec(
        containers=[{"resources": {"requests": named(n)}}, {"resources": {"requests": named(1)}}]
    ),
    "podHostPorts": lambda n: spec(
        containers=[{"ports": [{"hostPort": 1 + p} for p in range(n)] + [{"containerPort": 1}]}]
    ),
    "podTolerations": lambda n: spec(tolerations=[{"operator": "Exists"}] * n),
    "podNodeRequirements": lambda n: spec(
        nodeSelector=named(1), affinity=on_nodes(requirements(n - 1))
    ),
    "podNodeValues": lambda n: spec(affinity=on_nodes(one_in(n))),
    "podAffinityTerms": lambda n: apart(*[term()] * n),
    "podAffinityNamespaces": lambda n: apart(term(namespaces=["x"] * n)),
    "podForeignTerms": lambda n: apart(*[term(namespaces=["x"])] * n),
    "podSpreadConstraints": lambda n: spec(topologySpreadConstraints=spread(n)),
    "podSpreadRequirements": lambda n: spec(
        topologySpreadConstraints=spread(1), nodeSelector=named(n - 1)
    ),
    "podSelectorRequirements": lambda n: apart(term(namespaceSelector=matching(requirements(n)))),
    "podSelectorValues": lambda n: apart(term(labelSelector=matching(one_in(n)))),
    "podVolumes": lambda n: spec(volumes=[{"name": "v"}] * n),
    "podReferences": lambda n: spec(schedulingGates=[{"name": "g"}] * n),
    "podPriority": lambda n: spec(priority=-n),
    "nodeLabels": lambda n: metadata(labels=named(n)),
    "nodeTaints": lambda n: spec(taints=[{"key": "k", "effect": "NoSchedule"}] * n),
    "nodeResourceTypes": lambda n: {**metadata(), "status": {"allocatable": named(n)}},
    "nodeConditions": lambda n: {**metadata(), "status": {"conditions": [{"type": "T"}] * n}},
    "nodeDeclaredFeatures": lambda n: {**metadata(), "status": {"declaredFeatures": ["F"] * n}},
    "namespaceLabels": lambda n: metadata(labels=named(n)),
    "namespaceQuota": annotated(keys.NAMESPACE_QUOTA),
    "namespaceQueue": annotated(keys.PARENT_QUEUE),
    "namespaceQueueLevels": annotated(keys.PARENT_QUEUE, levels),
}
_KINDS: dict[str, tuple[Any, Any]] = {
    "pod": (Pod, Bounds.pod),
    "node": (Node, Bounds.node),
    "namespace": (Namespace, Bounds.namespace),
}


def refusal(name: str, number: int, bounds: Bounds) -> str:
    kind, within = next(_KINDS[prefix] for prefix in _KINDS if name.startswith(prefix))
    found = msgspec.convert(EXAMPLES[name](number), kind)
    return within(bounds, found).refusal


def test_q16_every_bound_has_an_example() -> None:
    assert {*EXAMPLES, GANG_TIMEOUT} == BOUNDS.keys()
    assert [each.name for each in (*POD, *NODE, *NAMESPACE)] == list(BOUNDS)[:-1]


@pytest.mark.parametrize("name", EXAMPLES)
def test_q16_what_is_beyond_a_bound_is_refused_by_name_and_number(name: str) -> None:
    most = BOUNDS[name]
    assert f"({name})" not in refusal(name, most, Bounds())
    said = refusal(name, most + 1, Bounds()).split("; ")
    (own,) = [each for each in said if each.endswith(f", at most {most} are allowed ({name})")]
    assert own.startswith(f"{most + 1} ")


@pytest.mark.parametrize("name", EXAMPLES)
def test_q16_a_setting_replaces_each_bound(name: str) -> None:
    bounds = Bounds(numbers(f"{name}=7"))
    assert refusal(name, 7, bounds) == ""
    assert refusal(name, 8, bounds).startswith("8 ")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("podLabel=3", "there is no bound 'podLabel', perhaps podLabels"),
        ("podLabels", "'podLabels' is not name=number, from 0 to 2147483647"),
        ("podLabels=-1", "'podLabels=-1' is not name=number"),
        ("podLabels=9999999999", "'podLabels=9999999999' is not name=number"),
    ],
)
def test_q16_a_wrong_bound_is_named(text: str, problem: str) -> None:
    reading = configuration.read({"service.bounds": text})
    assert reading.settings is None
    assert reading.errors[0].startswith(f"service.bounds: {problem}")


def test_q16_the_dropped_parts_leave_an_object_that_is_cheap_and_counts_what_it_takes() -> None:
    found = msgspec.convert(
        {
            **metadata(labels={**named(9_000), keys.APP_ID: "mine"}),
            "spec": {
                "nodeName": "n",
                "containers": [
                    {"resources": {"requests": {"cpu": "1500m", "memory": "1Gi", **named(5_000)}}}
                ]
                * 2,
            },
        },
        Pod,
    )
    pod = Bounds().pod(found)
    assert pod.metadata.labels == {keys.APP_ID: "mine"}
    assert of_pod(pod) == {"vcore": 3000, "memory": 2 << 30, "pods": 1}


def test_q16_objects_are_bounded_as_they_are_decoded() -> None:
    decoders: Decoders[Pod] = Decoders(Pod, Bounds().pod)
    pod = EXAMPLES["podTolerations"](200)
    page = decoders.page(msgspec.json.encode({"metadata": {}, "items": [pod]}))
    event = decoders.event(msgspec.json.encode({"type": "ADDED", "object": pod}))
    assert isinstance(event, Event)
    assert event.object is not None
    for found in (next(page.items), event.object):
        assert found.refusal.startswith("200 tolerations")
        assert found.spec.tolerations == ()


def test_q16_other_config_maps_of_the_namespace_are_not_kept() -> None:
    large = ConfigMap(data={"a": "b" * 1000})
    large.metadata.name = "somebody-elses"
    assert only_ours(large).data == {}


# -- what becomes of the object --------------------------------------------------------------------


def beyond(pod: Pod) -> Pod:
    """The pod as its reflector gives it with 300 labels more, of which none may be read."""
    labels = {**pod.metadata.labels, **named(300)}
    return Bounds().pod(replace(pod, metadata=replace(pod.metadata, labels=labels), spec=pod.spec))


def add_beyond(world: World, name: str, **of_pod: Any) -> Pod:
    heard = len(world.inputs)
    pod = world.add_pod(name, "huge", **of_pod)
    while len(world.inputs) > heard:
        world.inputs.pop()
    return world.set_pod(beyond(world.pods[pod.uid]))


def test_q16_a_pod_beyond_the_bounds_is_not_scheduled_and_told_once(world: World) -> None:
    huge = add_beyond(world, "huge")
    small = world.add_pod("small", "other")
    world.run(1)
    assert small.uid in world.bound
    assert huge.uid not in world.bound
    assert world.app_state("huge") == ""
    world.set_pod(world.pods[huge.uid])
    world.run(120)
    assert world.audit().standing == ()
    (event,) = [each for each in world.records if each.uid == huge.uid]
    assert (event.type, event.reason) == ("Warning", "BeyondBounds")
    note = "the pod is not scheduled: it has 301 labels, at most 256 are allowed (podLabels)"
    assert event.note == note
    assert world.conditions[huge.uid] == ("SchedulingSkipped", note)
    said = [text for text in world.log_warnings if "podLabels" in text]
    assert said == [f"pod default/huge: {note}"]


@pytest.mark.parametrize("restarted", [False, True])
def test_q16_a_pod_that_comes_within_the_bounds_is_scheduled(world: World, restarted: bool) -> None:
    huge, gone = add_beyond(world, "huge"), add_beyond(world, "gone")
    world.run(1)
    if restarted:
        world.restart()
        world.run(1)
        assert world.app_state("huge") == ""
    assert huge.uid not in world.bound
    world.set_pod(replace(world.pods[huge.uid], refusal=""))
    world.delete_pod(gone.uid)
    world.run(1)
    assert huge.uid in world.bound
    assert world.shim._kernel.refusals == {}


def test_q16_a_change_beyond_the_bounds_is_not_taken(world: World) -> None:
    pod = world.add_pod("chooser", "app", node_selector={"disk": "ssd"})
    world.run(1)
    tolerations = msgspec.convert(EXAMPLES["podTolerations"](200), Pod).spec.tolerations
    changed = replace(pod.spec, node_selector={}, tolerations=tolerations)
    world.set_pod(Bounds().pod(replace(pod, spec=changed)))
    world.run(120)
    assert pod.uid not in world.bound
    assert world.cache.pod(pod.uid).spec.node_selector == {"disk": "ssd"}  # type: ignore[union-attr]
    said = "".join(each.note for each in world.records if each.reason == "BeyondBounds")
    assert "the change is not taken: it has 200 tolerations" in said


def test_q16_a_pod_with_a_node_counts_without_what_is_beyond(world: World) -> None:
    """Also after a restart, and also in its application: nobody escapes a quota by 300 labels."""
    foreign = add_beyond(world, "foreign", scheduler="default", node="n1")
    ours = add_beyond(world, "ours", node="n1", queue="root.a")
    for _ in range(2):
        world.run(1)
        assert {foreign.uid, ours.uid} <= world.core_state().keys()
        assert world.app_state("huge") != ""
        told = [each.note for each in world.records if each.uid == ours.uid]
        assert told[-1].startswith("the pod has a node and counts without them: it has 302 labels")
        assert world.audit().standing == ()
        world.restart()


def test_q16_a_node_beyond_the_bounds_takes_no_new_pods_and_is_told(world: World) -> None:
    node = world.nodes["n1"]
    labels = replace(node.metadata, labels=named(2_000))
    world.set_node(Bounds().node(replace(node, metadata=labels, spec=replace(node.spec))))
    pod = world.add_pod("a", "app")
    world.run(1)
    assert pod.uid not in world.bound
    (event,) = [e for e in world.records if (e.kind, e.reason) == ("Node", "BeyondBounds")]
    assert event.note.startswith("the node takes no new pods: it has 2000 labels")
    world.set_node(node)
    world.run(10)
    assert pod.uid in world.bound


def test_q16_annotations_of_a_namespace_beyond_the_bounds_are_ignored_and_told() -> None:
    world = cluster()
    quota = {keys.NAMESPACE_QUOTA: "x" * 5_000, keys.PARENT_QUEUE: "root.fair"}
    found = Bounds().namespace(Namespace(Metadata(name="n", annotations=quota)))
    world.namespaces["n"] = found
    world.inputs.append(Changed("ADDED", found))
    world.run(1)
    (event,) = [each for each in world.records if each.kind == "Namespace"]
    assert event.note.startswith(
        "what is too large is ignored: it has 5000 characters of an annotation"
    )
    assert found.metadata.annotations == {keys.PARENT_QUEUE: "root.fair"}


def test_q16_archives_of_both_config_maps_share_one_bound() -> None:
    half = gzip.compress(b"#" * (9 << 20))
    found = configuration.merge(
        ConfigMap(binary_data={"a.yaml.gz": half}), ConfigMap(binary_data={"b.yaml.gz": half})
    )
    assert found.errors == (
        "b.yaml.gz in the binaryData of yunikorn-configs: "
        "it holds more than 16777216 bytes, with all others before it",
    )


@pytest.mark.parametrize("text", ["1e2147483647", "1e99999999999999999999", "9" * 90 + "E"])
def test_q16_a_huge_exponent_is_the_largest_number(text: str) -> None:
    pod = msgspec.convert(spec(containers=[{"resources": {"requests": {"memory": text}}}]), Pod)
    assert of_pod(Bounds().pod(pod))["memory"] == 2**63 - 1


def test_q16_a_grace_period_of_ages_is_looked_at_again_after_a_week(world: World) -> None:
    pod = world.add_pod("a", "app", termination_grace_period_seconds=2**63 - 1)
    world.run(1)
    world.kubelets = False
    world.terminate(pod.uid)
    world.run(1)
    deadline = world.shim.next_deadline()
    assert deadline is None or deadline - world.now <= 8 * 86_400 * SECOND


def comparisons(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The namespaces of the pods that are compared with a term from now on."""
    compared: list[str] = []
    matches = PodMatcher.matches

    def counted(self: PodMatcher, namespace: str, *about_the_pod: Any) -> bool:
        compared.append(namespace)
        return matches(self, namespace, *about_the_pod)

    monkeypatch.setattr(PodMatcher, "matches", counted)
    return compared


def test_q16_waiting_pods_terms_about_others_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the terms is another one, so that they share no counts. The others' pods come, get a node, change
    a label and go; their node changes too."""
    there = SmallCluster(n1={"zone": "z1"}, n2={"zone": "z2"})
    for number in range(50):
        expression = {"key": "role", "operator": "NotIn", "values": [str(number)]}
        against = term(namespaces=["others"], labelSelector={"matchExpressions": [expression]})
        there.pod(f"w{number}", namespace="hostile", affinity=away_from(against))
    compared = comparisons(monkeypatch)
    counted: list[str] = []
    add, changed = CountedPods.add, CountedPods.node_changed
    monkeypatch.setattr(CountedPods, "add", lambda *of: counted.append("pod") or add(*of))
    monkeypatch.setattr(
        CountedPods, "node_changed", lambda *of: counted.append("node") or changed(*of)
    )
    there.pod("a", namespace="others", labels={"role": "first"})
    assert there.asks("a", "n1") is None
    there.pod("a", "n1", namespace="others", labels={"role": "first"})
    there.pod("a", "n1", namespace="others", labels={"role": "second"})
    there.node("n1", {"zone": "z3"})
    assert (compared, counted) == ([], [])

    # Who waits finds out what has happened.
    assert there.allows("w7") == "n2"
    assert {*compared} == {"others"}
    there.cache.remove_pod("a")
    assert there.allows("w7") == "n1 n2"
