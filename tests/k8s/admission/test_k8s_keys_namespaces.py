"""What annotations of a namespace say about the queue of its applications (K42 to K44, K160)."""

import pytest

from quadriga.core.placement.quota_tags import read_quota_tags
from quadriga.k8s.conversion import keys
from quadriga.k8s.conversion.namespaces import flag, tags_of
from tests.k8s.decoded import namespace


def test_k42_k43_the_core_reads_quota_guaranteed_applications_and_parent() -> None:
    found = tags_of(
        namespace(
            namespace_quota='{"memory": "1Ki", "cpu": "1", "nvidia.com/gpu": "2"}',
            namespace_guaranteed='{"cpu": 2}',
            namespace_maxApps=" 3 ",
            parentqueue="root.teams",
        )
    )
    text = '{"resources":{"memory":{"value":1024},"nvidia.com/gpu":{"value":2},"vcore":{"value":1000}}}'
    assert found.tags["namespace.resourcequota"] == text, "always the same"
    assert found.tags["namespace.parentqueue"] == "root.teams"
    assert (found.problems, len(found.tags)) == ((), 4)
    read = read_quota_tags(found.tags)
    assert read.max == {"memory": 1024, "vcore": 1000, "nvidia.com/gpu": 2}
    assert (read.guaranteed, read.max_applications) == ({"vcore": 2000}, 3)
    assert read.unreadable == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("64 cpus", "malformed"),
        ('["cpu"]', "it is not a JSON object"),
        ('{"cpu": "64", "memory": "much"}', "'memory': 'much' is not a quantity"),
        ('{"cpu": true}', "the quantity of 'cpu' is neither a text nor a number"),
        ('{"cpu": null}', "the quantity of 'cpu' is neither a text nor a number"),
        ('{"cpu": "-1"}', "the quantity of 'cpu' is negative"),
        ('{"cpu": "1", "vcore": "1000"}', "cpu and vcore are the same"),
        ("[" * 100_000, "is ignored"),
    ],
)
def test_k43_what_cannot_be_read_is_left_out_as_a_whole_with_a_warning(text: str, why: str) -> None:
    found = tags_of(namespace(namespace_quota=text, namespace_maxApps="1"))
    assert dict(found.tags) == {"namespace.resourcemaxapps": "1"}, "the others stay"
    (problem,) = found.problems
    assert problem.note.startswith(f"annotation {keys.NAMESPACE_QUOTA} is ignored: ")
    assert why in problem.note.lower() or why in problem.note
    assert len(problem.note) < 600


@pytest.mark.parametrize("text", ["-1", "many", "1.5", "9" * 19, "+1", "\u0661"])
def test_k43_a_wrong_number_of_applications_is_left_out_with_a_warning(text: str) -> None:
    found = tags_of(namespace(namespace_maxApps=text))
    assert dict(found.tags) == {}
    (problem,) = found.problems
    assert keys.NAMESPACE_MAX_APPS in problem.note


def test_k43_a_quota_of_zeros_is_left_out_and_so_is_none() -> None:
    found = tags_of(namespace(namespace_quota='{"cpu": "0", "memory": 0}'))
    assert dict(found.tags) == {}
    assert found.problems == ()
    partly = tags_of(namespace(namespace_quota='{"cpu": "0", "memory": "1"}'))
    assert '"vcore":{"value":0}' in partly.tags["namespace.resourcequota"]
    assert tags_of(None) == tags_of(namespace()) == tags_of(namespace(other="x"))
    assert dict(tags_of(None).tags) == {}
    assert tags_of(None).problems == ()


def test_k42_k43_the_deprecated_quota_of_two_types() -> None:
    for cpu, memory, quota in (
        ("2", "1Mi", {"vcore": 2000, "memory": 1 << 20}),
        ("2", "", {"vcore": 2000}),
        ("0", "", None),
    ):
        found = tags_of(namespace(namespace_max_cpu=cpu, namespace_max_memory=memory))
        assert read_quota_tags(found.tags).max == quota if quota else dict(found.tags) == {}
        assert found.problems == ()
    # it is ignored beside the new one, and left out where it cannot be read
    found = tags_of(namespace(namespace_max_cpu="2", namespace_quota='{"cpu": "1"}'))
    assert read_quota_tags(found.tags).max == {"vcore": 1000}
    (problem,) = found.problems
    assert keys.NAMESPACE_MAX_CPU in problem.note and keys.NAMESPACE_QUOTA in problem.note
    found = tags_of(namespace(namespace_max_cpu="two", namespace_max_memory="1Mi"))
    assert dict(found.tags) == {}
    (problem,) = found.problems
    assert "'two' is not a quantity" in problem.note


def test_k160_a_flag_of_a_namespace() -> None:
    for text, value in (("true", True), ("false", False), ("True", None), ("", None)):
        assert flag(namespace(namespace_enableYuniKorn=text), keys.NAMESPACE_ENABLE) is value
    assert flag(None, keys.NAMESPACE_ENABLE) is None
    assert flag(namespace(), keys.NAMESPACE_GENERATE_APP_ID) is None
