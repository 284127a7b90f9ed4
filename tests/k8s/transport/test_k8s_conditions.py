"""The condition PodScheduled=False: what is written, when, how often, and what is left alone."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from quadriga.k8s.objects import PodCondition
from quadriga.k8s.shim.actions import PodRef, Record, SetCondition
from quadriga.k8s.transport.requester import STRATEGIC_MERGE_PATCH
from quadriga.k8s.writers.condition_writer import ConditionWriter
from tests.k8s import virtual_time

UNSCHEDULABLE, SKIPPED = "Unschedulable", "SchedulingSkipped"


def pod(number: int = 1) -> PodRef:
    return PodRef("team", f"web-{number}", f"uid-{number}")


def waits(number: int = 1, reason: str = UNSCHEDULABLE, message: str = "no room") -> SetCondition:
    return SetCondition(pod(number), reason, message)


class Server(virtual_time.ScriptedServer):
    """Patches conditions. 422 is the answer of a server for another UID."""

    refusal = b'{"message": "metadata.uid: Invalid value: field is immutable"}'

    @property
    def pods(self) -> list[str]:
        return [each[2].rsplit("/", 2)[1] for each in self.requests]

    @property
    def conditions(self) -> list[dict[str, str]]:
        return [each["status"]["conditions"][0] for each in self.bodies]

    @property
    def messages(self) -> list[str]:
        return [each["message"] for each in self.conditions]


def writer_of(
    server: Server, current: dict[str, PodCondition] | None = None, **more: Any
) -> ConditionWriter:
    found = (current or {}).get
    return ConditionWriter(
        server, current=found, clock=virtual_time.clock, wall=virtual_time.wall, **more
    )


def played(server: Server, *steps: SetCondition | str | float, **more: Any) -> ConditionWriter:
    """A writer hears what the pods wait for, and the UIDs of those that wait no more; a number is a pause (s)."""

    async def play() -> ConditionWriter:
        writer = writer_of(server, **more)

        def hear(step: SetCondition | str) -> None:
            writer.drop(step) if isinstance(step, str) else writer.set(step)

        return await virtual_time.hearing(writer, hear, steps)

    return virtual_time.run(play())


def test_k156_the_patch_names_the_condition_and_nothing_else() -> None:
    server = Server()
    writer = played(server, waits(), 1)
    ((_, method, path, body, kind),) = server.requests
    assert (method, kind) == ("PATCH", STRATEGIC_MERGE_PATCH)
    assert path == "/api/v1/namespaces/team/pods/web-1/status"
    written = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    written |= {"message": "no room", "lastTransitionTime": "2026-11-23T00:00:00Z"}
    assert body == {"metadata": {"uid": "uid-1"}, "status": {"conditions": [written]}}
    assert writer.counts == {"written": 1, "failed": 0, "explained": 0}


def test_k155_k156_only_another_reason_is_written_at_once_and_it_is_no_transition() -> None:
    played(server := Server(), waits(), 5, waits(reason=SKIPPED, message="quota"), 5)
    assert server.times == [0, 5]
    assert server.conditions[1]["reason"] == "SchedulingSkipped"
    assert ["lastTransitionTime" in each for each in server.conditions] == [True, False]
    played(server := Server(), *[waits(), 100] * 5)
    assert len(server.requests) == 1


def test_k155_what_a_quota_or_a_gang_holds_for_a_moment_is_not_written() -> None:
    early = [
        waits(reason=SKIPPED, message="1 exist"),
        0.5,
        waits(reason=SKIPPED, message="2 exist"),
    ]
    played(server := Server(), *early, 0.4, "uid-1", 60)
    assert server.requests == []
    played(server := Server(), *early, 10)
    assert (server.times, server.messages) == ([1], ["2 exist"])
    played(server := Server(), *early, waits(), 10)
    assert (server.times, server.messages) == ([0.5], ["no room"])


def test_k156_a_message_is_renewed_at_most_once_a_minute_unless_it_is_as_written() -> None:
    changes = [step for second in range(100) for step in (waits(message=f"{second} nodes"), 1)]
    played(server := Server(), *changes, 200)
    assert server.times == [0, 60, 120]
    assert server.messages == ["0 nodes", "59 nodes", "99 nodes"]
    server = Server()
    writer = played(server, waits(message="a"), 1, waits(message="b"), 1, waits(message="a"), 200)
    assert writer.waiting == 0
    assert server.messages == ["a"]


def test_k199_what_the_cluster_says_already_is_not_written() -> None:
    current = {
        "uid-1": PodCondition("PodScheduled", "False", UNSCHEDULABLE, "no room"),
        "uid-2": PodCondition("PodScheduled", "False", SKIPPED, "no room"),
        "uid-3": PodCondition("PodScheduled", "True"),
    }
    played(server := Server(), waits(1), waits(2), waits(3), 600, current=current)
    assert server.pods == ["web-2", "web-3"]
    assert ["lastTransitionTime" in each for each in server.conditions] == [False, True]
    server, explainer = Server(), Explainer(step_s=10_000)
    played(server, waits(), 1000, explain=explainer)
    assert len(server.requests) == 1
    assert len(explainer.asked) == 17


def test_k157_what_waits_is_written_in_turn_fifty_a_second_unless_the_pod_is_bound() -> None:
    newer = waits(400, message="newer")  # keeps its place
    played(server := Server(), *map(waits, range(500)), newer, 60)
    times = server.times
    assert times[-1] == pytest.approx(9, abs=0.1)
    assert all(later - early > 0.98 for early, later in zip(times, times[100:], strict=False))
    assert server.pods == [f"web-{number}" for number in range(500)]
    assert server.messages[400] == "newer"
    bound = [f"uid-{number}" for number in range(100) if number != 80]
    played(server := Server(), *map(waits, range(100)), *bound, 60)
    assert server.pods == ["web-80"]


@virtual_time.virtual
async def test_k157_a_bind_can_wait_for_the_patch_that_is_under_way() -> None:
    async with virtual_time.at_work(writer_of(server := Server(takes_s=5))) as writer:
        writer.set(waits())
        await asyncio.sleep(1)
        writer.set(waits(reason=SKIPPED))  # waits for the patch, and is dropped
        await writer.settled(pod())
        assert virtual_time.seconds() == pytest.approx(5)
        await writer.settled(pod())  # nothing to wait for
        await asyncio.sleep(60)
    assert len(server.requests) == 1


def test_a_change_during_a_patch_is_written_after_it_unless_it_is_taken_back() -> None:
    played(server := Server(takes_s=5), waits(), 1, waits(reason=SKIPPED), 60)
    assert server.times == [0, 5]
    played(server := Server(), waits(), 1, waits(reason=SKIPPED), waits(), 300)
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [404, 409, 410, 422])
def test_a_pod_that_is_gone_is_forgotten(status: int) -> None:
    server = Server([status])
    writer = played(server, waits(), 300)
    assert len(server.requests) == 1
    assert writer.counts == {"written": 0, "failed": 0, "explained": 0}
    assert not writer._pods


def test_a_server_is_asked_less_and_a_refused_patch_once(caplog: pytest.LogCaptureFixture) -> None:
    server = Server([None, 500, 429, None])
    writer = played(server, waits(), 300)
    assert server.times == [0, 1, 3, 7, 15]
    assert writer.counts["written"] == 1
    server = Server([403, 403])
    writer = played(server, waits(1), waits(2), 300)
    assert len(server.requests) == 2
    assert writer.counts["failed"] == 2
    (line,) = caplog.messages
    assert line.startswith("the condition of team/web-1: 403: ")


@dataclass
class Explainer:
    """Explains with the number of seconds since the start; takes some time for it."""

    takes_s: float = 0.0
    step_s: int = 1
    asked: list[str] = field(default_factory=list)

    async def __call__(self, pod: PodRef) -> str | None:
        now = int(virtual_time.seconds())
        self.asked.append(pod.name)
        await asyncio.sleep(self.takes_s)
        return f"explained at {now // self.step_s * self.step_s}"


def test_k156_the_explanation_is_renewed_each_minute_and_an_old_one_in_its_turn() -> None:
    played(server := Server(), waits(), 130, explain=Explainer())
    assert server.messages == ["explained at 0", "explained at 60", "explained at 120"]
    current = {"uid-1": PodCondition("PodScheduled", "False", UNSCHEDULABLE, "explained before")}
    played(server := Server(), waits(), 70, explain=Explainer(), current=current)
    assert (server.times, server.messages) == ([60], ["explained at 60"])


def test_k153_each_message_that_is_written_is_an_event_too_unless_the_pod_is_gone() -> None:
    server, records = Server([None, 403]), list[Record]()
    played(server, waits(), 70, explain=Explainer(), record=records.append)
    assert [each.note for each in records] == ["explained at 1", "explained at 61"]
    assert len(server.requests) == 3, "one that got no answer is told when it is written"
    (first, _) = records
    assert (first.kind, first.namespace, first.name, first.uid) == ("Pod", "team", "web-1", "uid-1")
    assert (first.type, first.reason, first.action) == ("Normal", "PodUnschedulable", "Scheduling")
    records: list[Record] = []
    played(Server([404]), waits(), 70, explain=Explainer(), record=records.append)
    assert records == []


def test_k199_explanations_take_half_a_percent_of_the_time_whatever_waits() -> None:
    server, explainer = Server(), Explainer(takes_s=0.05)
    writer = played(server, *map(waits, range(300)), 1000, explain=explainer)
    assert 0.05 * len(explainer.asked) <= 0.006 * 1000
    assert writer.counts["explained"] == len(explainer.asked)
    assert server.messages[:5] == ["explained at 0"] * 5, "a quiet time has earned some"
    assert server.messages[10] == "no room", "the shim's words, while none may be asked for"
    looked_at = explainer.asked[10:]
    assert len(set(looked_at)) == len(looked_at), "each in its turn"


def test_k156_a_pod_bound_meanwhile_gets_nothing_and_one_unexplained_the_shims_words() -> None:
    played(server := Server(), waits(), 0.5, "uid-1", 100, explain=Explainer(takes_s=1))
    assert server.requests == []

    async def nothing(pod: PodRef) -> str | None:
        return None

    played(server := Server(), waits(message="é" * 1000), 100, explain=nothing)
    ((message),) = server.messages
    assert len(message.encode()) <= 1024
    assert message.endswith("é...")
