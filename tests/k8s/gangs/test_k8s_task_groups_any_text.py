"""Whatever users write: nothing raises, each reading is the same again, and the messages can be made."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from quadriga.k8s.conversion import applications, messages, placeholders, settings, task_groups
from quadriga.k8s.conversion.problems import Problem
from quadriga.k8s.conversion.settings import Settings
from quadriga.k8s.conversion.settings_table import KEYS
from quadriga.k8s.conversion.task_groups import placeholder_ask
from tests.k8s.decoded import container, namespace, pod

DOMAIN = "yunikorn.apache.org/"
INT64_MAX = 2**63 - 1

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
quantities = st.one_of(
    texts,
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.from_regex(r"[0-9]{1,22}(\.[0-9]{0,12})?(m|k|Mi|E|Ei|e[0-9]{1,4})?", fullmatch=True),
    st.none(),
    st.booleans(),
)
values = st.recursive(
    st.one_of(texts, quantities),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=8,
)
FIELDS = (
    *("name", "Name", "minMember", "minResource", "labels", "annotations", "nodeSelector"),
    *("tolerations", "affinity", "topologySpreadConstraints", "other"),
)
groups = st.fixed_dictionaries(
    {
        "name": st.one_of(texts, values),
        "minMember": st.one_of(st.integers(1, 2**31 - 1), values),
        "minResource": st.one_of(
            st.dictionaries(st.sampled_from(["cpu", "memory", "vcore", "gpu"]), quantities), values
        ),
    },
    optional={f: values for f in FIELDS if f not in ("name", "minMember", "minResource")},
)
definitions = st.one_of(texts, values.map(json.dumps), st.lists(groups, max_size=3).map(json.dumps))


def sound(problems: tuple[Problem, ...]) -> None:
    assert all(each.reason and each.action and each.note for each in problems)


@given(definition=definitions, parameters=texts, user=st.one_of(texts, values.map(json.dumps)))
def test_what_a_pod_says_never_raises(definition: str, parameters: str, user: str) -> None:
    one = pod(
        annotations={
            DOMAIN + "task-groups": definition,
            DOMAIN + "schedulingPolicyParameters": parameters,
            DOMAIN + "user.info": user,
        },
        spec={"containers": [container(cpu="1")]},
    )
    found = applications.read(one, None, Settings())
    assert found == applications.read(one, None, Settings())
    sound(found.problems)
    messages.add_application(found, force=False).SerializeToString(deterministic=True)
    assert all(0 <= total <= INT64_MAX for total in placeholder_ask(found.groups).values())
    for group in found.groups:
        assert group.name
        assert group.min_member > 0
        json.dumps(placeholders.manifest(found, group, one, "a1b2c3d4e5", Settings()))
        task_groups.differences(one, group, one)


@given(st.dictionaries(st.sampled_from(["cpu", "memory", "gpu"]), quantities), texts, texts)
def test_what_a_namespace_says_never_raises(quota: dict[str, Any], number: str, cpu: str) -> None:
    one = namespace(
        namespace_quota=json.dumps(quota),
        namespace_guaranteed=cpu,
        namespace_maxApps=number,
        namespace_max_cpu=cpu,
    )
    found = applications.read(pod(), one, Settings())
    sound(found.namespace_problems)
    messages.add_application(found, force=True).SerializeToString(deterministic=True)


@given(st.dictionaries(st.sampled_from([*KEYS, "queues.yaml", "service.x", "y"]), texts))
def test_what_the_settings_say_never_raises(texts_of_keys: dict[str, str]) -> None:
    reading = settings.read(texts_of_keys)
    assert (reading.settings is None) == bool(reading.errors)
    if reading.settings is not None:
        messages.register(reading.settings, {}).SerializeToString()
        assert settings.change(reading.settings, texts_of_keys).settings == reading.settings


@given(st.dictionaries(st.sampled_from(["cpu", "memory", "pods", "gpu"]), texts))
def test_what_a_container_says_never_raises(requests: dict[str, str]) -> None:
    one = pod(spec={"containers": [container(**requests)], "nodeName": "n1"})
    messages.ask(one, "app", Settings()).SerializeToString()
    messages.foreign_allocation(one).SerializeToString()
