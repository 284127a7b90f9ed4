"""Altered references: every message of a scenario, changed in every way that must not go unnoticed."""

import copy
import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.oracle.comparison import Course, StateAware, Verdict, compare, judge, play
from tests.oracle.differences import possible_settings
from tests.oracle.player import Player
from tests.oracle.scenario import V15, Answer, Callback, Scenario
from tests.oracle.settings import Setting

Settings = tuple[Setting, ...]


@dataclass(frozen=True, slots=True)
class Mutation:
    at: int
    message: int
    part: str
    item: int
    kind: str

    def applied(self, answer: Answer) -> Answer:
        callbacks: list[Callback] = list(answer.callbacks)
        t, kind, message = callbacks[self.message]
        message = copy.deepcopy(message)
        callbacks[self.message] = t, kind, message
        if not self.part:  # the message is its only item
            if self.kind == "dropped":
                del callbacks[self.message]
            elif self.kind == "later":
                callbacks[self.message] = t + 1, kind, message
            else:
                message["state"] = "SKIPPED"
            return Answer(callbacks, answer.done)
        items = message[self.part]
        if self.kind == "dropped":
            del items[self.item]
        else:
            _ALTERED[self.kind](items[self.item])
        return Answer(callbacks, answer.done)


def _another_node(item: dict[str, Any]) -> None:
    item["nodeID"] = "node-2" if item["nodeID"] == "node-1" else "node-1"


def _another_quantity(item: dict[str, Any]) -> None:
    quantities = item["resourcePerAlloc"]["resources"]
    name = min(quantities)
    quantities[name] = {"value": str(int(quantities[name].get("value", 0)) + 1)}


def _another_state(item: dict[str, Any]) -> None:
    item["state"] = "Failing" if item["state"] != "Failing" else "Running"


def _another_reason(item: dict[str, Any]) -> None:
    known = "TIMEOUT", "STOPPED_BY_RM"
    item["terminationType"] = known[item.get("terminationType") == known[0]]


_ALTERED = {
    "node": _another_node,
    "quantity": _another_quantity,
    "state": _another_state,
    "reason": _another_reason,
}


def mutations_of(at: int, answer: Answer) -> Iterator[Mutation]:
    for n, (_, kind, message) in enumerate(answer.callbacks):
        if kind == "EventRecord":  # a part of the comparison of its own
            continue
        if kind == "UpdateContainerSchedulingStateRequest":
            yield Mutation(at, n, "", 0, "dropped")
            yield Mutation(at, n, "", 0, "state")
            continue
        for part, items in message.items():
            for i, item in enumerate(items if isinstance(items, list) else ()):
                yield Mutation(at, n, part, i, "dropped")
                if "nodeID" in item:
                    yield Mutation(at, n, part, i, "node")
                if item.get("resourcePerAlloc", {}).get("resources"):
                    yield Mutation(at, n, part, i, "quantity")
                if "state" in item:
                    yield Mutation(at, n, part, i, "state")
                if part in ("released", "releasedAsks"):
                    yield Mutation(at, n, part, i, "reason")


def unnoticed(scenario: Scenario, version: str) -> tuple[int, Counter[str]]:
    """How many alterations of that output were tried, and the unnoticed ones by the rule that allows them."""
    answers = scenario.answers(version)
    assert answers is not None
    mutations = [each for at, answer in enumerate(answers) for each in mutations_of(at, answer)]
    (_, usual), *verdicts = verdicts_on(scenario, version, [None, *mutations])
    found: Counter[str] = Counter()
    for mutation, verdict in verdicts:
        if verdict.agrees and mutation is not None:
            found[_why(mutation, version, verdict, usual, answers)] += 1
    return len(mutations), found


def verdicts_on(
    scenario: Scenario, version: str, mutations: Sequence[Mutation | None]
) -> Iterator[tuple[Mutation | None, Verdict]]:
    """Each alteration of that version's output, ``None`` for none, and the verdict on the scenario with it."""
    answers = scenario.answers(version)
    assert answers is not None
    told = {
        settings: _verdicts(scenario, version, settings, answers, mutations)
        for settings in ((), *possible_settings(scenario))
    }
    others: dict[tuple[str, Settings], Verdict] = {}
    for mutation in mutations:

        def compared(
            scenario: Scenario,
            against: str,
            settings: Settings = (),
            mutation: Mutation | None = mutation,
        ) -> Verdict:
            if against == version:
                verdict = told[settings][mutation]
            else:
                if (against, settings) not in others:
                    others[against, settings] = compare(scenario, against, settings)
                verdict = others[against, settings]
            return dataclasses.replace(verdict, rules=Counter(verdict.rules))

        # which begins with v1.5.2 by itself
        yield mutation, judge(scenario, None if version == V15 else version, compared=compared)


def _verdicts(
    scenario: Scenario,
    version: str,
    settings: Settings,
    answers: list[Answer],
    mutations: Sequence[Mutation | None],
) -> dict[Mutation | None, Verdict]:
    by_step: dict[int, list[Mutation]] = {}
    for mutation in mutations:
        if mutation is not None:
            by_step.setdefault(mutation.at, []).append(mutation)
    player = Player(scenario.steps, settings, version)
    aware = StateAware(player)
    base = Course(Verdict(scenario, version, settings), aware)
    over: dict[Mutation | None, Verdict] = {}
    branches: dict[Mutation, Course] = {}
    excused: dict[Mutation, dict[int, tuple[str, ...]]] = {}
    for at, (step, answer) in enumerate(zip(scenario.steps, answers, strict=True)):
        played = play(player, aware, at, step, answer)
        assert not played.problem, played.problem
        for mutation in by_step.get(at, ()):
            branches[mutation] = base.copy() if base.goes_on else base
        for mutation, branch in list(branches.items()):
            if branch.goes_on and branch is not base:
                branch.take(played, mutation.applied(answer) if mutation.at == at else answer)
                if branch.verdict.difference is not None:
                    over[mutation] = branches.pop(mutation).verdict
        if base.goes_on:
            base.take(played, answer)
        elif not branches:
            break
        for mutation, branch in list(branches.items()):
            if branch is not base and branch.is_where(base):  # nothing is left that could differ
                branches[mutation] = base
                excused[mutation] = branch.verdict.explained
    for mutation in mutations:
        if mutation not in over:
            branch = base if mutation is None else branches.get(mutation, base)
            verdict = branch.verdict
            explained = verdict.explained | (excused.get(mutation, {}) if mutation else {})
            over[mutation] = dataclasses.replace(verdict, explained=explained)
    return over


def _why(
    mutation: Mutation, version: str, verdict: Verdict, usual: Verdict, answers: list[Answer]
) -> str:
    """The rule that allows an alteration; the alteration itself, where it is none."""
    if usual.stopped is not None and mutation.at > usual.stopped[0]:
        return f"after {usual.stopped[1]}"
    if verdict.version != version:
        return " ".join(sorted(verdict.rules))
    if verdict.settings != usual.settings:  # it tells what ours does by itself
        return " ".join(each.rule for each in usual.settings)
    at = mutation.at
    _, kind, message = answers[at].callbacks[mutation.message]
    item = message[mutation.part][mutation.item] if mutation.part else message
    if mutation.kind == "dropped" and item.get("terminationType") == "TIMEOUT":
        times = [
            each
            for _, _, other in answers[at].callbacks
            for part in ("released", "releasedAsks")
            for each in other.get(part, ())
            if each["allocationKey"] == item["allocationKey"]
        ]
        if len(times) > 1:
            return "5.15"  # what times out is told of twice, as an ask and as an allocation
    if rules := verdict.explained.get(at) or usual.explained.get(at):
        return " ".join(rules)
    if kind == "UpdateContainerSchedulingStateRequest":
        return "5.11"
    if mutation.part == "updated" and item["state"] in ("Starting", "Running"):
        return "X15"
    return str(mutation)
