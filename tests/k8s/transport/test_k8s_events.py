"""Kubernetes events: their form, their series, their budget, and what happens when writing fails."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from quadriga.k8s.shim.actions import Record
from quadriga.k8s.transport.requester import JSON, MERGE_PATCH
from quadriga.k8s.tuning import Tuning
from quadriga.k8s.writers import event_writer
from quadriga.k8s.writers.event_writer import EventWriter
from tests.k8s.virtual_time import (
    ScriptedServer,
    at_work,
    clock,
    hearing,
    run,
    seconds,
    virtual,
    wall,
)

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


class Server(ScriptedServer):
    @property
    def methods(self) -> list[str]:
        return [each[1] for each in self.requests]

    @property
    def names(self) -> list[str]:
        return [each["metadata"]["name"] for each in self.bodies]


def writer_of(server: Server, busy: Callable[[], bool] = lambda: False) -> EventWriter:
    return EventWriter(
        server, controller="yunikorn", instance="quadriga-0", clock=clock, wall=wall, busy=busy
    )


def played(server: Server, *steps: Record | float, **more: Any) -> EventWriter:
    """A writer hears the records; a number is a pause (s)."""
    writer = writer_of(server, **more)
    return run(hearing(writer, writer.record, steps))


def noted(*notes: object, **more: Any) -> list[Record]:
    """Events that differ in their text alone."""
    return [replace(QUEUED, note=f"{note}", **more) for note in notes]


def of_node(**more: Any) -> Record:
    return replace(QUEUED, kind="Node", namespace="", name="n1", **more)


def test_k153_an_event_of_a_pod() -> None:
    server = Server()
    writer = played(server, QUEUED, 0.1)
    ((_, method, path, body, kind),) = server.requests
    assert (method, path, kind) == ("POST", "/apis/events.k8s.io/v1/namespaces/team/events", JSON)
    regarding = {"apiVersion": "v1", "kind": "Pod", "namespace": "team", "name": "web-1"}
    assert body == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "web-1.cc89d5126f9246d9", "namespace": "team"},
        "eventTime": "2026-11-23T00:00:00.000000Z",
        "reportingController": "yunikorn",
        "reportingInstance": "quadriga-0",
        "regarding": {**regarding, "uid": "uid-1"},
        **{name: getattr(QUEUED, name) for name in ("reason", "action", "type", "note")},
    }
    assert writer.counts == {"written": 1, "dropped": 0, "failed": 0}


@pytest.mark.parametrize("kind", ["Node", "Namespace"])
def test_k153_an_event_of_an_object_without_namespace_is_in_the_default_one(kind: Any) -> None:
    played(server := Server(), replace(of_node(action=""), kind=kind), 0.1)
    ((_, _, path, body, _),) = server.requests
    assert path == "/apis/events.k8s.io/v1/namespaces/default/events"
    assert body["metadata"]["namespace"] == "default"
    assert "namespace" not in body["regarding"]
    assert body["action"] == "Scheduling"  # the server refuses an event without one


def test_k153_servers_before_1_21_want_events_of_nodes_in_another_namespace() -> None:
    played(server := Server([422]), of_node(), 1, of_node(note="another"), QUEUED, 1)
    namespaces = [each["metadata"]["namespace"] for each in server.bodies]
    assert namespaces == ["default", "kube-system", "team", "kube-system"]


def test_an_event_that_is_found_wrong_or_was_tried_six_times_is_given_up() -> None:
    server = Server([422] * 10)
    writer = played(server, of_node(), QUEUED, 100)
    assert len(server.requests) == 3
    assert writer.counts["failed"] == 2
    server = Server([None] * 20)
    writer = played(server, QUEUED, 600)
    assert len(server.requests) == 6
    assert writer.counts["failed"] == 1


def test_k153_a_note_is_cut_to_what_the_server_takes() -> None:
    long = replace(QUEUED, note="é" * 2000, reason="R" * 300, name="n" * 253)
    played(server := Server(), long, 0.1)
    (body,) = server.bodies
    assert len(body["note"].encode()) <= 1024
    assert body["note"].endswith("é...")
    assert len(body["reason"]) == 128
    assert len(body["metadata"]["name"]) <= 253


def test_k153_the_same_event_within_ten_minutes_raises_the_count_of_its_series() -> None:
    played(server := Server(), QUEUED, 1, QUEUED, QUEUED, QUEUED, 599, QUEUED, 20)
    created, first, second = server.requests
    name = created[3]["metadata"]["name"]
    assert "series" not in created[3]
    assert first[1:3] == ("PATCH", f"/apis/events.k8s.io/v1/namespaces/team/events/{name}")
    assert first[4] == MERGE_PATCH
    assert first[3] == {"series": {"count": 4, "lastObservedTime": "2026-11-23T00:00:01.000000Z"}}
    assert second[3]["series"]["count"] == 5
    assert first[0] == pytest.approx(10), "a series is written every ten seconds at most"
    assert second[0] == pytest.approx(600)


@pytest.mark.parametrize("differs", ["reason", "action", "note", "uid", "name", "type", "kind"])
def test_k153_another_object_reason_action_or_text_is_another_event(differs: str) -> None:
    other = replace(QUEUED, **{differs: "Node" if differs == "kind" else "other"})
    played(server := Server(), QUEUED, other, 1)
    assert server.methods == ["POST", "POST"]
    assert len(set(server.names)) == 2


def test_k153_one_event_for_ten_minutes_counts_all_occurrences() -> None:
    played(server := Server(), QUEUED, 600.5, QUEUED, 1)
    assert server.methods == ["POST", "POST"]
    played(server := Server([201, 404]), QUEUED, 30, QUEUED, QUEUED, 30)
    assert server.methods == ["POST", "PATCH", "POST"]
    assert server.bodies[2]["series"]["count"] == 2
    assert server.bodies[2]["eventTime"] == "2026-11-23T00:00:30.000000Z"
    played(server := Server(), *[QUEUED] * 7, 30)
    assert [each["series"]["count"] for each in server.bodies] == [7]
    played(server := Server(takes_s=1), QUEUED, 0.5, QUEUED, 20)
    assert [each.get("series", {}).get("count") for each in server.bodies] == [None, 2]


@virtual
async def test_k153_more_than_a_thousand_waiting_are_dropped_and_counted() -> None:
    async with at_work(writer_of(server := Server())) as writer:
        for each in noted(*range(1200)):
            writer.record(each)
        assert writer.waiting == 1000
        assert writer.counts["dropped"] == 200
        await asyncio.sleep(30)
        writer.record(replace(QUEUED, note="1100"))  # one that was dropped is not in a series
        await asyncio.sleep(1)
    assert writer.counts == {"written": 1001, "dropped": 200, "failed": 0}
    assert server.methods[-1] == "POST"


@virtual
async def test_k153_warnings_are_neither_held_back_nor_dropped_for_other_events() -> None:
    async with at_work(writer_of(server := Server(), busy=lambda: True)) as writer:
        for each in (*noted(*range(1200)), *noted(*range(1100), type="Warning")):
            writer.record(each)
        assert writer.waiting == 2000
        assert writer.counts["dropped"] == 300
        await asyncio.sleep(12)
    kinds = [each["type"] for each in server.bodies]
    assert kinds.count("Warning") == 1000
    assert "Normal" not in kinds[:1000]


def test_k153_at_most_a_hundred_are_written_a_second_and_a_tenth_while_binds_wait() -> None:
    played(server := Server(), *noted(*range(1000)), 30)
    times = server.times
    assert times[-1] == pytest.approx(9, abs=0.1)
    assert all(later - earlier > 0.99 for earlier, later in zip(times, times[200:], strict=False))
    assert [each["note"] for each in server.bodies] == [str(n) for n in range(1000)]
    server = Server()
    played(server, *noted(*range(500)), 30, busy=lambda: seconds() < 10)
    assert len(server.times) == 500
    assert 105 <= sum(each < 10 for each in server.times) <= 111
    assert max(server.times) < 15


def test_k153_events_about_nodes_come_last_and_get_a_tenth() -> None:
    # A restarted scheduler has one for each node of the cluster.
    nodes = [replace(each, kind="Node", namespace="") for each in noted(*range(2000))]
    writer = played(server := Server(), *nodes, 0.1, *noted(*range(700)), 20)
    pods = [n for n, each in enumerate(server.bodies) if each["regarding"]["kind"] == "Pod"]
    assert len(pods) == 700 and server.times[pods[-1]] < 8
    assert 150 <= len(server.bodies) - 700 <= 170
    assert writer.counts["dropped"] == 1000


def test_a_name_that_is_taken_is_replaced_but_not_after_a_lost_answer() -> None:
    server = Server([409])
    writer = played(server, QUEUED, 1)
    assert len(set(server.names)) == 2
    assert writer.counts["written"] == 1
    server = Server([None, 409])
    writer = played(server, QUEUED, 60)
    first, second = server.names
    assert first == second
    assert writer.waiting == 0


def test_an_event_of_an_earlier_process_is_not_written_again_but_counted() -> None:
    found = replace(QUEUED, may_exist=True)
    played(first := Server(), found, 20)
    writer = played(second := Server([409]), found, 20)
    assert first.names == second.names
    assert len(second.names) == 1
    assert writer.counts == {"written": 0, "dropped": 0, "failed": 0}
    assert writer.waiting == 0
    played(server := Server([409]), replace(QUEUED, may_exist=True), 1, QUEUED, 20)
    (_, _, _, created, _), (_, method, path, patch, _) = server.requests
    assert (method, patch["series"]["count"]) == ("PATCH", 2)
    assert path.endswith(f"/events/{created['metadata']['name']}")


def test_k22_a_server_that_is_down_is_asked_less_and_less_often() -> None:
    server = Server([None, 503, 429, None])
    writer = played(server, QUEUED, 100)
    assert [round(each) for each in server.times] == [0, 1, 3, 7, 15]
    assert writer.counts == {"written": 1, "dropped": 0, "failed": 0}


def test_an_event_that_is_refused_is_given_up_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    server = Server([403, 403, 201])
    # the last one is not a series: it was never written
    writer = played(server, QUEUED, replace(QUEUED, note="another"), 1, QUEUED, 1)
    assert writer.counts == {"written": 1, "dropped": 0, "failed": 2}
    assert server.methods == ["POST"] * 3
    (line,) = caplog.messages
    assert line.startswith("event Scheduling about web-1 could not be written: 403")


def test_an_event_in_a_namespace_that_goes_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    server = Server([403])
    server.refusal = b'{"message": "namespace x cannot be used because it is being terminated"}'
    assert played(server, QUEUED, 1).counts["failed"] == 1
    assert caplog.messages == []


@virtual
async def test_the_memory_of_series_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_writer, "TUNING", Tuning(events_known=1500))
    async with at_work(writer_of(Server())) as writer:
        for number, each in enumerate(noted(*range(2500))):
            writer.record(each)
            if not number % 900:
                await asyncio.sleep(10)
        await asyncio.sleep(20)
        assert len(writer._known) <= 1501
        await asyncio.sleep(700)
        writer.record(QUEUED)
        assert len(writer._known) == 1
