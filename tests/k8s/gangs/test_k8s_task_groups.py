"""Task groups and the policy of a gang (K61 to K68)."""

import json
from dataclasses import replace
from typing import Any

import pytest
import yaml

from quadriga.k8s.conversion import task_groups
from quadriga.k8s.conversion.settings import Settings
from quadriga.k8s.conversion.task_groups import Policy, TaskGroups, differences, placeholder_ask
from tests.k8s.decoded import container, pod

DOMAIN = "yunikorn.apache.org/"
SETTINGS = Settings()
INT64_MAX = 2**63 - 1


def declared(definition: Any, parameters: str = "", **settings: Any) -> TaskGroups:
    text = definition if isinstance(definition, str) else json.dumps(definition)
    annotations = {DOMAIN + "task-groups": text, DOMAIN + "schedulingPolicyParameters": parameters}
    return task_groups.read(pod(annotations=annotations), replace(SETTINGS, **settings))


def group(name: str = "workers", members: Any = 3, **fields: Any) -> dict[str, Any]:
    return {
        "name": name,
        "minMember": members,
        "minResource": {"cpu": "500m", "memory": "1Gi"},
        **fields,
    }


def refusal(definition: Any) -> str:
    found = declared(definition)
    assert found.groups == ()
    (problem,) = found.problems
    assert (problem.reason, problem.action) == ("GangScheduling", "TaskGroupsError")
    prefix = f"the pods run without gang scheduling: annotation {DOMAIN}task-groups: "
    assert problem.note.startswith(prefix)
    text = definition if isinstance(definition, str) else json.dumps(definition)
    assert text[:100] in problem.note.replace("\\'", "'"), "the text is named"
    assert len(problem.note) < 900
    return problem.note.removeprefix(prefix)


EVERY_FIELD = """
labels: {app: spark}
annotations: {a: b}
nodeSelector: {disk: ssd}
tolerations: [{key: gpu, operator: Exists, effect: NoSchedule, tolerationSeconds: 60}]
affinity:
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
      - matchExpressions: [{key: k, operator: In, values: [v]}]
        matchFields: [{key: metadata.name, operator: In, values: [n1]}]
    preferredDuringSchedulingIgnoredDuringExecution:
    - {weight: 5, preference: {matchExpressions: [{key: z}]}}
  podAntiAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
    - {topologyKey: zone, labelSelector: {matchLabels: {app: spark}}, namespaces: [team], namespaceSelector: {}}
  podAffinity:
    preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: rack}}]
topologySpreadConstraints:
- {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, minDomains: 2, matchLabelKeys: [version],
   labelSelector: {matchExpressions: [{key: app, operator: Exists}]}, nodeAffinityPolicy: Honor,
   nodeTaintsPolicy: Ignore}
"""


def test_k61_a_definition_with_every_field() -> None:
    fields = yaml.safe_load(EVERY_FIELD)
    empty = {"nodeSelector": {}, "tolerations": [], "affinity": {}, "topologySpreadConstraints": []}
    found = declared([group(**fields), group("driver", 1, minResource={"cpu": 1}, **empty)])
    assert found.problems == ()
    workers, driver = found.groups
    assert (workers.name, workers.min_member) == ("workers", 3)
    assert workers.resources == {"vcore": 500, "memory": 1 << 30}
    assert workers.min_resource == {"cpu": "500m", "memory": "1Gi"}
    assert workers.labels == fields["labels"]
    assert workers.annotations == fields["annotations"]
    assert workers.node_selector == fields["nodeSelector"]
    assert list(workers.tolerations) == fields["tolerations"]
    assert workers.affinity == fields["affinity"]
    assert list(workers.topology_spread_constraints) == fields["topologySpreadConstraints"]
    assert (driver.resources, driver.min_resource) == ({"vcore": 1000}, {"cpu": "1"})
    assert (driver.affinity, driver.tolerations) == ({}, ())
    assert found.group("driver") is driver
    assert found.group("Driver") is None


def test_k61_names_match_in_any_case_the_last_spelling_counts_and_null_is_absent() -> None:
    found = declared(
        '[{"NAME": "g", "MinMember": 2, "minresource": {"CPU": "1", "cpu": "2"}, '
        '"Tolerations": [{"Key": "a", "OPERATOR": "Exists"}], '
        '"NodeSelector": {"Disk": "SSD"}, '
        '"Affinity": {"nodeaffinity": {"RequiredDuringSchedulingIgnoredDuringExecution": '
        '{"NodeSelectorTerms": []}}}}]'
    )
    assert found.problems == ()
    (one,) = found.groups
    assert (one.name, one.min_member) == ("g", 2)
    assert one.resources == {"CPU": 1, "vcore": 2000}, "names of resources are texts of the user"
    assert list(one.tolerations) == [{"key": "a", "operator": "Exists"}]
    assert one.node_selector == {"Disk": "SSD"}
    assert one.affinity == {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}
        }
    }
    found = declared(
        '[{"name": "a", "Name": "b", "minMember": 1, "minResource": {"cpu": null, "memory": " 1 "},'
        ' "labels": null, "tolerations": null, "nodeSelector": {"a": null}}]'
    )
    assert found.problems == ()
    (one,) = found.groups
    assert one.name == "b"
    assert one.resources == {"vcore": 0, "memory": 1}
    assert one.min_resource == {"cpu": "0", "memory": "1"}
    assert (one.labels, one.node_selector) == ({}, {"a": ""})
    assert one.affinity is None


def test_k61_k66_what_is_no_gang_and_what_only_warns() -> None:
    found = declared([group(maxMember=9, tolerations=[{"kye": "a", "operator": "Exists"}])])
    assert [each.name for each in found.groups] == ["workers"]
    (problem,) = found.problems
    assert problem.note == (
        f"annotation {DOMAIN}task-groups: ignored: item 0.'maxMember', item 0.tolerations[0].'kye'"
    )
    assert list(found.groups[0].tolerations) == [{"operator": "Exists"}]
    for text in ("", "[]", "null"):
        assert declared(text) == TaskGroups()
    assert task_groups.read(pod(), SETTINGS) == TaskGroups()
    assert declared([group()], disable_gang_scheduling=True) == TaskGroups()
    assert declared("nonsense", "nonsense", disable_gang_scheduling=True) == TaskGroups()


MIN_RESOURCE = "minResource of group 'workers': "


@pytest.mark.parametrize(
    ("definition", "why"),
    [
        ("workers", "it is not JSON"),
        ("[{]", "it is not JSON"),
        ("[" * 60_000, "it is not JSON"),
        ({"name": "workers"}, "it is not a list of task groups"),
        ('"workers"', "it is not a list of task groups"),
        (["workers"], "item 0 is not an object"),
        ([group(), {"minMember": 1, "minResource": {}}], "item 1 has no name"),
        ([group(name="")], "item 0 has no name"),
        ([group(name=7)], "item 0.name is not a text"),
        ([{"name": "g", "minMember": 1}], "group 'g' has no minResource"),
        ([group(minResource=None)], "group 'workers' has no minResource"),
        ([{"name": "g", "minResource": {}}], "minMember of group 'g' is 0 or missing"),
        ([group(members=0)], "minMember of group 'workers' is 0 or missing"),
        ([group(members=-1)], "minMember of group 'workers' is negative"),
        ([group(members="3")], "item 0.minMember is not a whole number of 32 bits"),
        ([group(members=3.0)], "item 0.minMember is not a whole number of 32 bits"),
        ([group(members=True)], "item 0.minMember is not a whole number of 32 bits"),
        ([group(members=2**31)], "item 0.minMember is not a whole number of 32 bits"),
        ([group(minResource=["cpu"])], "item 0.minResource is not an object"),
        ([group(minResource={"cpu": "one"})], f"{MIN_RESOURCE}'cpu': 'one' is not"),
        ([group(minResource={"cpu": ""})], f"{MIN_RESOURCE}'cpu': '' is not"),
        ([group(minResource={"cpu": True})], "item 0.minResource.cpu is not a quantity"),
        ([group(minResource={"cpu": ["1"]})], "item 0.minResource.cpu is not a quantity"),
        ([group(minResource={"memory": "-1"})], f"{MIN_RESOURCE}'memory' is negative"),
        (
            [group(minResource={"cpu": "1", "vcore": "1"})],
            f"{MIN_RESOURCE}cpu and vcore are the same",
        ),
        ([group(minResource={"pods": "1"})], f"{MIN_RESOURCE}pods is counted"),
        ([group(minResource={"cpu": "9E"})], f"{MIN_RESOURCE}'cpu' is more than a 64 bit number"),
        ([group(minResource={"memory": "4E"})], "all members together need more memory than a 64"),
        (
            [group(name, 1, minResource={"memory": "8E"}) for name in "ab"],
            "all members together need more memory than a 64 bit number holds",
        ),
        ([group("a"), group("b"), group("a")], "two groups have the name 'a'"),
        ([group(labels={"a": 1})], "item 0.labels.a is not a text"),
        ([group(labels=["a"])], "item 0.labels is not an object"),
        ([group(tolerations={})], "item 0.tolerations is not a list"),
        ([group(tolerations=["a"])], "item 0.tolerations[0] is not an object"),
        (
            [group(tolerations=[{"tolerationSeconds": "1"}])],
            "item 0.tolerations[0].tolerationSeconds is not a whole number of 64 bits",
        ),
        (
            [group(topologySpreadConstraints=[{"maxSkew": 1.5}])],
            "item 0.topologySpreadConstraints[0].maxSkew is not a whole number",
        ),
    ],
)
def test_k62_k63_with_an_error_the_pods_run_without_a_gang(definition: Any, why: str) -> None:
    assert refusal(definition).startswith(why)


def test_k62_k64_the_placeholders_ask_for_all_members_and_the_largest_sum_is_no_error() -> None:
    found = declared([group("a", 1, minResource={"memory": INT64_MAX})])
    assert found.problems == ()
    assert placeholder_ask(found.groups) == {"memory": INT64_MAX, "pods": 1}
    found = declared(
        [
            group("a", 3, minResource={"cpu": "0.5", "memory": "1Gi"}),
            group("b", 2, minResource={"cpu": "1", "nvidia.com/gpu": "1500m"}),
        ]
    )
    assert placeholder_ask(found.groups) == {
        "vcore": 3500,
        "memory": 3 << 30,
        "nvidia.com/gpu": 4,
        "pods": 5,
    }
    assert declared([group()]) is declared([group()])


TIMEOUT, HARD = "placeholderTimeoutInSeconds=", "gangSchedulingStyle=Hard"


@pytest.mark.parametrize(
    ("parameters", "policy"),
    [
        ("", Policy("Soft", 0)),
        ("placeholderTimeoutInSeconds=30 gangSchedulingStyle=Hard", Policy("Hard", 30)),
        ("gangSchedulingStyle=Soft", Policy("Soft", 0)),
        ("placeholderTimeoutInSeconds=-1", Policy("Soft", -1)),
        ("placeholderTimeoutInSeconds=+5 other=1", Policy("Soft", 5)),
        ("placeholderTimeoutInSeconds=31536000", Policy("Soft", 31_536_000)),
        ("gangSchedulingStyle=Hard gangSchedulingStyle=Soft", Policy("Soft", 0)),
    ],
)
def test_k67_timeout_and_style(parameters: str, policy: Policy) -> None:
    found = declared([group()], parameters)
    assert (found.policy, found.problems) == (policy, ())


@pytest.mark.parametrize(
    ("parameters", "policy", "why"),
    [
        ("gangSchedulingStyle=hard", Policy(), "'hard' is neither Hard nor Soft, Soft is used"),
        (f"{TIMEOUT}5m {HARD}", Policy("Hard"), "'5m' is not a whole number, the default is used"),
        (f"{TIMEOUT}{2**63}", Policy(), "is not a whole number"),
        (TIMEOUT + "9" * 5000, Policy(), "is not a whole number"),
        ("gangSchedulingStyle Hard", Policy(), "'gangSchedulingStyle' is not key=value"),
        (f"{TIMEOUT}3=4", Policy(), "'placeholderTimeoutInSeconds=3=4' is not"),
        (f"{TIMEOUT}31536001", Policy(), "'31536001' is more than 31536000, the default is used"),
        (f"{TIMEOUT}{2**63 - 1}", Policy(), "is more than 31536000, the default is used"),
        (f"{TIMEOUT}3  {HARD}", Policy("Hard", 3), "'' is not key=value"),
    ],
)
def test_k67_anything_else_is_skipped_and_told(parameters: str, policy: Policy, why: str) -> None:
    found = declared([group()], parameters)
    assert found.policy == policy
    assert [each.name for each in found.groups] == ["workers"], "the gang stays"
    notes = [each.note for each in found.problems]
    assert all(e.startswith(f"annotation {DOMAIN}schedulingPolicyParameters: ") for e in notes)
    assert any(why in each for each in notes)


def test_k65_a_pod_of_an_unknown_group() -> None:
    groups = declared([group("a"), group("b")])
    assert task_groups.unknown_group(pod(), "a", groups) is None
    assert task_groups.unknown_group(pod(), "", groups) is None
    problem = task_groups.unknown_group(pod(), "A", groups)
    assert problem is not None
    assert problem.note == "the application has no task group 'A'; its groups: a, b"
    alone = task_groups.unknown_group(pod(), "a", TaskGroups())
    assert alone is not None
    assert alone.note.endswith("its groups: none")


def difference(fields: dict[str, Any], **spec: Any) -> str | None:
    """What K70 says of a pod with cpu 500m and memory 1Gi, unless the spec says otherwise."""
    (one,) = declared([group(**fields)]).groups
    spec.setdefault("containers", [container(cpu="0.5", memory="1024Mi")])
    requests = {kind: str(text) for kind, text in one.min_resource.items()}
    problem = differences(pod(spec=spec), one, pod(spec={"containers": [container(**requests)]}))
    if problem is None:
        return None
    assert (problem.reason, problem.action) == ("GangScheduling", "TaskGroupsError")
    prefix = "the pod is not like its task group 'workers', a placeholder may not fit it: "
    assert problem.note.startswith(prefix)
    return problem.note.removeprefix(prefix)


#: what the API server gives to every pod
GIVEN = [
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute"}
    for key in ("not-ready", "unreachable")
]
GPU = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}


def test_k70_a_pod_like_its_group() -> None:
    assert difference({}) is None
    assert difference({}, tolerations=[{**e, "tolerationSeconds": 300} for e in GIVEN]) is None
    assert difference({"nodeSelector": {"a": "b"}}, nodeSelector={"a": "b"}) is None
    same = {**GPU, "operator": "Equal"}
    assert difference({"tolerations": [GPU]}, tolerations=[same, *GIVEN]) is None
    assert difference({"minResource": {"cpu": "500m", "memory": "1Gi", "gpu": "0"}}) is None


LARGE = [container(cpu="1", memory="1Gi")]
TOLERATIONS = "the tolerations differ from those of the group"


@pytest.mark.parametrize(
    ("fields", "spec", "found"),
    [
        (
            {},
            {"containers": [container(cpu="1", memory="1Gi", **{"nvidia.com/gpu": "1"})]},
            "nvidia.com/gpu is 1, that of the placeholder 0; vcore is 1000, that of the placeholder 500",
        ),
        (
            {},
            {"overhead": {"memory": "1Mi"}},
            f"memory is {(1 << 30) + (1 << 20)}, that of the placeholder {1 << 30}",
        ),
        (
            {"nodeSelector": {"b": "1", "a": "1"}},
            {},
            'the nodeSelector is {}, the group has {"a":"1","b":"1"}',
        ),
        ({}, {"tolerations": [GPU, *GIVEN]}, TOLERATIONS),
        ({"tolerations": [GPU]}, {"tolerations": GIVEN}, TOLERATIONS),
        ({"tolerations": [GPU]}, {"tolerations": [{**GPU, "operator": "Exists"}]}, TOLERATIONS),
        (
            {},
            {"containers": LARGE, "nodeSelector": {"a": "b"}, "tolerations": [GPU]},
            "vcore is 1000, that of the placeholder 500; "
            f'the nodeSelector is {{"a":"b"}}, the group has {{}}; {TOLERATIONS}',
        ),
    ],
)
def test_k70_what_differs_is_one_warning(fields: Any, spec: Any, found: str) -> None:
    assert difference(fields, **spec) == found
