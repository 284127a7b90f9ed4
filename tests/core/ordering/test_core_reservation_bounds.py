"""Reservations are bounded: a share of the nodes, one node for equal asks, no node twice in vain (Q7)."""

from typing import Any

import pytest
from core_world import later, launch, queues, refuse, serve
from hypothesis import given, settings
from hypothesis import strategies as st
from preemption_side import news, reserved

from quadriga.core import Options
from quadriga.si import NodeInfo
from quadriga.si.constants import TAG_REQUIRED_NODE
from quadriga.sim.scripted.script import Script

HOUR = 3600


def sharing(share: str) -> str:
    return queues("default", root=f"properties: {{reservation.max.share: {share}}}")


def full(nodes: int, share: str = "10%", size: int = 2, **more: Any) -> Script:
    """Nodes filled with single vcores of ``other``, and one that drains, so that root has room."""
    script = Script(sharing(share), **more)
    script.app("other")
    for number in range(1, nodes):
        script.node(f"n{number}", vcore=size)
        serve(script, "other", *(f"n{number}-{n}" for n in range(size)), priority=9, vcore=1)
    script.node("spare", NodeInfo.CREATE_DRAIN, vcore=1000)
    return script


def waits(script: Script, *apps: str, seconds: float = 2, **more: int) -> None:
    """An ask of two vcores for each application has waited long enough to reserve."""
    for app in apps:
        script.app(app)
        script.ask(app, "big", vcore=2, **more)
    later(script, seconds)


def holders(script: Script) -> list[str]:
    return sorted(key.partition("/")[0] for key in reserved(script).values())


# -- how many --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "share", "expected"),
    [(20, "10%", 2), (29, "10%", 2), (30, "10%", 3), (5, "10%", 1), (10, "50%", 5), (9, "0.5%", 1)],
)
def test_q7_at_most_a_share_of_the_nodes_and_at_least_one_is_reserved(
    nodes: int, share: str, expected: int
) -> None:
    script = full(nodes, share)
    waits(script, *(f"app-{number}" for number in range(8)))
    assert holders(script) == [f"app-{number}" for number in range(expected)]


def test_q7_fewer_nodes_or_another_configuration_change_the_share() -> None:
    script = full(20)
    waits(script, "first")
    waits(script, "urgent", priority=1)
    assert holders(script) == ["first", "urgent"]
    (kept,) = [node for node, key in reserved(script).items() if key == "urgent/big"]
    script.node("spare", NodeInfo.DECOMISSION)
    assert reserved(script) == {kept: "urgent/big"}
    script = full(10, "30%")
    waits(script, "first", "second", "third", "fourth")
    assert holders(script) == ["first", "second", "third"]
    script.configure(sharing("20%"))
    assert holders(script) == ["first", "second"]
    script.configure(sharing("unlimited"))
    script.schedule()
    assert holders(script) == ["first", "fourth", "second", "third"]
    script.configure(sharing("10%"))
    script.schedule()
    assert holders(script) == ["first"]


def test_q7_unlimited_is_as_without_bounds() -> None:
    """Equal asks reserve a node each then, as in YuniKorn."""
    by_property = full(5, "unlimited")
    unbounded = Options(journal_size=None, bound_reservations=False)
    for script in (by_property, full(5, options=unbounded)):
        script.app("app")
        script.ask("app", *"abc", vcore=2)
        later(script, 2)
        assert holders(script) == ["app"] * 3
    by_property.configure(sharing("100%"))
    assert reserved(by_property) == {"n1": "app/a"}


# -- whose -----------------------------------------------------------------------------------------


def test_q7_equal_asks_of_an_application_have_one_node() -> None:
    script = full(5, "100%")
    script.app("app")
    script.ask("app", "a", "b", vcore=2)
    script.ask("app", "repeated", repeat=3, vcore=2)
    script.ask("app", "small", vcore=1)
    later(script, 2)
    assert sorted(reserved(script).values()) == ["app/a", "app/small"]
    script.release_ask("app", "a")
    script.schedule()
    assert sorted(reserved(script).values()) == ["app/b", "app/small"]


def test_q7_explain_says_why_an_ask_reserves_no_node() -> None:
    script = full(20)
    waits(script, "first", "second", "third")
    script.ask("first", "again", vcore=2)

    def said(app: str, key: str) -> list[str]:
        found = script.scheduler.explain(app, key)
        return [each.text for each in found.checks if each.about == "reservation"]

    assert said("first", "big") == ["node n1 is reserved for it"]
    assert said("first", "again") == ["node n1 is reserved for ask big, which is equal to it"]
    assert said("third", "big") == [
        "it cannot reserve a node: 2 nodes of 20 are reserved, as many as reservation.max.share allows"
    ]


# -- which nodes -----------------------------------------------------------------------------------


def test_q7_a_node_that_was_reserved_in_vain_is_left_alone_as_long_as_it_was_held() -> None:
    script = full(3)
    waits(script, "first", "second")
    assert reserved(script) == {"n1": "first/big"}
    later(script, HOUR)
    assert reserved(script) == {"n2": "second/big"}  # and not n1, which comes first in node order
    script.release_ask("second", "big")
    script.schedule()
    assert reserved(script) == {}  # the first one waits, and n1 is left alone
    waits(script, "third")
    assert reserved(script) == {"n2": "third/big"}
    script.release_ask("third", "big")
    waits(script, "fourth", seconds=HOUR)
    assert reserved(script) == {"n1": "first/big"}


def test_q7_others_run_on_a_node_that_is_left_alone() -> None:
    """It is forgotten with the node."""
    script = full(2)
    waits(script, "first")
    later(script, HOUR)
    assert reserved(script) == {}
    script.release("other", "n1-0-0")
    assert news(launch(script, "small", "s", vcore=1)) == ["small/s-0 on n1"]
    assert script.scheduler.partition().reservation_bounds.barred
    script.node("n1", NodeInfo.DECOMISSION)
    script.advance(2 * HOUR)
    script.node("n1", vcore=1)
    script.schedule()
    assert not script.scheduler.partition().reservation_bounds.barred


def test_q7_foreign_usage_counts_as_staying() -> None:
    """Only what was allocated here is sure to end."""
    script = Script()
    script.node("n1", occupied={"vcore": 2}, vcore=4)
    script.node("spare", NodeInfo.CREATE_DRAIN, vcore=100)
    launch(script, "other", "x", vcore=2)
    script.app("app")
    script.ask("app", "large", vcore=3)
    later(script, 2)
    assert reserved(script) == {}
    script.node("n1", NodeInfo.UPDATE, occupied={"vcore": 1})
    script.schedule()
    assert reserved(script) == {"n1": "app/large"}


# -- what is not bounded ---------------------------------------------------------------------------


def test_q7_asks_that_require_their_node_always_reserve_it() -> None:
    script = full(4)
    waits(script, "first", "second")
    script.app("daemons")
    for node in ("n2", "n3"):
        script.ask("daemons", node, tags={TAG_REQUIRED_NODE: node}, vcore=1)
    script.schedule()
    assert reserved(script) == {"n1": "first/big", "n2": "daemons/n2", "n3": "daemons/n3"}
    script.release_ask("first", "big")
    script.schedule()
    assert holders(script) == ["daemons", "daemons", "second"]  # theirs do not count


# -- asks that end before the room is needed -------------------------------------------------------

RUNTIME = "expected.runtime"


def half_free(runtime: str = "100", reserved_for: str = "big", **more: Any) -> Script:
    """A node of four, half of it used for ``runtime`` seconds; the rest is kept for an ask of four."""
    script = Script(**more)
    script.node("spare", NodeInfo.CREATE_DRAIN, vcore=100)
    script.node("n1", vcore=4)
    launch(script, "other", "x", tags={RUNTIME: runtime} if runtime else {}, vcore=2)
    script.app(reserved_for)
    script.ask(reserved_for, "b", vcore=4)
    later(script, 2)
    assert reserved(script) == {"n1": f"{reserved_for}/b"}
    script.app("small")
    return script


def test_q7_an_ask_that_ends_before_the_room_is_needed_may_use_it() -> None:
    script = half_free()
    assert serve(script, "small", "long", tags={RUNTIME: "104"}, vcore=1) == []  # 98 s are left
    script.ask("small", "short", tags={RUNTIME: "96"}, vcore=1)
    assert news(script.schedule()) == ["small/short-0 on n1"]
    assert reserved(script) == {"n1": "big/b"}
    script.release("other", "x-0")
    assert script.schedule() == []
    script.release("small", "short-0")
    assert news(script.schedule())[0] == "big/b-0 on n1"


def test_q7_a_node_is_lent_as_soon_as_a_configuration_bounds_reservations() -> None:
    script = half_free()
    script.configure(sharing("unlimited"))
    assert serve(script, "small", "short", tags={RUNTIME: "60"}, vcore=1) == []
    script.configure(sharing("10%"))
    assert news(script.schedule()) == ["small/short-0 on n1"]


@pytest.mark.parametrize(
    ("others", "later", "own"),
    [
        pytest.param("100", 0, "", id="it does not say when it ends"),
        pytest.param("", 0, "1", id="what runs does not say when it ends"),
        pytest.param("50", 50, "1", id="what runs should have ended"),
        pytest.param("100", 40, "60", id="58 s are left"),
    ],
)
def test_q7_the_reservation_holds(others: str, later: int, own: str) -> None:
    """Where the room may be needed at any moment, or before the ask ends."""
    script = half_free(others)
    script.advance(later)
    assert serve(script, "small", "s", tags={RUNTIME: own} if own else {}, vcore=1) == []


def test_q7_the_application_may_tell_for_its_asks() -> None:
    script = half_free()
    script.app("brief", tags={RUNTIME: "60"})
    script.ask("brief", "s", vcore=1)
    script.ask("brief", "slow", tags={RUNTIME: "3600"}, vcore=1)
    assert news(script.schedule()) == ["brief/s-0 on n1"]


def test_q7_a_reservation_that_a_quota_holds_up_lends_its_node_until_it_is_given_up() -> None:
    script = Script(queues("a", "b", a="resources: {max: {vcore: 4m}}"))
    script.node("spare", NodeInfo.CREATE_DRAIN, vcore=100)
    script.node("n1", vcore=4)
    script.app("app", "root.a")
    script.app("more", "root.a")
    launch(script, "other", "x", vcore=4, queue="root.b")
    script.ask("app", "big", vcore=4)
    later(script, 2)
    script.node("n2", vcore=1)
    serve(script, "more", "m", vcore=1)
    assert reserved(script) == {"n1": "app/big"}
    script.app("small", "root.b")
    script.ask("small", "long", tags={RUNTIME: "7200"}, vcore=1)
    script.ask("small", "short", tags={RUNTIME: "1800"}, vcore=1)
    script.release("other", "x-0")
    assert news(script.schedule()) == ["small/short-0 on n1"]
    script.release("more", "m-0")
    assert news(script.schedule()) == ["small/long-0 on n2"]  # the room on n1 may be needed at once
    script.release("small", "short-0")
    assert news(script.schedule()) == ["app/big-0 on n1"]


def test_q7_explain_knows_that_a_reserved_node_is_lent() -> None:
    script = half_free()
    script.ask("small", "long", vcore=1)
    script.ask("small", "short", tags={RUNTIME: "60"}, vcore=1)
    long, short = (script.scheduler.explain("small", key) for key in ("long", "short"))
    assert long.verdict == "Each node with room for it is reserved for another ask."
    assert short.verdict == "Nothing is in its way: it gets its place in the next round."
    (check,) = [each for each in long.checks if each.holders]
    assert check.remedy == "if it ends within 98 s: the tag expected.runtime with its seconds"


def test_q7_a_node_is_lent_again_when_predicates_no_longer_keep_the_one_that_reserved_it_waiting() -> (
    None
):
    """What they refuse is tried again at any moment, so nothing is lent until no other node is left to try."""
    script = half_free()
    script.node("n1", NodeInfo.UPDATE, vcore=4, memory=4)
    script.node("n2", vcore=4)
    refuse(script, lambda key, node: (key, node) == ("b", "n2"))
    assert serve(script, "small", "s", tags={RUNTIME: "60"}, vcore=1, memory=1) == []
    script.node("n2", NodeInfo.DRAIN_NODE)
    assert news(script.schedule()) == ["small/s-0 on n1"]


def test_q7_a_reserved_node_is_not_lent_to_a_gang_and_explain_knows() -> None:
    script = half_free(options=Options(gang_admission="atomic"))
    script.app("gang", gang={"vcore": 2}, tags={RUNTIME: "60"})
    script.ask("gang", "p", "q", group="g", placeholder=True, vcore=1)
    assert script.schedule() == []
    said = "0 of 2 members of the gang could start now, and they are placed together or not at all"
    assert said in script.scheduler.explain("gang", "p").reasons


@pytest.mark.parametrize("text", ["0", "-5", "1.5", "1h", "", " 7", "1234567890", "\u0663"])
def test_q7_a_runtime_that_is_no_number_of_seconds_is_ignored(text: str) -> None:
    script = half_free()
    script.app("odd", tags={RUNTIME: text})
    script.ask("odd", "s", vcore=1)
    assert serve(script, "small", "s", tags={RUNTIME: text}, vcore=1) == []
    about_app, about_ask = [note for _, note in script.scheduler.notes]
    assert about_app.startswith(f"tag expected.runtime of application odd is ignored: {text!r} is")
    assert about_ask.startswith("tag expected.runtime of ask s of application small is ignored: ")


# -- at random -------------------------------------------------------------------------------------


LATER = st.tuples(st.integers(0, 20), st.integers(1, 3), st.sampled_from((1, 3, 8, 20)))


def started(running: list[tuple[int, int, int]], later: list[tuple[int, int, int]]) -> int | None:
    """When an ask for all of a node starts, beside asks (when they come, size, runtime)."""
    script = Script(check=False)
    script.node("spare", NodeInfo.CREATE_DRAIN, vcore=100)
    script.node("n1", vcore=8)
    script.app("first")
    script.app("big")
    script.app("later")
    for at, (_, size, runtime) in enumerate(running):
        script.ask("first", f"f{at}", tags={RUNTIME: str(runtime)}, vcore=size)
    script.schedule()
    script.ask("big", "b", vcore=8)
    for second in range(1, 70):
        script.advance(1)
        for found in list(script.scheduler.partition().nodes["n1"].allocations):
            if found.created + found.ask.terms.expected_runtime <= script.now:
                script.release(found.ask.app.app_id, found.uuid)
        heard = script.schedule()
        if any(line.startswith("new big/") for line in heard):
            return second
        for at, (when, size, runtime) in enumerate(later):
            if when + 2 == second:  # when the node is reserved
                script.ask("later", f"l{at}", tags={RUNTIME: str(runtime)}, vcore=size)
        script.schedule()
    return None


@settings(max_examples=max(10, settings.default.max_examples // 2))  # each is dear
@given(st.lists(LATER, min_size=1, max_size=4), st.lists(LATER, max_size=5))
def test_q7_what_uses_a_reserved_node_does_not_delay_its_ask(
    running: list[tuple[int, int, int]], later: list[tuple[int, int, int]]
) -> None:
    alone = started(running, [])
    assert alone is not None
    assert started(running, later) == alone
