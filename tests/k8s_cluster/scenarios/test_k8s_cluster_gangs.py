"""Jobs and gangs on a real control plane, from their manifests to the end of their books."""

from collections.abc import Callable, Iterator

import pytest
from control_plane import ControlPlane
from manifests import GROUP, GROUPS, WHOLE, bound, gang, in_phase, is_placeholder, job, pod, queues
from our_shim import SOON_COMPLETED, Running, running
from plain_client import History, Object
from process_kubelet import ProcessKubelet, node
from scheduler_process import Quadriga, is_ours, wait
from whole_cluster import Cluster


def real(present: list[Object]) -> list[Object]:
    """Real pods of ours."""
    return [each for each in present if is_ours(each) and not is_placeholder(each)]


def placeholders(present: list[Object]) -> list[Object]:
    return [each for each in present if is_placeholder(each)]


def all_bound(count: int) -> Callable[[list[Object]], bool]:
    """So many real pods are bound, and no placeholder is left."""
    return lambda present: len(bound(real(present))) == count == len(present)


@pytest.mark.parametrize(("text", "held"), [("", 0), (WHOLE, 2)], ids=["default", "whole"])
def test_t3_a_soft_gang_without_room_runs_singly(cluster: Cluster, text: str, held: int) -> None:
    told = cluster.history("Event")
    local = cluster.kubelet(node("small", cpu="4"))
    cluster.admin.create(queues(text))
    scheduler = cluster.quadriga()
    cluster.create(*gang("soft", {"worker": (4, "2")}, timeout=5))
    cluster.until(lambda present: len(placeholders(present)) == 4 and len(bound(present)) == held)
    present = cluster.until(lambda now: not placeholders(now) and len(bound(real(now))) == 2)
    assert "Resuming" in states(scheduler, "soft")
    # Room comes as the first ones end.
    for each in bound(real(present)):
        local.end(each["metadata"]["uid"])
    cluster.until(lambda present: len(bound(real(present))) == 4)
    wanted = ["CreatingPlaceholders", "PlaceholderTimeOut", "GangSchedulingFailed"]
    if held:
        wanted.insert(1, "PlaceholderAllocated")
    told.until(lambda _: set(wanted) <= set(_actions(told, cluster.namespace)))
    actions = _actions(told, cluster.namespace)
    # The last two come at once, and are written beside each other.
    order = sorted(wanted, key=actions.index)
    assert (order[:-2], sorted(order[-2:])) == (wanted[:-2], sorted(wanted[-2:])), actions
    cluster.admin.delete_all("Pod", cluster.namespace)
    scheduler.wait_idle()


def states(scheduler: Quadriga, app: str) -> list[str]:
    """The states that the application has had in the core."""
    found = scheduler.rest(f"/partition/default/application/{app}")
    return [each["applicationState"] for each in found["stateLog"]]


def _actions(told: History, namespace: str) -> list[str]:
    """What was done for a gang, in the order of the events about it."""
    return [
        each["action"]
        for change, each in told.of(namespace)
        if change == "ADDED" and each["reason"] == "GangScheduling"
    ]


@pytest.mark.parametrize(("text", "held"), [("", 0), (WHOLE, 2)], ids=["default", "whole"])
def test_t4_a_hard_gang_without_room_fails(cluster: Cluster, text: str, held: int) -> None:
    cluster.kubelet(node("small", cpu="4"))
    cluster.admin.create(queues(text))
    scheduler = cluster.quadriga()
    cluster.create(*gang("hard", {"worker": (4, "2")}, timeout=2, style="Hard"))
    cluster.until(lambda present: len(placeholders(present)) == 4 and len(bound(present)) == held)
    present = cluster.until(
        lambda now: len(real(now)) == 4 and {e["status"]["phase"] for e in real(now)} == {"Failed"}
    )
    ended = real(present)
    assert {each["status"]["reason"] for each in ended} == {"ResourceReservationTimeout"}
    assert not bound(ended)
    # Nothing is left in ten seconds.
    cluster.until(lambda present: not placeholders(present), seconds=10)
    scheduler.wait_idle(10)
    wait(lambda: scheduler.applications() == {}, "the application is no longer active", 10)


MISSING = queues("", **{"service.gangPlaceholders": "missing"})


def placed_whole(cluster: Cluster, count: int) -> set[str]:
    """All placeholders that there ever were. No member was bound before all could be: each was there by then, or
    a placeholder for it."""
    members: set[str] = set()
    stands: set[str] = set()
    for _, each in cluster.changes():
        (stands if is_placeholder(each) else members).add(each["metadata"]["uid"])
        if each["spec"].get("nodeName"):
            assert max(len(members), len(stands)) == count, "a part of the gang was bound"
    return stands


def test_d356_a_complete_gang_needs_no_placeholders(cluster: Cluster) -> None:
    """It is there when the scheduler starts, so the machine's pace does not matter."""
    local = cluster.kubelet(node("small", cpu="4"))
    cluster.admin.create(MISSING)
    cluster.create(*gang("hard", {"leader": (2, "1"), "worker": (3, "2")}, style="Hard"))
    scheduler = cluster.quadriga()
    # It waits for nodes with its own pods.
    cluster.until(
        lambda present: any(
            each["reason"] == "Unschedulable"
            for pod in present
            for each in pod["status"].get("conditions", ())
        )
    )
    assert not bound(cluster.present())
    local.register(node("more", cpu="4"))
    cluster.until(all_bound(5))
    assert placed_whole(cluster, 5) == set()
    scheduler.wait_books(cluster.admin)
    cluster.admin.delete_all("Pod", cluster.namespace)
    scheduler.wait_idle()


def test_d356_a_member_that_comes_late_is_waited_for_with_placeholders(cluster: Cluster) -> None:
    cluster.kubelet(count=2)
    cluster.admin.create(MISSING)
    scheduler = cluster.quadriga()
    *others, last = gang("late", {"worker": (4, "1")}, style="Hard")
    cluster.create(*others)
    cluster.until(lambda now: len(bound(real(now))) == 3 and len(bound(placeholders(now))) == 1)
    cluster.create(last)
    cluster.until(all_bound(4))
    assert len(placed_whole(cluster, 4)) == 4
    scheduler.wait_books(cluster.admin)


def test_t5_of_two_gangs_that_fit_alone_one_holds_nothing(cluster: Cluster) -> None:
    cluster.kubelet(node("a", cpu="4"), node("b", cpu="4"))
    scheduler = cluster.quadriga()
    both = [gang(app, {"worker": (3, "2")}) for app in ("one", "two")]
    # Their pods come by turns.
    cluster.create(*[each for pair in zip(*both, strict=True) for each in pair])
    cluster.until(lambda found: len(bound(real(found))) == 3 and len(placeholders(found)) == 3)
    present = cluster.present()
    assert not bound(placeholders(present))
    winner = {each["metadata"]["name"].partition("-")[0] for each in bound(present)}
    assert len(winner) == 1
    assert not [
        each
        for _, each in cluster.changes()
        if is_placeholder(each)
        and each["spec"].get("nodeName")
        and not each["metadata"]["name"].startswith(f"tg-{next(iter(winner))}-")
    ], "the other gang has held room"
    # When the first one is gone, the other one runs.
    for each in bound(present):
        cluster.delete(each["metadata"]["name"])
    cluster.until(all_bound(3))
    scheduler.wait_books(cluster.admin)


def test_t6_placeholders_go_with_an_originator_that_is_deleted(cluster: Cluster) -> None:
    cluster.admin.create(queues(""))
    cluster.kubelet(node("small", cpu="4"))
    scheduler = cluster.quadriga()
    originator = gang("driven", {"worker": (1, "2")}, minimum={"worker": 4})
    cluster.create(*originator)
    cluster.until(lambda present: len(placeholders(present)) == 4)
    cluster.delete(originator[0]["metadata"]["name"])
    cluster.until(lambda present: not present, seconds=2)
    scheduler.wait_idle()
    wait(lambda: scheduler.applications() == {}, "the application is removed")


def test_t6_placeholders_go_with_an_originator_that_succeeds(cluster: Cluster) -> None:
    local = cluster.kubelet(count=2)
    scheduler = cluster.quadriga()
    driver = gang("spark", {"driver": (1, "1"), "executor": (0, "1")}, minimum={"executor": 3})
    cluster.create(*driver)
    present = cluster.until(
        lambda present: len(bound(placeholders(present))) == 3 and len(bound(real(present))) == 1
    )
    local.end(real(present)[0]["metadata"]["uid"])
    cluster.until(lambda present: not placeholders(present), seconds=2)
    scheduler.wait_idle()


def test_t7_a_placeholder_that_somebody_deletes_is_made_again(cluster: Cluster) -> None:
    cluster.admin.create(queues(""))
    local = cluster.kubelet(node("small", cpu="4"))
    scheduler = cluster.quadriga()
    cluster.create(*gang("mended", {"worker": (3, "2")}))
    present = cluster.until(lambda present: len(placeholders(present)) == 3)
    lost = placeholders(present)[0]["metadata"]
    cluster.delete(lost["name"])
    cluster.until(
        lambda present: (
            len(placeholders(present)) == 3
            and lost["uid"] not in {each["metadata"]["uid"] for each in present}
        )
    )
    local.register(node("more", cpu="4"))
    cluster.until(all_bound(3))
    scheduler.wait_books(cluster.admin)


def test_t8_mistakes_are_told_and_the_pods_run(cluster: Cluster) -> None:
    """An error in task groups, several ids of an application, a group that there is not."""
    told = cluster.history("Event")
    cluster.kubelet(count=2)
    scheduler = cluster.quadriga()
    groups = {GROUPS: '[{"name": "worker", "minMember": 0}]', GROUP: "worker"}
    several = pod("several", "label-wins", labels={"applicationId": "old-label"})
    several["metadata"]["annotations"]["yunikorn.apache.org/app-id"] = "annotation"
    stranger = gang("named", {"worker": (1, "1")})[0]
    stranger["metadata"]["name"] = "stranger"
    stranger["metadata"]["annotations"][GROUP] = "wroker"
    members = gang("named", {"worker": (2, "1")})
    cluster.create(pod("wrong", "wrong", annotations=groups), several, *members, stranger)
    cluster.until(all_bound(5))
    assert "label-wins" in scheduler.applications()

    def warned(reason: str, *words: str) -> bool:
        return any(
            each["reason"] == reason
            and each["type"] == "Warning"
            and all(word in f"{each.get('action')} {each.get('message')}" for word in words)
            for each in told.in_namespace(cluster.namespace)
        )

    told.until(lambda _: warned("GangScheduling", "TaskGroupsError"))
    told.until(lambda _: warned("Scheduling", "annotation", "old-label"))
    told.until(lambda _: warned("GangScheduling", "wroker"))


@pytest.fixture(params=[False, True], ids=["in-process", "grpc"])
def ours(
    request: pytest.FixtureRequest,
    control_plane: ControlPlane,
    kubelet: Callable[..., ProcessKubelet],
) -> Iterator[Running]:
    kubelet(count=5)
    with running(control_plane.kubeconfig(), over_grpc=request.param, core=SOON_COMPLETED) as found:
        yield found


def test_t1_a_job_of_a_hundred_runs_to_its_end(cluster: Cluster, ours: Running) -> None:
    jobs = cluster.history("Job")
    cluster.create(job("work", 100, pod("", "work", run="succeed")))
    jobs.until(
        lambda present: any(each["status"].get("succeeded") == 100 for each in present),
        cluster.namespace,
        seconds=60,
        what="100 pods succeed",
    )
    # The two watches may tell of the last pod in either order.
    present = cluster.until(lambda now: {e["status"].get("phase") for e in now} == {"Succeeded"})
    assert {each["spec"]["nodeName"] for each in present} <= {f"node-{index}" for index in range(5)}
    ours.until(ours.is_idle, "no allocation is left")
    ours.until(lambda: ours.ended() == {"work": "Completed"}, "the application is completed")
    assert ours.applications() == {}
    ours.wait_forgotten()


def test_t2_a_gang_starts_together(cluster: Cluster, ours: Running) -> None:
    cluster.create(*gang("gang", {"driver": (1, "100m"), "executors": (6, "100m")}))

    def all_run(present: list[Object]) -> bool:
        return len(in_phase(present)) == len(present) == 7 and not any(map(is_placeholder, present))

    present = cluster.until(all_run, seconds=60, what="the gang runs, its placeholders are gone")
    bound: list[Object] = []
    for change, each in cluster.changes():
        if change == "MODIFIED" and each["spec"].get("nodeName"):
            if each["metadata"]["uid"] not in {other["metadata"]["uid"] for other in bound}:
                bound.append(each)
    assert [is_placeholder(each) for each in bound] == [True] * 7 + [False] * 7

    def nodes(which: list[Object]) -> list[tuple[str, str]]:
        return sorted((e["metadata"]["annotations"][GROUP], e["spec"]["nodeName"]) for e in which)

    # Each real pod sits where one of its group's placeholders was.
    assert nodes(present) == nodes(bound[:7])
