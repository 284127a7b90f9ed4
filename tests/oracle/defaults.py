"""The second comparison: our core with the defaults of the product."""

import dataclasses
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from quadriga.core import Options
from tests.oracle.comparison import Verdict, compare
from tests.oracle.lines import Said
from tests.oracle.player import OPTIONS
from tests.oracle.settings import Setting


@dataclass(frozen=True, slots=True)
class Switch:
    """An option in which our default is not Go's side, with the rule that it belongs to."""

    rule: str
    option: str


#: lines of each side that a report shows for a rule
_SHOWN = 4

#: what is not here is played as before: names, order and instants of messages, which any resource manager
#: may set, and the journal
SWITCHES = (
    Switch("Q1, Q2", "gang_admission"),
    Switch("Q7", "bound_reservations"),
    Switch("D243", "preempt_unguaranteed"),
    Switch("D290", "node_sort_policy"),
    Switch("S6", "reservation_give_up"),
)


@dataclass(frozen=True, slots=True)
class Second:
    #: the first comparison
    first: Verdict
    #: with our defaults
    verdict: Verdict
    #: the same with nothing to compare with, to the last step
    alone: Verdict
    #: the rules without which it agrees as the first one, each needed, with the comparison that a rule fails;
    #: none if it agrees
    rules: dict[str, Verdict]

    @property
    def named(self) -> bool:
        """It agrees as before, or the rules explain why it does not; no rule explains what breaks."""
        return not self.broken and (bool(self.rules) or _as_before(self.first, self.verdict))

    @property
    def broken(self) -> str:
        verdicts = (self.verdict, self.alone, *self.rules.values())
        problems = (each.difference.problem for each in verdicts if each.difference is not None)
        return next(filter(None, problems), "")


def second(first: Verdict) -> Second:
    ours = _played(first, ())
    rules: dict[str, Verdict] = {}
    sides: list[Switch | Setting] = [*SWITCHES, *first.settings]
    if not _as_before(first, ours) and _as_before(first, _played(first, sides)):
        for side in list(sides):
            fewer = [each for each in sides if each is not side]
            without = _played(first, fewer)
            if _as_before(first, without):
                sides = fewer
            else:
                rules[side.rule] = without
    scenario = first.scenario
    alone = dataclasses.replace(scenario, folder=scenario.folder / "no answers")
    whole = compare(alone, options=dataclasses.replace(OPTIONS, **_of_ours(())))
    return Second(first, ours, whole, rules)


def _of_ours(theirs: Collection[Switch | Setting]) -> dict[str, Any]:
    return {s.option: getattr(Options(), s.option) for s in SWITCHES if s not in theirs}


def _played(first: Verdict, theirs: Collection[Switch | Setting]) -> Verdict:
    """The comparison with Go's side of these, and ours of all others."""
    settings = tuple(each for each in theirs if isinstance(each, Setting))
    options = dataclasses.replace(OPTIONS, **_of_ours(theirs))
    return compare(first.scenario, first.version, settings, options)


def _as_before(first: Verdict, other: Verdict) -> bool:
    return other.agrees and other.compared >= first.compared


def lines_of(found: Second, spell: Callable[[Said], str]) -> list[str]:
    """The report on one scenario: for each rule the step and the lines in which it differs first."""
    name = found.first.scenario.name
    if not found.first.agrees:
        return [f"{name}: not compared, since it differs with Go's settings"]
    if found.broken:
        return [f"{name}: BROKEN: {found.broken}"]
    if not found.rules:
        return [f"{name}: {'agrees' if found.named else 'DIFFERS, and no rule says why'}"]
    report = [f"{name}: differs by {', '.join(found.rules)}"]
    for rule, verdict in found.rules.items():
        difference = verdict.difference
        if difference is None:
            report.append(f"  {rule}: less of it is compared")
            continue
        report.append(f"  {rule}: from step {difference.at} ({difference.step['op']})")
        for side, said, other in (
            ("theirs", difference.theirs, difference.ours),
            ("ours", difference.ours, difference.theirs),
        ):
            apart = [spell(each) for each in said if each not in other]
            report += [f"    {side}: {line}" for line in apart[:_SHOWN]]
            report += [f"    {side}: and {len(apart) - _SHOWN} more"] if apart[_SHOWN:] else []
    return report


def summary(found: list[Second]) -> str:
    agree = sum(each.named and not each.rules for each in found)
    by_rule = Counter(rule for each in found for rule in each.rules)
    counts = "".join(f", {rule} in {count}" for rule, count in sorted(by_rule.items()))
    unnamed = sum(not each.named for each in found)
    return (
        f"with our defaults, {len(found)} scenarios: {agree} agree, {len(found) - agree - unnamed} differ "
        f"by rules{counts}; {unnamed} differ without one"
    )
