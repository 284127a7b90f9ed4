"""``quadriga kubernetes`` as a process, with the account of the manifests; and the commands of
docs/kubernetes.md, as they stand there."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from control_plane import REPOSITORY, ControlPlane, Process, free_ports
from manifests import condition, pod
from plain_client import APIError, Object, PlainClient
from process_kubelet import ProcessKubelet
from scheduler_process import Quadriga, ServedCore, wait
from whole_cluster import Cluster

FOLDER = REPOSITORY / "deploy" / "kubernetes"

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl")


@pytest.fixture
def installed(control_plane: ControlPlane, admin: PlainClient, empty: None) -> None:
    """The manifests, without the deployment: the process of the test stands for it."""
    admin.wait_not_terminating("quadriga")
    control_plane.kubectl("apply", "-k", FOLDER)
    control_plane.kubectl("--namespace", "quadriga", "delete", "deployment/quadriga")


@pytest.fixture
def start(
    control_plane: ControlPlane, installed: None, tmp_path: Path
) -> Iterator[Callable[..., Quadriga]]:
    started: list[Quadriga] = []

    def run(*options: str, ready: bool = True) -> Quadriga:
        account = {"user": "quadriga", "namespace": "quadriga", "name": f"command-{len(started)}"}
        program = ("-W", "error::ResourceWarning", "-m", "quadriga.cli")
        made = Quadriga(
            control_plane, tmp_path, lease=True, program=program, arguments=options, **account
        )
        started.append(made)
        made.start(ready=ready)
        return made

    yield run
    for each in started:
        each.kill()


def blocks() -> dict[str, str]:
    """The code blocks of the page that can run here: what the comment above calls them -> text."""
    page = (REPOSITORY / "docs" / "kubernetes.md").read_text(encoding="utf-8")
    pattern = r"^<!-- run on a cluster: (.*?) -->\n```sh\n(.*?)^```$"
    return dict(re.findall(pattern, page, re.DOTALL | re.MULTILINE))


def phases(present: list[Object]) -> set[str]:
    return {each["status"].get("phase", "") for each in present}


def test_the_first_gang_runs_as_told(cluster: Cluster, start: Callable[..., Quadriga]) -> None:
    cluster.kubelet(count=3)
    command = start()
    cluster.plane.shell("sh", "-euc", blocks()["gang"])
    names = [each["metadata"]["name"] for _, each in cluster.pods.of("default")]
    assert any(name.startswith("tg-first-gang-workers-") for name in names), "placeholders"
    cluster.pods.until(lambda now: len(now) == 4 and phases(now) == {"Succeeded"}, "default")
    said = cluster.plane.kubectl("describe", "pods", "--selector=job-name=first-gang")
    assert "GangScheduling" in said and "Scheduled" in said
    actions = {each.get("action") for each in cluster.admin.list("Event", "default")}
    assert {"CreatingPlaceholders", "GangReservationComplete"} <= actions
    assert command.stop() == 0, command.log()
    assert "Traceback" not in command.log()


def test_the_manifests_run(cluster: Cluster, stock_scheduler: None, empty: None) -> None:
    """The deployment's own pod schedules: placed by the stock scheduler, with its command and account."""
    folder = str(Path(sys.executable).parent)
    cluster.kubelet(
        count=3,
        KUBECONFIG=str(cluster.plane.kubeconfig("quadriga")),
        PATH=f"{folder}:{os.environ['PATH']}",
    )
    cluster.admin.wait_not_terminating("quadriga")
    manifests = cluster.plane.kubectl("kustomize", FOLDER)
    # ports of this machine: any free ones
    free = manifests.replace("--health=0.0.0.0:9082", "--health=0\n        - --http=0")
    assert free != manifests
    subprocess.run(
        ["kubectl", f"--kubeconfig={cluster.plane.kubeconfig('admin')}", "apply", "-f", "-"],
        input=free.encode(),
        check=True,
        capture_output=True,
    )
    cluster.plane.shell("sh", "-euc", blocks()["wait"])
    cluster.plane.shell("sh", "-euc", blocks()["gang"])
    cluster.pods.until(lambda present: phases(present) == {"Succeeded"}, "default")
    (own,) = cluster.pods.in_namespace("quadriga")
    assert own["status"]["phase"] == "Running"


def test_every_command_of_the_page_runs_here() -> None:
    assert set(blocks()) == {"wait", "gang", "quota", "why", "webhook", "settings"}


def test_the_settings_of_yunikorn_are_copied(
    control_plane: ControlPlane, admin: PlainClient, empty: None
) -> None:
    admin.wait_not_terminating("quadriga")
    admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "yunikorn"}})
    texts = {"yunikorn-defaults": "mycluster", "yunikorn-configs": "another"}
    for name, text in texts.items():
        found = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        admin.create({**found, "data": {"service.clusterId": text}}, "yunikorn")
    control_plane.shell("sh", "-euc", blocks()["settings"])
    for name, text in texts.items():
        copied = admin.find("ConfigMap", "quadriga", name)
        assert copied is not None
        assert copied["data"] == {"service.clusterId": text}
    for name in ("yunikorn", "quadriga"):
        admin.delete("Namespace", None, name)


def test_k156_a_pod_that_waits_says_why(cluster: Cluster, start: Callable[..., Quadriga]) -> None:
    earlier = {each["metadata"]["uid"] for each in cluster.admin.list("Event")}
    cluster.kubelet(count=2)
    cluster.plane.shell("sh", "-euc", blocks()["quota"])
    command = start()
    fast = {"nodeSelector": {"disk": "fast"}}
    cluster.admin.create(pod("selects", cpu="1", **fast), "default")
    for name in ("first", "second"):
        cluster.admin.create(pod(name, cpu="5"), "team-a")

    def scheduled(name: str) -> Object:
        found = (e for e in cluster.pods.now.copy().values() if e["metadata"]["name"] == name)
        return next((condition(each, "PodScheduled") for each in found), {})

    selects = wait(lambda: scheduled("selects"), "no condition", 30)
    assert (selects["status"], selects["reason"]) == ("False", "Unschedulable")
    assert selects["message"].startswith("0 of 2 nodes: 2 NodeAffinity: ")
    assert "NodeAffinity" in cluster.plane.shell("sh", "-euc", blocks()["why"])
    held = wait(
        lambda: [
            each
            for each in (scheduled("first"), scheduled("second"))
            if each and each["status"] == "False"
        ],
        "no condition",
        30,
    )
    assert [each["reason"] for each in held] == ["SchedulingSkipped"]
    assert "has 3 CPU left, and it asks for 5 CPU." in held[0]["message"]
    change = "Smallest change: raise the max of root.namespaces.team-a by 2 CPU."
    assert change in held[0]["message"]

    def told() -> Counter[tuple[str, str, str]]:
        return Counter(
            (each["involvedObject"]["name"], each["reason"], each["message"])
            for each in cluster.admin.list("Event")
            if each["reason"] in ("Scheduling", "Informational", "NodeAccepted")
            and each["metadata"]["uid"] not in earlier
        )

    before = wait(lambda: len(told()) >= 5 and told(), "no events", 30)
    assert command.stop() == 0, command.log()
    start()
    cluster.admin.create(pod("late"), "default")
    # its events are written after those of the start
    wait(lambda: any(name == "late" for name, _, _ in told()), "no events", 30)
    twice = {each: count for each, count in told().items() if count > 1}
    assert twice == {}, "what the first process has written"
    assert not before - told()


def test_k16_one_process_has_probes_metrics_and_pages(
    start: Callable[..., Quadriga], kubelet: Callable[..., ProcessKubelet]
) -> None:
    kubelet(count=1)
    command = start()
    assert command.ask("/healthz") == (200, "ok\n")
    status, metrics = command.ask("/metrics")
    assert status == 200
    page = (REPOSITORY / "docs" / "kubernetes.md").read_text(encoding="utf-8")
    section = page.partition("\n## Health and metrics\n")[2].partition("\n## ")[0]
    told = set(re.findall(r"`(quadriga_kubernetes_\w+)`", section))
    seen = set(re.findall(r"^# TYPE (quadriga_kubernetes_\w+)", metrics, re.MULTILINE))
    assert told == seen
    assert "quadriga_kubernetes_ready 1" in metrics
    assert 'quadriga_kubernetes_objects{resource="nodes"} 1' in metrics
    assert "yunikorn_" in metrics, "those of the core too"
    assert "quadriga_kubernetes_ready 1" in command.ask("/ws/v1/metrics", "http")[1]
    assert command.ask("/ui/", "http")[0] == 200
    assert json.loads(command.ask("/ws/v1/partitions", "http")[1])[0]["name"] == "default"


def test_k11_the_second_process_stands_by_and_takes_over(
    admin: PlainClient, start: Callable[..., Quadriga]
) -> None:
    first = start()
    second = start(ready=False)
    wait(lambda: "leads" in second.ask("/readyz")[1], "it does not stand by")
    wait(lambda: second.ask("/readyz")[0] == 200, "a pod that stands by is not ready")
    assert "this process stands by" in second.ask("/readyz")[1]
    assert second.ask("/healthz")[0] == 200
    assert first.stop() == 0, first.log()
    second.wait_ready()
    assert admin.get("Lease", "quadriga", "quadriga")["spec"]["holderIdentity"] in second.log()
    assert second.stop(signal.SIGINT) == 130


def test_k1_the_core_may_be_another_process(
    cluster: Cluster, start: Callable[..., Quadriga], tmp_path: Path
) -> None:
    cluster.kubelet(count=2)
    core = ServedCore(tmp_path)
    core.start()
    try:
        command = start("--core", f"127.0.0.1:{core.port}")
        assert set(command.ports) == {"health"}
        cluster.plane.shell("sh", "-euc", blocks()["gang"])
        cluster.pods.until(lambda present: phases(present) == {"Succeeded"}, "default")
        assert "quadriga_kubernetes_ready 1" in command.ask("/metrics")[1]
        assert command.stop() == 0, command.log()
    finally:
        core.kill()


@pytest.fixture
def account_admits(
    control_plane: ControlPlane, admin: PlainClient, installed: None
) -> Iterator[None]:
    """The account of the test has the rights of the webhook. Its registration goes with the test."""
    control_plane.shell("sh", "-euc", blocks()["webhook"])
    subject = {"kind": "ServiceAccount", "name": "quadriga", "namespace": "quadriga"}
    for kind, where in (("ClusterRoleBinding", None), ("RoleBinding", "quadriga")):
        admin.patch(kind, where, "quadriga-admission", {"subjects": [subject]})
    yield
    registrations = "mutatingwebhookconfigurations,validatingwebhookconfigurations"
    control_plane.kubectl("delete", "--ignore-not-found", registrations, "quadriga-admission")
    control_plane.kubectl("delete", "-k", FOLDER / "admission", "--wait=false")


def admitted(admin: PlainClient, namespace: str, log: Callable[[], str]) -> Object:
    """A pod that names no scheduler, once the server has learned of the webhook."""
    made: Object = {}
    end = time.monotonic() + 60
    while time.monotonic() < end:
        spec = {"containers": [{"name": "c", "image": "x", "command": ["true"]}]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "p-"}}
        made = admin.create({**pod, "spec": {**spec, "restartPolicy": "Never"}}, namespace)
        if made["spec"].get("schedulerName") == "yunikorn":
            return made
        time.sleep(0.1)
    raise AssertionError(f"{made}\n{log()}")


def configuration_is_checked(admin: PlainClient) -> None:
    wrong = {"data": {"queues.yaml": "partitions: 5"}}
    with pytest.raises(APIError) as denied:
        admin.patch("ConfigMap", "quadriga", "yunikorn-configs", wrong)
    assert "queues.yaml" in str(denied.value)


def test_k158_the_webhook_runs_with_its_own_rights(
    cluster: Cluster, account_admits: None, tmp_path: Path
) -> None:
    # and those only
    cluster.plane.kubectl("delete", "clusterrolebinding/quadriga")
    cluster.plane.kubectl("--namespace=quadriga", "delete", "rolebinding/quadriga")
    (port,) = free_ports(1)
    log = tmp_path / "log"
    command = [
        *(sys.executable, "-m", "quadriga.cli", "kubernetes", "admission"),
        *("--kubeconfig", cluster.plane.kubeconfig("quadriga"), "--namespace", "quadriga"),
        *("--listen", f"127.0.0.1:{port}", "--admission-url", f"https://127.0.0.1:{port}"),
    ]
    webhook = Process("webhook", command, log)
    webhook.start()
    try:
        serves = "ready: the webhook serves"
        wait(lambda: serves in log.read_text() or webhook.ended(), "it serves", 60, webhook.tail)
        admitted(cluster.admin, cluster.namespace, log.read_text)
        configuration_is_checked(cluster.admin)
        webhook.signal(signal.SIGTERM)
        assert webhook.wait(30) == 0
    finally:
        webhook.kill()


def test_k158_the_webhook_runs_in_the_schedulers_process(
    cluster: Cluster, account_admits: None, start: Callable[..., Quadriga]
) -> None:
    cluster.kubelet(count=1)
    (port,) = free_ports(1)
    url = f"https://127.0.0.1:{port}"
    command = start("--admission", f"127.0.0.1:{port}", "--admission-url", url)
    name = admitted(cluster.admin, cluster.namespace, command.log)["metadata"]["name"]

    def phase() -> bool:
        found = cluster.admin.find("Pod", cluster.namespace, name)
        return found is not None and found["status"]["phase"] == "Succeeded"

    # what the webhook gave to the scheduler, the scheduler has scheduled
    wait(phase, "the pod does not run")
    configuration_is_checked(cluster.admin)
    assert command.is_ready()
    assert command.stop() == 0, command.log()
    assert "Traceback" not in command.log()


@pytest.mark.parametrize("how", ["settings", "rights"])
def test_a_start_that_cannot_work_ends_with_the_reason(
    control_plane: ControlPlane, admin: PlainClient, start: Callable[..., Quadriga], how: str
) -> None:
    if how == "settings":
        data = {"data": {"service.bindTimeout": "soon"}}
        admin.patch("ConfigMap", "quadriga", "yunikorn-configs", data)
        command = start(ready=False)
        said = "service.bindTimeout"
    else:
        command = start(f"--kubeconfig={control_plane.kubeconfig('nobody')}", ready=False)
        said = "forbidden"
    assert command.wait(60) == 1
    assert said in command.log() and "Traceback" not in command.log()
