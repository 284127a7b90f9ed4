"""Who is next: queues, applications and asks (5.1 to 5.6, 2.9, worked vectors of 5.13)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadriga.core.model.resources import exact_share
from quadriga.si import NodeInfo
from quadriga.sim.script import Script

from .tree_side import below, most, tree


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


def test_5_4_the_queue_with_the_smaller_fair_share_is_next() -> None:
    script = prepared(guaranteed("vcore: 20m", "vcore: 10m"), "x:a", "y:b")
    script.ask("x", *(f"x{n}" for n in range(4)), vcore=4)
    script.ask("y", *(f"y{n}" for n in range(2)), vcore=4)
    # shares: 0 0 | .2 0 | .2 .4 | .4 .4 (x has more pending) | .6 .4
    assert news(script.schedule()) == ["x/x0-0", "y/y0-0", "x/x1-0", "x/x2-0", "y/y1-0", "x/x3-0"]


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


def test_5_4_a_type_that_no_node_has_is_no_part_of_the_share() -> None:
    script = prepared(TWO, "x:a", "y:b")
    script.node("n2", gpu=1)
    script.ask("x", "gpu", gpu=1)
    script.ask("y", "has", vcore=1)
    script.schedule()
    script.node("n2", NodeInfo.UPDATE, vcore=1)  # the GPU is gone, what uses it is not
    script.ask("x", "next", vcore=1)
    script.ask("y", "next", vcore=1)
    assert news(script.schedule(1)) == ["x/next-0"]


def test_5_4_equal_shares_more_pending_then_the_name() -> None:
    script = prepared(tree("b", "a", "c"), "x:a", "y:b", "z:c")
    script.ask("y", "y0", vcore=1)
    script.ask("x", "x0", vcore=1)
    script.ask("z", "z0", repeat=2, vcore=1)
    assert news(script.schedule()) == ["z/z0-0", "x/x0-0", "y/y0-0", "z/z0-1"]


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


def test_5_4_what_a_quota_blocks_does_not_hide_what_is_behind_it() -> None:
    """An urgent ask for which the parent has no room lets the others of its queue pass."""
    script = prepared(tree(f"p{most(4)}, {below('a', 'b')}"), "x:p.a", "y:p.b")
    script.ask("x", "big", priority=5, vcore=8)
    script.ask("x", "small", vcore=1)
    script.ask("y", "small", vcore=2)
    assert news(script.schedule()) == ["x/small-0", "y/small-0"]


def test_shares_are_exact() -> None:
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


@pytest.mark.parametrize(
    ("priority", "order"),
    [("enabled", ["c/k-0", "b/k-0", "a/k-0"]), ("disabled", ["b/k-0", "a/k-0", "c/k-0"])],
)
def test_5_5_fifo_by_priority_then_submission(priority: str, order: list[str]) -> None:
    script = prepared(leaf("fifo", priority), "b:q", "a:q", "c:q")
    for app, urgency in (("a", 0), ("b", 0), ("c", 1)):
        script.ask(app, "k", priority=urgency, vcore=1)
    assert news(script.schedule()) == order


@pytest.mark.parametrize(
    ("config", "held", "urgency", "first"),
    [
        # shares of what is guaranteed: 0.3 and 0.2, 0.3 and 0.1
        (
            leaf("fair", more=", resources: {guaranteed: {vcore: 10m, memory: 100}}"),
            [{"vcore": 2, "memory": 30}, {"vcore": 3, "memory": 10}],
            0,
            "b",
        ),
        # raw usage where nothing is guaranteed
        (leaf("fair"), [{"vcore": 2, "memory": 30}, {"vcore": 3, "memory": 29}], 0, "b"),
        (leaf("fair"), [{"vcore": 2}, {}], 1, "a"),
        (leaf("fair", "disabled"), [{"vcore": 2}, {}], 1, "b"),
    ],
)
def test_5_5_fair_by_share_and_priority(
    config: str, held: list[dict[str, int]], urgency: int, first: str
) -> None:
    asked = [{"vcore": 1, "priority": urgency}, {"vcore": 1}]
    assert first_of(config, ("a:q", "b:q"), held, asked, memory=1000) == first


def test_2_9_stateaware_one_application_after_the_other() -> None:
    script = prepared(leaf("stateaware"), "a:q", "b:q", "c:q")
    script.ask("a", "k", vcore=1)
    script.ask("b", "k", repeat=2, vcore=1)
    script.ask("c", "k", vcore=1)
    assert news(script.schedule()) == ["a/k-0"]  # and it stays Starting for five minutes
    script.ask("a", "more", vcore=1)
    assert news(script.schedule()) == ["a/more-0", "b/k-0", "b/k-1", "c/k-0"]


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


def test_2_9_stateaware_running_applications_by_priority_with_the_one_that_starts() -> None:
    script = prepared(leaf("stateaware"), "a:q", "b:q", "c:q")
    script.ask("a", "k", repeat=2, vcore=1)
    script.schedule()
    script.ask("c", "k", priority=5, vcore=1)
    script.ask("b", "k", priority=9, vcore=1)
    script.ask("a", "more", vcore=1)
    assert news(script.schedule(1)) == ["b/k-0"]  # the oldest Accepted one, before the running one
    assert news(script.schedule(1)) == ["a/more-0"]  # c waits for b


def test_2_9_maxapplications_of_a_parent() -> None:
    leaves = below("a, maxapplications: 2", "b, maxapplications: 1")
    config = tree(f"p, maxapplications: 2, {leaves}")
    script = prepared(config, "x:p.a", "y:p.b", "z:p.a", "w:p.b")
    for app in "xyzw":
        script.ask(app, "k", vcore=1)
    assert news(script.schedule()) == ["x/k-0", "y/k-0"]
    script.remove_app("y")
    assert news(script.schedule()) == ["w/k-0"]  # a uses more already


def test_5_12_a_place_that_several_want_goes_by_the_order_of_queues() -> None:
    """Where more is pending, then by the name."""
    leaves = "a, maxapplications: 1", "b, maxapplications: 1"
    config = tree(*leaves, root="submitacl: '*', maxapplications: 1")
    script = prepared(config, "x:a", "y:b")
    script.ask("x", "k", vcore=1)
    script.ask("y", "k", vcore=2)
    assert news(script.schedule()) == ["y/k-0"]
    script.remove_app("y")
    assert news(script.schedule()) == ["x/k-0"]


def test_5_6_asks_by_priority_then_age() -> None:
    script = prepared(tree("q"), "a:q")
    for key, priority, size in (("k1", 0, 1), ("k2", 5, 2), ("k3", 0, 3), ("k4", 5, 1)):
        script.ask("a", key, priority=priority, vcore=size)
    assert news(script.schedule()) == ["a/k2-0", "a/k4-0", "a/k1-0", "a/k3-0"]


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


def test_5_13_headroom() -> None:
    config = tree("q, resources: {max: {memory: 50}}", "r")
    script = prepared(config, "a:q", "b:r", vcore=10000, memory=100)
    script.ask("a", "has", memory=30)
    script.ask("b", "has", memory=10, vcore=2000)
    script.schedule()
    partition = script.scheduler.partition()
    room = partition.queue("root.q").headroom()  # type: ignore[union-attr]
    left = partition.registry.mapping(dict(sorted(room.items())).values())
    assert left == {"memory": 20, "vcore": 8000}


def test_5_13_max_of_a_path_is_minimum_permissive() -> None:
    leaf = below("a, resources: {max: {vcore: 5}}")
    config = tree(f"p, resources: {{max: {{memory: 100}}}}, {leaf}")
    script = prepared(config, "x:p.a", vcore=20000, memory=1000)
    script.ask("x", "k", repeat=3, memory=50, vcore=2500)
    script.ask("x", "other", memory=1)
    script.ask("x", "another", vcore=1)
    assert news(script.schedule()) == ["x/k-0", "x/k-1"]


@pytest.mark.parametrize(
    ("limit", "served"),
    [("vcore: 0", ["x/cpu-0", "x/mem-0"]), ("vcore: 0, memory: 10", ["x/mem-0"])],
)
def test_5_1_zero_is_a_limit_only_beside_something_else(limit: str, served: list[str]) -> None:
    config = tree(f"a, resources: {{max: {{{limit}}}}}")
    script = prepared(config, "x:a", vcore=10, memory=10)
    script.ask("x", "cpu", vcore=1)
    script.ask("x", "mem", memory=1)
    assert news(script.schedule()) == served
