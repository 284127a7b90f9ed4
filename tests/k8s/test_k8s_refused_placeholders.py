"""A gang whose placeholders the API server refuses: a Hard one tries again until its timeout (K202)."""

from __future__ import annotations

from k8s_world import cluster

from quadriga.k8s.shim.actions import Create
from quadriga.k8s.shim.inputs import CreateEnded

HARD = "gangSchedulingStyle=Hard placeholderTimeoutInSeconds=600"


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
    driver = world.add_gang(4, 4, policy=HARD)
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


def test_k202_it_fails_as_at_its_timeout() -> None:
    world = Quota(0).world
    world.add_gang(4, 4, policy=HARD)
    world.run(590)
    assert world.phases() == {"Pending": 4}
    world.run(80)
    assert world.phases() == {"Failed": 4}
    world.check()


def test_k202_without_a_timeout_it_goes_on_trying() -> None:
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
