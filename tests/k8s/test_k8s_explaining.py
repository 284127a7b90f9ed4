"""The text of the condition: the core's explanation together with the nodes that constraints refuse (K156)."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import pytest
from k8s_queues import queues

from quadriga import si
from quadriga.core.driver.service import SchedulerService
from quadriga.k8s.driver.explaining import (
    Core,
    CoreSays,
    Explainer,
    Failing,
    LocalCore,
    RemoteCore,
    text_of,
)
from quadriga.k8s.transport.discovery import DeviceClasses
from quadriga.sim.scripted.script import resource
from tests.k8s.predicates.test_k8s_device_classes import Server

Cores = Callable[[SchedulerService], Core]
GIB = 1 << 30
QUEUES = queues("{name: wide}", "{name: small, resources: {max: {vcore: 1}}}")


class Quiet:
    def __getattr__(self, name: str) -> object:
        return lambda *_: None


@pytest.fixture
def service() -> Iterator[SchedulerService]:
    service = SchedulerService()
    service.register_resource_manager(
        si.RegisterResourceManagerRequest(rmID="mycluster", config=QUEUES), Quiet()
    )
    request = si.NodeRequest(rmID="mycluster")
    for number in (1, 2, 3):
        size = resource({"vcore": 4000, "memory": number * GIB})
        request.nodes.add(nodeID=f"n{number}", action=si.NodeInfo.CREATE, schedulableResource=size)
    service.update_node(request)
    yield service
    service.stop()


def ask(service: SchedulerService, queue: str, key: str = "uid-1", **values: int) -> None:
    where = {"applicationID": f"app-{queue}", "partitionName": "default"}
    applications = si.ApplicationRequest(rmID="mycluster")
    user = si.UserGroupInformation(user="joe", groups=["devs"])
    applications.new.add(**where, queueName=f"root.{queue}", ugi=user)
    service.update_application(applications)
    asks = si.AllocationRequest(rmID="mycluster")
    asks.asks.add(**where, allocationKey=key, resourceAsk=resource(values), maxAllocations=1)
    service.update_allocation(asks)


def remote(service: SchedulerService) -> RemoteCore:
    def ask_core(application: str, key: str) -> tuple[str, Sequence[Failing]]:
        try:
            found = service.explain(
                "mycluster", "default", application, key, predicates=False
            ).result()
        except KeyError as error:
            raise si.RequestError("explain", key, str(error)) from None
        return found.verdict, found.checks

    return RemoteCore(ask_core)


@pytest.fixture(params=["local", "remote"])
def core_of(request: pytest.FixtureRequest) -> Cores:
    """K1: the same words in one process and over gRPC."""
    return LocalCore if request.param == "local" else remote


def explained(
    core: Core,
    application: str | None,
    refusals: dict[str, Sequence[str]] | None = None,
    uid: str = "uid-1",
) -> str | None:
    explainer = Explainer(
        core,
        rm_id="mycluster",
        ask_of=lambda uid: None if application is None else (application, uid),
        nodes=lambda: ("n3", "n1", "n2"),
        refusals=lambda uid, node: (refusals or {}).get(node, ()),
        unoffered=lambda uid: (),
        device_class=DeviceClasses(Server(404), lambda: 0).serving,
    )
    return asyncio.run(explainer.explain(uid))


class Unasked(dict[str, Sequence[str]]):
    def get(self, *_: object) -> None:
        pytest.fail("a node is asked about")


def test_k156_a_pod_that_no_node_has_room_for(service: SchedulerService, core_of: Cores) -> None:
    for key in ("uid-0", "uid-1"):  # the first one fills n3
        ask(service, "wide", key, vcore=100, memory=3 * GIB)
    lacks = "1 lacks memory (node n3 comes nearest and lacks 3 GiB memory)"
    change = "Smallest change: 3 GiB memory more free on node n3."
    assert explained(core_of(service), "app-wide") == f"0 of 3 nodes: {lacks}. {change}"
    text = explained(core_of(service), "app-wide", {"n1": ["taint"]})
    assert text is not None and text.endswith(f" {change}"), (
        "what is refused already does not count"
    )
    # constraints keep it from the nodes with room
    tainted = "TaintToleration: the pod does not tolerate gpu=yes:NoSchedule"
    other = "NodeAffinity: the node does not match"
    refusals = {"n1": [tainted, other], "n2": [tainted], "n3": [other]}
    elsewhere = "another node with room for the pod that its constraints allow"
    text = explained(core_of(service), "app-wide", refusals)
    assert text == f"0 of 3 nodes: {lacks}; 2 {tainted}; 1 {other}. Smallest change: {elsewhere}."


def test_q15_changes_needed_together_are_told_so(service: SchedulerService, core_of: Cores) -> None:
    ask(service, "small", vcore=2000, memory=9 * GIB)
    assert explained(core_of(service), "app-small") == (
        "0 of 3 nodes: no node is large enough for 2 CPU and 9 GiB memory: 3 nodes, at most 4 CPU and "
        "3 GiB memory among them, and none has all of it. No single change is enough, all of these are "
        "needed: raise the max of root.small by 1 CPU; "
        "add a node with 2 CPU and 9 GiB memory that the pod's constraints allow."
    )


def test_k155_a_quota_is_not_explained_by_nodes(service: SchedulerService, core_of: Cores) -> None:
    ask(service, "small", vcore=2000, memory=GIB)
    assert explained(core_of(service), "app-small", Unasked(n1=())) == (
        "The quota of queue root.small has 1 CPU left, and it asks for 2 CPU."
        " Smallest change: raise the max of root.small by 1 CPU."
    )


def test_k156_a_pod_that_waits_no_more_has_none(service: SchedulerService, core_of: Cores) -> None:
    ask(service, "wide", vcore=100, memory=GIB)  # allocated at once
    assert explained(core_of(service), "app-wide") is None
    assert explained(core_of(service), "app-wide", uid="unknown") is None
    assert explained(core_of(service), "unknown") is None
    assert explained(core_of(service), None) is None


def test_k156_texts_cite_no_rules_and_tell_only_the_largest_groups() -> None:
    says = CoreSays("It is held.", ("2 nodes: the resource manager refused it",), "x")
    text = text_of(says, 2, Counter())
    assert text == "0 of 2 nodes: 2 the resource manager refused it. Smallest change: x."
    refused = Counter({f"reason {letter}": n for n, letter in enumerate("abcdefgh", 1)})
    text = text_of(CoreSays("Nothing."), 36, refused)
    assert text == (
        "0 of 36 nodes: 8 reason h; 7 reason g; 6 reason f; 5 reason e; 4 reason d; 3 reason c;"
        " and 2 other reasons."
    )


def test_k156_one_node_and_one_reason_are_in_the_singular() -> None:
    assert text_of(CoreSays(""), 3, Counter()) == "It is next in its queue."
    assert text_of(CoreSays(""), 1, Counter(Taint=1)) == "0 of 1 node: 1 Taint."
    lacks = CoreSays("", ("1 node: not enough free memory",))
    assert text_of(lacks, 2, Counter()) == "0 of 2 nodes: 1 lacks memory."
    many = Counter({f"reason {number}": 1 for number in range(7)})
    assert text_of(CoreSays(""), 9, many).endswith("; and 1 other reason.")


def test_k1_a_remote_core_that_does_not_answer_explains_nothing() -> None:
    def ask_core(application: str, key: str) -> tuple[str, Sequence[Failing]]:
        raise si.RequestError("explain", key, "is unknown")

    assert asyncio.run(RemoteCore(ask_core).explain("mycluster", "app", "uid-1")) is None
