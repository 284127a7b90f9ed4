"""Limits on what a user may hold (2.5, 5.6 step 3), by name and by wildcard, level by level."""

from __future__ import annotations

import pytest

from quadriga.si import Allocation, NodeInfo, TerminationType
from quadriga.sim.script import Script, resource


def queues(*lines: str) -> str:
    """A configuration with these lines for the children of root."""
    inside = "\n".join("          " + line for line in lines)
    return f"""\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        queues:
{inside}
"""


def one_queue(*limits: str) -> str:
    """``root.q`` with these limits, each as a flow mapping."""
    return queues("- name: q", "  limits:", *(f"    - {{limit: x, {each}}}" for each in limits))


def script_of(config: str, *, memory: int = 1000, reservations: bool = True) -> Script:
    extra = {} if reservations else {"scheduler.disableReservation": "true"}
    script = Script(config, extra=extra)
    script.node("n1", memory=memory, gpu=100)
    return script


def submit(script: Script, app: str, user: str, queue: str = "root.q") -> None:
    assert script.app(app, queue, user=user) == [f"accepted {app}"]


def allocated(heard: list[str]) -> list[str]:
    """The keys that were allocated, in order."""
    return [line.split("/")[1].split(" ")[0][:-2] for line in heard if line.startswith("new ")]


def used(script: Script, user: str, type_: str = "memory") -> int:
    partition = script.scheduler.partition()
    return partition.registry.mapping(partition.users[user].usage).get(type_, 0)


# -- whose limit -----------------------------------------------------------------------------------


def test_2_5_a_named_user_is_limited_and_others_are_not() -> None:
    script = script_of(one_queue("users: [ann], maxresources: {memory: 20}"))
    submit(script, "a", "ann")
    submit(script, "b", "bob")
    script.ask("a", "a1", "a2", "a3", memory=8)
    script.ask("b", "b1", "b2", "b3", memory=8)
    assert allocated(script.schedule()) == ["a1", "a2", "b1", "b2", "b3"]
    assert (used(script, "ann"), used(script, "bob")) == (16, 24)


def test_2_5_the_wildcard_is_a_limit_of_their_own_for_each_user() -> None:
    script = script_of(one_queue("users: ['*'], maxresources: {memory: 20}"))
    for user in ("ann", "bob"):
        submit(script, user[0], user)
        script.ask(user[0], *(f"{user[0]}{n}" for n in range(3)), memory=8)
    assert allocated(script.schedule()) == ["a0", "a1", "b0", "b1"]


def test_2_5_who_is_named_has_nothing_of_the_wildcard() -> None:
    script = script_of(
        one_queue("users: [ann], maxapplications: 5", "users: ['*'], maxresources: {memory: 10}")
    )
    submit(script, "a", "ann")
    submit(script, "b", "bob")
    script.ask("a", "a1", "a2", memory=8)
    script.ask("b", "b1", "b2", memory=8)
    assert allocated(script.schedule()) == ["a1", "a2", "b1"]


def test_2_5_one_entry_for_two_users_gives_each_as_much() -> None:
    script = script_of(one_queue("users: [ann, bob], maxresources: {memory: 10}"))
    for user in ("ann", "bob"):
        submit(script, user[0], user)
        script.ask(user[0], f"{user[0]}1", f"{user[0]}2", memory=8)
    assert allocated(script.schedule()) == ["a1", "b1"]


def test_2_5_all_applications_of_a_user_share_the_limit() -> None:
    script = script_of(one_queue("users: ['*'], maxresources: {memory: 20}"))
    for app in ("a", "b", "c"):
        submit(script, app, "ann")
        script.ask(app, f"{app}1", memory=8)
    assert allocated(script.schedule()) == ["a1", "b1"]
    script.release("a", "a1-0")
    assert allocated(script.schedule()) == ["c1"]


# -- how much --------------------------------------------------------------------------------------


def test_5_1_a_type_that_the_limit_does_not_name_is_free() -> None:
    script = script_of(one_queue("users: [ann], maxresources: {memory: 10}"))
    submit(script, "a", "ann")
    script.ask("a", "a1", memory=1, gpu=50)
    script.ask("a", "a2", gpu=50)
    assert allocated(script.schedule()) == ["a1", "a2"]


def test_5_1_a_type_named_with_zero_allows_nothing_of_it() -> None:
    script = script_of(one_queue("users: [ann], maxresources: {memory: 10, gpu: 0}"))
    submit(script, "a", "ann")
    script.ask("a", "a1", memory=1, gpu=1)
    script.ask("a", "a2", memory=1)
    assert allocated(script.schedule()) == ["a2"]


def test_5_6_a_smaller_ask_behind_one_that_does_not_fit_is_served() -> None:
    script = script_of(one_queue("users: [ann], maxresources: {memory: 10}"))
    submit(script, "a", "ann")
    submit(script, "b", "ann")
    script.ask("a", "a1", memory=6)
    script.ask("a", "a2", memory=6)
    script.ask("b", "b1", memory=4)
    assert allocated(script.schedule()) == ["a1", "b1"]


def test_2_5_the_tightest_level_decides() -> None:
    script = script_of(
        queues(
            "- name: p",
            "  limits:",
            "    - {limit: x, users: ['*'], maxresources: {memory: 20, gpu: 3}}",
            "  queues:",
            "    - name: a",
            "      limits:",
            "        - {limit: x, users: [ann], maxresources: {memory: 12}}",
            "    - name: b",
        )
    )
    submit(script, "a", "ann", "root.p.a")
    submit(script, "b", "ann", "root.p.b")
    submit(script, "c", "bob", "root.p.b")
    script.ask("a", "a1", "a2", "a3", memory=5, gpu=1)
    script.ask("b", "b1", "b2", "b3", memory=5)
    script.ask("c", "c1", memory=20)
    # the children of p take turns; ann has 12 in a, 20 in p; bob 20 of his own in p
    assert sorted(allocated(script.schedule())) == ["a1", "a2", "b1", "b2", "c1"]
    script.release("b", "b1-0")
    assert allocated(script.schedule()) == ["b3"]  # a3 has no room in a
    script.release("a", "a1-0")
    assert allocated(script.schedule()) == ["a3"]


def test_2_2_limits_of_the_partition_are_those_of_root() -> None:
    script = script_of(
        """\
partitions:
  - name: default
    limits:
      - {limit: x, users: ['*'], maxresources: {memory: 10}}
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: a
          - name: b
"""
    )
    submit(script, "a", "ann", "root.a")
    submit(script, "b", "ann", "root.b")
    script.ask("a", "a1", memory=6)
    script.ask("b", "b1", memory=6)
    assert allocated(script.schedule()) == ["a1"]
    script.release("a", "a1-0")
    assert allocated(script.schedule()) == ["b1"]


def test_2_9_a_limit_holds_in_queues_that_placement_makes() -> None:
    script = script_of(
        """\
partitions:
  - name: default
    placementrules:
      - {name: user, create: true, parent: {name: fixed, value: root.users}}
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: users
            parent: true
            limits:
              - {limit: x, users: ['*'], maxresources: {memory: 10}}
"""
    )
    submit(script, "a", "ann", "")
    script.ask("a", "a1", "a2", memory=8)
    assert allocated(script.schedule()) == ["a1"]
    assert script.scheduler.application("a").queue.path == "root.users.ann"


# -- order, and limits that applications share ------------------------------------------------------


def test_5_5_the_order_of_applications_goes_across_users() -> None:
    script = script_of(one_queue("users: ['*'], maxresources: {memory: 50}"))
    for app, user in (("a", "ann"), ("b", "bob"), ("c", "ann"), ("d", "bob")):
        submit(script, app, user)
        script.ask(app, f"{app}1", memory=8)
    script.ask("d", "d2", memory=8, priority=5)
    # by priority, then by submission; d's other ask counts as urgent only with the urgent one
    assert allocated(script.schedule()) == ["d2", "a1", "b1", "c1", "d1"]


def test_5_5_fair_order_across_users() -> None:
    config = one_queue("users: ['*'], maxresources: {memory: 100}").replace(
        "- name: q", "- name: q\n            properties: {application.sort.policy: fair}"
    )
    script = script_of(config)
    for app, user in (("a", "ann"), ("b", "bob"), ("c", "ann")):
        submit(script, app, user)
        script.ask(app, f"{app}1", f"{app}2", memory=4)
    assert allocated(script.schedule()) == ["a1", "b1", "c1", "a2", "b2", "c2"]


def test_2_5_a_user_at_the_limit_holds_up_nobody_else() -> None:
    script = script_of(one_queue("users: [ann], maxresources: {memory: 8}"), memory=24)
    submit(script, "a", "ann")
    submit(script, "b", "bob")
    script.ask("a", "a1", "a2", memory=8)
    script.ask("b", "b1", "b2", "b3", memory=8)
    assert allocated(script.schedule()) == ["a1", "b1", "b2"]
    script.release("b", "b1-0")  # room on the node, none for ann
    assert allocated(script.schedule()) == ["b3"]


def test_2_5_a_queue_quota_and_a_limit_both_hold() -> None:
    config = one_queue("users: [ann], maxresources: {memory: 10}").replace(
        "- name: q", "- name: q\n            resources: {max: {memory: 20}}"
    )
    script = script_of(config)
    submit(script, "b", "bob")
    submit(script, "a", "ann")
    script.ask("b", "b1", memory=12)
    script.ask("a", "a1", "a2", memory=8)
    assert allocated(script.schedule()) == ["b1", "a1"]
    script.release("b", "b1-0")
    assert allocated(script.schedule()) == []  # a2 is over ann's limit
    script.release("a", "a1-0")
    assert allocated(script.schedule()) == ["a2"]


# -- what counts -----------------------------------------------------------------------------------


def gang(script: Script, app: str = "g", user: str = "ann") -> None:
    script.app(app, "root.q", user=user, gang={"memory": 15})
    keys = [f"{app}-ph{n}" for n in range(3)]
    script.ask(app, *keys, group="tg", placeholder=True, memory=5)


def test_g59_placeholders_count_for_the_user() -> None:
    script = script_of(one_queue("users: [ann], maxresources: {memory: 20}"))
    gang(script)
    submit(script, "a", "ann")
    script.ask("a", "a1", "a2", memory=5)
    assert allocated(script.schedule()) == ["g-ph0", "g-ph1", "g-ph2", "a1"]


def test_x16_a_limit_is_no_gate_for_a_whole_gang() -> None:
    """The gate looks at queues; a user's limit lets a gang in piece by piece, as in YuniKorn."""
    script = script_of(one_queue("users: [ann], maxresources: {memory: 12}"))
    gang(script)
    assert allocated(script.schedule()) == ["g-ph0", "g-ph1"]


def test_g31_a_replacement_changes_the_users_usage_in_one_update() -> None:
    script = script_of(one_queue("users: [ann], maxresources: {memory: 15}"))
    gang(script)
    script.schedule()
    script.ask("g", "real", group="tg", memory=3)
    script.schedule()
    assert used(script, "ann") == 15  # G28: nothing is freed before the confirmation
    script.confirm(TerminationType.PLACEHOLDER_REPLACED)
    assert used(script, "ann") == 13
    submit(script, "a", "ann")
    script.ask("a", "a1", memory=3)
    script.ask("a", "a2", memory=2)
    assert allocated(script.schedule()) == ["a2"]


def test_g28_a_replacement_needs_no_headroom() -> None:
    script = script_of(one_queue("users: [ann], maxresources: {memory: 15}"))
    gang(script)
    script.schedule()
    script.ask("g", "real", group="tg", memory=5)
    assert script.schedule() == ["released g/g-ph0-0 PLACEHOLDER_REPLACED"]
    assert script.confirm() == ["new g/real-0 on n1"]


def recovered(script: Script, app: str, key: str, memory: int, node: str = "n2") -> list[str]:
    message = Allocation(
        applicationID=app,
        allocationKey=key,
        UUID=f"{key}-0",
        nodeID=node,
        partitionName="default",
        resourcePerAlloc=resource({"memory": memory}),
    )
    return script.node(node, memory=100, existing=[message])


def test_2_11_recovery_counts_and_does_not_ask() -> None:
    script = script_of(one_queue("users: [ann], maxresources: {memory: 20}"))
    submit(script, "a", "ann")
    heard = recovered(script, "a", "old", 30)
    assert heard[-1] == "accepted node n2"
    assert used(script, "ann") == 30
    script.ask("a", "a1", memory=1)
    assert allocated(script.schedule()) == []
    script.release("a", "old-0")
    assert allocated(script.schedule()) == ["a1"]


def test_5_15_releasing_everything_gives_the_quota_back() -> None:
    """YuniKorn does not give it back while asks are pending, and they starve (bug 3, s36)."""
    script = script_of(one_queue("users: ['*'], maxresources: {memory: 20}"))
    submit(script, "a", "ann")
    script.ask("a", "a0", "a1", "a2", memory=8)
    assert allocated(script.schedule()) == ["a0", "a1"]
    script.release("a")
    assert used(script, "ann") == 0
    assert allocated(script.schedule()) == ["a2"]


def test_i32_a_node_that_goes_gives_back_what_was_on_it() -> None:
    script = script_of(one_queue("users: ['*'], maxresources: {memory: 20}"))
    script.node("n2", memory=100)
    submit(script, "a", "ann")
    script.ask("a", "a0", "a1", "a2", memory=8)
    script.schedule()
    script.node("n1", NodeInfo.DECOMISSION)
    script.node("n2", NodeInfo.DECOMISSION)
    script.node("n3", memory=100)
    assert used(script, "ann") == 0
    assert allocated(script.schedule()) == ["a2"]


def test_x31_a_removed_application_leaves_nothing_behind() -> None:
    script = script_of(one_queue("users: ['*'], maxresources: {memory: 20}"))
    for app in ("a", "b"):
        submit(script, app, "ann")
        script.ask(app, f"{app}0", f"{app}1", memory=8)
    assert allocated(script.schedule()) == ["a0", "a1"]
    script.remove_app("a")
    assert allocated(script.schedule()) == ["b0", "b1"]
    script.remove_app("b")
    partition = script.scheduler.partition()
    assert (partition.users, partition.groups, partition.waiting.short_ledgers) == ({}, {}, {})


# -- reservations ----------------------------------------------------------------------------------


def test_2_7_an_ask_without_headroom_reserves_nothing() -> None:
    script = script_of(one_queue("users: [ann], maxresources: {memory: 10}"), memory=10)
    submit(script, "b", "bob")
    submit(script, "a", "ann")
    script.ask("b", "b1", memory=10)
    script.ask("a", "a1", memory=11)
    script.schedule()
    script.node("n1", NodeInfo.UPDATE, memory=12)
    script.advance(3)
    script.schedule()
    assert not script.scheduler.partition().reservations


def test_2_7_a_reservation_that_a_limit_holds_back_is_used_when_there_is_headroom() -> None:
    script = script_of(one_queue("users: [ann], maxresources: {memory: 10}"), memory=20)
    for node in ("n2", "n4"):  # enough in all, and not on one node
        script.node(node, memory=6)
    submit(script, "b", "bob")
    submit(script, "a", "ann")
    script.ask("b", "b1", memory=20)
    script.ask("a", "a1", memory=10)
    assert allocated(script.schedule()) == ["b1"]
    script.advance(3)
    script.schedule()
    (kept,) = script.scheduler.partition().reservations
    assert kept.node.node_id == "n1"
    recovered(script, "a", "old", 5, "n3")  # takes ann's headroom away
    script.node("n3", NodeInfo.DRAIN_NODE)
    script.release("b", "b1-0")
    assert allocated(script.schedule()) == []
    assert script.scheduler.partition().waiting.short_of_quota
    script.release("a", "old-0")
    assert script.schedule() == ["new a/a1-0 on n1"]


# -- preemption ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("limit", "made_room"), [(20, ["b/b1-0"]), (4, [])])
def test_5_6_nobody_goes_for_an_ask_that_a_limit_holds_back(
    limit: int, made_room: list[str]
) -> None:
    script = script_of(
        queues(
            "- name: high",
            "  resources: {guaranteed: {memory: 10}}",
            "  properties: {preemption.delay: 1s}",
            f"  limits: [{{limit: x, users: [ann], maxresources: {{memory: {limit}}}}}]",
            "- name: low",
            "  resources: {guaranteed: {memory: 2}}",
        ),
        memory=20,
    )
    submit(script, "b", "bob", "root.low")
    script.ask("b", "b0", "b1", memory=10)
    script.schedule()
    submit(script, "a", "ann", "root.high")
    script.ask("a", "a1", memory=5, preempt=(True, True))
    script.advance(3)
    script.schedule()
    assert [f"{gone.applicationID}/{gone.UUID}" for gone in script.outstanding] == made_room


# -- the limits change -----------------------------------------------------------------------------


def limited_to(memory: int) -> str:
    return one_queue(f"users: ['*'], maxresources: {{memory: {memory}}}")


def test_2_2_a_raised_limit_lets_those_in_who_waited() -> None:
    script = script_of(limited_to(10))
    submit(script, "a", "ann")
    script.ask("a", "a1", "a2", "a3", memory=8)
    assert allocated(script.schedule()) == ["a1"]
    script.configure(limited_to(16))
    assert allocated(script.schedule()) == ["a2"]


def test_2_2_a_lowered_limit_evicts_nobody() -> None:
    script = script_of(limited_to(24))
    submit(script, "a", "ann")
    script.ask("a", "a1", "a2", "a3", memory=8)
    script.ask("a", "a4", memory=2)
    script.schedule()
    script.configure(limited_to(10))
    assert script.outstanding == []
    assert used(script, "ann") == 24
    script.release("a", "a1-0")
    script.release("a", "a2-0")
    assert allocated(script.schedule()) == ["a4"]


@pytest.mark.parametrize("before", ["", "users: [bob], maxresources: {memory: 1}"])
def test_2_2_a_new_limit_knows_what_is_held_already(before: str) -> None:
    script = script_of(one_queue(before) if before else queues("- name: q"))
    submit(script, "a", "ann")
    script.ask("a", "a1", "a2", memory=8)
    script.schedule()
    script.configure(limited_to(20))
    script.ask("a", "a3", memory=8)
    assert allocated(script.schedule()) == []
    script.configure(limited_to(24))
    assert allocated(script.schedule()) == ["a3"]


def test_2_2_without_its_limit_a_user_takes_what_there_is() -> None:
    script = script_of(limited_to(10))
    submit(script, "a", "ann")
    script.ask("a", "a1", "a2", memory=8)
    script.schedule()
    script.configure(queues("- name: q"))
    assert allocated(script.schedule()) == ["a2"]
    submit(script, "b", "bob")
    script.ask("b", "b1", memory=8)
    assert allocated(script.schedule()) == ["b1"]


def test_2_2_a_limit_that_moves_up_counts_the_queues_below() -> None:
    def tree(*limits: str) -> str:
        return queues("- name: p", *limits, "  queues:", "    - name: a", "    - name: b")

    limit = "    - {limit: x, users: ['*'], maxresources: {memory: 20}}"
    script = script_of(tree())
    submit(script, "a", "ann", "root.p.a")
    submit(script, "b", "ann", "root.p.b")
    script.ask("a", "a1", memory=8)
    script.ask("b", "b1", memory=8)
    script.schedule()
    script.configure(tree("  limits:", limit))
    script.ask("a", "a2", memory=8)
    assert allocated(script.schedule()) == []
    script.release("b", "b1-0")
    assert allocated(script.schedule()) == ["a2"]
