"""The journal and the timers: what happened, in order, what is to happen later, and what no longer (V8)."""

from typing import Any

import pytest
from core_steps import later, on_nodes, partitions, run, serve, submit
from core_world import reported

from quadriga.core import Journal, Options, Record, RequestError, Scheduler
from quadriga.core.runtime.timers import Timers
from quadriga.fsm import LIFECYCLES, NODE, InvalidTransition, Row
from quadriga.fsm.table import Edge
from quadriga.si import NodeInfo, NodeRequest
from quadriga.sim.scripted.script import Script, lines


class Thing:
    """Something with a key and an entry counter."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.state = ""
        self.entries = 0


NODE_REQUEST = NodeRequest(rmID="rm", nodes=[NodeInfo(nodeID="n2", action=NodeInfo.CREATE)])


def lived(script: Script) -> Script:
    script.node("n1", vcore=1000)
    submit(script, "app", "a", vcore=1000)
    later(script, 1)
    script.advance(1)
    script.release("app", "a-0")
    script.advance(30)
    return script


def test_who_observes_the_tables_changes_no_record() -> None:
    def asked_twice() -> list[Record]:
        script = lived(Script())
        submit(script, "more", "a", vcore=9000)
        script.ask("more", "a", vcore=8000)  # an update, which changes no state
        return list(script.scheduler.journal)

    alone = asked_twice()
    taken: list[Row] = []
    ends = [lifecycle.observe(taken.append) for lifecycle in LIFECYCLES.values()]
    try:
        observed = asked_twice()
    finally:
        for end in ends:
            end()
    assert observed == alone
    assert any(row.target is None for row in taken)


def test_a_story_is_what_happened_to_one_entity_in_order() -> None:
    script = lived(Script())
    story = script.scheduler.story("application/app")
    assert [(r.time // 10**9, r.source, r.trigger, r.target, r.cause) for r in story] == [
        (0, "New", "ask", "Accepted", "AllocationRequest.asks"),
        (1, "Accepted", "run", "Running", "schedule"),
        (2, "Running", "wait", "Waiting", "AllocationRequest.releases.allocationsToRelease"),
        (32, "Waiting", "complete", "Completed", "timer application.Waiting"),
    ]
    assert {r.key for r in story} == {"application/app"}
    text = str(story[0])
    assert "New --ask--> Accepted" in text and "0.000s" in text
    assert text.endswith("because of AllocationRequest.asks")
    assert script.scheduler.story("application/nobody") == ()
    # among all records, which are numbered, a cause comes before its effect
    records = list(script.scheduler.journal)
    assert [r.seq for r in records] == list(range(len(records)))
    assert [r.time for r in records] == sorted(r.time for r in records)
    keys = [(r.key, r.target) for r in records]
    assert keys.index(("resource_manager/rm", "Running")) == 0
    chain = ("ask/app/a", "Allocated"), ("allocation/app/a-0", "Allocated")
    assert keys.index(chain[0]) < keys.index(chain[1]) < keys.index(("application/app", "Running"))
    # stories of several come newest first
    found = list(script.scheduler.journal.stories(lambda name, _: name in ("application", "ask")))
    assert found == [r for r in records[::-1] if r.key.startswith(("application/", "ask/"))]
    assert len(found) > len(story)


def test_i9_the_story_of_an_id_that_several_use() -> None:
    """Ids are unique within a partition; the others' stories are told apart."""
    one = Script(partitions("default", "other"), rm_id="one")
    lived(one)
    submit(one, "app", "a", partition="other", vcore=1000)
    second = Script(rm_id="two", scheduler=one.scheduler)
    submit(second, "app", "a", vcore=1000)
    story = one.scheduler.story

    def states(key: str, **whose: str) -> list[str]:
        return [record.target for record in story(key, **whose)]

    assert states("application/app", rm_id="one", partition="default")[-1] == "Completed"
    assert states("application/app", rm_id="one", partition="other") == ["Accepted"]
    assert states("application/app", rm_id="two") == ["Accepted"]
    assert states("application/app", partition="other") == ["Accepted"]
    assert len(story("application/app")) == len(story("application/app", rm_id="one")) + 1
    # of everything that a partition holds, and of the resource managers themselves
    assert states("ask/app/a", rm_id="two") == ["Pending"]
    assert states("allocation/app/a-0", partition="default", rm_id="one")
    assert not states("allocation/app/a-0", partition="other")
    assert states("node/n1", rm_id="one") and not states("node/n1", rm_id="two")
    assert states("resource_manager/two", rm_id="two") == ["Running"]
    assert not states("resource_manager/two", rm_id="one")
    assert not states("resource_manager/two", partition="default")
    # nor do the notes of a bug tell more than the story of that entity
    second.node("n1", vcore=1000)
    node = one.scheduler.partition(rm_id="two").nodes["n1"]
    with pytest.raises(InvalidTransition) as bug:
        one.scheduler._kernel.fire(NODE, node, "accept")
    assert len(bug.value.__notes__) == 1


def test_a_journal_of_size_zero_keeps_nothing_and_the_scheduler_works() -> None:
    script = lived(Script(options=Options(journal_size=0)))
    assert script.scheduler.application("app").state == "Completed"
    journal = script.scheduler.journal
    assert (list(journal), len(journal)) == ([], 0)
    assert journal.count == len(lived(Script()).scheduler.journal)
    assert script.scheduler.story("application/app") == ()


@pytest.mark.parametrize("size", [None, 0, 5])
def test_a_journal_in_which_nothing_has_happened_can_be_read(size: int | None) -> None:
    """Before the first registration."""
    scheduler = Scheduler(Options(journal_size=size))
    journal = scheduler.journal
    assert scheduler.story("application/app") == ()
    assert list(journal) == list(journal.copy()) == list(journal.following(0)) == []
    assert list(journal.stories(lambda lifecycle, entity: True)) == journal.entries(0) == []
    assert journal.story_of("node", Thing("n1")) == ()
    assert (len(journal), journal.since, journal.edges()) == (0, None, {})


def test_a_row_that_stays_and_has_effects_is_recorded_one_without_is_not() -> None:
    script = on_nodes(n1=1000, apps=["app"])
    serve(script, "app", "a", timeout_ms=1000, vcore=1000)
    script.advance(1)
    script.node("n1", NodeInfo.UPDATE, vcore=1000)
    assert len(script.scheduler.story("node/n1")) == 1
    script.advance(60)  # sent again (S4)
    steps = [(r.trigger, r.source, r.target) for r in script.scheduler.story("allocation/app/a-0")]
    assert steps == [
        ("allocate", "Planned", "Allocated"),
        ("release", "Allocated", "Releasing"),
        ("release", "Releasing", "Releasing"),
    ]


def rings(timers: Timers, now: int) -> list[str]:
    found = []
    while (timer := timers.pop(now)) is not None:
        found.append(timer.name)
    return found


def test_timers_fire_by_time_and_then_in_the_order_of_their_start() -> None:
    """One that is cancelled, or whose state was left, never does."""
    timers, thing = Timers(), Thing("x")
    for name, delay in (("late", 9), ("first", 3), ("second", 3), ("early", 1)):
        timers.start(0, delay, name, thing)
    cancelled = timers.start(0, 0, "cancelled", thing)
    timers.start(0, 0, "state", thing, entries=thing.entries)
    cancelled.cancel()
    thing.entries += 1
    assert cancelled.dead
    assert timers.next() == 1
    assert rings(timers, 3) == ["early", "first", "second"]
    assert rings(timers, 8) == []
    assert rings(timers, 9) == ["late"]
    assert (timers.next(), len(timers)) == (None, 0)


@pytest.mark.parametrize("call", ["apply", "schedule", "advance", "disconnect", "inspect"])
def test_time_that_goes_back_is_refused_and_nothing_happens(call: str) -> None:
    script = on_nodes(n1=1000)
    submit(script, "app", "a", vcore=1000)
    script.release_ask("app", "a")
    script.advance(20)
    scheduler = script.scheduler
    # at the very instant of the timer of Waiting, which only advance() fires
    scheduler.schedule(30 * 10**9)
    before = list(scheduler.journal)
    actions: dict[str, Any] = {
        "apply": lambda now: scheduler.apply(NODE_REQUEST, now),
        "schedule": scheduler.schedule,
        "advance": scheduler.advance,
        "disconnect": lambda now: scheduler.disconnect("rm", now),
        "inspect": scheduler.inspect,
    }
    with pytest.raises(RequestError, match="went back"):
        actions[call](25 * 10**9)
    assert list(scheduler.journal) == before
    assert scheduler.now == 30 * 10**9
    # and the timer has not been lost
    (output,) = scheduler.advance(30 * 10**9)
    assert output.message.updated[0].state == "Completed"


def test_what_was_due_before_a_message_happens_before_it() -> None:
    script = Script(extra={"event.trackingEnabled": "false"})
    submit(script, "app", "a", vcore=1000)
    script.release_ask("app", "a")
    # 40 s later, without anybody having called advance(): the 30 s of Waiting are over
    outputs = script.scheduler.apply(NODE_REQUEST, 40 * 10**9)
    said = [line for output in outputs for line in lines(output.message)]
    assert said[0] == "app Completed (complete)"
    assert outputs[0].message.updated[0].stateTransitionTimestamp == 30 * 10**9


@pytest.mark.parametrize("whole", [True, False], ids=["application", "allocation"])
def test_v8_the_run_limit_of_what_has_ended_is_cancelled(whole: bool) -> None:
    script = on_nodes(extra={"event.trackingEnabled": "false"}, n1=2000)
    hour = 3_600_000
    script.app("app", timeout_ms=hour if whole else 0)
    serve(script, "app", "long", vcore=1000)
    serve(script, "app", "a", vcore=1000, timeout_ms=0 if whole else hour)
    assert script.scheduler.next_deadline() == 3600 * 10**9
    if whole:
        script.remove_app("app")
        # what is left is the expiry of the record, 72 hours away
        assert script.scheduler.next_deadline() == 72 * 3600 * 10**9
    else:
        script.release("app", "a-0")
        assert script.scheduler.next_deadline() is None


def test_x25_a_placeholder_recovered_after_the_soft_timeout_is_given_back() -> None:
    script = on_nodes(n1=1000)
    script.app("gang", gang={"vcore": 2000}, timeout_ms=1000)
    serve(script, "gang", "p0", "p1", vcore=1000, group="g", placeholder=True)
    script.advance(1)
    assert script.scheduler.application("gang").state == "Resuming"
    late = reported("p9", "gang", taskGroupName="g", placeholder=True, vcore=1000)
    heard = script.node("n2", vcore=1000, existing=[late])
    assert heard == ["released gang/p9-0 TIMEOUT", "accepted node n2"]
    assert script.confirm()[-1] == "gang Accepted (resumed)"


@pytest.mark.parametrize("size", [None, 4, 3, 1])
def test_times_and_causes_are_those_of_each_record_however_it_is_read(size: int | None) -> None:
    journal, thing, edge = Journal(size), Thing("a"), Edge("thing", "Here", "go", "There")
    said = [(0, "a"), (0, "a"), (0, "b"), (7, "b"), (7, "b"), (9, "c"), (9, "c")]
    for time, cause in said:
        journal.add(time, thing, edge, cause)
    journal.add_all(9, [(thing, edge), (), (thing, edge)], "d")
    all_said = [*enumerate([*said, (9, "d"), (9, "d")])]
    kept = [(seq, *rest) for seq, rest in all_said][-size if size else 0 :]
    assert [(r.seq, r.time, r.cause) for r in journal] == kept
    assert [(r.seq, r.time, r.cause) for r in journal.copy()] == kept
    newest_first = journal.stories(lambda name, _: True)
    assert [(r.seq, r.time, r.cause) for r in newest_first] == kept[::-1]
    for seq in range(11):
        late = [each for each in kept if each[0] >= seq]
        assert [(r.seq, r.time, r.cause) for r in journal.following(seq)] == late
        assert [(e[0], e[1], e[4]) for e in journal.entries(seq)] == late
    assert journal.since == kept[0][1]


def test_edges_are_counted_among_what_is_remembered() -> None:
    script = Script(scheduler=Scheduler(Options(journal_size=3)))
    assert script.scheduler.journal.since == 0
    for name in ("n1", "n2", "n3", "n4"):
        script.advance(1)
        script.node(name, vcore=4000)
    assert script.scheduler.journal.edges() == {("node", "New", "accept", "Schedulable"): 3}
    assert script.scheduler.journal.since == 2 * 10**9
    assert script.scheduler.story("node/n1") == ()
    (record,) = script.scheduler.story("node/n2")
    assert (record.seq, script.scheduler.journal.count) == (2, 5)


def test_i36_an_explanation_without_predicates_tells_what_they_said_last() -> None:
    script = on_nodes(n1=4000)
    asked: list[str] = []

    def refuse(key: str, node: str, allocate: bool) -> str:
        asked.append(node)
        return "taint"

    script.scheduler.set_predicate("rm", refuse)
    run(script, "app-1", "pod", vcore=1000)
    asked.clear()
    silent = script.scheduler.explain("app-1", "pod", predicates=False)
    assert asked == []
    assert silent.reasons == ("the resource manager refused it on every node",)
    assert "1 node: taint" in script.scheduler.explain("app-1", "pod").reasons
    assert asked == ["n1"]
