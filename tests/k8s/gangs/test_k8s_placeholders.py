"""The placeholder pod (K69 to K71)."""

import json
import re
from dataclasses import replace
from typing import Any

import msgspec
import pytest
import yaml

from quadriga.k8s.conversion import applications, identity, placeholders, task_groups
from quadriga.k8s.conversion.settings import Settings
from quadriga.k8s.conversion.task_groups import TaskGroups
from quadriga.k8s.objects import OwnerReference, Pod
from tests.k8s.decoded import container, pod

DOMAIN = "yunikorn.apache.org/"
SETTINGS = Settings()
SUFFIX = "a1b2c3d4e5"

GROUP: dict[str, Any] = {
    "name": "workers",
    "minMember": 2,
    "minResource": {"cpu": "500m", "memory": "1Gi"},
}


def originator(groups: list[dict[str, Any]], name: str = "driver", **changes: Any) -> Pod:
    annotations = {
        DOMAIN + "task-groups": json.dumps(groups),
        DOMAIN + "schedulingPolicyParameters": "gangSchedulingStyle=Hard",
        **changes.pop("annotations", {}),
    }
    labels = {DOMAIN + "app-id": "app-1", DOMAIN + "queue": "root.a", **changes.pop("labels", {})}
    return pod(name, labels=labels, annotations=annotations, **changes)


def made(
    group: dict[str, Any] | None = None,
    owners: tuple[OwnerReference, ...] = (),
    settings: Settings = SETTINGS,
    **changes: Any,
) -> dict[str, Any]:
    creator = originator([{**GROUP, **(group or {})}], **changes)
    application = applications.read(creator, None, settings)
    found = placeholders.manifest(
        application, application.groups[0], creator, SUFFIX, settings, owners
    )
    decoded: dict[str, Any] = json.loads(json.dumps(found))
    return decoded


WHOLE = """
apiVersion: v1
kind: Pod
metadata:
  name: tg-app-1-workers-a1b2c3d4e5
  namespace: team
  labels: {yunikorn.apache.org/app-id: app-1, yunikorn.apache.org/queue: root.a}
  annotations:
    internal.yunikorn.apache.org/placeholder: "true"
    cluster-autoscaler.kubernetes.io/safe-to-evict: "true"
    yunikorn.apache.org/task-group-name: workers
    internal.yunikorn.apache.org/min-member: "2"
    yunikorn.apache.org/schedulingPolicyParameters: gangSchedulingStyle=Hard
  ownerReferences:
  - {apiVersion: v1, kind: Pod, name: driver, uid: uid-driver, controller: false, blockOwnerDeletion: false}
spec:
  schedulerName: yunikorn
  restartPolicy: Never
  hostNetwork: false
  terminationGracePeriodSeconds: 0
  securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: pause
    image: registry.k8s.io/pause:3.7
    imagePullPolicy: IfNotPresent
    resources: {requests: {cpu: 500m, memory: 1Gi}, limits: {cpu: 500m, memory: 1Gi}}
    securityContext: {privileged: false, allowPrivilegeEscalation: false, readOnlyRootFilesystem: true,
                      capabilities: {drop: [ALL]}}
"""


def test_k69_the_whole_placeholder() -> None:
    found = made()
    told = found["metadata"]["annotations"].pop("internal.yunikorn.apache.org/task-groups-hash")
    assert told == task_groups.hash_of(json.dumps([GROUP]))
    assert found == yaml.safe_load(WHOLE)


def test_k69_what_the_group_and_the_originator_say() -> None:
    of_group: dict[str, Any] = {
        "labels": {"app": "spark"},
        "annotations": {"a": "b"},
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "gpu", "operator": "Exists", "tolerationSeconds": 5}],
        "affinity": {"podAntiAffinity": {}},
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone"}],
    }
    secrets = {"imagePullSecrets": [{"name": "one"}, {"name": "two"}]}
    own = {"schedulerName": "yunikorn", "priorityClassName": "high", **secrets}
    found = made(of_group, spec=own)
    for name in ("nodeSelector", "tolerations", "affinity", "topologySpreadConstraints"):
        assert found["spec"][name] == of_group[name]
    assert own.items() <= found["spec"].items()
    assert found["metadata"]["labels"]["app"] == "spark"
    assert found["metadata"]["annotations"]["a"] == "b"


def test_k69_labels_and_annotations_of_a_group_do_not_win() -> None:
    found = made(
        {
            "labels": {DOMAIN + "app-id": "x", DOMAIN + "queue": "x"},
            "annotations": {
                "internal.yunikorn.apache.org/placeholder": "false",
                DOMAIN + "task-group-name": "x",
                DOMAIN + "app-id": "x",
                DOMAIN + "queue": "x",
            },
        }
    )
    assert "x" not in found["metadata"]["labels"].values()
    assert "x" not in found["metadata"]["annotations"].values()


def test_k69_the_settings_for_placeholders() -> None:
    settings = replace(
        SETTINGS,
        scheduler_names=("other", "yunikorn"),
        placeholder_image="registry.local/pause:1",
        placeholder_run_as_user=65535,
        placeholder_run_as_group=65534,
        placeholder_fs_group=65533,
    )
    spec = made(settings=settings)["spec"]
    assert spec["containers"][0]["image"] == "registry.local/pause:1"
    assert spec["securityContext"] == {
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
        "runAsUser": 65535,
        "runAsGroup": 65534,
        "fsGroup": 65533,
    }
    assert spec["schedulerName"] == "yunikorn", "of several names the originator's"


def test_k69_a_policy_or_queue_that_is_not_given_is_not_copied() -> None:
    creator = pod(annotations={DOMAIN + "task-groups": json.dumps([GROUP])})
    application = applications.read(creator, None, SETTINGS)
    found = placeholders.manifest(application, application.groups[0], creator, SUFFIX, SETTINGS)
    assert DOMAIN + "queue" not in found["metadata"]["labels"]
    assert DOMAIN + "schedulingPolicyParameters" not in found["metadata"]["annotations"]


DNS_LABEL = re.compile("[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


@pytest.mark.parametrize(
    ("application", "group", "name"),
    [
        ("app-1", "workers", "tg-app-1-workers-a1b2c3d4e5"),
        ("a" * 40, "g" * 40, "tg-" + "a" * 28 + "-" + "g" * 20 + "-a1b2c3d4e5"),
        ("Spark_App.7", "Group A", "tg-spark-app-7-group-a-a1b2c3d4e5"),
        ("\u00c4pp", "w\u00f6rk", "tg--pp-w-rk-a1b2c3d4e5"),
        ("-", "-", "tg-----a1b2c3d4e5"),
    ],
)
def test_k69_the_name_is_a_dns_label(application: str, group: str, name: str) -> None:
    found = placeholders.name_of(application, group, SUFFIX)
    assert DNS_LABEL.fullmatch(found)
    assert re.fullmatch("[a-z0-9]{36}", placeholders.SUFFIX_ALPHABET)
    assert found.startswith("tg-")
    assert found.endswith("-" + SUFFIX), "the random end is whole"
    assert found == name


def seen(manifest: dict[str, Any]) -> Pod:
    manifest["metadata"] = {**manifest["metadata"], "uid": "uid-placeholder"}
    return msgspec.json.decode(msgspec.json.encode(manifest), type=Pod)


def declared(placeholder: Pod) -> TaskGroups:
    """What a recovery without the definition reads from the placeholder."""
    said = placeholders.declared_by([placeholder])
    return task_groups.read(pod(annotations=said), SETTINGS)


def test_k69_the_copy_of_an_older_placeholder_is_read_as_it_is() -> None:
    old = {DOMAIN + "task-groups": json.dumps([GROUP, {**GROUP, "name": "driver"}])}
    older = msgspec.structs.replace(
        seen(made()), metadata=msgspec.structs.replace(seen(made()).metadata, annotations=old)
    )
    assert [each.name for each in declared(older).groups] == ["workers", "driver"]


@pytest.mark.parametrize("value", ["a" * 64, "app/1", "root.@recovery@", "-a", "a b", "\u00e4"])
def test_what_cannot_be_a_label_is_an_annotation(value: str) -> None:
    labels = {DOMAIN + "app-id": "", DOMAIN + "queue": ""}
    annotations = {DOMAIN + "app-id": value, DOMAIN + "queue": value}
    found = made(labels=labels, annotations=annotations)
    assert found["metadata"]["labels"] == {}
    placeholder = seen(found)
    assert identity.application_id(placeholder, SETTINGS) == value
    assert identity.queue_of(placeholder) == value


def test_k70_a_placeholder_is_like_its_group() -> None:
    of_group = {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "gpu", "operator": "Exists"}]}
    placeholder = seen(made(of_group))
    (group,) = declared(placeholder).groups
    assert task_groups.differences(placeholder, group, placeholder) is None


def test_k71_the_owner_names_the_originator_and_is_taken_over_after_a_restart() -> None:
    assert placeholders.originator_uid(seen(made())) == "uid-driver"
    assert placeholders.originator_uid(pod()) == ""
    job = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "uid-job"}
    assert placeholders.originator_uid(pod(ownerReferences=[job])) == ""
    before = seen(made())
    again = made(owners=before.metadata.owner_references, name="another")
    assert again["metadata"]["ownerReferences"] == made()["metadata"]["ownerReferences"]
    assert placeholders.originator_uid(seen(again)) == "uid-driver"


def test_a_manifest_is_the_callers_own() -> None:
    creator = originator(
        [{**GROUP, "nodeSelector": {"a": "b"}}], spec={"containers": [container()]}
    )
    application = applications.read(creator, None, SETTINGS)
    first = placeholders.manifest(application, application.groups[0], creator, SUFFIX, SETTINGS)
    text = json.dumps(first)
    first["spec"]["nodeSelector"]["a"] = "c"
    first["metadata"]["annotations"].clear()
    second = placeholders.manifest(application, application.groups[0], creator, SUFFIX, SETTINGS)
    assert json.dumps(second) == text
