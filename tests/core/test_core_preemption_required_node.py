"""Preemption on a required node (2.8), and other effects of required nodes (5.6, 5.8)."""

from __future__ import annotations

import pytest

from quadriga.si import NodeInfo, TerminationType
from quadriga.si.constants import TAG_REQUIRED_NODE
from quadriga.sim.script import Script

from .preemption_side import ask, news, preempted, preempting, reserved

PREEMPTED = TerminationType.PREEMPTED_BY_SCHEDULER


def node_of(size: int = 4, **asks: dict[str, object]) -> Script:
    """Node n1 with one allocation of one vcore of application ``others`` for each ask, in order.

    A draining node is there so that the cluster as a whole (root's max) has room.
    """
    script = Script()
    script.node("spare", NodeInfo.CREATE_DRAIN, vcore=100, memory=100)
    script.app("others")
    script.app("app")
    script.node("n1", vcore=size)
    for key, said in asks.items():
        ask(script, "others", key, **{"vcore": 1, "others": False, **said})  # type: ignore[arg-type]
        script.schedule()
    return script


def require(script: Script, *keys: str, node: str = "n1", **more: object) -> None:
    ask(script, "app", *keys, tags={TAG_REQUIRED_NODE: node}, **{"vcore": 1, **more})  # type: ignore[arg-type]


def explained(script: Script, key: str) -> str:
    checks = script.scheduler.explain("app", key).checks
    return next(check.text for check in checks if check.about == "preemption")


def test_2_8_it_reserves_its_node_and_preempts_in_the_next_round() -> None:
    script = node_of(2, a={}, b={})
    require(script, "daemon")
    assert script.schedule(1) == []
    assert reserved(script) == {"n1": "app/daemon"}
    assert preempted(script.schedule(1)) == ["others/b-0"]
    released = script.messages[-1].message.released[0]
    text = "preempting allocations to free up resources to run daemon set ask: daemon"
    assert released.message == text
    assert preempting(script, "root.default") == {"vcore": 1}
    script.confirm(PREEMPTED)
    assert news(script.schedule()) == ["app/daemon-0 on n1"]
    assert preempting(script, "root") == {}


def test_2_8_guarantees_and_the_preemption_policy_do_not_matter() -> None:
    script = node_of(1, a={})
    require(script, "daemon", others=False)
    assert preempted(script.schedule()) == ["others/a-0"]


def test_2_8_regular_then_opted_out_then_originators() -> None:
    script = node_of(
        5,
        driver={"originator": True},
        opted={"itself": False},
        both={"itself": False, "originator": True},
        plain={},
        late={"originator": True},
    )
    require(script, "daemon", vcore=5)
    order = ["plain", "opted", "late", "both", "driver"]
    assert preempted(script.schedule()) == [f"others/{key}-0" for key in order]


def test_2_8_then_lowest_priority_then_newest() -> None:
    script = node_of(4, a={"priority": 2}, b={"priority": 1}, c={"priority": 2}, d={"priority": 1})
    require(script, "daemon", priority=2, vcore=4)
    order = ["d", "b", "c", "a"]
    assert preempted(script.schedule()) == [f"others/{key}-0" for key in order]


def test_2_8_no_victims_of_higher_priority_or_that_require_the_node() -> None:
    script = node_of(3, a={"priority": 1}, b={}, c={"tags": {TAG_REQUIRED_NODE: "n1"}})
    require(script, "daemon")
    assert preempted(script.schedule()) == ["others/b-0"]


def test_2_8_only_victims_that_hold_some_of_what_is_asked_for() -> None:
    script = node_of()
    script.node("n1", NodeInfo.UPDATE, vcore=2, memory=10)
    script.ask("others", "a", vcore=2)
    script.ask("others", "b", memory=10)
    script.schedule()
    require(script, "daemon", vcore=1)
    assert preempted(script.schedule()) == ["others/a-0"]


def test_2_8_victims_are_counted_against_the_whole_ask() -> None:
    """As in the reference: one more is evicted than the free room requires."""
    script = node_of(3, a={}, b={})
    require(script, "daemon", vcore=2)
    assert preempted(script.schedule()) == ["others/b-0", "others/a-0"]


def test_2_8_victims_and_free_room_together_may_be_enough() -> None:
    script = node_of(4, a={}, b={})
    script.ask("others", "up", priority=9, vcore=1)
    script.schedule()
    require(script, "daemon", vcore=3)
    assert preempted(script.schedule()) == ["others/b-0", "others/a-0"]


def test_2_8_no_victims_if_they_are_not_enough() -> None:
    script = node_of(3, a={"priority": 1}, b={"priority": 1}, c={})
    require(script, "daemon", vcore=2)
    assert script.schedule() == []
    assert reserved(script) == {"n1": "app/daemon"}
    assert "hold too little" in explained(script, "daemon")


def test_2_8_it_tries_again_when_its_node_changes() -> None:
    script = node_of(3, a={"priority": 1}, b={"priority": 1}, c={})
    require(script, "daemon", vcore=2)
    script.schedule()
    script.release("others", "a-0")
    assert preempted(script.schedule()) == ["others/c-0"]


def test_2_8_an_ask_preempts_once() -> None:
    script = node_of(2, a={}, b={})
    require(script, "daemon")
    assert preempted(script.schedule()) == ["others/b-0"]
    script.node("n1", NodeInfo.UPDATE, vcore=1)  # what comes free is not enough any more
    script.confirm(PREEMPTED)
    for _ in range(3):
        script.advance(20)
        assert script.schedule() == []
    script.release("others", "a-0")
    assert news(script.schedule()) == ["app/daemon-0 on n1"]


def test_2_8_no_preemption_while_a_quota_has_no_room() -> None:
    script = Script(QUOTA)
    script.app("others", "root.b")
    script.app("app", "root.a")
    script.node("n1", vcore=4)
    script.node("n2", NodeInfo.CREATE_DRAIN, vcore=4)
    script.ask("others", "x", vcore=4)
    script.schedule()
    require(script, "daemon", node="n1", vcore=2)
    script.schedule(1)
    assert reserved(script) == {"n1": "app/daemon"}
    script.node("n2", NodeInfo.DRAIN_TO_SCHEDULABLE)
    script.ask("app", "full", priority=9, vcore=1)
    script.configure(QUOTA.replace("vcore: 2m", "vcore: 1m"))
    script.schedule()
    assert preempted(script.log) == []
    script.configure(QUOTA)
    script.release("app", "full-0")
    assert preempted(script.schedule()) == ["others/x-0"]


QUOTA = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: a
            resources: {max: {vcore: 2m}}
          - name: b
"""


# -- on a cluster without any room -----------------------------------------------------------------


def full(config: str | None = None, *, nodes: int = 2) -> Script:
    """Nodes n1, n2, ... of two vcores each, all of which application ``others`` holds."""
    script = Script(config) if config else Script()
    script.app("others", "root.b" if config else "root.default")
    script.app("app", "root.a" if config else "root.default")
    for number in range(1, nodes + 1):
        script.node(f"n{number}", vcore=2)
        ask(script, "others", f"{number}a", f"{number}b", others=False, vcore=1)
        script.schedule()
    return script


def test_2_8_it_preempts_although_root_is_at_its_max() -> None:
    """Root's max is what all nodes have; the node bounds the ask."""
    script = full()
    require(script, "daemon", node="n2")
    assert script.schedule(1) == []
    assert reserved(script) == {"n2": "app/daemon"}
    assert preempted(script.schedule(1)) == ["others/2b-0"]
    script.confirm(PREEMPTED)
    assert news(script.schedule()) == ["app/daemon-0 on n2"]


def test_2_8_nobody_else_gets_the_room_that_its_victims_leave() -> None:
    script = full()
    ask(script, "others", "old", others=False, priority=9, vcore=1)
    script.schedule()
    require(script, "daemon", node="n2")
    script.schedule()
    ask(script, "others", "young", others=False, priority=9, vcore=1)
    assert script.schedule() == []
    script.confirm(PREEMPTED)
    assert news(script.schedule()) == ["app/daemon-0 on n2"]
    script.release("others", "1a-0")
    assert news(script.schedule()) == ["others/old-0 on n1"]


def test_2_8_a_daemon_on_each_node_of_a_full_cluster() -> None:
    script = full(nodes=5)
    for number in range(1, 6):
        require(script, f"d{number}", node=f"n{number}")
    assert sorted(preempted(script.schedule())) == [f"others/{n}b-0" for n in range(1, 6)]
    script.confirm(PREEMPTED)
    heard = news(script.schedule())
    assert sorted(heard) == [f"app/d{n}-0 on n{n}" for n in range(1, 6)]
    assert script.schedule() == []


def test_2_8_daemons_have_room_although_another_node_holds_more_than_it_has() -> None:
    """Root is above its max then, and no ask without a required node is served."""
    script = full()
    script.release("others", "2b-0")
    script.node("n1", NodeInfo.UPDATE, vcore=1)
    ask(script, "others", "any", others=False, vcore=1)
    assert news(script.schedule()) == []
    require(script, *(f"d{n}" for n in range(3)), node="n2")
    assert news(script.schedule(1)) == ["app/d0-0 on n2"]


def test_2_8_explain_does_not_name_the_max_of_root() -> None:
    script = full()
    require(script, "daemon", node="n2", priority=-1)
    script.schedule()
    checks = script.scheduler.explain("app", "daemon").checks
    assert "quota" not in {check.about for check in checks}
    assert "hold too little" in explained(script, "daemon")
    ask(script, "app", "plain", vcore=1)
    others = script.scheduler.explain("app", "plain").checks
    assert [check.subject for check in others if check.about == "quota"] == ["queue root"]


LIMITED = QUOTA.replace("max: {vcore: 2m}", "max: {vcore: 1m}")
UNDER_A_PARENT = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: top
            resources: {max: {vcore: 1m}}
            queues:
              - name: a
          - name: b
"""
OF_USERS = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: a
            limits: [{limit: all, users: ['*'], maxresources: {vcore: 1m}}]
          - name: b
"""


@pytest.mark.parametrize(
    ("config", "leaf", "about"),
    [
        (LIMITED, "root.a", "quota"),
        (UNDER_A_PARENT, "root.top.a", "quota"),
        (OF_USERS, "root.a", "limit"),
    ],
    ids=["own max", "max above", "limit of a user"],
)
def test_2_8_a_configured_quota_still_stops_it(config: str, leaf: str, about: str) -> None:
    script = Script(config)
    script.app("others", "root.b")
    script.app("app", leaf)
    script.node("n1", vcore=3)
    ask(script, "app", "own", vcore=1)
    ask(script, "others", "x", "y", others=False, vcore=1)
    script.schedule()
    require(script, "daemon")
    assert script.schedule() == []
    failing = [c.about for c in script.scheduler.explain("app", "daemon").checks if not c.passed]
    assert failing[0] == about
    script.release("app", "own-0")
    assert news(script.schedule()) == ["app/daemon-0 on n1"]


# -- required nodes and others ---------------------------------------------------------------------


def test_5_6_later_asks_of_the_application_do_not_wait_behind_it() -> None:
    """In 1.5.2 they do, since 1.7 they do not: no ask waits for a node that it does not require."""
    script = node_of(1, a={"priority": 1})
    script.node("n2", vcore=4)
    require(script, "daemon")
    script.ask("app", "plain", vcore=1)
    assert news(script.schedule()) == ["app/plain-0 on n2"]
    assert reserved(script) == {"n1": "app/daemon"}


def test_2_7_several_asks_may_require_the_same_node() -> None:
    """Each has its reservation, preempts, and is served as soon as it fits (+1.7)."""
    script = node_of(2, a={"priority": 1}, b={})
    require(script, "d1", vcore=2)  # there is too little that may go for it
    require(script, "d2", vcore=1)
    script.schedule()
    node = script.scheduler.partition().nodes["n1"]
    assert node.reservation is not None and node.reservation.ask.key == "app/d1"
    assert [kept.ask.key for kept in node.also_reserved] == ["app/d2"]
    assert preempted(script.log) == ["others/b-0"]
    script.confirm(PREEMPTED)
    assert news(script.schedule()) == ["app/d2-0 on n1"]
    script.release("others", "a-0")
    script.release("app", "d2-0")
    assert news(script.schedule()) == ["app/d1-0 on n1"]
    assert reserved(script) == {}


def test_2_7_the_second_ask_follows_when_the_first_is_withdrawn() -> None:
    script = node_of(1, a={"priority": 1})
    require(script, "d1", "d2", "d3")
    script.schedule()
    script.release_ask("app", "d1")
    assert reserved(script) == {"n1": "app/d2"}
    script.release_ask("app", "d3")
    script.node("n1", NodeInfo.DECOMISSION)
    assert reserved(script) == {}
    assert script.scheduler.application("app").reservations == {}


def test_5_6_it_cancels_the_reservation_of_another_ask_even_if_it_fits() -> None:
    script = node_of(4, a={"priority": 1}, b={"priority": 1})
    script.node("spare", NodeInfo.CREATE_DRAIN, vcore=100)
    script.ask("others", "big", vcore=4)
    script.advance(2)
    script.schedule()
    assert reserved(script) == {"n1": "others/big"}
    require(script, "daemon")
    assert news(script.schedule(1)) == ["app/daemon-0 on n1"]


def test_5_6_the_node_that_another_one_requires_is_reserved_before_it_is_used() -> None:
    """It has room for the second ask, which is served in a later round than the first."""
    script = node_of(2, a={"priority": 1})
    require(script, "first", vcore=2)
    script.schedule()
    script.app("later")
    ask(script, "later", "second", tags={TAG_REQUIRED_NODE: "n1"}, vcore=1)
    assert script.schedule(1) == []
    assert news(script.schedule(1)) == ["later/second-0 on n1"]
    script.release("others", "a-0")
    script.release("later", "second-0")
    assert news(script.schedule()) == ["app/first-0 on n1"]


def test_i32_a_reserved_required_node_that_drains_is_still_used() -> None:
    script = node_of(1, a={"priority": 1})
    require(script, "daemon")
    script.schedule()
    script.node("n1", NodeInfo.DRAIN_NODE)
    script.release("others", "a-0")
    assert news(script.schedule()) == ["app/daemon-0 on n1"]
