"""Gangs that want something of the domains that they run in (Q13)."""

from typing import Any

import numpy as np
import pytest
from core_world import later, news, refuse, scripted, state
from preemption_side import PREEMPTED, preempted, reserved

from quadriga.core import Options
from quadriga.core.resources.locality import MEMBERS, PREFERRED, REQUIRED
from quadriga.si import NodeInfo, TerminationType
from quadriga.si.constants import TAG_REQUIRED_NODE
from quadriga.si.predicates import KnownRefusals
from quadriga.sim.scripted.script import Script

CONFIG = """
partitions:
  - name: default
    topology: [zone, rack, host]
    nodesortpolicy: {type: %s}
    queues:
      - name: root
        submitacl: "*"
        properties: {gang.gather.after: 1m}
        queues:
          - name: default
          - name: first
            resources: {guaranteed: {vcore: 64m}}
            properties: {preemption.delay: 1s}
"""
RACK = {REQUIRED: "rack"}


def cluster(racks: str = "a1 a1 a2 a2 b1 b1", vcore: int = 4, order: str = "bestfit") -> Script:
    """Nodes ``n0``, ``n1``, ... in these racks; the first letter is the zone."""
    script = scripted(CONFIG % order, options=Options(journal_size=None))
    for at, rack in enumerate(racks.split()):
        join(script, f"n{at}", rack, vcore)
    return script


def join(script: Script, name: str, rack: str, vcore: int = 4) -> None:
    labels = {"zone": rack[0], "rack": rack[1:], "host": name} if rack != "-" else {}
    script.node(name, attributes=labels, vcore=vcore)


def gang(
    script: Script, name: str, members: int, tags: dict[str, str], vcore: int = 2, **more: Any
) -> list[str]:
    """A gang with placeholders; the tags are of its application. Returns the nodes of its members."""
    script.app(name, gang={"vcore": members * vcore}, tags=tags, **more)
    keys = [f"{name}{at}" for at in range(members)]
    script.ask(name, *keys, group="g", placeholder=True, preempt=(True, True), vcore=vcore)
    return nodes(script.schedule())


def nodes(heard: list[str]) -> list[str]:
    return [line.split(" on ")[1] for line in news(heard)]


def fill(script: Script, node: str, vcore: int) -> None:
    """Something that runs on the node."""
    script.app(f"on-{node}")
    script.ask(f"on-{node}", "x", tags={TAG_REQUIRED_NODE: node}, vcore=vcore)
    assert news(script.schedule()) == [f"on-{node}/x-0 on {node}"]


def told(script: Script, name: str, key: str) -> str:
    return str(script.scheduler.explain(name, key).verdict)


def test_q13_all_members_run_in_one_domain_of_the_required_level_and_a_large_one_is_free() -> None:
    """Rack 1 of zone a and rack 1 of zone b are two racks. The rack with the least room that is enough is
    taken; nodes without labels are in none."""
    script = cluster("- a1 a1 b1 b1 b1")
    assert gang(script, "g", 4, RACK) == ["n1", "n1", "n2", "n2"]
    assert gang(script, "h", 5, RACK) == ["n3", "n3", "n4", "n4", "n5"]
    assert gang(script, "i", 3, RACK) == []
    assert told(script, "i", "i0") == (
        "1 of 3 members of the gang could start now, and they are placed together or not at all: no rack "
        "has room for 3 members at once; the best, b/1, has 1 now."
    )
    assert gang(script, "j", 3, {}) == ["n5", "n0", "n0"]  # others are placed as ever


def test_q13_a_preferred_level_gives_way_to_wider_ones_and_few_domains() -> None:
    script = cluster("a1 a2 a3 b1 b2 b3")
    assert gang(script, "g", 2, {PREFERRED: "rack"}) == ["n0", "n0"]
    assert gang(script, "h", 4, {PREFERRED: "rack"}) == ["n1", "n1", "n2", "n2"]
    assert gang(script, "i", 3, {PREFERRED: "rack", REQUIRED: "zone"}) == ["n3", "n3", "n4"]


def test_q13_a_task_group_has_a_rule_of_its_own_within_that_of_its_gang() -> None:
    """The workers share a rack, at most two on a host; the launcher is in their zone."""
    script = cluster("a1 a1 a1 b2 b3")
    script.app("g", gang={"vcore": 13}, tags={REQUIRED: "zone"})
    workers = {**RACK, MEMBERS: "host=2"}
    script.ask("g", *"abcdef", group="w", placeholder=True, tags=workers, vcore=2)
    script.ask("g", "l", group="l", placeholder=True, vcore=1)
    assert nodes(script.schedule()) == []  # the workers take all of zone a
    join(script, "n5", "a9")
    assert nodes(script.schedule()) == ["n0", "n0", "n1", "n1", "n2", "n2", "n5"]


def test_q13_q14_shares_of_a_device_are_counted_by_unit() -> None:
    """Three shares of 600 do not fit two devices of one rack, though 1,800 of 2,000 are free there."""
    text = (CONFIG % "bestfit").replace(
        "topology:", "devices: [{name: gpu, shared: true}]\n    topology:"
    )
    script = scripted(text, options=Options(journal_size=None))
    for name, rack in (("n0", "a"), ("n1", "b"), ("n2", "b")):
        labels = {"zone": "z", "rack": rack, "host": name}
        script.node(name, attributes=labels, vcore=9, gpu=2000)
    script.app("g", gang={"vcore": 3, "gpu": 1800}, tags=RACK)
    script.ask("g", *"abc", group="g", placeholder=True, vcore=1, gpu=600)
    assert nodes(script.schedule()) == ["n1", "n1", "n2"]


@pytest.mark.parametrize(("bound", "placed"), [("host=1", "n0 n1 n2"), ("host=2-4", "n0 n0 n0")])
def test_q13_the_members_of_a_domain_are_bounded(bound: str, placed: str) -> None:
    assert " ".join(gang(cluster("a1 a1 a1 a1", vcore=8), "g", 3, {MEMBERS: bound})) == placed


@pytest.mark.parametrize(
    "tags", [{MEMBERS: "host=0"}, {MEMBERS: "host=3-2"}, {MEMBERS: "=3"}, {REQUIRED: "x" * 318}]
)
def test_q13_a_rule_that_cannot_be_read_is_refused(tags: dict[str, str]) -> None:
    """Whether the application or an ask has it. An ask that is known stays as it was."""
    script = cluster()
    (name,) = tags
    assert any(f"tag {name}" in line for line in script.app("g", gang={"vcore": 2}, tags=tags))
    script.app("h", gang={"vcore": 2})
    for known in (False, True):
        if known:
            script.ask("h", "m", group="g", placeholder=True, vcore=2)
        heard = script.ask("h", "m", group="g", placeholder=True, tags=tags, vcore=2)
        assert any(f"tag {name}" in line for line in heard)
    assert nodes(script.schedule()) == ["n0"]


def test_q13_a_level_that_is_not_declared_holds_the_gang_until_it_is() -> None:
    script = cluster()
    assert gang(script, "g", 2, {REQUIRED: "block"}) == []
    assert "block is no level of the partition, whose levels are: zone, rack, host" in told(
        script, "g", "g0"
    )
    script.configure((CONFIG % "bestfit").replace("zone, rack, host", "zone, rack, block, host"))
    script.node("n0", NodeInfo.UPDATE, attributes={"block": "x"})
    assert nodes(script.schedule()) == ["n0", "n0"]


def test_q13_a_lost_member_gets_a_node_of_the_domain_of_the_others() -> None:
    """Of a host that has its members already it gets none, and it waits for its rack."""
    script = cluster("a1 a1 a1 b2", vcore=4)
    assert gang(script, "g", 2, {**RACK, MEMBERS: "host=1"}) == ["n0", "n1"]
    for at in range(2):
        script.ask("g", f"r{at}", group="g", vcore=2)
    script.schedule()
    script.confirm()
    assert state(script) == "Running"
    fill(script, "n2", 4)
    script.release("g", "r0-0", TerminationType.STOPPED_BY_RM)
    fill(script, "n0", 4)
    script.ask("g", "again", group="g", vcore=2)
    assert nodes(script.schedule()) == []
    assert "its gang runs in a/1 of the level rack" in str(
        script.scheduler.explain("g", "again").checks
    )
    script.release("on-n2", "x-0", TerminationType.STOPPED_BY_RM)
    assert nodes(script.schedule()) == ["n2"]


def test_q13_a_lost_member_is_placed_near_the_others_if_the_rack_is_only_preferred() -> None:
    """Others have more of the node order's favour; when the rack is full the zone comes next."""
    script = cluster("a1 a1 a2 b1", vcore=4)
    fill(script, "n3", 2)
    assert gang(script, "g", 2, {PREFERRED: "rack"}) == ["n2", "n2"]
    for at in range(4):
        script.ask("g", f"r{at}", group="g", vcore=2)
    assert nodes(script.schedule()) == ["n0", "n0"]  # two take over placeholders
    script.confirm()
    script.release("g", "r0-0", TerminationType.STOPPED_BY_RM)
    script.ask("g", "again", group="g", vcore=2)
    assert nodes(script.schedule()) == ["n2"]


def test_q13_the_start_of_a_gang_is_planned_on_nodes_of_one_domain() -> None:
    script = cluster("a1 a1 b2 b2")
    for at in range(4):
        fill(script, f"n{at}", 3)
    assert gang(script, "g", 4, RACK) == []
    later(script, 61)
    plan = script.scheduler.partition().node_index.planned
    assert plan is not None
    assert sorted(node.node_id for node in plan.needs) == ["n0", "n1"]
    for at in (2, 3):
        script.release(f"on-n{at}", "x-0", TerminationType.STOPPED_BY_RM)
    assert nodes(script.schedule()) == ["n2", "n2", "n3", "n3"]


def test_q13_victims_of_preemption_are_in_one_domain() -> None:
    """One victim in rack 2, where a node is free, rather than two in rack 1."""
    script = cluster("a1 a1 b2 b2", vcore=4)
    script.app("s")
    script.ask("s", "n0", "n1", "n2", vcore=4)
    assert nodes(script.schedule()) == ["n0", "n1", "n2"]
    gang(script, "g", 4, RACK, queue="root.first")
    assert preempted(later(script, 5)) == ["s/n2-0"]
    assert sorted(reserved(script)) == ["n2", "n3"]
    script.confirm(PREEMPTED, most=1)
    assert nodes(script.schedule()) == ["n2", "n2", "n3", "n3"]


def test_q13_members_that_predicates_judge_differently_find_their_nodes_in_one_domain() -> None:
    """No node takes all members, and each of them refuses the nodes that the order would give it first."""
    script = cluster("a1 a1 a1", vcore=2)
    refused = {("g0", "n2"), ("g1", "n0"), ("g1", "n1"), ("g2", "n1")}
    refuse(script, lambda key, node: (key, node) in refused)
    assert gang(script, "g", 3, RACK) == ["n1", "n2", "n0"]


def test_q13_a_gang_that_predicates_refused_is_tried_again_when_domains_change() -> None:
    class Predicate:
        """The first member accepts one node only; nothing changes that."""

        def __call__(self, key: str, node: str, allocate: bool) -> str | None:
            return "taint" if key == "g0" and node != "n0" else None

        def refused_nodes(self, key: str, nodes: tuple[str, ...]) -> KnownRefusals:
            refused = [self(key, node, True) is not None for node in nodes]
            return KnownRefusals(np.array(refused, np.int32), ["taint"], ())

    script = cluster("a1 a2 a2", vcore=2)
    script.scheduler.set_predicate("rm", Predicate())
    assert gang(script, "g", 2, RACK) == []
    script.node("n1", NodeInfo.UPDATE, attributes={"zone": "a", "rack": "1"})
    assert nodes(script.schedule()) == ["n0", "n1"]
