"""The admission webhook before a real API server (T19): the table of decisions, and what happens without it."""

import asyncio
import base64
import http.client
import itertools
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import pytest
from control_plane import ControlPlane, free_ports
from manifests import job
from plain_client import APIError, Object, PlainClient, path_of
from scheduler_process import wait
from server_version import cron_jobs, labels_namespaces
from whole_cluster import Cluster

from quadriga.k8s.admission.process import Plan, run
from quadriga.k8s.admission.registration import unregister
from quadriga.k8s.admission.rules import user_info
from quadriga.k8s.admission.validators import ask_core
from quadriga.k8s.transport.client import Client
from quadriga.k8s.transport.limits import Limits
from quadriga.k8s.transport.login import log_in
from tests.k8s.admission_cases import ALICE, BOB, CASES, USER_INFO, Case, difference, pod_of

MUTATING = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/quadriga-admission"
QUEUES = "partitions:\n  - name: default\n    queues:\n      - name: root\n"


class Timing:
    now = staticmethod(time.monotonic_ns)
    sleep = staticmethod(asyncio.sleep)

    @staticmethod
    def random() -> float:
        return 0.5


class Running:
    """The webhook in a thread with its own event loop."""

    def __init__(self, plane: ControlPlane, own_namespace: str) -> None:
        self._plane = plane
        self.own_namespace = own_namespace
        self.cron = cron_jobs(plane.version)
        self.port = free_ports(1)[0]
        self._ready = threading.Event()

    def start(self) -> None:
        self._ready.clear()
        self._thread = threading.Thread(target=asyncio.run, args=(self._run(),), daemon=True)
        self._thread.start()
        assert self._ready.wait(60), "the webhook is not ready"

    def stop(self) -> None:
        """It ends as it would with its process: the API server still knows of it."""
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(30)
        assert not self._thread.is_alive()

    def _client(self) -> Client:
        login = log_in(
            str(self._plane.kubeconfig("admin")), clock=time.monotonic_ns, wall=time.time_ns
        )
        return Client(login, Limits(100, 100, 10, clock=time.monotonic_ns))

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        plan = Plan(
            self.own_namespace, "127.0.0.1", self.port, url=f"https://127.0.0.1:{self.port}"
        )
        async with self._client() as client:
            self._task = asyncio.create_task(
                run(client, plan, Timing(), validate=ask_core, ready=lambda port: self._ready.set())
            )
            with suppress(asyncio.CancelledError):
                await self._task
        # Connections with TLS end a moment after they were closed.
        await asyncio.sleep(0.25)

    def unregister(self) -> None:
        async def remove() -> str:
            async with self._client() as client:
                problem = await unregister(client)
            await asyncio.sleep(0.25)
            return problem

        assert asyncio.run(remove()) == ""


_numbers = itertools.count(1)

Write = Callable[..., tuple[int, Object]]


@pytest.fixture
def write(control_plane: ControlPlane) -> Write:
    """A request of somebody, by impersonation; returns the status and the object."""
    address = urlsplit(control_plane.server)
    tls = control_plane.tls()

    def request(
        method: str,
        path: str,
        body: Object,
        user: str = "alice",
        groups: tuple[str, ...] = ("dev", "system:authenticated", "system:masters"),
    ) -> tuple[int, Object]:
        assert address.hostname is not None
        connection = http.client.HTTPSConnection(
            address.hostname, address.port, timeout=30, context=tls
        )
        try:
            text = json.dumps(body).encode()
            connection.putrequest(method, path)
            connection.putheader("Authorization", "Bearer admin-token")
            kind = "merge-patch+json" if method == "PATCH" else "json"
            connection.putheader("Content-Type", f"application/{kind}")
            connection.putheader("Content-Length", str(len(text)))
            connection.putheader("Impersonate-User", user)
            for group in groups:
                connection.putheader("Impersonate-Group", group)
            connection.endheaders(text)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    return request


@pytest.fixture
def webhook(control_plane: ControlPlane, admin: PlainClient, empty: None) -> Iterator[Running]:
    # Names of their own: the namespaces of the test before take their time to go.
    number = next(_numbers)
    for name in (f"quadriga-{number}", f"probe-{number}"):
        make_namespace(admin, name)
    running = Running(control_plane, f"quadriga-{number}")
    running.start()
    # A new registration is heard of by the server's own watch.
    wait_until_asked(admin, f"probe-{number}")
    yield running
    running.stop()
    running.unregister()


def wait_until_asked(admin: PlainClient, namespace: str) -> None:
    def asked() -> bool:
        path = path_of("Pod", namespace)
        found = admin.request("POST", path, pod("probe"), query={"dryRun": "All"})
        return bool(found["spec"]["schedulerName"] == "yunikorn")

    wait(asked, "the webhook is asked", 30)


def make_namespace(
    admin: PlainClient, name: str, annotations: Mapping[str, str] | None = None
) -> None:
    if admin.find("Namespace", None, name) is None:
        metadata = {"name": name, "annotations": dict(annotations or {})}
        admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})


def pod(name: str, **annotations: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"containers": [{"name": "main", "image": "none"}]},
    }


# -- the table -------------------------------------------------------------------------------------

#: rows with the settings as they are by default, of objects that are new
#: without those about fields that old servers drop, names that no header holds, and the truth, which has
#: further groups there
ROWS = [
    each
    for each in CASES
    if not each.settings
    and each.operation == "CREATE"
    and not each.spec
    and each.user.isprintable()  # it goes into a header
    and each.annotations.get(USER_INFO) != ALICE
]


def complete(case: Case, cron: str) -> Object:
    """The object of a row with all that the API server wants of such an object. ``cron``: the API
    of CronJobs."""
    found = case.object()
    found["metadata"]["name"] = case.name.replace("_", "-")
    if case.resource == "pods":
        if case.priority_class is not None:
            found["spec"]["priorityClassName"] = "protected" if case.priority_class else "plain"
        return found
    spec = found["spec"]
    if case.resource == "cronjobs":
        found["apiVersion"] = cron
        spec["schedule"] = "0 0 * * *"
        template = spec["jobTemplate"]["spec"]["template"]
    else:
        template = spec["template"]
    if case.resource in ("jobs", "cronjobs"):
        template["spec"]["restartPolicy"] = "Never"
    elif case.resource == "replicationcontrollers":
        template.setdefault("metadata", {}).setdefault("labels", {})["x"] = "y"
        spec["selector"] = {"x": "y"}
    else:
        template.setdefault("metadata", {}).setdefault("labels", {})["x"] = "y"
        spec["selector"] = {"matchLabels": {"x": "y"}}
    if case.resource == "statefulsets":
        spec["serviceName"] = "x"
    return found


def path_for(case: Case, namespace: str, cron: str) -> str:
    old = dict.fromkeys(("pods", "replicationcontrollers"), "/api/v1")
    groups = {**old, "jobs": "/apis/batch/v1", "cronjobs": f"/apis/{cron}"}
    group = groups.get(case.resource, "/apis/apps/v1")
    return f"{group}/namespaces/{namespace}/{case.resource}"


def with_name(changed: Mapping[str, Any], namespace: str) -> Any:
    return json.loads(json.dumps(changed).replace("yunikorn-team-", f"yunikorn-{namespace}-"))


def test_t19_every_row_of_the_table(webhook: Running, admin: PlainClient, write: Write) -> None:
    for name, marks in (
        ("protected", {"yunikorn.apache.org/allow-preemption": "false"}),
        ("plain", {}),
    ):
        metadata = {"name": name, "annotations": marks}
        kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
        admin.create({**kind, "metadata": metadata, "value": 1})
    namespaces: dict[str, str] = {}
    for case in ROWS:
        key = case.namespace + json.dumps(dict(case.namespace_annotations), sort_keys=True)
        if key not in namespaces:
            suffix = f"-{len(namespaces)}" if case.namespace == "team" else ""
            namespaces[key] = case.namespace + suffix
            if case.namespace == "quadriga":
                namespaces[key] = webhook.own_namespace
            make_namespace(admin, namespaces[key], case.namespace_annotations)
        namespace = namespaces[key]
        found = complete(case, webhook.cron)
        path = path_for(case, namespace, webhook.cron) + "?dryRun=All"
        status, answer = write("POST", path, found, case.user, (*case.groups, "system:masters"))
        if case.denied:
            assert status == 403, (case.name, answer)
            assert "denied the request" in answer["message"]
            assert case.denied in answer["message"]
            continue
        assert status == 201, (case.name, answer)
        changed = dict(with_name(case.changed, namespace))
        assert stated(found, answer, case) == expected(changed, case), case.name


def expected(changed: dict[str, Any], case: Case) -> dict[str, Any]:
    """The groups of the requester have one more, which lets it do what it likes, and the one that the
    server adds to all."""
    groups = [*case.groups, "system:masters"]
    if "system:authenticated" not in groups:
        groups.append("system:authenticated")
    for key, value in changed.get("annotations", {}).items():
        if key == USER_INFO:
            changed["annotations"][key] = user_info(case.user, groups)
            assert json.loads(value)["groups"] == [*case.groups]
    return changed


def stated(before: Object, after: Object, case: Case) -> dict[str, Any]:
    """The difference, of what the table speaks of."""

    def reduced(found: Object) -> Object:
        inner = pod_of(found, case.resource)
        metadata = inner.get("metadata", {})
        kept = {key: dict(metadata.get(key) or {}) for key in ("labels", "annotations")}
        for key in ("controller-uid", "job-name"):  # the server's own
            kept["labels"].pop(key, None)
        name = inner["spec"].get("schedulerName") or "default-scheduler"
        return {"metadata": kept, "spec": {"schedulerName": name}}

    return difference(reduced(before), reduced(after), "pods")


# -- changes ---------------------------------------------------------------------------------------


def test_t19_a_pods_user_cannot_be_changed(webhook: Running, namespace: str, write: Write) -> None:
    path = path_of("Pod", namespace)
    status, made = write("POST", path, pod("one"))
    assert status == 201
    info = json.loads(made["metadata"]["annotations"][USER_INFO])
    assert info["user"] == "alice"
    assert "dev" in info["groups"]
    for value in (BOB, None):
        change = {"metadata": {"annotations": {USER_INFO: value}}}
        status, answer = write("PATCH", f"{path}/one", change)
        assert (status, "cannot be changed" in answer["message"]) == (403, True)
    assert write("PATCH", f"{path}/one", {"metadata": {"labels": {"a": "b"}}})[0] == 200


def test_t19_a_job_runs_as_its_maker(cluster: Cluster, webhook: Running, write: Write) -> None:
    """The controller creates the pods, and its claim is believed."""
    template = {"metadata": {}, "spec": {**pod("x")["spec"], "restartPolicy": "Never"}}
    # The controller manager of the tests is an administrator, and no service account.
    trusted = {"admissionController.accessControl.externalUsers": "^admin$"}
    configure(cluster.admin, webhook.own_namespace, trusted)
    wait(lambda: is_believed(cluster.admin, cluster.namespace), "its claim is believed", 30)
    assert write("POST", path_of("Job", cluster.namespace), job("one", 2, template))[0] == 201
    for each in cluster.until(lambda present: len(present) == 2):
        assert json.loads(each["metadata"]["annotations"][USER_INFO])["user"] == "alice"
        assert each["spec"]["schedulerName"] == "yunikorn"


def configure(admin: PlainClient, namespace: str, data: Mapping[str, str]) -> None:
    metadata = {"name": "yunikorn-configs", "namespace": namespace}
    admin.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


def is_believed(admin: PlainClient, namespace: str) -> bool:
    claim = pod("claim", **{USER_INFO: ALICE})
    try:
        admin.request("POST", path_of("Pod", namespace), claim, query={"dryRun": "All"})
    except APIError:
        return False
    return True


def test_t19_a_wrong_configuration_is_denied(webhook: Running, write: Write) -> None:
    def put(**data: str) -> tuple[int, str]:
        metadata = {"name": "yunikorn-configs", "namespace": webhook.own_namespace}
        found = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
        status, answer = write(
            "POST", path_of("ConfigMap", webhook.own_namespace) + "?dryRun=All", found
        )
        return status, answer.get("message", "")

    assert put(**{"queues.yaml": QUEUES}) == (201, "")
    status, message = put(**{"queues.yaml": QUEUES + "        resources: 3\n"})
    assert (status, "queues.yaml" in message) == (403, True)
    status, message = put(**{"service.volumeBindTimeout": "soon"})
    assert (status, "service.volumeBindTimeout" in message) == (403, True)


# -- without the webhook (K169) --------------------------------------------------------------------


def created_within(write: Write, namespace: str, name: str, seconds: float) -> float:
    """Create a pod that nobody changes; how long it took."""
    began = time.monotonic()
    status, made = write("POST", path_of("Pod", namespace), pod(name))
    took = time.monotonic() - began
    assert status == 201
    assert made["spec"]["schedulerName"] == "default-scheduler"
    assert USER_INFO not in made["metadata"].get("annotations", {})
    assert took < seconds
    return took


def test_k169_a_dead_webhook_is_passed_by(webhook: Running, namespace: str, write: Write) -> None:
    webhook.stop()
    for index, each in enumerate((namespace, "kube-system", webhook.own_namespace)):
        created_within(write, each, f"dead-{index}", 2.0)
    webhook.start()
    status, made = write("POST", path_of("Pod", namespace), pod("alive"))
    assert (status, made["spec"]["schedulerName"]) == (201, "yunikorn")


@contextmanager
def silent(port: int) -> Iterator[None]:
    """Takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", port), backlog=64):
        yield


def test_k169_a_hanging_webhook_is_passed(webhook: Running, namespace: str, write: Write) -> None:
    webhook.stop()
    with silent(webhook.port):
        # The server's own connection is given up, and a new one hangs.
        assert created_within(write, namespace, "hung", 4.0) > 1.0
    webhook.start()


def test_t19_the_registration_fits_the_server(
    webhook: Running, admin: PlainClient, control_plane: ControlPlane
) -> None:
    (found,) = admin.request("GET", MUTATING)["webhooks"]
    assert (found["timeoutSeconds"], found["failurePolicy"]) == (2, "Ignore")
    labelled = "kubernetes.io/metadata.name" in json.dumps(found["namespaceSelector"])
    assert labelled == labels_namespaces(control_plane.version)
    bundle = base64.b64decode(found["clientConfig"]["caBundle"]).decode()
    assert bundle.count("BEGIN CERTIFICATE") == 2
    context = ssl.create_default_context(cadata=bundle)
    with (
        socket.create_connection(("127.0.0.1", webhook.port)) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as shown,
    ):
        assert shown.version() in ("TLSv1.2", "TLSv1.3")
