"""The manifests on a real API server, and what their account may do: no more than is needed, and enough."""

import asyncio
import shutil
import time
from collections.abc import Awaitable, Callable, Iterator

import pytest
from control_plane import REPOSITORY, ControlPlane
from manifests import condition, pod
from plain_client import APIError, Object, PlainClient

from quadriga.cli.main import main
from quadriga.k8s.shim.actions import PodRef, Record, SetCondition
from quadriga.k8s.transport.client import Client
from quadriga.k8s.transport.limits import Limits
from quadriga.k8s.transport.login import log_in
from quadriga.k8s.writers.condition_writer import ConditionWriter
from quadriga.k8s.writers.event_writer import EventWriter

FOLDER = REPOSITORY / "deploy" / "kubernetes"

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl")


@pytest.fixture(scope="module")
def installed(control_plane: ControlPlane, admin: PlainClient) -> Iterator[str]:
    """``kubectl apply -k``; gives what it said."""
    admin.wait_not_terminating("quadriga")
    control_plane.kubectl("apply", "-f", FOLDER / "namespace.yaml")
    dry = control_plane.kubectl("apply", "-k", FOLDER, "--dry-run=server")
    assert dry.count("(server dry run)") == len(dry.splitlines())
    yield control_plane.kubectl("apply", "-k", FOLDER)
    control_plane.kubectl("delete", "-k", FOLDER, "--wait=false")


def test_the_server_takes_each_object_as_it_is(control_plane: ControlPlane, installed: str) -> None:
    assert "deployment.apps/quadriga created" in installed
    assert "configmap/yunikorn-configs created" in installed
    again = control_plane.kubectl("apply", "-k", FOLDER)
    assert {line.rpartition(" ")[2] for line in again.splitlines()} == {"unchanged"}


def test_k18_the_check_finds_nothing_for_the_account_of_the_manifests(
    control_plane: ControlPlane, installed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    config = str(control_plane.kubeconfig("quadriga"))
    code = main(["kubernetes", "--check", "--kubeconfig", config, "--namespace", "quadriga"])
    said = capsys.readouterr().out
    assert "the account has all 16 rights that it needs" in said
    assert code == 0


def test_k18_the_check_names_what_another_account_lacks(
    control_plane: ControlPlane, installed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    config = str(control_plane.kubeconfig("nobody"))
    assert main(["kubernetes", "--check", "--kubeconfig", config]) == 1
    said = capsys.readouterr().out
    assert "pods/binding" in said and "no pod gets a node" in said
    assert "leases.coordination.k8s.io" in said
    # in its own namespace only
    config = str(control_plane.kubeconfig("quadriga"))
    assert main(["kubernetes", "--check", "--kubeconfig", config, "--namespace", "default"]) == 1
    said = capsys.readouterr().out
    assert [line.split()[0] for line in said.splitlines() if "default  " in line] == [
        "configmaps",
        "leases.coordination.k8s.io",
    ]


def test_k18_the_account_may_do_nothing_else(
    control_plane: ControlPlane, admin: PlainClient, installed: str
) -> None:
    account = PlainClient(control_plane.server, "quadriga-token", control_plane.tls())
    try:
        assert account.list("Pod") == admin.list("Pod")
        for kind in ("Secret", "Service", "ClusterRole", "ConfigMap"):
            with pytest.raises(APIError) as refused:
                account.list(kind)
            assert refused.value.status == 403, kind
        assert account.list("ConfigMap", "quadriga")
        with pytest.raises(APIError) as refused:
            account.patch("Node", None, "n", {"spec": {"unschedulable": True}})
        assert refused.value.status == 403
    finally:
        account.close()


# -- what is written with these rights -------------------------------------------------------------


def as_account(control_plane: ControlPlane, work: Callable[[Client], Awaitable[None]]) -> None:
    """Run the work with the rights of the manifests."""

    async def run() -> None:
        login = log_in(
            str(control_plane.kubeconfig("quadriga")), clock=time.monotonic_ns, wall=time.time_ns
        )
        async with Client(login, Limits(100, 100, 8, clock=time.monotonic_ns)) as client:
            await work(client)

    asyncio.run(asyncio.wait_for(run(), 30))


@pytest.fixture
def waiting(admin: PlainClient) -> Iterator[Object]:
    """A pod that nobody schedules."""
    made = admin.create(pod("waiting"), "default")
    yield made
    admin.delete("Pod", "default", "waiting", grace=0)


async def until(holds: Callable[[], object]) -> None:
    while not holds():
        await asyncio.sleep(0.02)


def test_k153_events_and_their_series_are_taken_by_the_server(
    control_plane: ControlPlane, admin: PlainClient, installed: str, waiting: Object
) -> None:
    uid = waiting["metadata"]["uid"]
    queued = Record(
        *("Pod", "default", "waiting", uid, "Normal", "Scheduling", "Scheduling"), "x" * 3000
    )
    refused = Record("Node", "", "node-0", "u", "Warning", "NodeRejected", "", "too odd")
    ticks = [0]

    def clock() -> int:
        return time.monotonic_ns() + ticks[0]

    async def work(client: Client) -> None:
        writer = EventWriter(
            client, controller="yunikorn", instance="test", clock=clock, wall=time.time_ns
        )
        task = asyncio.create_task(writer.run())
        writer.record(queued)
        writer.record(refused)
        await until(lambda: writer.counts["written"] == 2)
        ticks[0] += 11_000_000_000  # a series is written every ten seconds
        writer.record(queued)
        await until(lambda: writer.counts["written"] == 3)
        task.cancel()
        assert writer.counts["failed"] == 0

    as_account(control_plane, work)

    events = [each for each in admin.list("Event") if each["reportingInstance"] == "test"]
    found = {each["involvedObject"]["kind"]: each for each in events}
    assert found["Pod"]["involvedObject"]["uid"] == uid
    assert found["Pod"]["series"]["count"] == 2
    assert len(found["Pod"]["message"]) == 1024
    assert found["Node"]["metadata"]["namespace"] in ("default", "kube-system")
    assert "Scheduling" in control_plane.kubectl("describe", "pod", "waiting")


def test_k156_a_condition_leaves_the_rest_of_the_status_alone(
    control_plane: ControlPlane, admin: PlainClient, installed: str, waiting: Object
) -> None:
    uid = waiting["metadata"]["uid"]
    other = {"type": "Initialized", "status": "True"}
    admin.patch("Pod", "default", "waiting", {"status": {"conditions": [other]}}, part="status")

    async def work(client: Client) -> None:
        writer = ConditionWriter(
            client, current=lambda uid: None, clock=time.monotonic_ns, wall=time.time_ns
        )
        task = asyncio.create_task(writer.run())
        pod = PodRef("default", "waiting", uid)
        writer.set(SetCondition(pod, "Unschedulable", "no room"))
        await until(lambda: writer.counts["written"] == 1)
        first = await client.request("GET", "/api/v1/namespaces/default/pods/waiting")
        writer.set(SetCondition(pod, "SchedulingSkipped", "no quota"))
        await until(lambda: writer.counts["written"] == 2)
        # another pod of that name is left alone
        writer.set(SetCondition(PodRef("default", "waiting", "other"), "Unschedulable", "x"))
        await until(lambda: not writer.waiting and "other" not in writer._pods)
        assert writer.counts == {"written": 2, "failed": 0, "explained": 0}
        assert first[0] == 200
        task.cancel()

    as_account(control_plane, work)

    found = admin.get("Pod", "default", "waiting")
    assert condition(found, "Initialized")["status"] == "True"
    scheduled = condition(found, "PodScheduled")
    assert (scheduled["status"], scheduled["reason"]) == ("False", "SchedulingSkipped")
    assert scheduled["message"] == "no quota"
    assert scheduled["lastTransitionTime"]
