"""How many applications of a user or a group may run at once (2.5, V5).

``test_core_order_reference`` compares whom limits admit, in any tree and order; here is what it leaves out.
"""

from __future__ import annotations

import pytest
from core_world import reported

from quadriga.si import TerminationType
from quadriga.sim.script import Script

from .limits_side import allocated, limited, submit, used

ONE = "users: ['*'], maxapplications: 1"
TWO = "users: ['*'], maxapplications: 2"


def script_of(*entries: str, more: str = "") -> Script:
    script = Script(limited(*entries, more=more))
    script.node("n1", memory=100)
    return script


def running(script: Script, user: str = "ann") -> list[str]:
    account = script.scheduler.partition().users[user]
    return [app.app_id for app in account.running_in(script.scheduler.partition().root)]


def test_2_5_an_application_that_asks_for_more_still_counts() -> None:
    """It holds nothing for the moment, but it runs: nobody takes its place. And back from waiting it is
    served whatever the limit: only applications that have not started are held back (2.9)."""
    script = script_of(ONE)
    submit(script, "a")
    submit(script, "b")
    script.ask("a", "big", memory=500)
    assert allocated(script) == ["a0"]
    script.release("a", "a0-0")
    assert allocated(script) == []
    assert running(script) == ["a"]
    script.release_ask("a", "big")
    assert allocated(script) == ["b0"]
    script.ask("a", "again", memory=5)
    assert allocated(script) == ["again"]
    assert running(script) == ["a", "b"]
    submit(script, "c")
    script.release("a", "again-0")
    assert allocated(script) == []
    script.release("b", "b0-0")
    assert allocated(script) == ["c0"]


def test_2_9_the_queue_must_admit_it_as_well() -> None:
    script = script_of(TWO, more=", maxapplications: 3")
    for app, user in (("a", "ann"), ("b", "ann"), ("c", "ann"), ("d", "bob"), ("e", "bob")):
        submit(script, app, user, asks=2 if app == "a" else 1)
    assert allocated(script) == ["a0", "a1", "b0", "d0"]
    assert (running(script), running(script, "bob")) == (["a", "b"], ["d"])
    script.release("d", "d0-0")
    assert allocated(script) == ["e0"]  # c is ann's third
    script.release("a")
    assert allocated(script) == ["c0"]


def gang(script: Script, app: str, style: str = "Soft", members: int = 2) -> None:
    script.app(app, "root.q", user="ann", gang={"memory": 10}, style=style, timeout_ms=60_000)
    placeholders = [f"{app}-{n}" for n in range(members)]
    script.ask(app, *placeholders, group="tg", placeholder=True, memory=5)


def test_2_5_5_15_a_gang_counts_from_its_first_placeholder() -> None:
    """Removed while Accepted it blocks nobody: YuniKorn keeps its place for ever (bug 1)."""
    script = script_of(ONE)
    gang(script, "g")
    gang(script, "h")
    assert allocated(script, 1) == ["g-0"]
    assert script.scheduler.application("g").state == "Accepted"
    assert running(script) == ["g"]
    assert allocated(script, 1) == ["g-1"]
    gang(script, "i")
    script.remove_app("g")
    assert allocated(script, 1) == ["h-0"]
    script.remove_app("h")
    assert allocated(script) == ["i-0", "i-1"]


@pytest.mark.parametrize("style", ["Soft", "Hard"])
def test_2_5_a_gang_that_timed_out_leaves_its_place(style: str) -> None:
    script = script_of(ONE)
    gang(script, "g", style, members=1)
    gang(script, "h")
    assert allocated(script) == ["g-0"]
    script.advance(61)
    assert running(script) == ["g"]  # its placeholder is not confirmed gone
    script.confirm(TerminationType.TIMEOUT)
    assert allocated(script) == ["h-0", "h-1"]
    assert running(script) == ["h"]


def test_g52_leftover_placeholders_do_not_keep_the_place() -> None:
    script = script_of(ONE)
    gang(script, "g")
    submit(script, "b")
    allocated(script)
    script.ask("g", "real", group="tg", memory=5)
    script.schedule()
    script.confirm()
    script.release("g", "real-0")
    app = script.scheduler.application("g")
    assert (app.state, len(app.placeholders), app.counted) == ("Waiting", 1, False)
    assert allocated(script) == ["b0"]


def test_2_11_a_recovered_application_counts_without_being_asked() -> None:
    script = script_of(ONE)
    for app in ("a", "b"):
        submit(script, app, asks=0)
    existing = [reported(f"{app}0", app, memory=5) for app in ("a", "b")]
    script.node("n2", memory=100, existing=existing)
    assert running(script) == ["a", "b"]
    submit(script, "c")
    assert allocated(script) == []
    script.release("a", "a0-0")
    assert allocated(script) == []
    script.release("b", "b0-0")
    assert allocated(script) == ["c0"]


def test_s36_5_15_releasing_everything_gives_the_quota_back() -> None:
    """``a`` goes on (in YuniKorn it starves, bug 3); ``b`` is the user's second and waits."""
    script = script_of("users: ['*'], maxresources: {memory: 20}, maxapplications: 1")
    submit(script, "a", asks=3, memory=8)
    submit(script, "b", memory=8)
    assert allocated(script, 5) == ["a0", "a1"]
    script.release("a")
    assert used(script, "ann") == 0
    assert allocated(script, 3) == ["a2"]
    assert script.scheduler.application("b").state == "Accepted"
    assert running(script) == ["a"]
