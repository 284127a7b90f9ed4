"""What readers elsewhere make of the journal: a copy, and what is counted and found in it; and an
explanation for which nobody outside is asked."""

from __future__ import annotations

import pytest
from core_steps import on_nodes, run

from quadriga.core import Journal, Options, Scheduler
from quadriga.fsm.table import Edge
from quadriga.sim.script import Script


class Thing:
    """Something with a key."""

    key, state, entries = "thing", "", 0


def test_a_copy_stays_as_it_was_while_the_journal_goes_on() -> None:
    script = on_nodes(n1=4000)
    journal = script.scheduler.journal
    copy, before = journal.copy(), tuple(journal)
    script.node("n2", vcore=4000)
    assert tuple(copy) == before
    assert (len(copy), copy.count) == (len(before), len(before))
    assert len(journal) > len(copy)


@pytest.mark.parametrize("size", [None, 4, 3, 1])
def test_times_and_causes_are_those_of_each_record_however_it_is_read(size: int | None) -> None:
    journal, edge = Journal(size), Edge("thing", "Here", "go", "There")
    said = [(0, "a"), (0, "a"), (0, "b"), (7, "b"), (7, "b"), (9, "c"), (9, "c")]
    for time, cause in said:
        journal.add(time, Thing(), edge, cause)
    journal.add_all(9, [(Thing(), edge), (), (Thing(), edge)], "d")
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


def test_stories_of_several_come_newest_first() -> None:
    script = on_nodes(n1=4000)
    run(script, "app-1", "pod", vcore=1000)
    found = list(script.scheduler.journal.stories(lambda name, _: name in ("application", "ask")))
    assert [(record.key, record.trigger) for record in found] == [
        ("application/app-1", "run"),
        ("ask/app-1/pod", "allocate"),
        ("application/app-1", "ask"),
        ("ask/app-1/pod", "submit"),
    ]
    assert found == [each for each in reversed(tuple(script.scheduler.journal)) if each in found]


def test_edges_are_counted_among_what_is_remembered() -> None:
    script = Script(scheduler=Scheduler(Options(journal_size=3)))
    assert script.scheduler.journal.since == 0
    for name in ("n1", "n2", "n3", "n4"):
        script.advance(1)
        script.node(name, vcore=4000)
    edges = script.scheduler.journal.edges()
    assert edges == {("node", "New", "accept", "Schedulable"): 3}
    assert script.scheduler.journal.since == 2 * 10**9
    assert Scheduler().journal.since is None


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
    assert silent.reasons == ("the resource manager refused it on every node (I36)",)
    assert "1 node: taint" in script.scheduler.explain("app-1", "pod").reasons
    assert asked == ["n1"]
