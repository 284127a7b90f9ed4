"""The condition PodScheduled=False: what is written, when, how often, and what is left alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import pytest

from quadriga.k8s.api.condition_writer import ConditionWriter, Explain
from quadriga.k8s.api.requester import JSON, STRATEGIC_MERGE_PATCH, NoAnswer
from quadriga.k8s.objects import PodCondition
from quadriga.k8s.shim.actions import PodRef, Record, SetCondition
from tests.k8s.virtual_time import clock, run, wall

UNSCHEDULABLE, SKIPPED = "Unschedulable", "SchedulingSkipped"


def pod(number: int = 1) -> PodRef:
    return PodRef("team", f"web-{number}", f"uid-{number}")


def waits(number: int = 1, reason: str = UNSCHEDULABLE, message: str = "no room") -> SetCondition:
    return SetCondition(pod(number), reason, message)


@dataclass
class Server:
    """Answers with the statuses that it was given, in their order, then with 200."""

    answers: list[int | None] = field(default_factory=list)
    takes_s: float = 0.0
    requests: list[tuple[float, str, dict[str, Any]]] = field(default_factory=list)

    async def request(
        self, method: str, path: str, body: bytes | None = None, content_type: str = JSON
    ) -> tuple[int, bytes]:
        assert (method, content_type) == ("PATCH", STRATEGIC_MERGE_PATCH)
        assert body is not None
        self.requests.append(((clock() - 1_000_000_000_000) / 1e9, path, json.loads(body)))
        if self.takes_s:
            await asyncio.sleep(self.takes_s)
        status = self.answers.pop(0) if self.answers else 200
        if status is None:
            raise NoAnswer("connection reset")
        # the answer of a server for another UID
        immutable = b'{"message": "metadata.uid: Invalid value: field is immutable"}'
        return status, immutable if status == 422 else b"{}"

    @property
    def conditions(self) -> list[dict[str, str]]:
        return [body["status"]["conditions"][0] for _, _, body in self.requests]

    @property
    def messages(self) -> list[str]:
        return [each["message"] for each in self.conditions]

    @property
    def times(self) -> list[float]:
        return [round(each[0], 2) for each in self.requests]


def writing(
    server: Server,
    scenario: Callable[[ConditionWriter], Coroutine[Any, Any, None]],
    explain: Explain | None = None,
    current: dict[str, PodCondition] | None = None,
    record: Callable[[Record], None] | None = None,
) -> ConditionWriter:
    """Run the scenario beside a writer, then stop the writer."""

    async def both() -> ConditionWriter:
        writer = ConditionWriter(
            server,
            current=(current or {}).get,
            clock=clock,
            wall=wall,
            explain=explain,
            record=record,
        )
        task = asyncio.create_task(writer.run())
        await scenario(writer)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return writer

    return run(both())


def test_k156_the_patch_names_the_condition_and_nothing_else() -> None:
    async def scenario(writer: ConditionWriter) -> None:
        writer.set(waits())
        await asyncio.sleep(1)

    server = Server()
    writer = writing(server, scenario)

    ((_, path, body),) = server.requests
    assert path == "/api/v1/namespaces/team/pods/web-1/status"
    assert body == {
        "metadata": {"uid": "uid-1"},
        "status": {
            "conditions": [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "Unschedulable",
                    "message": "no room",
                    "lastTransitionTime": "2026-11-23T00:00:00Z",
                }
            ]
        },
    }
    assert writer.counts == {"written": 1, "failed": 0, "explained": 0}


def test_k155_the_same_status_and_reason_are_not_written_again() -> None:
    async def scenario(writer: ConditionWriter) -> None:
        for _ in range(5):
            writer.set(waits())
            await asyncio.sleep(100)

    server = Server()
    writing(server, scenario)
    assert len(server.requests) == 1


def test_k155_another_reason_is_written_at_once() -> None:
    async def scenario(writer: ConditionWriter) -> None:
        writer.set(waits())
        await asyncio.sleep(5)
        writer.set(waits(reason=SKIPPED, message="quota"))
        await asyncio.sleep(5)

    server = Server()
    writing(server, scenario)
    assert server.times == [0, 5]
    assert server.conditions[1]["reason"] == "SchedulingSkipped"


def test_k156_the_time_of_transition_changes_with_the_status_only() -> None:
    async def scenario(writer: ConditionWriter) -> None:
        writer.set(waits())
        await asyncio.sleep(5)
        writer.set(waits(reason=SKIPPED))
        await asyncio.sleep(5)

    server = Server()
    writing(server, scenario)
    assert ["lastTransitionTime" in each for each in server.conditions] == [True, False]


def test_k156_a_message_is_renewed_at_most_once_a_minute() -> None:
    async def scenario(writer: ConditionWriter) -> None:
        for second in range(100):
            writer.set(waits(message=f"{second} nodes"))
            await asyncio.sleep(1)
        await asyncio.sleep(200)

    server = Server()
    writing(server, scenario)
    assert server.times == [0, 60, 120]
    assert server.messages == ["0 nodes", "59 nodes", "99 nodes"]


def test_k156_a_message_that_is_again_as_written_is_left_alone() -> None:
    async def scenario(writer: ConditionWriter) -> None:
        writer.set(waits(message="a"))
        await asyncio.sleep(1)
        writer.set(waits(message="b"))
        await asyncio.sleep(1)
        writer.set(waits(message="a"))
        await asyncio.sleep(200)
        assert writer.waiting == 0

    server = Server()
    writing(server, scenario)
    assert server.messages == ["a"]


def test_k199_after_a_restart_what_the_cluster_says_already_is_not_written() -> None:
    async def scenario(writer: ConditionWriter) -> None:
        writer.set(waits(1))
        writer.set(waits(2))
        writer.set(waits(3))
        await asyncio.sleep(600)

    server = Server()
    current = {
        "uid-1": PodCondition("PodScheduled", "False", UNSCHEDULABLE, "no room"),
        "uid-2": PodCondition("PodScheduled", "False", SKIPPED, "no room"),
        "uid-3": PodCondition("PodScheduled", "True"),
    }
    writing(server, scenario, current=current)

    assert [path.rsplit("/", 2)[1] for _, path, _ in server.requests] == ["web-2", "web-3"]
    assert ["lastTransitionTime" in each for each in server.conditions] == [False, True]


def test_k157_at_most_fifty_are_written_a_second_and_the_oldest_change_comes_first() -> None:
    async def scenario(writer: ConditionWriter) -> None:
        for number in range(500):
            writer.set(waits(number))
        writer.set(waits(400, message="newer"))  # keeps its place
        await asyncio.sleep(60)

    server = Server()
    writing(server, scenario)

    assert len(server.requests) == 500
    assert server.times[-1] == pytest.approx(9, abs=0.1)
    times = server.times
    assert all(later - early > 0.98 for early, later in zip(times, times[100:], strict=False))
    names = [path.rsplit("/", 2)[1] for _, path, _ in server.requests]
    assert names == [f"web-{number}" for number in range(500)]
    assert server.messages[400] == "newer"


def test_k157_what_waits_for_a_bound_pod_is_dropped() -> None:
    async def scenario(writer: ConditionWriter) -> None:
        for number in range(100):
            writer.set(waits(number))
        for number in range(100):
            if number != 80:
                writer.drop(f"uid-{number}")
        await asyncio.sleep(60)

    server = Server()
    writing(server, scenario)
    assert [path.rsplit("/", 2)[1] for _, path, _ in server.requests] == ["web-80"]


def test_k157_a_bind_can_wait_for_the_patch_that_is_under_way() -> None:
    async def scenario(writer: ConditionWriter) -> None:
        writer.set(waits())
        await asyncio.sleep(1)
        writer.set(waits(reason=SKIPPED))  # waits for the patch, and is dropped
        before = clock()
        await writer.settled(pod())
        assert clock() - before == pytest.approx(4e9)
        await writer.settled(pod())  # nothing to wait for
        await asyncio.sleep(60)

    server = Server(takes_s=5)
    writing(server, scenario)
    assert len(server.requests) == 1


def test_a_change_during_a_patch_is_written_after_it() -> None:
    async def scenario(writer: ConditionWriter) -> None:
        writer.set(waits())
        await asyncio.sleep(1)
        writer.set(waits(reason=SKIPPED))
        await asyncio.sleep(60)

    server = Server(takes_s=5)
    writing(server, scenario)
    assert server.times == [0, 5]


def test_a_change_that_is_taken_back_in_time_is_not_written() -> None:
    async def scenario(writer: ConditionWriter) -> None:
        writer.set(waits())
        await asyncio.sleep(1)
        writer.set(waits(reason=SKIPPED))
        writer.set(waits())
        await asyncio.sleep(300)

    server = Server()
    writing(server, scenario)
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [404, 409, 410, 422])
def test_a_pod_that_is_gone_is_forgotten(status: int) -> None:
    async def scenario(writer: ConditionWriter) -> None:
        writer.set(waits())
        await asyncio.sleep(300)

    server = Server([status])
    writer = writing(server, scenario)
    assert len(server.requests) == 1
    assert writer.counts == {"written": 0, "failed": 0, "explained": 0}
    assert not writer._pods


def test_a_server_that_is_down_is_asked_less_and_less_often() -> None:
    async def scenario(writer: ConditionWriter) -> None:
        writer.set(waits())
        await asyncio.sleep(300)

    server = Server([None, 500, 429, None])
    writer = writing(server, scenario)
    assert server.times == [0, 1, 3, 7, 15]
    assert writer.counts["written"] == 1


def test_a_refused_patch_is_not_repeated_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(writer: ConditionWriter) -> None:
        writer.set(waits(1))
        writer.set(waits(2))
        await asyncio.sleep(300)

    server = Server([403, 403])
    writer = writing(server, scenario)
    assert len(server.requests) == 2
    assert writer.counts["failed"] == 2
    (line,) = caplog.messages
    assert line.startswith("the condition of team/web-1: 403: ")


# -- explanations ----------------------------------------------------------------------------------


@dataclass
class Explainer:
    """Explains with the number of seconds since the start; takes some time for it."""

    takes_s: float = 0.0
    step_s: int = 1
    asked: list[tuple[float, str]] = field(default_factory=list)

    async def __call__(self, pod: PodRef) -> str | None:
        now = (clock() - 1_000_000_000_000) / 1e9
        self.asked.append((round(now, 2), pod.name))
        await asyncio.sleep(self.takes_s)
        return f"explained at {int(now) // self.step_s * self.step_s}"


def test_k156_the_message_is_the_explanation_and_is_renewed_each_minute() -> None:
    async def scenario(writer: ConditionWriter) -> None:
        writer.set(waits())
        await asyncio.sleep(130)

    server = Server()
    writing(server, scenario, Explainer())
    assert server.messages == ["explained at 0", "explained at 60", "explained at 120"]


def test_k153_each_message_that_is_written_is_an_event_too() -> None:
    async def scenario(writer: ConditionWriter) -> None:
        writer.set(waits())
        await asyncio.sleep(70)

    records: list[Record] = []
    server = Server([None, 403])
    writing(server, scenario, Explainer(), record=records.append)
    assert [each.note for each in records] == ["explained at 1", "explained at 61"]
    assert len(server.requests) == 3, "one that got no answer is told when it is written"
    (first, _) = records
    assert (first.kind, first.namespace, first.name, first.uid) == ("Pod", "team", "web-1", "uid-1")
    assert (first.type, first.reason, first.action) == ("Normal", "PodUnschedulable", "Scheduling")


def test_k153_a_pod_that_is_gone_gets_no_event() -> None:
    async def scenario(writer: ConditionWriter) -> None:
        writer.set(waits())
        await asyncio.sleep(70)

    records: list[Record] = []
    writing(Server([404]), scenario, Explainer(), record=records.append)
    assert records == []


def test_k199_an_explanation_that_says_the_same_is_not_written() -> None:
    async def scenario(writer: ConditionWriter) -> None:
        writer.set(waits())
        await asyncio.sleep(1000)

    server, explainer = Server(), Explainer(step_s=10_000)
    writing(server, scenario, explainer)
    assert len(server.requests) == 1
    assert len(explainer.asked) == 17


def test_k199_explanations_take_half_a_percent_of_the_time_whatever_waits() -> None:
    async def scenario(writer: ConditionWriter) -> None:
        for number in range(300):
            writer.set(waits(number))
        await asyncio.sleep(1000)

    server, explainer = Server(), Explainer(takes_s=0.05)
    writer = writing(server, scenario, explainer)

    assert 0.05 * len(explainer.asked) <= 0.006 * 1000
    assert writer.counts["explained"] == len(explainer.asked)
    assert server.messages[:5] == ["explained at 0"] * 5, "a quiet time has earned some"
    assert server.messages[10] == "no room", "the shim's words, while none may be asked for"
    looked_at = [name for _, name in explainer.asked[10:]]
    assert len(set(looked_at)) == len(looked_at), "each in its turn"


def test_k156_a_pod_that_is_bound_while_it_is_explained_is_not_written() -> None:
    async def scenario(writer: ConditionWriter) -> None:
        writer.set(waits())
        await asyncio.sleep(0.5)
        writer.drop("uid-1")
        await asyncio.sleep(100)

    server = Server()
    writing(server, scenario, Explainer(takes_s=1))
    assert server.requests == []


def test_k156_a_pod_that_cannot_be_explained_gets_the_words_of_the_shim() -> None:
    async def nothing(pod: PodRef) -> str | None:
        return None

    async def scenario(writer: ConditionWriter) -> None:
        writer.set(waits(message="é" * 1000))
        await asyncio.sleep(100)

    server = Server()
    writing(server, scenario, nothing)
    ((message),) = server.messages
    assert len(message.encode()) <= 1024
    assert message.endswith("é...")


def test_after_a_restart_an_old_explanation_is_renewed_in_its_turn() -> None:
    async def scenario(writer: ConditionWriter) -> None:
        writer.set(waits())
        await asyncio.sleep(70)

    current = {"uid-1": PodCondition("PodScheduled", "False", UNSCHEDULABLE, "explained before")}
    server = Server()
    writing(server, scenario, Explainer(), current)
    assert server.times == [60]
    assert server.messages == ["explained at 60"]
