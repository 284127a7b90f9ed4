"""Writes to pods: binds, creates, deletes, patches, and what decides when an answer is missing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from quadriga.k8s.api.bodies import binding_body
from quadriga.k8s.api.retries import bind_waits
from quadriga.k8s.api.writes import PodWrite, PodWrites
from quadriga.k8s.shim.actions import Annotate, Bind, Create, Delete, FailPod, PodRef
from quadriga.k8s.shim.inputs import BindEnded, CreateEnded
from tests.k8s.fake_api import DROP, HANG, LOST, FakeApi, FakeTime, Fault, client_of, pod

pytestmark = pytest.mark.asyncio

P = PodRef("ns", "p", "uid-p")
BIND = Bind(P, "node-1")
BINDING = "POST /binding"
MANIFEST = {"metadata": {"name": "tg-1", "namespace": "ns", "annotations": {"a": "b"}}, "spec": {}}
CREATE = Create("app", "workers", MANIFEST)
WAITS = [1, 2, 4, 8, 16, 30, 30, 30]


class Writer:
    """Writes, and how they ended."""

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


# -- bind ----------------------------------------------------------------------------------------


async def test_k104_a_bind_posts_a_binding_with_the_uid() -> None:
    async with writer(pod("p")) as w:
        assert await w.do(BIND) == [BindEnded("uid-p", "bound", "node-1")]
        assert [(method, path) for method, path, _ in w.api.requests] == [
            ("POST", "/api/v1/namespaces/ns/pods/p/binding")
        ]
        assert w.api.made("POST") == [
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": "p", "namespace": "ns", "uid": "uid-p"},
                "target": {"apiVersion": "v1", "kind": "Node", "name": "node-1"},
            }
        ]


async def test_k104_names_are_quoted_in_the_body() -> None:
    assert b'"name":"a\\"b"}}' in binding_body(P, 'a"b')


async def test_k104_a_reply_that_is_no_json_is_as_good_as_any() -> None:
    async with writer(pod("p")) as w:
        w.api.fault(BINDING, (201, {"Content-Type": "application/json"}))
        assert await w.do(BIND) == [BindEnded("uid-p", "bound", "node-1")]


@pytest.mark.parametrize(
    ("there", "ended"),
    [
        (pod("p", node="node-1"), BindEnded("uid-p", "bound", "node-1")),
        (pod("p", node="node-2"), BindEnded("uid-p", "elsewhere", "node-2")),
        (pod("p", uid="other"), BindEnded("uid-p", "gone")),
        (
            pod("p", metadata={"deletionTimestamp": "2026-11-23T12:00:00Z"}),
            BindEnded("uid-p", "gone"),
        ),
    ],
)
async def test_k106_after_a_conflict_the_pod_decides(
    there: dict[str, Any], ended: BindEnded
) -> None:
    async with writer(there) as w:
        assert await w.do(BIND) == [ended]
        assert [method for method, *_ in w.api.requests] == ["POST", "GET"]
        assert w.time.slept == []


async def test_k106_a_conflict_without_a_node_is_tried_again() -> None:
    async with writer(pod("p")) as w:
        w.api.fault(BINDING, 409)
        assert await w.do(BIND) == [BindEnded("uid-p", "bound", "node-1")]
        assert [method for method, *_ in w.api.requests] == ["POST", "GET", "POST"]
        assert w.time.slept == [1]


async def test_k106_a_pod_that_is_not_there_has_ended() -> None:
    async with writer() as w:
        assert await w.do(BIND) == [BindEnded("uid-p", "gone")]
        assert [method for method, *_ in w.api.requests] == ["POST", "GET"]


async def test_k106_a_404_of_a_pod_that_is_there_is_tried_again() -> None:
    async with writer(pod("p")) as w:
        w.api.fault(BINDING, 404, 404)
        assert await w.do(BIND) == [BindEnded("uid-p", "bound", "node-1")]
        assert [method for method, *_ in w.api.requests] == ["POST", "GET", "POST", "GET", "POST"]
        assert w.time.slept == [1, 2]


async def test_k106_gone_while_it_was_tried_again() -> None:
    async with writer(pod("p")) as w:
        w.api.fault(BINDING, 500)
        w.api.fault("GET /p", lambda api: api.pods.clear())
        assert await w.do(BIND) == [BindEnded("uid-p", "gone")]


@pytest.mark.parametrize("fault", [LOST, DROP, 429, 500, 503, 504])
async def test_k107_a_doubt_is_settled_by_the_pod_itself(fault: Fault) -> None:
    async with writer(pod("p")) as w:
        w.api.fault(BINDING, fault)
        assert await w.do(BIND) == [BindEnded("uid-p", "bound", "node-1")]
        expected = ["POST", "GET"] if fault == LOST else ["POST", "GET", "POST"]
        assert [method for method, *_ in w.api.requests] == expected


async def test_k107_a_request_that_hangs_is_given_up() -> None:
    async with writer(pod("p"), timeout=0.2) as w:
        w.api.fault(BINDING, HANG)
        assert await w.do(BIND) == [BindEnded("uid-p", "bound", "node-1")]
        # a machine that is slow gives up more than the first one
        assert [method for method, *_ in w.api.requests][:2] == ["POST", "GET"]


async def test_k107_the_waits_are_exact_and_then_it_has_failed() -> None:
    async with writer(pod("p")) as w:
        w.api.fault(BINDING, *[500] * 20)
        (ended,) = await w.do(BIND)
        assert (ended.outcome, ended.step) == ("failed", "bind")
        assert "500" in ended.reason
        assert w.time.slept == WAITS
        assert sum(WAITS) == 121
        assert len(w.api.made("POST", "/binding")) == 9
        assert len(w.api.made("GET")) == 9


async def test_k107_nine_failures_are_one_too_many_and_eight_are_not() -> None:
    async with writer(pod("p")) as w:
        w.api.fault(BINDING, *[500] * 8)
        assert await w.do(BIND) == [BindEnded("uid-p", "bound", "node-1")]
        assert w.time.slept == WAITS


async def test_k107_the_pod_is_not_read_but_the_bind_is_tried_again() -> None:
    async with writer(pod("p")) as w:
        w.api.fault(BINDING, 500)
        w.api.fault("GET /p", 500)
        assert await w.do(BIND) == [BindEnded("uid-p", "bound", "node-1")]
        assert w.time.slept == [1]


async def test_k107_slow_failures_do_not_make_it_longer_than_its_time() -> None:
    async with writer(pod("p")) as w:

        def hang_for_ten_seconds(api: FakeApi) -> None:
            w.time.ns += 10_000_000_000
            api.fault("GET /p", 500)

        # The bind takes effect only when the pod has no node: it never does here.
        w.api.pods["p"]["metadata"]["deletionTimestamp"] = "2026-11-23T12:00:00Z"
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


async def test_k51_the_bind_timeout_bounds_the_waits() -> None:
    assert list(bind_waits(121_000_000_000)) == WAITS
    assert list(bind_waits(10_000_000_000)) == [1, 2, 4]
    assert list(bind_waits(0)) == []


async def test_k97_a_bind_that_is_cancelled_is_not_tried_again() -> None:
    never = asyncio.Event()

    async def sleep(seconds: float) -> None:
        await never.wait()

    async with writer(pod("p"), sleep=sleep) as w:
        w.api.fault(BINDING, 500)
        w.writes.submit(BIND)
        while not w.api.made("GET"):
            await asyncio.sleep(0.001)
        w.writes.cancel_bind("uid-p", "the node is gone")
        (ended,) = await w.do()
        assert ended.outcome == "failed"
        assert ended.reason.startswith("the node is gone; ")
        assert len(w.api.made("POST")) == 1


async def test_a_delete_ends_the_tries_of_a_bind() -> None:
    never = asyncio.Event()

    async def sleep(seconds: float) -> None:
        await never.wait()

    async with writer(pod("p"), sleep=sleep) as w:
        w.api.fault(BINDING, 500)
        heard = await w.do(BIND, Delete(P))
        assert [each.outcome for each in heard] == ["failed"]
        assert [method for method, *_ in w.api.requests] == ["POST", "GET", "DELETE"]


async def test_what_must_be_done_before_a_bind_is_awaited() -> None:
    order: list[str] = []

    async def settle(ref: PodRef) -> None:
        order.append(f"settled, {len(w.api.requests)} requests")

    async with writer(pod("p"), before_bind=settle) as w:
        await w.do(BIND)
        assert order == ["settled, 0 requests"]


async def test_an_error_of_ours_ends_the_bind_too() -> None:
    async def broken(ref: PodRef) -> None:
        raise ZeroDivisionError("a bug")

    async with writer(pod("p"), before_bind=broken) as w:
        (ended,) = await w.do(BIND)
        assert ended.outcome == "failed"
        assert "ZeroDivisionError('a bug')" in ended.reason


# -- create --------------------------------------------------------------------------------------


async def test_k72_a_placeholder_is_created() -> None:
    async with writer() as w:
        assert await w.do(CREATE) == [CreateEnded("app", "workers", "tg-1", "created")]
        assert w.api.made("POST", "/ns/pods") == [MANIFEST]


async def test_k72_a_name_that_is_taken() -> None:
    async with writer(pod("tg-1")) as w:
        (ended,) = await w.do(CREATE)
        assert ended.outcome == "name_taken"


async def test_k72_a_lost_reply_does_not_make_two() -> None:
    async with writer() as w:
        w.api.fault("POST /pods", LOST)
        assert await w.do(CREATE) == [CreateEnded("app", "workers", "tg-1", "created")]
        assert list(w.api.pods) == ["tg-1"]


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
        (ended,) = await w.do(CREATE)
        assert ended == CreateEnded(
            "app", "workers", "tg-1", "refused", f"the API server answered {code}: as the test says"
        )


async def test_k73_a_quota_that_changed_meanwhile_is_no_taken_name() -> None:
    async with writer() as w:
        w.api.fault("POST /pods", 409)
        (ended,) = await w.do(CREATE)
        assert ended.outcome == "created"


# -- delete and patches --------------------------------------------------------------------------


async def test_k112_a_delete_carries_the_uid_and_the_grace_period() -> None:
    async with writer(pod("p")) as w:
        await w.do(Delete(P, grace=0))
        (options,) = w.api.made("DELETE")
        assert options["preconditions"] == {"uid": "uid-p"}
        assert options["gracePeriodSeconds"] == 0
        assert not w.api.pods


async def test_k112_without_a_grace_period_it_is_the_pods_own() -> None:
    async with writer(pod("p")) as w:
        await w.do(Delete(P))
        assert "gracePeriodSeconds" not in w.api.made("DELETE")[0]


async def test_k112_another_pod_of_that_name_stays() -> None:
    async with writer(pod("p", uid="other")) as w:
        await w.do(Delete(P))
        assert list(w.api.pods) == ["p"]
        assert w.time.slept == []


async def test_k79_a_delete_is_tried_until_it_works() -> None:
    async with writer(pod("p")) as w:
        w.api.fault("DELETE /p", *[DROP, 500, 403, 429, 503])
        await w.do(Delete(P))
        assert w.time.slept == [5, 10, 20, 30, 30]
        assert not w.api.pods


async def test_k112_the_same_delete_does_not_wait_twice() -> None:
    async with writer(pod("p")) as w:
        await w.do(BIND, Delete(P), Delete(P), Delete(P))
        assert len(w.api.made("DELETE")) == 1


async def test_k113_a_preempted_pod_is_told_why_first() -> None:
    async with writer(pod("p")) as w:
        await w.do(Delete(P, preempted=True))
        (patch,) = w.api.made("PATCH", "/p/status")
        (condition,) = patch["status"]["conditions"]
        assert condition["type"] == "DisruptionTarget"
        assert condition["status"] == "True"
        assert condition["reason"] == "PreemptionByScheduler"
        assert condition["lastTransitionTime"] == "2026-11-23T12:00:00Z"
        assert [method for method, *_ in w.api.requests] == ["PATCH", "DELETE"]


async def test_k113_the_deletion_does_not_wait_long_for_the_condition() -> None:
    async with writer(pod("p")) as w:
        w.api.fault("PATCH /status", *[500] * 9)
        await w.do(Delete(P, preempted=True))
        assert w.time.slept == [1, 2]
        assert not w.api.pods


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
        assert patch["status"] == {
            "phase": "Failed",
            "reason": "ResourceReservationTimeout",
            "message": "no room",
        }


async def test_k13_writes_to_one_pod_are_serial_and_those_to_others_are_not() -> None:
    async with writer(pod("p"), pod("q")) as w:
        reached, release = asyncio.Event(), asyncio.Event()

        async def hold(ref: PodRef) -> None:
            if ref.name == "p":
                reached.set()
                await release.wait()

        w.writes._before_bind = hold
        w.writes.submit(BIND)
        w.writes.submit(Annotate(P, {"a": "b"}))
        w.writes.submit(Bind(PodRef("ns", "q", "uid-q"), "node-1"))
        await reached.wait()
        while not w.heard:
            await asyncio.sleep(0.001)
        assert w.heard == [BindEnded("uid-q", "bound", "node-1")]
        assert not w.api.made("PATCH")
        release.set()
        await w.do()
        assert [path.rsplit("/", 1)[1] for _, path, _ in w.api.requests] == [
            "binding",
            "binding",
            "p",
        ]
