"""Admission as policies in CEL (K167): they decide what the rules decide."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from quadriga.k8s.admission.policy import documents, render
from quadriga.k8s.admission.rules import READABLE, decide, user_info
from quadriga.k8s.conversion import patterns
from quadriga.k8s.conversion.identity import user_of
from quadriga.k8s.conversion.settings import Settings
from quadriga.k8s.objects import Metadata, Pod
from tests.k8s.admission.test_k8s_admission_rules import applied
from tests.k8s.admission_cases import CASES, KINDS, PREEMPTION, ROWS, USER_INFO, Case, difference

cel_policies = pytest.importorskip("tests.k8s.cel_policies", exc_type=ImportError)


def admitted(case: Case) -> Any:
    user: dict[str, Any] = {"username": case.user}
    if case.groups:
        user["groups"] = list(case.groups)
    metadata: dict[str, Any] = {"name": case.namespace}
    if case.namespace_annotations:
        metadata["annotations"] = dict(case.namespace_annotations)
    return cel_policies.admit(
        documents(case.read_settings(), "quadriga"),
        group=KINDS[case.resource][0],
        resource=case.resource,
        operation=case.operation,
        namespace={"metadata": metadata},
        user=user,
        found=case.object(),
        old=case.old(),
    )


def without_preemption(found: Mapping[str, Any]) -> dict[str, Any]:
    """What the rules make, without the annotation that CEL cannot know."""
    changed = dict(found)
    if "annotations" in changed:
        annotations: Mapping[str, str] = changed.pop("annotations")
        if rest := {key: value for key, value in annotations.items() if key != PREEMPTION}:
            changed["annotations"] = rest
    return changed


#: The expressions are the same for all workloads but CronJobs, whose template lies deeper.
ASKED = [
    case
    for case in CASES
    if case.resource in ("pods", "deployments", "cronjobs")
    or case.name.startswith(("k163_labelled_", "k163_a_claim_", "k163_jobs", "k163_replicasets"))
]


@pytest.mark.parametrize("case", ASKED, ids=lambda case: case.name)
def test_k167_the_policies_decide_as_the_rules(case: Case) -> None:
    outcome = admitted(case)
    assert bool(outcome.denied) == (case.denied != "")
    if not outcome.denied:
        changed = difference(case.object(), outcome.object, case.resource)
        assert changed == without_preemption(case.changed)


@pytest.mark.parametrize("case", ROWS, ids=lambda case: case.name)
def test_k208_both_ways_decide_each_row_alike(case: Case) -> None:
    found, decision, outcome = case.object(), decide(case.request(), case.around()), admitted(case)
    assert bool(outcome.denied) == bool(decision.denied), (outcome.denied, decision.denied)
    by_rules = difference(found, applied(found, decision.patch), case.resource)
    if not decision.denied:
        assert difference(found, outcome.object, case.resource) == without_preemption(by_rules)


def test_k208_k162_every_denial_is_forbidden_and_names_the_user() -> None:
    policies = [each["spec"] for each in documents(Settings(), "own")]
    validations = [each for policy in policies for each in policy.get("validations", [])]
    assert [each["reason"] for each in validations] == ["Forbidden"] * 5
    case = next(each for each in CASES if each.name == "k162_a_claim")
    assert admitted(case).denied[0].startswith("user alice may not set the annotation")


@pytest.mark.parametrize(
    ("text", "readable"),
    [
        ("{}", True),
        ('{"user":"x"}', True),
        (' {"Groups" : [ ] , "USER" : "" } ', True),
        ('{"user":"x","groups":null}', True),
        ('{"user":null,"groups":["\\ud83d\\ude00"]}', True),
        ('{"user":"a\\\\","groups":["b"]}', True),
        ("", False),
        ("null", False),
        ('{"user":x}', False),
        ('{"user":"x",}', False),
        ('{"user":"x"', False),
        ('{"user":"x"}}', False),
        ('{"user":"x" "groups":[]}', False),
        ('{"user":"x","groups":["a",]}', False),
        ('{"user":"a"b"}', False),
        ('{"user":1}', False),
        ('{"user":"\\ud83d"}', False),
        ('{"u\u017fer":"x"}', False),
        ('{"user":"x"}\v', False),
        ('{"user":"x","more":"y"}', False),
    ],
)
def test_k162_what_a_claim_may_look_like(text: str, readable: bool) -> None:
    case = replace(CASES[0], annotations={USER_INFO: text}, settings={"external_users": ("alice",)})
    assert (admitted(case).denied == []) is readable
    assert (decide(case.request(), case.around()).denied == "") is readable


@given(
    st.lists(st.sampled_from([*'\\"/bq \n\x1f\x7f', r"\ud83d", r"\ude00", r"\u00e9"])).map("".join)
)
def test_k208_the_scheduler_reads_every_claim_that_admission_lets_pass(text: str) -> None:
    claim = f'{{"user":"{text}"}}'
    problem = user_of(Pod(metadata=Metadata(annotations={USER_INFO: claim}))).problem
    assert patterns.any_matches((READABLE,), claim) is (problem is None)


@given(st.text(), st.lists(st.text(), max_size=3))
def test_k208_every_user_may_be_claimed(name: str, groups: list[str]) -> None:
    for claim in (user_info(name, groups), json.dumps({"groups": groups, "user": name})):
        assert patterns.any_matches((READABLE,), claim)


@pytest.mark.parametrize("text", ['"quoted"', "back\\slash", "new\nline", "ünï", "\U0001f600"])
def test_texts_of_settings_are_quoted(text: str) -> None:
    outcome = admitted(replace(CASES[0], settings={"scheduler_names": (text,)}))
    assert outcome.object["spec"]["schedulerName"] == text


def test_the_yaml_holds_the_documents_and_the_manifest_those_of_the_default_settings() -> None:
    settings = Settings(process_namespaces=(r"^a\d+$", "ü'\""), external_groups=("^ops$",))
    text = render(settings, "own")
    assert list(yaml.safe_load_all(text)) == documents(settings, "own")
    path = Path(__file__).resolve().parents[3] / "deploy/kubernetes/policy/admission-policy.yaml"
    text = path.read_text(encoding="utf-8")
    assert text.partition("---\n")[2] == render(Settings(), "quadriga").removeprefix("---\n")


def test_k169_each_policy_has_its_binding_and_leaves_kube_system_out() -> None:
    found = documents(Settings(), "own")
    policies = [each for each in found if not each["kind"].endswith("Binding")]
    bindings = [each for each in found if each["kind"].endswith("Binding")]
    assert [e["metadata"]["name"] for e in policies] == [e["spec"]["policyName"] for e in bindings]
    for policy, binding in zip(policies, bindings, strict=True):
        assert binding["kind"] == policy["kind"] + "Binding"
        assert binding["apiVersion"] == policy["apiVersion"]
        validates = policy["kind"].startswith("Validating")
        assert binding["spec"].get("validationActions") == (["Deny"] if validates else None)
        assert policy["spec"]["failurePolicy"] == ("Fail" if validates else "Ignore")
        (each,) = policy["spec"]["matchConstraints"]["namespaceSelector"]["matchExpressions"]
        assert (each["operator"], each["values"]) == ("NotIn", ["own", "kube-system"])


def test_the_version_of_mutating_policies_can_be_chosen() -> None:
    versions = {each["apiVersion"] for each in documents(Settings(), "own", "v1beta1")}
    assert versions == {"admissionregistration.k8s.io/v1", "admissionregistration.k8s.io/v1beta1"}
    with pytest.raises(ValueError, match="v2"):
        render(Settings(), "own", "v2")


def test_k162_with_bypassed_authorization_only_changes_are_denied() -> None:
    found = documents(Settings(bypass_auth=True), "own")
    (policy,) = (each for each in found if each["kind"] == "ValidatingAdmissionPolicy")
    (validation,) = policy["spec"]["validations"]
    assert validation["message"].endswith("cannot be changed")
