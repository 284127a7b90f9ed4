"""The runner can bite: a changed reference differs, and a rule explains what it is about and no more.

The reference is what our own core says, changed by hand into what the Go core is known to say there
(5.15), or into what nobody says.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.comparison import Verdict, compare, judge
from tests.oracle.player import START, Player
from tests.oracle.report import lines_of
from tests.oracle.scenario import V15, V18, Answer, Callback, Scenario, Versions, scenarios
from tests.oracle.settings import ADMISSION, HOLD, Setting

FOLDER = Path(__file__).parent / "scenarios"


@dataclass(frozen=True)
class Told(Scenario):
    """A scenario whose references are given here."""

    told: dict[str, list[Answer]] = field(default_factory=dict)

    def answers(self, version: str) -> list[Answer] | None:
        return self.told.get(version)


def played(name: str, *settings: Setting) -> tuple[Scenario, list[Answer]]:
    """One of the scenarios of this folder and what ours says to it."""
    (scenario,) = scenarios([FOLDER / name])
    player = Player(scenario.steps, settings)
    return scenario, [copy.deepcopy(player.play(step)) for step in scenario.steps]


def told(
    scenario: Scenario,
    answers: list[Answer],
    newer: list[Answer] | None = None,
    versions: Versions | None = None,
) -> Told:
    both = {V15: answers} | ({V18: newer} if newer is not None else {})
    versions = versions or Versions()
    return Told(scenario.name, scenario.folder, scenario.steps, versions=versions, told=both)


# -- what can be done to an answer -----------------------------------------------------------------


def state(t: float, app_id: str, name: str) -> Callback:
    at = int(t * 1e9)
    update = {"applicationID": app_id, "state": name, "stateTransitionTimestamp": str(START + at)}
    return at, "ApplicationResponse", {"updated": [update]}


def new(t: float, app_id: str, key: str, node_id: str, *, group: str = "", **q: int) -> Callback:
    quantities = {name: {"value": str(value)} for name, value in q.items()}
    message = {
        "applicationID": app_id,
        "allocationKey": key,
        "nodeID": node_id,
        "taskGroupName": group,
        "resourcePerAlloc": {"resources": quantities},
    }
    return int(t * 1e9), "AllocationResponse", {"new": [message]}


def released(t: float, app_id: str, key: str, kind: str) -> Callback:
    release = {
        "partitionName": "[rm:123]default",
        "applicationID": app_id,
        "allocationKey": key,
        "terminationType": kind,
    }
    return int(t * 1e9), "AllocationResponse", {"released": [release]}


def drop(answer: Answer, **wanted: str) -> None:
    """Take the items out of the messages that have all these fields, and the messages that are
    empty then."""
    assert wanted
    before = len(answer.callbacks)
    for _, _, message in answer.callbacks:
        for part, items in list(message.items()):
            if isinstance(items, list):
                message[part] = [i for i in items if any(i.get(k) != v for k, v in wanted.items())]
                if not message[part]:
                    del message[part]
    answer.callbacks = [each for each in answer.callbacks if each[2]]
    assert len(answer.callbacks) < before, "nothing to drop"


def retell(answer: Answer, kind: str, about: str, what: str, value: object) -> None:
    """Change one total of a dump."""
    assert answer.done is not None
    totals: dict[str, set[tuple[Any, ...]]] = answer.done["totals"]
    (part,) = [part for part, lines in totals.items() if any(li[0] == kind for li in lines)]
    old = [line for line in totals[part] if line[:3] == (kind, about, what)]
    assert len(old) == 1
    totals[part] = (totals[part] - set(old)) | {(kind, about, what, value)}


def forget(answer: Answer, about: str) -> None:
    """Leave an application out of a dump."""
    assert answer.done is not None
    totals = answer.done["totals"]
    totals["apps"] = {line for line in totals["apps"] if line[1] != about}


def step_of(scenario: Scenario, op: str, nth: int = 0) -> int:
    return [at for at, step in enumerate(scenario.steps) if step["op"] == op][nth]


# -- nothing is overlooked -------------------------------------------------------------------------

NAMES = sorted(file.stem for file in FOLDER.glob("*.json"))


@pytest.mark.parametrize("name", NAMES)
def test_ours_agrees_with_itself(name: str) -> None:
    scenario, answers = played(name)
    verdict = compare(told(scenario, answers))
    assert verdict.agrees
    assert not verdict.rules
    assert verdict.compared == len(scenario.steps)


#: in these nothing happens that a rule for single lines is about
PLAIN = (
    "creation_time",
    "gang_never_placed",
    "goes_on_by_itself",
    "node_removed_in_replacement",
    "other_timeouts",
    "placeholders_stopped",
    "predicates_deny",
    "preempts_for_the_guaranteed",
    "replacement_on_a_drained_node",
    "stateaware_disabled",
    "timeout_running_hard",
    "timeout_running_soft",
    "unready_node",
)


@pytest.mark.parametrize("name", PLAIN)
def test_every_message_counts(name: str) -> None:
    """Whichever is dropped or moved in time: it is a difference, and not before that step."""
    scenario, answers = played(name)
    for at, answer in enumerate(answers):
        for n, (_, kind, _) in enumerate(answer.callbacks):
            if kind in ("EventRecord", "UpdateContainerSchedulingStateRequest"):
                continue
            for change in (_dropped, _later):
                changed = copy.deepcopy(answers)
                change(changed[at].callbacks, n)
                verdict = judge(told(scenario, changed))
                assert verdict.difference is not None, (at, n, change)
                assert verdict.difference.at >= at


def _dropped(callbacks: list[Callback], n: int) -> None:
    del callbacks[n]


def _later(callbacks: list[Callback], n: int) -> None:
    t, kind, message = callbacks[n]
    callbacks[n] = (t + 1, kind, message)


def test_every_total_of_a_dump_counts() -> None:
    scenario, answers = played("timeout_running_soft")
    at = step_of(scenario, "dump")
    totals = answers[at].done["totals"]  # type: ignore[index]
    for part, lines in totals.items():
        for line in lines:
            if "timedout" in line:  # exact in v1.8.0 only
                continue
            changed = copy.deepcopy(answers)
            wrong = (*line[:-1], "something else")
            changed[at].done["totals"][part] = lines - {line} | {wrong}  # type: ignore[index]
            assert not compare(told(scenario, changed)).agrees, line


def test_the_order_of_decisions_counts() -> None:
    scenario, answers = played("all_allocations_released")
    at = step_of(scenario, "schedule")
    callbacks = answers[at].callbacks
    callbacks[-1], callbacks[-2] = callbacks[-2], callbacks[-1]
    verdict = compare(told(scenario, answers))
    assert verdict.difference is not None
    assert verdict.difference.at == at


def test_a_reference_that_ends_early_says_so() -> None:
    scenario, answers = played("timeout_running_soft")
    verdict = judge(told(scenario, answers[:-1]))
    assert verdict.agrees
    assert (verdict.ended, verdict.compared) == (len(answers) - 1, len(answers) - 1)
    verdict = judge(told(scenario, answers[: len(answers) // 2 - 1]))
    assert verdict.difference is None
    assert verdict.too_little
    assert not verdict.agrees


def test_a_step_that_nobody_knows_is_reported() -> None:
    for step in ({"op": "dance"}, {"op": "addNode", "node": "n"}, {"op": "_advance"}, {"no": "op"}):
        scenario = Scenario("odd", FOLDER, [{"op": "register", "config": ""}, step])
        verdict = judge(scenario)
        assert verdict.difference is not None
        assert verdict.difference.problem


# -- each rule explains its own --------------------------------------------------------------------


def explained(scenario: Told, rule: str) -> Verdict:
    verdict = judge(scenario)
    assert verdict.agrees, verdict.difference
    assert rule in verdict.rules, verdict.rules
    return verdict


def test_x9_real_asks_are_held() -> None:
    scenario, answers = played("too_few_placeholders", HOLD)
    assert compare(told(scenario, answers)).difference is not None
    assert explained(told(scenario, answers), "X9").compared == len(answers)


def test_x16_the_gang_waits_for_all_of_its_quota() -> None:
    scenario, answers = played("gang_larger_than_what_is_left", ADMISSION)
    assert compare(told(scenario, answers)).difference is not None
    assert explained(told(scenario, answers), "X16").compared == len(answers)


def test_x28_hard_an_allocation_outlives_its_application() -> None:
    scenario, answers = played("timeout_with_a_replacement_in_flight_hard", HOLD)
    timeout, confirm, dump = (step_of(scenario, op) for op in ("advance", "confirm", "dump"))
    answers[timeout].callbacks.append(released(10, "g", "ph-0", "TIMEOUT"))
    answers[confirm].callbacks.insert(
        0, new(11, "g", "real-0", "node-1", group="tg", memory=10, vcore=1000)
    )
    retell(answers[dump], "node", "node-1", "allocated", (("memory", 10), ("vcore", 1000)))
    verdict = explained(told(scenario, answers), "X28")
    assert verdict.compared == len(answers)
    retell(answers[dump], "node", "node-1", "allocated", (("memory", 20), ("vcore", 2000)))
    assert not judge(told(scenario, answers)).agrees


def test_x28_soft_the_state_does_not_follow() -> None:
    scenario, answers = played("timeout_with_a_replacement_in_flight_soft", HOLD)
    timeout, confirm, dump = (step_of(scenario, op) for op in ("advance", "confirm", "dump"))
    answers[timeout].callbacks.append(released(10, "g", "ph-0", "TIMEOUT"))
    answers[timeout].callbacks.append(released(10, "g", "real-0", "TIMEOUT"))
    drop(answers[confirm], state="Running")
    retell(answers[dump], "app", "g", "state", "Accepted")
    for path in ("root", "root.gang"):
        retell(answers[dump], "queue", path, "running", 0)
    assert explained(told(scenario, answers), "X28").compared == len(answers)


def test_x28_there_the_second_replacement_counts() -> None:
    scenario, answers = played("too_few_placeholders", HOLD)
    callbacks = answers[step_of(scenario, "confirm")].callbacks
    assert callbacks[0][2]["updated"][0]["state"] == "Running"
    callbacks[0], callbacks[1] = callbacks[1], callbacks[0]
    assert explained(told(scenario, answers), "X28").compared == len(answers)
    del callbacks[0]
    assert not judge(told(scenario, answers)).agrees


def test_x29_a_soft_timeout_takes_real_asks_too() -> None:
    scenario, answers = played("timeout_with_pending_real_asks_soft", HOLD)
    timeout = step_of(scenario, "advance")
    for key in ("real-1",):
        answers[timeout].callbacks.append(released(10, "g", key, "TIMEOUT"))
    verdict = compare(told(scenario, answers), V15, (HOLD,))
    assert verdict.rules["X29"], verdict.difference
    answers[timeout].callbacks.append(released(10, "g", "nobody", "TIMEOUT"))
    assert not judge(told(scenario, answers)).agrees


def test_x29_an_ask_of_no_group_is_taken_too() -> None:
    scenario, answers = played("timeout_with_a_foreign_ask")
    dump, serve = step_of(scenario, "dump"), step_of(scenario, "schedule", 2)
    answers[step_of(scenario, "advance")].callbacks.append(released(10, "g", "other", "TIMEOUT"))
    for kind, about in (("app", "g"), ("queue", "root"), ("queue", "root.gang")):
        retell(answers[dump], kind, about, "pending", ())
    answers[serve].callbacks.clear()
    verdict = explained(told(scenario, answers), "X29")
    assert verdict.stopped is not None
    assert verdict.stopped[:2] == (serve, "X29")
    retell(answers[dump], "app", "g", "pending", (("memory", 11), ("vcore", 1000)))
    assert not judge(told(scenario, answers)).agrees


def test_x28_x29_together() -> None:
    """One real ask is in flight, another waits, when the timer of a Soft gang fires."""
    scenario, answers = played("timeout_with_pending_real_asks_soft", HOLD)
    timeout, confirm = step_of(scenario, "advance"), step_of(scenario, "confirm")
    serve = step_of(scenario, "schedule", 2)
    for key in ("ph-0", "real-0", "real-1"):
        answers[timeout].callbacks.append(released(10, "g", key, "TIMEOUT"))
    drop(answers[confirm], state="Running")
    for nth in (0, 1):
        dump = answers[step_of(scenario, "dump", nth)]
        for kind, about in (("app", "g"), ("queue", "root"), ("queue", "root.gang")):
            retell(dump, kind, about, "pending", ())
    retell(dump, "app", "g", "state", "Accepted")
    for path in ("root", "root.gang"):
        retell(dump, "queue", path, "running", 0)
    answers[serve].callbacks.clear()
    verdict = explained(told(scenario, answers), "X28")
    assert verdict.stopped is not None
    assert verdict.stopped[:2] == (serve, "X29")


def test_g31_two_steps_for_the_last_placeholder() -> None:
    scenario, answers = played("gang_of_one")
    confirm = step_of(scenario, "confirm")
    answers[confirm].callbacks[0:0] = [state(0, "g", "Completing"), state(0, "g", "Running")]
    explained(told(scenario, answers), "G31")
    answers[confirm].callbacks.insert(0, state(0, "g", "Failing"))
    assert not judge(told(scenario, answers)).agrees


def test_x35_a_gang_that_was_not_announced() -> None:
    scenario, answers = played("gang_without_announcement")
    at = step_of(scenario, "schedule")
    drop(answers[at], state="Running")
    verdict = explained(told(scenario, answers), "X35")
    assert verdict.stopped is not None
    drop(answers[at], allocationKey="ph-1")
    assert not judge(told(scenario, answers)).agrees


def test_x36_a_member_without_placeholder() -> None:
    """It is served here while the replacements of its group are under way."""
    scenario, answers = played("more_members_than_placeholders")
    at = step_of(scenario, "schedule", 1)
    drop(answers[at], allocationKey="real-2")
    verdict = explained(told(scenario, answers), "X36")
    assert verdict.stopped is not None
    assert verdict.stopped[0] == at
    drop(answers[at], allocationKey="ph-1")  # before the step in which the histories part
    assert not judge(told(scenario, answers)).agrees


def test_x37_the_larger_real_ask_takes_over_one_placeholder() -> None:
    scenario, answers = played("real_larger_than_placeholder")
    at = step_of(scenario, "schedule", 1)
    answers[at].callbacks = [released(0, "g", key, "TIMEOUT") for key in ("ph-0", "ph-1")]
    verdict = explained(told(scenario, answers), "X37")
    assert verdict.stopped is not None
    assert verdict.stopped[0] == at
    answers[at].callbacks.insert(0, state(0, "g", "Completing"))
    assert not judge(told(scenario, answers)).agrees


def test_x39_a_draining_node_takes_no_member() -> None:
    scenario, answers = played("replacement_on_a_drained_node")
    at = step_of(scenario, "confirm")
    sizes = {"memory": 10, "vcore": 1000}
    drop(answers[at], allocationKey="real-0")
    answers[at].callbacks.append(new(0, "g", "real-0", "node-1", group="tg", **sizes))
    verdict = explained(told(scenario, answers), "X39")
    assert verdict.stopped is not None
    answers[at].callbacks.append(new(0, "g", "real-7", "node-2", group="tg", **sizes))
    assert not judge(told(scenario, answers)).agrees


def test_s2_the_group_that_shrank() -> None:
    scenario, answers = played("placeholder_ask_taken_back")
    at = step_of(scenario, "schedule", 2)
    drop(answers[at], allocationKey="real-2")
    verdict = explained(told(scenario, answers), "S2")
    assert verdict.stopped is not None


def test_s5_a_sum_that_is_stepped_over() -> None:
    scenario, answers = played("sum_steps_over")
    drop(answers[step_of(scenario, "schedule")], state="Running")
    dump = step_of(scenario, "dump")
    retell(answers[dump], "app", "g", "state", "Accepted")
    for path in ("root", "root.gang"):
        retell(answers[dump], "queue", path, "running", 0)
    # the second replacement makes it run there
    answers[step_of(scenario, "confirm")].callbacks.insert(1, state(0, "g", "Running"))
    assert explained(told(scenario, answers), "S5").compared == len(answers)


def test_g40_leftovers_do_not_keep_it_from_waiting() -> None:
    scenario, answers = played("real_ask_taken_back")
    at = step_of(scenario, "releaseAsk")
    drop(answers[at], state="Completing")
    verdict = explained(told(scenario, answers), "G40")
    assert verdict.stopped is not None
    assert verdict.stopped[0] == at


def test_i17_the_same_key_again() -> None:
    scenario, answers = played("same_key_again_pending")
    at = step_of(scenario, "schedule")
    answers[at].callbacks.append(new(0, "a", "k0", "node-1", memory=10, vcore=1000))
    verdict = explained(told(scenario, answers), "I17")
    assert verdict.stopped is not None
    assert verdict.stopped[0] == at
    for wrong in (
        new(0, "a", "k1", "node-1", memory=10, vcore=1000),
        released(0, "a", "k1", "TIMEOUT"),
        state(0, "b", "Running"),
    ):
        for where in (0, len(answers[at].callbacks)):
            changed = copy.deepcopy(answers)
            changed[at].callbacks.insert(where, wrong)
            assert not judge(told(scenario, changed)).agrees, wrong


def test_i17_totals_differ_by_what_was_asked_only() -> None:
    """There the second allocation of the key takes the place of the first in the books."""
    scenario, answers = played("same_key_again_allocated")
    at = step_of(scenario, "dump", 1)
    subjects = (("app", "a", "used"), ("queue", "root", "allocated"))
    subjects += (("queue", "root.gang", "allocated"), ("node", "node-1", "allocated"))
    for subject in subjects:
        retell(answers[at], *subject, (("memory", 10), ("vcore", 1000)))
    verdict = explained(told(scenario, answers), "I17")
    assert verdict.stopped is not None
    assert verdict.stopped[0] == at
    for subject in subjects:
        changed = copy.deepcopy(answers)
        retell(changed[at], *subject, (("memory", 11), ("vcore", 1000)))
        assert not judge(told(scenario, changed)).agrees


def test_v5_a_gang_that_ended_gives_its_place_back() -> None:
    for name in ("gang_ends_under_maxapplications", "gang_fails_under_maxapplications"):
        scenario, answers = played(name)
        at = step_of(scenario, "schedule", 1)
        drop(answers[at], allocationKey="k0")
        drop(answers[at], state="Running")
        verdict = explained(told(scenario, answers), "V5")
        assert verdict.stopped is not None


def test_v7_stuck_in_completing() -> None:
    scenario, answers = played("all_allocations_released")
    drop(answers[step_of(scenario, "advance")], state="Completed")
    dump = step_of(scenario, "dump")
    done = answers[dump].done
    assert done is not None
    done["totals"]["apps"] |= {("app", "a", "state", "Completing")}
    again = step_of(scenario, "addApp", 1)
    t = answers[again].callbacks[0][0]
    answers[again].callbacks = [
        (t, "ApplicationResponse", {"rejected": [{"applicationID": "a", "reason": "known"}]})
    ]
    verdict = explained(told(scenario, answers), "V7")
    assert verdict.stopped is not None
    assert verdict.stopped[0] == again


def test_i32_a_draining_node_takes_nobody() -> None:
    scenario, answers = played("reserved_node_drains")
    at = step_of(scenario, "schedule", 3)
    served = step_of(scenario, "schedule", 4)
    allocation = answers[served].callbacks[-1]
    answers[at].callbacks.append(allocation)
    verdict = explained(told(scenario, answers), "I32")
    assert verdict.stopped is not None
    assert verdict.stopped[0] == at
    allocation[2]["new"][0]["nodeID"] = "node-3"
    assert not judge(told(scenario, answers)).agrees


def test_5_8_which_of_several_reservations_comes_first() -> None:
    scenario, answers = played("two_reservations_of_one_application")
    at = step_of(scenario, "schedule", 4)
    (allocation,) = answers[at].callbacks[-1][2]["new"]
    assert (allocation["allocationKey"], allocation["nodeID"]) == ("a0", "node-1")
    allocation.update({"allocationKey": "a1", "nodeID": "node-2"})
    verdict = explained(told(scenario, answers), "5.8")
    assert verdict.stopped is not None
    assert verdict.stopped[0] == at
    allocation.update({"allocationKey": "b0"})
    assert not judge(told(scenario, answers)).agrees


def test_x33_a_draining_queue_takes_nobody() -> None:
    scenario, newer = played("draining_queue")
    answers = copy.deepcopy(newer)
    at = step_of(scenario, "addApp", 1)
    accepted = {"accepted": [{"applicationID": "b"}]}
    answers[at].callbacks = [(0, "ApplicationResponse", accepted)]
    assert not judge(told(scenario, answers)).agrees
    assert explained(told(scenario, answers, newer), "X33").version == V18


# -- when v1.8.0 is the reference --------------------------------------------------------------------


def test_5_1_v18_is_the_reference_only_where_a_rule_parts_the_versions() -> None:
    """Its agreement excuses no difference from v1.5.2 that no rule makes."""
    for name in NAMES:
        scenario, newer = played(name)
        answers = copy.deepcopy(newer)
        at = next(at for at, answer in enumerate(answers) if answer.callbacks)
        answers[at].callbacks.clear()
        assert not judge(told(scenario, answers, newer)).agrees, name
        same = Versions(agree=True)
        assert not judge(told(scenario, answers, newer, same)).agrees, name


def test_x33_nothing_before_the_parting_of_the_versions_is_excused() -> None:
    """The index names the step and the reason; the difference must be there, and for that reason."""
    scenario, newer = played("draining_queue")
    answers = copy.deepcopy(newer)
    at = step_of(scenario, "addApp", 1)
    answers[at].callbacks = [(0, "ApplicationResponse", {"accepted": [{"applicationID": "b"}]})]
    reason = "application sent to a draining queue"
    for first in (at, at - 1):
        parted = Versions(agree=False, first_difference=first, reason=reason)
        assert judge(told(scenario, answers, newer, parted)).version == V18
    later = Versions(agree=False, first_difference=at + 1, reason=reason)
    assert not judge(told(scenario, answers, newer, later)).agrees
    answers[at - 1].callbacks.append(state(0, "a", "Failing"))
    assert not judge(told(scenario, answers, newer, parted)).agrees


def test_versions_that_part_excuse_nothing() -> None:
    """Whatever follows the parting: nonsense is a difference."""
    scenario, ours = played("timeout_running_soft")
    answers, newer = copy.deepcopy(ours), copy.deepcopy(ours)
    at = step_of(scenario, "confirm")
    for each in (answers, newer):
        del each[at].callbacks[-1]
    for first in (0, at):
        parted = Versions(agree=False, first_difference=first, reason="something arbitrary")
        for told_by_both in (answers, newer):
            verdict = judge(told(scenario, answers, told_by_both, parted))
            assert verdict.difference is not None
            assert verdict.difference.at == at


def test_x13_x15_x19_v18_is_compared_to_the_end() -> None:
    """What v1.8.0 was not told is not played beside it: no comparison with it stops for that."""
    scenario, _ = played("draining_queue")
    scenario.steps[1]["occupied"] = {"memory": 1}
    scenario.steps[3]["max"] = 3
    register, order = scenario.steps[0], "application.sort.policy: fifo"
    register["config"] = register["config"].replace(order, order.replace("fifo", "stateaware"))
    request = {"nodes": [{"nodeID": "node-2", "existingAllocations": [{"allocationKey": "e"}]}]}
    scenario.steps.insert(2, {"op": "updateNode", "request": request})
    player = Player(scenario.steps, version=V18)
    newer = []
    for step in scenario.steps:
        if step["op"] == "updateNode":
            newer.append(Answer([], {"op": "updateNode", "error": 'proto: unknown field "e"'}))
        else:
            newer.append(copy.deepcopy(player.play(step)))
    verdict = compare(told(scenario, [], newer), V18)
    assert verdict.whole, verdict.difference
    assert verdict.compared == len(scenario.steps)
    assert not verdict.rules
    at = step_of(scenario, "releaseAlloc")
    del newer[at].callbacks[-1]
    assert not compare(told(scenario, [], newer), V18).agrees


def test_5_8_a_comparison_that_ends_early_says_nothing() -> None:
    """A rule may end it: what is left must be worth the name."""
    scenario, answers = played("two_reservations_of_one_application")
    at = step_of(scenario, "schedule", 4)
    (allocation,) = answers[at].callbacks[-1][2]["new"]
    allocation.update({"allocationKey": "a1", "nodeID": "node-2"})
    steps = scenario.steps + [{"op": "schedule", "count": 1}] * (2 * len(scenario.steps))
    longer = Scenario(scenario.name, scenario.folder, steps)
    verdict = judge(told(longer, answers + [Answer([], {"op": "schedule"})] * 2 * len(answers)))
    assert verdict.difference is None
    assert verdict.too_little
    assert not verdict.agrees
    assert "TOO LITTLE compared" in lines_of(verdict)[0]


def _beside_v18(name: str) -> tuple[Scenario, list[Answer]]:
    """What ours says to a scenario in the form of v1.8.0."""
    (scenario,) = scenarios([FOLDER / name])
    player = Player(scenario.steps, version=V18)
    return scenario, [copy.deepcopy(player.play(step)) for step in scenario.steps]


def test_x45_a_release_by_key_that_meets_a_pending_ask_is_confirmed() -> None:
    """There the ask is gone as well, and nothing is said."""
    scenario, answers = _beside_v18("released_while_it_waits")
    at = step_of(scenario, "releaseAlloc")
    assert lines_said(answers[at]) == ["released waits STOPPED_BY_RM"]
    drop(answers[at], allocationKey="waits")
    verdict = compare(told(scenario, [], answers), V18)
    assert verdict.agrees, verdict.difference
    assert dict(verdict.rules) == {"X45": 1}
    assert verdict.whole


@pytest.mark.parametrize("nth", [0, 1])
def test_x45_no_other_release_by_key_goes_unanswered(nth: int) -> None:
    """Neither that of an allocation, nor one more."""
    scenario, answers = _beside_v18("released_while_it_waits")
    at = step_of(scenario, "releaseAlloc", nth)
    if nth:
        drop(answers[at], allocationKey="runs")
    else:
        answers[at].callbacks.append(released(0, "app", "runs", "STOPPED_BY_RM"))
    assert not compare(told(scenario, [], answers), V18).agrees


def test_x12_a_release_by_uuid_leaves_the_pending_ask_on_both_sides() -> None:
    """Beside v1.5.2 nothing excuses that the ask is gone."""
    scenario, answers = played("released_while_it_waits")
    at = step_of(scenario, "schedule", 1)
    assert [line for line in lines_said(answers[at]) if line.startswith("new")] == ["new waits"]
    drop(answers[at], allocationKey="waits")
    assert not judge(told(scenario, answers)).agrees


def lines_said(answer: Answer) -> list[str]:
    """What an answer says of allocations, in short."""
    return [
        " ".join(
            [part, each["allocationKey"], *([each["terminationType"]] if part != "new" else [])]
        )
        for _, _, message in answer.callbacks
        for part in ("new", "released", "releasedAsks")
        for each in message.get(part, ())
    ]
