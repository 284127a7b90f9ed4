"""The rules that a table alone can keep."""

from typing import Any

import pytest

from quadriga.fsm import APPLICATION, Lifecycle, Unbounded, Within, reachable
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.fsm.lifecycles.effects import Fire, StartedRunning, StoppedRunning, Update


def of_kind(caused: tuple[Any, ...], kind: type) -> list[Any]:
    return [effect for effect in caused if isinstance(effect, kind)]


# -- gangs and applications --------------------------------------------------------------------


def fired(born: Any, state: str, trigger: str, /, **facts: Any) -> tuple[Any, tuple[Any, ...]]:
    info = {name: facts.pop(name) for name in ("reason", "timer") if name in facts}
    it = born(state, **facts)
    return it, APPLICATION.fire(it, trigger, **info)


@pytest.mark.parametrize(
    ("hard", "state", "follows", "end"),
    [(True, "Killing", "killed", "Killed"), (False, "Resuming", "resumed", "Accepted")],
)
def test_i21_x2_x47_a_soft_timeout_resumes_and_a_hard_one_kills(
    born: Any, hard: bool, state: str, follows: str, end: str
) -> None:
    """Only a gang that lacks placeholders can time out."""
    it, caused = fired(born, "Accepted", "placeholder_timeout", hard=hard, gathers=False)
    assert (it.state, caused) == ("Accepted", ())
    it.gathers = it.has_placeholders = True
    caused = APPLICATION.fire(it, "placeholder_timeout", reason="ResourceReservationTimeout")
    assert (it.state, caused[-1]) == (state, Fire(follows))
    assert of_kind(caused, Update) == [Update(state, "ResourceReservationTimeout")]
    assert APPLICATION.fire(it, "placeholder_timeout") == ()
    assert APPLICATION.fire(it, follows) == ()
    assert it.state == state
    it.has_placeholders = False
    assert Update(end, follows) in APPLICATION.fire(it, follows)
    assert it.state == end
    ahead = reachable(APPLICATION, state)
    assert ahead == ("Killing", "Killed", "Expired") if hard else "Accepted" in ahead


@pytest.mark.parametrize(
    ("state", "facts", "needed"),
    [
        ("Accepted", {}, "has_allocations"),
        ("Accepted", {}, "gang_complete"),
        # nothing but an ask or an allocation calls back from Waiting
        ("Waiting", {"gang_complete": True}, "has_allocations"),
    ],
)
def test_x47_run_does_nothing_before_there_is_what_it_needs(
    born: Any, state: str, facts: dict[str, bool], needed: str
) -> None:
    it, caused = fired(born, state, "run", **facts)
    assert (it.state, caused) == (state, ())
    setattr(it, needed, True)
    APPLICATION.fire(it, "run")
    assert it.state == "Running"


def test_v5_running_is_counted_up_once_and_down_once(born: Any, steer: Any) -> None:
    for row in APPLICATION.rows:
        it = born(row.source)
        caused = APPLICATION.fire(it, row.trigger, **steer(it, row))
        before, after = row.source in application_fsm.COUNTED, it.state in application_fsm.COUNTED
        assert len(of_kind(caused, StartedRunning)) == (after and not before), row
        assert len(of_kind(caused, StoppedRunning)) == (before and not after), row


# -- all tables ------------------------------------------------------------------------------------------


def test_v7_every_state_has_a_limit_or_a_named_exit(lifecycle: Lifecycle) -> None:
    assert set(lifecycle.lasts) == set(lifecycle.states) - set(lifecycle.final)
    for state, limit in lifecycle.lasts.items():
        assert (state in lifecycle.timed) == isinstance(limit, Within)
        if isinstance(limit, Unbounded):
            exits = lifecycle.rows_from(state, limit.ends)
            assert any(row.target not in (None, state) for row in exits)
        else:
            assert limit.ns > 0
            assert limit.then is None or lifecycle.allows(state, limit.then)


def test_v7_no_state_is_a_dead_end_and_what_changes_nothing_says_why(lifecycle: Lifecycle) -> None:
    """From everywhere a final state can be reached, or, where there is none, every other state."""
    ends = set(lifecycle.final) or set(lifecycle.states) - {lifecycle.initial}
    for state in lifecycle.states:
        ahead = set(reachable(lifecycle, state))
        assert ahead & ends if lifecycle.final else ahead >= ends
    for row in lifecycle.rows:
        if row.target is None and not row.emit:
            assert row.why, row
