"""Atomic admission: gangs are placed in one step, and one at a time keeps nodes (Q1 to Q5)."""

from typing import Any

import pytest
from core_world import later, launch, news, queues, reported, scripted, serve, single
from event_lines import RecordReader

from quadriga.core import Options
from quadriga.si import NodeInfo
from quadriga.si.constants import TAG_CREATION_TIME
from quadriga.sim.scripted.script import Script

ATOMIC = queues(
    *"default small limited".split(),
    root="properties: {gang.admission: atomic, gang.gather.after: 1m}",
    small="resources: {max: {vcore: 3m}}",
    limited="limits: [{limit: each, users: ['*'], maxresources: {vcore: 4m}, maxapplications: 2}]",
)


@pytest.fixture
def script() -> Script:
    """Two nodes of four vcores."""
    return two_nodes(ATOMIC)


def two_nodes(config: str, **options: str) -> Script:
    return scripted(
        config, nodes=("n1", "n2"), options=Options(journal_size=None, **options), vcore=4
    )


def gang(script: Script, name: str, members: int, vcore: int = 2, **more: Any) -> None:
    script.app(name, gang={"vcore": members * vcore}, **more)
    keys = [f"{name}-p{at}" for at in range(members)]
    script.ask(name, *keys, group="g", placeholder=True, vcore=vcore)


def waits(reader: RecordReader) -> list[str]:
    """The texts of the gangs' records (Q8), each after its application."""
    lines = reader.new_lines("APP NONE")
    return [line.removeprefix("APP NONE ") for line in lines if "(Gang " in line]


def states(script: Script, name: str) -> list[str]:
    return [record.target for record in script.scheduler.story(f"gang/{name}")]


@pytest.mark.parametrize(
    ("root", "options", "queue", "held"),
    [
        ("{}", {}, "default", 0),
        ("{}", {}, "other", 0),
        ("{}", {"gang_admission": "incremental"}, "default", 2),
        ("{gang.admission: incremental}", {}, "default", 2),
        ("{gang.admission: atomic}", {"gang_admission": "incremental"}, "default", 0),
    ],
)
def test_q1_gangs_are_placed_whole_unless_the_queue_or_the_scheduler_says_otherwise(
    root: str, options: dict[str, str], queue: str, held: int
) -> None:
    """Two of four members fit. The property is inherited; X16 counts the cluster's room."""
    whole = "properties: {gang.admission: whole}"
    script = two_nodes(
        queues("default", "other", root=f"properties: {root}", other=whole), **options
    )
    single(script, "s", vcore=4)
    reader = RecordReader(script)
    gang(script, "g", 4, queue=queue)
    assert len(news(script.schedule())) == held
    assert not (held and waits(reader))  # those that are placed one by one have no such record (Q8)


def test_q2_q8_without_a_complete_plan_nothing_is_held(script: Script) -> None:
    """It is tried again when room has come back."""
    assert single(script, "s", "t", vcore=1) == ["s/a-0 on n1", "t/a-0 on n1"]
    reader = RecordReader(script)
    gang(script, "g", 4)
    assert news(script.schedule()) == []
    assert waits(reader) == [
        "g (Gang waits for nodes: 3 of 4 members could start now, no room for 1 of map[vcore:2])"
    ]
    app = script.scheduler.application("g")
    assert (app.gang.lacks, app.gang.outstanding, app.gang.missing) == ("nodes", 4, 1)
    assert told(script, "g", "g-p0") == (
        "3 of 4 members of the gang could start now, and they are placed together or not at all."
    )
    assert single(script, "u", vcore=4) == ["u/a-0 on n2"]  # room that the gang does not hold
    for name in "us":
        script.release(name, "a-0")
        assert news(script.schedule()) == []
    script.release("t", "a-0")
    assert len(news(script.schedule(1))) == 4  # in one decision
    assert states(script, "g") == ["Placed"]
    assert waits(reader) == ["g (Gang is placed: all 4 outstanding members)"]


@pytest.mark.parametrize(
    ("queue", "lacks", "text"),
    [
        ("small", "quota", "does not fit in queue 'root.small'"),
        ("limited", "limit", "exceeds the available quota of user 'user' in queue 'root.limited'"),
    ],
)
def test_q2_q8_a_quota_or_limit_has_room_for_all_members_or_none_is_placed(
    script: Script, queue: str, lacks: str, text: str
) -> None:
    app = f"root.{queue}"
    launch(script, "s", "a", vcore=3 if queue == "limited" else 2, queue=app)
    reader = RecordReader(script)
    gang(script, "g", 2, vcore=1, queue=app)
    assert news(script.schedule()) == []
    assert waits(reader) == [f"g (Gang {text} (requested map[vcore:2], available map[vcore:1]))"]
    found = script.scheduler.application("g").gang
    assert (found.gated, found.lacks) == (queue == "small", lacks)
    script.release("s", "a-0")
    assert len(news(script.schedule())) == 2


def test_q2_a_limit_that_admits_no_further_application_is_waited_for(script: Script) -> None:
    for name in "st":
        script.app(name, queue="root.limited")
        script.ask(name, "a", vcore=1)
    assert len(news(script.schedule())) == 2
    gang(script, "g", 2, vcore=1, queue="root.limited")
    assert news(script.schedule()) == []
    script.release("s", "a-0")  # the application has nothing left to do and no longer counts
    assert len(news(script.schedule())) == 2


def test_q9_the_start_of_a_gang_that_has_waited_is_planned(script: Script) -> None:
    """That of one at a time; the others are told of which one. Of what runs nothing is known."""
    single(script, "s", "t", vcore=3)
    for name in ("g", "h"):
        gang(script, name, 2, vcore=4)
    assert news(script.schedule()) == []
    later(script, 60)
    assert (states(script, "g"), states(script, "h")) == (["Gathering"], [])
    assert told(script, "h", "h-p0").endswith("; the start of the gang g is planned on 2 nodes.")
    assert told(script, "g", "g-p0").endswith(
        "; its start is planned in 60 s on n1, n2, which s, t use until then (expected ends: 2 unknown), and "
        "the budget for idle capacity has 3.36 hours of the whole cluster left."
    )
    assert single(script, "u", vcore=1) == []  # it is not expected to end before
    script.release("s", "a-0")
    assert news(script.schedule()) == []
    script.release("t", "a-0")
    assert news(script.schedule()) == ["g/g-p0-0 on n1", "g/g-p1-0 on n2"]
    script.schedule()
    assert (states(script, "g"), states(script, "h")) == (["Gathering", "Placed"], ["Gathering"])
    assert planned(script) == ["n1", "n2"]


def test_q9_a_gang_that_loses_a_node_of_its_plan_is_planned_on_another_one() -> None:
    """Where there is none it is no longer protected, and the rest goes on."""
    script = scripted(ATOMIC, nodes=("n1", "n2", "n3"), options=Options(journal_size=None), vcore=4)
    single(script, "s", "t", "u", vcore=3)
    gang(script, "g", 2, vcore=4)
    script.schedule()
    later(script, 60)
    first = planned(script)[0]
    script.node(first, NodeInfo.DECOMISSION)
    script.schedule()
    left = sorted({"n1", "n2", "n3"} - {first})
    assert (states(script, "g"), planned(script)) == (["Gathering"], left)
    script.node(*(left[0], NodeInfo.DECOMISSION))
    script.schedule()
    assert (states(script, "g"), planned(script)) == (["Gathering", "Queued"], [])
    script.node("n9", vcore=4)
    for name in "stu":
        script.release(name, "a-0")
    assert [line.split()[-1] for line in news(script.schedule())] == [left[1], "n9"]


def planned(script: Script) -> list[str]:
    plan = script.scheduler.partition().node_index.planned
    return sorted(node.node_id for node in plan.needs) if plan is not None else []


def test_q3_g12_a_gang_larger_than_the_cluster_asks_for_nodes_and_does_not_gather(
    script: Script,
) -> None:
    gang(script, "g", 3, vcore=4)
    script.schedule()
    hints = [line for line in script.advance(1) if "FAILED" in line]
    assert [line.split()[1] for line in hints] == ["g/g-p0", "g/g-p1", "g/g-p2"]
    later(script, 60)
    assert states(script, "g") == []
    script.node("n3", vcore=4)
    assert len(news(script.schedule())) == 3


def test_q8_there_is_one_record_until_the_gang_lacks_something_else(script: Script) -> None:
    for name in "stu":
        single(script, name, vcore=2)
    reader = RecordReader(script)
    gang(script, "g", 2, 4)
    for _ in range(2):
        script.schedule()
        script.release("s", "a-0")  # one node has room, and an attempt fails as the last one did
    assert len(waits(reader)) == 1
    single(script, "v", vcore=4)
    assert waits(reader) == []
    serve(script, "g", "late", group="h", placeholder=True, vcore=3)
    assert waits(reader) == [
        "g (Gang waits for nodes: 0 of 3 members could start now, "
        "no room for 2 of map[vcore:4], no room for 1 of map[vcore:3])"
    ]


def test_q8_records_follow_the_gang_that_is_protected(script: Script) -> None:
    """Its start is planned, and comes no nearer; then the next gang is protected."""
    single(script, "s", vcore=3)
    for name in ("g", "h"):
        gang(script, name, 2, 4)
    script.schedule()
    reader = RecordReader(script)

    def gathers(name: str, start: str, left: str) -> str:
        plan = f"its start is planned in {start} on n1, n2, which s use until then (expected ends: 1 unknown)"
        budget = f"and the budget for idle capacity has {left} hours of the whole cluster left"
        return f"APP NONE {name} (Gang starts to gather: 1 of 2 members fit now, {plan}, {budget})"

    later(script, 60)
    assert reader.new_lines("APP NONE") == [gathers("g", "60 s", "3.36")]
    later(script, 3600)
    assert reader.new_lines("APP NONE") == [
        "APP NONE g (Gang gives its nodes back (2): its planned start came no nearer in all its patience)",
        gathers("h", "1.0 h", "2.73"),
    ]


def test_q5_q8_after_a_soft_timeout_the_members_start_together(script: Script) -> None:
    """Another placeholder timeout later the gang goes on with the members that have asked."""
    reader = RecordReader(script)
    for name in ("g", "h"):
        script.app(name, gang={"vcore": 8}, timeout_ms=10_000)
        serve(script, name, "p0", group="g", placeholder=True, vcore=4)  # the other does not come
        assert waits(reader) == [
            f"{name} (Gang waits for its asks: announced map[vcore:8], asked for map[vcore:4] so far)"
        ]
    script.advance(10)
    single(script, "s", vcore=1)
    assert news(serve(script, "g", "r0", "r1", group="g", vcore=4)) == []
    assert [line.split(":")[0] for line in waits(reader)] == ["g (Gang waits for nodes"]
    script.release("s", "a-0")
    assert len(news(script.schedule())) == 2
    script.remove_app("g")
    assert news(serve(script, "h", "r0", group="g", vcore=4)) == []
    assert told(script, "h", "r0").startswith("The gang waits for its asks: ")
    assert news(later(script, 10)) == ["h/r0-0 on n1"]


def told(script: Script, app: str, ask: str) -> str:
    """The verdict about an ask."""
    return script.scheduler.explain(app, ask).verdict


def test_q2_a_gang_does_not_exceed_what_all_nodes_have(script: Script) -> None:
    """One node holds more than it has, so others have room that no quota leaves."""
    single(script, "s", vcore=4)
    script.node("n1", NodeInfo.UPDATE, vcore=1)
    gang(script, "g", 4, vcore=1)
    assert news(script.schedule()) == []
    assert script.scheduler.application("g").gang.lacks == "quota"
    assert script.scheduler.partition().nodes["n2"].available[-1] == 4
    script.node("n1", NodeInfo.UPDATE, vcore=4)
    assert len(news(script.schedule())) == 4


def two_short_gangs(*, priority: int = 0, elastic: bool = False) -> Script:
    """Gangs a and b hold a node and lack a member each, though each would fit the other two nodes."""
    script = Script(ATOMIC, options=Options(journal_size=None))
    tags = {"gang.elastic": "true"} if elastic else {}
    for name, own in (("a", ("n1", "n3")), ("b", ("n2", "n4"))):
        for node in own:
            script.node(node, vcore=4)
        gang(script, name, 2, vcore=4, timeout_ms=-1, tags=tags)
        assert len(news(script.schedule())) == 2
    priorities = {"a": 0, "b": priority}
    for name, prior in priorities.items():
        serve(script, name, f"{name}-r0", group="g", vcore=4, priority=prior)
    script.confirm()
    script.schedule()
    for node in ("n3", "n4"):
        script.node(node, NodeInfo.DECOMISSION)
    for name, prior in priorities.items():
        script.ask(name, f"{name}-r1", group="g", vcore=4, priority=prior)
    assert news(script.schedule()) == []
    return script


def released(lines: list[str]) -> list[str]:
    return [line for line in lines if line.endswith("PREEMPTED_BY_SCHEDULER")]


def test_q6_of_running_gangs_that_wait_for_each_other_the_last_is_preempted() -> None:
    """If that helps: a node that drains is of no use."""
    script = two_short_gangs()
    script.node("n2", NodeInfo.DRAIN_NODE)
    assert released(script.advance(600)) == []
    script.node("n2", NodeInfo.DRAIN_TO_SCHEDULABLE)
    assert released(script.advance(60)) == ["released b/b-r0-0 PREEMPTED_BY_SCHEDULER"]
    script.confirm()
    script.ask("b", "b-again", group="g", vcore=4)  # the resource manager starts its pod again
    assert news(script.schedule()) == ["a/a-r1-0 on n2"]


def test_q6_the_gang_of_higher_priority_goes_first() -> None:
    script = two_short_gangs(priority=1)
    assert released(script.advance(59)) == []
    assert released(script.advance(1)) == ["released a/a-r0-0 PREEMPTED_BY_SCHEDULER"]


@pytest.mark.parametrize("elastic", [True, False])
def test_q6_gangs_with_enough_members_are_left_alone(elastic: bool) -> None:
    """Because they can use fewer, or got those that they lacked."""
    script = two_short_gangs(elastic=elastic)
    if not elastic:
        script.node("n5", vcore=4)
        assert len(news(script.schedule())) == 1
    assert released(script.advance(600)) == []


# -- the timeout of a gang that waits whole (D328) -------------------------------------------------

MINUTE = 60


def waiting_gang(style: str, root: str = "", **more: Any) -> Script:
    """Gang g with a timeout of a minute and no room: one of its two members is there already."""
    script = two_nodes(queues("default", root=f"properties: {{gang.admission: atomic{root}}}"))
    single(script, "s", vcore=3)
    submit_waiting(script, style, **more)
    return script


def submit_waiting(script: Script, style: str, **more: Any) -> None:
    gang(script, "g", 2, vcore=4, style=style, timeout_ms=MINUTE * 1000, **more)
    script.ask("g", "real", group="g", vcore=4)
    assert news(script.schedule()) == []


FROM_ATTEMPT = ", gang.timeout.from: attempt"
ATTEMPT, PLACEHOLDER = ({"gang.timeout.from": each} for each in ("Attempt", "placeholder"))


@pytest.mark.parametrize(
    ("root", "tags"), [("", {}), ("", {"gang.timeout.from": "soon"}), (FROM_ATTEMPT, PLACEHOLDER)]
)
@pytest.mark.parametrize("style", ["Soft", "Hard"])
def test_d328_waiting_does_not_count(style: str, root: str, tags: dict[str, str]) -> None:
    """Then the timeout counts from the first placeholder."""
    script = waiting_gang(style, root, tags=tags)
    assert len(script.scheduler.notes) == ("soon" in tags.values())
    script.advance(48 * 60 * MINUTE)
    script.release("s", "a-0")
    assert len(news(script.schedule())) == 2
    assert script.scheduler.application("g").state == "Running"
    script.advance(MINUTE - 1)
    assert "released g/g-p1-0 TIMEOUT" in script.advance(1)


@pytest.mark.parametrize(("root", "tags"), [("", ATTEMPT), (FROM_ATTEMPT, {})])
@pytest.mark.parametrize(
    ("style", "states"), [("Soft", ["Resuming", "Accepted"]), ("Hard", ["Killing", "Killed"])]
)
def test_d328_the_timeout_counts_from_the_first_failed_attempt(
    style: str, states: list[str], root: str, tags: dict[str, str]
) -> None:
    """Attempts that fail later do not begin it anew. The members of a Soft gang are placed one by one then."""
    script = waiting_gang(style, root, tags=tags)
    script.advance(MINUTE - 1)
    assert single(script, "t", vcore=1) == ["t/a-0 on n1"]
    script.release("t", "a-0")
    script.schedule()
    heard = script.advance(1)
    assert [line.split()[1] for line in heard if line.startswith("g ")] == states
    assert "released ask g/g-p0 TIMEOUT" in heard
    assert news(script.schedule()) == (["g/real-0 on n2"] if style == "Soft" else [])
    heard = script.advance(60 * MINUTE)  # one timeout, once
    assert not [line for line in heard if line.startswith("g ")]


def test_d328_a_placed_gang_has_its_timeout_again() -> None:
    """For its members to take over: the time that it waited is not deducted."""
    script = waiting_gang("Hard", FROM_ATTEMPT)
    script.advance(MINUTE - 1)
    script.release("s", "a-0")
    assert len(news(script.schedule())) == 2
    assert "TIMEOUT" not in " ".join(script.advance(MINUTE - 1))
    assert "released g/g-p1-0 TIMEOUT" in script.advance(1)


@pytest.mark.parametrize(("age", "left"), [(None, MINUTE), (20, MINUTE - 20), (3600, 0.001)])
def test_d328_after_a_restart_the_age_of_the_application_is_deducted(
    age: int | None, left: float
) -> None:
    """The resource manager registers anew and tells when the application was created, or does not."""
    before = waiting_gang("Hard", FROM_ATTEMPT)
    before.advance(7200)
    config = queues("default", root=f"properties: {{gang.admission: atomic{FROM_ATTEMPT}}}")
    script = Script(config, scheduler=before.scheduler)
    script.node("n1", vcore=4)
    tags = {} if age is None else {TAG_CREATION_TIME: f"{7200 - age}"}
    submit_waiting(script, "Hard", tags=tags)
    script.advance(left - 0.001)
    assert script.scheduler.application("g").state == "Accepted"
    assert "g Killing (ResourceReservationTimeout)" in script.advance(0.001)


def test_d328_a_gang_whose_placeholder_is_recovered_has_the_timeout_of_that() -> None:
    script = two_nodes(
        queues("default", root=f"properties: {{gang.admission: atomic{FROM_ATTEMPT}}}")
    )
    script.app("g", gang={"vcore": 12}, style="Hard", timeout_ms=MINUTE * 1000)
    script.node(
        "n3",
        existing=[reported("g-p9", nodeID="n3", taskGroupName="g", placeholder=True, vcore=4)],
        vcore=4,
    )
    script.advance(30)
    script.ask("g", "g-p0", group="g", placeholder=True, vcore=5)
    assert news(script.schedule()) == []
    assert "g Killing (ResourceReservationTimeout)" in script.advance(30)


@pytest.mark.parametrize("admission", ["atomic", "whole"])
def test_d328_a_gang_that_waits_for_quota_times_out(admission: str) -> None:
    properties = f"properties: {{gang.admission: {admission}{FROM_ATTEMPT}}}"
    script = two_nodes(
        queues("default", default=f"{properties}, resources: {{max: {{vcore: 8m}}}}")
    )
    single(script, "s", vcore=3)
    submit_waiting(script, "Hard")
    assert script.scheduler.application("g").gang.lacks == "quota"
    script.advance(MINUTE - 1)
    assert script.scheduler.application("g").state == "Accepted"
    assert "g Killing (ResourceReservationTimeout)" in script.advance(1)
