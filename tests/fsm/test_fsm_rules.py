"""The rules that a table alone can keep."""

from typing import Any

import pytest

from quadriga.fsm import (
    ALLOCATION,
    APPLICATION,
    ASK,
    NODE,
    QUEUE,
    RESOURCE_MANAGER,
    InvalidTransition,
    Lifecycle,
    Unbounded,
    Within,
    path_to,
    reachable,
)
from quadriga.fsm import application as application_fsm
from quadriga.fsm.allocation import PREEMPTION, REPLACEMENT, TIMEOUT
from quadriga.fsm.effects import (
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
from quadriga.fsm.table import HOUR, MINUTE, SECOND


def of_kind(caused: tuple[Any, ...], kind: type) -> list[Any]:
    return [effect for effect in caused if isinstance(effect, kind)]


# -- gangs and applications --------------------------------------------------------------------


def test_g20_the_first_ask_accepts_the_application(born: Any) -> None:
    it = born("New")
    assert APPLICATION.fire(it, "ask") == (Update("Accepted", "ask"),)
    assert it.state == "Accepted"


def test_g21_an_accepted_application_leaves_only_when_told_to() -> None:
    """Placeholder allocations fire nothing; further asks change nothing."""
    assert not any(r.target for r in APPLICATION.rows_from("Accepted", "ask"))
    assert APPLICATION.triggers("Accepted") == (
        "ask",
        "run",
        "wait",
        "kill",
        "placeholder_timeout",
    )


def test_g40_waiting_is_entered_from_every_state_that_was_served() -> None:
    assert {r.source for r in APPLICATION.rows if r.target == "Waiting"} == application_fsm.SERVED


def test_g41_waiting_times_out_into_completed(born: Any) -> None:
    assert APPLICATION.lasts["Waiting"] == Within(30 * SECOND, then="complete")
    it = born("Waiting")
    assert APPLICATION.fire(it, "complete") == (LeaveQueue(), Update("Completed", "complete"))
    assert it.state == "Completed"


def test_g42_a_new_ask_calls_a_waiting_application_back(born: Any) -> None:
    it = born("Waiting", started=True, run_limit=5)
    assert APPLICATION.fire(it, "ask") == (StartedRunning(), Update("Running", "ask"))
    assert it.state == "Running"


def test_g43_completion_waits_for_the_last_placeholder(born: Any) -> None:
    it = born("Waiting", has_placeholders=True)
    released = APPLICATION.fire(it, "complete")
    assert it.state == "Waiting"
    assert [type(effect) for effect in released] == [ReleasePlaceholders]
    it.has_placeholders = False
    APPLICATION.fire(it, "complete")
    assert it.state == "Completed"


def test_g46_a_kill_tells_the_manager_of_asks_then_allocations_then_the_application(
    born: Any,
) -> None:
    it = born("Accepted", has_placeholders=True)
    caused = APPLICATION.fire(it, "kill", reason="ResourceReservationTimeout")
    assert [type(effect) for effect in caused] == [ReleaseAsks, ReleaseAllocations, Update, Fire]
    assert of_kind(caused, ReleaseAsks)[0].placeholders_only is False
    assert of_kind(caused, Update) == [Update("Killing", "ResourceReservationTimeout")]


@pytest.mark.parametrize("left", ["has_placeholders", "has_allocations"])
def test_g48_killed_depends_on_removals_alone(born: Any, left: str) -> None:
    it = born("Killing", **{left: True})
    assert APPLICATION.fire(it, "killed") == ()
    assert it.state == "Killing"
    setattr(it, left, False)
    APPLICATION.fire(it, "killed")
    assert it.state == "Killed"


def test_g50_entering_killed_leaves_the_queue(born: Any) -> None:
    assert LeaveQueue() in APPLICATION.fire(born("Killing"), "killed")


def test_g54_a_completed_application_leaves_the_queue(born: Any) -> None:
    assert LeaveQueue() in APPLICATION.fire(born("Waiting"), "complete")


def test_g55_an_ended_application_is_forgotten_in_the_end(born: Any) -> None:
    for state in ("Completed", "Killed", "Rejected"):
        assert APPLICATION.lasts[state] == Within(72 * HOUR, then="expire")
        it = born(state)
        assert APPLICATION.fire(it, "expire") == (Forget(), Update("Expired", "expire"))
        assert reachable(APPLICATION, state) == (state, "Expired")


def test_i21_a_soft_timeout_resumes_and_a_hard_one_kills(born: Any) -> None:
    soft, hard = born("Accepted"), born("Accepted", hard=True)
    APPLICATION.fire(soft, "placeholder_timeout")
    APPLICATION.fire(hard, "placeholder_timeout")
    assert (soft.state, hard.state) == ("Resuming", "Killing")
    assert "Accepted" in reachable(APPLICATION, "Resuming")
    assert "Accepted" not in reachable(APPLICATION, "Killing")


def test_x2_hard_timeout_is_killing_then_killed(born: Any) -> None:
    it = born("Accepted", has_placeholders=True, hard=True)
    assert APPLICATION.fire(it, "placeholder_timeout")[-1] == Fire("killed")
    APPLICATION.fire(it, "killed")
    assert it.state == "Killing"
    it.has_placeholders = False
    APPLICATION.fire(it, "killed")
    assert it.state == "Killed"
    assert reachable(APPLICATION, "Killing") == ("Killing", "Killed", "Expired")


def test_x2_soft_timeout_is_resuming_then_accepted(born: Any) -> None:
    it = born("Accepted", has_placeholders=True)
    assert APPLICATION.fire(it, "placeholder_timeout")[-1] == Fire("resumed")
    assert APPLICATION.fire(it, "resumed") == ()
    assert it.state == "Resuming"
    it.has_placeholders = False
    assert APPLICATION.fire(it, "resumed") == (Update("Accepted", "resumed"),)
    assert it.state == "Accepted"


def test_x15_starting_only_in_stateaware_queues(born: Any) -> None:
    aware = born("Accepted", starts_aware=True, has_allocations=True)
    other = born("Accepted", has_allocations=True)
    APPLICATION.fire(aware, "run")
    APPLICATION.fire(other, "run")
    assert (aware.state, other.state) == ("Starting", "Running")
    into = [r for r in APPLICATION.rows if r.target == "Starting"]
    assert [(r.source, r.guard) for r in into] == [
        ("Accepted", application_fsm.in_stateaware_queue)
    ]


def test_x15_a_gang_is_starting_until_a_second_member_runs(born: Any) -> None:
    it = born("Starting", has_allocations=True)
    assert APPLICATION.fire(it, "run", first_replacement=True) == ()
    assert it.state == "Starting"
    APPLICATION.fire(it, "run")
    assert it.state == "Running"
    assert APPLICATION.lasts["Starting"] == Within(5 * MINUTE, then="run")


def test_x17_the_run_limit_counts_from_the_first_start_only(born: Any) -> None:
    it = born("Accepted", run_limit=9, starts_aware=True, has_allocations=True)
    assert StartTimer(application_fsm.RUN_LIMIT, 9) in APPLICATION.fire(it, "run")
    it.started = True
    assert not of_kind(APPLICATION.fire(it, "run"), StartTimer)
    it.has_allocations = False
    APPLICATION.fire(it, "wait")
    assert not of_kind(APPLICATION.fire(it, "ask"), StartTimer)


def test_x17_no_run_limit_starts_no_timer(born: Any) -> None:
    it = born("Accepted", has_allocations=True)
    assert not of_kind(APPLICATION.fire(it, "run"), StartTimer)
    assert it.state == "Running"


def test_x26_waiting_gives_leftover_placeholders_back_and_stays(born: Any) -> None:
    it = born("Waiting", has_placeholders=True)
    assert of_kind(APPLICATION.fire(it, "complete"), ReleasePlaceholders)
    assert it.state == "Waiting"


def test_x29_a_soft_timeout_takes_back_only_what_is_the_gangs(born: Any) -> None:
    caused = APPLICATION.fire(born("Accepted"), "placeholder_timeout")
    assert [effect.placeholders_only for effect in of_kind(caused, ReleaseAsks)] == [True]
    assert of_kind(caused, ReleasePlaceholders)
    assert not of_kind(caused, ReleaseAllocations)


def test_x34_new_and_rejected_are_never_sent(edge: Any, born: Any, steer: Any) -> None:
    lifecycle, row = edge
    it = born(row.source)
    for update in of_kind(lifecycle.fire(it, row.trigger, **steer(it, row)), Update):
        assert update.state == it.state
        assert update.state not in {"New", "Rejected"}


def test_x34_the_message_is_the_reason_else_the_trigger(born: Any) -> None:
    assert APPLICATION.fire(born("Running"), "wait")[-1] == Update("Waiting", "wait")
    told = APPLICATION.fire(born("Running"), "wait", reason="idle")
    assert told[-1] == Update("Waiting", "idle")


@pytest.mark.parametrize("left", ["has_asks", "has_allocations"])
@pytest.mark.parametrize("state", sorted(application_fsm.SERVED))
def test_x47_wait_does_nothing_while_an_ask_or_an_allocation_is_left(
    born: Any, state: str, left: str
) -> None:
    it = born(state, **{left: True})
    assert APPLICATION.fire(it, "wait") == ()
    assert it.state == state
    setattr(it, left, False)
    APPLICATION.fire(it, "wait")
    assert it.state == "Waiting"


@pytest.mark.parametrize("needed", ["has_allocations", "gang_complete"])
def test_x47_run_does_nothing_before_there_is_what_it_needs(born: Any, needed: str) -> None:
    it = born("Accepted")
    assert APPLICATION.fire(it, "run") == ()
    assert it.state == "Accepted"
    setattr(it, needed, True)
    APPLICATION.fire(it, "run")
    assert it.state == "Running"


def test_x47_starting_lasts_until_a_member_runs_or_its_time_is_over(born: Any) -> None:
    it = born("Starting", gang_complete=True)
    assert APPLICATION.fire(it, "run") == ()
    assert it.state == "Starting"
    APPLICATION.fire(it, "run", timer=True)
    assert it.state == "Running"


def test_x47_nothing_but_an_ask_or_an_allocation_calls_back_from_waiting(born: Any) -> None:
    it = born("Waiting", gang_complete=True)
    assert APPLICATION.fire(it, "run") == ()
    assert it.state == "Waiting"
    it.has_allocations = True
    APPLICATION.fire(it, "run")
    assert it.state == "Running"


@pytest.mark.parametrize("hard", [False, True])
def test_x47_the_style_decides_what_a_placeholder_timeout_does(born: Any, hard: bool) -> None:
    """The caller has one trigger; only a gang that lacks placeholders can time out."""
    it = born("Accepted", hard=hard, gathers=False)
    assert APPLICATION.fire(it, "placeholder_timeout") == ()
    assert it.state == "Accepted"
    it.gathers = True
    caused = APPLICATION.fire(it, "placeholder_timeout", reason="ResourceReservationTimeout")
    assert it.state == ("Killing" if hard else "Resuming")
    assert of_kind(caused, Update) == [Update(it.state, "ResourceReservationTimeout")]
    assert APPLICATION.fire(it, "placeholder_timeout") == ()


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("state", ["Starting", "Running", "Waiting"])
def test_x38_x47_an_application_that_runs_gives_unclaimed_placeholders_back(
    born: Any, state: str, hard: bool
) -> None:
    it = born(state, hard=hard, has_placeholders=True)
    (released,) = APPLICATION.fire(it, "placeholder_timeout")
    assert isinstance(released, ReleasePlaceholders)
    assert not released.completes
    assert it.state == state


def test_v5_running_is_counted_up_once_and_down_once(edge: Any, born: Any, steer: Any) -> None:
    lifecycle, row = edge
    if lifecycle is not APPLICATION:
        return
    it = born(row.source)
    caused = lifecycle.fire(it, row.trigger, **steer(it, row))
    before, after = row.source in application_fsm.COUNTED, it.state in application_fsm.COUNTED
    assert len(of_kind(caused, StartedRunning)) == (after and not before)
    assert len(of_kind(caused, StoppedRunning)) == (before and not after)


def test_v8_nothing_comes_back_from_the_end() -> None:
    for state in application_fsm.ENDED:
        assert set(reachable(APPLICATION, state)) <= application_fsm.ENDED


def test_s3_a_queue_may_limit_how_long_a_gang_waits(born: Any) -> None:
    caused = APPLICATION.fire(born("New", gang_wait_limit=9), "ask")
    assert of_kind(caused, StartTimer) == [StartTimer(application_fsm.GANG_WAIT, 9)]
    assert not of_kind(APPLICATION.fire(born("New"), "ask"), StartTimer)


def test_s4_every_living_application_can_be_killed() -> None:
    living = set(APPLICATION.states) - application_fsm.ENDED
    assert all(APPLICATION.allows(state, "kill") for state in living)


# -- asks ----------------------------------------------------------------------------------------


def test_i14_ask_states() -> None:
    assert [r.trigger for r in path_to(ASK, "Allocated")] == ["submit", "allocate"]
    assert [r.trigger for r in path_to(ASK, "Rejected")] == ["reject"]
    assert {r.source for r in ASK.rows if r.target == "Rejected"} == {
        "Initial",
        "Pending",
        "Parked",
    }
    assert set(ASK.final) == {"Allocated", "Rejected"}


def test_i17_the_same_key_updates_an_ask_until_it_is_allocated(born: Any) -> None:
    for state in ("Pending", "Parked"):
        it = born(state)
        assert ASK.fire(it, "update") == ()
        assert it.state == state
    with pytest.raises(InvalidTransition):
        ASK.fire(born("Allocated"), "update")


def test_g29_a_parked_ask_is_not_parked_again(born: Any) -> None:
    it = born("Pending")
    ASK.fire(it, "park")
    with pytest.raises(InvalidTransition):
        ASK.fire(it, "park")
    ASK.fire(it, "unpark")
    assert it.state == "Pending"


def test_x13_an_ask_is_pending_while_repeats_remain(born: Any) -> None:
    it = born("Pending", pending=2)
    ASK.fire(it, "allocate")
    assert it.state == "Pending"
    ASK.fire(it, "park")
    ASK.fire(it, "allocate")
    assert it.state == "Pending"
    it.pending = 1
    ASK.fire(it, "allocate")
    assert it.state == "Allocated"


# -- allocations -----------------------------------------------------------------------------------


def test_i15_allocation_states(born: Any) -> None:
    stopped = born("Allocated")
    ALLOCATION.fire(stopped, "complete")
    assert stopped.state == "Completed"
    for reason, end in ((TIMEOUT, "Expired"), (PREEMPTION, "Preempted"), (REPLACEMENT, "Replaced")):
        it = born("Allocated", reason=reason)
        ALLOCATION.fire(it, "release")
        ALLOCATION.fire(it, "confirm")
        assert it.state == end


def test_r5_a_release_in_flight_is_not_sent_a_second_time(born: Any) -> None:
    it = born("Allocated")
    assert ALLOCATION.fire(it, "release") == (RequestRelease(),)
    assert ALLOCATION.fire(it, "release") == ()
    assert it.state == "Releasing"


def test_r4_a_confirmation_is_taken_once(born: Any) -> None:
    it = born("Releasing", reason=TIMEOUT)
    ALLOCATION.fire(it, "confirm")
    with pytest.raises(InvalidTransition):
        ALLOCATION.fire(it, "confirm")
    with pytest.raises(InvalidTransition):  # and only of a release that was asked for
        ALLOCATION.fire(born("Allocated"), "confirm")


def test_s4_an_unconfirmed_release_is_sent_again(born: Any) -> None:
    limit = ALLOCATION.lasts["Releasing"]
    assert limit == Within(MINUTE, then="release", backoff_to=10 * MINUTE)
    it = born("Releasing")
    assert ALLOCATION.fire(it, "release", timer=True) == (RequestRelease(),)
    assert it.state == "Releasing"


def test_x17_an_allocation_with_a_run_limit_starts_its_timer(born: Any) -> None:
    assert ALLOCATION.fire(born("Planned", run_limit=9), "allocate") == (
        StartTimer("run_limit", 9),
    )
    assert ALLOCATION.fire(born("Planned"), "allocate") == ()


def test_x18_a_planned_allocation_waits_and_x28_can_be_taken_back(born: Any) -> None:
    assert ALLOCATION.initial == "Planned"
    assert ALLOCATION.triggers("Planned") == ("allocate", "discard")
    it = born("Planned")
    ALLOCATION.fire(it, "discard")
    assert it.state == "Discarded"


def test_x32_the_manager_may_stop_what_is_being_released(born: Any) -> None:
    it = born("Releasing", reason=PREEMPTION)
    ALLOCATION.fire(it, "complete")
    assert it.state == "Completed"


# -- nodes -------------------------------------------------------------------------------------------


def test_i29_node_states(born: Any) -> None:
    it = born("New")
    assert NODE.fire(it, "accept") == (OpenNode(),)
    assert NODE.fire(it, "drain") == (CloseNode(),)
    assert it.state == "Draining"
    assert NODE.fire(it, "schedule") == (OpenNode(),)
    assert it.state == "Schedulable"
    NODE.fire(it, "drain")
    NODE.fire(it, "decommission")
    assert it.state == "Removed"


def test_i31_scheduling_a_node_that_does_not_drain_is_an_error(born: Any) -> None:
    with pytest.raises(InvalidTransition):
        NODE.fire(born("Schedulable"), "schedule")


def test_i32_draining_keeps_what_runs_and_decommissioning_does_not(born: Any) -> None:
    assert NODE.fire(born("Schedulable"), "drain") == (CloseNode(),)
    assert NODE.fire(born("Schedulable"), "decommission") == (CloseNode(), EmptyNode())


def test_x20_an_action_on_a_rejected_node_is_an_error(born: Any) -> None:
    for trigger in NODE.triggers():
        with pytest.raises(InvalidTransition):
            NODE.fire(born("Rejected"), trigger)


def test_a_node_may_be_created_draining(born: Any) -> None:
    it = born("New")
    assert NODE.fire(it, "accept", draining=True) == (CloseNode(),)
    assert it.state == "Draining"


# -- resource managers and queues ----------------------------------------------------------------------


def test_i6_resource_manager_states(born: Any) -> None:
    it = born("Init")
    for trigger, state in (
        ("register", "Running"),
        ("disconnect", "Paused"),
        ("reconnect", "Running"),
        ("disconnect", "Paused"),
        ("timeout", "Stopped"),
        ("register", "Running"),
        ("shutdown", "Stopped"),
    ):
        RESOURCE_MANAGER.fire(it, trigger)
        assert it.state == state
    assert RESOURCE_MANAGER.lasts["Paused"] == Within(300 * SECOND, then="timeout")


def test_i7_registering_again_drops_what_was_known(born: Any) -> None:
    for state in RESOURCE_MANAGER.states:
        it = born(state)
        dropped = RESOURCE_MANAGER.fire(it, "register")
        assert it.state == "Running"
        # in Init nothing is known yet, in Stopped nothing any more
        assert dropped == ((DropState(),) if state in {"Running", "Paused"} else ())


def test_i7_whatever_stops_a_manager_drops_its_state(born: Any) -> None:
    for row in RESOURCE_MANAGER.rows:
        if row.target == "Stopped":
            assert RESOURCE_MANAGER.fire(born(row.source), row.trigger) == (DropState(),)


def test_a_queue_configured_again_is_restored(born: Any) -> None:
    it = born("Active")
    QUEUE.fire(it, "remove")
    QUEUE.fire(it, "restore")
    assert it.state == "Active"


def test_an_active_queue_is_never_removed_at_once(born: Any) -> None:
    with pytest.raises(InvalidTransition):
        QUEUE.fire(born("Active"), "removed")
    assert QUEUE.fire(born("Draining"), "removed") == (Forget(),)
    assert QUEUE.fire(born("Stopped"), "removed") == (Forget(),)


# -- all tables ------------------------------------------------------------------------------------------


def test_v7_every_state_has_a_limit_or_a_named_exit(lifecycle: Lifecycle) -> None:
    for state in lifecycle.states:
        if state in lifecycle.final:
            assert state not in lifecycle.lasts
            continue
        limit = lifecycle.lasts[state]
        if isinstance(limit, Unbounded):
            exits = lifecycle.rows_from(state, limit.ends)
            assert any(row.target not in (None, state) for row in exits)
        else:
            assert limit.ns > 0
            assert limit.then is None or lifecycle.allows(state, limit.then)


def test_v7_only_states_with_a_limit_are_timed(lifecycle: Lifecycle) -> None:
    assert set(lifecycle.timed) == {s for s, x in lifecycle.lasts.items() if isinstance(x, Within)}


def test_v7_no_state_is_a_dead_end(lifecycle: Lifecycle) -> None:
    """From everywhere a final state can be reached, or, where there is none, every other state."""
    ends = set(lifecycle.final) or set(lifecycle.states) - {lifecycle.initial}
    for state in lifecycle.states:
        ahead = set(reachable(lifecycle, state))
        assert ahead & ends if lifecycle.final else ahead >= ends


def test_what_changes_nothing_says_why(lifecycle: Lifecycle) -> None:
    for row in lifecycle.rows:
        if row.target is None and not row.emit:
            assert row.why, row
