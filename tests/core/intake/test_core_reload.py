"""Queues change while everything runs (I39, X33, 2.2)."""

import pytest
from core_steps import on_nodes, refused, run, serve, submit
from core_world import scripted, story
from tree_side import below, tree

from quadriga import si
from quadriga.core import Options
from quadriga.core.config import SORT_POLICIES
from quadriga.core.views import Views
from quadriga.sim.scripted.script import Script


def queues(*children: str, policy: str = "") -> str:
    """One partition; each child is a queue with what it has: ``a, maxapplications: 1``."""
    return tree(*children, partition=f"nodesortpolicy: {{type: {policy}}}" if policy else "")


def at(script: Script, path: str) -> str | None:
    """The state of a queue, ``None`` if there is none."""
    queue = script.scheduler.partition().queue(path)
    return queue.state if queue is not None else None


def test_i39_x11_a_limit_may_rise_and_fall() -> None:
    """A higher one serves those who waited; a lower one evicts nobody and lets nobody in."""
    script = on_nodes(queues("a, resources: {max: {vcore: 1}}"), n1=4000)
    submit(script, "app", "k", queue="root.a", repeat=4, vcore=1000)
    assert script.schedule() == ["app Running (run)", "new app/k-0 on n1"]
    assert script.configure(queues("a, resources: {max: {vcore: 2}}")) == []
    assert script.schedule() == ["new app/k-1 on n1"]
    script.configure(queues("a"))
    assert script.schedule(1) == ["new app/k-2 on n1"]
    script.configure(queues("a, resources: {max: {vcore: 1}}"))
    assert script.schedule() == []
    for uuid in ("k-0", "k-1"):
        script.release("app", uuid)
        assert script.schedule() == []
    script.release("app", "k-2")
    assert script.schedule() == ["new app/k-3 on n1"]


def test_i39_the_same_configuration_changes_nothing() -> None:
    text = queues("a")
    script = Script(text)
    before = script.scheduler.journal.count
    tree = list(script.scheduler.partition().queues())
    assert script.configure(text) == []
    assert script.configure(text + "\nchecksum: " + "AB" * 32) == []
    assert script.scheduler.journal.count == before
    assert list(script.scheduler.partition().queues()) == tree


def test_i39_x33_a_queue_that_is_gone_from_the_configuration_drains() -> None:
    script = on_nodes(queues("a", "b"), n1=2000)
    submit(script, "app", "k", queue="root.b", vcore=1000)
    script.configure(queues("a"))
    assert at(script, "root.b") == "Draining"
    # what is there goes on, also with new asks; nobody comes in
    assert script.schedule() == ["app Running (run)", "new app/k-0 on n1"]
    assert serve(script, "app", "l", vcore=1000) == ["new app/l-0 on n1"]
    refused(script.app("late", "root.b"), "late", "is Draining")
    # empty, it is gone when the cleaner comes (2.9)
    script.release("app")
    assert at(script, "root.b") == "Draining"
    script.advance(30)
    assert at(script, "root.b") == "Draining"
    script.advance(10)
    assert at(script, "root.b") is None
    assert story(script, "root.b") == ["remove", "removed"]


def test_i39_a_queue_goes_with_all_below_and_a_parent_with_its_last_leaf() -> None:
    script = Script(queues("a", "p, queues: [{name: q, queues: [{name: s}]}, {name: r}]"))
    script.app("app", "root.p.r")
    script.configure(queues("a"))
    for path in ("root.p", "root.p.q", "root.p.q.s"):
        assert at(script, path) == "Draining"
    script.advance(10)
    assert (at(script, "root.p"), at(script, "root.p.r")) == ("Draining", "Draining")
    assert (at(script, "root.p.q"), at(script, "root.p.q.s")) == (None, None)
    script.remove_app("app")
    script.advance(10)
    assert at(script, "root.p") is None


def test_i39_a_draining_queue_that_is_configured_again_is_restored() -> None:
    both = queues("a", "b")
    script = scripted(both, "app:root.b")
    script.configure(queues("a"))
    script.configure(both)
    assert at(script, "root.b") == "Active"
    assert script.app("late", "root.b") == ["accepted late"]
    script.remove_app("app")
    script.remove_app("late")
    script.advance(20)
    assert at(script, "root.b") == "Active"
    assert story(script, "root.b") == ["remove", "restore"]


def test_i39_a_leaf_with_applications_does_not_become_a_parent() -> None:
    script = scripted(queues("a", "b"), "app:root.b")
    changed = queues("c", "b, queues: [{name: x}]")
    with pytest.raises(si.RequestError, match="root.b has applications") as refused:
        script.configure(changed)
    assert (refused.value.request, refused.value.field) == ("UpdateConfigurationRequest", "config")
    # all or nothing
    assert (at(script, "root.a"), at(script, "root.c")) == ("Active", None)
    # without applications it does
    script.remove_app("app")
    script.configure(changed)
    assert script.app("app", "root.b.x") == ["accepted app"]
    assert story(script, "root.b") == ["remove", "removed"]


def test_i39_a_wrong_configuration_leaves_everything_as_it_is() -> None:
    script = Script(queues("a"))
    for text in ("partitions: 1", "[", queues("a, nonsense: 1")):
        with pytest.raises(si.RequestError) as refused:
            script.configure(text)
        assert refused.value.field == "config"
    with pytest.raises(si.RequestError, match="neither"):
        script.configure(queues("b"), {"si.messageOrder": "random"})
    assert (at(script, "root.a"), at(script, "root.b")) == ("Active", None)


def test_options_name_the_policy_of_partitions_that_name_none() -> None:
    """The configuration in force shows it; a policy that the configuration names is kept."""

    def policy(script: Script) -> str:
        shown = Views(script.scheduler).configuration()["partitions"][0]["nodesortpolicy"]["type"]
        assert script.scheduler.partition().config.node_sort_policy == shown
        return str(shown)

    assert policy(Script(queues("a"))) == "fair"  # YuniKorn's
    options = Options(node_sort_policy="bestfit")
    script = Script(queues("a"), options=options)
    assert policy(script) == "bestfit"
    script.configure(queues("a", policy="fair"))
    assert policy(script) == "fair"
    script.configure(queues("b"))
    assert policy(script) == "bestfit"
    script.node("n1", vcore=8, occupied={"vcore": 2})
    script.node("n2", vcore=2)
    assert run(script, "app", "k", queue="root.b", vcore=1)[-1] == "new app/k-0 on n2"
    with pytest.raises(ValueError, match="'best', not one of fair, binpacking, bestfit"):
        Options(node_sort_policy="best")


def test_i39_maxapplications_of_a_parent_grow_for_draining_queues_too() -> None:
    a, b = (f"{leaf}, maxapplications: 1" for leaf in "ab")
    script = on_nodes(queues(f"p, maxapplications: 1, {below(a, b)}"), n1=4000)
    for leaf in "ab":
        submit(script, leaf, "k", queue=f"root.p.{leaf}", vcore=1000)
    assert script.schedule() == ["a Running (run)", "new a/k-0 on n1"]
    script.configure(queues(f"p, maxapplications: 2, {below(a)}"))
    assert at(script, "root.p.b") == "Draining"
    assert script.schedule() == ["b Running (run)", "new b/k-0 on n1"]


def test_i39_the_priority_offset_of_a_queue_may_change_while_asks_wait() -> None:
    text = "a, properties: {{priority.offset: '{}'}}"
    script = Script(queues(text.format(0), "b"))
    for leaf in "ab":
        submit(script, leaf, "k", "l", queue=f"root.{leaf}", vcore=1000)
    script.configure(queues(text.format(-5), "b"))
    script.node("n1", vcore=1000)
    assert script.schedule() == ["b Running (run)", "new b/k-0 on n1"]
    script.configure(queues(text.format(5), "b"))
    script.node("n2", vcore=1000)
    assert script.schedule() == ["a Running (run)", "new a/k-0 on n2"]
    script.remove_app("a")
    script.remove_app("b")
    assert script.scheduler.partition().root.priorities == {}


POLICIES = [("fifo", "enabled"), ("fair", "disabled"), *((k, "enabled") for k in SORT_POLICIES[1:])]


@pytest.mark.parametrize("after", POLICIES, ids="-".join)
@pytest.mark.parametrize("before", POLICIES, ids="-".join)
def test_i39_any_policy_may_follow_another(before: tuple[str, str], after: tuple[str, str]) -> None:
    text = (
        "a, properties: {{application.sort.policy: {}, application.sort.priority: {}}}, "
        "resources: {{max: {{vcore: 9}}}}"
    )
    script = on_nodes(queues(text.format(*before)), n1=3000)
    for number in range(4):
        submit(script, f"app-{number}", "k", "l", queue="root.a", priority=number % 2, vcore=1000)
    script.schedule()
    script.release_ask("app-2")  # it has a place in the old order, and waits for nothing
    script.configure(queues(text.format(*after)))
    script.ask("app-2", "m", vcore=1000)
    script.node("n2", vcore=9000)
    script.schedule()
    script.advance(300)
    for _ in range(4):  # a stateaware queue starts them one by one
        script.schedule()
        script.advance(300)
    for number in range(4):
        assert script.scheduler.application(f"app-{number}").asks == {}


def test_i39_a_partition_may_come_drain_be_restored_and_go() -> None:
    one = queues("a")
    two = one[:-1] + ", " + one.removeprefix("partitions: [").replace("default", "other")
    script = Script(one)

    def names() -> list[str]:
        return [p.name for p in script.scheduler.partitions()]

    script.configure(two)
    assert names() == ["default", "other"]
    script.configure(one)  # without anything in it, it is gone at once
    assert names() == ["default"]
    script.configure(two)
    where = {"si/node-partition": "other"}
    assert script.node("n1", vcore=1000, attributes=where) == ["accepted node n1"]
    assert script.app("app", "root.a", partition="other") == ["accepted app"]
    script.configure(one)
    assert script.scheduler.partition("other").state == "Draining"
    assert script.app("late", "root.a", partition="other") == [
        "rejected late: partition [rm]other is stopped cannot add a new application late"
    ]
    script.configure(two)
    assert script.scheduler.partition("other").state == "Active"
    assert script.app("late", "root.a", partition="other") == ["accepted late"]
    script.configure(one)
    for app in ("app", "late"):
        removal = si.RemoveApplicationRequest(applicationID=app, partitionName="other")
        script.send(si.ApplicationRequest(rmID="rm", remove=[removal]))
    assert script.scheduler.partition("other").state == "Draining"
    script.node("n1", si.NodeInfo.DECOMISSION)
    assert names() == ["default"]
    # and back again, from nothing
    script.configure(two)
    assert script.scheduler.partition("other").state == "Active"
