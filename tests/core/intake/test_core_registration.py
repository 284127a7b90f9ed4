"""Resource managers come, lose their connection, come back and leave (I6 to I10, I39, I43, I44)."""

from typing import Any

import pytest
from core_steps import refused, run, serve, submit
from core_world import state as state_of
from tree_side import below, tree

from quadriga import si
from quadriga.core import RequestError, Scheduler, SchedulerService
from quadriga.core.config import DEFAULT_CONFIGURATION
from quadriga.sim.scripted.script import ONE_QUEUE, Script

TWO_PARTITIONS = """
partitions:
- {name: default, queues: [{name: root, submitacl: '*', queues: [
    {name: default, resources: {max: {vcore: 2}}}]}]}
- {name: gpu, nodesortpolicy: {type: binpacking}, queues: [{name: root, submitacl: '*', queues: [
    {name: jobs, properties: {application.sort.policy: fair}}]}]}
"""


def running(script: Script) -> Script:
    """An application that runs on a node of its own, and waits with a second ask."""
    script.node("n1", vcore=1000)
    run(script, "app-1", "a", vcore=1000)
    script.ask("app-1", "b", vcore=1000)
    return script


def state(script: Script) -> str:
    (rm,) = script.scheduler.resource_managers()
    return rm.state


@pytest.mark.parametrize(
    ("fields", "field", "why"),
    [
        ({"rmID": ""}, "rmID", "required"),
        ({"config": "nonsense: 1"}, "config", "nonsense"),
        ({"config": "{"}, "config", ""),
        ({"extraConfig": {"si.stateNames": "go"}}, "extraConfig[si.stateNames]", "go"),
        ({"extraConfig": {"si.messageOrder": "any"}}, "extraConfig[si.messageOrder]", "any"),
        ({"extraConfig": {"rm.pauseTimeout": "-3s"}}, "extraConfig[rm.pauseTimeout]", ""),
        ({"extraConfig": {"release.resend": "soon"}}, "extraConfig[release.resend]", "soon"),
    ],
)
def test_i10_wrong_registrations_are_refused(fields: dict[str, Any], field: str, why: str) -> None:
    scheduler = Scheduler()
    with pytest.raises(si.RequestError) as refused:
        scheduler.apply(si.RegisterResourceManagerRequest(**{"rmID": "x", **fields}), 0)
    assert refused.value.request == "RegisterResourceManagerRequest"
    assert refused.value.field == field
    assert why in refused.value.reason
    assert scheduler.resource_managers() == ()


def test_i7_i8_registering_again_starts_from_nothing() -> None:
    script = running(Script())
    with pytest.raises(si.RequestError):  # one that fails leaves the first one alone
        script.send(si.RegisterResourceManagerRequest(rmID="rm", config="nonsense: 1"))
    assert state_of(script, "app-1") == "Running"
    script.release_ask("app-1", "b")
    script.release("app-1")
    assert state_of(script, "app-1") == "Waiting"
    assert script.send(si.RegisterResourceManagerRequest(rmID="rm", config=ONE_QUEUE)) == []
    partition = script.scheduler.partition()
    assert (partition.applications, partition.nodes, dict(partition.ended)) == ({}, {}, {})
    # a confirmation for the state before is ignored
    assert script.release("app-1", "a-0") == []
    assert "unknown allocation" in script.scheduler.notes[-1][1]
    # everything is reported again, the same ids are free and the numbers start again
    assert script.node("n1", vcore=1000) == ["accepted node n1"]
    assert script.app("app-1") == ["accepted app-1"]
    # the timer of the state before does not reach it
    assert script.advance(31) == []
    assert state_of(script, "app-1") == "New"
    assert serve(script, "app-1", "a", vcore=1000) == ["app-1 Running (run)", "new app-1/a-0 on n1"]


# -- the manager's life ----------------------------------------------------------------------------


def test_i6_a_paused_manager_is_not_scheduled_and_goes_on_when_it_is_back() -> None:
    script = running(Script())
    assert script.scheduler.disconnect("rm", script.now) == []
    assert state(script) == "Paused"
    script.node("n2", vcore=1000)
    assert script.schedule() == []
    script.advance(299)
    assert script.scheduler.reconnect("rm", script.now) == []
    assert state(script) == "Running"
    assert script.schedule() == ["new app-1/b-0 on n2"]
    # the timer of the pause that is over is stale
    script.advance(10_000)
    assert state(script) == "Running"


def test_i6_a_pause_that_takes_too_long_drops_the_state() -> None:
    script = running(Script())
    script.scheduler.disconnect("rm", script.now)
    script.advance(299.999)
    assert state(script) == "Paused"
    script.advance(0.001)
    assert state(script) == "Stopped"
    assert list(script.scheduler.partitions()) == []
    with pytest.raises(si.RequestError, match="not registered"):
        script.app("app-2")
    with pytest.raises(si.RequestError, match="is Stopped"):
        script.scheduler.reconnect("rm", script.now)
    # it may come back, and starts from nothing
    script.send(si.RegisterResourceManagerRequest(rmID="rm", config=ONE_QUEUE))
    assert state(script) == "Running"
    assert script.app("app-1") == ["accepted app-1"]


def test_i6_the_second_pause_has_its_full_time() -> None:
    script = running(Script(extra={"rm.pauseTimeout": "10s"}))
    script.scheduler.disconnect("rm", script.now)
    script.advance(9)
    script.scheduler.reconnect("rm", script.now)
    with pytest.raises(si.RequestError, match="is Running"):
        script.scheduler.reconnect("rm", script.now)
    script.scheduler.disconnect("rm", script.now)
    script.advance(9)
    assert state(script) == "Paused"
    script.advance(1)
    assert state(script) == "Stopped"


@pytest.mark.parametrize("trigger", ["disconnect", "reconnect", "shutdown"])
def test_i6_connections_of_unknown_managers_are_refused(trigger: str) -> None:
    scheduler = Scheduler()
    with pytest.raises(si.RequestError, match="not known"):
        getattr(scheduler, trigger)("nobody", 0)


@pytest.mark.parametrize("kind", [si.AllocationRequest, si.ApplicationRequest, si.NodeRequest])
def test_i39_i43_a_manager_that_is_not_registered_is_told_to_register(kind: Any) -> None:
    scheduler = Scheduler()
    name = kind.__name__
    with pytest.raises(si.RequestError, match="not registered") as refused:
        scheduler.apply(kind(rmID="x"), 0)
    assert refused.value.reason.startswith(f'received {name}, but RmID="x" not registered')
    assert (refused.value.request, refused.value.field) == (name, "rmID")
    with pytest.raises(si.RequestError, match="not registered"):
        scheduler.apply(si.UpdateConfigurationRequest(rmID="x", config=ONE_QUEUE), 0)


# -- several managers and partitions ---------------------------------------------------------------


def test_i9_two_managers_share_a_scheduler_and_nothing_else() -> None:
    scheduler = Scheduler()
    a = Script(rm_id="a", scheduler=scheduler, policy_group="one")
    b = Script(TWO_PARTITIONS, rm_id="b", scheduler=scheduler, policy_group="two")
    for script, size in ((a, 1000), (b, 2000)):
        script.node("n1", vcore=size)
        submit(script, "app-1", "k", "l", vcore=1000)
    outputs = scheduler.schedule(0)
    assert [rm_id for rm_id, _ in outputs].count("a") == 2  # Running, and one allocation
    assert [rm_id for rm_id, _ in outputs].count("b") == 3
    scheduler.shutdown("a", 0)
    assert scheduler.application("app-1", rm_id="b").state == "Running"
    assert scheduler.check() == []
    with pytest.raises(KeyError):
        scheduler.partition("default", "a")


def test_i9_unknown_partitions_are_refused_everywhere() -> None:
    script = Script(TWO_PARTITIONS)
    refused(script.node("n1", vcore=1, attributes={"si/node-partition": "nope"}), "node n1", "nope")
    refused(script.app("app", partition="nope"), "app", "nope")
    refused(script.ask("app", "a", partition="nope", vcore=1), "ask app/a", "nope")
    assert script.release("app", "a-0", partition="nope") == []
    assert script.release_ask("app", "a", partition="nope") == []


def test_i44_a_policy_group_is_shared_with_the_same_configuration_only() -> None:
    scheduler = Scheduler()
    a, same = (Script(rm_id=name, scheduler=scheduler, policy_group="g") for name in ("a", "same"))
    assert a.app("app") == same.app("app") == ["accepted app"]
    assert scheduler.partition(rm_id="a") is not scheduler.partition(rm_id="same")
    scheduler.shutdown("same", 0)
    with pytest.raises(si.RequestError, match="configuration differs"):
        Script(TWO_PARTITIONS, rm_id="b", scheduler=scheduler, policy_group="g")
    assert [rm.rm_id for rm in scheduler.resource_managers()] == ["a", "same"]
    Script(TWO_PARTITIONS, rm_id="b", scheduler=scheduler)
    # whoever has left does not count, nor does its own earlier registration
    scheduler.shutdown("a", 0)
    Script(TWO_PARTITIONS, rm_id="b", scheduler=scheduler, policy_group="g")
    Script(ONE_QUEUE, rm_id="b", scheduler=scheduler, policy_group="g")


NOW = 1_790_000_000 * 10**9


@pytest.fixture
def service() -> SchedulerService:
    return SchedulerService(manual=True, clock=lambda: NOW)


def register(service: SchedulerService, *rm_ids: str, config: str = "") -> None:
    for rm_id in rm_ids:
        request = si.RegisterResourceManagerRequest(rmID=rm_id, config=config)
        service.register_resource_manager(request, si.NullCallback())


def add(service: SchedulerService, rm_id: str, queue: str) -> None:
    new = si.AddApplicationRequest(
        applicationID="app", queueName=queue, ugi=si.UserGroupInformation(user="u", groups=["g"])
    )
    service.update_application(si.ApplicationRequest(rmID=rm_id, new=[new]))


def active(service: SchedulerService, rm_id: str) -> list[str]:
    root = service.scheduler.partition("default", rm_id).root
    return sorted(q.name for q in root.children.values() if q.state == "Active")


def test_the_default_is_used_or_what_the_operator_gives_or_what_one_brings_for_itself(
    service: SchedulerService,
) -> None:
    register(service, "rm")
    add(service, "rm", "")
    [rule] = service.scheduler.partition("default", "rm").config.placement_rules
    assert rule.name == "tag"
    service.configure(" ")
    assert service._queues.text == DEFAULT_CONFIGURATION
    service.shutdown("rm")
    service.configure(tree("a"))
    register(service, "own", config=tree("b"))
    register(service, "blank", config="  \n")
    assert active(service, "blank") == ["a"]
    service.configure(tree("c"))
    assert active(service, "own") == ["b"]


def test_a_text_that_is_bad_or_not_for_everyone_changes_nothing(service: SchedulerService) -> None:
    service.configure(tree("a"))
    register(service, "one", "two")
    with pytest.raises(RequestError) as caught:
        service.configure(tree("x y", "a", "a"))
    assert "2 problems" in caught.value.reason and "queues[0].name" in caught.value.reason
    assert active(service, "one") == ["a"]
    register(service, "later")
    assert active(service, "later") == ["a"]
    add(service, "two", "root.a")
    parent = tree("a, " + below("below"))
    with pytest.raises(RequestError, match="'two': queue root.a has applications"):
        service.configure(parent)
    assert active(service, "one") == ["a"]
    assert not service.scheduler.partition("default", "one").root.children["a"].children


def test_an_update_of_its_own_makes_it_independent(service: SchedulerService) -> None:
    service.configure(tree("a"))
    register(service, "rm")
    update = si.UpdateConfigurationRequest(rmID="rm", extraConfig={"rm.pauseTimeout": "1m"})
    service.update_configuration(update)
    service.configure(tree("a", "b"))
    assert active(service, "rm") == ["a", "b"], "settings alone do not"
    service.update_configuration(si.UpdateConfigurationRequest(rmID="rm", config=tree("a", "c")))
    service.configure(tree("a", "d"))
    assert active(service, "rm") == ["a", "c"]
    register(service, "rm")
    assert active(service, "rm") == ["a", "d"], "it registered anew"


def test_checking_an_update_changes_nothing(service: SchedulerService) -> None:
    service.configure(tree("a"))
    register(service, "rm")
    scheduler = service.scheduler
    scheduler.check_update(si.UpdateConfigurationRequest(rmID="rm", config=tree("b")))
    assert active(service, "rm") == ["a"]
    with pytest.raises(RequestError, match="not registered"):
        scheduler.check_update(si.UpdateConfigurationRequest(rmID="nobody"))
