"""The rules that a table alone can keep."""

from typing import Any

import pytest

from quadriga.base.times import HOUR, MINUTE, SECOND
from quadriga.fsm import (
    ALLOCATION,
    APPLICATION,
    NODE,
    RESOURCE_MANAGER,
    Lifecycle,
    Unbounded,
    Within,
    reachable,
)
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.fsm.lifecycles.effects import (
    CloseNode,
    DropState,
    EmptyNode,
    Fire,
    Forget,
    LeaveQueue,
    OpenNode,
    ReleaseAllocations,
    ReleaseAsks,
    ReleasePlaceholders,
    RequestRelease,
    StartedRunning,
    StartTimer,
    StoppedRunning,
    Update,
)


def of_kind(caused: tuple[Any, ...], kind: type) -> list[Any]:
    return [effect for effect in caused if isinstance(effect, kind)]


# -- gangs and applications --------------------------------------------------------------------


def fired(born: Any, state: str, trigger: str, /, **facts: Any) -> tuple[Any, tuple[Any, ...]]:
    info = {name: facts.pop(name) for name in ("reason", "timer") if name in facts}
    it = born(state, **facts)
    return it, APPLICATION.fire(it, trigger, **info)


def test_g20_g21_the_first_ask_accepts_and_an_accepted_one_leaves_when_told(born: Any) -> None:
    it, caused = fired(born, "New", "ask")
    assert (it.state, caused) == ("Accepted", (Update("Accepted", "ask"),))
    # placeholder allocations fire nothing, further asks change nothing
    assert not any(r.target for r in APPLICATION.rows_from("Accepted", "ask"))
    triggers = ("ask", "run", "wait", "kill", "placeholder_timeout")
    assert APPLICATION.triggers("Accepted") == triggers


def test_g41_g43_g54_x26_waiting_times_out_into_completed_after_its_placeholders(born: Any) -> None:
    assert APPLICATION.lasts["Waiting"] == Within(30 * SECOND, then="complete")
    it, caused = fired(born, "Waiting", "complete")
    assert (it.state, caused) == ("Completed", (LeaveQueue(), Update("Completed", "complete")))
    it, released = fired(born, "Waiting", "complete", has_placeholders=True)
    assert it.state == "Waiting"
    assert [type(effect) for effect in released] == [ReleasePlaceholders]
    it.has_placeholders = False
    APPLICATION.fire(it, "complete")
    assert it.state == "Completed"


def test_g40_g42_waiting_follows_every_served_state_and_ends_by_a_new_ask(born: Any) -> None:
    it, caused = fired(born, "Waiting", "ask", started=True, run_limit=5)
    assert (it.state, caused) == ("Running", (StartedRunning(), Update("Running", "ask")))
    assert {r.source for r in APPLICATION.rows if r.target == "Waiting"} == application_fsm.SERVED


def test_g46_a_kill_tells_of_asks_then_allocations_then_the_application(born: Any) -> None:
    reason = "ResourceReservationTimeout"
    _, caused = fired(born, "Accepted", "kill", has_placeholders=True, reason=reason)
    assert [type(effect) for effect in caused] == [ReleaseAsks, ReleaseAllocations, Update, Fire]
    assert caused[0].placeholders_only is False
    assert caused[2] == Update("Killing", reason)


@pytest.mark.parametrize("left", ["has_placeholders", "has_allocations"])
def test_g48_g50_killed_depends_on_removals_and_leaves_the_queue(born: Any, left: str) -> None:
    it, caused = fired(born, "Killing", "killed", **{left: True})
    assert (it.state, caused) == ("Killing", ())
    setattr(it, left, False)
    assert LeaveQueue() in APPLICATION.fire(it, "killed")
    assert it.state == "Killed"


def test_g55_v8_an_ended_application_is_forgotten_and_never_comes_back(born: Any) -> None:
    for state in ("Completed", "Killed", "Rejected"):
        assert APPLICATION.lasts[state] == Within(72 * HOUR, then="expire")
        assert fired(born, state, "expire")[1] == (Forget(), Update("Expired", "expire"))
        assert reachable(APPLICATION, state) == (state, "Expired")
    for state in application_fsm.ENDED:
        assert set(reachable(APPLICATION, state)) <= application_fsm.ENDED


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


def test_x15_starting_only_in_stateaware_queues_and_until_a_second_member_runs(born: Any) -> None:
    aware = born("Accepted", starts_aware=True, has_allocations=True)
    other = born("Accepted", has_allocations=True)
    APPLICATION.fire(aware, "run")
    APPLICATION.fire(other, "run")
    assert (aware.state, other.state) == ("Starting", "Running")
    into = [r for r in APPLICATION.rows if r.target == "Starting"]
    assert [(r.source, r.guard) for r in into] == [
        ("Accepted", application_fsm.in_stateaware_queue)
    ]
    it = born("Starting", has_allocations=True)
    assert APPLICATION.fire(it, "run", first_replacement=True) == ()
    assert it.state == "Starting"
    APPLICATION.fire(it, "run")
    assert it.state == "Running"
    assert APPLICATION.lasts["Starting"] == Within(5 * MINUTE, then="run")
    it, caused = fired(born, "Starting", "run", gang_complete=True)
    assert (it.state, caused) == ("Starting", ())
    APPLICATION.fire(it, "run", timer=True)
    assert it.state == "Running"


def test_x17_the_run_limit_counts_from_the_first_start_only(born: Any) -> None:
    facts = {"starts_aware": True, "has_allocations": True}
    it, caused = fired(born, "Accepted", "run", run_limit=9, **facts)
    assert StartTimer(application_fsm.RUN_LIMIT, 9) in caused
    it.started = True
    assert not of_kind(APPLICATION.fire(it, "run"), StartTimer)
    it.has_allocations = False
    APPLICATION.fire(it, "wait")
    assert not of_kind(APPLICATION.fire(it, "ask"), StartTimer)
    # without a limit there is no timer
    it, caused = fired(born, "Accepted", "run", has_allocations=True)
    assert it.state == "Running" and not of_kind(caused, StartTimer)


def test_x29_s3_a_soft_timeout_takes_only_the_gangs_and_a_queue_limits_the_wait(born: Any) -> None:
    caused = APPLICATION.fire(born("Accepted"), "placeholder_timeout")
    assert [effect.placeholders_only for effect in of_kind(caused, ReleaseAsks)] == [True]
    assert of_kind(caused, ReleasePlaceholders)
    assert not of_kind(caused, ReleaseAllocations)
    caused = APPLICATION.fire(born("New", gang_wait_limit=9), "ask")
    assert of_kind(caused, StartTimer) == [StartTimer(application_fsm.GANG_WAIT, 9)]
    assert not of_kind(APPLICATION.fire(born("New"), "ask"), StartTimer)


def test_x34_new_and_rejected_are_never_sent(lifecycle: Lifecycle, born: Any, steer: Any) -> None:
    for row in lifecycle.rows:
        it = born(row.source)
        for update in of_kind(lifecycle.fire(it, row.trigger, **steer(it, row)), Update):
            assert update.state == it.state, row
            assert update.state not in {"New", "Rejected"}, row


def test_x34_s4_the_message_is_the_reason_and_whoever_lives_can_be_killed(born: Any) -> None:
    assert APPLICATION.fire(born("Running"), "wait")[-1] == Update("Waiting", "wait")
    told = APPLICATION.fire(born("Running"), "wait", reason="idle")
    assert told[-1] == Update("Waiting", "idle")
    living = set(APPLICATION.states) - application_fsm.ENDED
    assert all(APPLICATION.allows(state, "kill") for state in living)


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


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("state", ["Starting", "Running", "Waiting"])
def test_x38_x47_unclaimed_placeholders_are_given_back(born: Any, state: str, hard: bool) -> None:
    it = born(state, hard=hard, has_placeholders=True)
    (released,) = APPLICATION.fire(it, "placeholder_timeout")
    assert isinstance(released, ReleasePlaceholders)
    assert not released.completes
    assert it.state == state


def test_v5_running_is_counted_up_once_and_down_once(born: Any, steer: Any) -> None:
    for row in APPLICATION.rows:
        it = born(row.source)
        caused = APPLICATION.fire(it, row.trigger, **steer(it, row))
        before, after = row.source in application_fsm.COUNTED, it.state in application_fsm.COUNTED
        assert len(of_kind(caused, StartedRunning)) == (after and not before), row
        assert len(of_kind(caused, StoppedRunning)) == (before and not after), row


# -- allocations -----------------------------------------------------------------------------------


def test_r5_s4_a_release_in_flight_is_sent_again_only_in_time(born: Any) -> None:
    it = born("Allocated")
    assert ALLOCATION.fire(it, "release") == (RequestRelease(),)
    assert ALLOCATION.fire(it, "release") == ()
    assert it.state == "Releasing"
    limit = ALLOCATION.lasts["Releasing"]
    assert limit == Within(MINUTE, then="release", backoff_to=10 * MINUTE)
    it = born("Releasing")
    assert ALLOCATION.fire(it, "release", timer=True) == (RequestRelease(),)
    assert it.state == "Releasing"


def test_x17_x18_x28_a_planned_allocation_starts_its_timer_or_is_taken_back(born: Any) -> None:
    assert ALLOCATION.fire(born("Planned", run_limit=9), "allocate") == (
        StartTimer("run_limit", 9),
    )
    assert ALLOCATION.fire(born("Planned"), "allocate") == ()
    assert ALLOCATION.initial == "Planned"
    assert ALLOCATION.triggers("Planned") == ("allocate", "discard")
    it = born("Planned")
    ALLOCATION.fire(it, "discard")
    assert it.state == "Discarded"


# -- nodes -------------------------------------------------------------------------------------------


def test_i29_i32_node_states_draining_keeps_what_runs(born: Any) -> None:
    it = born("New")
    assert NODE.fire(it, "accept") == (OpenNode(),)
    assert NODE.fire(it, "drain") == (CloseNode(),)
    assert it.state == "Draining"
    assert NODE.fire(it, "schedule") == (OpenNode(),)
    assert it.state == "Schedulable"
    # a node may be created draining
    it = born("New")
    assert NODE.fire(it, "accept", draining=True) == (CloseNode(),)
    assert it.state == "Draining"
    NODE.fire(it, "decommission")
    assert it.state == "Removed"
    assert NODE.fire(born("Schedulable"), "drain") == (CloseNode(),)
    assert NODE.fire(born("Schedulable"), "decommission") == (CloseNode(), EmptyNode())


# -- resource managers and queues ----------------------------------------------------------------------


def test_i6_i7_registering_a_manager_again_and_stopping_drop_what_was_known(born: Any) -> None:
    it = born("Init")
    ways = "register Running disconnect Paused reconnect Running disconnect Paused timeout Stopped"
    words = f"{ways} register Running shutdown Stopped".split()
    for trigger, state in zip(words[::2], words[1::2], strict=True):
        RESOURCE_MANAGER.fire(it, trigger)
        assert it.state == state
    assert RESOURCE_MANAGER.lasts["Paused"] == Within(300 * SECOND, then="timeout")
    for row in RESOURCE_MANAGER.rows:
        if row.trigger == "register" or row.target == "Stopped":
            it = born(row.source)
            dropped = RESOURCE_MANAGER.fire(it, row.trigger)
            assert it.state == ("Running" if row.trigger == "register" else "Stopped")
            # in Init nothing is known yet, in Stopped nothing any more
            assert dropped == ((DropState(),) if row.source in {"Running", "Paused"} else ())
    assert all(RESOURCE_MANAGER.allows(state, "register") for state in RESOURCE_MANAGER.states)


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
