"""A client's clock: requests in the streams, steps that name them, answers in a known order."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from quadriga.si.extension import extension_pb2 as ext
from tests.si.wire import RM, House, application, ask, house, node, refusal, until

A, P, N = ext.Channel.ALLOCATION, ext.Channel.APPLICATION, ext.Channel.NODE
SECOND = 10**9


@pytest.fixture
async def place() -> AsyncIterator[House]:
    async with house(client_clock=True) as place:
        yield place


async def step(rm: RM, now: int, *requests: Any, **more: Any) -> ext.StepResponse:
    request = ext.StepRequest(rmID=rm.rm_id, now=now, requests=requests, **more)
    response: ext.StepResponse = await rm.extension.Step(request)
    return response


async def test_steps_wait_for_what_they_name_and_nothing_is_between(place: House, rm: RM) -> None:
    session = place.server.sessions["rm-1"]
    waiting = asyncio.create_task(step(rm, SECOND, N))
    await until(lambda: session.request_arrived._waiters)  # the server waits
    assert not waiting.done()
    await rm.say(node("n1"))
    assert [*(await waiting).messages] == [N]
    await until(lambda: rm.nodes == ["n1"])
    await rm.say(node("n2"))
    await until(lambda: session.inbound[N])
    assert rm.nodes == ["n1"]
    await step(rm, SECOND, N)
    await until(lambda: rm.nodes == ["n1", "n2"])


async def test_what_a_step_refuses(rm: RM) -> None:
    await step(rm, 5 * SECOND)
    for call, text in (
        (step(rm, SECOND), "went back"),
        (step(rm, 6 * SECOND, limit=-1), "negative"),
        (step(rm, 6 * SECOND, ext.Channel.CALLBACK), "no requests"),
    ):
        code, details = await refusal(call)
        assert code == "INVALID_ARGUMENT"
        assert text in details


async def test_a_request_refused_as_a_whole_is_told_with_its_place(place: House, rm: RM) -> None:
    bad = ask("app-1", "pod-1")
    bad.releases.allocationAsksToRelease.add(applicationID="app-1")  # no partition (R7)
    await rm.say(node("n1"))
    await rm.say(bad)
    response = await step(rm, SECOND, N, A)
    assert [each.place for each in response.refused] == [1]
    assert "partitionName" in response.refused[0].reason
    assert not rm.wires["UpdateAllocation"].ended


async def test_the_next_deadline_is_told(rm: RM) -> None:
    response = await step(rm, SECOND)
    if response.HasField("nextDeadline"):
        assert response.nextDeadline >= SECOND  # that of events, perhaps
    await rm.say(application("app-1", gang=1000))
    await rm.say(ask("app-1", "hold-1", group="g", placeholder=True))
    await rm.say(node("n1"))
    response = await step(rm, 2 * SECOND, P, A, N, schedule=True)
    assert response.HasField("nextDeadline")
    assert 2 * SECOND <= response.nextDeadline <= (2 + 15 * 60) * SECOND
