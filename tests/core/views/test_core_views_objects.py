"""What views say of queues, applications, nodes and partitions, and of what is not there (2.14)."""

from collections.abc import Callable
from typing import Any

import pytest
from core_steps import on_nodes, partitions, run, serve
from core_world import queues, report
from views_side import TREE, app_of, has, views_of

from quadriga.core.runtime.dialect import Dialect
from quadriga.core.views import BadRequest, NotFound, ViewError, Views
from quadriga.core.views.quantities import percent, percentages
from quadriga.si import Allocation, RegisterResourceManagerRequest
from quadriga.si.constants import FOREIGN_STATIC, TAG_FOREIGN
from quadriga.sim.scripted.script import Script, resource

# -- queues ----------------------------------------------------------------------------------------


def test_2_14_a_queue_says_what_is_configured() -> None:
    views = views_of(on_nodes(TREE, n1={"vcore": 8000, "memory": 80}))
    web = views.queue("default", "root.prod.web")
    has(web, queuename="root.prod.web", parent="root.prod", partition="", status="Active")
    has(web, isLeaf=True, isManaged=True, sortingPolicy="fifo", prioritySorting=False)
    has(web, maxResource={"memory": 40}, guaranteedResource={}, maxRunningApps=3, template=None)
    has(web, preemptionDelay="1m30s", quotaPreemptionDelay="0s")
    assert web["properties"] == {
        "application.sort.policy": "fifo",
        "application.sort.priority": "disabled",
        "colour": "blue",
        "preemption.delay": "90s",
    }
    prod = views.queue("default", "ROOT.Prod")
    has(prod, guaranteedResource={"memory": 20, "vcore": 2000}, isLeaf=False, sortingPolicy="fair")
    has(prod, isPreemptionFence=True, preemptionEnabled=True)
    has(prod, isPriorityFence=False, priorityOffset=10)
    assert prod["template"] == {
        "maxApplications": 2,
        "maxResource": {"vcore": 1000},
        "guaranteedResource": {},
        "properties": {"application.sort.policy": "fair"},
    }
    has(views.queue("default", "root.prod.batch"), isPriorityFence=True)


def test_2_14_without_subtree_the_names_of_children_are_there_all_the_same() -> None:
    views = views_of(Script(TREE))
    alone = views.queue("default", "root.prod")
    names = ["root.prod.batch", "root.prod.web"]
    assert alone["children"] == []
    assert alone["childrenNames"] == alone["childNames"] == names
    tree = views.queue("default", "root.prod", subtree=True)
    assert [child["queuename"] for child in tree["children"]] == names
    whole = views.queues("default")
    assert [child["queuename"] for child in whole["children"]] == ["root.dev", "root.prod"]
    assert whole["children"][1] == tree


def test_5_3_headroom_is_the_least_that_any_queue_above_leaves() -> None:
    script = on_nodes(TREE, n1={"vcore": 8000, "memory": 80})
    run(script, "app", "k", queue="root.prod.web", repeat=3, vcore=1000, memory=10)
    views = views_of(script)
    web = views.queue("default", "root.prod.web")
    has(web, allocatedResource={"memory": 30, "vcore": 3000}, absUsedCapacity={"memory": 75})
    has(web, headroom={"memory": 10, "vcore": 3000})  # its own memory, prod's vcore
    has(views.queue("default", "root.dev"), headroom={"memory": 50, "vcore": 5000})
    has(views.queue("default", "root.prod"), absUsedCapacity={"memory": 50, "vcore": 50})


def test_5_4_the_priority_of_a_queue_is_the_one_its_parent_knows() -> None:
    script = Script(TREE)
    for queue in ("web", "batch"):
        script.app(queue, f"root.prod.{queue}")
    views = views_of(script)
    assert views.queue("default", "root.prod")["currentPriority"] == -(2**31)
    script.ask("batch", "k", priority=50, vcore=1)
    assert views.queue("default", "root.prod.batch")["currentPriority"] == 3  # a fence
    assert views.queue("default", "root.prod")["currentPriority"] == 13
    script.ask("web", "k", priority=5, vcore=1)
    assert views.queue("default", "root.prod")["currentPriority"] == 15
    assert app_of(script, "web")["maxRequestPriority"] == 5


def test_2_9_running_and_gathering_applications_are_counted() -> None:
    script = on_nodes(TREE, n1={"vcore": 2000, "memory": 80})
    script.app("gang", "root.prod.batch", gang={"vcore": 3000})
    script.ask("gang", "p1", "p2", "p3", group="tg", placeholder=True, vcore=1000)
    run(script, "plain", "k", queue="root.dev", memory=1)
    views = views_of(script)
    batch = views.queue("default", "root.prod.batch")
    assert (batch["allocatingAcceptedApps"], batch["runningApps"]) == (["gang"], 0)
    assert batch["pendingResource"] == {"memory": 0, "vcore": 1000}
    assert views.queues("default")["runningApps"] == 1
    assert views.queues("default")["allocatingAcceptedApps"] == ["gang"]
    script.configure(TREE.replace("          - name: dev\n", ""))
    assert views.queue("default", "root.dev")["status"] == "Draining"


@pytest.mark.parametrize(
    ("used", "whole", "expected"), [(1, 3, 33), (5, 0, 100), (-1, 3, 0), (0, 0, 0), (7, 5, 140)]
)
def test_5_13_abs_used_capacity(used: int, whole: int, expected: int) -> None:
    assert percent(used, whole) == expected
    # types that one side lacks are left out
    assert percentages({"a": 1, "b": 1}, {"b": 2, "c": 2}) == {"b": 50}


# -- nodes -----------------------------------------------------------------------------------------


def test_x19_foreign_allocations_are_listed_with_what_they_are() -> None:
    script = Script()
    script.node("n1", occupied={"memory": 5}, vcore=4000, memory=10)
    foreign = Allocation(
        allocationKey="daemon",
        nodeID="n1",
        priority=9,
        allocationTags={TAG_FOREIGN: FOREIGN_STATIC},
        resourcePerAlloc=resource({"vcore": 100}),
    )
    script.advance(3)
    report(script, foreign)
    node = views_of(script).node("default", "n1")
    assert node["foreignAllocations"] == [
        {
            "allocationKey": "daemon",
            "allocationTags": {TAG_FOREIGN: FOREIGN_STATIC},
            "allocationTime": 3 * 10**9,
            "resource": {"vcore": 100},
            "priority": "9",
            "nodeId": "n1",
            "preemptable": False,
        }
    ]
    assert node["occupied"] == {"memory": 5, "vcore": 100}
    assert node["allocations"] == []


# -- partitions, clusters --------------------------------------------------------------------------


def test_2_14_a_partition_knows_when_it_last_changed_its_state() -> None:
    script = Script(partitions("default", "gpu"))
    script.node("n1", attributes={"si/node-partition": "gpu"}, vcore=1)
    script.advance(7)
    script.configure(partitions("default"))
    script.advance(1)
    default, gpu = views_of(script).partitions()
    has(gpu, name="gpu", state="Draining", lastStateTransitionTime=7 * 10**9)
    has(default, lastStateTransitionTime=0)


def test_2_14_clusters_say_who_the_resource_manager_is() -> None:
    script = Script()
    info = {"buildVersion": "1.5", "buildDate": "today", "rmId": "rm-2"}
    script.send(RegisterResourceManagerRequest(rmID="rm-2", buildInfo=info))
    # the web UI reads these of each, whatever it has said of itself
    silent = {"buildDate": "", "buildVersion": "", "isPluginVersion": "false", "rmId": "rm"}
    cluster = {
        "partition": "default",
        "clusterName": "kubernetes",
        "startTime": 77,
        "rmBuildInformation": [silent, {**silent, **info}],
    }
    assert Views(script.scheduler, start_time=77).clusters() == [cluster, cluster]
    assert "startTime" not in views_of(Script()).clusters()[0]


@pytest.fixture(scope="module")
def script() -> Script:
    """One application in every state that can be asked for, some of them twice by one id."""
    script = on_nodes(queues("a", "b"), n1=10_000)
    for name in "done again killed waiting running accepted killing resuming".split():
        queue = "root.b" if name == "running" else "root.a"
        gang = {"vcore": 2000} if name in ("killed", "killing", "resuming") else None
        style = "Soft" if name == "resuming" else "Hard"
        script.app(name, queue, gang=gang, style=style, timeout_ms=1000 if gang else 0)
    for name in ("done", "again", "waiting", "running"):
        script.ask(name, "k", vcore=100)
    serve(script, "killed", "p", group="g", placeholder=True, vcore=100)
    for name in ("done", "again"):
        script.release(name, "k-0")
    script.advance(32)
    script.confirm()
    script.app("again", "root.b")
    for name in ("killing", "resuming"):
        script.ask(name, "p", group="g", placeholder=True, vcore=100)
    script.schedule()
    script.release("waiting", "k-0")
    script.ask("accepted", "k", vcore=20_000)
    script.advance(2)
    script.app("bad", "root.c")
    return script


@pytest.fixture
def views(script: Script) -> Views:
    return Views(script.scheduler)


def ids(applications: list[Any]) -> list[str]:
    return [app["applicationID"] for app in applications]


STATES = "Only following application states are allowed: active"
STATUSES = (
    "Only following active statuses are allowed: "
    "new, accepted, starting, running, completing, failing, resuming"
)


@pytest.mark.parametrize(
    ("look", "status", "text"),
    [
        (lambda v: v.queues("nope"), 404, "Partition not found"),
        (lambda v: v.nodes("nope"), 404, "Partition not found"),
        (lambda v: v.users("nope"), 404, "Partition not found"),
        (lambda v: v.queue("default", "root.nope"), 404, "Queue not found"),
        (lambda v: v.queue("default", "a"), 404, "Queue not found"),
        (lambda v: v.queue_applications("default", "root.nope"), 404, "Queue not found"),
        (lambda v: v.application("default", "x", "root.nope"), 404, "Queue not found"),
        (lambda v: v.application("default", "x"), 404, "Application not found"),
        (lambda v: v.application("default", "running", "root.a"), 404, "Application not found"),
        (lambda v: v.node("default", "n9"), 404, "Node not found"),
        (lambda v: v.user("default", "nobody-known"), 404, "User not found"),
        (lambda v: v.group("default", "nobody-known"), 404, "Group not found"),
        (lambda v: v.health(), 404, "Health check is not available"),
        (lambda v: v.queues(""), 400, "Missing parameters"),
        (lambda v: v.queue("default", ""), 400, "Missing parameters"),
        (lambda v: v.application("default", ""), 400, "Missing parameters"),
        (lambda v: v.user("default", ""), 400, "User name is missing"),
        (lambda v: v.group("default", ""), 400, "Group name is missing"),
        (lambda v: v.applications("default", "running"), 400, STATES + ", rejected, completed"),
        (lambda v: v.queue_applications("default", "root.a", "completed"), 400, STATES),
        (lambda v: v.applications("default", "active", "completed"), 400, STATUSES),
    ],
)
def test_2_14_what_is_not_there(
    views: Views, look: Callable[[Views], Any], status: int, text: str
) -> None:
    with pytest.raises(ViewError) as caught:
        look(views)
    assert (caught.value.status, caught.value.text) == (status, text)
    assert str(caught.value) == text
    assert isinstance(caught.value, NotFound if status == 404 else BadRequest)


def test_2_14_active_applications_by_their_state(views: Views) -> None:
    assert ids(views.applications("default", "active")) == [
        "waiting",
        "running",
        "accepted",
        "killing",
        "resuming",
        "again",
    ]
    for status, expected in (
        ("new", ["again"]),
        ("ACCEPTED", ["accepted"]),
        ("running", ["running"]),
        ("starting", []),
        ("completing", ["waiting"]),
        ("waiting", ["waiting"]),
        ("Failing", ["killing"]),
        ("killing", ["killing"]),
        ("resuming", ["resuming"]),
    ):
        assert ids(views.applications("default", "Active", status)) == expected, status


def test_2_14_ended_applications(views: Views) -> None:
    """A status is a question about living ones only."""
    assert sorted(ids(views.applications("default", "completed"))) == ["again", "done", "killed"]
    assert ids(views.applications("default", "REJECTED", "whatever")) == ["bad"]


def test_p_2_14_one_application_is_looked_for_everywhere(views: Views) -> None:
    """YuniKorn answers 404 for ended ones; the living one of an id comes first (G55)."""
    assert views.application("default", "done")["applicationState"] == "Completed"
    assert views.application("default", "bad")["applicationState"] == "Rejected"
    assert views.application("default", "again")["applicationState"] == "New"
    assert views.application("default", "again", "root.a")["applicationState"] == "Completed"


def test_2_14_a_queues_applications_in_words_of_the_dialect(views: Views, script: Script) -> None:
    assert ids(views.queue_applications("default", "root.b")) == ["running", "again"]
    assert ids(views.queue_applications("default", "root.b", status="new")) == ["again"]
    assert views.queue_applications("default", "root") == []
    ours = Views(script.scheduler, Dialect.QUADRIGA)
    assert ids(ours.applications("default", "active", "completing")) == ["waiting"]
    with pytest.raises(BadRequest, match="running, waiting, killing, resuming"):
        ours.applications("default", "active", "odd")


def test_i9_two_resource_managers_with_partitions_alike() -> None:
    """The name alone is the first one's, with [rmID] before it either can be asked for."""
    first = Script(rm_id="rm:1")
    second = Script(rm_id="rm:2", scheduler=first.scheduler)
    second.app("theirs")
    views = Views(first.scheduler)
    assert views.applications("default", "active") == []
    assert ids(views.applications("[rm:2]default", "active")) == ["theirs"]
    assert [p["clusterId"] for p in views.partitions()] == ["rm:1", "rm:2"]
    assert {p["name"] for p in views.partitions()} == {"default"}
    assert views.configuration("rm:2")["checksum"] == views.configuration()["checksum"]
