"""Compares a scenario step by step, and says in one verdict how it came out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.oracle.circumstances import ours_is_newer
from tests.oracle.differences import explainers, newer_reference, possible_settings
from tests.oracle.lines import Reader, Said
from tests.oracle.observe import observe
from tests.oracle.player import Player
from tests.oracle.scenario import V15, V18, Answer, Scenario
from tests.oracle.settings import Setting
from tests.oracle.totals import Line, their_totals
from tests.oracle.view import Facts, Memory, View

__all__ = ["Difference", "StateAware", "Verdict", "compare", "judge"]


@dataclass(frozen=True, slots=True)
class Difference:
    """Where the two sides part: what each of them says in that step."""

    at: int
    step: dict[str, Any]
    theirs: list[Said]
    ours: list[Said]
    #: something else than a difference: a step that is not understood, a broken invariant
    problem: str = ""


@dataclass(slots=True)
class Verdict:
    """How a scenario came out against one version, with these settings."""

    scenario: Scenario
    version: str
    settings: tuple[Setting, ...] = ()
    #: the rules that explained something, and how many steps each
    rules: Counter[str] = field(default_factory=Counter)
    #: steps that were compared, and parts of the scenario that were not
    compared: int = 0
    not_compared: Counter[str] = field(default_factory=Counter)
    #: the last step that was compared, why, and the rule
    stopped: tuple[int, str, str] | None = None
    #: the reference has no more than so many steps
    ended: int | None = None
    difference: Difference | None = None
    #: event records that only one side has, spelled out
    events: list[str] = field(default_factory=list)

    @property
    def agrees(self) -> bool:
        return self.difference is None


def judge(scenario: Scenario, version: str | None = None) -> Verdict:
    """The verdict that counts: against v1.5.2, and where a rule says so against v1.8.0 or with the
    settings that give the Go core's behaviour. ``version`` asks for one of them."""
    first = compare(scenario, version or V15)
    if first.agrees:
        return first
    verdicts = [first]
    newer = newer_reference(scenario)
    parted = scenario.versions.agree is False
    settings = possible_settings(scenario)
    attempts: list[tuple[str, tuple[Setting, ...], list[str]]] = [
        (version or V15, each, []) for each in settings
    ]
    if version is None and (newer or parted) and scenario.answers(V18) is not None:
        attempts += [(V18, each, newer or ["versions"]) for each in ((), *settings)]
    for reference, each, rules in attempts:
        verdict = compare(scenario, reference, each)
        verdict.rules.update(setting.rule for setting in each)
        verdict.rules.update(rules)
        if verdict.agrees:
            return verdict
        verdicts.append(verdict)
    best = max(verdicts, key=lambda verdict: verdict.compared)
    if parted and not ours_is_newer(scenario):
        return _up_to_the_parting(best)
    return best


def _up_to_the_parting(verdict: Verdict) -> Verdict:
    """Where the two versions part, their outputs are of different histories from then on, and the
    folder's README lets us stop."""
    versions, found = verdict.scenario.versions, verdict.difference
    if found is not None and not found.problem and found.at >= versions.first_difference:
        verdict.difference = None
        verdict.rules["versions"] += 1
        verdict.stopped = found.at, "versions", f"v1.5.2 and v1.8.0 part: {versions.reason}"
    return verdict


def compare(scenario: Scenario, version: str = V15, settings: tuple[Setting, ...] = ()) -> Verdict:
    """Play it and compare with one version, up to the first difference that no rule explains."""
    answers = scenario.answers(version)
    verdict = Verdict(scenario, version, settings)
    player = Player(scenario.steps, settings)
    aware = StateAware(player)
    their_reader, our_reader = Reader(version, aware), Reader(version, aware)
    memory = Memory()
    for at, step in enumerate(scenario.steps):
        if answers is not None and at >= len(answers):
            verdict.ended = at
            answers = None
        facts = Facts.of(player.core)
        ends = (answers[at].done or {}).get("t") if answers is not None else None
        answer = player.play(step, ends)
        aware.look()
        assert answer.done is not None
        if problem := answer.done.get("unknown") or "; ".join(answer.done.get("wrong", ())):
            verdict.difference = Difference(at, step, [], [], problem)
            return verdict
        if answers is None:
            continue
        if step["op"] == "rest":
            verdict.not_compared[f"rest {step.get('path', '')}"] += 1
        for part in set(step.get("what") or ()) - {"apps", "queues", "nodes"}:
            verdict.not_compared[f"dump {part}"] += 1
        theirs = _said(their_reader, version, step, answers[at])
        ours = _said(our_reader, version, step, answer, theirs)
        view = View(at, step, version, theirs, ours, facts, player.core, memory)
        observe(view)
        if not view.agrees:
            for explain in explainers():
                explain(view)
            if not view.agrees and not (view.stopped and _explained_by_stop(view)):
                verdict.difference = Difference(at, step, theirs, ours)
                return verdict
        verdict.compared += 1
        verdict.rules.update(view.used)
        if view.stopped:
            verdict.stopped = (at, *view.stopped)
            answers = None
    return verdict


def _explained_by_stop(view: View) -> bool:
    """Where the histories part within a step, its later lines are of the other history already."""
    return view.op in ("schedule", "scheduleIdle", "multiStep", "advance", "sleep")


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
