"""Who is next: queues, applications and asks (5.1 to 5.6, 2.9, worked vectors of 5.13)."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadriga.core.model.resources import exact_share
from quadriga.si import NodeInfo
from quadriga.sim.script import Script


def tree(*queues: str, root: str = "", more: str = "") -> str:
    """Leaves under root, each in YAML's flow form; ``root`` is root's properties."""
    lines = ["partitions:", "  - name: default", "    queues:", "      - name: root"]
    lines += ["        submitacl: '*'", f"        properties: {{{root}}}"]
    lines += [f"        {more}"] if more else []
    lines += ["        queues:"]
    return "\n".join([*lines, *(f"          - {{{queue}}}" for queue in queues)])


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


# -- child queues (5.4) ----------------------------------------------------------------------------


def test_5_4_the_queue_with_the_smaller_fair_share_is_next() -> None:
    script = prepared(
        tree(
            "name: a, resources: {guaranteed: {vcore: 20m}}",
            "name: b, resources: {guaranteed: {vcore: 10m}}",
        ),
        "x:a",
        "y:b",
    )
    script.ask("x", *(f"x{n}" for n in range(4)), vcore=4)
    script.ask("y", *(f"y{n}" for n in range(2)), vcore=4)
    # shares: 0 0 | .2 0 | .2 .4 | .4 .4 (x has more pending) | .6 .4
    assert news(script.schedule()) == ["x/x0-0", "y/y0-0", "x/x1-0", "x/x2-0", "y/y1-0", "x/x3-0"]


def test_5_4_of_what_a_queue_may_use_nothing_of_anything_is_all_there_is() -> None:
    """a holds 1 of 100 memory, b 9: a is first, until it may use nothing of the memory it holds."""
    free = tree("name: a", "name: b")
    script = prepared(free, "x:a", "y:b", memory=100)
    script.ask("x", "has", memory=1)
    script.ask("y", "has", memory=9)
    script.schedule()
    script.ask("x", "x1", "x2", vcore=1)
    script.ask("y", "y1", "y2", vcore=1)
    assert news(script.schedule(1)) == ["x/x1-0"]
    script.configure(tree("name: a, resources: {max: {memory: 0, vcore: 50}}", "name: b"))
    assert news(script.schedule()) == ["y/y1-0", "y/y2-0", "x/x2-0"]


def test_5_13_fair_share_is_the_largest_of_shares_of_guaranteed_or_root() -> None:
    """L: 10 of 20 memory and half of root's vcore: 0.5; R: 19 of 20 memory: 0.95. L is first."""
    script = prepared(
        tree(
            "name: l, resources: {guaranteed: {memory: 20}}",
            "name: r, resources: {guaranteed: {memory: 20}}",
        ),
        "left:l",
        "right:r",
        vcore=10000,
        memory=100,
    )
    script.ask("left", "has", memory=10, vcore=5000)
    script.ask("right", "has", memory=19)
    script.schedule()
    script.ask("left", "next", memory=1)
    script.ask("right", "next", memory=1)
    assert news(script.schedule(1)) == ["left/next-0"]


def test_5_4_a_max_on_the_path_is_the_denominator_where_nothing_is_guaranteed() -> None:
    script = prepared(tree("name: a, resources: {max: {vcore: 10m}}", "name: b"), "x:a", "y:b")
    script.ask("x", "has", vcore=1)  # a tenth of its max
    script.ask("y", "has", vcore=5)  # a twentieth of root's
    script.schedule()
    script.ask("x", "next", vcore=1)
    script.ask("y", "next", vcore=1)
    assert news(script.schedule(1)) == ["y/next-0"]


def test_5_4_a_type_that_no_node_has_is_no_part_of_the_share() -> None:
    script = prepared(tree("name: a", "name: b"), "x:a", "y:b")
    script.node("n2", gpu=1)
    script.ask("x", "gpu", gpu=1)
    script.ask("y", "has", vcore=1)
    script.schedule()
    script.node("n2", NodeInfo.UPDATE, vcore=1)  # the GPU is gone, what uses it is not
    script.ask("x", "next", vcore=1)
    script.ask("y", "next", vcore=1)
    assert news(script.schedule(1)) == ["x/next-0"]


def test_5_4_equal_shares_more_pending_then_the_name() -> None:
    script = prepared(tree("name: b", "name: a", "name: c"), "x:a", "y:b", "z:c")
    script.ask("y", "y0", vcore=1)
    script.ask("x", "x0", vcore=1)
    script.ask("z", "z0", repeat=2, vcore=1)
    assert news(script.schedule()) == ["z/z0-0", "x/x0-0", "y/y0-0", "z/z0-1"]


def test_5_4_more_pending_must_be_more_of_something_and_less_of_nothing() -> None:
    script = prepared(tree("name: a", "name: b"), "x:a", "y:b", memory=100)
    script.ask("x", "x0", vcore=1, memory=3)
    script.ask("y", "y0", vcore=5, memory=1)
    assert news(script.schedule(1)) == ["x/x0-0"]


def test_5_4_priority_goes_before_share_and_after_it_where_disabled() -> None:
    for root, first in (
        ("", "x/next-0"),
        ("application.sort.priority: disabled", "y/next-0"),
    ):
        script = prepared(tree("name: a", "name: b", root=root), "x:a", "y:b")
        script.ask("x", "has", vcore=10)
        script.schedule()
        script.ask("x", "next", priority=1, vcore=1)
        script.ask("y", "next", vcore=1)
        assert news(script.schedule(1)) == [first]


def test_5_4_disabled_priority_decides_between_equal_shares() -> None:
    config = tree("name: a", "name: b", root="application.sort.priority: disabled")
    script = prepared(config, "x:a", "y:b")
    script.ask("x", "next", vcore=1)
    script.ask("y", "next", priority=1, vcore=1)
    assert news(script.schedule(1)) == ["y/next-0"]


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
    queue = f"name: a, properties: {{{properties}}}"
    script = prepared(tree(queue, "name: b"), "x:a", "y:b")
    partition = script.scheduler.partition()
    assert partition.root.priority is None
    script.ask("x", "k", priority=5, vcore=1)
    assert partition.root.priority == priority
    script.ask("y", "k", priority=priority, vcore=2)  # as urgent, and more is pending
    assert news(script.schedule(1)) == ["y/k-0"]
    script.release_ask("x", "k")
    assert partition.root.priority is None


def test_5_4_the_priority_of_a_queue_follows_its_asks() -> None:
    script = prepared(tree("name: a", "name: b"), "x:a", "y:b")
    script.ask("x", "high", priority=9, vcore=1)
    script.ask("x", "low", vcore=1)
    script.ask("y", "middle", priority=5, vcore=1)
    assert news(script.schedule()) == ["x/high-0", "y/middle-0", "x/low-0"]


def test_5_4_what_a_quota_blocks_does_not_hide_what_is_behind_it() -> None:
    """An urgent ask for which the parent has no room lets the others of its queue pass."""
    config = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: p
            resources: {max: {vcore: 4m}}
            queues:
              - name: a
              - name: b
"""
    script = prepared(config, "x:p.a", "y:p.b")
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


@given(*(st.integers(0, 2**63 - 1), st.integers(1, 2**63 - 1)) * 2)
def test_shares_are_ordered_as_fractions(a: int, b: int, c: int, d: int) -> None:
    left, right = Fraction(a, b), Fraction(c, d)
    assert (left < right) == (exact_share(a, b) < exact_share(c, d))
    assert (left == right) == (exact_share(a, b) == exact_share(c, d))


def test_shares_that_floats_cannot_tell_apart_decide() -> None:
    large = 2**53
    script = prepared(tree("name: a", "name: b"), "x:a", "y:b", memory=4 * large)
    script.ask("x", "has", memory=large + 1)
    script.ask("y", "has", memory=large)
    script.schedule()
    script.ask("x", "next", repeat=5, memory=1)
    script.ask("y", "next", memory=1)
    assert news(script.schedule(1)) == ["y/next-0"]


def test_shares_of_very_large_quantities_are_rounded_once() -> None:
    """Rounded before they are divided, these two would change places."""
    used, of = (99182678989222946, 176614650368652680), (105454418733432309, 187782740739019452)
    assert used[0] / of[0] < used[1] / of[1]
    assert float(used[0]) / float(of[0]) > float(used[1]) / float(of[1])
    leaves = [
        f"name: {name}, resources: {{guaranteed: {{memory: {size}}}}}"
        for name, size in zip("ab", of, strict=True)
    ]
    script = prepared(tree(*leaves), "x:a", "y:b", memory=2**60)
    for app, size in zip("xy", used, strict=True):
        script.ask(app, "has", memory=size)
    script.schedule()
    script.ask("x", "next", memory=1)
    script.ask("y", "next", memory=1)
    assert news(script.schedule(1)) == ["x/next-0"]


# -- applications (5.5) ----------------------------------------------------------------------------


def leaf(policy: str, priority: str = "enabled", more: str = "") -> str:
    properties = f"application.sort.policy: {policy}, application.sort.priority: {priority}"
    return tree(f"name: q, properties: {{{properties}}}{more}")


def test_5_5_fifo_by_priority_then_submission() -> None:
    script = prepared(leaf("fifo"), "b:q", "a:q", "c:q")
    for app, priority in (("a", 0), ("b", 0), ("c", 1)):
        script.ask(app, "k", priority=priority, vcore=1)
    assert news(script.schedule()) == ["c/k-0", "b/k-0", "a/k-0"]


def test_5_5_fifo_by_submission_where_priority_is_disabled() -> None:
    script = prepared(leaf("fifo", "disabled"), "b:q", "a:q", "c:q")
    for app, priority in (("a", 0), ("b", 0), ("c", 1)):
        script.ask(app, "k", priority=priority, vcore=1)
    assert news(script.schedule()) == ["b/k-0", "a/k-0", "c/k-0"]


def test_5_5_fair_by_share_of_guaranteed() -> None:
    more = ", resources: {guaranteed: {vcore: 10m, memory: 100}}"
    script = prepared(leaf("fair", more=more), "a:q", "b:q", memory=1000)
    script.ask("a", "has", vcore=2, memory=30)  # 0.3, 0.2
    script.ask("b", "has", vcore=3, memory=10)  # 0.3, 0.1
    script.schedule()
    script.ask("a", "next", vcore=1)
    script.ask("b", "next", vcore=1)
    assert news(script.schedule(1)) == ["b/next-0"]


def test_5_5_fair_by_raw_usage_where_nothing_is_guaranteed() -> None:
    script = prepared(leaf("fair"), "a:q", "b:q", memory=1000)
    script.ask("a", "has", vcore=2, memory=30)
    script.ask("b", "has", vcore=3, memory=29)
    script.schedule()
    script.ask("a", "next", vcore=1)
    script.ask("b", "next", vcore=1)
    assert news(script.schedule(1)) == ["b/next-0"]


def test_5_5_fair_with_and_without_priority() -> None:
    for priority, first in (("enabled", "a/next-0"), ("disabled", "b/next-0")):
        script = prepared(leaf("fair", priority), "a:q", "b:q")
        script.ask("a", "has", vcore=2)
        script.schedule()
        script.ask("a", "next", priority=1, vcore=1)
        script.ask("b", "next", vcore=1)
        assert news(script.schedule(1)) == [first]


def test_5_5_fair_takes_turns() -> None:
    script = prepared(leaf("fair"), "a:q", "b:q", "c:q")
    for app in "abc":
        script.ask(app, "k", repeat=2, vcore=1)
    assert news(script.schedule()) == ["a/k-0", "b/k-0", "c/k-0", "a/k-1", "b/k-1", "c/k-1"]


def test_5_5_fair_a_release_brings_its_application_forward() -> None:
    script = prepared(leaf("fair"), "a:q", "b:q", vcore=6)
    script.ask("a", "k", repeat=5, vcore=1)
    script.ask("b", "k", repeat=5, vcore=1)
    script.schedule()
    script.release("b", "k-0")
    script.release("b", "k-1")
    assert news(script.schedule()) == ["b/k-3", "b/k-4"]


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


def test_2_9_stateaware_a_starting_application_blocks_until_its_time_is_over() -> None:
    script = prepared(leaf("stateaware"), "a:q", "b:q")
    script.ask("a", "k", vcore=1)
    script.ask("b", "k", vcore=1)
    script.schedule()
    script.advance(299)
    assert script.schedule() == []
    script.advance(1)
    assert news(script.schedule()) == ["b/k-0"]


def test_2_9_stateaware_running_applications_by_priority_with_the_one_that_starts() -> None:
    script = prepared(leaf("stateaware"), "a:q", "b:q", "c:q")
    script.ask("a", "k", repeat=2, vcore=1)
    script.schedule()
    script.ask("c", "k", priority=5, vcore=1)
    script.ask("b", "k", priority=9, vcore=1)
    script.ask("a", "more", vcore=1)
    assert news(script.schedule(1)) == ["b/k-0"]  # the oldest Accepted one, before the running one
    assert news(script.schedule(1)) == ["a/more-0"]  # c waits for b


def test_2_9_maxapplications_holds_back_accepted_applications_only() -> None:
    config = tree("name: q, maxapplications: 1")
    script = prepared(config, "a:q", "b:q")
    script.ask("a", "k", vcore=1)
    script.ask("b", "k", priority=5, vcore=1)
    assert news(script.schedule()) == ["b/k-0"]
    script.ask("b", "more", vcore=1)
    assert news(script.schedule()) == ["b/more-0"]
    script.release("b", "k-0")
    script.release("b", "more-0")  # Waiting frees the place
    assert news(script.schedule()) == ["a/k-0"]


def test_2_9_maxapplications_of_a_parent() -> None:
    config = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: p
            maxapplications: 2
            queues:
              - {name: a, maxapplications: 2}
              - {name: b, maxapplications: 1}
"""
    script = prepared(config, "x:p.a", "y:p.b", "z:p.a", "w:p.b")
    for app in "xyzw":
        script.ask(app, "k", vcore=1)
    assert news(script.schedule()) == ["x/k-0", "y/k-0"]
    script.remove_app("y")
    assert news(script.schedule()) == ["w/k-0"]  # a uses more already


def test_5_12_a_place_that_several_want_goes_by_the_order_of_queues() -> None:
    """Where more is pending, then by the name."""
    leaves = "name: a, maxapplications: 1", "name: b, maxapplications: 1"
    script = prepared(tree(*leaves, more="maxapplications: 1"), "x:a", "y:b")
    script.ask("x", "k", vcore=1)
    script.ask("y", "k", vcore=2)
    assert news(script.schedule()) == ["y/k-0"]
    script.remove_app("y")
    assert news(script.schedule()) == ["x/k-0"]


# -- asks (5.6) ------------------------------------------------------------------------------------


def test_5_6_asks_by_priority_then_age() -> None:
    script = prepared(tree("name: q"), "a:q")
    for key, priority, size in (("k1", 0, 1), ("k2", 5, 2), ("k3", 0, 3), ("k4", 5, 1)):
        script.ask("a", key, priority=priority, vcore=size)
    assert news(script.schedule()) == ["a/k2-0", "a/k4-0", "a/k1-0", "a/k3-0"]


def test_5_6_an_update_keeps_the_place_of_its_ask() -> None:
    script = prepared(tree("name: q"), "a:q")
    script.ask("a", "k1", vcore=200)
    script.ask("a", "k2", vcore=1)
    script.ask("a", "k1", vcore=2)
    assert news(script.schedule()) == ["a/k1-0", "a/k2-0"]


def test_5_6_an_updated_ask_is_not_scheduled_twice() -> None:
    script = prepared(tree("name: q"), "a:q")
    script.ask("a", "k", vcore=1)
    script.ask("a", "k", repeat=2, vcore=2)
    assert news(script.schedule()) == ["a/k-0", "a/k-1"]
    partition = script.scheduler.partition()
    assert partition.registry.mapping(partition.root.allocated) == {"vcore": 4}


def test_5_6_an_ask_that_fits_nowhere_lets_the_next_one_pass() -> None:
    script = prepared(tree("name: q"), "a:q", vcore=4)
    script.ask("a", "big", priority=9, vcore=5)
    script.ask("a", "small", vcore=1)
    assert news(script.schedule()) == ["a/small-0"]


def test_5_6_many_sizes_at_once() -> None:
    """More groups than an application looks at one by one, and more sizes than are kept idle."""
    script = prepared(tree("name: q"), "a:q", vcore=10**6)
    for at in range(400):
        script.ask("a", f"k{at:03}", priority=at % 3, vcore=at + 1)
    keys = sorted(range(400), key=lambda at: (-(at % 3), at))
    assert news(script.schedule()) == [f"a/k{at:03}-0" for at in keys]
    for at in range(400):
        script.ask("a", f"l{at:03}", vcore=1000 + at)
    assert len(news(script.schedule())) == 400


# -- quotas (5.1, 5.3) -----------------------------------------------------------------------------


def test_5_13_headroom() -> None:
    script = prepared(
        tree("name: q, resources: {max: {memory: 50}}", "name: r"),
        "a:q",
        "b:r",
        vcore=10000,
        memory=100,
    )
    script.ask("a", "has", memory=30)
    script.ask("b", "has", memory=10, vcore=2000)
    script.schedule()
    partition = script.scheduler.partition()
    room = partition.queue("root.q").headroom()  # type: ignore[union-attr]
    assert partition.registry.mapping(dict(sorted(room.items())).values()) == {
        "memory": 20,
        "vcore": 8000,
    }


def test_5_13_max_of_a_path_is_minimum_permissive() -> None:
    config = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: p
            resources: {max: {memory: 100}}
            queues:
              - name: a
                resources: {max: {vcore: 5}}
"""
    script = prepared(config, "x:p.a", vcore=20000, memory=1000)
    script.ask("x", "k", repeat=3, memory=50, vcore=2500)
    script.ask("x", "other", memory=1)
    script.ask("x", "another", vcore=1)
    assert news(script.schedule()) == ["x/k-0", "x/k-1"]


def test_5_1_zero_is_a_limit_only_beside_something_else() -> None:
    script = prepared(tree("name: a, resources: {max: {vcore: 0}}"), "x:a", vcore=10, memory=10)
    script.ask("x", "k", vcore=1)
    assert news(script.schedule()) == ["x/k-0"]
    script = prepared(
        tree("name: a, resources: {max: {vcore: 0, memory: 10}}"), "x:a", vcore=10, memory=10
    )
    script.ask("x", "cpu", vcore=1)
    script.ask("x", "mem", memory=1)
    assert news(script.schedule()) == ["x/mem-0"]


def test_5_1_a_type_that_no_node_has_never_fits() -> None:
    script = prepared(tree("name: a"), "x:a")
    script.ask("x", "k", gpu=1, vcore=1)
    assert script.schedule() == []
    script.node("n2", gpu=1, vcore=1)
    assert news(script.schedule()) == ["x/k-0"]


def test_5_3_a_full_quota_is_looked_at_again_when_something_is_released() -> None:
    script = prepared(tree("name: a, resources: {max: {vcore: 2m}}"), "x:a", "y:a")
    script.ask("x", "k", vcore=2)
    script.ask("y", "k", vcore=1)
    assert news(script.schedule()) == ["x/k-0"]
    script.release("x", "k-0")
    assert news(script.schedule()) == ["y/k-0"]


def test_2_2_a_changed_sort_policy_holds_for_those_who_wait() -> None:
    """Keys of different kinds never meet, whatever the policy was before."""
    policies = [("fifo", "enabled"), ("fair", "disabled"), ("stateaware", "enabled")]
    policies += [("fair", "enabled"), ("fifo", "disabled"), ("fair", "enabled")]
    script = prepared(leaf("fifo"), "a:q", "b:q", "c:q", vcore=4)
    for app in "abc":
        script.ask(app, "k", repeat=9, vcore=1)
        script.ask(app, "l", priority=1, vcore=2)
    script.schedule(2)
    for policy, priority in policies:
        script.configure(leaf(policy, priority))
        script.schedule(1)
    script.release("a", "l-0")
    script.release("b", "l-0")
    script.configure(leaf("fair", "disabled"))
    assert {line.split("/")[0] for line in news(script.schedule())} <= {"a", "b", "c"}
