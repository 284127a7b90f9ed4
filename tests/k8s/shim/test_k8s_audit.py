"""K176: once a minute the watch, the cache and the core are compared. What differs twice is told and mended."""

import asyncio
from typing import Any

import pytest
from k8s_world import World, cluster, sized
from msgspec.structs import replace

from quadriga import si
from quadriga.core.driver.service import SchedulerService
from quadriga.core.driver.watchdog import Watchdog
from quadriga.k8s.conversion import messages
from quadriga.k8s.driver.auditing import Auditor
from quadriga.k8s.driver.core_state import CoreState
from quadriga.k8s.driver.measured import measured_of
from quadriga.k8s.objects import Pod
from quadriga.k8s.shim import differences
from quadriga.k8s.shim.actions import Bind, Record
from quadriga.k8s.shim.inputs import (
    AuditBegins,
    AuditEnds,
    BindEnded,
    Changed,
    CoreShows,
    Input,
    WatchShows,
)


def busy() -> World:
    """A node with pods of ours, one of another scheduler, and one pod that waits."""
    world = cluster()
    world.add_node("n2", cpu="1")
    world.add_pod("other", scheduler="another", cpu="1", node="n1")
    world.add_pod("a", "app", "2")
    world.add_pod("b", "app", "1")
    world.add_pod("wide", "app", "5")
    world.run(2)
    return world


def allocations(world: World, **parts: Any) -> None:
    """The core hears something that the shim knows nothing of."""
    world.core.update_allocation(messages.allocations(world.settings, **parts))


def long_gone(found: Any) -> Any:
    return replace(found, metadata=replace(found.metadata, uid="long-gone", name="long-gone"))


def pod_of(world: World, name: str) -> Pod:
    (found,) = world.named(name)
    return found


#: the kinds of differences, and what makes one of them
KINDS = {
    "foreign": "lose_foreign shrink_foreign keep_foreign",
    "pod": "lose_own resize_own keep_own",
    "ask": "lose_ask resize_ask keep_ask",
    "application": "keep_application",
    "application pod": "lose_application",
    "schedulable": "close_node",
    "capacity": "shrink_node",
    "node": "lose_node keep_node",
    "watched": "lose_in_cache leave_out",
    "watched pod": "keep_in_cache",
    "assumed": "keep_assumption",
}
CASES = {each: set(kinds.split()) for kinds, breaks in KINDS.items() for each in breaks.split()}
#: the shim hears nothing of what the core says of these
UNHEARD = "lose_own keep_own lose_ask keep_application lose_application lose_node keep_node".split()


def break_it(world: World, how: str, *pods: Pod, node: str = "n2") -> None:
    """By a pod of another scheduler, two of ours that run and one that waits; or by a node."""
    other, own, ended, ask = pods or (pod_of(world, name) for name in ("other", "a", "b", "wide"))
    settings, ended = world.settings, long_gone(ended)
    item = None
    match how:
        case "lose_foreign":
            allocations(world, releases=[messages.release(other.uid)])
        case "shrink_foreign":
            small = messages.foreign_allocation(sized(other, "10m"))
            allocations(world, existing=[small])
        case "keep_foreign":  # it ended without the core's knowing it
            allocations(world, existing=[messages.foreign_allocation(long_gone(other))])
        case "lose_own":
            allocations(world, releases=[messages.release(own.uid, "app")])
        case "resize_own":
            smaller = messages.allocation(sized(own, "500m"), "app", settings)
            allocations(world, existing=[smaller])
        case "keep_own":
            kept = messages.allocation(ended, "app", settings, node="n1")
            allocations(world, existing=[kept])
        case "lose_ask":
            allocations(world, ask_releases=[messages.release_ask(ask.uid, "app")])
        case "resize_ask":
            allocations(world, asks=[messages.ask(sized(ask, "90"), "app", settings)])
        case "keep_ask":
            allocations(world, asks=[messages.ask(long_gone(ask), "app", settings)])
        case "keep_application":
            request = si.ApplicationRequest(rmID=settings.cluster_id)
            user = si.UserGroupInformation(user="u")
            request.new.add(applicationID="long-gone", queueName="root.default", ugi=user)
            world.core.update_application(request)
        case "lose_application":
            remove = [messages.remove_application("app")]
            world.core.update_application(messages.applications(settings, (), remove))
        case "close_node":
            item = messages.node_drained(node)
        case "shrink_node":
            small = si.Resource(resources={"vcore": si.Quantity(value=1)})
            item = si.NodeInfo(nodeID=node, action=si.NodeInfo.UPDATE, schedulableResource=small)
        case "lose_node":
            item = messages.node_removed("n1")
        case "keep_node":
            item = messages.node_created(long_gone(world.nodes["n1"]), settings)
        case "lose_in_cache":  # K106: two spurious answers, and the pod counts as ended
            world.inputs.append(BindEnded(ask.uid, "gone"))
            world.settle()
        case "leave_out":
            world.cache.set_pod(other)
            world.shim._kernel.foreign.pop(other.uid, None)
        case "keep_in_cache":
            world.inputs.append(Changed("ADDED", ended))
            world.settle()
        case "keep_assumption":
            assert world.cache.assume(ask.uid, node) is None
    if item is not None:
        world.core.update_node(si.NodeRequest(rmID=settings.cluster_id, nodes=[item]))
    if how in UNHEARD:
        world.inputs.clear()


@pytest.mark.parametrize("how", CASES)
def test_k176_a_difference_that_stands_is_told_and_mended(how: str) -> None:
    world = busy()
    assert world.audit().fleeting == 0, world.shim.audit.found
    assert world.phases()["Running"] == 3
    before = world.core_state()
    break_it(world, how)
    found = world.audit()
    assert found.fleeting and not found.standing
    assert not any(each.reason == "AuditDifference" for each in world.records)

    found = world.audit()
    assert {each.kind for each in found.standing} <= CASES[how]
    assert all(each.cluster != each.core for each in found.standing)
    stood = world.shim.audit.stood
    warnings = [each for each in world.log_warnings if each.startswith("audit: ")]
    assert sum(stood.values()) == len(warnings) == len(found.standing) >= 1
    assert found.standing[0].cluster in warnings[0]
    assert found.standing[0].core in warnings[0]

    world.run(3)
    for _ in range(2):
        found = world.audit()
    assert found.fleeting == 0, world.shim.audit.found
    assert not found.standing
    assert sum(stood.values()) == len(warnings)  # each is counted once
    assert world.core_state() == before
    assert {pod.metadata.name for pod in world.pods.values()} == {"other", "a", "b", "wide"}
    world.check()


def told(world: World) -> Record:
    world.audit()
    world.audit()
    (record,) = [each for each in world.records if each.reason == "AuditDifference"]
    return record


def test_k176_an_event_names_what_where_and_both_values() -> None:
    world = busy()
    break_it(world, "shrink_foreign")
    record = told(world)
    assert (record.kind, record.name, record.type) == ("Pod", "other", "Warning")
    assert record.note == (
        f"audit: foreign {pod_of(world, 'other').uid} (n1) differs: the cluster has pod default/other takes"
        " pods=1 vcore=1000, the scheduler counts pods=1 vcore=10"
    )
    world = busy()
    break_it(world, "keep_foreign")  # there is no pod any more, so it is told of the node
    record = told(world)
    assert (record.kind, record.name) == ("Node", "n1")


def test_k176_what_ends_before_the_next_audit_does_not_count_nor_does_another_value() -> None:
    world = busy()
    break_it(world, "lose_foreign")
    assert world.audit().fleeting == 1
    allocations(world, existing=[messages.foreign_allocation(pod_of(world, "other"))])
    assert world.audit().standing == ()
    assert not world.shim.audit.stood.total()
    for how in ("shrink_foreign", "lose_foreign"):
        break_it(world, how)
        found = world.audit()
        assert (found.fleeting, found.standing) == (1, ())


def test_k176_what_is_under_way_is_no_difference(world: World) -> None:
    """Between the core's answer and the end of a bind both sides count the pod."""
    bound = world.answer(Bind, lambda bind: BindEnded("", "failed"))
    world.add_pod("a", "app")
    world.settle()
    assert bound
    assert world.audit().fleeting == 0


def test_k176_k151_an_audit_during_a_recovery_says_nothing() -> None:
    world = busy()
    break_it(world, "lose_foreign")
    world.audit()
    world.forget_core()
    world.inputs.append(AuditBegins())
    world.inputs.append(CoreShows(["n1"], {}, ["app"], {}))
    world.inputs.append(AuditEnds())
    world.settle()
    assert world.shim.serving
    assert world.shim.audit.report.number == 1
    assert world.audit().fleeting == 0


def test_k176_an_audit_without_the_core_compares_the_watch() -> None:
    world = busy()
    for _ in range(2):
        for each in (AuditBegins(False), WatchShows([]), AuditEnds()):
            world.inputs.append(each)
        world.settle()
    report = world.shim.audit.report
    assert (report.with_core, report.number, report.standing) == (False, 2, ())


def test_k176_only_twenty_differences_are_named() -> None:
    world = cluster("100")
    for n in range(25):
        world.add_pod(f"f-{n}", scheduler="another", cpu="1", node="n1")
    world.run(1)
    for uid in world.pods:
        allocations(world, releases=[messages.release(uid)])
    world.audit()
    assert len(world.audit().standing) == 25
    assert len(world.log_warnings) == 21
    assert world.log_warnings[-1] == "audit: 5 more differences are not named"
    assert world.audit().fleeting == 0


def test_k176_the_last_audit_is_in_the_state_dump_and_in_the_metrics() -> None:
    world = busy()
    assert world.shim.dump()["audit"] == {}
    break_it(world, "lose_foreign")
    world.audit()
    world.audit()
    dumped = world.shim.dump()["audit"]
    assert (dumped["number"], dumped["stood"]) == (2, {"foreign": 1})
    assert dumped["compared"] == {
        "pods": 4, "nodes": 2, "allocations": 3, "applications": 1, "asks": 1,
    }  # fmt: skip
    (standing,) = dumped["standing"]
    assert standing["where"] == "n1"
    rows = measured_of(None, None, (), True, world.shim.audit, Watchdog(lambda: 0))
    measured = {name: samples for name, _, _, samples in rows}
    assert measured["quadriga_kubernetes_audits_total"] == [({}, 2)]
    assert measured["quadriga_kubernetes_audit_standing"] == [({}, 1)]
    kinds = measured["quadriga_kubernetes_audit_differences_total"]
    by_kind = {labels["kind"]: count for labels, count in kinds}
    assert by_kind == dict.fromkeys(differences.KINDS, 0) | {"foreign": 1}


class FewPods:
    def node_names(self) -> tuple[str, ...]:
        return ("n1",)

    def pod_uids(self) -> tuple[str, ...]:
        return ("a", "gone")


def auditor(core_state: CoreState | None, heard: list[Input], **more: Any) -> Auditor:
    settings: dict[str, Any] = {
        "pods": lambda: {"a": Pod(), "gone": Pod()},
        "applications": lambda: ("app",),
        "serves": lambda: True,
        "put": heard.append,
        "sleep": asyncio.sleep,
    }
    return Auditor(core_state, FewPods(), **settings | more)


async def test_k176_an_audit_is_shown_in_small_parts() -> None:
    heard: list[Input] = []
    pods = {f"p-{n}": Pod() for n in range(1200)} | {"a": Pod()}
    with SchedulerService() as service:
        await auditor(CoreState(service, "mycluster"), heard, pods=lambda: pods).audit()
    shown = [each for each in heard if isinstance(each, WatchShows)]
    assert [len(each.pods) for each in shown] == [500, 500, 201, 0]
    assert shown[-1].gone == ["gone"]
    assert heard[0] == AuditBegins(with_core=True)
    assert heard[-3:] == [CoreShows(["n1"], {}), CoreShows((), {}, ["app"], {}), AuditEnds()]


async def test_k176_a_core_that_has_ended_ends_no_audit_and_one_elsewhere_shows_no_state() -> None:
    heard: list[Input] = []
    service = SchedulerService()
    service.stop()
    await auditor(CoreState(service, "mycluster"), heard).audit()
    assert not any(isinstance(each, AuditEnds) for each in heard)
    heard.clear()
    await auditor(None, heard).audit()
    assert [type(each) for each in heard] == [AuditBegins, WatchShows, AuditEnds]
    assert heard[0] == AuditBegins(with_core=False)


async def test_k176_once_a_minute_while_it_serves() -> None:
    heard: list[Input] = []
    slept: list[float] = []
    serves = iter([False, True])

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await auditor(None, heard, pods=dict, sleep=sleep, serves=lambda: next(serves)).run()
    assert slept == [60.0] * 3
    assert len([each for each in heard if isinstance(each, AuditEnds)]) == 1
