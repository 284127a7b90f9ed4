"""Reservations: a node is kept for an ask that fits nowhere yet (2.7, 5.8, S6)."""

from __future__ import annotations

import pytest

from quadriga.core import Options
from quadriga.core.ordering.reservable import fit_in_score
from quadriga.si import NodeInfo, RequestError
from quadriga.si.constants import TAG_REQUIRED_NODE
from quadriga.sim.script import Script

REQUIRED = TAG_REQUIRED_NODE


def reserved(script: Script) -> dict[str, str]:
    """Which node is kept for which ask."""
    nodes = script.scheduler.partition().nodes.values()
    return {n.node_id: n.reservation.ask.key for n in nodes if n.reservation is not None}


def news(heard: list[str]) -> list[str]:
    return [line for line in heard if line.startswith("new ")]


def full(*nodes: str, size: int = 4, bounded: bool = True) -> Script:
    """Nodes of this size, filled by single asks of another application.

    A draining node is there so that the cluster as a whole (root's max) is not what is short.
    """
    script = Script(
        options=Options(journal_size=None, bound_reservations=bounded, node_sort_policy="fair")
    )
    script.node("spare", NodeInfo.CREATE_DRAIN, vcore=100)
    script.app("app")
    script.app("other")
    for node in nodes:
        script.node(node, vcore=size)
        script.ask("other", *(f"{node}-{n}" for n in range(size)), priority=1, vcore=1)
        script.schedule()
    return script


def test_2_7_an_ask_reserves_after_two_seconds() -> None:
    script = full("n1")
    script.ask("app", "big", vcore=2)
    script.schedule()
    script.advance(1.999)
    script.schedule()
    assert reserved(script) == {}
    script.advance(0.001)
    assert script.schedule() == []
    assert reserved(script) == {"n1": "app/big"}


def test_2_7_the_timer_tells_the_driver_when_to_look_again() -> None:
    script = full("n1")
    script.advance(100)
    before = script.now
    script.ask("app", "big", vcore=2)
    script.schedule()
    deadlines = []
    while (deadline := script.scheduler.next_deadline()) is not None and not reserved(script):
        deadlines.append(deadline - before)
        script.advance((deadline - script.now) / 1e9)
        script.schedule()
    assert deadlines[-1] == 2 * 10**9


def test_5_7_the_tightest_fit_is_reserved() -> None:
    """FitInScore counts what would be left over, by type; n2 has much memory to spare."""
    script = Script()
    script.node("spare", NodeInfo.CREATE_DRAIN, vcore=100, memory=1000)
    script.app("app")
    for node, memory in (("n1", 50), ("n2", 90), ("n3", 40)):
        script.node(node, vcore=4, memory=memory)
        script.ask("app", node, vcore=4)
        script.schedule()
    script.ask("app", "big", vcore=2, memory=30)
    script.schedule()
    script.advance(2)
    script.schedule()
    assert reserved(script) == {"n3": "app/big"}


def test_5_7_among_equal_fits_the_first_in_node_order_is_reserved() -> None:
    script = full("n1", "n2")
    script.release("other", "n1-0-0")
    script.release("other", "n2-0-0")
    script.release("other", "n2-1-0")
    script.ask("app", "big", vcore=3)
    script.schedule()
    script.advance(2)
    script.schedule()
    assert reserved(script) == {"n2": "app/big"}  # 2 of 4 used, 3 on n1; nothing would be left over


def test_5_13_fit_in_score() -> None:
    script = Script()
    script.node("n1", memory=8, vcore=1000)
    script.node("n2", memory=8, vcore=1000, gpu=1)
    script.app("app")
    script.ask("app", "a", memory=4, vcore=2000)
    partition = script.scheduler.partition()
    script.schedule()
    shape = next(iter(partition.shapes.by_number.values()))
    scores = [fit_in_score(node, shape) for node in partition.node_index.nodes]
    assert scores == [0.5, 1.5]


def test_2_7_a_reserved_node_is_hidden_from_others_and_serves_its_ask_first() -> None:
    script = full("n1")
    script.ask("app", "big", vcore=2)
    script.schedule()
    script.advance(2)
    script.schedule()
    script.ask("other", "small", priority=100, vcore=1)
    script.release("other", "n1-0-0")
    assert script.schedule() == []
    script.release("other", "n1-1-0")
    assert news(script.schedule()) == ["new app/big-0 on n1"]
    assert reserved(script) == {}
    script.release("other", "n1-2-0")
    assert news(script.schedule()) == ["new other/small-0 on n1"]


def test_5_8_another_node_with_room_earlier_is_taken_and_the_reserved_one_is_free_again() -> None:
    script = full("n1", "n2")
    script.ask("app", "big", vcore=2)
    script.schedule()
    script.advance(2)
    script.schedule()
    (kept,) = reserved(script)
    other = "n2" if kept == "n1" else "n1"
    script.release("other", f"{kept}-0-0")
    script.release("other", f"{other}-0-0")
    script.release("other", f"{other}-1-0")
    assert news(script.schedule()) == [f"new app/big-0 on {other}"]
    assert reserved(script) == {}
    script.ask("other", "small", vcore=1)
    assert news(script.schedule()) == [f"new other/small-0 on {kept}"]


def test_2_7_one_reservation_for_each_repeat_and_node() -> None:
    script = full("n1", "n2", "n3", bounded=False)
    script.ask("app", "big", repeat=2, vcore=4)
    script.schedule()
    script.advance(2)
    script.schedule()
    assert sorted(reserved(script).values()) == ["app/big", "app/big"]
    script.ask("app", "more", repeat=2, vcore=4)
    script.schedule()
    script.advance(2)
    script.schedule()
    assert sorted(reserved(script).values()) == ["app/big", "app/big", "app/more"]


def test_2_7_a_later_ask_of_the_same_look_reserves_too() -> None:
    """Also one that arrives when the first has reserved already."""
    script = full("n1", "n2", bounded=False)
    script.ask("app", "first", vcore=2)
    script.schedule()
    script.advance(2)
    script.schedule()
    script.ask("app", "second", vcore=2)
    script.schedule()
    script.advance(2)
    script.schedule()
    assert sorted(reserved(script).values()) == ["app/first", "app/second"]


def test_2_7_an_ask_that_is_taken_back_frees_its_node() -> None:
    script = full("n1")
    script.ask("app", "big", "next", vcore=2)
    script.schedule()
    script.advance(2)
    script.schedule()
    script.release_ask("app", "big")
    assert reserved(script) == {}
    script.schedule()
    assert reserved(script) == {"n1": "app/next"}


def test_2_7_an_ask_that_changes_frees_its_node_and_may_reserve_again() -> None:
    script = full("n1", "n2", size=3)
    script.ask("app", "big", vcore=2)
    script.schedule()
    script.advance(2)
    script.schedule()
    script.ask("app", "big", vcore=3)
    assert reserved(script) == {}
    script.schedule()
    assert list(reserved(script).values()) == ["app/big"]


def test_2_7_an_application_that_is_removed_frees_its_nodes() -> None:
    script = full("n1")
    script.ask("app", "big", vcore=2)
    script.schedule()
    script.advance(2)
    script.schedule()
    script.remove_app("app")
    assert reserved(script) == {}


def test_2_7_a_node_that_is_removed_is_no_longer_reserved_and_the_ask_finds_another() -> None:
    script = full("n1", "n2")
    script.ask("app", "big", vcore=2)
    script.schedule()
    script.advance(2)
    script.schedule()
    (kept,) = reserved(script)
    script.node(kept, NodeInfo.DECOMISSION)
    assert reserved(script) == {}
    script.schedule()
    assert list(reserved(script).values()) == ["app/big"]


def test_i32_a_drained_node_does_not_serve_its_reservation() -> None:
    script = full("n1")
    script.ask("app", "big", vcore=2)
    script.schedule()
    script.advance(2)
    script.schedule()
    script.node("n1", NodeInfo.DRAIN_NODE)
    for uuid in ("n1-0-0", "n1-1-0"):
        script.release("other", uuid)
    assert script.schedule() == []
    script.node("n1", NodeInfo.DRAIN_TO_SCHEDULABLE)
    assert news(script.schedule()) == ["new app/big-0 on n1"]


def test_s6_an_ask_goes_elsewhere_when_its_reserved_node_drains() -> None:
    script = full("n1")
    script.ask("app", "big", vcore=2)
    script.schedule()
    script.advance(2)
    script.schedule()
    script.node("n1", NodeInfo.DRAIN_NODE)
    script.node("n2", vcore=2)
    assert news(script.schedule()) == ["new app/big-0 on n2"]
    assert reserved(script) == {}


def test_s6_a_reserved_node_that_shrinks_does_not_hold_its_ask() -> None:
    script = full("n1")
    script.ask("app", "big", vcore=2)
    script.schedule()
    script.advance(2)
    script.schedule()
    script.node("n1", NodeInfo.UPDATE, vcore=1)
    script.node("n2", vcore=2)
    assert news(script.schedule()) == ["new app/big-0 on n2"]


def test_2_7_a_node_too_small_when_empty_is_not_reserved() -> None:
    script = full("n1")
    script.ask("app", "big", vcore=5)
    script.schedule()
    script.advance(2)
    script.schedule()
    assert reserved(script) == {}
    script.node("n2", vcore=5)
    assert news(script.schedule()) == ["new app/big-0 on n2"]


def test_2_7_no_reservation_beyond_the_quota() -> None:
    script = Script(QUOTA)
    script.node("n1", vcore=4)
    script.app("app", "root.a")
    script.ask("app", "has", vcore=3)
    script.schedule()
    script.ask("app", "big", vcore=2)
    script.schedule()
    script.advance(10)
    script.schedule()
    assert reserved(script) == {}


QUOTA = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: a
            resources: {max: {vcore: 4m}}
          - name: b
"""


def in_quota() -> Script:
    """``app`` in a queue with a quota of four has reserved n1, and then the quota is used up."""
    script = Script(QUOTA)
    script.node("spare", NodeInfo.CREATE_DRAIN, vcore=100)
    script.node("n1", vcore=4)
    script.app("app", "root.a")
    script.app("more", "root.a")
    script.app("other", "root.b")
    script.ask("other", "x", vcore=4)
    script.schedule()
    script.ask("app", "big", vcore=4)
    script.schedule()
    script.advance(2)
    script.schedule()
    assert list(reserved(script)) == ["n1"]
    return script


def test_5_8_a_reservation_that_only_the_quota_holds_back_is_served_when_it_has_room() -> None:
    script = in_quota()
    script.ask("more", "m", vcore=1)
    script.node("n3", vcore=1)
    assert news(script.schedule()) == ["new more/m-0 on n3"]
    script.release("other", "x-0")
    assert script.schedule() == []
    script.release("more", "m-0")
    assert news(script.schedule()) == ["new app/big-0 on n1"]


def test_5_8_a_raised_quota_serves_a_reservation() -> None:
    script = in_quota()
    script.ask("more", "m", vcore=1)
    script.node("n3", vcore=1)
    script.schedule()
    script.release("other", "x-0")
    assert script.schedule() == []
    script.configure(QUOTA.replace("4m", "5m"))
    assert news(script.schedule()) == ["new app/big-0 on n1"]


MAX_APPS = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: a
            maxapplications: 1
          - name: b
"""


def test_2_9_a_reservation_does_not_let_in_an_application_too_many() -> None:
    script = Script(MAX_APPS)
    script.node("spare", NodeInfo.CREATE_DRAIN, vcore=100)
    script.node("n1", vcore=4)
    script.app("other", "root.b")
    script.ask("other", "x", "y", vcore=2)
    script.schedule()
    script.app("one", "root.a")
    script.app("two", "root.a")
    script.ask("one", "big", vcore=4)
    script.schedule()
    script.advance(2)
    script.schedule()
    assert reserved(script) == {"n1": "one/big"}
    script.node("n2", vcore=1)
    script.ask("two", "small", vcore=1)
    assert news(script.schedule()) == ["new two/small-0 on n2"]
    script.release("other", "x-0")
    script.release("other", "y-0")
    assert script.schedule() == []
    script.release("two", "small-0")  # Waiting no longer counts
    assert news(script.schedule()) == ["new one/big-0 on n1"]


def test_2_2_3_reservations_can_be_switched_off() -> None:
    script = Script(extra={"scheduler.disableReservation": "true"})
    script.node("n1", vcore=2)
    script.app("app")
    script.ask("app", "a", vcore=1)
    script.schedule()
    script.ask("app", "big", vcore=2)
    script.schedule()
    script.advance(60)
    script.schedule()
    assert reserved(script) == {}


def test_2_2_3_switched_off_while_an_ask_could_reserve() -> None:
    script = full("n1")
    script.ask("app", "big", "next", vcore=2)
    script.schedule()
    script.advance(2)
    script.configure("", extra={"scheduler.disableReservation": "true"})
    script.schedule()
    assert reserved(script) == {}
    script.configure("", extra={"scheduler.disableReservation": "false"})
    script.release("other", "n1-0-0")
    script.schedule()
    script.ask("app", "again", vcore=2)
    script.schedule()
    script.advance(2)
    script.schedule()
    assert list(reserved(script)) == ["n1"]


def test_predicates_are_asked_before_a_reservation() -> None:
    """``allocate`` is false then (I36)."""
    script = full("n1", "n2")
    asked: list[tuple[str, str, bool]] = []

    def predicate(key: str, node: str, allocate: bool) -> str | None:
        asked.append((key, node, allocate))
        return "taint"

    script.ask("app", "big", vcore=2)
    script.schedule()
    script.scheduler.set_predicate("rm", predicate)
    script.advance(2)
    script.schedule()
    assert reserved(script) == {}
    assert {(key, allocate) for key, _, allocate in asked} == {("big", False)}
    script.scheduler.set_predicate("rm", None)
    script.schedule()
    script.advance(2)
    script.schedule()
    assert list(reserved(script).values()) == ["app/big"]


# -- required nodes --------------------------------------------------------------------------------


def test_5_6_a_required_node_is_the_only_one_tried() -> None:
    script = full("n1")
    script.node("n2", vcore=4)
    script.ask("app", "daemon", tags={REQUIRED: "n1"}, vcore=1)
    assert script.schedule() == []
    assert reserved(script) == {"n1": "app/daemon"}
    script.release("other", "n1-0-0")
    assert news(script.schedule()) == ["new app/daemon-0 on n1"]


def test_5_6_a_required_node_that_does_not_exist_lets_the_next_ask_pass() -> None:
    """As in scenario s24: no silent dead end; it is served when the node turns up."""
    script = full()
    script.node("n1", vcore=4)
    script.ask("app", "daemon", tags={REQUIRED: "n2"}, vcore=1)
    script.ask("app", "plain", vcore=1)
    assert news(script.schedule()) == ["new app/plain-0 on n1"]
    script.node("n2", vcore=4)
    assert news(script.schedule()) == ["new app/daemon-0 on n2"]


def test_2_7_a_required_node_ask_cancels_the_reservation_of_another() -> None:
    script = full("n1")
    script.ask("app", "big", vcore=2)
    script.schedule()
    script.advance(2)
    script.schedule()
    assert reserved(script) == {"n1": "app/big"}
    script.ask("app", "daemon", tags={REQUIRED: "n1"}, vcore=1)
    script.schedule()
    assert reserved(script) == {"n1": "app/daemon"}
    script.release("other", "n1-0-0")
    assert news(script.schedule()) == ["new app/daemon-0 on n1"]


def test_2_7_a_required_node_ask_does_not_cancel_that_of_another_one() -> None:
    script = full("n1")
    script.ask("app", "first", tags={REQUIRED: "n1"}, vcore=1)
    script.ask("app", "second", tags={REQUIRED: "n1"}, vcore=2)
    script.schedule()
    assert reserved(script) == {"n1": "app/first"}
    for uuid in ("n1-0-0", "n1-1-0", "n1-2-0"):
        script.release("other", uuid)
    heard = news(script.schedule())
    assert heard == ["new app/first-0 on n1", "new app/second-0 on n1"]


def test_no_invariant_breaks_when_time_goes_back() -> None:
    script = full("n1")
    script.advance(5)
    with pytest.raises(RequestError, match="went back"):
        script.scheduler.schedule(0)


def test_2_2_3_switched_off_and_on_again_while_an_ask_waits() -> None:
    script = Script()
    script.node("n1", vcore=2)
    script.node("n2", vcore=1)
    script.app("app")
    script.ask("app", "small", vcore=1)
    script.schedule()
    script.ask("app", "big", vcore=2)
    script.schedule()
    script.advance(2)
    script.schedule()
    assert list(reserved(script).values()) == ["app/big"]
    script.configure("", {"scheduler.disableReservation": "true"})
    assert reserved(script) == {}
    script.schedule()
    assert reserved(script) == {}
    script.configure("", {"scheduler.disableReservation": "false"})
    script.schedule()
    assert list(reserved(script).values()) == ["app/big"]
