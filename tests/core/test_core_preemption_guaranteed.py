"""Preemption for guarantees (5.9): when, which victims in which order, and what follows."""

from __future__ import annotations

import pytest

from quadriga.si import NodeInfo, TerminationType
from quadriga.si.constants import TAG_ALLOW_PREEMPTION, TAG_REQUIRED_NODE
from quadriga.sim.script import Script

from .preemption_side import TWO_QUEUES, ask, filled, news, preempted, preempting, reserved

PREEMPTED = TerminationType.PREEMPTED_BY_SCHEDULER


def explained(script: Script, app: str, key: str) -> str:
    checks = script.scheduler.explain(app, key).checks
    return next(check.text for check in checks if check.about == "preemption")


# -- the whole story -------------------------------------------------------------------------------


def test_5_9_a_queue_below_its_guarantee_preempts_in_one_above() -> None:
    script = filled()
    ask(script, "high", "h", vcore=1)
    assert script.schedule() == []
    script.advance(1)
    assert preempted(script.schedule()) == ["low/n1-3-0"]
    message = script.messages[-1].message.released[0]
    assert message.message == "preempting allocations to free up resources to run ask: h"
    assert reserved(script) == {"n1": "high/h"}
    assert preempting(script, "root.low") == preempting(script, "root") == {"vcore": 1}
    script.schedule()
    root = script.scheduler.partition().root
    assert sum(root.allocated) == 4  # nothing is free before it is gone
    script.confirm(PREEMPTED)
    assert preempting(script, "root") == {}
    assert news(script.schedule()) == ["high/h-0 on n1"]
    assert reserved(script) == {}


def test_5_9_the_preempting_ask_gets_the_room_first() -> None:
    script = filled()
    ask(script, "high", "h", vcore=1)
    script.advance(1)
    script.schedule()
    script.ask("low", "more", priority=100, vcore=1)
    script.confirm(PREEMPTED)
    assert news(script.schedule()) == ["high/h-0 on n1"]


def test_5_9_an_ask_preempts_once() -> None:
    script = filled()
    ask(script, "high", "h", vcore=1)
    script.advance(1)
    assert preempted(script.schedule()) == ["low/n1-3-0"]
    for _ in range(5):
        script.advance(20)
        assert preempted(script.schedule()) == []


def test_r5_a_lost_confirmation_is_requested_again_without_another_victim() -> None:
    script = filled()
    ask(script, "high", "h", vcore=1)
    script.advance(1)
    script.schedule()
    script.outstanding.clear()
    assert preempted(script.advance(60)) == ["low/n1-3-0"]
    assert preempted(script.schedule()) == []
    script.confirm(PREEMPTED)
    assert news(script.schedule()) == ["high/h-0 on n1"]


def test_x32_a_victim_that_stops_by_itself_frees_the_same_room() -> None:
    script = filled()
    ask(script, "high", "h", vcore=1)
    script.advance(1)
    script.schedule()
    script.release("low", "n1-3-0")
    assert preempting(script, "root.low") == {}
    assert news(script.schedule()) == ["high/h-0 on n1"]


def test_m7_a_victim_on_a_removed_node_is_no_longer_counted() -> None:
    script = filled(nodes=2)
    ask(script, "high", "h", vcore=1)
    script.advance(1)
    (victim,) = preempted(script.schedule())
    assert victim == "low/n1-3-0"
    script.node("n1", NodeInfo.DECOMISSION)
    assert preempting(script, "root.low") == {}
    assert reserved(script) == {}


def test_5_9_the_victims_application_goes_on() -> None:
    script = filled()
    ask(script, "high", "h", vcore=1)
    script.advance(1)
    script.schedule()
    script.confirm(PREEMPTED)
    script.schedule()
    script.ask("low", "again", vcore=1)
    script.release("high", "h-0")
    assert news(script.schedule()) == ["low/again-0 on n1"]


# -- preconditions ---------------------------------------------------------------------------------


def test_5_9_no_preemption_before_the_delay_of_the_queue() -> None:
    script = filled()
    ask(script, "high", "h", vcore=1)
    script.advance(0.999)
    assert script.schedule() == []
    script.advance(0.001)
    assert preempted(script.schedule())


def test_5_9_a_timer_tells_the_driver_when_the_ask_may_preempt() -> None:
    script = filled()
    ask(script, "high", "h", vcore=1)
    script.schedule()
    deadline = script.scheduler.next_deadline()
    assert deadline is not None and deadline - script.now <= 10**9
    while not preempted(script.log):
        deadline = script.scheduler.next_deadline()
        assert deadline is not None
        script.advance((deadline - script.now) / 1e9)
        script.schedule()
    assert script.now == 10**9


def test_2_10_the_default_delay_is_thirty_seconds() -> None:
    script = filled(TWO_QUEUES.replace("properties: {preemption.delay: 1s}", "properties: {}"))
    ask(script, "high", "h", vcore=1)
    script.advance(29.9)
    assert script.schedule() == []
    script.advance(0.1)
    assert preempted(script.schedule())


def test_i19_only_an_ask_that_may_preempt_others() -> None:
    script = filled()
    ask(script, "high", "h", others=False, vcore=1)
    script.advance(100)
    assert script.schedule() == []
    assert "policy" in explained(script, "high", "h")


def test_2_2_preemption_can_be_switched_off_and_on() -> None:
    off = TWO_QUEUES.replace(
        "    queues:\n      - name: root",
        "    preemption: {enabled: false}\n    queues:\n      - name: root",
    )
    script = filled(off)
    ask(script, "high", "h", vcore=1)
    script.advance(100)
    assert script.schedule() == []
    assert "disabled" in explained(script, "high", "h")
    script.configure(TWO_QUEUES)
    assert preempted(script.schedule()) == ["low/n1-3-0"]


def test_2_2_preemption_switched_off_before_the_ask_is_due() -> None:
    script = filled()
    ask(script, "high", "h", vcore=1)
    script.configure(
        TWO_QUEUES.replace(
            "    queues:\n      - name: root",
            "    preemption: {enabled: false}\n    queues:\n      - name: root",
        )
    )
    script.advance(100)
    assert script.schedule() == []


def test_2_2_a_shorter_delay_applies_to_pending_asks() -> None:
    script = filled(TWO_QUEUES.replace("delay: 1s", "delay: 1h"))
    ask(script, "high", "h", vcore=1)
    script.advance(10)
    assert script.schedule() == []
    script.configure(TWO_QUEUES)
    assert preempted(script.schedule()) == ["low/n1-3-0"]


def test_5_9_an_ask_with_a_required_node_does_not_preempt_elsewhere() -> None:
    script = filled()
    ask(script, "high", "h", tags={TAG_REQUIRED_NODE: "gone"}, vcore=1)
    script.advance(100)
    assert script.schedule() == []


def test_5_9_no_preemption_without_a_guarantee_on_the_path() -> None:
    script = filled(TWO_QUEUES.replace("            resources: {guaranteed: {vcore: 4m}}\n", ""))
    ask(script, "high", "h", vcore=1)
    script.advance(100)
    assert script.schedule() == []
    assert "nothing is guaranteed" in explained(script, "high", "h")


def test_5_9_a_guarantee_of_the_parent_counts() -> None:
    script = filled(PARENT.format(high="{}"))
    ask(script, "high", "h", vcore=1)
    script.advance(100)
    assert preempted(script.schedule()) == ["low/n1-3-0"]


PARENT = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: low
            resources: {{guaranteed: {{vcore: 2m}}}}
          - name: top
            parent: true
            resources: {{guaranteed: {{vcore: 4m}}}}
            queues:
              - name: high
                resources: {high}
"""


def test_5_9_no_preemption_above_the_own_guarantee() -> None:
    script = filled(size=8)
    ask(script, "high", "h", repeat=5, vcore=2)
    script.advance(100)
    assert preempted(script.schedule()) == ["low/n1-7-0", "low/n1-6-0"]  # once for the whole ask
    script.confirm(PREEMPTED)
    script.schedule()
    ask(script, "high", "more", vcore=3)
    script.advance(100)
    assert preempted(script.schedule()) == []
    assert "above what is guaranteed" in explained(script, "high", "more")


def test_5_9_victims_keep_what_is_guaranteed_to_them() -> None:
    script = filled()
    ask(script, "high", "a", "b", "c", vcore=1)
    script.advance(1)
    assert preempted(script.schedule()) == ["low/n1-3-0"]
    script.confirm(PREEMPTED)
    script.schedule()
    script.advance(15)  # the node was reserved when the others had their turn
    assert preempted(script.schedule()) == ["low/n1-2-0"]
    script.confirm(PREEMPTED)
    script.schedule()
    script.advance(15)
    assert preempted(script.schedule()) == []  # low is down to its guarantee


def test_5_9_retries_every_fifteen_seconds() -> None:
    script = filled()
    ask(script, "high", "h", vcore=3)  # low would fall to one
    script.advance(1)
    assert script.schedule() == []
    assert "15 s" in explained(script, "high", "h")
    script.node("n2", vcore=2)
    script.ask("low", "a", "b", vcore=1)
    script.schedule()
    script.advance(14.9)
    assert script.schedule() == []
    script.release("low", "a-0")  # there is room for two, and low can spare one more
    script.release("low", "b-0")
    script.node("n2", NodeInfo.DECOMISSION)
    script.node("n1", NodeInfo.UPDATE, vcore=5)
    script.ask("low", "c", vcore=1)
    script.schedule()
    script.advance(0.1)
    assert preempted(script.schedule()) == ["low/c-0", "low/n1-3-0", "low/n1-2-0"]


# -- who -------------------------------------------------------------------------------------------


def test_5_9_order_of_victims_opted_out_last_originators_last_newest_first() -> None:
    script = Script(TWO_QUEUES.replace("vcore: 2m", "vcore: 1m").replace("vcore: 4m", "vcore: 9m"))
    script.app("low", "root.low")
    script.app("high", "root.high")
    script.node("n1", vcore=9)
    ask(script, "low", "keep", vcore=1)
    ask(script, "low", "old", vcore=1)
    ask(script, "low", "opted", itself=False, vcore=1)
    ask(script, "low", "driver", originator=True, vcore=1)
    ask(script, "low", "both", itself=False, originator=True, vcore=1)
    ask(script, "low", "new", vcore=1)
    script.schedule()
    script.ask("high", "has", repeat=3, vcore=1)
    script.schedule()
    order = []
    for n in range(5):
        ask(script, "high", f"h{n}", vcore=1)
        script.advance(1)
        order += preempted(script.schedule())
        script.confirm(PREEMPTED)
        script.schedule()
    assert order == ["low/new-0", "low/old-0", "low/keep-0", "low/driver-0", "low/opted-0"]


def test_x21_without_a_policy_a_tag_says_who_may_not_be_preempted() -> None:
    script = Script(TWO_QUEUES)
    script.app("low", "root.low")
    script.app("high", "root.high")
    script.node("n1", vcore=4)
    script.ask("low", "a", "b", "c", vcore=1)
    script.ask("low", "opted", tags={TAG_ALLOW_PREEMPTION: "false"}, vcore=1)
    script.schedule()
    ask(script, "high", "h", vcore=1)
    script.advance(1)
    assert preempted(script.schedule()) == ["low/c-0"]


def test_5_9_candidates_that_do_not_help_on_the_node_come_last() -> None:
    script = Script(MEMORY)
    script.app("low", "root.low")
    script.app("high", "root.high")
    script.node("n1", vcore=4, memory=100)
    ask(script, "low", "a", vcore=1, memory=10)
    ask(script, "low", "b", vcore=1, memory=10)
    ask(script, "low", "c", vcore=2, memory=10)
    ask(script, "low", "big", memory=70)
    script.schedule()
    ask(script, "high", "h", vcore=2)
    script.advance(30)
    assert preempted(script.schedule()) == ["low/c-0"]  # not big, which is newer


MEMORY = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: low
            resources: {guaranteed: {vcore: 1m, memory: 1}}
          - name: high
            resources: {guaranteed: {vcore: 4m, memory: 50}}
"""


def test_5_9_the_node_with_the_fewest_victims_then_by_name() -> None:
    script = filled(nodes=2, size=2)
    script.node("n0", vcore=2)
    script.ask("low", "wide", vcore=2)
    script.schedule()
    ask(script, "high", "h", vcore=2)
    script.advance(1)
    assert preempted(script.schedule()) == ["low/wide-0"]
    assert reserved(script) == {"n0": "high/h"}


def test_5_9_draining_and_reserved_nodes_are_not_used() -> None:
    script = filled(TWO_QUEUES.replace("vcore: 2m", "vcore: 1m"), nodes=2, size=2)
    script.node("n1", NodeInfo.DRAIN_NODE)
    ask(script, "high", "a", "b", vcore=1)
    script.advance(1)
    assert preempted(script.schedule()) == ["low/n2-1-0"]
    assert reserved(script) == {"n2": "high/a"}


def test_5_9_required_node_allocations_are_no_victims() -> None:
    script = Script(TWO_QUEUES)
    script.app("low", "root.low")
    script.app("high", "root.high")
    script.node("n1", vcore=4)
    script.ask("low", "a", "b", vcore=1)
    script.schedule()
    script.ask("low", "d1", "d2", tags={TAG_REQUIRED_NODE: "n1"}, vcore=1)
    script.schedule()
    ask(script, "high", "h", vcore=1)
    script.advance(1)
    assert preempted(script.schedule()) == ["low/b-0"]


def test_5_9_no_victim_of_higher_priority() -> None:
    script = Script(TWO_QUEUES)
    script.app("low", "root.low")
    script.app("high", "root.high")
    script.node("n1", vcore=4)
    ask(script, "low", "a", "b", priority=1, vcore=1)
    ask(script, "low", "c", "d", priority=5, vcore=1)
    script.schedule()
    ask(script, "high", "h", priority=4, vcore=1)
    script.advance(1)
    assert preempted(script.schedule()) == ["low/b-0"]


@pytest.mark.parametrize(
    ("low", "high", "victims"),
    [
        ("priority.offset: '0'", "priority.offset: '0'", []),
        ("priority.offset: '-3'", "priority.offset: '0'", ["low/n1-3-0"]),
        ("priority.offset: '0'", "priority.offset: '3'", ["low/n1-3-0"]),
        ("priority.policy: fence", "priority.offset: '0'", ["low/n1-3-0"]),
        ("priority.policy: fence, priority.offset: '1'", "priority.offset: '0'", []),
        ("priority.policy: fence, priority.offset: '1'", "priority.offset: '1'", ["low/n1-3-0"]),
        ("priority.offset: '0'", "priority.policy: fence, priority.offset: '3'", ["low/n1-3-0"]),
        ("priority.offset: '0'", "priority.policy: fence, priority.offset: '2'", []),
    ],
)
def test_5_9_priorities_are_seen_through_offsets_and_fences(
    low: str, high: str, victims: list[str]
) -> None:
    """The ask has priority 0, the candidates have 3."""
    config = TWO_QUEUES.replace(
        "          - name: low\n", f"          - name: low\n            properties: {{{low}}}\n"
    ).replace("{preemption.delay: 1s}", f"{{preemption.delay: 1s, {high}}}")
    script = Script(config)
    script.app("low", "root.low")
    script.app("high", "root.high")
    script.node("n1", vcore=4)
    script.ask("low", *(f"n1-{n}" for n in range(4)), priority=3, vcore=1)
    script.schedule()
    ask(script, "high", "h", vcore=1)
    script.advance(1)
    assert preempted(script.schedule()) == victims


def test_5_9_no_victims_in_a_disabled_queue() -> None:
    config = TWO_QUEUES.replace(
        "          - name: low\n",
        "          - name: low\n            properties: {preemption.policy: disabled}\n",
    )
    script = filled(config)
    ask(script, "high", "h", vcore=1)
    script.advance(100)
    assert script.schedule() == []
    assert "nobody" in explained(script, "high", "h")


FENCED = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: low
            resources: {guaranteed: {vcore: 1m}}
          - name: top
            parent: true
            properties: {preemption.policy: POLICY}
            resources: {guaranteed: {vcore: 8m}}
            queues:
              - name: high
                resources: {guaranteed: {vcore: 4m}}
              - name: near
                resources: {guaranteed: {vcore: 1m}}
"""


def test_5_9_a_preemption_fence_keeps_the_ask_inside() -> None:
    for policy, victims in (("fence", ["near/v-0"]), ("default", ["low/w-0"])):
        script = Script(FENCED.replace("POLICY", policy))
        script.app("low", "root.low")
        script.app("near", "root.top.near")
        script.app("high", "root.top.high")
        script.node("n1", vcore=2)
        script.node("n2", vcore=2)
        script.ask("near", "v", "y", vcore=1)
        script.schedule()
        script.ask("low", "w", "x", vcore=1)
        script.schedule()
        ask(script, "high", "h", vcore=1)
        script.advance(30)
        first = preempted(script.schedule())
        assert first == victims, policy


# -- quotas ----------------------------------------------------------------------------------------

QUOTA = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: top
            parent: true
            resources: {max: {vcore: 4m}}
            queues:
              - name: low
                resources: {guaranteed: {vcore: 1m}}
              - name: high
                properties: {preemption.delay: 1s}
                resources: {guaranteed: {vcore: 2m}}
"""


def test_5_6_preemption_when_only_a_quota_has_no_room() -> None:
    """The ask fits the second node as it is; the victim is somewhere else."""
    script = filled(QUOTA)
    script.node("n2", vcore=4)
    ask(script, "high", "h", vcore=1)
    script.advance(1)
    assert preempted(script.schedule()) == ["low/n1-3-0"]
    assert reserved(script) == {"n2": "high/h"}
    script.confirm(PREEMPTED)
    assert news(script.schedule()) == ["high/h-0 on n2"]


def test_5_9_further_victims_for_the_queues_above() -> None:
    script = filled(QUOTA)
    script.node("n2", vcore=4)
    ask(script, "high", "h", vcore=2)
    script.advance(1)
    assert preempted(script.schedule()) == ["low/n1-3-0", "low/n1-2-0"]


def test_5_9_no_victims_if_the_candidates_hold_too_little() -> None:
    script = filled(
        QUOTA.replace("guaranteed: {vcore: 2m}", "guaranteed: {vcore: 3m}")
        .replace("guaranteed: {vcore: 1m}", "guaranteed: {vcore: 3m}")
        .replace("max: {vcore: 4m}", "max: {vcore: 6m}"),
        size=6,
    )
    script.node("n2", vcore=6)
    ask(script, "high", "h", vcore=3)
    script.advance(1)
    assert preempted(script.schedule()) == ["low/n1-5-0", "low/n1-4-0", "low/n1-3-0"]
    ask(script, "high", "more", vcore=1)
    script.advance(1)
    assert preempted(script.schedule()) == []


# -- reservations ----------------------------------------------------------------------------------


def test_5_6_an_ask_reserves_before_it_preempts_and_each_takes_a_round() -> None:
    config = TWO_QUEUES.replace("preemption.delay: 1s", "preemption.delay: 3s")
    script = filled(config, nodes=2)
    script.node("spare", NodeInfo.CREATE_DRAIN, vcore=100)  # root's quota is not what is short
    ask(script, "high", "h", vcore=1)
    script.advance(3)
    script.schedule(1)
    assert reserved(script) == {"n1": "high/h"}
    assert preempted(script.schedule(1)) == ["low/n1-3-0"]


def test_5_9_no_victims_on_a_node_reserved_for_another_ask() -> None:
    config = TWO_QUEUES.replace("vcore: 2m", "vcore: 1m")
    script = filled(config, nodes=1)
    ask(script, "high", "a", "b", vcore=1)
    script.advance(1)
    assert preempted(script.schedule()) == ["low/n1-3-0"]
    assert reserved(script) == {"n1": "high/a"}
    script.confirm(PREEMPTED)
    assert news(script.schedule()) == ["high/a-0 on n1"]
    assert preempted(script.log[-1:]) == []
    script.advance(15)
    assert preempted(script.schedule()) == ["low/n1-2-0"]


def test_i17_an_updated_ask_may_preempt_again() -> None:
    script = filled()
    ask(script, "high", "h", vcore=1)
    script.advance(1)
    assert preempted(script.schedule()) == ["low/n1-3-0"]
    ask(script, "high", "h", vcore=2)
    assert reserved(script) == {}
    assert preempted(script.schedule()) == []  # who is on his way already is not counted
    script.confirm(PREEMPTED)
    assert news(script.schedule()) == []
    script.advance(15)
    assert preempted(script.schedule()) == ["low/n1-2-0"]
    script.confirm(PREEMPTED)
    assert news(script.schedule()) == ["high/h-0 on n1"]


def test_5_9_victims_are_released_even_if_the_ask_is_withdrawn() -> None:
    script = filled()
    ask(script, "high", "h", vcore=1)
    script.advance(1)
    script.schedule()
    script.release_ask("high", "h")
    assert reserved(script) == {}
    script.confirm(PREEMPTED)
    script.ask("low", "again", vcore=1)
    assert news(script.schedule()) == ["low/again-0 on n1"]


# -- explain ---------------------------------------------------------------------------------------


def test_explain_reports_the_state_of_preemption() -> None:
    script = filled()
    ask(script, "high", "h", vcore=1)
    assert explained(script, "high", "h") == "may preempt in 1 s"
    script.advance(1)
    assert explained(script, "high", "h") == "may preempt in the next round"
    script.schedule()
    told = explained(script, "high", "h")
    assert told == "preempted, to run on node n1: waits for the confirmations"
