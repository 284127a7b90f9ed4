"""Bad input has a defined answer, and loses nothing (every step checks the invariants)."""

from decimal import Decimal
from typing import Any

import pytest
from core_steps import on_nodes, run, serve, submit
from core_world import queues

from quadriga import si
from quadriga.core import RequestError, Scheduler, SchedulerService
from quadriga.sim.scripted.script import Script, resource

MOST = 2**63 - 1


def running() -> Script:
    """An application with an allocation and a pending ask."""
    script = on_nodes(n1=1000)
    run(script, "app", "a", "b", vcore=1000)
    return script


def holds(script: Script) -> bool:
    app = script.scheduler.application("app")
    return (list(app.allocations), list(app.asks), app.state) == (["a-0"], ["b"], "Running")


def releases(*items: si.AllocationRelease | si.AllocationAskRelease) -> si.AllocationRequest:
    request = si.AllocationReleasesRequest()
    for item in items:
        if isinstance(item, si.AllocationRelease):
            request.allocationsToRelease.append(item)
        else:
            request.allocationAsksToRelease.append(item)
    return si.AllocationRequest(rmID="rm", releases=request)


NO_TIMES: list[Any] = [True, 1.0, float("nan"), "5", None, Decimal(5)]
NO_TIMES += [2**62 + 1, 10**5000, -(2**62) - 1, -(10**5000), -1]


@pytest.mark.parametrize(
    "call", ["apply", "schedule", "advance", "disconnect", "inspect", "clean_queues"]
)
def test_2_10_a_time_that_is_none_is_refused_and_nothing_is_applied(call: str) -> None:
    script = running()
    scheduler = script.scheduler
    script.advance(1)
    before = scheduler.now, scheduler.journal.count, scheduler.next_deadline()
    node = si.NodeInfo(nodeID="n2", action=si.NodeInfo.CREATE)
    arguments: dict[str, tuple[Any, ...]] = {
        "apply": (si.NodeRequest(rmID="rm", nodes=[node]),),
        "disconnect": ("rm",),
    }
    for now in NO_TIMES:
        with pytest.raises(RequestError) as refused:
            getattr(scheduler, call)(*arguments.get(call, ()), now)
        assert (refused.value.request, refused.value.field) == ("time", "now")
        assert (scheduler.now, scheduler.journal.count, scheduler.next_deadline()) == before
    assert list(scheduler.partition().nodes) == ["n1"]
    script.advance(1)
    assert holds(script)


def test_2_10_nor_does_the_service_take_such_a_time() -> None:
    for now in NO_TIMES[:-1]:
        service = SchedulerService(manual=True, clock=lambda now=now: now)
        with pytest.raises(RequestError):
            service.step()
        with pytest.raises(RequestError):
            service.play(now)
        assert service.now() == 0
        service.step(5)
        assert service.now() == 5


def test_releases_of_what_is_not_known_are_ignored_and_noted() -> None:
    script = running()
    for app, uuid in (("nobody", "a-0"), ("app", "nope"), ("nobody", "")):
        for kind in range(6):
            assert script.release(app, uuid, kind) == []  # type: ignore[arg-type]
    for app, key in (("nobody", "a"), ("app", "nope"), ("nobody", ""), ("", "nope")):
        for kind in range(6):
            assert script.release_ask(app, key, kind) == []  # type: ignore[arg-type]
    assert len(script.scheduler.notes) == 3 * 6 + 4 * 6
    assert holds(script)


def test_r7_m2_a_release_that_names_nothing_is_an_error_and_nothing_is_applied() -> None:
    """The check of a later part comes before the first part is applied."""
    script = running()
    good = si.AllocationRelease(partitionName="default", applicationID="app", UUID="a-0")
    for bad, field in [
        (si.AllocationAskRelease(partitionName="default"), "allocationAsksToRelease[0]"),
        (si.AllocationAskRelease(applicationID="app"), "allocationAsksToRelease[0].partitionName"),
        (si.AllocationRelease(partitionName="default", UUID="a-0"), "[1].applicationID"),
    ]:
        request = releases(good, bad)
        request.asks.add(allocationKey="z", applicationID="app", maxAllocations=1)
        request.asks[0].resourceAsk.CopyFrom(resource({"vcore": 1}))
        with pytest.raises(RequestError) as refused:
            script.send(request)
        assert refused.value.request == "AllocationRequest"
        assert refused.value.field.endswith(field)
        assert holds(script)


def test_what_is_no_message_is_refused_and_empty_requests_are_answered_with_nothing() -> None:
    scheduler = Scheduler()
    for thing in (None, "text", si.Allocation(), object()):
        with pytest.raises(RequestError, match="not a message"):
            scheduler.apply(thing, 0)  # type: ignore[arg-type]
    script = running()
    kinds = (si.AllocationRequest, si.ApplicationRequest, si.NodeRequest)
    for request in (*(kind(rmID="rm") for kind in kinds), releases()):
        assert script.send(request) == []
    assert holds(script)


def test_the_largest_quantities_of_the_protocol() -> None:
    script = Script()
    for name in ("n1", "n2", "n3"):
        script.node(name, vcore=MOST, memory=MOST)
    assert script.scheduler.partition().capacity[:2] == [3 * MOST, 3 * MOST]
    submit(script, "app", "a", "b", "c", vcore=MOST, memory=1)
    assert sorted(line for line in script.schedule() if line.startswith("new")) == [
        "new app/a-0 on n1",
        "new app/b-0 on n2",
        "new app/c-0 on n3",
    ]
    new = script.messages[-1].message.new[0]
    assert new.resourcePerAlloc == resource({"vcore": MOST, "memory": 1})
    assert serve(script, "app", "d", vcore=1) == []
    script.release("app", "b-0")
    assert script.schedule() == ["new app/d-0 on n2"]


def test_sums_beyond_64_bits() -> None:
    script = Script()
    submit(script, "app", "a", repeat=2**31 - 1, vcore=MOST)
    partition = script.scheduler.partition()
    assert partition.root.pending[partition.registry.index["vcore"]] == (2**31 - 1) * MOST
    assert script.scheduler.explain("app", "a").reasons
    script.node("n1", vcore=MOST, occupied={"vcore": MOST, "memory": MOST})
    script.node("n1", si.NodeInfo.UPDATE, vcore=1)
    assert script.schedule() == []
    script.node("n1", si.NodeInfo.UPDATE, occupied={})
    script.release_ask("app", "a")
    assert not any(partition.root.pending)


def test_a_timeout_of_the_largest_number() -> None:
    script = on_nodes(n1=2000)
    script.app("app", timeout_ms=MOST)
    script.app("gang", gang={"vcore": 5}, timeout_ms=MOST)
    script.ask("app", "a", vcore=1000, timeout_ms=MOST)
    script.ask("gang", "p", vcore=2, group="g", placeholder=True)
    assert len(script.schedule()) == 3
    assert script.advance(86400 * 365) == []
    script.scheduler.advance(2**62)  # the latest time of all
    script.scheduler.schedule(2**62)
    assert script.scheduler.now == 2**62


@pytest.mark.parametrize("tag", ["", "x", "-5", "9" * 30, "9" * 5000, "1e9", " 12 ", "٣", "²", "0"])
def test_a_creation_time_that_is_none(tag: str) -> None:
    script = Script()
    tags = {"yunikorn.apache.org/creationTime": tag}
    assert script.app("app", gang={"vcore": 5}, tags=tags) == ["accepted app"]


ODD = ["ключ", "鍵 with spaces", "a/b|c,d", "..", "💥", "x" * 2_000, "\x00", "' OR 1=1", "-0", "\n"]


@pytest.mark.parametrize("name", ODD, ids=range(len(ODD)))
def test_names_are_only_names(name: str) -> None:
    script = Script(queues("a"))
    for queue, partition in ((name, ""), (f"root.{name}", ""), ("root.a", name)):
        assert script.app("app", queue, partition=partition)[0].startswith("rejected app: ")
    assert script.node(name, vcore=1000, **{name: 5}) == [f"accepted node {name}"]
    assert script.app(name, "root.a", tags={name: name}, user=name) == [f"accepted {name}"]
    script.ask(name, name, tags={name: name}, **{name: 1})
    assert script.schedule()[-1] == f"new {name}/{name}-0 on {name}"
    assert script.scheduler.story(f"application/{name}")
    assert script.release(name, f"{name}-0")[0] == f"released {name}/{name}-0 STOPPED_BY_RM"
    assert script.remove_app(name)
    assert script.node(name, si.NodeInfo.DECOMISSION) == []
