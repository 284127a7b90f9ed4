"""Writes to pods: binds, creates, deletes, patches, and what decides when an answer is missing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from quadriga.k8s.shim.actions import Annotate, Bind, Create, Delete, FailPod, PodRef
from quadriga.k8s.shim.inputs import BindEnded, CreateEnded
from quadriga.k8s.transport.requester import bind_waits
from quadriga.k8s.writers.writes import PodWrite, PodWrites, binding_payload
from tests.k8s.fake_api import DROP, HANG, LOST, FakeApi, FakeTime, Fault, client_of, pod

param = pytest.param

P = PodRef("ns", "p", "uid-p")
BIND = Bind(P, "node-1")
BOUND, GONE = BindEnded("uid-p", "bound", "node-1"), BindEnded("uid-p", "gone")
BINDING = "POST /binding"
MANIFEST = {"metadata": {"name": "tg-1", "namespace": "ns", "annotations": {"a": "b"}}, "spec": {}}
CREATE = Create("app", "workers", MANIFEST)
WAITS = [1, 2, 4, 8, 16, 30, 30, 30]


class Writer:
    def __init__(self, api: FakeApi, writes: PodWrites, time: FakeTime, heard: list[Any]) -> None:
        self.api, self.writes, self.time, self.heard = api, writes, time, heard

    async def do(self, *writes: PodWrite) -> list[Any]:
        for each in writes:
            self.writes.submit(each)
        while self.writes.waiting:
            await asyncio.sleep(0.001)
        return self.heard


@asynccontextmanager
async def writer(
    *pods: dict[str, Any], timeout: float = 600.0, **more: Any
) -> AsyncIterator[Writer]:
    time, heard = FakeTime(), []
    api = FakeApi()
    api.add(*pods)
    more = {"sleep": time.sleep} | more
    async with api.serve(), client_of(api, timeout=timeout) as client:
        writes = PodWrites(
            client,
            heard.append,
            scheduler="yunikorn",
            bind_timeout=121_000_000_000,
            clock=time.now,
            stamp=lambda: "2026-11-23T12:00:00Z",
            **more,
        )
        yield Writer(api, writes, time, heard)
        await writes.close()


async def test_k104_a_bind_posts_a_binding_with_the_uid() -> None:
    async with writer(pod("p")) as w:
        assert await w.do(BIND) == [BOUND]
        body: dict[str, Any] = {"apiVersion": "v1", "kind": "Binding"}
        body["metadata"] = {"name": "p", "namespace": "ns", "uid": "uid-p"}
        body["target"] = {"apiVersion": "v1", "kind": "Node", "name": "node-1"}
        assert w.api.requests == [("POST", "/api/v1/namespaces/ns/pods/p/binding", body)]
    assert b'"name":"a\\"b"}}' in binding_payload(P, 'a"b'), "names are quoted"
    assert b'"annotations":{"quadriga/devices":"gpu=0"}}' in binding_payload(P, "n", "gpu=0")


DELETED = {"deletionTimestamp": "2026-11-23T12:00:00Z"}
ELSEWHERE = BindEnded("uid-p", "elsewhere", "node-2")
NO_JSON = (201, {"Content-Type": "application/json"})
TRIED_TWICE = "POST GET POST GET POST"


@pytest.mark.parametrize(
    ("there", "faults", "ended", "methods", "slept"),
    [
        param(pod("p", node="node-1"), [], BOUND, "POST GET", [], id="K106 it is bound there"),
        param(pod("p", node="node-2"), [], ELSEWHERE, "POST GET", [], id="K106 it is elsewhere"),
        param(pod("p", uid="other"), [], GONE, "POST GET", [], id="K106 it is another pod"),
        param(pod("p", metadata=DELETED), [], GONE, "POST GET", [], id="K106 it is being deleted"),
        param(None, [], GONE, "POST GET", [], id="K106 it is not there"),
        param(pod("p"), [409], BOUND, "POST GET POST", [1], id="K106 a conflict without a node"),
        param(pod("p"), [404, 404], BOUND, TRIED_TWICE, [1, 2], id="K106 404 of one that is there"),
        param(pod("p"), [NO_JSON], BOUND, "POST", [], id="K104 a reply that is no JSON will do"),
        param(pod("p"), [LOST], BOUND, "POST GET", [], id="K107 a doubt is settled by the pod"),
        *(
            param(pod("p"), [fault], BOUND, "POST GET POST", [1], id=f"K107 so is {fault}")
            for fault in (DROP, 429, 500, 503, 504)
        ),
    ],
)
async def test_after_the_answer_to_a_bind_the_pod_decides(
    there: dict[str, Any] | None, faults: list[Fault], ended: BindEnded, methods: str, slept: Any
) -> None:
    async with writer(*([there] if there else [])) as w:
        w.api.fault(BINDING, *faults)
        assert await w.do(BIND) == [ended]
        assert [method for method, *_ in w.api.requests] == methods.split()
        assert w.time.slept == slept


async def test_k106_k107_gone_meanwhile_and_a_request_that_hangs_is_given_up() -> None:
    async with writer(pod("p")) as w:
        w.api.fault(BINDING, 500)
        w.api.fault("GET /p", lambda api: api.pods.clear())
        assert await w.do(BIND) == [GONE]
    async with writer(pod("p"), timeout=0.2) as w:
        w.api.fault(BINDING, HANG)
        assert await w.do(BIND) == [BOUND]
        # a machine that is slow gives up more than the first one
        assert [method for method, *_ in w.api.requests][:2] == ["POST", "GET"]


async def test_k107_k51_the_waits_are_exact_and_then_it_has_failed() -> None:
    async with writer(pod("p")) as w:
        w.api.fault(BINDING, *[500] * 20)
        (ended,) = await w.do(BIND)
        assert (ended.outcome, ended.step) == ("failed", "bind")
        assert "500" in ended.reason
        assert w.time.slept == WAITS
        assert sum(WAITS) == 121
        assert len(w.api.made("POST", "/binding")) == 9
        assert len(w.api.made("GET")) == 9
    assert list(bind_waits(121_000_000_000)) == WAITS
    assert list(bind_waits(10_000_000_000)) == [1, 2, 4]
    assert list(bind_waits(0)) == []


async def test_k107_eight_failures_are_not_too_many() -> None:
    async with writer(pod("p")) as w:
        w.api.fault(BINDING, *[500] * 8)
        w.api.fault("GET /p", 500)  # the pod is not read, and the bind is tried again
        assert await w.do(BIND) == [BOUND]
        assert w.time.slept == WAITS


async def test_k107_slow_failures_do_not_make_it_longer_than_its_time() -> None:
    async with writer(pod("p", metadata=DELETED)) as w:  # the bind never takes effect

        def hang_for_ten_seconds(api: FakeApi) -> None:
            w.time.ns += 10_000_000_000
            api.fault("GET /p", 500)

        w.api.fault(BINDING, *[hang_for_ten_seconds] * 20)
        (ended,) = await w.do(BIND)
        assert ended.outcome == "failed"
        assert w.time.slept == [1, 2, 4, 8, 16, 30]


@pytest.mark.parametrize("code", [400, 403, 422])
async def test_k107_a_refusal_is_final(code: int) -> None:
    async with writer(pod("p")) as w:
        w.api.fault(BINDING, code)
        (ended,) = await w.do(BIND)
        assert ended.outcome == "failed"
        assert ended.reason == f"the API server answered {code}: as the test says"
        assert len(w.api.requests) == 1


@pytest.mark.parametrize("by", ["K97 a cancelled bind", "a delete"])
async def test_a_bind_that_is_given_up_is_not_tried_again(by: str) -> None:
    async def sleep(seconds: float) -> None:
        await asyncio.Event().wait()

    async with writer(pod("p"), sleep=sleep) as w:
        w.api.fault(BINDING, 500)
        w.writes.submit(BIND)
        while not w.api.made("GET"):
            await asyncio.sleep(0.001)
        if by == "a delete":
            (ended,) = await w.do(Delete(P))
        else:
            w.writes.cancel_bind("uid-p", "the node is gone")
            (ended,) = await w.do()
            assert ended.reason.startswith("the node is gone; ")
        assert ended.outcome == "failed"
        assert len(w.api.made("POST")) == 1
        assert len(w.api.made("DELETE")) == (by == "a delete")


async def test_what_must_be_done_before_a_bind_is_awaited_and_its_error_ends_the_bind() -> None:
    order: list[str] = []

    async def settle(ref: PodRef) -> None:
        order.append(f"settled, {len(w.api.requests)} requests")

    async with writer(pod("p"), before_bind=settle) as w:
        await w.do(BIND)
        assert order == ["settled, 0 requests"]

    async def broken(ref: PodRef) -> None:
        raise ZeroDivisionError("a bug")

    async with writer(pod("p"), before_bind=broken) as w:
        (ended,) = await w.do(BIND)
        assert ended.outcome == "failed"
        assert "ZeroDivisionError('a bug')" in ended.reason


def created(outcome: str, reason: str = "") -> list[CreateEnded]:
    return [CreateEnded("app", "workers", "tg-1", outcome, reason)]  # type: ignore[arg-type]


@pytest.mark.parametrize("fault", [None, LOST, 409], ids=["created", "lost reply", "another quota"])
async def test_k72_k73_a_placeholder_is_created_once_or_its_name_is_taken(fault: Fault) -> None:
    async with writer() as w:
        w.api.fault("POST /pods", fault)
        assert await w.do(CREATE) == created("created")
        assert set(map(str, w.api.made("POST", "/ns/pods"))) == {str(MANIFEST)}
        assert list(w.api.pods) == ["tg-1"]
        w.heard.clear()
        (ended,) = await w.do(CREATE)
        assert ended.outcome == "name_taken"


@pytest.mark.parametrize("code", [429, 500, 503])
async def test_k72_a_server_in_trouble_is_tried_for_a_minute(code: int) -> None:
    async with writer() as w:
        w.api.fault("POST /pods", *[code] * 20)
        (ended,) = await w.do(CREATE)
        assert ended.outcome == "refused"
        assert sum(w.time.slept) == 60
        w.api.faults.clear()
        w.heard.clear()
        w.api.fault("POST /pods", *[code] * 3)
        (ended,) = await w.do(CREATE)
        assert ended.outcome == "created"


@pytest.mark.parametrize("code", [403, 422, 400])
async def test_k73_a_refusal_by_a_quota_or_a_limit_range_is_final(code: int) -> None:
    async with writer() as w:
        w.api.fault("POST /pods", code)
        reason = f"the API server answered {code}: as the test says"
        assert await w.do(CREATE) == created("refused", reason)


@pytest.mark.parametrize("grace", [{"grace": 0}, {}])
async def test_k112_a_delete_carries_the_uid_and_the_grace_period(grace: dict[str, int]) -> None:
    async with writer(pod("p")) as w:
        await w.do(Delete(P, **grace))
        (options,) = w.api.made("DELETE")
        assert options["preconditions"] == {"uid": "uid-p"}
        assert options.get("gracePeriodSeconds") == grace.get("grace"), "or the pod's own"
        assert not w.api.pods
    async with writer(pod("p", uid="other")) as w:
        await w.do(Delete(P))
        assert list(w.api.pods) == ["p"], "another pod of that name stays"
        assert w.time.slept == []


async def test_k79_k112_a_delete_is_tried_until_it_works_and_once_at_a_time() -> None:
    async with writer(pod("p")) as w:
        w.api.fault("DELETE /p", *[DROP, 500, 403, 429, 503])
        await w.do(Delete(P))
        assert w.time.slept == [5, 10, 20, 30, 30]
        assert not w.api.pods
    async with writer(pod("p")) as w:
        await w.do(BIND, Delete(P), Delete(P), Delete(P))
        assert len(w.api.made("DELETE")) == 1


async def test_k113_a_preempted_pod_is_told_why_first_but_not_for_long() -> None:
    async with writer(pod("p")) as w:
        await w.do(Delete(P, preempted=True))
        (patch,) = w.api.made("PATCH", "/p/status")
        (condition,) = patch["status"]["conditions"]
        assert (condition["type"], condition["status"]) == ("DisruptionTarget", "True")
        assert condition["reason"] == "PreemptionByScheduler"
        assert condition["lastTransitionTime"] == "2026-11-23T12:00:00Z"
        assert [method for method, *_ in w.api.requests] == ["PATCH", "DELETE"]
    async with writer(pod("p")) as w:
        w.api.fault("PATCH /status", *[500] * 9)
        await w.do(Delete(P, preempted=True))
        assert w.time.slept == [1, 2]
        assert not w.api.pods


async def test_q16_writes_to_placeholders_wait_and_a_creation_that_waits_is_cancelled() -> None:
    def create(number: int) -> Create:
        metadata = MANIFEST["metadata"] | {"name": f"tg-{number}"}
        return Create("app", "workers", MANIFEST | {"metadata": metadata})

    async with writer(pod("p"), pod("q")) as w:
        before = len(asyncio.all_tasks())
        for number in range(1000):
            w.writes.submit(create(number))
        assert len(asyncio.all_tasks()) - before < 100
        w.writes.submit(Delete(PodRef("ns", "q", "uid-q"), grace=0))
        w.writes.cancel_delete("uid-q")  # it is gone already
        for number in (0, *range(100, 1000)):
            w.writes.cancel_create("ns", f"tg-{number}")
        await w.do(Delete(P, grace=0))
        made = {body["metadata"]["name"] for body in w.api.made("POST", "/pods")}
        assert made == {f"tg-{number}" for number in range(100)}  # the first had begun
        assert "p" not in w.api.pods and "q" in w.api.pods


async def test_k77_an_annotation_is_set_on_this_pod_only() -> None:
    async with writer(pod("p")) as w:
        w.api.fault("PATCH /p", 503)
        await w.do(Annotate(P, {"a": "b"}))
        assert w.api.pods["p"]["patches"] == [
            {"metadata": {"uid": "uid-p", "annotations": {"a": "b"}}}
        ]
        await w.do(Annotate(PodRef("ns", "p", "older"), {"a": "c"}))
        assert len(w.api.pods["p"]["patches"]) == 1
        assert w.time.slept == [1]


async def test_k34_a_pod_is_failed_by_a_patch_of_its_status() -> None:
    async with writer(pod("p")) as w:
        await w.do(FailPod(P, "ResourceReservationTimeout", "no room"))
        (patch,) = w.api.made("PATCH", "/p/status")
        why = {"reason": "ResourceReservationTimeout", "message": "no room"}
        assert patch["status"] == {"phase": "Failed", **why}


async def test_k13_writes_to_one_pod_are_serial_and_those_to_others_are_not() -> None:
    async with writer(pod("p"), pod("q")) as w:
        reached, release = asyncio.Event(), asyncio.Event()

        async def hold(ref: PodRef) -> None:
            if ref.name == "p":
                reached.set()
                await release.wait()

        w.writes._before_bind = hold
        for write in (BIND, Annotate(P, {"a": "b"}), Bind(PodRef("ns", "q", "uid-q"), "node-1")):
            w.writes.submit(write)
        await reached.wait()
        while not w.heard:
            await asyncio.sleep(0.001)
        assert w.heard == [BindEnded("uid-q", "bound", "node-1")]
        assert not w.api.made("PATCH")
        release.set()
        await w.do()
        ends = [path.rsplit("/", 1)[1] for _, path, _ in w.api.requests]
        assert ends == ["binding", "binding", "p"]
