"""A gang that is placed in one step preempts for all its members or not at all (G3, 5.9)."""

from contextlib import nullcontext
from typing import Any

import pytest
from event_lines import RecordReader
from preemption_side import (
    NEVER,
    PREEMPTED,
    TWO_QUEUES,
    after,
    ask,
    explained,
    filled,
    news,
    preempted,
    preempting,
    reserved,
)
from tree_side import below, limits, tree

from quadriga.si import NodeInfo
from quadriga.si.constants import TAG_REQUIRED_NODE
from quadriga.sim.scripted.script import Script

ATOMIC = TWO_QUEUES.replace(
    "submitacl: '*'", "submitacl: '*', properties: {gang.admission: atomic, gang.gather.after: 1m}"
)


def parent(limit: str = "") -> str:
    """A parent with room for four vcores, and perhaps a limit in the queue of the gang."""
    leaves = (
        "low, resources: {guaranteed: {vcore: 1m}}",
        "high, properties: {preemption.delay: 1s}, resources: {guaranteed: {vcore: 3m}}" + limit,
    )
    return tree(
        "parent, resources: {max: {vcore: 4m}}, " + below(*leaves),
        root="submitacl: '*', properties: {gang.admission: atomic}",
    )


def gang(
    script: Script, members: int, vcore: int = 1, *, name: str = "g", queue: str = "root.high"
) -> list[str]:
    """All placeholder asks of a gang, and the round that tries it."""
    script.app(name, queue, gang={"vcore": members * vcore})
    keys = [f"{name}{at}" for at in range(members)]
    ask(script, name, *keys, group="g", placeholder=True, vcore=vcore)
    return script.schedule()


def story(script: Script) -> str:
    return explained(script, "g", "g0")


def started(script: Script) -> int:
    """How many allocations there are when all victims are gone."""
    script.confirm(PREEMPTED)
    return len(news(script.schedule()))


def test_g3_a_gang_preempts_exactly_enough_for_all_its_members() -> None:
    script = filled(ATOMIC, nodes=2)
    assert preempted(gang(script, 3)) == []
    assert len(after(script)) == 3
    assert set(reserved(script).values()) <= {"g/g0", "g/g1", "g/g2"}
    assert "preempted, to run all members of its gang" in story(script)
    assert after(script, 60) == []  # once
    assert started(script) == 3
    assert script.scheduler.application("g").state == "Running"
    assert reserved(script) == {}
    assert preempting(script, "root") == {}
    assert after(script, 20) == []


def test_g3_free_room_is_used_before_anybody_goes_and_kept_for_the_gang() -> None:
    script = filled(ATOMIC, nodes=2)
    script.release("low", "n2-0-0")
    gang(script, 3)
    assert len(after(script)) == 2
    ask(script, "low", "more", others=False, vcore=1)
    assert news(script.schedule()) == []
    assert started(script) == 3


def test_g3_nobody_goes_if_the_victims_would_not_be_enough() -> None:
    """The guarantee of the other queue leaves three victims, and the gang needs four."""
    script = filled(ATOMIC.replace("vcore: 2m", "vcore: 5m"), nodes=2)
    gang(script, 4)
    assert after(script) == []
    assert reserved(script) == {}
    assert "tries again in 15 s if something has changed" in story(script)
    script.remove_app("g")
    gang(script, 3, name="h")
    assert len(after(script)) == 3


@pytest.mark.parametrize(
    ("second", "config", "why"),
    [
        (
            {"others": False},
            ATOMIC,
            "the preemption policy of a member does not let it preempt others",
        ),
        # victims have no higher priority than any member
        ({"priority": -1}, ATOMIC, ""),
        # a fence keeps victims outside
        ({}, ATOMIC.replace("delay: 1s", "delay: 1s, preemption.policy: fence"), ""),
        (
            {"vcore": 4},
            ATOMIC,
            "root.high would be 1m CPU above what is guaranteed to it with all members, "
            "so the gang may not preempt",
        ),
    ],
)
def test_g3_none_goes_unless_all_may_preempt(second: dict[str, Any], config: str, why: str) -> None:
    script = filled(config, nodes=2)
    script.app("g", "root.high", gang={"vcore": 2})
    ask(script, "g", "g0", group="g", placeholder=True, vcore=1)
    ask(script, "g", "g1", group="g", placeholder=True, **{"vcore": 1, **second})
    assert after(script, 60) == []
    if why:
        assert story(script) == why


def test_g3_the_delay_counts_from_the_last_member() -> None:
    script = filled(ATOMIC, nodes=2)
    script.app("g", "root.high", gang={"vcore": 2})
    ask(script, "g", "g0", group="g", placeholder=True, vcore=1)
    assert after(script, 5) == []
    ask(script, "g", "g1", group="g", placeholder=True, vcore=1)
    assert after(script, 0) == []
    assert story(script) == "may preempt in 1 s"
    assert after(script, 0.5) == []
    assert len(after(script, 0.5)) == 2


def test_g3_a_gang_does_not_preempt_where_that_is_disabled() -> None:
    script = filled(ATOMIC.replace("name: default", f"name: default, {NEVER}"), nodes=2)
    gang(script, 2)
    assert after(script, 60) == []
    assert story(script) == "preemption is disabled in this partition"
    script.configure(ATOMIC)
    assert len(after(script, 0)) == 2


def test_g3_a_gang_that_lost_its_place_returns_the_other_nodes() -> None:
    """One of its nodes goes while victims are on their way out."""
    script = filled(ATOMIC.replace("vcore: 4m", "vcore: 6m"), nodes=2)
    gang(script, 2, 3)
    assert len(after(script)) == 6
    assert sorted(reserved(script)) == ["n1", "n2"]
    reader = RecordReader(script)
    script.node("n1", NodeInfo.DECOMISSION)
    assert news(script.schedule()) == []
    assert sorted(reserved(script)) == ["n2"]
    assert started(script) == 0
    assert reserved(script) == {}
    assert reader.new_lines("APP NONE g (Gang gives") == [
        "APP NONE g (Gang gives its nodes back (1): "
        "it does not fit, although the victims of its preemption are gone)"
    ]
    assert story(script) == "has preempted once for all its members, and they did not fit then"


def test_g3_a_gang_below_a_full_parent_queue_preempts_there_unless_a_limit_is_full_too() -> None:
    """Nodes have room, but the quota of the parent has none."""
    script = filled(parent(), nodes=1)
    script.node("n2", vcore=8)
    gang(script, 3, queue="root.parent.high")
    assert script.scheduler.application("g").gang.lacks == "quota"
    assert len(after(script)) == 3
    assert started(script) == 3
    # The quota of the parent could be freed, but not the limit of the user.
    limit = limits("users: ['*'], maxresources: {vcore: 2m}")
    script = filled(parent(f", {limit}"), nodes=1)
    script.node("n2", vcore=8)
    gang(script, 3, queue="root.parent.high")
    assert script.scheduler.application("g").gang.lacks == "quota"
    assert after(script, 60) == []
    assert "a quota or a limit would have no room for all its members" in story(script)


def daemons(script: Script, *nodes: str) -> list[str]:
    """The victims of a gang with one member for each of these nodes, in a queue without guarantee."""
    script.app("g", "root.other", gang={"vcore": len(nodes)})
    for node in nodes:
        tags = {TAG_REQUIRED_NODE: node}
        ask(script, "g", f"on-{node}", group="g", placeholder=True, tags=tags, vcore=1)
    return preempted(script.schedule())


WITH_OTHER = ATOMIC.replace("{name: low", "{name: other}, {name: low")


def test_g3_members_that_require_their_nodes_preempt_there_at_once() -> None:
    script = filled(WITH_OTHER, nodes=3)
    victims = daemons(script, "n1", "n3")
    assert [victim.split("-")[0] for victim in victims] == ["low/n1", "low/n3"]
    assert reserved(script) == {"n1": "g/on-n1", "n3": "g/on-n3"}
    script.confirm(PREEMPTED)
    assert news(script.schedule()) == [
        "g/on-n1-0 on n1 placeholder of g",
        "g/on-n3-0 on n3 placeholder of g",
    ]


def test_g3_without_room_on_one_required_node_no_other_is_emptied() -> None:
    script = filled(WITH_OTHER, nodes=1)
    script.node("n2", vcore=1)
    script.app("vip", "root.low")
    ask(script, "vip", "v", vcore=1, priority=5)
    script.schedule()
    assert daemons(script, "n1", "n2") == []
    assert reserved(script) == {}


def test_g3_required_nodes_and_others_in_one_gang() -> None:
    script = filled(ATOMIC, nodes=2)
    script.app("g", "root.high", gang={"vcore": 3})
    ask(script, "g", "free0", "free1", group="a", placeholder=True, vcore=1)
    tags = {TAG_REQUIRED_NODE: "n2"}
    ask(script, "g", "on-n2", group="b", placeholder=True, vcore=1, tags=tags)
    assert preempted(script.schedule()) == []  # the others have not waited for the delay
    assert len(after(script)) == 3
    script.confirm(PREEMPTED)
    assert "g/on-n2-0 on n2 placeholder of b" in news(script.schedule())


def test_g3_predicates_choose_the_nodes_of_the_members() -> None:
    script = filled(ATOMIC, nodes=3)
    script.scheduler.set_predicate(
        script.rm_id, lambda ask, node, allocate: None if node != "n1" else "no"
    )
    script.scheduler.set_preemption_predicate(
        script.rm_id, lambda ask, node, victims, index: index if node != "n1" else None
    )
    gang(script, 3)
    victims = after(script)
    assert len(victims) == 3
    assert not any(victim.startswith("low/n1") for victim in victims)
    assert started(script) == 3


def test_g3_at_most_ten_gangs_of_a_leaf_search_for_victims_at_once() -> None:
    script = filled(ATOMIC.replace("vcore: 2m", "vcore: 6m"), nodes=2)
    searches: list[str] = []

    def measure(part: str) -> nullcontext[None]:
        searches.append(part)
        return nullcontext()

    script.scheduler.set_measure(measure)
    for number in range(14):
        gang(script, 3, name=f"g{number}")
    for count in (10, 14, 14):
        assert after(script) == []
        assert searches.count("preemption") == count
