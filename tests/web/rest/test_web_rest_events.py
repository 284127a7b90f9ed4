"""Events over HTTP: batches, and streams to readers who stay, leave, or are too slow (2.16)."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest
from live_cluster import LiveCluster
from on_a_port import PATIENCE, Client, client_of, on_a_port

from quadriga.core.events import message_of
from quadriga.si import UpdateConfigurationRequest
from quadriga.web import reader
from quadriga.web.app import create_app
from quadriga.web.rest import events as rest_events
from quadriga.web.server import WebServer

BATCH = "/ws/v1/events/batch"
STREAM = "/ws/v1/events/stream"


def settings(cluster: LiveCluster, **extra: str) -> None:
    changes = {f"event.{key}": value for key, value in extra.items()}
    request = UpdateConfigurationRequest(rmID="rm", extraConfig=changes)
    cluster.service.update_configuration(request)


def streams(cluster: LiveCluster) -> int:
    found: int = cluster.service.read(
        lambda scheduler: sum(not stream.closed for stream in scheduler.events.streams)
    )
    return found


async def until(what: Callable[[], bool]) -> None:
    """Let others go on until it holds."""
    async with asyncio.timeout(PATIENCE):
        while not what():
            await asyncio.sleep(0)


async def lines(response: httpx.Response) -> AsyncIterator[Any]:
    async for line in response.aiter_lines():
        yield json.loads(line)


async def test_2_16_a_batch_has_the_events_from_an_id_on(client: Client) -> None:
    every = (await client.get(BATCH)).json()
    assert every["LowestID"] == 0
    assert len(every["EventRecords"]) == every["HighestID"] + 1
    some = (await client.get(BATCH, params={"start": 5, "count": 3})).json()
    assert some["EventRecords"] == every["EventRecords"][5:8]
    assert some["InstanceUUID"] == every["InstanceUUID"]
    beyond = (await client.get(BATCH, params={"start": 10**9})).json()
    assert beyond["EventRecords"] == []
    assert beyond["HighestID"] == every["HighestID"]


async def test_2_16_kinds_are_numbers_and_what_is_zero_is_left_out(cluster: LiveCluster) -> None:
    async with client_of(cluster) as client:
        found = (await client.get(BATCH)).json()["EventRecords"]
    messages = cluster.service.read(lambda core: list(map(message_of, core.events.batch().records)))
    assert len(found) == len(messages) > 100
    for told, message in zip(found, messages, strict=True):
        for name in ("type", "eventChangeType", "eventChangeDetail"):
            assert told.get(name, 0) == getattr(message, name)
        for name in ("objectID", "referenceID", "message"):
            assert told.get(name, "") == getattr(message, name)
        assert told["timestampNano"] == message.timestampNano
        amounts = told.get("resource", {}).get("resources", {})
        assert {name: each.get("value", 0) for name, each in amounts.items()} == {
            name: each.value for name, each in message.resource.resources.items()
        }
        assert all(value not in (0, "", {}) for value in told.values())


async def test_2_16_one_answer_has_no_more_than_is_configured_and_nothing_that_is_not_tracked(
    cluster: LiveCluster,
) -> None:
    settings(cluster, RESTResponseSize="7")
    async with client_of(cluster) as client:
        assert len((await client.get(BATCH, params={"count": 1000})).json()["EventRecords"]) == 7
        settings(cluster, trackingEnabled="false")
        for path in (BATCH, STREAM):
            response = await client.get(path)
            assert response.status_code == 500
            assert response.json()["message"] == "Event tracking is disabled"


@pytest.mark.parametrize("slow", [False, True])
async def test_2_16_a_stream_has_some_history_and_everything_since(
    monkeypatch: pytest.MonkeyPatch, slow: bool, busy: LiveCluster
) -> None:
    if slow:  # looks are dear, and serve for a while
        monkeypatch.setattr(reader, "CACHE_ABOVE_S", 0.0)
        monkeypatch.setattr(reader.Reader, "_left", lambda reader, answer: 1.0)
    async with on_a_port(busy) as client:
        async with client.stream("GET", STREAM, params={"count": 3}) as response:
            assert response.headers["content-type"] == "application/json; charset=UTF-8"
            assert response.headers["access-control-allow-origin"] == "*"
            told = lines(response)
            assert set(await anext(told)) == {"InstanceUUID"}
            got = [await anext(told) for _ in range(200)]
        # nothing is missing and nothing comes twice: the same stretch is in the ring
        ring = (await client.get(BATCH)).json()["EventRecords"]
        at = ring.index(got[0])
        assert ring[at : at + 200] == got
        # whoever leaves gives his place back
        await until(lambda: streams(busy) == 0)


async def test_2_16_there_may_be_too_many_streams(busy: LiveCluster) -> None:
    settings(busy, maxStreamsPerHost="1")
    async with on_a_port(busy) as client:
        async with client.stream("GET", STREAM) as first:
            assert first.status_code == 200
            refused = await client.get(STREAM)
            assert refused.status_code == 503
            assert refused.json()["message"] == "Too many streaming connections"
            assert (await client.head(STREAM)).status_code == 200  # opens none
        await until(lambda: streams(busy) == 0)
        async with client.stream("GET", STREAM) as next_one:
            assert next_one.status_code == 200


async def test_2_16_a_reader_who_does_not_keep_up_is_dropped(
    monkeypatch: pytest.MonkeyPatch, busy: LiveCluster
) -> None:
    monkeypatch.setattr(rest_events, "BUFFER", 50)
    monkeypatch.setattr(rest_events, "_GRACE", 0.0)
    async with on_a_port(busy) as client:
        # He asks and then reads nothing. What the system buffers for him is large, so that the
        # test does not wait for it to be full: the stream is not polled in between.
        never = asyncio.Event()

        async def slow(self: Any) -> list[Any]:
            await never.wait()
            return []

        monkeypatch.setattr(rest_events.EventStream, "_poll", slow)
        with pytest.raises(httpx.RemoteProtocolError):
            await client.get(STREAM)  # has no end of its own
        assert streams(busy) == 0
        assert (await client.get("/livez")).status_code == 200


async def test_streams_come_to_an_end_when_the_server_stops(busy: LiveCluster) -> None:
    server = WebServer(create_app(busy.service, busy.views), port=0)
    port = await server.start()
    address = f"http://127.0.0.1:{port}{STREAM}"
    async with (
        httpx.AsyncClient(timeout=PATIENCE) as client,
        client.stream("GET", address) as response,
    ):
        told = lines(response)
        await anext(told)
        stopped = asyncio.create_task(server.stop())
        async for _ in told:  # the rest, whole lines, and an orderly end
            pass
        await stopped
    assert streams(busy) == 0
