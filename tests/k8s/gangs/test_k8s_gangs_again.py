"""A gang whose members come again: however soon, it starts whole or not at all (K200), and one whose placeholders are
refused: a Hard one tries again until its timeout (K202)."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from k8s_world import World, cluster, gang
from msgspec.structs import replace

from quadriga.k8s import objects
from quadriga.k8s.shim.actions import Bind, Create
from quadriga.k8s.shim.inputs import Changed, CreateEnded

HARD = "gangSchedulingStyle=Hard"
MEMBERS = 4


def run_of(world: World, number: int) -> list[str]:
    groups = [gang("w", MEMBERS)]
    return [
        world.add_pod(f"run{number}-{n}", "spark", group="w", groups=groups, policy=HARD).uid
        for n in range(MEMBERS)
    ]


def placed(world: World, number: int) -> int:
    return sum(bool(pod.spec.node_name) for pod in world.named(f"run{number}-"))


def started(cores: str = "4", **options: Any) -> tuple[World, list[str]]:
    """A cluster of one node on which the first run of the gang runs."""
    world = cluster(cores, **options)
    world.start()
    members = run_of(world, 1)
    world.run(5)
    assert placed(world, 1) == MEMBERS
    return world, members


def delete(world: World, members: list[str]) -> None:
    for uid in members:
        world.delete_pod(uid)


def end(world: World, members: list[str]) -> None:
    for uid in members:
        world.end_pod(uid)


def test_q16_only_pods_without_placeholders_hold_back_writes_to_placeholders() -> None:
    world = cluster("8")
    world.start()
    binds = world.answer(Bind, lambda bind: None)
    run_of(world, 1)
    world.add_pod("other", "other", cpu="1")
    world.run(5)
    found = {(each.pod.name[:3], each.placeholder, each.member) for each in binds}
    assert found == {("tg-", True, False), ("run", False, True), ("oth", False, False)}


@pytest.mark.parametrize("ends", [delete, end])
@pytest.mark.parametrize("after", [0, 1, 29, 31])
def test_k200_members_that_come_again_are_a_gang_whenever_they_come(
    ends: Callable[[World, list[str]], None], after: float
) -> None:
    world, members = started()
    ends(world, members)
    world.run(after)
    world.add_pod("other", "other", cpu="1")
    world.run(1)
    again = run_of(world, 2)
    world.run(60)
    assert placed(world, 2) == 0, "three of four would have room"
    world.delete_pod(world.named("other")[0].uid)
    world.run(60)
    assert placed(world, 2) == MEMBERS
    assert {world.pods[uid].spec.node_name for uid in again} == {"n1"}
    world.check()


def test_k200_members_that_come_while_the_earlier_ones_end_wait_for_them_and_say_so() -> None:
    """A Job that is suspended and resumed at once."""
    world, members = started("8")
    for uid in members:
        world.terminate(uid)
    again = run_of(world, 2)
    world.run(5)
    assert placed(world, 2) == 0
    assert "Earlier pods of the application have not ended yet" in str(world.conditions[again[0]])
    for uid in members:
        world.end_pod(uid, "Failed")
    world.run(5)
    assert placed(world, 2) == MEMBERS
    world.check()


def test_k200_a_restart_between_the_runs_changes_nothing() -> None:
    world, members = started()
    world.end_pod(members[0])
    for uid in members[1:]:
        world.terminate(uid)
    world.add_pod("other", "other", cpu="1")
    run_of(world, 2)
    world.restart()
    world.run(5)
    assert placed(world, 2) == 0
    for uid in members[1:]:
        world.end_pod(uid, "Failed")
    world.run(60)
    assert placed(world, 2) == 0, "three of four would have room"
    world.check()


@pytest.mark.parametrize("how", ["always", "missing"])
def test_k200_a_gang_is_one_again_whose_node_went_while_the_scheduler_was_down(how: str) -> None:
    """The new members waited 15 minutes for a gang that nobody completed. Then those of a Hard one failed."""
    world, members = started(values={"service.gangPlaceholders": how})
    world.add_node("n2")
    other = world.add_pod("other", "other", cpu="1").uid
    world.run(5)
    world.remove_node("n1")
    world.restart()
    run_of(world, 2)
    world.run(5)
    assert placed(world, 2) == 0, "three of four would have room"
    world.delete_pod(other)
    world.run(60)
    assert placed(world, 2) == MEMBERS
    delete(world, members)  # as the API server's garbage collector does
    world.run(1000)
    assert placed(world, 2) == MEMBERS and not world.phases()["Failed"]
    world.check()


STEPS = st.lists(
    st.sampled_from(["come", "end", "delete", "terminate", "wait", "other", "free", "restart"]),
    min_size=3,
    max_size=14,
)


@given(STEPS, st.integers(3, 6))
def test_k200_no_part_of_a_run_starts_before_the_whole(steps: list[str], cores: int) -> None:
    world = cluster(str(cores))
    world.start()
    runs: list[list[str]] = []
    whole: set[int] = set()
    for number, step in enumerate(steps):
        last = [uid for uid in (runs[-1] if runs else []) if uid in world.pods]
        if step == "come" and not any(not world.pods[uid].terminating for uid in last):
            runs.append(run_of(world, len(runs)))
        elif step == "end":
            end(world, [uid for uid in last if world.pods[uid].spec.node_name])
        elif step == "delete":
            delete(world, last)
        elif step == "terminate":
            for uid in last:
                world.terminate(uid)
        elif step == "other":
            world.add_pod(f"other-{number}", f"other-{number}", cpu="1")
        elif step == "free":
            delete(world, [pod.uid for pod in world.named("other-")][:1])
        elif step == "restart":
            world.restart()
        world.run(3)
        for at in range(len(runs)):
            on_nodes = placed(world, at)
            whole |= {at} if on_nodes == MEMBERS else set()
            assert on_nodes == 0 or at in whole, (steps, world.describe())
    world.check()


def test_k203_defaults_that_the_server_adds_to_both_are_no_difference(world: World) -> None:
    """A LimitRange gives memory to each container that asks for none."""
    world.start()

    def with_default(create: Create) -> None:
        (pause,) = create.manifest["spec"]["containers"]
        pause["resources"]["requests"]["memory"] = "64Mi"

    world.answer(Create, with_default)
    member = world.add_pod("driver", "spark", group="w", groups=[gang("w", 1)])
    requests = objects.ResourceRequirements({"cpu": "1", "memory": "64Mi"})
    spec = replace(member.spec, containers=(objects.Container("main", requests),))
    world.pods[member.uid] = replace(member, spec=spec)
    world.inputs[-1] = Changed("ADDED", world.pods[member.uid])
    world.run(5)
    assert world.phases("driver") == {"Running": 1}
    assert "GangScheduling/TaskGroupsError" not in world.reasons(member.uid)


def test_k203_a_pod_that_differs_from_its_placeholder_is_told_so(world: World) -> None:
    world.start()
    member = world.add_pod("driver", "spark", cpu="2", group="w", groups=[gang("w", 1)])
    world.run(5)
    assert "GangScheduling/TaskGroupsError" in world.reasons(member.uid)


class Quota:
    """Refuses each placeholder but the first ones."""

    def __init__(self, allowed: int) -> None:
        self.allowed, self.made, self.refused = allowed, 0, 0
        self.world = cluster()
        self.world.answer(Create, self.judge)

    def judge(self, create: Create) -> CreateEnded | None:
        if self.made < self.allowed:
            self.made += 1
            return None
        self.refused += 1
        name = create.manifest["metadata"]["name"]
        return CreateEnded(create.application_id, "w", name, "refused", "exceeded quota: pods")


def test_k202_a_hard_gang_waits_for_its_placeholders_and_says_why() -> None:
    quota = Quota(2)
    world = quota.world
    driver = world.add_gang(4, 4, policy=f"{HARD} placeholderTimeoutInSeconds=600")
    world.run(300)
    assert not any(pod.spec.node_name for pod in [driver, *world.named("worker")])
    assert world.phases("worker") == {"Pending": 3}
    assert 4 <= quota.refused <= 12, "a few times a minute"
    assert "GangScheduling/PlaceholderCreateFailed" in world.reasons(driver.uid)
    (warning,) = [text for text in world.log_warnings if "could not be created" in text]
    assert "exceeded quota: pods" in warning
    quota.allowed = 4
    world.run(70)
    assert world.phases() == {"Running": 4}
    world.check()


def test_k202_it_fails_as_at_its_timeout_and_without_one_it_goes_on_trying() -> None:
    world = Quota(0).world
    world.add_gang(4, 4, policy=f"{HARD} placeholderTimeoutInSeconds=600")
    world.run(590)
    assert world.phases() == {"Pending": 4}
    world.run(80)
    assert world.phases() == {"Failed": 4}
    world.check()
    quota = Quota(1)
    world = quota.world
    world.add_gang(4, 4, policy="gangSchedulingStyle=Hard placeholderTimeoutInSeconds=-1")
    world.run(5000)
    quota.allowed = 4
    world.run(70)
    assert set(world.phases()) <= {"Running", "Failed"}


def test_k202_a_soft_gang_goes_on_as_single_pods() -> None:
    world = Quota(1).world
    driver = world.add_gang(4, 4)
    world.run(10)
    assert world.phases() == {"Running": 4}
    assert "GangScheduling/PlaceholderCreateFailed" in world.reasons(driver.uid)
    assert any("could not be created" in text for text in world.log_warnings)
    world.check()
