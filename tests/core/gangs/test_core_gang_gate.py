"""The whole-gang gate (G8, X16) and the timers of gangs and others (X17, 2.10)."""

import pytest
from core_world import in_order, launch, queues, scripted, serve, state

from quadriga.sim.scripted.script import Script

MINUTE = 60


def siblings(more: str = "", most: str = "memory: 12") -> str:
    """Two sibling leafs under a parent of 12, ``more`` is a property of both."""
    properties = f"properties: {{{more}}}" if more else "submitacl: '*'"
    return queues(
        *"default parent.left parent.right".split(),
        parent=f"resources: {{max: {{{most}}}}}",
        parent_left=properties,
        parent_right=properties,
    )


LEFT, RIGHT = "root.parent.left", "root.parent.right"


@pytest.fixture
def script(order: str) -> Script:
    return scripted(siblings(), order=order, memory=100)


def gang(script: Script, app: str, queue: str, size: int, **more: object) -> None:
    """An application with a placeholder ask for each of ``size`` members of 1."""
    accepted = script.app(app, queue, gang={"memory": size}, **more)  # type: ignore[arg-type]
    assert accepted == [f"accepted {app}"]
    keys = [f"{app}{n}" for n in range(size)]
    script.ask(app, *keys, group="tg", placeholder=True, memory=1)


def held(script: Script, app: str) -> int:
    return len(script.scheduler.application(app).placeholders)


def test_x16_two_gangs_of_ten_under_a_parent_of_twelve(script: Script) -> None:
    """Fair order between the siblings would give six to each; one gets ten, the other waits."""
    gang(script, "a", LEFT, 10)
    gang(script, "b", RIGHT, 10)
    script.schedule()
    assert (held(script, "a"), held(script, "b")) == (10, 0)
    assert (state(script, "a"), state(script, "b")) == ("Running", "Accepted")
    script.remove_app("a")
    script.schedule()
    assert held(script, "b") == 10


def test_x16_what_started_gangs_are_owed_is_not_free(script: Script) -> None:
    """A gang that has started keeps its promise while its other asks are still to come."""
    script.app("a", LEFT, gang={"memory": 8})
    serve(script, "a", "a0", group="tg", placeholder=True, memory=1)
    gang(script, "b", RIGHT, 5)  # 1 used, 7 promised, 4 left
    assert script.schedule() == []
    gang(script, "c", RIGHT, 4)
    assert len(script.schedule()) == 5
    # the started gang is checked against its own remainder only
    serve(script, "a", *[f"a{n}" for n in range(1, 8)], group="tg", placeholder=True, memory=1)
    assert held(script, "a") == 8
    assert state(script, "a") == "Running"


def test_x16_g9_a_started_gang_goes_on_whatever_others_take(script: Script) -> None:
    """Ordinary applications may take what was promised, and a lowered quota closes no gate again."""
    script.app("a", LEFT, gang={"memory": 12})
    serve(script, "a", "a0", group="tg", placeholder=True, memory=1)
    script.app("plain", RIGHT)
    assert serve(script, "plain", "x", memory=1) == ["plain Running (run)", "new plain/x-0 on n1"]
    keys = [f"a{n}" for n in range(1, 12)]
    serve(script, "a", *keys[:5], group="tg", placeholder=True, memory=1)
    assert held(script, "a") == 6
    script.configure(siblings(most="memory: 10"))
    serve(script, "a", *keys[5:], group="tg", placeholder=True, memory=1)
    assert held(script, "a") == 9


@pytest.mark.parametrize(
    ("how", "placed"), [("a release", 9), ("a raised quota", 9), ("another admission", 6)]
)
def test_x16_g11_a_gang_revived(script: Script, how: str, placed: int) -> None:
    """It waits for the parent's quota without spinning."""
    launch(script, "plain", "x", "y", memory=3, queue=RIGHT)
    gang(script, "a", LEFT, 9)
    for _ in range(3):
        assert script.schedule() == []
    (reason, *_) = script.scheduler.explain("a", "a0").reasons
    assert "root.parent" in reason and "6 B memory" in reason
    if how == "a release":
        script.release("plain", "x-0")
    elif how == "a raised quota":
        script.configure(siblings(most="memory: 15"))
    else:
        script.configure(siblings("gang.admission: incremental"))
    script.schedule()
    assert held(script, "a") == placed


def test_x16_a_gang_revived_when_another_needs_its_promise_no_more(script: Script) -> None:
    """A removed, a killed and a softly timed out gang give their promise back."""
    for style in ("removed", "Hard", "Soft"):
        name = style.lower()
        script.app(name, LEFT, gang={"memory": 10}, style=style, timeout_ms=60_000)
        serve(script, name, "p", group="tg", placeholder=True, memory=1)
        gang(script, f"after-{name}", RIGHT, 5)
        assert script.schedule() == []
        if style == "removed":
            script.remove_app(name)
        else:
            script.advance(60)
            script.confirm()
        script.schedule()
        assert held(script, f"after-{name}") == 5
        script.remove_app(f"after-{name}")


def test_x16_several_types_are_checked_together(order: str) -> None:
    script = scripted(siblings(most="memory: 12, vcore: 4"), order=order, memory=100, vcore=100_000)
    launch(script, "plain", "x", vcore=1000, queue=LEFT)
    script.app("a", RIGHT, gang={"memory": 4, "vcore": 4000})
    assert serve(script, "a", *"pqrs", group="tg", placeholder=True, memory=1, vcore=1000) == []
    script.release("plain", "x-0")
    assert len(script.schedule()) == 5


def test_x16_gated_gangs_are_served_in_order_and_smaller_ones_may_pass(script: Script) -> None:
    launch(script, "plain", "x", memory=6, queue=LEFT)
    for app, size in (("first", 10), ("second", 10), ("small", 6)):
        gang(script, app, LEFT, size)
        script.advance(1)
    script.schedule()
    assert [held(script, app) for app in ("first", "second", "small")] == [0, 0, 6]
    script.remove_app("small")
    script.release("plain", "x-0")
    script.schedule()
    assert (held(script, "first"), held(script, "second")) == (10, 0)


@pytest.mark.parametrize("size", [{"memory": 4}, None], ids=["gang", "ordinary"])
def test_x9_without_hold_or_gang_asks_do_not_wait(order: str, size: dict[str, int] | None) -> None:
    """gang.hold: false is YuniKorn: an early real allocation makes the application run."""
    script = scripted(siblings("gang.hold: 'false'" if size else ""), order=order, memory=100)
    script.app("a", LEFT, gang=size)
    heard = serve(script, "a", "real", group="tg", memory=1)
    assert heard == ["a Running (run)", "new a/real-0 on n1"]


@pytest.mark.parametrize(
    ("timeout_ms", "seconds"), [(0, 15 * MINUTE), (600_000, 10 * MINUTE), (1, 0.001), (1500, 1.5)]
)
def test_x17_placeholder_timeout(script: Script, timeout_ms: int, seconds: float) -> None:
    """5.13: 0 is 15 minutes, else milliseconds."""
    script.app("a", LEFT, gang={"memory": 4}, style="Hard", timeout_ms=timeout_ms)
    serve(script, "a", "p", group="tg", placeholder=True, memory=1)
    app = script.scheduler.application("a")
    assert app.gang.timeout == round(seconds * 1e9)
    script.advance(seconds - 0.0005)
    assert app.state == "Accepted"
    script.advance(0.0005)
    assert app.state == "Killing"


def test_x17_a_timeout_that_is_none_is_never(script: Script) -> None:
    """A huge one does not overflow."""
    for app, timeout_ms in (("g", -1), ("h", 2**63 - 1)):
        script.app(app, LEFT, gang={"memory": 4}, style="Hard", timeout_ms=timeout_ms)
        serve(script, app, "p", group="tg", placeholder=True, memory=1)
    for app, timeout_ms in (("a", 0), ("b", -5)):
        script.app(app, LEFT, timeout_ms=timeout_ms)
        serve(script, app, "x", memory=1, timeout_ms=timeout_ms)
    assert script.advance(1000 * 60 * MINUTE) == []
    assert [state(script, app) for app in "ghab"] == ["Accepted"] * 2 + ["Running"] * 2


def test_x17_run_limit_of_an_ordinary_application(script: Script, order: str) -> None:
    script.app("a", LEFT, timeout_ms=60_000)
    script.advance(50)
    script.ask("a", "x", "y", memory=1)
    script.advance(50)  # counted from the start, not from the submission
    script.schedule()
    serve(script, "a", "z", memory=100)
    script.advance(59)
    assert state(script, "a") == "Running"
    assert script.advance(1) == in_order(
        order,
        "a Killing (ApplicationExecutionTimeout)",
        "released ask a/z TIMEOUT",
        "released a/x-0 TIMEOUT",
        "released a/y-0 TIMEOUT",
    )
    assert script.confirm() == ["a Killed (killed)"]
    (*_, last) = script.scheduler.story("allocation/a/x-0")
    assert last.target == "Expired"


@pytest.mark.parametrize("back", [True, False], ids=["runs again", "waits"])
def test_x17_the_run_limit_is_not_restarted(script: Script, back: bool) -> None:
    """It strikes in Waiting too."""
    script.app("a", LEFT, timeout_ms=60_000)
    serve(script, "a", "x", memory=1)
    script.advance(40)
    script.release("a", "x-0")
    script.advance(10)
    if back:
        assert script.ask("a", "y", memory=1) == ["a Running (ask)"]
        script.schedule()
    script.advance(10)
    assert state(script, "a") == ("Killing" if back else "Killed")


@pytest.mark.parametrize(("style", "end"), [("Hard", "Killing"), ("Soft", "Resuming")])
def test_gang_wait_ends_the_wait_for_a_first_placeholder(order: str, style: str, end: str) -> None:
    script = scripted(siblings("gang.wait.limit: 60s"), order=order, memory=5)
    script.app("a", LEFT, gang={"memory": 12}, style=style)
    script.ask("a", "p", group="tg", placeholder=True, memory=12)
    serve(script, "a", "real", group="tg", memory=5)
    script.advance(59)
    gone = ["released ask a/p TIMEOUT", "released ask a/real TIMEOUT"]
    heard = in_order(
        order, f"a {end} (ResourceReservationTimeout)", *gone[: 2 if style == "Hard" else 1]
    )
    last = "a Killed (killed)" if style == "Hard" else "a Accepted (resumed)"
    assert script.advance(1) == [*heard, last]
    if style == "Soft":
        assert script.schedule() == ["a Running (run)", "new a/real-0 on n1"]


@pytest.mark.parametrize(("queue", "own", "seconds"), [(60, 20, 20), (20, 60, 20), (0, 20, 20)])
def test_s3_an_application_may_bound_its_own_wait(queue: int, own: int, seconds: int) -> None:
    script = waiting(f"gang.wait.limit: {queue}s" if queue else "", str(own))
    script.advance(seconds - 1)
    assert state(script, "a") == "Accepted"
    assert "a Killing (ResourceReservationTimeout)" in script.advance(1)


def waiting(more: str, limit: str) -> Script:
    """A Hard gang without a placeholder, with its own limit for that."""
    script = scripted(siblings(more), memory=5)
    script.app("a", LEFT, gang={"memory": 12}, style="Hard", tags={"gang.wait.limit": limit})
    serve(script, "a", "p", group="tg", placeholder=True, memory=12)
    return script


@pytest.mark.parametrize("text", ["0", "-5", "1.5", "1h", "", "1234567890"])
def test_s3_a_wait_that_is_no_number_of_seconds_is_ignored(text: str) -> None:
    script = waiting("", text)
    script.advance(10 * MINUTE)
    assert state(script, "a") == "Accepted"
    (note,) = [note for _, note in script.scheduler.notes]
    assert note.startswith(f"tag gang.wait.limit of application a is ignored: {text!r} is no")


def test_gang_wait_limit_does_not_concern_a_started_gang(order: str) -> None:
    script = scripted(siblings("gang.wait.limit: 60s"), order=order, memory=5)
    gang(script, "a", LEFT, 12)
    script.schedule()
    script.advance(10 * MINUTE)
    assert state(script, "a") == "Accepted"
    script.app("plain", LEFT)
    script.ask("plain", "x", memory=100)
    script.advance(10 * MINUTE)
    assert state(script, "plain") == "Accepted"


def test_x16_a_gang_whose_application_runs_already_is_placed_one_by_one() -> None:
    """Its driver runs, and the quota has room for three of the four placeholders."""
    script = scripted(
        siblings("gang.hold: false, gang.admission: atomic", most="memory: 4"), memory=100
    )
    script.app("g", LEFT, gang={"memory": 4})
    assert serve(script, "g", "driver", memory=1) == ["g Running (run)", "new g/driver-0 on n1"]
    serve(script, "g", *"abcd", group="tg", placeholder=True, memory=1)
    assert held(script, "g") == 3
