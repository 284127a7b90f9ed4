"""Event records of preemption (2.16, since YuniKorn 1.7): the victims, and the ask or quota."""

from __future__ import annotations

from core_world import later, launch, queues, scripted, serve
from event_lines import RecordReader

from quadriga.si import NodeInfo
from quadriga.si.constants import TAG_REQUIRED_NODE
from quadriga.sim.script import Script


def quotas(most: int) -> str:
    low = f"resources: {{guaranteed: {{vcore: 1}}, max: {{vcore: {most}}}}}"
    config = queues(
        "low",
        "high",
        low=f"properties: {{preemption.quota.delay: 10s}}, {low}",
        high="properties: {preemption.delay: 1s}, resources: {guaranteed: {vcore: 3}}",
    )
    return config.replace("queues:", "preemption: {quotapreemptionenabled: true}, queues:", 1)


def full() -> tuple[Script, RecordReader]:
    """Four vcores, all used by ``low``; one of them is guaranteed to it."""
    script = scripted(quotas(4), "low:root.low", "high:root.high", vcore=4000)
    serve(script, "low", "a", "b", "c", "d", vcore=1000)
    return script, RecordReader(script)


def test_2_16_the_record_of_a_victim_names_the_ask_and_its_end_is_preempted() -> None:
    script, reader = full()
    script.ask("high", "h", preempt=(True, True), vcore=1000)
    later(script, 1)
    assert reader.new_lines("REQUEST NONE d", "NODE ADD") == [
        "REQUEST NONE d low vcore=1000 (Preempted by h from application high in root.high)",
        "NODE ADD NODE_RESERVATION n1 h vcore=1000",
    ]
    script.confirm()
    assert reader.new_lines("APP") == ["APP REMOVE ALLOC_PREEMPT low d-0 vcore=1000"]
    script.schedule()
    assert reader.new_lines("NODE") == [
        "NODE REMOVE NODE_RESERVATION n1 h vcore=1000",
        "NODE ADD NODE_ALLOC n1 h vcore=1000",
    ]


def test_2_16_a_lowered_quota_is_named_as_the_reason() -> None:
    script, reader = full()
    script.configure(quotas(3))
    reader.new_lines()
    script.advance(10)
    assert reader.new_lines() == [
        "REQUEST NONE d low vcore=1000 (Preempted by Quota change enforcement process in root.low)",
        "QUEUE SET QUEUE_PREEMPTION root.low vcore=3000 (Quota preemption: preemptable "
        "map[vcore:1000], claimed map[vcore:1000], selected 4, preempted 1)",
    ]


def test_2_16_an_ask_without_victims_on_its_required_node_is_recorded() -> None:
    script = Script()
    script.node("spare", NodeInfo.CREATE_DRAIN, vcore=9000)
    script.node("n1", vcore=1000)
    launch(script, "a", "first", priority=9, vcore=1000)
    reader = RecordReader(script)
    serve(script, "a", "daemon", tags={TAG_REQUIRED_NODE: "n1"}, vcore=1000)
    script.schedule()
    assert reader.new_lines("REQUEST") == [
        "REQUEST NONE daemon a vcore=1000 (Unschedulable request 'daemon' with required node 'n1', "
        "no preemption victim found)"
    ]
