"""Who is next: queues, applications and asks (5.1 to 5.6, 2.9, worked vectors of 5.13)."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tree_side import most, tree

from quadriga.core.resources.vectors import exact_share
from quadriga.sim.scripted.script import Script


def news(heard: list[str]) -> list[str]:
    """Which asks were allocated, without the nodes."""
    return [line.split()[1] for line in heard if line.startswith("new ")]


def prepared(config: str, *apps: str, vcore: int = 100, **capacity: int) -> Script:
    """One node, and an application for each queue named ``app:queue``."""
    script = Script(config, extra={"scheduler.disableReservation": "true"})
    script.node("n1", vcore=vcore, **capacity)
    for each in apps:
        app, queue = each.split(":")
        script.app(app, f"root.{queue}")
    return script


def first_of(
    config: str, apps: tuple[str, str], held: list[dict[str, int]], asked: list[Any], **room: int
) -> str:
    """Each of two applications has been given the first, and then asks for the second."""
    script = prepared(config, *apps, **room)
    names = [app.partition(":")[0] for app in apps]
    for name, amount in zip(names, held, strict=True):
        script.ask(name, *(["has"] if amount else []), **amount)
    script.schedule()
    for name, amount in zip(names, asked, strict=True):
        script.ask(name, "next", **amount)
    (line,) = news(script.schedule(1))
    return line.partition("/")[0]


TWO = tree("a", "b")
BY_SHARE = tree("a", "b", root="submitacl: '*', properties: {application.sort.priority: disabled}")
LARGE = 2**53
#: rounded before they are divided, these two would change places
USED, OF = (99182678989222946, 176614650368652680), (105454418733432309, 187782740739019452)


def guaranteed(a: str, b: str) -> str:
    return tree(f"a, resources: {{guaranteed: {{{a}}}}}", f"b, resources: {{guaranteed: {{{b}}}}}")


@pytest.mark.parametrize(
    ("config", "held", "asked", "first"),
    [
        # x: 10 of 20 memory and half of root's vcore: 0.5; y: 19 of 20 memory: 0.95
        (
            guaranteed("memory: 20", "memory: 20"),
            [{"memory": 10, "vcore": 50}, {"memory": 19}],
            [{"memory": 1}] * 2,
            "x",
        ),
        # a max is the denominator where nothing is guaranteed: a tenth of it, a twentieth of root's
        (tree("a" + most(10), "b"), [{"vcore": 1}, {"vcore": 5}], [{"vcore": 1}] * 2, "y"),
        # more pending is more of something and less of nothing
        (TWO, [{}, {}], [{"vcore": 1, "memory": 3}, {"vcore": 5, "memory": 1}], "x"),
        # priority goes before share, and after it where disabled
        (TWO, [{"vcore": 10}, {}], [{"vcore": 1, "priority": 1}, {"vcore": 1}], "x"),
        (BY_SHARE, [{"vcore": 10}, {}], [{"vcore": 1, "priority": 1}, {"vcore": 1}], "y"),
        (BY_SHARE, [{}, {}], [{"vcore": 1}, {"vcore": 1, "priority": 1}], "y"),
        # shares that floats cannot tell apart
        (
            TWO,
            [{"memory": LARGE + 1}, {"memory": LARGE}],
            [{"memory": 1, "repeat": 5}, {"memory": 1}],
            "y",
        ),
        (
            guaranteed(f"memory: {OF[0]}", f"memory: {OF[1]}"),
            [{"memory": USED[0]}, {"memory": USED[1]}],
            [{"memory": 1}] * 2,
            "x",
        ),
    ],
)
def test_5_4_5_13_which_queue_is_next(
    config: str, held: list[dict[str, int]], asked: list[Any], first: str
) -> None:
    """Fair share is the largest of the shares of what is guaranteed, of a max, or of root."""
    assert first_of(config, ("x:a", "y:b"), held, asked, memory=2**60) == first


def test_5_4_of_what_a_queue_may_use_nothing_of_anything_is_all_there_is() -> None:
    """a holds 1 of 100 memory, b 9: a is first, until it may use nothing of the memory it holds."""
    script = prepared(TWO, "x:a", "y:b", memory=100)
    script.ask("x", "has", memory=1)
    script.ask("y", "has", memory=9)
    script.schedule()
    script.ask("x", "x1", "x2", vcore=1)
    script.ask("y", "y1", "y2", vcore=1)
    assert news(script.schedule(1)) == ["x/x1-0"]
    script.configure(tree("a, resources: {max: {memory: 0, vcore: 50}}", "b"))
    assert news(script.schedule()) == ["y/y1-0", "y/y2-0", "x/x2-0"]


@pytest.mark.parametrize(
    ("properties", "priority"),
    [
        ("priority.offset: '10'", 15),
        ("priority.offset: '3', priority.policy: fence", 3),
        ("priority.offset: '-20'", -15),
        ("priority.offset: '2147483647'", 2**31 - 1),
    ],
)
def test_5_13_priority_of_a_queue(properties: str, priority: int) -> None:
    """What counts among its siblings, and what its parent hears."""
    script = prepared(tree(f"a, properties: {{{properties}}}", "b"), "x:a", "y:b")
    partition = script.scheduler.partition()
    assert partition.root.priority is None
    script.ask("x", "k", priority=5, vcore=1)
    assert partition.root.priority == priority
    script.ask("y", "k", priority=priority, vcore=2)  # as urgent, and more is pending
    assert news(script.schedule(1)) == ["y/k-0"]
    script.release_ask("x", "k")
    assert partition.root.priority is None


def test_5_12_shares_are_exact() -> None:
    """Fractions that floats cannot tell apart (5.12)."""
    most = 2**63 - 1
    assert (most - 1) / most == (most - 2) / (most - 1)
    assert exact_share(most - 1, most) > exact_share(most - 2, most - 1)
    assert exact_share(1, 3) == exact_share(2**61, 3 * 2**61)
    assert USED[0] / OF[0] < USED[1] / OF[1]
    assert float(USED[0]) / float(OF[0]) > float(USED[1]) / float(OF[1])


@given(*(st.integers(0, 2**63 - 1), st.integers(1, 2**63 - 1)) * 2)
def test_shares_are_ordered_as_fractions(a: int, b: int, c: int, d: int) -> None:
    left, right = Fraction(a, b), Fraction(c, d)
    assert (left < right) == (exact_share(a, b) < exact_share(c, d))
    assert (left == right) == (exact_share(a, b) == exact_share(c, d))


def leaf(policy: str, priority: str = "enabled", more: str = "") -> str:
    properties = f"application.sort.policy: {policy}, application.sort.priority: {priority}"
    return tree(f"q, properties: {{{properties}}}{more}")


def test_2_9_stateaware_whom_predicates_refuse_keeps_its_turn() -> None:
    """It has asked for something, whether or not it may have it in this round."""
    script = prepared(leaf("stateaware"), "a:q", "b:q")
    script.scheduler.set_predicate("rm", lambda key, node, allocate: "no" if key == "a0" else None)
    script.ask("a", "a0", vcore=1)
    script.ask("b", "b0", vcore=1)
    for _ in range(2):
        assert script.schedule() == []
    script.release_ask("a", "a0")
    assert script.schedule() == ["b Starting (run)", "new b/b0-0 on n1"]


def test_5_6_many_sizes_at_once() -> None:
    """More groups than an application looks at one by one, and more sizes than are kept idle."""
    script = prepared(tree("q"), "a:q", vcore=10**6)
    script.check = False
    for at in range(400):
        script.ask("a", f"k{at:03}", priority=at % 3, vcore=at + 1)
    keys = sorted(range(400), key=lambda at: (-(at % 3), at))
    assert script.scheduler.check() == []
    assert news(script.schedule()) == [f"a/k{at:03}-0" for at in keys]
    for at in range(400):
        script.ask("a", f"l{at:03}", vcore=1000 + at)
    script.check = True
    assert len(news(script.schedule())) == 400


@pytest.mark.parametrize(
    ("limit", "served"),
    [("vcore: 0", ["x/cpu-0", "x/mem-0"]), ("vcore: 0, memory: 10", ["x/mem-0"])],
)
def test_5_1_zero_is_a_limit_only_beside_something_else(limit: str, served: list[str]) -> None:
    script = prepared(tree(f"a, resources: {{max: {{{limit}}}}}"), "x:a", vcore=10, memory=10)
    script.ask("x", "cpu", vcore=1)
    script.ask("x", "mem", memory=1)
    assert news(script.schedule()) == served
