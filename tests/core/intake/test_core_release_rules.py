"""Releases and their confirmations (1.4, X4, X12, X30, X32), and their watchdog."""

import pytest
from core_steps import run, serve, submit
from core_world import in_order, running_gang, scripted

from quadriga import si
from quadriga.sim.scripted.script import Script

Kind = si.TerminationType

STOPPED = si.TerminationType.STOPPED_BY_RM
TIMEOUT = si.TerminationType.TIMEOUT
PREEMPTED = si.TerminationType.PREEMPTED_BY_SCHEDULER
REPLACED = si.TerminationType.PLACEHOLDER_REPLACED
BY_CORE = (TIMEOUT, PREEMPTED, REPLACED)


def running(script: Script, *keys: str, app: str = "a") -> None:
    """An ordinary application with an allocation of 1 for each key."""
    run(script, app, *keys, memory=1)


def request(*releases: si.AllocationRelease) -> si.AllocationRequest:
    parts = si.AllocationReleasesRequest(allocationsToRelease=releases)
    return si.AllocationRequest(rmID="rm", releases=parts)


def releasing(script: Script, kind: Kind, count: int = 2) -> str:
    """Have the core ask an allocation of application g back; its UUID."""
    running_gang(script, count)
    if kind == REPLACED:
        serve(script, "g", "real", group="tg", memory=1)
    else:  # nobody has taken them over in time (X38)
        script.advance(15 * 60)
    return "p0-0"


def end_of(script: Script, allocation: str) -> str:
    return script.scheduler.story(f"allocation/{allocation}")[-1].target


def used(script: Script) -> int:
    return sum(script.scheduler.partition().root.allocated)


def released(script: Script) -> list[si.AllocationRelease]:
    return [r for _, message in script.messages for r in getattr(message, "released", ())]


# -- R1 to R5 --------------------------------------------------------------------------------------


def test_r1_the_same_message_goes_both_ways(script: Script) -> None:
    """What is asked back is confirmed by the very same message, and so is the release of an ask."""
    releasing(script, REPLACED)
    assert script.send(request(*released(script))) == ["new g/real-0 on n1"]
    submit(script, "a", "x", memory=100)
    script.release_ask("a", "x")
    (answer,) = [r for _, m in script.messages for r in getattr(m, "releasedAsks", ())]
    assert answer == si.AllocationAskRelease(
        partitionName="default",
        applicationID="a",
        allocationKey="x",
        terminationType=STOPPED,
        message=answer.message,
    )


@pytest.mark.parametrize("kind", [REPLACED, TIMEOUT])
def test_r2_r3_r4_r8_the_rm_confirms_what_the_core_created(script: Script, kind: Kind) -> None:
    """R2: the type says who created it. R4: a confirmation is never confirmed again."""
    uuid = releasing(script, kind)
    assert {r.terminationType for r in script.outstanding} == {kind}
    assert ("real-0" in released(script)[0].message) == (kind == REPLACED)
    heard = script.release("g", uuid, kind)
    assert not any(line.startswith("released") for line in heard)
    assert end_of(script, f"g/{uuid}") == ("Replaced" if kind == REPLACED else "Expired")


def test_r5_one_release_in_flight_for_an_allocation(script: Script) -> None:
    """A run limit, a timeout and a killed application ask for it once."""
    script.app("a", timeout_ms=10_000)
    serve(script, "a", "x", memory=1, timeout_ms=5_000)
    assert script.advance(5) == ["released a/x-0 TIMEOUT"]
    assert script.advance(5) == ["a Killing (ApplicationExecutionTimeout)"]
    assert script.confirm() == ["a Killed (killed)"]


def test_r5_the_rm_may_still_stop_it(script: Script) -> None:
    """Releasing is not the core's alone: the pod may end by itself first."""
    uuid = releasing(script, REPLACED)
    assert script.release("g", uuid, STOPPED) == ["released g/p0-0 STOPPED_BY_RM"]
    assert end_of(script, "g/p0-0") == "Completed"
    # the member is planned anew, with the other placeholder
    assert script.schedule() == ["released g/p1-0 PLACEHOLDER_REPLACED"]
    assert script.confirm(REPLACED) == ["new g/real-1 on n1"]


@pytest.mark.parametrize("kind", [TIMEOUT, REPLACED])
def test_r5_the_watchdog_repeats_a_release_that_counts_once(script: Script, kind: Kind) -> None:
    uuid = releasing(script, kind)
    script.advance(60)
    script.advance(120)
    told = [each for each in released(script) if uuid == each.UUID]
    assert len(told) >= 3
    assert all(each == told[0] for each in told)  # same UUID, same type, same words
    assert told[0].terminationType == kind
    app = script.scheduler.application("g")
    assert app.released == 0
    group = app.gang.task_groups["tg"]
    assert script.release("g", uuid, kind) == (["new g/real-0 on n1"] if kind == REPLACED else [])
    counted = (app.released, group.replaced, group.timed_out)
    assert counted == ((1, 1, 0) if kind == REPLACED else (1, 0, 1))
    assert script.release("g", uuid, kind) == []  # the answer to a repetition
    assert (app.released, group.replaced, group.timed_out) == counted


# -- R6 and X12: what a release names --------------------------------------------------------------


def test_r6_without_an_identifier_everything_is_released(script: Script, order: str) -> None:
    running(script, "x", "y", "z")
    running(script, "other", app="b")
    heard = script.release("a")
    gone = [f"released a/{key}-0 STOPPED_BY_RM" for key in "xyz"]
    assert heard == in_order(order, "a Waiting (wait)", *gone)
    assert used(script) == 1


@pytest.mark.parametrize(
    "field", [{"UUID": "x-1"}, {"allocationID": "x-1"}, {"allocationKey": "x", "UUID": "x-1"}]
)
def test_x12_an_allocation_is_named_by_its_uuid(script: Script, field: dict[str, str]) -> None:
    run(script, "a", "x", memory=1, repeat=3)
    release = si.AllocationRelease(applicationID="a", terminationType=STOPPED, **field)
    assert script.send(request(release)) == ["released a/x-1 STOPPED_BY_RM"]


# -- R7: releases of asks --------------------------------------------------------------------------


def test_r7_what_a_release_of_asks_names(script: Script, order: str) -> None:
    """A key alone means that key everywhere, an application alone all its asks, and both one ask."""
    for app in "abc":
        submit(script, app, "x", "y", memory=100)
    assert script.release_ask("b", "y") == ["released ask b/y STOPPED_BY_RM"]
    heard = script.release_ask("a")
    gone = ["released ask a/x STOPPED_BY_RM", "released ask a/y STOPPED_BY_RM"]
    assert heard == in_order(order, "a Waiting (wait)", *gone)
    submit(script, "d", "x", "y", memory=100)
    heard = script.release_ask("", "x")
    named = [f"released ask {app}/x STOPPED_BY_RM" for app in "bcd"]
    assert heard == in_order(order, "b Waiting (wait)", *named)
    assert [*script.scheduler.application("c").asks] == ["y"]


@pytest.mark.parametrize("kind", BY_CORE)
def test_x8_late_confirmations_of_ask_releases_are_dropped(script: Script, kind: Kind) -> None:
    submit(script, "a", "x", "y", memory=100)
    assert script.release_ask("a", "x", kind) == []
    assert sorted(script.scheduler.application("a").asks) == ["x", "y"]


#: proto3 enumerations are open: any number of 32 bits may come
OUT_OF_RANGE = (5, 99, -1, 2**31 - 1, -(2**31))


@pytest.mark.parametrize("kind", OUT_OF_RANGE)
def test_x30_r3_a_release_of_unknown_type_is_a_stop(script: Script, kind: Kind) -> None:
    """However it names them: allocations, an ask, an allocation that was asked back."""
    names: dict[str, dict[str, str]] = {"a": {"uuid": "x-0"}, "b": {"key": "x"}, "c": {}}
    for app, name in names.items():
        running(script, "x", app=app)
        assert f"released {app}/x-0 STOPPED_BY_RM" in script.release(app, kind=kind, **name)
    assert used(script) == 0
    submit(script, "d", "x", memory=100)
    assert "released ask d/x STOPPED_BY_RM" in script.release_ask("d", "x", kind)
    assert script.scheduler.application("d").asks == {}
    uuid = releasing(script, TIMEOUT)
    assert f"released g/{uuid} STOPPED_BY_RM" in script.release("g", uuid, kind)
    assert end_of(script, f"g/{uuid}") == "Completed"


# -- X4 and X32 ------------------------------------------------------------------------------------


def test_x4_the_core_creates_the_replacement(script: Script) -> None:
    """An RM that sends PLACEHOLDER_REPLACED of its own accord replaces nothing."""
    running_gang(script)
    serve(script, "g", "real", memory=1)
    assert script.release("g", "p0-0", REPLACED) == []
    (group,) = script.scheduler.application("g").gang.task_groups.values()
    assert (group.replaced, group.timed_out) == (0, 1)


@pytest.mark.parametrize("kind", BY_CORE)
def test_x32_a_confirmation_that_nobody_asked_for(script: Script, kind: Kind) -> None:
    """The pod is gone: the resources are free, and it is written down."""
    running(script, "x", "y")
    assert script.release("a", "x-0", kind) == []
    assert end_of(script, "a/x-0") == "Completed"
    assert used(script) == 1
    assert any("unasked confirmation" in text for _, text in script.scheduler.notes)
    assert script.release("a", "y-0", kind) == ["a Waiting (wait)"]


@pytest.mark.parametrize(
    ("asked", "answered"),
    [(REPLACED, TIMEOUT), (REPLACED, PREEMPTED), (TIMEOUT, REPLACED), (TIMEOUT, PREEMPTED)],
)
def test_x32_a_confirmation_of_another_type(script: Script, asked: Kind, answered: Kind) -> None:
    uuid = releasing(script, asked)
    assert script.release("g", uuid, answered) == []
    assert end_of(script, f"g/{uuid}") == "Completed"
    (group,) = script.scheduler.application("g").gang.task_groups.values()
    assert (group.replaced, group.timed_out) == (0, 1)
    script.confirm()
    app = script.scheduler.application("g")
    assert len(app.allocations) + len(script.schedule()) == (1 if asked == REPLACED else 0)


def test_x32_a_stop_and_a_confirmation_in_one_request(script: Script) -> None:
    """Whichever order they stand in, the allocation ends once."""
    named = {"applicationID": "g", "UUID": releasing(script, REPLACED)}
    kinds = (REPLACED, STOPPED)
    script.send(request(*(si.AllocationRelease(terminationType=kind, **named) for kind in kinds)))
    assert used(script) in (1, 2)
    script.schedule()
    script.confirm()
    assert len(script.scheduler.application("g").allocations) == 1


# -- an RM that does not answer --------------------------------------------------------------------


@pytest.mark.parametrize(("resend", "seconds"), [("10s", 10), ("20m", 1200)])
def test_s4_resend_as_the_rm_chooses(order: str, resend: str, seconds: int) -> None:
    script = scripted(order=order, extra={"release.resend": resend}, memory=20)
    releasing(script, REPLACED, count=1)
    script.advance(seconds - 0.001)
    assert len(released(script)) == 1
    script.advance(0.001)
    assert len(released(script)) == 2
