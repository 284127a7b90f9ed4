"""The runner can bite: a changed reference differs, and a rule explains what it is about and no more."""

import copy
import dataclasses
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.comparison import Verdict, compare, judge
from tests.oracle.explanations.explain import on_a_draining_node
from tests.oracle.mutations import Mutation, verdicts_on
from tests.oracle.player import START, Player
from tests.oracle.scenario import V15, V18, Answer, Callback, Scenario, Versions, scenarios
from tests.oracle.settings import ADMISSION, HOLD, Setting
from tests.oracle.view import Facts, Memory, View

FOLDER = Path(__file__).parent / "scenarios"
NAMES = sorted(file.stem for file in FOLDER.glob("*.json"))
SIZES = {"memory": 10, "vcore": 1000}


@dataclass(frozen=True)
class Told(Scenario):
    """A scenario whose references are given here."""

    told: dict[str, list[Answer]] = field(default_factory=dict)

    def answers(self, version: str) -> list[Answer] | None:
        return self.told.get(version)


@cache
def _played(name: str, settings: tuple[Setting, ...], version: str) -> list[Answer]:
    (scenario,) = scenarios([FOLDER / name])
    player = Player(scenario.steps, settings, version)
    return [copy.deepcopy(player.play(step)) for step in scenario.steps]


class Reference:
    """What ours says to one of the scenarios of this folder, to be changed by hand."""

    def __init__(self, name: str, *settings: Setting, version: str = V15) -> None:
        (self.scenario,) = scenarios([FOLDER / name])
        self.version = version
        self.answers = copy.deepcopy(_played(name, settings, version))

    def at(self, op: str, nth: int = 0) -> int:
        return [at for at, step in enumerate(self.scenario.steps) if step["op"] == op][nth]

    def __getitem__(self, step: str | tuple[str, int]) -> Answer:
        op, nth = (step, 0) if isinstance(step, str) else step
        return self.answers[self.at(op, nth)]

    def told(self, newer: list[Answer] | None = None, versions: Versions | None = None) -> Told:
        told = {self.version: self.answers} | ({V18: newer} if newer is not None else {})
        about = {"versions": versions or Versions(), "told": told}
        return Told(self.scenario.name, self.scenario.folder, self.scenario.steps, **about)

    def explained(self, rule: str) -> Verdict:
        verdict = judge(self.told())
        assert verdict.agrees, verdict.difference
        assert rule in verdict.rules, verdict.rules
        return verdict

    def agrees_to_the_end_by(self, rule: str) -> None:
        assert self.explained(rule).compared == len(self.answers)

    def agrees_up_to(self, step: int, rule: str) -> None:
        assert self.explained(rule).stopped[:2] == (step, rule)

    def differs(self) -> None:
        assert not judge(self.told()).agrees


# -- what can be done to an answer -----------------------------------------------------------------


def state(t: float, app_id: str, name: str) -> Callback:
    at = int(t * 1e9)
    update = {"applicationID": app_id, "state": name, "stateTransitionTimestamp": str(START + at)}
    return at, "ApplicationResponse", {"updated": [update]}


def new(t: float, app_id: str, key: str, node_id: str, group: str = "") -> Callback:
    message = {
        "applicationID": app_id,
        "allocationKey": key,
        "nodeID": node_id,
        "taskGroupName": group,
        "resourcePerAlloc": {"resources": {n: {"value": str(v)} for n, v in SIZES.items()}},
    }
    return int(t * 1e9), "AllocationResponse", {"new": [message]}


def released(t: float, app_id: str, key: str, kind: str = "TIMEOUT") -> Callback:
    release = {
        "partitionName": "[rm:123]default",
        "applicationID": app_id,
        "allocationKey": key,
        "terminationType": kind,
    }
    return int(t * 1e9), "AllocationResponse", {"released": [release]}


def drop(answer: Answer, **wanted: str) -> None:
    """Take the items out of the messages that have all these fields, and the messages that are empty then."""
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


def retell(answer: Answer, what: str, value: object, *subjects: tuple[str, str]) -> None:
    """Change one total of a dump, of each of these."""
    totals: dict[str, set[tuple[Any, ...]]] = answer.done["totals"]
    for kind, about in subjects:
        (part,) = [part for part, lines in totals.items() if any(li[0] == kind for li in lines)]
        old = [line for line in totals[part] if line[:3] == (kind, about, what)]
        assert len(old) == 1
        totals[part] = (totals[part] - set(old)) | {(kind, about, what, value)}


def amount(times: int) -> tuple[tuple[str, int], ...]:
    return (("memory", 10 * times), ("vcore", 1000 * times))


APP, NODE = ("app", "g"), ("node", "node-1")
QUEUES = (("queue", "root"), ("queue", "root.gang"))

# -- nothing is overlooked -------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_ours_agrees_with_itself(name: str) -> None:
    reference = Reference(name)
    verdict = compare(reference.told())
    assert verdict.agrees
    assert not verdict.rules
    assert verdict.compared == len(reference.answers)


#: in these nothing happens that a rule for single lines is about
PLAIN = """
    creation_time gang_never_placed goes_on_by_itself node_removed_in_replacement other_timeouts
    placeholders_stopped predicates_deny preempts_for_the_guaranteed replacement_on_a_drained_node
    stateaware_disabled timeout_running_hard timeout_running_soft unready_node
""".split()


@pytest.mark.parametrize("name", PLAIN)
def test_every_message_counts(name: str) -> None:
    """Whichever is dropped or moved in time: it is a difference, and not before that step."""
    reference = Reference(name)
    mutations = [
        Mutation(at, n, "", 0, kind)
        for at, answer in enumerate(reference.answers)
        for n, (_, message, _) in enumerate(answer.callbacks)
        if message not in ("EventRecord", "UpdateContainerSchedulingStateRequest")
        for kind in ("dropped", "later")
    ]
    verdicts = list(verdicts_on(reference.told(), V15, mutations))
    assert len(verdicts) == len(mutations) > 0
    for mutation, verdict in verdicts:
        assert verdict.difference is not None, mutation
        assert verdict.difference.at >= mutation.at


def test_every_total_of_a_dump_counts() -> None:
    reference = Reference("timeout_running_soft")
    done = reference["dump"].done
    totals = done["totals"]
    for part, lines in totals.items():
        for line in lines:
            if "timedout" in line:  # exact in v1.8.0 only
                continue
            wrong = lines - {line} | {(*line[:-1], "something else")}
            done["totals"] = {**totals, part: wrong}
            assert not compare(reference.told()).agrees, line


def test_the_order_of_decisions_counts() -> None:
    reference = Reference("all_allocations_released")
    callbacks = reference["schedule"].callbacks
    callbacks[-1], callbacks[-2] = callbacks[-2], callbacks[-1]
    assert compare(reference.told()).difference.at == reference.at("schedule")


def test_a_reference_that_ends_early_says_so() -> None:
    reference = Reference("timeout_running_soft")
    steps = len(reference.answers)
    del reference.answers[-1]
    verdict = judge(reference.told())
    assert verdict.agrees
    assert (verdict.ended, verdict.compared) == (steps - 1, steps - 1)
    del reference.answers[steps // 2 - 1 :]
    verdict = judge(reference.told())
    assert verdict.difference is None
    assert verdict.too_little
    assert not verdict.agrees


@pytest.mark.parametrize(
    "step", [{"op": "dance"}, {"op": "addNode", "node": "n"}, {"op": "_advance"}, {"no": "op"}]
)
def test_a_step_that_nobody_knows_is_reported(step: dict[str, str]) -> None:
    verdict = judge(Scenario("odd", FOLDER, [{"op": "register", "config": ""}, step]))
    assert verdict.difference.problem


# -- each rule explains its own --------------------------------------------------------------------


def test_x9_x16_real_asks_are_held_and_the_gang_waits_for_all_of_its_quota() -> None:
    reference = Reference("too_few_placeholders", HOLD)
    assert compare(reference.told()).difference is not None
    reference.agrees_to_the_end_by("X9")
    reference = Reference("gang_larger_than_what_is_left", ADMISSION)
    assert compare(reference.told()).difference is not None
    reference.agrees_to_the_end_by("X16")


def test_x28_hard_an_allocation_outlives_its_application() -> None:
    reference = Reference("timeout_with_a_replacement_in_flight_hard", HOLD)
    reference["advance"].callbacks.append(released(10, "g", "ph-0"))
    reference["confirm"].callbacks.insert(0, new(11, "g", "real-0", "node-1", "tg"))
    retell(reference["dump"], "allocated", amount(1), NODE)
    reference.agrees_to_the_end_by("X28")
    retell(reference["dump"], "allocated", amount(2), NODE)
    reference.differs()


def test_x28_soft_the_state_does_not_follow() -> None:
    reference = Reference("timeout_with_a_replacement_in_flight_soft", HOLD)
    reference["advance"].callbacks += [released(10, "g", key) for key in ("ph-0", "real-0")]
    drop(reference["confirm"], state="Running")
    retell(reference["dump"], "state", "Accepted", APP)
    retell(reference["dump"], "running", 0, *QUEUES)
    reference.agrees_to_the_end_by("X28")


def test_x28_there_the_second_replacement_counts() -> None:
    reference = Reference("too_few_placeholders", HOLD)
    callbacks = reference["confirm"].callbacks
    assert callbacks[0][2]["updated"][0]["state"] == "Running"
    callbacks[0], callbacks[1] = callbacks[1], callbacks[0]
    reference.agrees_to_the_end_by("X28")
    del callbacks[0]
    reference.differs()


def test_x29_a_soft_timeout_takes_real_asks_too() -> None:
    reference = Reference("timeout_with_pending_real_asks_soft", HOLD)
    reference["advance"].callbacks.append(released(10, "g", "real-1"))
    verdict = compare(reference.told(), V15, (HOLD,))
    assert verdict.rules["X29"], verdict.difference
    reference["advance"].callbacks.append(released(10, "g", "nobody"))
    reference.differs()


def test_x29_an_ask_of_no_group_is_taken_too() -> None:
    reference = Reference("timeout_with_a_foreign_ask")
    reference["advance"].callbacks.append(released(10, "g", "other"))
    retell(reference["dump"], "pending", (), APP, *QUEUES)
    reference["schedule", 2].callbacks.clear()
    reference.agrees_up_to(reference.at("schedule", 2), "X29")
    retell(reference["dump"], "pending", (("memory", 11), ("vcore", 1000)), APP)
    reference.differs()


def test_g31_two_steps_for_the_last_placeholder() -> None:
    reference = Reference("gang_of_one")
    callbacks = reference["confirm"].callbacks
    callbacks[0:0] = [state(0, "g", "Completing"), state(0, "g", "Running")]
    reference.explained("G31")
    callbacks.insert(0, state(0, "g", "Failing"))
    reference.differs()


RUNS = {"state": "Running"}
# fmt: off
#: by rule: the scenario, the step by which the histories part, what is dropped from it, and what is not excused
DROPPED: dict[str, tuple[str, tuple[str, int], list[dict[str, str]], dict[str, str] | None]] = {
    "X35": ("gang_without_announcement", ("schedule", 0), [RUNS], {"allocationKey": "ph-1"}),
    "X36": ("more_members_than_placeholders", ("schedule", 1), [{"allocationKey": "real-2"}],
            {"allocationKey": "ph-1"}),
    "S2":  ("placeholder_ask_taken_back", ("schedule", 2), [{"allocationKey": "real-2"}], None),
    "G40": ("real_ask_taken_back", ("releaseAsk", 0), [{"state": "Completing"}], None),
    "V5, it ends":  ("gang_ends_under_maxapplications", ("schedule", 1), [{"allocationKey": "k0"}, RUNS], None),
    "V5, it fails": ("gang_fails_under_maxapplications", ("schedule", 1), [{"allocationKey": "k0"}, RUNS], None),
}
# fmt: on


@pytest.mark.parametrize("rule", DROPPED)
def test_x35_x36_s2_g40_v5_what_is_not_said_there(rule: str) -> None:
    name, step, dropped, wrong = DROPPED[rule]
    reference = Reference(name)
    for fields in dropped:
        drop(reference[step], **fields)
    reference.agrees_up_to(reference.at(*step), rule.partition(",")[0])
    if wrong is not None:
        drop(reference[step], **wrong)
        reference.differs()


def test_x37_the_larger_real_ask_takes_over_one_placeholder() -> None:
    reference = Reference("real_larger_than_placeholder")
    reference["schedule", 1].callbacks = [released(0, "g", key) for key in ("ph-0", "ph-1")]
    reference.agrees_up_to(reference.at("schedule", 1), "X37")
    reference["schedule", 1].callbacks.insert(0, state(0, "g", "Completing"))
    reference.differs()


def test_x39_a_draining_node_takes_no_member() -> None:
    reference = Reference("replacement_on_a_drained_node")
    drop(reference["confirm"], allocationKey="real-0")
    reference["confirm"].callbacks.append(new(0, "g", "real-0", "node-1", "tg"))
    reference.agrees_up_to(reference.at("confirm"), "X39")
    reference["confirm"].callbacks.append(new(0, "g", "real-7", "node-2", "tg"))
    reference.differs()


def test_s5_a_sum_that_is_stepped_over() -> None:
    reference = Reference("sum_steps_over")
    drop(reference["schedule"], state="Running")
    retell(reference["dump"], "state", "Accepted", APP)
    retell(reference["dump"], "running", 0, *QUEUES)
    # the second replacement makes it run there
    reference["confirm"].callbacks.insert(1, state(0, "g", "Running"))
    reference.agrees_to_the_end_by("S5")


def test_i17_the_same_key_again() -> None:
    reference = Reference("same_key_again_pending")
    callbacks = reference["schedule"].callbacks
    callbacks.append(new(0, "a", "k0", "node-1"))
    reference.agrees_up_to(reference.at("schedule"), "I17")
    wrongs = new(0, "a", "k1", "node-1"), released(0, "a", "k1"), state(0, "b", "Running")
    for wrong in wrongs:
        for where in (0, len(callbacks)):
            reference["schedule"].callbacks = [*callbacks[:where], wrong, *callbacks[where:]]
            reference.differs()


def test_i17_totals_differ_by_what_was_asked_only() -> None:
    """There the second allocation of the key takes the place of the first in the books."""
    reference = Reference("same_key_again_allocated")
    dump = reference["dump", 1]
    subjects = {("app", "a"): "used", **dict.fromkeys((*QUEUES, NODE), "allocated")}
    for subject, what in subjects.items():
        retell(dump, what, amount(1), subject)
    reference.agrees_up_to(reference.at("dump", 1), "I17")
    for subject, what in subjects.items():
        retell(dump, what, (("memory", 11), ("vcore", 1000)), subject)
        reference.differs()
        retell(dump, what, amount(1), subject)


def test_v7_stuck_in_completing() -> None:
    reference = Reference("all_allocations_released")
    drop(reference["advance"], state="Completed")
    done = reference["dump"].done
    done["totals"]["apps"] |= {("app", "a", "state", "Completing")}
    again = reference["addApp", 1]
    rejected = {"rejected": [{"applicationID": "a", "reason": "known"}]}
    again.callbacks = [(again.callbacks[0][0], "ApplicationResponse", rejected)]
    reference.agrees_up_to(reference.at("addApp", 1), "V7")


def test_i32_a_draining_node_takes_nobody() -> None:
    reference = Reference("reserved_node_drains")
    allocation = reference["schedule", 4].callbacks[-1]
    reference["schedule", 3].callbacks.append(allocation)
    reference.agrees_up_to(reference.at("schedule", 3), "I32")
    allocation[2]["new"][0]["nodeID"] = "node-3"
    reference.differs()


def test_5_8_which_of_several_reservations_comes_first() -> None:
    reference = Reference("two_reservations_of_one_application")
    (allocation,) = reference["schedule", 4].callbacks[-1][2]["new"]
    assert (allocation["allocationKey"], allocation["nodeID"]) == ("a0", "node-1")
    allocation.update({"allocationKey": "a1", "nodeID": "node-2"})
    reference.agrees_up_to(reference.at("schedule", 4), "5.8")
    allocation.update({"allocationKey": "b0"})
    reference.differs()


# -- when v1.8.0 is the reference --------------------------------------------------------------------


def draining_queue() -> tuple[Reference, list[Answer]]:
    """v1.5.2 accepts an application in a draining queue; what v1.8.0 says is ours."""
    reference = Reference("draining_queue")
    newer = copy.deepcopy(reference.answers)
    accepted = {"accepted": [{"applicationID": "b"}]}
    reference["addApp", 1].callbacks = [(0, "ApplicationResponse", accepted)]
    return reference, newer


def test_x33_a_draining_queue_takes_nobody() -> None:
    reference, newer = draining_queue()
    reference.differs()
    verdict = judge(reference.told(newer))
    assert verdict.agrees, verdict.difference
    assert "X33" in verdict.rules
    assert verdict.version == V18


@pytest.mark.parametrize("name", NAMES)
def test_5_1_v18_is_the_reference_only_where_a_rule_parts_the_versions(name: str) -> None:
    """Its agreement excuses no difference from v1.5.2 that no rule makes."""
    reference = Reference(name)
    newer = copy.deepcopy(reference.answers)
    next(answer for answer in reference.answers if answer.callbacks).callbacks.clear()
    for versions in (None, Versions(agree=True)):
        assert not judge(reference.told(newer, versions)).agrees


def test_x33_nothing_before_the_parting_of_the_versions_is_excused() -> None:
    """The index names the step and the reason; the difference must be there, and for that reason."""
    reference, newer = draining_queue()
    at = reference.at("addApp", 1)
    reason = "application sent to a draining queue"
    for first in (at, at - 1):
        parted = Versions(agree=False, first_difference=first, reason=reason)
        assert judge(reference.told(newer, parted)).version == V18
    later = Versions(agree=False, first_difference=at + 1, reason=reason)
    assert not judge(reference.told(newer, later)).agrees
    reference.answers[at - 1].callbacks.append(state(0, "a", "Failing"))
    assert not judge(reference.told(newer, parted)).agrees


def test_x13_x15_x19_v18_is_compared_to_the_end() -> None:
    """What v1.8.0 was not told is not played beside it: no comparison with it stops for that."""
    reference = Reference("draining_queue", version=V18)
    steps = reference.scenario.steps
    steps[1]["occupied"] = {"memory": 1}
    steps[3]["max"] = 3
    order = "application.sort.policy: fifo"
    steps[0]["config"] = steps[0]["config"].replace(order, order.replace("fifo", "stateaware"))
    request = {"nodes": [{"nodeID": "node-2", "existingAllocations": [{"allocationKey": "e"}]}]}
    steps.insert(2, {"op": "updateNode", "request": request})
    refused = {"op": "updateNode", "error": 'proto: unknown field "e"'}
    player = Player(steps, version=V18)
    reference.answers = [
        Answer([], refused) if step["op"] == "updateNode" else copy.deepcopy(player.play(step))
        for step in steps
    ]
    verdict = compare(reference.told(), V18)
    assert verdict.whole, verdict.difference
    assert verdict.compared == len(steps)
    assert not verdict.rules
    del reference["releaseAlloc"].callbacks[-1]
    assert not compare(reference.told(), V18).agrees


def lines_said(answer: Answer) -> list[str]:
    return [
        " ".join(
            [part, each["allocationKey"], *([each["terminationType"]] if part != "new" else [])]
        )
        for _, _, message in answer.callbacks
        for part in ("new", "released", "releasedAsks")
        for each in message.get(part, ())
    ]


def test_x45_a_release_by_key_that_meets_a_pending_ask_is_confirmed() -> None:
    """There the ask is gone as well, and nothing is said."""
    reference = Reference("released_while_it_waits", version=V18)
    assert lines_said(reference["releaseAlloc"]) == ["released waits STOPPED_BY_RM"]
    drop(reference["releaseAlloc"], allocationKey="waits")
    verdict = compare(reference.told(), V18)
    assert verdict.agrees, verdict.difference
    assert dict(verdict.rules) == {"X45": 1}
    assert verdict.whole


@pytest.mark.parametrize("nth", [0, 1])
def test_x45_no_other_release_by_key_goes_unanswered(nth: int) -> None:
    """Neither that of an allocation, nor one more."""
    reference = Reference("released_while_it_waits", version=V18)
    if nth:
        drop(reference["releaseAlloc", 1], allocationKey="runs")
    else:
        one_more = released(0, "app", "runs", "STOPPED_BY_RM")
        reference["releaseAlloc"].callbacks.append(one_more)
    assert not compare(reference.told(), V18).agrees


def test_x12_a_release_by_uuid_leaves_the_pending_ask_on_both_sides() -> None:
    """Beside v1.5.2 nothing excuses that the ask is gone."""
    reference = Reference("released_while_it_waits")
    answer = reference["schedule", 1]
    assert [line for line in lines_said(answer) if line.startswith("new")] == ["new waits"]
    drop(answer, allocationKey="waits")
    reference.differs()


def test_i32_looks_at_the_reservation_before_the_step() -> None:
    """In the step the reservation may end here, because its ask goes to another node."""
    player = Player([])
    before = Facts.of(player.core)
    step = {"op": "schedule"}
    for closed, allowed in (({"node-1"}, ["I32"]), (set(), [])):
        facts = dataclasses.replace(before, closed=closed)
        said = (0, ("new", "a", "a0", "node-1", (), "", ""))
        view = View(3, step, V15, [said], [], facts, player.core, Memory())
        on_a_draining_node(view)
        assert view.used == allowed
        assert bool(view.stopped) == bool(allowed)
