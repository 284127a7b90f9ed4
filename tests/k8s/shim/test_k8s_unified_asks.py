"""Asks as allocations without a node, the form of SI 1.6 (K8): the shim and the core do the same with both."""

from collections.abc import Callable
from typing import Any

import pytest
from k8s_queues import HARD, SOFT, WHOLE
from k8s_world import World, cluster, failed

from quadriga import si
from quadriga.k8s.conversion import messages
from quadriga.k8s.conversion.settings import Settings
from quadriga.k8s.conversion.unified_asks import unified
from quadriga.k8s.driver.core_sender import CoreSender
from quadriga.k8s.shim.actions import Bind
from quadriga.k8s.shim.inputs import CoreAnswered

SETTINGS = Settings()
ASK = si.AllocationAsk(
    allocationKey="uid-1",
    applicationID="app",
    partitionName="default",
    resourceAsk=si.Resource(resources={"vcore": si.Quantity(value=500)}),
    maxAllocations=1,
    priority=7,
    tags={"kubernetes.io/meta/podName": "p"},
    taskGroupName="w",
    placeholder=True,
    Originator=True,
    preemptionPolicy=si.PreemptionPolicy(allowPreemptSelf=True),
)


def release(key: str, uuid: str = "", kind: Any = si.TerminationType.STOPPED_BY_RM) -> Any:
    return messages.release(key, "app", kind, uuid, "because")


def test_k8_reports_come_before_asks_and_releases_name_the_key_alone() -> None:
    report = si.Allocation(allocationKey="uid-2", applicationID="app", nodeID="n1", UUID="u")
    (made,) = unified(messages.allocations(SETTINGS, asks=(ASK,), existing=(report,)))
    found = [(each.allocationKey, each.nodeID) for each in made.allocations]
    assert found == [("uid-2", "n1"), ("uid-1", "")]
    assert list(unified(si.AllocationRequest(rmID="rm"))) == [si.AllocationRequest(rmID="rm")]
    of_ask = messages.release_ask("uid-3", "app", message="because")
    kind = si.TerminationType.PLACEHOLDER_REPLACED
    both = {"releases": [release("uid-2", "u-2", kind)], "ask_releases": [of_ask]}
    (made,) = unified(messages.allocations(SETTINGS, **both))
    released = list(made.releases.allocationsToRelease)
    assert released == [release("uid-2", kind=kind), release("uid-3")]
    assert not made.releases.allocationAsksToRelease


def test_k108_a_second_try_comes_after_the_release_of_the_first() -> None:
    """The other way round the ask would be a new size of the allocation."""
    resized = si.Allocation(allocationKey="uid-1", applicationID="app", nodeID="n1")
    releases = [release("uid-1", "u-1"), release("uid-2", "u-2")]
    first, second = unified(messages.allocations(SETTINGS, [ASK], [resized], releases))
    assert list(first.releases.allocationsToRelease) == [release("uid-1")]
    assert not first.allocations
    assert [(each.allocationKey, each.nodeID) for each in second.allocations] == [("uid-1", "")]
    assert list(second.releases.allocationsToRelease) == [release("uid-2")]
    assert first.rmID == second.rmID == "mycluster"


def job(world: World) -> None:
    for n in range(2):
        world.add_node(f"n{n}", cpu="3")
    for n in range(12):
        world.add_pod(f"job-{n}", "job", duration=5)
    world.run(30)


def a_gang(cpu: str, *arguments: int, **more: Any) -> Callable[[World], None]:
    def scenario(world: World) -> None:
        world.add_node("n1", cpu=cpu)
        world.add_gang(*arguments, **more)
        world.run(60)

    return scenario


def failing_node(world: World) -> None:
    for n in range(2):
        world.add_node(f"n{n}")
    tried = world.answer(Bind, failed, times=1)
    world.add_pod("a", "app", duration=10)
    world.run(20)
    assert tried


def restarts(world: World) -> None:
    job(world)
    world.add_pod("late", "late", duration=50)
    world.run(2)
    world.restart()
    world.run(2)
    world.forget_core()
    world.run(100)


SCENARIOS: dict[str, Callable[[World], None]] = {
    "job": job,
    "whole gang": a_gang("4", 3, duration=20),
    # its third placeholder is an ask that the core takes back
    "soft gang without room": a_gang("2", 3, policy=SOFT, duration=5),
    "hard gang without room": a_gang("2", policy=HARD),
    "K108 K110 failing node": failing_node,
    "restarts": restarts,
}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_k8_nothing_depends_on_the_form(scenario: str) -> None:
    seen = []
    for form in (False, True):
        world = World(queues=WHOLE, unified=form)
        SCENARIOS[scenario](world)
        world.check()
        assert [each for each in world.sent if isinstance(each, si.AllocationRequest) and each.asks]
        events = {(each.uid, each.reason, each.action, each.type) for each in world.records}
        applications = [(each["id"], each["state"]) for each in world.shim.dump()["applications"]]
        seen.append((world.bound, world.phases(), world.core_state(), applications, events))
    assert seen[0] == seen[1]


def test_k8_a_timeout_of_an_ask_may_come_as_a_release_by_its_key() -> None:
    world = cluster("2", queues=WHOLE, unified=True)
    world.add_gang()
    world.run(2)
    asked = next(each for each in world.placeholders if not each.spec.node_name)
    over = release(asked.uid, kind=si.TerminationType.TIMEOUT)
    over.applicationID = "spark"
    world.inputs.append(CoreAnswered(si.AllocationResponse(released=[over])))
    world.settle()
    assert asked.uid not in world.pods
    assert "GangScheduling/PlaceholderTimeOut" in world.reasons()


def test_k8_an_allocation_without_a_uuid_is_named_by_its_key() -> None:
    """A core of SI 1.6 or later gives none."""
    world = cluster("1", unified=True)
    world.run(1)
    pod = world.add_pod("a", "app", cpu="2")
    world.run(1)
    new = si.Allocation(allocationKey=pod.uid, applicationID="app", nodeID="n1")
    assert world.cache.assume(pod.uid, "n1") is None
    world.inputs.append(CoreAnswered(si.AllocationResponse(new=[new])))
    world.settle()
    assert world.pods[pod.uid].spec.node_name == "n1"
    preempted = release(pod.uid, kind=si.TerminationType.PREEMPTED_BY_SCHEDULER)
    world.inputs.append(CoreAnswered(si.AllocationResponse(released=[preempted])))
    world.settle()
    assert pod.uid not in world.pods
    (sent,) = world.sent[-1].releases.allocationsToRelease
    assert (sent.allocationKey, sent.terminationType) == (pod.uid, preempted.terminationType)


class Core:
    def __init__(self) -> None:
        self.heard: list[si.AllocationRequest] = []

    def update_allocation(self, request: si.AllocationRequest) -> None:
        self.heard.append(request)

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


@pytest.mark.parametrize("form", [False, True])
def test_k8_the_sender_chooses_the_form(form: bool) -> None:
    core = Core()
    sender = CoreSender(core, si.NullCallback(), lambda heard: None, unify=form)  # type: ignore[arg-type]
    sent = messages.allocations(SETTINGS, asks=(ASK,), releases=(release("uid-1", "u-1"),))
    sender._hand_over(sent)
    assert core.heard == (list(unified(sent)) if form else [sent])
    assert len(core.heard) == 1 + form
