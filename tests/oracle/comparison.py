"""Compares a scenario step by step, and says in one verdict how it came out."""

from __future__ import annotations

import copy
import dataclasses
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from quadriga.core import Options, Scheduler
from tests.oracle.differences import explainers, partings_of, possible_settings
from tests.oracle.lines import Reader, Said
from tests.oracle.observe import observe
from tests.oracle.player import OPTIONS, Player, cannot_be_told
from tests.oracle.scenario import V15, V18, Answer, Scenario
from tests.oracle.settings import Setting
from tests.oracle.totals import Line, their_totals
from tests.oracle.view import Facts, Memory, View

Compare = Callable[[Scenario, str, tuple[Setting, ...]], "Verdict"]

#: the least share of the steps that must be compared where a comparison ends early
ENOUGH = 0.5


@dataclass(frozen=True, slots=True)
class Difference:
    at: int
    step: dict[str, Any]
    theirs: list[Said]
    ours: list[Said]
    #: something else than a difference: a step that is not understood, a broken invariant
    problem: str = ""
    #: the rules that part v1.5.2 from v1.8.0 in just this way
    parting: tuple[str, ...] = ()


@dataclass(slots=True)
class Verdict:
    scenario: Scenario
    version: str
    settings: tuple[Setting, ...] = ()
    #: the rules that explained something, and how many steps each
    rules: Counter[str] = field(default_factory=Counter)
    #: the same by step
    explained: dict[int, tuple[str, ...]] = field(default_factory=dict)
    #: steps that were compared, and parts of the scenario that were not
    compared: int = 0
    not_compared: Counter[str] = field(default_factory=Counter)
    #: the last step that was compared, why, and the rule
    stopped: tuple[int, str, str] | None = None
    #: the reference has no more than so many steps
    ended: int | None = None
    #: there is no reference: the scenario was played, and nothing broke
    alone: bool = False
    difference: Difference | None = None
    #: event records that only one side has, spelled out
    events: list[str] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        return self.difference is None and self.stopped is None and self.ended is None

    @property
    def too_little(self) -> bool:
        """The comparison ended before it could say anything about the scenario."""
        return not self.alone and self.compared < ENOUGH * len(self.scenario.steps)

    @property
    def agrees(self) -> bool:
        return self.difference is None and not self.too_little


def judge(
    scenario: Scenario, version: str | None = None, *, compared: Compare | None = None
) -> Verdict:
    """The verdict that counts: against v1.5.2, or with the settings that give the Go core's behaviour."""
    compared = compared or compare
    verdicts = []
    for settings in ((), *possible_settings(scenario)):
        verdict = compared(scenario, version or V15, settings)
        verdict.rules.update(setting.rule for setting in settings)
        if verdict.whole:
            return verdict
        verdicts.append(verdict)
        rules = _newer(verdict) if version is None else None
        if rules is not None and scenario.answers(V18) is not None:
            newer = compared(scenario, V18, settings)
            newer.rules.update(setting.rule for setting in settings)
            newer.rules.update(rules)
            if newer.whole:
                return newer
            verdicts.append(newer)
    agreeing = [verdict for verdict in verdicts if verdict.agrees]
    return max(agreeing or verdicts, key=lambda verdict: verdict.compared)


def _newer(verdict: Verdict) -> list[str] | None:
    """The rules by which v1.8.0 is the reference after this verdict on v1.5.2; ``None`` if it is none."""
    versions, found = verdict.scenario.versions, verdict.difference
    if found is None:
        return [] if verdict.too_little and verdict.stopped is not None else None
    if found.problem or versions.agree is True:
        return None
    if versions.agree is False and found.at < versions.first_difference:
        return None
    return list(found.parting) or None


def compare(
    scenario: Scenario,
    version: str = V15,
    settings: tuple[Setting, ...] = (),
    options: Options = OPTIONS,
) -> Verdict:
    """Play it and compare with one version, up to the first difference that no rule explains."""
    answers = scenario.answers(version)
    player = Player(scenario.steps, settings, version, options)
    aware = StateAware(player)
    course = Course(Verdict(scenario, version, settings, alone=answers is None), aware)
    for at, step in enumerate(scenario.steps):
        theirs = answers[at] if answers is not None and at < len(answers) else None
        if not course.verdict.alone and theirs is None and course.verdict.ended is None:
            course.verdict.ended = at
        played = play(player, aware, at, step, theirs)
        if played.problem:
            course.verdict.difference = Difference(at, step, [], [], played.problem)
            return course.verdict
        if theirs is not None and course.goes_on:
            course.take(played, theirs)
            if course.verdict.difference is not None:
                return course.verdict
    return course.verdict


@dataclass(frozen=True, slots=True)
class Played:
    at: int
    step: dict[str, Any]
    answer: Answer
    facts: Facts
    core: Scheduler
    #: what broke, or was not understood
    problem: str


def play(
    player: Player, aware: StateAware, at: int, step: dict[str, Any], theirs: Answer | None
) -> Played:
    facts = Facts.of(player.core)
    done = (theirs.done if theirs is not None else None) or {}
    if cannot_be_told(done):
        answer = Answer([], {"op": step["op"], "error": done["error"]})
    else:
        answer = player.play(step, done.get("t"))
    aware.look()
    ours = answer.done or {}
    problem = ours.get("unknown") or "; ".join(ours.get("wrong", ()))
    return Played(at, step, answer, facts, player.core, problem)


class Course:
    def __init__(self, verdict: Verdict, aware: StateAware) -> None:
        self.verdict = verdict
        self._aware = aware
        self._their_reader = Reader(verdict.version, aware)
        self._our_reader = Reader(verdict.version, aware)
        self._memory = Memory()

    @property
    def goes_on(self) -> bool:
        return self.verdict.difference is None and self.verdict.stopped is None

    def copy(self) -> Course:
        """One that goes its own way from here."""
        verdict = dataclasses.replace(
            self.verdict,
            rules=Counter(self.verdict.rules),
            explained=dict(self.verdict.explained),
            not_compared=Counter(self.verdict.not_compared),
        )
        other = Course(verdict, self._aware)
        other._their_reader = self._their_reader.copy()
        other._our_reader = self._our_reader.copy()
        other._memory = copy.deepcopy(self._memory)
        return other

    def is_where(self, other: Course) -> bool:
        """Whether both will say the same of all that follows."""
        return (
            self.goes_on
            and other.goes_on
            and self._their_reader.last == other._their_reader.last
            and self._memory == other._memory
        )

    def take(self, played: Played, answer: Answer) -> None:
        verdict, step, version = self.verdict, played.step, self.verdict.version
        if step["op"] == "rest":
            verdict.not_compared[f"rest {step.get('path', '')}"] += 1
        for part in set(step.get("what") or ()) - {"apps", "queues", "nodes"}:
            verdict.not_compared[f"dump {part}"] += 1
        theirs = _said(self._their_reader, version, step, answer)
        ours = _said(self._our_reader, version, step, played.answer, theirs)
        view = View(played.at, step, version, theirs, ours, played.facts, played.core, self._memory)
        observe(view)
        if not view.agrees:
            for explain in explainers():
                explain(view)
            if not view.agrees and not view.agrees_up_to_the_parting:
                parted = version == V15 and verdict.scenario.versions.agree is not True
                rules = partings_of(verdict.scenario, view) if parted else ()
                verdict.difference = Difference(played.at, step, theirs, ours, parting=rules)
                return
        verdict.compared += 1
        verdict.rules.update(view.used)
        if view.used:
            verdict.explained[played.at] = tuple(view.used)
        if view.stopped:
            verdict.stopped = (played.at, *view.stopped)


def _said(
    reader: Reader,
    version: str,
    step: dict[str, Any],
    answer: Answer,
    dumped: list[Said] | None = None,
) -> list[Said]:
    """All that one side says in a step: messages, whether the step was refused, totals."""
    done = answer.done or {}
    said = reader.read(step["op"], answer.callbacks)
    if done.get("error"):
        said.append((0, ("refused", step["op"])))
    if "totals" in done:
        totals: dict[str, set[Line]] = done["totals"]
        lines = {line for part in totals.values() for line in part}
        if dumped is not None:  # ours: the parts that theirs has
            parts = {line[0] for _, line in dumped}
            lines = {line for line in lines if line[0] in parts}
    elif step["op"] == "dump":
        lines = {li for part in their_totals(done, reader.state).values() for li in part}
    else:
        return said
    if version == V15:  # exact in v1.8.0 only
        lines = {line for line in lines if "timedout" not in line[4:5]}
    return said + [(0, line) for line in sorted(lines, key=repr)]


class StateAware:
    """Which applications have Starting as a state here: those in stateaware queues (X15)."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self._known: dict[str, bool] = {}

    def look(self) -> None:
        for partition in self._player.core.partitions():
            for app in partition.applications.values():
                self._known[app.app_id] = app.starts_aware

    def __call__(self, app_id: str) -> bool:
        return self._known.get(app_id, False)
