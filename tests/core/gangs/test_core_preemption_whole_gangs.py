"""Arbitrary clusters on which a gang preempts: it starts with all its members, or nobody goes (G3)."""

from random import Random

import pytest
from preemption_side import PREEMPTED, ask, news, preempted, reserved
from tree_side import tree

from quadriga.si.constants import TAG_REQUIRED_NODE
from quadriga.sim.scripted.script import Script


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
