"""When the delay of quota preemption runs, and the record of each run (2.21)."""

from __future__ import annotations

import pytest
from event_lines import RecordReader

from quadriga.si import Allocation, AllocationRequest, TerminationType
from quadriga.si.constants import TAG_REQUIRED_NODE
from quadriga.sim.script import Script, resource

from .preemption_side import preempted

PREEMPTED = TerminationType.PREEMPTED_BY_SCHEDULER

QUEUES = """\
partitions:
  - name: default
    preemption: {quotapreemptionenabled: true}
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: p
            parent: true
            properties: {quota.preemption.delay: PARENTs}
            resources: {PMAX}
            queues:
              - name: a
                properties: {quota.preemption.delay: LEAFs}
                resources: {AMAX}
              - name: b
                properties: {quota.preemption.delay: 0s}
"""


def config(*, p: int = 0, a: int = 0, parent: int = 20, leaf: int = 10) -> str:
    text = QUEUES.replace("PARENT", str(parent)).replace("LEAF", str(leaf))
    for word, most in (("PMAX", p), ("AMAX", a)):
        text = text.replace(word, f"max: {{vcore: {most}m}}" if most else "")
    return text


def ran(key: str, *, app: str = "a", vcore: int = 1) -> Allocation:
    return Allocation(
        allocationKey=key,
        UUID=f"{key}-0",
        applicationID=app,
        nodeID="n1",
        resourcePerAlloc=resource({"vcore": vcore}),
    )


def restarted(text: str, number: int = 6) -> Script:
    """The scheduler is new; application ``a`` has run in root.p.a for a while."""
    script = Script(text)
    script.app("a", "root.p.a")
    script.app("b", "root.p.b")
    script.node("n1", existing=[ran(f"a{n}") for n in range(number)], vcore=16)
    return script


def report(script: Script, *allocations: Allocation) -> list[str]:
    return script.send(AllocationRequest(rmID=script.rm_id, allocations=allocations))


def using(text: str, number: int) -> Script:
    script = Script(text)
    script.node("n1", vcore=16)
    script.app("a", "root.p.a")
    script.ask("a", *(f"a{n}" for n in range(number)), vcore=1)
    script.schedule()
    return script


# -- what arms it ----------------------------------------------------------------------------------


def test_2_21_a_restart_starts_the_whole_delay() -> None:
    script = restarted(config(a=4))
    assert script.advance(9.9) == []
    assert preempted(script.advance(0.1)) == ["a/a5-0", "a/a4-0"]
    script.confirm(PREEMPTED)
    assert script.advance(100) == []


def test_2_21_a_restart_starts_the_delay_of_every_queue_on_the_path() -> None:
    """The parent has more time; its other leaf has no delay and no max."""
    script = restarted(config(p=5, a=4))
    report(script, ran("b0", app="b"), ran("b1", app="b"))
    assert preempted(script.advance(10)) == ["a/a5-0", "a/a4-0"]
    script.confirm(PREEMPTED)
    assert preempted(script.advance(9.9)) == []
    assert len(preempted(script.advance(0.1))) == 1


@pytest.mark.parametrize(
    "text",
    [
        config(a=6),
        config(a=4, leaf=0),
        config(a=4).replace("quotapreemptionenabled: true", "quotapreemptionenabled: false"),
    ],
)
def test_2_21_a_restart_starts_only_delays_of_queues_above_their_max(text: str) -> None:
    assert restarted(text).advance(1000) == []


def test_2_21_a_dynamic_queue_is_not_enforced() -> None:
    text = """\
partitions:
  - name: default
    preemption: {quotapreemptionenabled: true}
    placementrules: [{name: provided, create: true}]
    queues:
      - name: root
        submitacl: '*'
        childtemplate:
          properties: {quota.preemption.delay: 10s}
          resources: {max: {vcore: 4m}}
"""
    script = Script(text)
    script.app("a", "root.made")
    script.node("n1", existing=[ran(f"a{n}") for n in range(6)], vcore=16)
    queue = script.scheduler.partition().queue("root.made")
    assert queue is not None
    assert queue.max == {"vcore": 4}
    assert script.advance(1000) == []


def test_2_21_a_reported_allocation_starts_the_delay() -> None:
    script = using(config(a=4), 4)
    report(script, ran("more"))
    assert script.advance(9.9) == []
    assert len(preempted(script.advance(0.1))) == 1


def test_2_21_an_ask_placed_by_the_resource_manager_starts_the_delay() -> None:
    script = using(config(a=4), 5)  # the fifth waits
    script.advance(100)
    report(script, ran("a4"))
    assert script.advance(9.9) == []
    assert preempted(script.advance(0.1)) == ["a/a4-0"]


def test_2_21_growth_in_place_starts_the_delay() -> None:
    script = using(config(a=4), 4)
    report(script, ran("a0", vcore=2))
    assert script.advance(9.9) == []
    assert preempted(script.advance(0.1)) == ["a/a3-0"]


def test_2_21_more_growth_does_not_restart_the_delay() -> None:
    script = using(config(a=4), 4)
    report(script, ran("more"))
    script.advance(6)
    report(script, ran("a0", vcore=2))
    assert script.advance(3.9) == []
    assert len(preempted(script.advance(0.1))) == 2


def test_2_21_growth_within_the_max_starts_no_delay() -> None:
    script = using(config(a=4), 3)
    report(script, ran("a0", vcore=2))
    assert script.advance(1000) == []


# -- another delay ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("delay", "left"), [(30, 24), (12, 6), (7, 1)])
def test_2_21_another_delay_shifts_a_running_timer_by_the_difference(delay: int, left: int) -> None:
    script = using(config(a=8), 6)
    script.configure(config(a=4))
    script.advance(6)
    script.configure(config(a=4, leaf=delay))
    assert script.advance(left - 0.1) == []
    assert len(preempted(script.advance(0.1))) == 2


def test_2_21_a_new_delay_that_has_passed_already_ends_at_once() -> None:
    script = using(config(a=8), 6)
    script.configure(config(a=4))
    script.advance(6)
    assert preempted(script.configure(config(a=4, leaf=5))) == []
    assert len(preempted(script.advance(0))) == 2


def test_2_21_the_difference_counts_from_the_first_delay_after_several_changes() -> None:
    script = using(config(a=8), 6)
    script.configure(config(a=4))
    script.advance(6)
    script.configure(config(a=4, leaf=5))
    script.configure(config(a=4, leaf=15))  # before anybody has looked
    script.advance(2)
    script.configure(config(a=5, leaf=20))  # another max and another delay
    assert script.advance(11.9) == []
    assert len(preempted(script.advance(0.1))) == 1


def test_2_21_removing_the_delay_ends_the_wait() -> None:
    script = using(config(a=8), 6)
    script.configure(config(a=4))
    script.advance(6)
    script.configure(config(a=4, leaf=0))
    assert script.advance(1000) == []
    script.configure(config(a=4))
    assert script.advance(9.9) == []
    assert len(preempted(script.advance(0.1))) == 2


# -- the record ------------------------------------------------------------------------------------


def test_2_21_each_run_in_a_leaf_is_one_event() -> None:
    script = using(config(a=8), 6)
    script.configure(config(a=4))
    reader = RecordReader(script)
    script.advance(10)
    assert reader.new_lines("QUEUE") == [
        "QUEUE SET QUEUE_PREEMPTION root.p.a vcore=4 (Quota preemption: preemptable map[vcore:2], "
        "claimed map[vcore:2], selected 6, preempted 2)"
    ]
    script.advance(100)
    assert reader.new_lines("QUEUE") == []  # nothing is above the max that has not been asked for


def test_2_21_each_run_of_a_parent_is_one_event_for_all_below_it() -> None:
    script = restarted(config(p=5))
    script.ask("b", "b0", "b1", vcore=1)
    report(script, ran("b0", app="b"), ran("b1", app="b"))
    reader = RecordReader(script)
    assert len(preempted(script.advance(20))) == 3
    assert reader.new_lines("QUEUE") == [
        "QUEUE SET QUEUE_PREEMPTION root.p vcore=5 (Quota preemption: preemptable map[vcore:3], "
        "claimed map[vcore:3], selected 8, preempted 3)"
    ]


def test_2_21_a_leaf_without_candidates_records_nothing_and_a_parent_does() -> None:
    script = Script(config(a=8))
    script.node("n1", vcore=16)
    script.app("a", "root.p.a")
    script.ask("a", "d1", "d2", tags={TAG_REQUIRED_NODE: "n1"}, vcore=2)
    script.schedule()
    reader = RecordReader(script)
    script.configure(config(a=2))
    script.advance(10)
    assert reader.new_lines("QUEUE SET QUEUE_PREEMPTION") == []
    script.configure(config(p=2))
    reader.new_lines()
    script.advance(20)
    assert reader.new_lines("QUEUE") == [
        "QUEUE SET QUEUE_PREEMPTION root.p vcore=2 (Quota preemption: preemptable map[vcore:2], "
        "claimed map[], selected 0, preempted 0)"
    ]


def test_2_21_a_queue_that_is_within_its_max_in_time_records_nothing() -> None:
    script = using(config(a=8), 6)
    script.configure(config(a=4))
    script.release("a", "a0-0")
    script.release("a", "a1-0")
    reader = RecordReader(script)
    script.advance(100)
    assert reader.new_lines("QUEUE") == []
