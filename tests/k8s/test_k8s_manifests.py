"""The manifests of deploy/kubernetes: they are whole, fit each other, and give exactly the rights needed."""

import asyncio
import json
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from quadriga.core.config import load
from quadriga.k8s.admission.keeper import SECRET_NAME
from quadriga.k8s.admission.registration import NAME as REGISTRATION
from quadriga.k8s.admission.webhook import PORT
from quadriga.k8s.conversion import settings
from quadriga.k8s.conversion.settings import Settings
from quadriga.k8s.objects import ConfigMap
from quadriga.k8s.transport import rights

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "kubernetes"
ADMISSION = FOLDER / "admission"
#: servers before 1.21 do not have what is in it
DISRUPTION = FOLDER / "disruption"
ADMISSION_NAME = "quadriga-admission"
NAME = "app.kubernetes.io/name"

Object = dict[str, Any]


def objects(folder: Path = FOLDER) -> list[Object]:
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text(encoding="utf-8"))
    found = []
    for name in kustomization["resources"]:
        found += list(yaml.safe_load_all((folder / name).read_text(encoding="utf-8")))
    return found


def the(kind: str, folder: Path = FOLDER) -> Object:
    (found,) = [each for each in objects(folder) if each["kind"] == kind]
    return found


@pytest.mark.parametrize("folder", [FOLDER, ADMISSION, DISRUPTION])
def test_every_file_of_the_folder_is_applied(folder: Path) -> None:
    applied = yaml.safe_load((folder / "kustomization.yaml").read_text(encoding="utf-8"))
    files = {each.name for each in folder.glob("*.yaml")} - {"Chart.yaml", "values.yaml"}
    assert files == {*applied["resources"], "kustomization.yaml"}


def rendered(namespace: str, **values: Any) -> list[Object]:
    """What the chart makes: its template is lists of the manifests' files and texts to be replaced in them.
    Where the program helm is installed, it renders too and must agree."""
    values = {**yaml.safe_load((FOLDER / "values.yaml").read_text(encoding="utf-8")), **values}
    template = (FOLDER / "templates" / "objects.yaml").read_text(encoding="utf-8")
    names = re.findall(r'"([^"]+)"', template.splitlines()[0])
    for value, added in re.findall(r"if \.Values\.(\w+) \}\}(.*?)\{\{ end", template):
        names += re.findall(r'"([^"]+)"', added) if values[value] else []
    found: list[Object] = []
    for name in names:
        text = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
        for old, new, where in re.findall(
            r'replace "(.+?)" \(printf "(.+?)" \$\.(?:Values|Release)\.(\w+)\)', template
        ):
            put = namespace if where == "Namespace" else str(values[where])
            text = text.replace(
                old.replace("\\n", "\n"), re.sub("%[sv]", put, new).replace("\\n", "\n")
            )
        found += yaml.safe_load_all(text)
    if helm := shutil.which("helm"):
        options = [f"--set={name}={json.dumps(value)}" for name, value in values.items()]
        words = [helm, "template", "quadriga", FOLDER, "--namespace", namespace, *options]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        assert sorted(map(str, filter(None, yaml.safe_load_all(done.stdout)))) == sorted(
            map(str, found)
        )
    return found


def keyed(found: list[Object]) -> dict[tuple[str, str], Object]:
    return {(each["kind"], each["metadata"]["name"]): each for each in found}


def test_the_chart_has_the_objects_of_the_manifests() -> None:
    plain = [each for each in objects() if each["kind"] != "Namespace"]
    assert keyed(rendered("quadriga")) == keyed(plain)
    whole = rendered("quadriga", admission=True, disruption=True)
    assert keyed(whole) == keyed(plain + objects(ADMISSION) + objects(DISRUPTION))


def test_the_values_of_the_chart_reach_its_objects() -> None:
    found = rendered("apart", image="r/q:2", replicas=2, configuration=False, admission=True)
    assert {each["metadata"].get("namespace", "apart") for each in found} == {"apart"}
    subjects = [each for binding in found for each in binding.get("subjects", ())]
    assert {each["namespace"] for each in subjects} == {"apart"}
    assert set(re.findall(r"'image': '(.+?)'", str(found))) == {"r/q:2"}
    deployments = keyed(found)
    assert deployments["Deployment", "quadriga"]["spec"]["replicas"] == 2
    assert ("ConfigMap", "yunikorn-configs") not in deployments


def test_the_chart_has_the_version_of_the_image() -> None:
    chart = yaml.safe_load((FOLDER / "Chart.yaml").read_text(encoding="utf-8"))
    (container,) = the("Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"quadriga:{chart['version']}" == f"quadriga:{chart['appVersion']}"


@pytest.mark.parametrize(("folder", "name"), [(FOLDER, "quadriga"), (ADMISSION, ADMISSION_NAME)])
def test_every_object_has_a_kind_a_name_and_the_label(folder: Path, name: str) -> None:
    for each in objects(folder):
        assert each["apiVersion"], each
        assert each["metadata"]["labels"][NAME] == name, each
    found = Counter((each["kind"], each["metadata"]["name"]) for each in objects(folder))
    assert set(found.values()) == {1}


def test_everything_is_in_our_namespace_and_the_deployment_selects_its_own_pods() -> None:
    everywhere = {"Namespace", "ClusterRole", "ClusterRoleBinding", "PriorityClass"}
    for each in objects() + objects(ADMISSION):
        namespace = each["metadata"].get("namespace")
        assert namespace == (None if each["kind"] in everywhere else "quadriga"), each
    assert the("Namespace")["metadata"]["name"] == "quadriga"
    for folder in (FOLDER, ADMISSION):
        spec = the("Deployment", folder)["spec"]
        labels = spec["template"]["metadata"]["labels"]
        assert spec["selector"]["matchLabels"].items() <= labels.items()
        assert the("Service", folder)["spec"]["selector"].items() <= labels.items()
        assert labels["app"] == "yunikorn", "YuniKorn's admission leaves it alone"
    assert the("Deployment")["spec"]["template"]["spec"]["schedulerName"] == "default-scheduler"


def rules(kind: str) -> set[tuple[str, str, str]]:
    return {
        (group, resource, verb)
        for rule in the(kind)["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def wanted(own_namespace: bool) -> set[tuple[str, str, str]]:
    return {
        (right.group, right.resource, verb)
        for right in (*rights.RIGHTS, *rights.POD_GROUP_RIGHTS, *rights.DEVICE_CLASS_RIGHTS)
        if right.own_namespace is own_namespace
        for verb in right.verbs
    }


def test_k18_the_roles_give_the_rights_that_are_needed_to_the_account_of_the_deployment() -> None:
    assert rules("ClusterRole") == wanted(own_namespace=False)
    assert rules("Role") == wanted(own_namespace=True)
    account = the("ServiceAccount")["metadata"]["name"]
    for binding, role in (("ClusterRoleBinding", "ClusterRole"), ("RoleBinding", "Role")):
        assert the(binding)["roleRef"] == {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": role,
            "name": the(role)["metadata"]["name"],
        }
        (subject,) = the(binding)["subjects"]
        assert subject == {"kind": "ServiceAccount", "name": account, "namespace": "quadriga"}
    assert the("Deployment")["spec"]["template"]["spec"]["serviceAccountName"] == account


def test_k47_the_configuration_is_read_by_the_shim_and_by_the_core() -> None:
    found = the("ConfigMap")
    assert found["metadata"]["name"] == settings.CONFIGS_NAME
    reading = settings.from_maps(None, ConfigMap(data=found["data"]))
    assert (reading.errors, reading.warnings) == ((), ())
    assert load(reading.settings.queues).partitions


def test_k16_k11_the_probes_the_service_and_the_strategy() -> None:
    (container,) = the("Deployment")["spec"]["template"]["spec"]["containers"]
    (port,) = container["ports"]
    assert f"--health=0.0.0.0:{port['containerPort']}" in container["args"]
    paths = {n: container[f"{n}Probe"]["httpGet"] for n in ("startup", "liveness", "readiness")}
    assert {each["port"] for each in paths.values()} == {port["name"]}
    assert [each["path"] for each in paths.values()] == ["/healthz", "/healthz", "/readyz"]
    strategy = the("Deployment")["spec"]["strategy"]
    assert strategy["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    (served,) = the("Service")["spec"]["ports"]
    assert served["targetPort"] == port["name"]
    assert the("Service")["metadata"]["annotations"]["prometheus.io/port"] == str(served["port"])


@pytest.mark.parametrize("folder", [FOLDER, ADMISSION])
def test_the_pods_have_room_first_on_nodes_of_their_own_and_go_one_by_one(folder: Path) -> None:
    spec = the("Deployment", folder)["spec"]
    labels = spec["selector"]["matchLabels"]
    pod = spec["template"]["spec"]
    assert pod["priorityClassName"] == the("PriorityClass")["metadata"]["name"]
    assert the("PriorityClass")["value"] == 10**9, "the highest that is not the system's"
    (preferred,) = pod["affinity"]["podAntiAffinity"][
        "preferredDuringSchedulingIgnoredDuringExecution"
    ]
    term = preferred["podAffinityTerm"]
    assert term["topologyKey"] == "kubernetes.io/hostname"
    assert term["labelSelector"]["matchLabels"] == labels
    (budget,) = [
        e["spec"] for e in objects(DISRUPTION) if e["metadata"]["labels"][NAME] == labels[NAME]
    ]
    assert budget == {"maxUnavailable": 1, "selector": {"matchLabels": labels}}, "drains must go on"


@pytest.mark.parametrize("folder", [FOLDER, ADMISSION])
def test_the_processes_run_with_as_little_as_possible(folder: Path) -> None:
    pod = the("Deployment", folder)["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert "limits" in container["resources"]
    image = (FOLDER.parent / "Containerfile").read_text(encoding="utf-8")
    security = pod["securityContext"]
    assert f"USER {security['runAsUser']}:{security['runAsGroup']}" in image
    lock = (FOLDER.parent / "requirements.lock").read_text(encoding="utf-8")
    assert "\nlightkube==" in lock, "the extra kubernetes"


def test_k158_the_webhook_is_where_its_registration_says() -> None:
    assert the("Service", ADMISSION)["metadata"]["name"] == Settings().admission_service_name
    (served,) = the("Service", ADMISSION)["spec"]["ports"]
    (container,) = the("Deployment", ADMISSION)["spec"]["template"]["spec"]["containers"]
    (port,) = container["ports"]
    assert served["port"] == port["containerPort"] == PORT
    assert served["targetPort"] == port["name"]
    assert f"--listen=0.0.0.0:{PORT}" in container["args"]
    assert container["readinessProbe"]["httpGet"] == {
        "path": "/health",
        "port": port["name"],
        "scheme": "HTTPS",
    }


def test_k166_the_webhook_may_write_its_own_objects_only() -> None:
    written = [
        rule
        for kind in ("ClusterRole", "Role")
        for rule in the(kind, ADMISSION)["rules"]
        if set(rule["verbs"]) - {"get", "list", "watch", "create"}
    ]
    assert [rule["resourceNames"] for rule in written] == [[REGISTRATION], [SECRET_NAME]]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((403, b"forbidden"), "answers 403 to an access review: forbidden"),
        ((201, b"{}"), "unreadable"),
        ((201, b"[]"), "unreadable"),
        ((201, b"no json"), "unreadable"),
    ],
)
def test_a_server_that_does_not_say_is_an_error(answer: tuple[int, bytes], said: str) -> None:
    class Odd:
        async def request(self, *_: Any) -> tuple[int, bytes]:
            return answer

    right = rights.Right("", "pods", ("get",), False, "nothing")
    with pytest.raises(rights.RightsUnknown, match=said):
        asyncio.run(rights.missing(Odd(), "quadriga", [right]))
