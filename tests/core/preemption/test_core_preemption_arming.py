"""Preemption for a lowered quota (2.8, +1.8): when its delay runs, and the record of each run (2.21)."""

import pytest
from event_lines import RecordReader
from preemption_side import ENFORCED, PREEMPTED, ask, cluster, preempted, preempting
from tree_side import below, most, tree

from quadriga.core.preemption.quota import part_of
from quadriga.si import Allocation, AllocationRequest
from quadriga.si.constants import TAG_REQUIRED_NODE
from quadriga.sim.scripted.script import Script, resource


def config(*, p: int = 0, a: int = 0, parent: int = 20, leaf: int = 10) -> str:
    """``root.p`` with the leaves ``a`` and ``b``, their delays and those with a max."""
    leaves = (
        f"a, properties: {{quota.preemption.delay: {leaf}s}}{most(a)}",
        "b, properties: {quota.preemption.delay: 0s}",
    )
    above = f"p, properties: {{quota.preemption.delay: {parent}s}}{most(p)}, {below(*leaves)}"
    return tree(above, partition=ENFORCED)


def ran(key: str, *, app: str = "a", vcore: int = 1) -> Allocation:
    return Allocation(
        allocationKey=key,
        UUID=f"{key}-0",
        applicationID=app,
        nodeID="n1",
        resourcePerAlloc=resource({"vcore": vcore}),
    )


def restarted(text: str, queue: str = "root.p.a") -> Script:
    """The scheduler is new; application ``a`` holds six vcores in this queue since before."""
    script = Script(text)
    script.app("a", queue)
    script.node("n1", existing=[ran(f"a{n}") for n in range(6)], vcore=16)
    return script


def report(script: Script, *allocations: Allocation) -> list[str]:
    return script.send(AllocationRequest(rmID=script.rm_id, allocations=allocations))


def using(text: str, number: int, lowered: str = "") -> Script:
    """Application ``a`` uses this much, and then the configuration changes."""
    script = Script(text)
    script.node("n1", vcore=16)
    script.app("a", "root.p.a")
    script.ask("a", *(f"a{n}" for n in range(number)), vcore=1)
    script.schedule()
    if lowered:
        script.configure(lowered)
    return script


def test_2_21_a_restart_starts_the_delay_of_every_queue_on_the_path() -> None:
    """The parent has more time; its other leaf has no delay and no max."""
    script = restarted(config(p=5, a=4))
    script.app("b", "root.p.b")
    report(script, ran("b0", app="b"), ran("b1", app="b"))
    assert script.advance(9.9) == []
    assert preempted(script.advance(0.1)) == ["a/a5-0", "a/a4-0"]
    script.confirm(PREEMPTED)
    assert preempted(script.advance(9.9)) == []
    assert len(preempted(script.advance(0.1))) == 1
    script.confirm(PREEMPTED)
    assert script.advance(100) == []


@pytest.mark.parametrize(
    "text",
    [
        config(a=6),
        config(a=4, leaf=0),
        config(a=4).replace("quotapreemptionenabled: true", "quotapreemptionenabled: false"),
    ],
    ids=["at its max", "no delay", "not enabled"],
)
def test_2_21_a_restart_starts_only_delays_of_queues_above_their_max(text: str) -> None:
    assert restarted(text).advance(1000) == []


def test_2_21_a_dynamic_queue_is_not_enforced() -> None:
    template = "properties: {quota.preemption.delay: 10s}, resources: {max: {vcore: 4m}}"
    script = restarted(
        tree(
            root=f"submitacl: '*', childtemplate: {{{template}}}",
            partition=f"{ENFORCED}, placementrules: [{{name: provided, create: true}}]",
        ),
        "root.made",
    )
    queue = script.scheduler.partition().queue("root.made")
    assert queue is not None
    assert queue.max == {"vcore": 4}
    assert script.advance(1000) == []


@pytest.mark.parametrize(
    ("number", "reported", "victims"),
    [
        (4, ran("more"), ["a/more-0"]),
        (5, ran("a4"), ["a/a4-0"]),  # an ask that waits, placed by the resource manager
        (4, ran("a0", vcore=2), ["a/a3-0"]),  # growth in place
        (3, ran("a0", vcore=2), []),  # within the max
    ],
)
def test_2_21_what_the_resource_manager_reports_starts_the_delay(
    number: int, reported: Allocation, victims: list[str]
) -> None:
    script = using(config(a=4), number)
    script.advance(100)
    report(script, reported)
    assert script.advance(9.9) == []
    assert preempted(script.advance(0.1)) == victims


@pytest.mark.parametrize(("delay", "left"), [(30, 24), (12, 6), (7, 1)])
def test_2_21_another_delay_shifts_a_running_timer_by_the_difference(delay: int, left: int) -> None:
    script = using(config(a=8), 6, config(a=4))
    script.advance(6)
    script.configure(config(a=4, leaf=delay))
    assert script.advance(left - 0.1) == []
    assert len(preempted(script.advance(0.1))) == 2


def test_2_21_a_new_delay_that_has_passed_already_ends_at_once() -> None:
    script = using(config(a=8), 6, config(a=4))
    script.advance(6)
    assert preempted(script.configure(config(a=4, leaf=5))) == []
    assert len(preempted(script.advance(0))) == 2


def test_2_21_the_difference_counts_from_the_first_delay_after_several_changes() -> None:
    script = using(config(a=8), 6, config(a=4))
    script.advance(6)
    script.configure(config(a=4, leaf=5))
    script.configure(config(a=4, leaf=15))  # before anybody has looked
    script.advance(2)
    script.configure(config(a=5, leaf=20))  # another max and another delay
    assert script.advance(11.9) == []
    assert len(preempted(script.advance(0.1))) == 1


def test_2_21_removing_the_delay_ends_the_wait() -> None:
    script = using(config(a=8), 6, config(a=4))
    script.advance(6)
    script.configure(config(a=4, leaf=0))
    assert script.advance(1000) == []
    script.configure(config(a=4))
    assert script.advance(9.9) == []
    assert len(preempted(script.advance(0.1))) == 2


def of_run(queue: str, limit: int, preemptable: int, claimed: str, selected: int) -> str:
    """The event of one run that evicts everything it claims."""
    return (
        f"QUEUE SET QUEUE_PREEMPTION {queue} vcore={limit} (Quota preemption: "
        f"preemptable map[vcore:{preemptable}], claimed map[{claimed}], "
        f"selected {selected}, preempted {claimed.removeprefix('vcore:') or 0})"
    )


def test_2_21_each_run_is_one_event_also_of_a_parent_for_all_below_it() -> None:
    script = using(config(a=8), 6, config(a=4))
    reader = RecordReader(script)
    script.advance(10)
    assert reader.new_lines("QUEUE") == [of_run("root.p.a", 4, 2, "vcore:2", 6)]
    script.advance(100)
    assert reader.new_lines("QUEUE") == []  # nothing is above the max that has not been asked for
    script = restarted(config(p=5))
    script.app("b", "root.p.b")
    report(script, ran("b0", app="b"), ran("b1", app="b"))
    reader = RecordReader(script)
    assert len(preempted(script.advance(20))) == 3
    assert reader.new_lines("QUEUE") == [of_run("root.p", 5, 3, "vcore:3", 8)]


def test_2_21_a_leaf_without_candidates_records_nothing_and_a_parent_does() -> None:
    script = using(config(a=8), 0)
    script.ask("a", "d1", "d2", tags={TAG_REQUIRED_NODE: "n1"}, vcore=2)
    script.schedule()
    reader = RecordReader(script)
    script.configure(config(a=2))
    script.advance(10)
    assert reader.new_lines("QUEUE SET QUEUE_PREEMPTION") == []
    script.configure(config(p=2))
    reader.new_lines()
    script.advance(20)
    assert reader.new_lines("QUEUE") == [of_run("root.p", 2, 2, "", 0)]


def test_2_21_a_queue_that_is_within_its_max_in_time_records_nothing() -> None:
    script = using(config(a=8), 6, config(a=4))
    script.release("a", "a0-0")
    script.release("a", "a1-0")
    reader = RecordReader(script)
    script.advance(100)
    assert reader.new_lines("QUEUE") == []


# -- victims ---------------------------------------------------------------------------------------

DELAY = "properties: {preemption.quota.delay: 10s}"


def one(most: int, guaranteed: int = 0) -> str:
    said = f", guaranteed: {{vcore: {guaranteed}m}}" if guaranteed else ""
    return tree(
        f"a, {DELAY}, resources: {{max: {{vcore: {most}m}}{said}}}", "b", partition=ENFORCED
    )


def holding(text: str, **queues: int) -> Script:
    """A cluster of sixteen vcores; an application in each queue holds this number of single vcores."""
    script = cluster(text, 16)
    for name, number in queues.items():
        script.ask(name, *(f"{name}{n}" for n in range(number)), vcore=1)
        script.schedule()
    return script


def test_2_8_the_excess_over_the_new_max_is_evicted_after_the_delay() -> None:
    script = holding(one(8), a=6)
    script.configure(one(4))
    assert script.advance(9.9) == []
    assert preempted(script.advance(0.1)) == ["a/a5-0", "a/a4-0"]
    text = "preempting allocations to enforce new max quota for queue : root.a"
    assert {r.message for r in script.messages[-1].message.released} == {text}
    assert preempting(script, "root.a") == {"vcore": 2}
    script.confirm(PREEMPTED)
    assert sum(script.scheduler.partition().root.allocated) == 4
    assert preempting(script, "root.a") == {}
    assert script.advance(100) == []


def test_2_8_victims_by_kind_and_no_queue_falls_below_its_guarantee() -> None:
    script = holding(one(8))
    ask(script, "a", "driver", originator=True, vcore=1)
    ask(script, "a", "opted", itself=False, vcore=1)
    ask(script, "a", "urgent", priority=5, vcore=1)
    ask(script, "a", "plain", vcore=1)
    script.schedule()
    script.configure(one(1))
    assert preempted(script.advance(10)) == ["a/plain-0", "a/urgent-0", "a/opted-0"]
    script = holding(one(8))
    for key, vcore in (("one", 1), ("big", 4), ("big2", 3)):
        script.ask("a", key, vcore=vcore)
    script.schedule()
    script.configure(one(5, guaranteed=5))
    assert preempted(script.advance(10)) == ["a/big2-0"]


def parent(limit: int, y: int = 0) -> str:
    """``x`` and ``z`` have guarantees; ``y`` may have a max of its own."""
    leaves = (
        "x, resources: {guaranteed: {vcore: 2m}}",
        f"y, {DELAY}{most(y)}",
        "z, resources: {guaranteed: {vcore: 2m}}",
    )
    return tree(f"p, {DELAY}{most(limit)}, {below(*leaves)}", partition=ENFORCED)


def test_2_8_a_parent_divides_the_excess_by_usage_above_the_guarantee_with_the_rest() -> None:
    script = holding(parent(16), x=6, y=4, z=2)
    script.configure(parent(8))
    # x and y are four above what is guaranteed to them, z is at its guarantee
    assert preempted(script.advance(10)) == ["x/x5-0", "x/x4-0", "y/y3-0", "y/y2-0"]
    script = holding(parent(16), x=3, y=1, z=3)
    script.configure(parent(6))
    assert len(preempted(script.advance(10))) == 1


def test_2_8_the_parent_is_enforced_before_its_children() -> None:
    script = holding(parent(16, 8), x=2, y=6, z=2)
    script.configure(parent(8, 3))
    assert preempted(script.advance(10)) == ["y/y5-0", "y/y4-0", "y/y3-0"]
    released = [r for _, message in script.messages for r in getattr(message, "released", ())]
    texts = [release.message.rpartition(" ")[2] for release in released]
    assert texts == ["root.p", "root.p", "root.p.y"]


@pytest.mark.parametrize(
    ("amount", "share", "whole", "part"),
    [(1, 1, 2, 0), (3, 1, 2, 2), (5, 1, 2, 2), (7, 1, 2, 4), (10, 1, 3, 3), (10, 2, 3, 7)],
)
def test_2_8_shares_round_half_to_even(amount: int, share: int, whole: int, part: int) -> None:
    assert part_of(amount, share, whole) == part
