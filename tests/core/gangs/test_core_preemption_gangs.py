"""Victims are chosen with the gang in mind (docs/preemption.md)."""

from random import Random

import pytest
from preemption_side import PREEMPTED, TWO_QUEUES, after, ask, news, preempted, reserved, victims
from tree_side import tree

from quadriga.si import NodeInfo, TerminationType
from quadriga.si.constants import TAG_REQUIRED_NODE
from quadriga.sim.scripted.script import Script

REPLACED = TerminationType.PLACEHOLDER_REPLACED

LOW_ONE = TWO_QUEUES.replace("vcore: 2m", "vcore: 1m")


def cluster(nodes: int = 1, size: int = 4, config: str = LOW_ONE) -> Script:
    script = Script(config)
    for number in range(1, nodes + 1):
        script.node(f"n{number}", vcore=size)
    script.app("high", "root.high")
    return script


def gang(script: Script, name: str, members: int, style: str = "Soft", *, whole: int = 0) -> None:
    """A gang of ``members`` placeholders of one vcore, or more announced (``whole``)."""
    script.app(name, "root.low", gang={"vcore": whole or members}, style=style)
    keys = [f"{name}-p{n}" for n in range(members)]
    script.ask(name, *keys, group="g", placeholder=True, vcore=1)
    script.schedule()


def start(script: Script, name: str, members: int) -> None:
    """All its placeholders are replaced by real allocations."""
    script.ask(name, *(f"{name}-r{n}" for n in range(members)), group="g", vcore=1)
    script.schedule()
    script.confirm(REPLACED)


def plain(script: Script, *keys: str, priority: int = 0) -> None:
    """Ordinary allocations in the queue of the gangs."""
    script.app("plain", "root.low")
    script.ask("plain", *(keys or ["p"]), priority=priority, vcore=1)
    script.schedule()


def daemon(script: Script, vcore: int = 1) -> list[str]:
    """The victims of an ask that requires node n1; the cluster as a whole has room."""
    script.node("spare", NodeInfo.CREATE_DRAIN, vcore=100)
    tags = {TAG_REQUIRED_NODE: "n1"}
    return victims(script, "daemon", tags=tags, vcore=vcore, seconds=0)


def test_a_gathering_gang_loses_no_placeholder() -> None:
    """It has three of four placeholders: without one of them it would have to start again."""
    script = cluster()
    gang(script, "g", 3, whole=4)
    plain(script)
    assert victims(script) == ["plain/p-0"]
    script.confirm(PREEMPTED)
    script.schedule()
    assert victims(script, "h2") == []  # nobody else may go
    assert script.scheduler.application("g").state == "Accepted"


def test_g45_placeholders_of_a_running_gang_may_be_evicted() -> None:
    """A hard gang waits for its timer."""
    for style in ("Soft", "Hard"):
        script = cluster()
        gang(script, "g", 4, style)
        assert script.scheduler.application("g").state == "Running"
        assert victims(script) == ["g/g-p3-0"]
        script.confirm(PREEMPTED)
        assert script.scheduler.application("g").state == "Running"
        assert news(script.schedule()) == ["high/h-0 on n1"]
        group = script.scheduler.application("g").gang.task_groups["g"]
        assert (group.allocated, group.timed_out) == (3, 1)  # V4


def test_the_surplus_of_a_gang_is_evicted_first() -> None:
    """Newer than the surplus are an ordinary allocation and the gang's own members."""
    script = cluster(size=5)
    gang(script, "g", 2)
    script.ask("g", "more", vcore=1)
    script.schedule()
    start(script, "g", 2)
    plain(script, "p", "q")
    assert victims(script) == ["g/more-0"]


def test_one_gang_loses_two_members_rather_than_two_gangs_one_each() -> None:
    """Newest first would evict one of each; instead the gang that has lost a member loses the next."""
    script = cluster(size=4)
    for name in "ab":
        gang(script, name, 2)
    for key in ("a-r0", "b-r0", "b-r1", "a-r1"):
        script.ask(key[0], key, group="g", vcore=1)
    script.schedule()
    script.confirm(REPLACED)
    assert victims(script, vcore=2) == ["b/b-r1-0", "b/b-r0-0"]


def test_among_equal_nodes_the_one_without_a_broken_gang_is_chosen() -> None:
    script = cluster(nodes=2, size=1)
    gang(script, "g", 1)
    start(script, "g", 1)
    plain(script)
    assert reserved(script) == {}
    where = {a.node.node_id for a in script.scheduler.application("g").allocations.values()}
    assert where == {"n1"}  # the first by name, which would be chosen otherwise
    assert victims(script) == ["plain/p-0"]


def test_a_placeholder_in_replacement_is_not_evicted() -> None:
    script = cluster(size=2)
    gang(script, "g", 2)
    script.ask("g", "g-r0", group="g", vcore=1)
    script.schedule()  # asked back, not confirmed
    (going,) = [r.allocationKey for r in script.outstanding]
    assert victims(script) == [f"g/{key}-0" for key in ("g-p0", "g-p1") if key != going]


def test_after_a_restart_the_oldest_allocations_are_the_gang_members() -> None:
    script = cluster()
    script.app("g", "root.low", gang={"vcore": 2})
    ask(script, "g", "r0", "r1", others=False, group="g", vcore=1)
    ask(script, "g", "s", others=False, vcore=1)
    partition = script.scheduler.partition()
    partition.applications["g"].gang.over = True  # as after a restart: nobody is held
    partition.waiting.refresh(partition.applications["g"])
    script.schedule()
    partition.applications["g"].gang.over = False
    plain(script)
    assert victims(script) == ["g/s-0"]


def test_required_node_preemption_considers_gangs() -> None:
    script = cluster(size=3)
    gang(script, "g", 2)
    start(script, "g", 2)
    plain(script)
    gang(script, "starts", 1, whole=2)
    assert daemon(script, 2) == ["plain/p-0", "g/g-r1-0"]


def test_a_daemon_tries_again_when_the_gang_on_its_node_has_started() -> None:
    script = cluster(size=2)
    gang(script, "g", 2, whole=3)
    assert daemon(script) == []
    assert reserved(script) == {"n1": "high/daemon"}
    script.node("n2", vcore=1)
    script.ask("g", "g-p2", group="g", placeholder=True, vcore=1)
    assert news(script.schedule()) == ["g/g-p2-0 on n2 placeholder of g"]
    assert after(script, 15) == ["g/g-p1-0"]


def queues(left: int, right: int, memory: int, *high: int) -> str:
    return tree(
        f"left, resources: {{guaranteed: {{vcore: {left}m}}}}",
        f"right, resources: {{guaranteed: {{vcore: {right}m, memory: {memory}}}}}",
        "high, properties: {preemption.delay: 1s},"
        f" resources: {{guaranteed: {{vcore: {high[0]}m, memory: {high[1]}}}}}",
        root="submitacl: '*', properties: {gang.admission: atomic}",
    )


def crowded(rng: Random) -> Script:
    """A full cluster, and a gang in ``high`` that has waited for the delay."""
    amounts = (rng.randint(0, 3), rng.randint(0, 3), rng.randint(0, 4))
    script = Script(queues(*amounts, rng.randint(4, 9), rng.randint(12, 24)))
    script.check = False
    nodes = [f"n{number}" for number in range(rng.randint(2, 4))]
    for node in nodes:
        script.node(node, vcore=rng.randint(3, 6), memory=rng.randint(6, 12))
    for name in ("left", "right"):
        script.app(name, f"root.{name}")
    for number in range(30):
        name = rng.choice(("left", "right"))
        size = {"vcore": rng.choice((1, 1, 2)), "memory": rng.choice((1, 2, 3))}
        ask(script, name, f"{name}{number}", priority=rng.choice((0, 0, 0, 0, 0, 1)), **size)
    script.schedule()
    for name in ("left", "right"):
        script.release_ask(name)
    script.app("g", "root.high")
    shapes = [
        {"vcore": rng.randint(1, 2), "memory": rng.randint(0, 3)} for _ in range(rng.randint(1, 3))
    ]
    for number in range(rng.randint(2, 5)):
        at = rng.randrange(len(shapes))
        tags = {TAG_REQUIRED_NODE: rng.choice(nodes)} if rng.random() < 0.08 else {}
        group = f"s{at}"
        ask(script, "g", f"g{number}", group=group, placeholder=True, tags=tags, **shapes[at])
    script.check = True
    return script


def outcome(seed: int) -> int:
    """The number of victims of a gang in one of these clusters."""
    script = crowded(Random(seed))
    app = script.scheduler.application("g")
    members = len(app.asks)
    heard = script.schedule()
    script.advance(1)
    heard += script.schedule()
    victims = preempted(heard)
    if news(heard):
        return 0  # it fits without anybody going
    held = {
        a.uuid
        for each in ("left", "right")
        for a in script.scheduler.application(each).allocations.values()
    }
    if not victims:
        assert reserved(script) == {}
        assert app.gang.lacks in ("nodes", "quota")
        return 0
    assert {victim.split("/")[1] for victim in victims} <= held
    ask(script, "left", "greedy0", "greedy1", priority=9, vcore=1)  # they may not take the room
    while script.outstanding:
        script.confirm(PREEMPTED, most=1)
        script.schedule()
    assert (len(app.placeholders), app.state) == (members, "Running")
    assert reserved(script) == {}
    return len(victims)


@pytest.mark.parametrize("first", range(0, 120, 40))
def test_g3_all_members_start_or_nobody_goes(first: int) -> None:
    counts = [outcome(seed) for seed in range(first, first + 40)]
    assert sum(count > 0 for count in counts) > 4
    assert sum(count == 0 for count in counts) > 4
