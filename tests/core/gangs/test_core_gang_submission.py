"""Gangs arrive (1.1): what is accepted, what is rejected, how a gang starts."""

from typing import Any

import pytest
from core_world import launch, member, news, queues, scripted, serve, state

from quadriga.core import Options
from quadriga.si import AllocationResponse, ApplicationResponse, NodeResponse
from quadriga.sim.scripted.script import Script

QUEUES = queues(
    *"gangs free fair aware parent.left parent.right a.b.c.leaf".split(),
    gangs="resources: {max: {memory: 10}}",
    fair="properties: {application.sort.policy: fair}",
    aware="properties: {application.sort.policy: stateaware}",
    parent="resources: {max: {memory: 12}}",
    a_b="resources: {max: {memory: 5}}",
)


@pytest.fixture
def script(order: str) -> Script:
    return scripted(QUEUES, order=order, memory=100)


def placeholders(script: Script, app: str, count: int, group: str = "tg", size: int = 1) -> None:
    keys = [f"{group}-p{n}" for n in range(count)]
    script.ask(app, *keys, group=group, placeholder=True, memory=size)


def test_g2_g5_a_gang_needs_no_first_pod_and_no_task_groups(script: Script) -> None:
    """placeholderAsk is a sum, and task groups become known by their placeholders' asks."""
    script.app("g", "root.gangs", gang={"memory": 7})
    assert script.schedule() == script.advance(3600) == []
    assert state(script, "g") == "New"
    assert script.scheduler.application("g").gang.task_groups == {}
    placeholders(script, "g", 2, "small", 2)
    placeholders(script, "g", 1, "large", 3)
    assert list(script.scheduler.application("g").gang.task_groups) == ["small", "large"]
    assert "g Running (run)" in script.schedule()


def test_g3_placeholders_are_sorted_by_priority_and_age(script: Script) -> None:
    script.app("g", "root.free", gang={"memory": 3})
    script.app("plain", "root.free")
    script.ask("g", "low", group="tg", placeholder=True, memory=1)
    script.ask("plain", "x", memory=1, priority=5)
    heard = news(serve(script, "g", "high", group="tg", placeholder=True, memory=1, priority=9))
    assert [line.split()[0] for line in heard] == ["g/high-0", "plain/x-0", "g/low-0"]


def test_g4_x10_every_allocation_is_told_one_by_one(script: Script) -> None:
    """X10: one kind of message for each entity, never a mixture."""
    script.app("g", "root.gangs", gang={"memory": 2})
    placeholders(script, "g", 2)
    member(script, "m")
    script.schedule()
    script.confirm()
    messages = [message for _, message in script.messages]
    told = [
        (new.UUID, new.placeholder, new.taskGroupName)
        for message in messages
        if isinstance(message, AllocationResponse)
        for new in message.new
    ]
    assert told == [("tg-p0-0", True, "tg"), ("tg-p1-0", True, "tg"), ("m-0", False, "tg")]
    for message in messages:
        if isinstance(message, ApplicationResponse):
            fields = (message.accepted, message.rejected, message.updated)
        elif isinstance(message, AllocationResponse):
            fields = (message.new, message.released, message.releasedAsks, message.rejected)
        else:
            assert isinstance(message, NodeResponse)
            continue
        assert len([field for field in fields if field]) == 1


@pytest.mark.parametrize(
    ("queue", "size", "refusing"),
    [
        ("root.gangs", 11, "root.gangs"),
        ("root.parent.left", 13, "root.parent"),
        ("root.a.b.c.leaf", 6, "root.a.b"),
    ],
)
def test_g6_g13_a_gang_beyond_a_quota_at_any_level_is_rejected(
    script: Script, queue: str, size: int, refusing: str
) -> None:
    (answer,) = script.app("g", queue, gang={"memory": size})
    assert answer.startswith("rejected g: ")
    assert f"queue {refusing} cannot fit application g" in answer
    assert state(script, "g") == "Rejected"
    assert script.app("g", queue, gang={"memory": size - 1}) == ["accepted g"]


def test_g6_types_without_a_limit_are_not_checked(script: Script) -> None:
    """Only configured quotas reject: a gang may be larger than the cluster (G12)."""
    assert script.app("g", "root.gangs", gang={"gpu": 1000, "memory": 10}) == ["accepted g"]
    assert script.app("h", "root.free", gang={"memory": 10_000}) == ["accepted h"]


def test_g7_a_fair_queue_takes_no_gang_and_a_stateaware_one_starts_it(script: Script) -> None:
    """X15: all placeholders make it Starting, the second replacement makes it Running."""
    (answer,) = script.app("g", "root.fair", gang={"memory": 1})
    assert answer == (
        "rejected g: queue root.fair cannot run application g with task group request: "
        "unsupported sort type"
    )
    assert script.app("plain", "root.fair") == ["accepted plain"]
    assert script.app("fifo", "root.gangs", gang={"memory": 1}) == ["accepted fifo"]
    assert script.app("g", "root.aware", gang={"memory": 2}) == ["accepted g"]
    placeholders(script, "g", 2)
    assert "g Starting (run)" in script.schedule()
    member(script, "m1", "m2")
    assert script.confirm(most=1) == ["new g/m1-0 on n1"]
    assert state(script, "g") == "Starting"
    assert script.confirm() == ["g Running (run)", "new g/m2-0 on n1"]


def test_g8_g9_others_go_on_while_a_gang_waits_for_room(script: Script) -> None:
    launch(script, "running", "x", memory=4, queue="root.gangs")
    script.app("g", "root.gangs", gang={"memory": 8})
    placeholders(script, "g", 8)
    assert script.schedule() == []  # six would fit
    script.app("later", "root.gangs")
    script.ask("later", "y", memory=1)
    assert serve(script, "running", "grown", memory=1) == [
        "new running/grown-0 on n1",
        "later Running (run)",
        "new later/y-0 on n1",
    ]
    assert state(script, "g") == "Accepted"
    script.release("running", "x-0")
    assert len(script.schedule()) == 9


def test_g12_a_gang_larger_than_the_cluster_starts_and_asks_for_nodes(script: Script) -> None:
    script.app("g", "root.free", gang={"memory": 150})
    placeholders(script, "g", 3, size=50)
    assert news(script.schedule()) == ["g/tg-p0-0 on n1", "g/tg-p1-0 on n1"]
    assert script.advance(1) == ["FAILED g/tg-p2"]
    script.node("n2", memory=50)
    assert "g Running (run)" in script.schedule()


def test_q16_the_repeats_of_placeholder_asks_are_bounded_alone_and_together() -> None:
    """One ask must not stand for more members of a gang than a plan can visit."""
    script = scripted(memory=8)
    script.app("a", gang={"memory": 1})
    (answer,) = script.ask("a", "p", group="g", placeholder=True, memory=1, repeat=2**31 - 1)
    assert "maxAllocations 2147483647 of ask p would give the gang of application a" in answer
    assert "at most 10000 are allowed" in answer
    script.schedule()
    assert "new other/x-0 on n1" in launch(script, "other", "x", memory=1)
    # Also those of ordinary asks of a gang.
    script = scripted(QUEUES, options=Options(gang_members=6), memory=8)
    for app, size in (("a", {"memory": 8}), ("b", {"memory": 2}), ("plain", None)):
        script.app(app, "root.free", gang=size)
    more: Any = {"group": "g", "placeholder": True, "memory": 1}
    assert script.ask("a", "p", repeat=4, **more) == ["a Accepted (ask)"]
    assert "6 are allowed" in script.ask("a", "q", repeat=4, **more)[0]
    assert script.ask("a", "p", repeat=6, **more) == []  # in place of the earlier one
    assert "6 are allowed" in script.ask("b", "r", repeat=7, memory=1)[0]
    assert script.ask("plain", "r", repeat=7, memory=1) == ["plain Accepted (ask)"]
