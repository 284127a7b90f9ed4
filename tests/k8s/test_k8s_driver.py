"""What is around the shim: its queue, the core on both sides, the ConfigMaps, health, and all of it at work."""

import asyncio
import base64
import gzip
import json
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from quadriga import si
from quadriga.base.times import SECOND
from quadriga.core.driver.service import SchedulerService
from quadriga.k8s.cluster.cache import ClusterCache
from quadriga.k8s.conversion.settings import Settings
from quadriga.k8s.driver import core_sender
from quadriga.k8s.driver.config_maps import ConfigMaps
from quadriga.k8s.driver.core_callback import CoreCallback
from quadriga.k8s.driver.core_sender import CoreSender, CoreWatcher
from quadriga.k8s.driver.explaining import LocalCore
from quadriga.k8s.driver.inbox import Inbox, described
from quadriga.k8s.driver.kubernetes import KubernetesShim, Options, health_of
from quadriga.k8s.objects import ConfigMap, Metadata, Node, Pod, PodSpec
from quadriga.k8s.shim import inputs
from quadriga.k8s.transport.login import Login
from quadriga.k8s.tuning import TUNING
from quadriga.k8s.writers.lease import LeaseTimes
from quadriga.si.client import FORGOTTEN, RegisterAgain
from tests.k8s.fake_api import FakeApi, FakeTime, Json, client_of, event, pod, status

#: s: only a hang takes so long
BOUND = 600.0


# -- the queue -----------------------------------------------------------------------------------


async def test_k3_the_queue_keeps_the_order_of_all_threads() -> None:
    inbox = Inbox()
    numbers = [inputs.CoreRefused("x", str(number)) for number in range(1000)]

    def put() -> None:
        for each in numbers:
            inbox.put_from_thread(each)

    thread = threading.Thread(target=put)
    thread.start()
    found: list[Any] = []
    while len(found) < len(numbers):
        await inbox.wait(BOUND)
        found += inbox.take(7)
    thread.join()
    assert found == numbers


async def test_k3_a_wait_ends_when_something_comes_and_after_its_time() -> None:
    inbox = Inbox()
    await inbox.wait(0.001)
    assert inbox.take(10) == []
    asyncio.get_running_loop().call_soon(inbox.put, inputs.Synced())
    await inbox.wait(BOUND)
    assert inbox.take(10) == [inputs.Synced()]
    inbox.put(inputs.Synced())
    inbox.put(inputs.LeaseHeld())
    assert inbox.take(1) == [inputs.Synced()]
    await inbox.wait(BOUND)
    assert inbox.take(1) == [inputs.LeaseHeld()]


async def test_k15_sources_wait_while_too_much_is_in_the_queue() -> None:
    inbox = Inbox(most=2)
    await inbox.wait_for_capacity()
    for _ in range(4):
        inbox.put(inputs.Synced())
    waiting = asyncio.create_task(inbox.wait_for_capacity())
    await asyncio.sleep(0)
    inbox.take(1)
    await asyncio.sleep(0)
    assert not waiting.done()
    inbox.take(1)
    await asyncio.wait_for(waiting, BOUND)


async def test_q16_the_inbox_measures_how_long_inputs_wait() -> None:
    now = 0
    inbox = Inbox(clock=lambda: now)
    assert inbox.delay() == 0
    inbox.put(inputs.Synced())
    now = 2 * SECOND
    inbox.put_from_thread(inputs.Synced())
    now = 3 * SECOND
    assert inbox.delay() == 3 * SECOND
    assert len(inbox.take(1)) == 1
    assert inbox.delay() == SECOND
    inbox.take(5)
    assert inbox.delay() == 0
    assert (inbox.taken, inbox.waited) == (2, 4 * SECOND)


@pytest.mark.parametrize(
    ("heard", "text"),
    [
        (inputs.Changed("ADDED", Pod(Metadata("p", "team"))), "pod team/p (ADDED)"),
        (inputs.Changed("DELETED", Node(Metadata("n1"))), "node n1 (DELETED)"),
        (inputs.CoreAnswered(si.AllocationResponse()), "AllocationResponse of the core"),
        (inputs.BindEnded("u", "bound"), "the end of the bind of pod u"),
        (inputs.CreateEnded("app", "g", "tg-1", "created"), "placeholder tg-1 of application app"),
        (inputs.Synced(), "Synced"),
        ("timers", "timers"),
    ],
)
def test_q16_the_watchdog_names_the_object(heard: inputs.Input, text: str) -> None:
    assert described(heard) == text


async def test_what_comes_after_the_end_is_not_heard() -> None:
    async def make() -> Inbox:
        return Inbox()

    inbox = await asyncio.to_thread(asyncio.run, make())
    inbox.put_from_thread(inputs.Synced())


# -- the core's callback -------------------------------------------------------------------------


class FewNodes:
    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def assume(self, uid: str, node: str) -> str | None:
        self.calls.append(("assume", uid, node))
        return "no room" if uid == "bad" else None

    def preemption_predicates(self, uid: str, node: str, victims: Any, start: int) -> int | None:
        self.calls.append(("preempt", uid, node, victims, start))
        return None if node == "bad" else 1


async def test_k5_k117_allocations_are_assumed_at_once_and_messages_keep_their_order() -> None:
    cache, heard = FewNodes(), list[inputs.CoreAnswered]()
    made = CoreCallback(cache, heard.append, lambda: "{}")  # type: ignore[arg-type]
    assert isinstance(made, si.ResourceManagerCallback)
    new = [si.Allocation(allocationKey=key, nodeID="n1") for key in ("a", "bad")]
    response = si.AllocationResponse(new=new)
    made.update_allocation(response)
    assert heard == [inputs.CoreAnswered(response, {"bad": "no room"})]
    made.update_node(si.NodeResponse())
    made.update_application(si.ApplicationResponse())
    made.send_event([])
    made.update_container_scheduling_state(si.UpdateContainerSchedulingStateRequest())
    kinds = [type(each.message).__name__ for each in heard[1:]]
    others = ["NodeResponse", "ApplicationResponse", "list"]
    assert kinds == [*others, "UpdateContainerSchedulingStateRequest"]
    args = si.PreemptionPredicatesArgs(
        allocationKey="a", nodeID="n", preemptAllocationKeys=["v"], startIndex=2
    )
    answer = made.preemption_predicates(args)
    assert (answer.success, answer.index) == (True, 1)
    args.nodeID = "bad"
    assert not made.preemption_predicates(args).success
    asked = [("assume", "a", "n1"), ("assume", "bad", "n1"), ("preempt", "a", "n", ("v",), 2)]
    assert cache.calls[:3] == asked


# -- to the core ---------------------------------------------------------------------------------


class Core:
    """A scheduler that answers each request as it is told: with nothing, or an error."""

    def __init__(self, *answers: Exception | None) -> None:
        self.answers = list(answers)
        self.requests: list[Any] = []
        self.waits: threading.Event | None = None

    def _take(self, request: Any, *_: object) -> object:
        self.requests.append(request)
        if self.waits is not None:
            self.waits.wait(BOUND)
        answer = self.answers.pop(0) if self.answers else None
        if answer is not None:
            raise answer
        return si.RegisterResourceManagerResponse()

    register_resource_manager = _take
    update_allocation = _take
    update_application = _take
    update_node = _take
    update_configuration = _take


class Ear:
    def __init__(self) -> None:
        self.heard: list[Any] = []
        self._changed = threading.Condition()

    def __call__(self, heard: Any) -> None:
        with self._changed:
            self.heard.append(heard)
            self._changed.notify_all()

    def until(self, count: int) -> list[Any]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.heard) >= count, BOUND)
            return self.heard


@pytest.fixture
def sender(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Core], tuple[CoreSender, Ear]]]:
    """``made, ear = sender(core)`` starts a sender; it ends with the test."""
    monkeypatch.setattr(core_sender, "TUNING", replace(TUNING, core_retry_s=0.001))
    started = []

    def start(core: Core) -> tuple[CoreSender, Ear]:
        ear = Ear()
        made = CoreSender(core, si.NullCallback(), ear)  # type: ignore[arg-type]
        made.start()
        started.append(made)
        return made, ear

    yield start
    for made in started:
        made.stop()


REGISTER = si.RegisterResourceManagerRequest(rmID="rm")
REGISTERED = inputs.CoreAnswered(si.RegisterResourceManagerResponse())
REQUESTS = [
    *(si.AllocationRequest(rmID="rm"), si.ApplicationRequest(), si.NodeRequest()),
    si.UpdateConfigurationRequest(),
]


async def test_k2_messages_go_in_their_order_and_a_refused_one_is_heard(sender: Any) -> None:
    core = Core(si.RequestError("AllocationRequest", "rmID", "unknown"), ZeroDivisionError("a bug"))
    made, ear = sender(core)
    for each in (*REQUESTS, REGISTER):
        made.send(each)
    refused, broken, registered = ear.until(3)
    assert refused == inputs.CoreRefused("AllocationRequest", "AllocationRequest.rmID: unknown")
    assert broken.request == "ApplicationRequest"
    assert registered == REGISTERED
    assert core.requests == [*REQUESTS, REGISTER]


async def test_k151_a_core_that_is_away_is_tried_again_until_the_sender_ends(sender: Any) -> None:
    core = Core(ConnectionError("away"), ConnectionError("away"))
    made, ear = sender(core)
    made.send(REGISTER)
    assert ear.until(1) == [REGISTERED]
    assert core.requests == [REGISTER] * 3
    core = Core(*[ConnectionError("away")] * 1_000_000)
    made, _ = sender(core)
    made.send(REGISTER)
    while not core.requests:
        await asyncio.sleep(0.001)
    made.stop()
    assert made.waiting <= 1


@pytest.mark.parametrize("waits_already", [False, True])
async def test_k151_a_core_that_forgot_hears_nothing_old(sender: Any, waits_already: bool) -> None:
    """A registration that waits already is enough."""
    core = Core(RegisterAgain("restarted"))
    core.waits = threading.Event()
    made, ear = sender(core)
    for each in (*REQUESTS, *([REGISTER, REQUESTS[0]] if waits_already else [])):
        made.send(each)
    core.waits.set()
    assert ear.until(1) == [REGISTERED if waits_already else inputs.CoreForgot()]
    made.send(REGISTER)
    assert ear.until(2)[1] == REGISTERED
    again = [REGISTER, REQUESTS[0], REGISTER] if waits_already else [REGISTER]
    assert core.requests == [REQUESTS[0], *again]


async def test_k151_what_a_remote_client_notices_comes_to_the_shim() -> None:
    heard: list[Any] = []

    class Told:
        def core_forgot(self) -> None:
            heard.append("forgot")

        def core_refused(self, request: str, reason: str) -> None:
            heard.append((request, reason))

    watcher = CoreWatcher()
    watcher.changed(FORGOTTEN, "before it is set")
    watcher.shim = Told()
    watcher.changed("Away", "cut")
    watcher.changed(FORGOTTEN, "restarted")
    watcher.refused(None, si.RequestError("NodeRequest", "nodes", "what?"))
    assert heard == ["forgot", ("NodeRequest", "NodeRequest.nodes: what?")]


# -- ConfigMaps ----------------------------------------------------------------------------------

MAPS = "/api/v1/namespaces/quadriga/configmaps"


async def reading(api: FakeApi, time: FakeTime | None = None) -> Settings:
    async with api.serve(), client_of(api, time) as client:
        found = await ConfigMaps("quadriga", lambda _: None).read(client, time or FakeTime())
        return found.settings


async def test_k47_settings_are_read_from_both_maps_and_without_them_defaults_hold() -> None:
    api, time_ = FakeApi(), FakeTime()
    name = "yunikorn-configs"
    packed = base64.b64encode(gzip.compress(b"other")).decode()
    api.found[f"{MAPS}/{name}"] = {
        "metadata": {"name": name},
        "data": {"service.clusterId": "mine"},
        "binaryData": {"service.policyGroup.gz": packed},
    }
    api.fault(f"GET {name}", 500, 429)
    settings = await reading(api, time_)
    assert (settings.cluster_id, settings.policy_group) == ("mine", "other")
    assert time_.slept[:2] == [2, 2]
    assert (await reading(FakeApi())).cluster_id == "mycluster"
    (api := FakeApi()).fault("GET yunikorn-defaults", 403)
    with pytest.raises(PermissionError, match="yunikorn-defaults cannot be read: 403"):
        await reading(api)


async def test_k47_k49_each_change_of_the_texts_is_heard_once() -> None:
    heard: list[inputs.ConfigurationChanged] = []
    maps = ConfigMaps("quadriga", heard.append)
    for change, name, level in (
        ("ADDED", "yunikorn-defaults", "INFO"),
        ("ADDED", "somebody-elses", "DEBUG"),
        ("ADDED", "yunikorn-configs", "WARN"),
        ("MODIFIED", "yunikorn-configs", "WARN"),
        ("DELETED", "yunikorn-configs", ""),
    ):
        data = {"log.level": level} if level else {}
        metadata = Metadata(name=name, resource_version="1")
        maps.announce(change, ConfigMap(metadata=metadata, data=data))
    assert [each.values["log.level"] for each in heard] == ["INFO", "WARN", "INFO"]
    assert {len(each.values) for each in heard} == {1}
    # an archive that is bad is heard with its error
    metadata = Metadata(name="yunikorn-configs")
    maps.announce("ADDED", ConfigMap(metadata=metadata, binary_data={"queues.yaml.gz": b"no"}))
    assert "queues.yaml.gz" in heard[-1].errors[0]


# -- health --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "alive", "reasons"),
    [
        ({}, True, ()),
        ({"turned_at": 0}, False, ("its loop has not turned for 20 s",)),
        ({"leads": False}, True, ("another process leads",)),
        ({"leads": False, "rival": "one"}, True, ("one leads",)),
        ({"unsynced": ("pods",)}, True, ("not listed yet: pods",)),
        ({"serves": False}, True, ("the core is being told what runs",)),
        ({"stopped": "lost"}, False, None),
        ({"delay": 8 * SECOND}, True, ("a change or an answer has waited for 8.0 s",)),
        ({"stuck": "it is at pod a/b"}, True, ("it is at pod a/b",)),
    ],
)
async def test_k16_q16_alive_and_ready(change: Any, alive: bool, reasons: Any) -> None:
    now = {"now": 20_000_000_000, "turned_at": 10_000_000_000}
    good = {**now, "leads": True, "unsynced": (), "serves": True, "stopped": ""}
    good |= {"stuck": "", "delay": 5 * SECOND, "longest": 5 * SECOND}
    health = health_of(**good | change)
    assert (health.alive, health.ready) == (alive, not change)
    assert reasons is None or health.reasons == reasons


# -- at work -------------------------------------------------------------------------------------


def node(name: str) -> Json:
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"},
        "status": {"allocatable": allocatable},
    }


def ours(name: str) -> Json:
    container = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
    return pod(
        name,
        spec={"schedulerName": "yunikorn", "containers": [container]},
        metadata={"labels": {"app-id": "app", "yunikorn.apache.org/app-id": "app"}},
    )


OPTIONS = Options(namespace="quadriga", leader_election=False, tune_gc=False)


class AtWork:
    def __init__(self, api: FakeApi, shim: KubernetesShim) -> None:
        self.api, self.shim = api, shim

    async def until(self, holds: Callable[[], object]) -> None:
        async with asyncio.timeout(BOUND):
            while not holds():
                assert self.shim.wait(0) is None, self.shim.reason
                await asyncio.sleep(0.002)


@asynccontextmanager
async def at_work(
    *pods: Json,
    prepare: Callable[[FakeApi], None] = lambda api: None,
    make: type[FakeApi] = FakeApi,
    options: Options = OPTIONS,
    core: type[SchedulerService] = SchedulerService,
    explains: bool = False,
    **more: Any,
) -> AsyncIterator[AtWork]:
    api = make()
    api.add(*pods)
    api.others = {
        "nodes": [node("node-1")],
        "namespaces": [{"metadata": {"name": "ns", "uid": "uid-ns", "resourceVersion": "1"}}],
        "priorityclasses": [],
        "configmaps": [],
    }
    prepare(api)
    async with api.serve():
        with core() as service:
            if explains:
                more["core"] = LocalCore(service)
            shim = KubernetesShim(service, Login(api.url), options, **more)
            shim.start()
            try:
                yield AtWork(api, shim)
            finally:
                await asyncio.to_thread(shim.stop)


async def test_k2_a_pod_that_waits_at_the_start_and_one_that_comes_later_are_bound() -> None:
    seen: list[tuple[str, str, int]] = []
    async with at_work(ours("early"), observe=lambda *observed: seen.append(observed)) as found:
        await found.until(lambda: len(found.api.made("POST", "/early/binding")) == 1)
        found.api.add(ours("late"))
        await found.api.say(event("ADDED", ours("late")))
        await found.until(lambda: len(found.api.made("POST", "/late/binding")) == 1)
        assert found.api.made("POST", "/late/binding")[0]["target"]["name"] == "node-1"
        await found.until(lambda: found.shim.health().ready)
        bound = ("POST", "/api/v1/namespaces/ns/pods/late/binding", 201)
        await found.until(lambda: bound in seen)


class WithLease(FakeApi):
    """Keeps one lease; ``renewals`` counts its writes."""

    renewals = 0

    def _answer(self, request: web.Request, body: Any) -> web.Response:
        if "leases" not in request.path:
            return super()._answer(request, body)
        path = f"/{request.path.strip('/')}"
        if request.method == "POST":
            path = f"{path}/{body['metadata']['name']}"
        if request.method != "GET":
            self.renewals += 1
            body["metadata"]["resourceVersion"] = str(self.renewals)
            self.found[path] = body
        return super()._answer(request, body) if path in self.found else status(404, "NotFound")


class Flooded(Inbox):
    """As soon as ``flooding`` is set there is always more than the loop can take: changes of a pod of another
    scheduler, and behind them, one in each batch, what really comes."""

    flooding = threading.Event()
    taken = 0

    def take(self, most: int) -> list[Any]:
        if not self.flooding.is_set():
            return super().take(most)
        found: list[Any] = []
        for _ in range(most - 1):
            Flooded.taken += 1
            meta = Metadata(
                name="noise", namespace="ns", uid="noise", resource_version=str(self.taken)
            )
            found.append(inputs.Changed("MODIFIED", Pod(meta, PodSpec(node_name="node-1"))))
        found += super().take(1)
        self.ring()
        return found


@pytest.fixture
def threads_as_in_the_command() -> Iterator[None]:
    """Threads are switched every millisecond, as by ``quadriga.cli.serving.process``. With Python's 5 ms a busy
    loop leaves the scheduler's thread so little that a write takes seconds, or minutes."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.001)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("threads_as_in_the_command")
async def test_k11_k13_a_flood_starves_no_lease_or_bind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quadriga.k8s.driver.kubernetes.Inbox", Flooded)
    monkeypatch.setattr(Flooded, "flooding", flooding := threading.Event())
    options = Options(namespace="quadriga", lease_times=LeaseTimes(900, 600, 0.05), tune_gc=False)
    async with at_work(ours("early"), make=WithLease, options=options) as found:
        api = found.api
        assert isinstance(api, WithLease)
        await found.until(lambda: api.made("POST", "/early/binding"))
        before = api.renewals
        flooding.set()
        try:
            api.add(ours("late"))
            await api.say(event("ADDED", ours("late")))
            await found.until(lambda: api.made("POST", "/late/binding"))
            await found.until(lambda: api.renewals >= before + 5)
            assert Flooded.taken > 1000
            assert found.shim.health().alive
        finally:
            flooding.clear()  # or a starved loop would never end


def settled(dump: Any) -> bool:
    """All is listed, and the pod is bound: health and the request itself come before that is counted."""
    states = {each["state"] for each in dump["reflectors"]}
    bound = dump["writes"] == {"BindEnded.bound": 1}
    return states == {"Watching"} and bound and not dump["waitingEvents"]


async def test_k17_the_state_dump_is_json_of_everything() -> None:
    async with at_work(ours("one")) as found:
        async with asyncio.timeout(BOUND):
            while not settled(dump := json.loads(await asyncio.to_thread(found.shim.state_dump))):
                await asyncio.sleep(0.002)
        assert dump["shim"]["state"] == "Serving"
        assert [each["path"] for each in dump["reflectors"]][-1] == MAPS
        assert "uid-one" in json.dumps(dump["cache"])


async def ended(found: AtWork) -> str:
    assert await asyncio.to_thread(found.shim.wait, BOUND) == 1
    return found.shim.reason


async def test_k49_k18_settings_that_are_wrong_or_may_not_be_read_end_it() -> None:
    def wrong(api: FakeApi) -> None:
        data = {"kubernetes.qps": "many", "service.leaderElection": "perhaps"}
        found = {"metadata": {"name": "yunikorn-configs"}, "data": data}
        api.found[f"{MAPS}/yunikorn-configs"] = found

    async with at_work(prepare=wrong) as found:
        reason = await ended(found)
        assert "kubernetes.qps" in reason and "service.leaderElection" in reason
        assert not found.shim.health().alive
        assert "stopped" in found.shim.state_dump()
    async with at_work(prepare=lambda api: api.fault("GET yunikorn-defaults", 403)) as found:
        assert "yunikorn-defaults cannot be read: 403" in await ended(found)


async def test_k16_it_is_not_ready_while_something_is_not_listed() -> None:
    async with at_work(prepare=lambda api: api.fault("GET /nodes", *[500] * 1000)) as found:
        await found.until(lambda: found.shim.health().reasons == ("not listed yet: /api/v1/nodes",))
        assert found.shim.health().alive


async def test_k142_an_end_that_the_shim_wants_is_the_end() -> None:
    async with at_work() as found:
        await found.until(lambda: found.shim.health().ready)
        found.shim.core_refused("RegisterResourceManagerRequest", "not today")
        assert "not today" in await ended(found)


async def test_k106_k176_a_pod_that_the_api_server_denies_twice_comes_back_with_the_audit() -> None:
    def denies(api: FakeApi) -> None:
        api.fault("POST /one/binding", 404)
        api.fault("GET /one", 404)

    def counted(shim: KubernetesShim, name: str) -> dict[str, int | float]:
        (samples,) = (samples for found, _, _, samples in shim.measured() if found == name)
        return {labels.get("kind", ""): value for labels, value in samples}

    options = replace(OPTIONS, audit_every=0.02)
    async with at_work(ours("one"), prepare=denies, options=options) as found:
        await found.until(lambda: len(found.api.made("POST", "/one/binding")) == 2)
        assert found.api.pods["one"]["spec"]["nodeName"] == "node-1"
        counts = counted(found.shim, "quadriga_kubernetes_audit_differences_total")
        # Its ask is one more where the audit comes between the pod and what the loop does about it.
        assert {"watched"} <= {kind for kind, v in counts.items() if v} <= {"watched", "ask"}
        audits = counted(found.shim, "quadriga_kubernetes_audits_total")[""]
        await found.until(
            lambda: counted(found.shim, "quadriga_kubernetes_audits_total")[""] > audits + 2
        )
        assert counted(found.shim, "quadriga_kubernetes_audit_standing") == {"": 0}
        assert counted(found.shim, "quadriga_kubernetes_audit_compared")["allocations"] == 1


async def test_k151_a_core_that_was_restarted_is_told_everything_again() -> None:
    told: list[str] = []

    class Told(SchedulerService):
        def register_resource_manager(self, *request: Any) -> si.RegisterResourceManagerResponse:
            told.append("registration")
            return super().register_resource_manager(*request)

        def update_node(self, request: si.NodeRequest) -> None:
            told.extend(si.NodeInfo.ActionFromRM.Name(each.action) for each in request.nodes)
            super().update_node(request)

    everything = ["registration", "CREATE_DRAIN", "DRAIN_TO_SCHEDULABLE"]
    async with at_work(ours("one"), core=Told) as found:
        await found.until(lambda: len(found.api.made("POST", "/one/binding")) == 1)
        await found.until(lambda: found.shim.health().ready)
        assert told == everything
        found.shim.core_forgot()
        await found.until(lambda: told == everything * 2 and found.shim.health().ready)
        assert len(found.api.made("POST", "/one/binding")) <= 2


async def test_k12_a_shim_that_never_ran_can_be_stopped_and_its_clock_never_goes_back() -> None:
    shim = KubernetesShim(Core(), Login("http://127.0.0.1:1"))  # type: ignore[arg-type]
    shim.stop()
    assert shim.wait(0) is None
    assert not shim.health().ready
    assert ClusterCache(time.monotonic_ns).dump()


async def test_q16_others_go_on_while_terms_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[int] = []

    def preparing(cache: ClusterCache, found: Pod) -> Iterator[None]:
        for number in range(3):
            asyncio.get_running_loop().call_soon(turns.append, number)
            yield
            assert turns[-1] == number
        assert turns[3:] or cache.pod(found.uid) is None, "it is not set before that"

    monkeypatch.setattr(ClusterCache, "preparing", preparing)
    async with at_work(ours("early")) as found:
        await found.until(lambda: len(found.api.made("POST", "/early/binding")) == 1)
    assert turns[:3] == [0, 1, 2]
