"""Kubernetes events: their form, their series, their budget, and what happens when writing fails."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec.structs import replace

from quadriga.k8s.api.event_writer import EventWriter
from quadriga.k8s.api.requester import JSON, MERGE_PATCH, NoAnswer
from quadriga.k8s.shim.actions import Record
from tests.k8s.virtual_time import clock, run, wall

QUEUED = Record(
    kind="Pod",
    namespace="team",
    name="web-1",
    uid="uid-1",
    type="Normal",
    reason="Scheduling",
    action="Scheduling",
    note="team/web-1 is queued and waiting for allocation",
)


@dataclass
class Server:
    """Answers with the statuses that it was given, in their order, then with success."""

    answers: list[int | None] = field(default_factory=list)
    requests: list[tuple[float, str, str, dict[str, Any], str]] = field(default_factory=list)
    takes_s: float = 0.0

    async def request(
        self, method: str, path: str, body: bytes | None = None, content_type: str = JSON
    ) -> tuple[int, bytes]:
        assert body is not None
        now = (clock() - 1_000_000_000_000) / 1e9
        self.requests.append((now, method, path, json.loads(body), content_type))
        if self.takes_s:
            await asyncio.sleep(self.takes_s)
        status = self.answers.pop(0) if self.answers else (201 if method == "POST" else 200)
        if status is None:
            raise NoAnswer("connection reset")
        return status, b"{}"


def writing(
    server: Server,
    scenario: Callable[[EventWriter], Coroutine[Any, Any, None]],
    busy: Callable[[], bool] = lambda: False,
) -> EventWriter:
    """Run the scenario beside a writer, then stop the writer."""

    async def both() -> EventWriter:
        writer = EventWriter(
            server, controller="yunikorn", instance="quadriga-0", clock=clock, wall=wall, busy=busy
        )
        task = asyncio.create_task(writer.run())
        await scenario(writer)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return writer

    return run(both())


def test_k153_an_event_of_a_pod() -> None:
    async def scenario(writer: EventWriter) -> None:
        writer.record(QUEUED)
        await asyncio.sleep(0.1)

    server = Server()
    writer = writing(server, scenario)

    ((_, method, path, body, kind),) = server.requests
    assert (method, path, kind) == ("POST", "/apis/events.k8s.io/v1/namespaces/team/events", JSON)
    assert body == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "web-1.cc89d5126f9246d9", "namespace": "team"},
        "eventTime": "2026-11-23T00:00:00.000000Z",
        "reportingController": "yunikorn",
        "reportingInstance": "quadriga-0",
        "reason": "Scheduling",
        "action": "Scheduling",
        "type": "Normal",
        "note": "team/web-1 is queued and waiting for allocation",
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "team",
            "name": "web-1",
            "uid": "uid-1",
        },
    }
    assert writer.counts == {"written": 1, "dropped": 0, "failed": 0}


@pytest.mark.parametrize("kind", ["Node", "Namespace"])
def test_k153_an_event_of_an_object_without_namespace_is_in_the_default_one(kind: Any) -> None:
    async def scenario(writer: EventWriter) -> None:
        writer.record(replace(QUEUED, kind=kind, namespace="", name="n1", action=""))
        await asyncio.sleep(0.1)

    server = Server()
    writing(server, scenario)

    ((_, _, path, body, _),) = server.requests
    assert path == "/apis/events.k8s.io/v1/namespaces/default/events"
    assert body["metadata"]["namespace"] == "default"
    assert "namespace" not in body["regarding"]
    assert body["action"] == "Scheduling"  # the server refuses an event without one


def test_k153_servers_before_1_21_want_events_of_nodes_in_another_namespace() -> None:
    node = replace(QUEUED, kind="Node", namespace="", name="n1")

    async def scenario(writer: EventWriter) -> None:
        writer.record(node)
        await asyncio.sleep(1)
        writer.record(replace(node, note="another"))
        writer.record(QUEUED)
        await asyncio.sleep(1)

    server = Server([422])
    writing(server, scenario)
    namespaces = [each[3]["metadata"]["namespace"] for each in server.requests]
    assert namespaces == ["default", "kube-system", "kube-system", "team"]


def test_an_event_that_the_server_finds_wrong_is_given_up() -> None:
    async def scenario(writer: EventWriter) -> None:
        writer.record(replace(QUEUED, kind="Node", namespace="", name="n1"))
        writer.record(QUEUED)
        await asyncio.sleep(100)

    server = Server([422] * 10)
    writer = writing(server, scenario)
    assert len(server.requests) == 3
    assert writer.counts["failed"] == 2


def test_k153_a_note_is_cut_to_what_the_server_takes() -> None:
    async def scenario(writer: EventWriter) -> None:
        writer.record(replace(QUEUED, note="é" * 2000, reason="R" * 300, name="n" * 253))
        await asyncio.sleep(0.1)

    server = Server()
    writing(server, scenario)

    body = server.requests[0][3]
    assert len(body["note"].encode()) <= 1024
    assert body["note"].endswith("é...")
    assert len(body["reason"]) == 128
    assert len(body["metadata"]["name"]) <= 253


def test_k153_the_same_event_within_ten_minutes_raises_the_count_of_its_series() -> None:
    async def scenario(writer: EventWriter) -> None:
        writer.record(QUEUED)
        await asyncio.sleep(1)
        for _ in range(3):
            writer.record(QUEUED)
        await asyncio.sleep(599)
        writer.record(QUEUED)
        await asyncio.sleep(20)

    server = Server()
    writing(server, scenario)

    created, first, second = server.requests
    name = created[3]["metadata"]["name"]
    assert "series" not in created[3]
    assert first[1:3] == ("PATCH", f"/apis/events.k8s.io/v1/namespaces/team/events/{name}")
    assert first[4] == MERGE_PATCH
    assert first[3] == {"series": {"count": 4, "lastObservedTime": "2026-11-23T00:00:01.000000Z"}}
    assert second[3]["series"]["count"] == 5
    assert first[0] == pytest.approx(10), "a series is written every ten seconds at most"
    assert second[0] == pytest.approx(600)


@pytest.mark.parametrize("differs", ["reason", "action", "note", "uid", "name"])
def test_k153_another_object_reason_action_or_text_is_another_event(differs: str) -> None:
    async def scenario(writer: EventWriter) -> None:
        writer.record(QUEUED)
        writer.record(replace(QUEUED, **{differs: "other"}))
        await asyncio.sleep(0.1)

    server = Server()
    writing(server, scenario)
    assert [each[1] for each in server.requests] == ["POST", "POST"]


def test_k153_after_ten_minutes_it_is_a_new_event() -> None:
    async def scenario(writer: EventWriter) -> None:
        writer.record(QUEUED)
        await asyncio.sleep(600.5)
        writer.record(QUEUED)
        await asyncio.sleep(1)

    server = Server()
    writing(server, scenario)
    assert [each[1] for each in server.requests] == ["POST", "POST"]


def test_k153_occurrences_before_the_first_write_are_in_it() -> None:
    async def scenario(writer: EventWriter) -> None:
        for _ in range(7):
            writer.record(QUEUED)
        await asyncio.sleep(30)

    server = Server()
    writing(server, scenario)
    assert [each[3]["series"]["count"] for each in server.requests] == [7]


def test_k153_more_than_a_thousand_waiting_are_dropped_and_counted() -> None:
    async def scenario(writer: EventWriter) -> None:
        for number in range(1200):
            writer.record(replace(QUEUED, note=f"{number}"))
        assert writer.waiting == 1000
        assert writer.counts["dropped"] == 200
        await asyncio.sleep(30)
        writer.record(replace(QUEUED, note="1100"))  # one that was dropped is not in a series
        await asyncio.sleep(1)

    server = Server()
    writer = writing(server, scenario)
    assert writer.counts == {"written": 1001, "dropped": 200, "failed": 0}
    assert server.requests[-1][1] == "POST"


def test_k153_while_binds_wait_events_have_a_tenth_of_the_budget() -> None:
    async def scenario(writer: EventWriter) -> None:
        for number in range(500):
            writer.record(replace(QUEUED, note=f"{number}"))
        await asyncio.sleep(30)

    server = Server()
    writing(server, scenario, busy=lambda: clock() < 1_010_000_000_000)

    times = [each[0] for each in server.requests]
    assert len(times) == 500
    assert 105 <= sum(each < 10 for each in times) <= 111
    assert max(times) < 15


def test_k153_warnings_are_neither_held_back_nor_dropped_for_other_events() -> None:
    async def scenario(writer: EventWriter) -> None:
        for number in range(1200):
            writer.record(replace(QUEUED, note=f"{number}"))
        for number in range(1100):
            writer.record(replace(QUEUED, type="Warning", note=f"{number}"))
        assert writer.waiting == 2000
        assert writer.counts["dropped"] == 300
        await asyncio.sleep(12)

    server = Server()
    writing(server, scenario, busy=lambda: True)

    kinds = [each[3]["type"] for each in server.requests]
    assert kinds.count("Warning") == 1000
    assert "Normal" not in kinds[:1000]


def test_k153_at_most_a_hundred_are_written_a_second() -> None:
    async def scenario(writer: EventWriter) -> None:
        for number in range(1000):
            writer.record(replace(QUEUED, note=f"{number}"))
        await asyncio.sleep(30)

    server = Server()
    writing(server, scenario)

    times = [each[0] for each in server.requests]
    assert len(times) == 1000
    assert times[-1] == pytest.approx(9, abs=0.1)
    assert all(later - earlier > 0.99 for earlier, later in zip(times, times[200:], strict=False))
    assert [each[3]["note"] for each in server.requests] == [str(n) for n in range(1000)]


def test_k153_a_slow_server_gets_eight_requests_at_a_time() -> None:
    async def scenario(writer: EventWriter) -> None:
        for number in range(20):
            writer.record(replace(QUEUED, note=f"{number}"))
        await asyncio.sleep(0.5)
        assert len(server.requests) == 8
        await asyncio.sleep(5)

    server = Server(takes_s=1)
    writing(server, scenario)
    assert len(server.requests) == 20


def test_an_occurrence_during_the_write_is_not_lost() -> None:
    async def scenario(writer: EventWriter) -> None:
        writer.record(QUEUED)
        await asyncio.sleep(0.5)
        writer.record(QUEUED)
        await asyncio.sleep(20)

    server = Server(takes_s=1)
    writing(server, scenario)
    assert [each[3].get("series", {}).get("count") for each in server.requests] == [None, 2]


def test_a_name_that_is_taken_is_replaced() -> None:
    async def scenario(writer: EventWriter) -> None:
        writer.record(QUEUED)
        await asyncio.sleep(1)

    server = Server([409])
    writer = writing(server, scenario)
    first, second = (each[3]["metadata"]["name"] for each in server.requests)
    assert first != second
    assert writer.counts["written"] == 1


def test_an_event_of_an_earlier_process_is_not_written_again() -> None:
    found = replace(QUEUED, maybe_told=True)

    async def scenario(writer: EventWriter) -> None:
        writer.record(found)
        await asyncio.sleep(20)

    first, second = Server(), Server([409])
    writing(first, scenario)
    writer = writing(second, scenario)
    (written,), (asked,) = first.requests, second.requests
    assert written[3]["metadata"]["name"] == asked[3]["metadata"]["name"]
    assert writer.counts == {"written": 0, "dropped": 0, "failed": 0}
    assert writer.waiting == 0


def test_an_event_of_an_earlier_process_that_happens_again_is_counted_there() -> None:
    async def scenario(writer: EventWriter) -> None:
        writer.record(replace(QUEUED, maybe_told=True))
        await asyncio.sleep(1)
        writer.record(QUEUED)
        await asyncio.sleep(20)

    server = Server([409])
    writing(server, scenario)
    (_, _, _, created, _), (_, method, path, patch, _) = server.requests
    assert (method, patch["series"]["count"]) == ("PATCH", 2)
    assert path.endswith(f"/events/{created['metadata']['name']}")


def test_a_write_whose_answer_was_lost_is_not_repeated_under_another_name() -> None:
    async def scenario(writer: EventWriter) -> None:
        writer.record(QUEUED)
        await asyncio.sleep(60)

    server = Server([None, 409])
    writer = writing(server, scenario)
    assert len({each[3]["metadata"]["name"] for each in server.requests}) == 1
    assert len(server.requests) == 2
    assert writer.waiting == 0


@pytest.mark.parametrize("differs", ["reason", "action", "note", "uid", "type", "kind"])
def test_events_that_say_different_things_have_different_names(differs: str) -> None:
    other = replace(QUEUED, **{differs: "Node" if differs == "kind" else "other"})

    async def scenario(writer: EventWriter) -> None:
        writer.record(QUEUED)
        writer.record(other)
        await asyncio.sleep(1)

    server = Server()
    writing(server, scenario)
    first, second = (each[3]["metadata"]["name"] for each in server.requests)
    assert first != second


def test_an_expired_event_is_made_anew_with_what_is_new() -> None:
    async def scenario(writer: EventWriter) -> None:
        writer.record(QUEUED)
        await asyncio.sleep(30)
        writer.record(QUEUED)
        writer.record(QUEUED)
        await asyncio.sleep(30)

    server = Server([201, 404])
    writing(server, scenario)
    assert [each[1] for each in server.requests] == ["POST", "PATCH", "POST"]
    assert server.requests[2][3]["series"]["count"] == 2
    assert server.requests[2][3]["eventTime"] == "2026-11-23T00:00:30.000000Z"


def test_k22_a_server_that_is_down_is_asked_less_and_less_often() -> None:
    async def scenario(writer: EventWriter) -> None:
        writer.record(QUEUED)
        await asyncio.sleep(100)

    server = Server([None, 503, 429, None])
    writer = writing(server, scenario)
    assert [round(each[0]) for each in server.requests] == [0, 1, 3, 7, 15]
    assert writer.counts == {"written": 1, "dropped": 0, "failed": 0}


def test_an_event_that_cannot_be_written_is_given_up_and_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(writer: EventWriter) -> None:
        writer.record(QUEUED)
        writer.record(replace(QUEUED, note="another"))
        await asyncio.sleep(1)
        writer.record(QUEUED)  # not a series: it was never written
        await asyncio.sleep(1)

    server = Server([403, 403, 201])
    writer = writing(server, scenario)
    assert writer.counts == {"written": 1, "dropped": 0, "failed": 2}
    assert [each[1] for each in server.requests] == ["POST"] * 3
    (line,) = caplog.messages
    assert line.startswith("event Scheduling about web-1 could not be written: 403")


def test_after_six_tries_an_event_is_given_up() -> None:
    async def scenario(writer: EventWriter) -> None:
        writer.record(QUEUED)
        await asyncio.sleep(600)

    server = Server([None] * 20)
    writer = writing(server, scenario)
    assert len(server.requests) == 6
    assert writer.counts["failed"] == 1


def test_the_memory_of_series_is_bounded() -> None:
    async def scenario(writer: EventWriter) -> None:
        for number in range(25_000):
            writer.record(replace(QUEUED, note=f"{number}"))
            if not number % 900:
                await asyncio.sleep(10)
        await asyncio.sleep(20)
        assert len(writer._known) <= 20_001
        await asyncio.sleep(700)
        writer.record(QUEUED)
        assert len(writer._known) == 1

    writing(Server(), scenario)
