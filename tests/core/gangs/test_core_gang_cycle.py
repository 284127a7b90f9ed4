"""Gangs in the scheduling cycle (1.2, 5.13): holding, replacing, finalising."""

from typing import Any

import pytest
from core_world import member, running_gang, serve, state

from quadriga.si import AllocationResponse, NodeInfo, TerminationType
from quadriga.sim.scripted.script import Script

REPLACED = TerminationType.PLACEHOLDER_REPLACED


def books(script: Script, node: str = "n1") -> dict[str, int]:
    """What everybody thinks is in use."""
    partition = script.scheduler.partition()
    app = script.scheduler.application("g")
    return {
        "queue": app.queue.allocated[0],
        "root": partition.root.allocated[0],
        "node": partition.nodes[node].allocated[0],
        "user": partition.users["user"].usage[0],
        "real": app.allocated[0],
        "placeholders": app.allocated_placeholder[0],
        "pending": app.pending[0],
    }


@pytest.mark.parametrize("real", [True, False])
def test_g20_g21_g24_g25_it_is_accepted_with_the_first_ask_and_runs_with_the_last_placeholder(
    script: Script, real: bool
) -> None:
    """Nothing pending does not mean that all asks have come. A real ask that comes first loses nothing."""
    script.app("g", gang={"memory": 3})
    assert state(script) == "New"
    if real:
        assert script.ask("g", "real", group="tg", memory=1) == ["g Accepted (ask)"]
    heard = script.ask("g", "p0", "p1", group="tg", placeholder=True, memory=1)
    assert heard == ([] if real else ["g Accepted (ask)"])
    for uuid in ("p0-0", "p1-0"):
        assert script.schedule(1) == [f"new g/{uuid} on n1 placeholder of tg"]
        assert state(script) == "Accepted"
    assert script.schedule() == []
    heard = serve(script, "g", "p2", group="tg", placeholder=True, memory=1)
    assert heard[0] == "g Running (run)"
    if real:
        assert heard[-1] == "released g/p0-0 PLACEHOLDER_REPLACED"
        assert script.confirm() == ["new g/real-0 on n1"]


def test_g22_x42_real_asks_are_held_while_placeholders_are_missing(script: Script) -> None:
    """The allocation that completes the gang makes it run, before any real member is placed."""
    script.app("g", gang={"memory": 30})
    script.ask("g", "p0", "p1", "p2", group="tg", placeholder=True, memory=10)
    script.ask("g", "member", group="tg", memory=10)
    assert len(serve(script, "g", "other", memory=1)) == 2
    assert script.schedule() == []
    for key in ("member", "other"):
        assert any("held until" in reason for reason in script.scheduler.explain("g", key).reasons)
    script.node("n2", memory=11)
    assert script.schedule() == [
        "g Running (run)",
        "new g/p2-0 on n2 placeholder of tg",
        "released g/p0-0 PLACEHOLDER_REPLACED",
        "new g/other-0 on n2",
    ]


def test_g23_x37_task_groups_replace_their_own_placeholders(script: Script) -> None:
    """Also where the member is larger than its own and smaller than the others."""
    script.app("g", gang={"memory": 5})
    script.ask("g", "a0", "a1", group="a", placeholder=True, memory=1)
    serve(script, "g", "b0", group="b", placeholder=True, memory=3)
    script.ask("g", "b-real", group="b", memory=3)
    assert script.schedule() == ["released g/b0-0 PLACEHOLDER_REPLACED"]
    script.ask("g", "a-real", group="a", memory=1)
    script.ask("g", "a-large", group="a", memory=2)
    replaced = [f"released g/a{n}-0 PLACEHOLDER_REPLACED" for n in (0, 1)]
    assert script.schedule() == replaced
    assert script.confirm() == [f"new g/{key}-0 on n1" for key in ("b-real", "a-real", "a-large")]
    groups = script.scheduler.application("g").gang.task_groups
    assert [(g.count, g.replaced) for g in groups.values()] == [(2, 2), (1, 1)]


def test_g26_g27_only_real_asks_of_the_group_take_over_its_placeholders(script: Script) -> None:
    """A member names its task group and is no placeholder; a flag without a group is none (I18)."""
    running_gang(script)
    script.ask("g", "stranger", group="unknown", memory=1)
    script.ask("g", "flag-only", placeholder=True, memory=1)
    script.ask("g", "none", memory=1)
    assert member(script, "member") == [
        "released g/p0-0 PLACEHOLDER_REPLACED",
        *(f"new g/{key}-0 on n1" for key in ("stranger", "flag-only", "none")),
    ]
    assert script.confirm() == ["new g/member-0 on n1"]


def test_g10_g27_g34_x36_released_placeholders_are_not_chosen_again(script: Script) -> None:
    """One for one; one message may ask for several back. A gang is a guarantee, not a maximum."""
    running_gang(script, count=2)
    assert member(script, "m0", "m1", "m2") == [
        "released g/p0-0 PLACEHOLDER_REPLACED",
        "released g/p1-0 PLACEHOLDER_REPLACED",
        "new g/m2-0 on n1",  # nothing is left for the third: it goes the normal way (X36)
    ]
    messages = [each for _, each in script.messages if isinstance(each, AllocationResponse)]
    assert [len(each.released) for each in messages if each.released] == [2]
    assert script.confirm() == ["new g/m0-0 on n1", "new g/m1-0 on n1"]


def test_g28_placeholder_is_marked_not_released(script: Script) -> None:
    running_gang(script, count=2, size=5)
    before = books(script)
    assert member(script, "real", size=5) == ["released g/p0-0 PLACEHOLDER_REPLACED"]
    assert books(script) == before
    app = script.scheduler.application("g")
    assert app.placeholders["p0-0"].state == "Releasing"
    assert not app.allocations


def test_g29_g30_g31_g33_the_ask_is_parked_until_the_confirmation(script: Script) -> None:
    """5.13, with 20 and 6: the confirmation gives 14 back."""
    running_gang(script, count=1, size=20)
    script.app("other")
    script.ask("other", "x", memory=14)
    before = books(script)
    assert (before["queue"], before["node"], before["user"]) == (20, 20, 20)
    member(script, "real", size=6)
    app = script.scheduler.application("g")
    assert app.asks["real"].state == "Parked"
    for _ in range(3):
        assert script.schedule() == []
    assert script.scheduler.explain("g", "real").reasons[0] == (
        "takes over placeholder p0-0 on n1, whose release has yet to be confirmed"
    )
    assert "released g/p0-0 PLACEHOLDER_REPLACED" in script.advance(60)  # the confirmation is lost
    assert not any("g/real" in line for line in script.log)
    assert script.confirm() == ["new g/real-0 on n1"]
    after = books(script)
    gone = dict.fromkeys(("queue", "root", "node", "user"), -14)
    changed = {**gone, "real": 6, "placeholders": -20, "pending": 0}
    assert {name: after[name] - before[name] for name in after} == changed
    assert not app.asks
    assert app.allocations["real-0"].state == "Allocated"
    (*_, ended) = script.scheduler.story("ask/g/real")
    assert (ended.source, ended.target) == ("Parked", "Allocated")
    (*_, last) = script.scheduler.story("allocation/g/p0-0")
    assert last.target == "Replaced"
    assert script.release("g", "p0-0", REPLACED) == []
    assert any("unknown allocation 'p0-0'" in text for _, text in script.scheduler.notes)
    assert "new other/x-0 on n1" in script.schedule()  # it is free at once


def test_x37_s1_a_larger_member_takes_over_one_placeholder(script: Script) -> None:
    """5.13: placeholder 6, real 10. The other placeholder stays for its own member, here a smaller one."""
    running_gang(script, count=2, size=6)
    assert member(script, "real", size=10) == ["released g/p0-0 PLACEHOLDER_REPLACED"]
    said: Any = script.messages[-1].message
    assert said.released[0].message == "replacing allocation with UUID: real-0"
    assert script.schedule() == []
    assert script.confirm() == ["new g/real-0 on n1"]
    (group,) = script.scheduler.application("g").gang.task_groups.values()
    assert (group.timed_out, group.replaced, group.allocated) == (0, 1, 1)
    assert member(script, "small", size=4) == ["released g/p1-0 PLACEHOLDER_REPLACED"]
    assert script.confirm() == ["new g/small-0 on n1"]
    assert (group.count, group.replaced, group.timed_out) == (2, 2, 0)


@pytest.mark.parametrize(
    ("placeholder", "real"),
    [
        ({"memory": 6, "vcore": 6}, {"memory": 1, "vcore": 7}),
        ({"memory": 6}, {"memory": 6, "vcore": 1}),
    ],
    ids=["one type only", "a type that the placeholder lacks"],
)
def test_x37_larger_in_one(
    script: Script, placeholder: dict[str, int], real: dict[str, int]
) -> None:
    """One quantity too large is enough, however small the others are: another node has to do."""
    script.node("n2", memory=20, vcore=20)
    script.app("g", gang=placeholder)
    serve(script, "g", "p", group="tg", placeholder=True, **placeholder)
    assert serve(script, "g", "real", group="tg", **real) == ["released g/p-0 PLACEHOLDER_REPLACED"]
    assert script.confirm() == ["new g/real-0 on n2"]


def test_g32_a_member_that_fits_nowhere_asks_for_nodes(script: Script) -> None:
    running_gang(script, count=1)
    script.scheduler.set_predicate("rm", lambda key, node, allocate: "no")
    assert member(script, "real") == []
    assert script.advance(1) == ["FAILED g/real"]
    assert script.advance(5) == []  # once is enough
    assert script.scheduler.application("g").placeholders["p0-0"].state == "Allocated"
    script.scheduler.set_predicate("rm", None)
    assert script.schedule() == ["released g/p0-0 PLACEHOLDER_REPLACED"]


def test_g35_x13_one_ask_for_each_member_or_for_all(script: Script) -> None:
    """maxAllocations is served natively, one at a time (G29); a second use of a key is a new ask."""
    script.app("g", gang={"memory": 4})
    assert len(serve(script, "g", "p", group="tg", placeholder=True, repeat=4, memory=1)) == 5
    member(script, "one")
    assert script.confirm() == ["new g/one-0 on n1"]
    script.ask("g", "real", group="tg", repeat=4, memory=1)
    for n in range(3):
        assert script.schedule() == [f"released g/p-{n + 1} PLACEHOLDER_REPLACED"]
        assert script.schedule() == []
        assert script.confirm() == [f"new g/real-{n} on n1"]
    assert script.schedule() == ["new g/real-3 on n1"]
    assert member(script, "one") == ["new g/one-1 on n1"]


def test_i17_a_parked_ask_stays_a_member_of_its_group_and_may_change(script: Script) -> None:
    """An update changes what is still to be allocated, not what is on its way."""
    running_gang(script, count=2, size=4)
    member(script, "real", size=4)
    (answer,) = script.ask("g", "real", group="tg", placeholder=True, memory=4)
    assert answer.startswith("rejected ask g/real: ")
    assert member(script, "real", size=3, repeat=2, priority=3) == []
    assert script.confirm() == ["new g/real-0 on n1"]
    _, message = script.messages[-1]
    assert isinstance(message, AllocationResponse)
    assert message.new[0].resourcePerAlloc.resources["memory"].value == 4
    assert books(script)["real"] == 4
    assert script.schedule() == ["released g/p1-0 PLACEHOLDER_REPLACED"]
    assert script.confirm() == ["new g/real-1 on n1"]
    assert books(script)["real"] == 7
    assert not script.scheduler.application("g").asks


@pytest.mark.parametrize("same_node", [True, False])
@pytest.mark.parametrize("lost", ["placeholder", "real"])
def test_node_loss_during_a_replacement(script: Script, same_node: bool, lost: str) -> None:
    """2.11: all four combinations of where the two are and which node goes."""
    script.node("n2", memory=20)
    running_gang(script, count=1)
    target = "n1" if same_node else "n2"
    script.scheduler.set_predicate("rm", lambda key, node, _: None if node == target else "no")
    assert member(script, "real") == ["released g/p0-0 PLACEHOLDER_REPLACED"]
    script.scheduler.set_predicate("rm", None)
    app = script.scheduler.application("g")
    (group,) = app.gang.task_groups.values()
    heard = script.node("n1" if lost == "placeholder" else target, NodeInfo.DECOMISSION)
    if same_node:  # both lose their node: the placeholder is over, the member is planned anew
        assert heard == ["released g/p0-0 STOPPED_BY_RM"]
        assert (group.replaced, group.timed_out) == (0, 1)
        assert script.confirm() == []
        assert script.schedule() == ["new g/real-1 on n2"]
    elif lost == "placeholder":  # only the placeholder: as good as a confirmation
        assert heard == ["released g/p0-0 STOPPED_BY_RM", "new g/real-0 on n2"]
        assert (group.replaced, group.timed_out) == (1, 0)
        assert script.confirm() == []
    else:  # only the real one's: planned anew, and the placeholder is freed when it is confirmed
        assert heard == []
        assert app.asks["real"].state == "Pending"
        assert script.schedule() == ["new g/real-1 on n1"]  # X36: no placeholder is left for it
        assert script.confirm() == []
        assert (group.replaced, group.timed_out) == (0, 1)
    assert len(app.allocations) == 1
    assert not app.placeholders
