"""Which placeholder a gang member takes over, and which members do without one (X36, X37, X39)."""

import pytest
from core_world import gang, launch, member, queues, running_gang, serve

from quadriga.si import NodeInfo
from quadriga.sim.scripted.script import Script

OPEN, DRAIN, GONE = NodeInfo.DRAIN_TO_SCHEDULABLE, NodeInfo.DRAIN_NODE, NodeInfo.DECOMISSION
REQUIRED = "yunikorn.apache.org/requiredNode"


def allocated(script: Script, node: str = "n1") -> dict[str, int]:
    partition = script.scheduler.partition()
    app = script.scheduler.application("g")
    return {
        "node": sum(partition.nodes[node].allocated),
        "queue": sum(app.queue.allocated),
        "user": sum(app.user_usage),
    }


def group_counts(script: Script) -> tuple[int, int, int]:
    (group,) = script.scheduler.application("g").gang.task_groups.values()
    return group.allocated, group.replaced, group.timed_out


def limited_to(memory: int) -> str:
    return queues("default", default=f"resources: {{max: {{memory: {memory}}}}}")


def parked(script: Script, size: int, asked: int) -> None:
    """A gang of one, whose larger or equal member waits for its placeholder's end."""
    running_gang(script, count=1, size=size)
    script.ask("g", "real", group="tg", memory=asked)
    assert script.schedule() == ["released g/p0-0 PLACEHOLDER_REPLACED"]


@pytest.mark.parametrize("announced", [True, False])
def test_x36_a_member_waits_for_a_pending_placeholder(script: Script, announced: bool) -> None:
    """And says so (5.6), also in an application that announced no gang."""
    script.app("g", gang={"memory": 1} if announced else None)
    serve(script, "g", "p0", group="tg", placeholder=True, memory=1)
    script.ask("g", "late", group="tg", placeholder=True, memory=20)
    assert member(script, "m0", "m1") == ["released g/p0-0 PLACEHOLDER_REPLACED"]
    (reason,) = script.scheduler.explain("g", "m1").reasons
    assert reason.startswith("waits for a placeholder of task group tg: ")
    script.release_ask("g", "late")
    assert script.schedule()[-1] == "new g/m1-0 on n1"


def test_x36_it_competes_for_free_room_only(script: Script) -> None:
    """The place of a swap that is under way belongs to the member that is parked for it."""
    launch(script, "full", "x", memory=19)
    running_gang(script, count=1)
    assert member(script, "m0", "m1") == ["released g/p0-0 PLACEHOLDER_REPLACED"]
    assert script.confirm() == ["new g/m0-0 on n1"]
    assert script.schedule() == []
    script.release("full", "x-0")
    assert script.schedule() == ["new g/m1-0 on n1"]


@pytest.mark.parametrize("refused", [False, True])
def test_x37_the_placeholder_whose_node_has_room_goes_first(script: Script, refused: bool) -> None:
    """Not the oldest one: the larger member has no room on its node, or predicates refuse it there."""
    script.node("n2", memory=20)
    gang(script, "p0", "p1", announced=12, size=6)
    app = script.scheduler.application("g")
    assert [held.node.node_id for held in app.placeholders.values()] == ["n1", "n2"]
    if refused:
        script.scheduler.set_predicate("rm", lambda key, node, _: None if node == "n2" else "no")
    else:
        assert launch(script, "other", "x", memory=14)[-1] == "new other/x-0 on n1"
    assert member(script, "real", size=10) == ["released g/p1-0 PLACEHOLDER_REPLACED"]
    assert script.confirm() == ["new g/real-0 on n2"]
    assert group_counts(script) == (1, 1, 0)


def test_x37_two_larger_members_are_held_to_the_quota_together(script: Script) -> None:
    script.configure(limited_to(16))
    running_gang(script, count=2, size=4)
    assert member(script, "m0", "m1", size=10) == ["released g/p0-0 PLACEHOLDER_REPLACED"]
    reasons = script.scheduler.explain("g", "m1").reasons
    assert any("limit 16 B memory, used 14 B memory, asked 10 B memory" in r for r in reasons)
    script.confirm()
    assert script.schedule() == []
    assert group_counts(script) == (1, 1, 0)
    script.release("g", "m0-0")
    assert script.schedule() == ["released g/p1-0 PLACEHOLDER_REPLACED"]
    assert script.confirm() == ["new g/m1-0 on n1"]


def test_x37_one_that_fits_nowhere_goes_the_normal_way(script: Script) -> None:
    """Its group's placeholders stay; explain says why, and a node that is added is enough."""
    running_gang(script, count=2, size=6)
    assert member(script, "real", size=30) == []
    assert group_counts(script) == (2, 0, 0)
    (reason, *_) = script.scheduler.explain("g", "real").reasons
    assert "larger than every placeholder of task group tg" in reason
    assert script.advance(1) == ["FAILED g/real"]
    assert member(script, "fits", size=6) == ["released g/p0-0 PLACEHOLDER_REPLACED"]
    script.node("n2", memory=30)
    assert script.schedule() == ["released g/p1-0 PLACEHOLDER_REPLACED"]
    assert script.confirm() == ["new g/fits-0 on n1", "new g/real-0 on n2"]


def test_x37_what_a_larger_member_needs_is_held_until_it_is_taken_back(script: Script) -> None:
    """On the node, in the queue and for the user, from the plan on: nobody else gets it."""
    parked(script, 6, 20)
    assert allocated(script) == {"node": 20, "queue": 20, "user": 20}
    assert launch(script, "other", "x", memory=1) == []
    script.remove_app("other")
    assert "released ask g/real STOPPED_BY_RM" in script.release_ask("g", "real")
    assert allocated(script) == {"node": 6, "queue": 6, "user": 6}
    queue = script.scheduler.application("g").queue
    assert script.confirm() == ["g Completed (complete)"]
    assert not any(script.scheduler.partition().nodes["n1"].allocated)
    assert not any(queue.allocated)
    assert not script.scheduler.partition().users


@pytest.mark.parametrize("with_node", [False, True])
def test_x37_a_placeholder_that_ends_meanwhile(script: Script, with_node: bool) -> None:
    """The resource manager stops it, or its node goes: the member waits again, nothing is held for it."""
    parked(script, 6, 20)
    if with_node:
        script.node("n2", memory=20)
        assert script.node("n1", GONE) == ["released g/p0-0 STOPPED_BY_RM"]
    else:
        assert script.release("g", "p0-0") == ["released g/p0-0 STOPPED_BY_RM"]
        assert allocated(script) == {"node": 0, "queue": 0, "user": 0}
    assert script.schedule() == [f"new g/real-1 on {'n2' if with_node else 'n1'}"]


@pytest.mark.parametrize("how", ["open again", "another node"])
def test_x39_it_stays_parked_until_a_node_has_room(script: Script, how: str) -> None:
    """With its quota: an ask that comes later gets only what is left of it."""
    script.configure(limited_to(6))
    stranded(script)
    assert script.scheduler.application("g").asks["real"].state == "Parked"
    (reason, *_) = script.scheduler.explain("g", "real").reasons
    assert reason.startswith("its placeholder is gone, node n1 drains")
    assert script.schedule() == []
    assert script.advance(1) == ["FAILED g/real"]  # G32: it asks for nodes
    script.app("other")
    script.ask("other", "x", memory=6)
    if how == "open again":
        script.node("n1", OPEN)
    else:
        script.node("n2", memory=20)
    where = "n1" if how == "open again" else "n2"
    assert script.schedule() == [f"new g/real-0 on {where}"]
    assert group_counts(script) == (0, 1, 0)
    script.release("g", "real-0")
    assert f"new other/x-0 on {where}" in script.schedule()


def stranded(script: Script) -> None:
    """A member that waits, on a node that drains, after the end of its placeholder."""
    parked(script, 6, 6)
    script.node("n1", DRAIN)
    assert script.confirm() == []
    assert script.scheduler.partition().waiting.stranded


@pytest.mark.parametrize("how", ["its ask", "its application", "its node"])
def test_x39_a_parked_ask_without_a_node_can_be_taken_back(script: Script, how: str) -> None:
    """Or the last node goes, and it is served by the next one."""
    stranded(script)
    assert allocated(script) == {"node": 0, "queue": 6, "user": 6}
    if how == "its ask":
        assert "g Waiting (wait)" in script.release_ask("g", "real")
        assert allocated(script) == {"node": 0, "queue": 0, "user": 0}
    elif how == "its application":
        script.remove_app("g")
    else:
        script.node("n1", GONE)
        assert script.schedule() == []
        script.node("n2", memory=6)
        assert script.schedule() == ["new g/real-0 on n2"]
        return
    assert not script.scheduler.partition().waiting.stranded
    script.node("n1", OPEN)
    assert script.schedule() == []


def test_x39_a_daemon_lands_on_the_draining_node_that_it_requires(script: Script) -> None:
    running_gang(script, count=1)
    script.node("n2", memory=20)
    script.node("n1", DRAIN)
    assert member(script, "real", tags={REQUIRED: "n1"}) == ["released g/p0-0 PLACEHOLDER_REPLACED"]
    assert script.confirm() == ["new g/real-0 on n1"]
