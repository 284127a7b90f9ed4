"""Foreign allocations and occupied resources: what others use of the nodes (X19, 2.20)."""

import pytest
from core_steps import later, on_nodes, refused, run, serve, submit
from core_world import report, reported

from quadriga import si
from quadriga.core import RequestError
from quadriga.core.model.node import ForeignAllocation, Node
from quadriga.si.constants import FOREIGN_DEFAULT, TAG_FOREIGN
from quadriga.sim.scripted.script import Script, resource

STOPPED = si.TerminationType.STOPPED_BY_RM


@pytest.fixture
def script() -> Script:
    return on_nodes(n1=4000)


def others(
    key: str,
    node: str = "n1",
    *,
    kind: str = FOREIGN_DEFAULT,
    tag: str = TAG_FOREIGN,
    tags: dict[str, str] | None = None,
    **quantities: int,
) -> si.Allocation:
    return si.Allocation(
        allocationKey=key,
        nodeID=node,
        priority=7,
        allocationTags={tag: kind, **(tags or {})},
        resourcePerAlloc=resource(quantities),
    )


def gone(
    script: Script, key: str, kind: si.TerminationType = STOPPED, partition: str = "default"
) -> list[str]:
    """A release that names no application."""
    release = si.AllocationRelease(allocationKey=key, partitionName=partition, terminationType=kind)
    releases = si.AllocationReleasesRequest(allocationsToRelease=[release])
    return script.send(si.AllocationRequest(rmID="rm", releases=releases))


def node(script: Script, name: str = "n1") -> Node:
    return script.scheduler.partition().nodes[name]


def books(script: Script, name: str = "n1") -> tuple[int, int, int]:
    """vcore of a node: allocated, occupied, available."""
    of = node(script, name)
    at = of.partition.registry.position("vcore")
    return of.allocated[at], of.occupied[at], of.available[at]


def known(script: Script) -> dict[str, ForeignAllocation]:
    return script.scheduler.partition().foreign


def test_x19_a_foreign_allocation_occupies_its_node(script: Script) -> None:
    """It counts for no queue and no application, and nobody is told: nothing is to be started."""
    assert report(script, others("pod-1", vcore=1500, gpu=1)) == []
    assert books(script) == (0, 1500, 2500)
    partition = script.scheduler.partition()
    assert not any(any(queue.allocated) for queue in partition.queues())
    assert not partition.applications
    submit(script, "app", "a", "b", "c", vcore=1000)
    assert script.schedule()[-2:] == ["new app/a-0 on n1", "new app/b-0 on n1"]
    assert script.schedule() == []
    # it may use types that the node does not offer
    assert run(script, "other", "d", gpu=1) == []
    script.node("n1", si.NodeInfo.UPDATE, vcore=4000, gpu=2)
    assert script.schedule()[-1] == "new other/d-0 on n1"


def test_v2_nothing_is_evicted_where_they_take_too_much(script: Script) -> None:
    run(script, "app", "a", vcore=3000)
    report(script, others("pod-1", vcore=2000))
    assert books(script) == (3000, 2000, -1000)
    assert serve(script, "app", "b", vcore=500) == []
    assert script.release("app", "a-0")[0] == "released app/a-0 STOPPED_BY_RM"
    assert script.schedule() == ["new app/b-0 on n1"]


def test_x19_the_same_key_again_is_a_change_or_a_move(script: Script) -> None:
    script.node("n2", vcore=4000)
    report(script, others("pod-1", vcore=1500), others("pod-2", vcore=1000))
    for _ in range(2):
        assert report(script, others("pod-1", vcore=500)) == []
        assert books(script) == (0, 1500, 2500)
        assert list(known(script)) == ["pod-1", "pod-2"]
    report(script, others("pod-1", "n2", vcore=600))
    assert (books(script), books(script, "n2")) == ((0, 1000, 3000), (0, 600, 3400))
    assert [list(node(script, name).foreign) for name in ("n1", "n2")] == [["pod-2"], ["pod-1"]]


def test_x19_r3_a_release_by_key_is_confirmed_and_serves_who_waits(script: Script) -> None:
    report(script, others("pod-1", vcore=3500))
    assert run(script, "app", "a", vcore=1000) == []
    script.messages.clear()
    gone(script, "pod-1")
    assert books(script) == (0, 0, 4000)
    assert not known(script)
    ((_, answer),) = script.messages
    assert isinstance(answer, si.AllocationResponse)
    (release,) = answer.released
    assert (release.allocationKey, release.applicationID) == ("pod-1", "")
    assert release.terminationType == STOPPED
    assert script.schedule()[-1] == "new app/a-0 on n1"


def test_r4_x32_i42_a_release_nobody_asked_for_or_unknown_is_not_confirmed(script: Script) -> None:
    """One without an application ends none of ours, and by UUID it is refused as ever."""
    run(script, "app", "a", vcore=1000)
    report(script, others("pod-1", vcore=1500))
    with pytest.raises(RequestError, match="is required"):
        script.release("", "a-0")
    assert gone(script, "a") == gone(script, "pod-1", partition="nowhere") == []
    assert [text for _, text in script.scheduler.notes] == [
        "release of unknown foreign allocation 'a' ignored",
        "release of unknown foreign allocation 'pod-1' ignored",
    ]
    assert books(script) == (1000, 1500, 1500)
    assert gone(script, "pod-1", si.TerminationType.PREEMPTED_BY_SCHEDULER) == []
    assert books(script) == (1000, 0, 3000)


def test_x19_i42_wrong_ones_are_rejected_and_the_others_taken_up(script: Script) -> None:
    wrong = {
        "/pod-1": (others("pod-1", "n9", vcore=1), "'n9'"),
        "/": (others("", vcore=1), "allocationKey"),
        "/pod-3": (others("pod-3", vcore=-1), "vcore"),
        "/pod-5": (others("pod-5", "", vcore=1), ""),
        "/a": (si.Allocation(allocationKey="a", nodeID="n1"), "independent"),  # it is not foreign
    }
    # one of nothing is known all the same
    heard = report(script, *(allocation for allocation, _ in wrong.values()), others("pod-4"))
    for line, (key, (_, why)) in zip(heard, wrong.items(), strict=True):
        assert line.startswith(f"rejected allocation {key}: ") and why in line
    assert list(known(script)) == ["pod-4"]
    assert books(script) == (0, 0, 4000)


def test_x19_a_node_may_bring_foreign_allocations(script: Script) -> None:
    script.app("app")
    own = reported("a", "app", nodeID="n2", vcore=1000)
    heard = script.node("n2", existing=[others("pod-1", "", vcore=500), own], vcore=4000)
    assert heard[-1] == "accepted node n2"
    assert books(script, "n2") == (1000, 500, 2500)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ([others("", vcore=1)], "allocationKey"),
        ([others("pod-1", vcore=-1)], "negative"),
        ([others("pod-1", vcore=1), others("pod-1", vcore=2)], "twice"),
    ],
)
def test_i33_a_node_with_a_wrong_foreign_allocation_is_rejected_whole(
    script: Script, wrong: list[si.Allocation], why: str
) -> None:
    existing = [others("pod-0", vcore=1), *wrong]
    refused(script.node("n2", existing=existing, vcore=4000), "node n2", why)
    assert not known(script)


def test_x19_i32_they_come_to_a_draining_node_and_go_with_it(script: Script) -> None:
    """They are not ours to place, and nobody here asked for them."""
    script.node("n1", si.NodeInfo.DRAIN_NODE)
    assert report(script, others("pod-1", vcore=1500)) == []
    assert books(script) == (0, 1500, 2500)
    script.node("n1", si.NodeInfo.DRAIN_TO_SCHEDULABLE)
    assert run(script, "app", "a", vcore=3000) == []
    assert script.node("n1", si.NodeInfo.DECOMISSION) == []
    assert not known(script)
    assert gone(script, "pod-1") == []
    script.node("n1", vcore=4000)
    assert books(script) == (0, 0, 4000)


def test_x19_a_reservation_is_not_used_before_they_make_room(script: Script) -> None:
    """What they use now does not end: the ask reserves where it would fit nevertheless (Q7)."""
    report(script, others("pod-1", vcore=3000))
    run(script, "app", "own", vcore=500)
    serve(script, "app", "a", vcore=1000)
    later(script, 2)
    assert node(script).reservation is not None
    report(script, others("pod-1", vcore=3400))
    script.release("app", "own-0")
    assert script.schedule() == []
    report(script, others("pod-1", vcore=3000))
    assert script.schedule()[-1] == "new app/a-0 on n1"
