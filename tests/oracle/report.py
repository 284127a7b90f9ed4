"""Verdicts as text and as data."""

from collections import Counter
from typing import Any

from tests.oracle.comparison import Difference, StateAware, Verdict
from tests.oracle.lines import Reader, Said
from tests.oracle.player import START, Player
from tests.oracle.scenario import V15, Scenario


def headline(verdict: Verdict) -> str:
    rules = " ".join(sorted(verdict.rules))
    if verdict.alone and verdict.difference is None:
        return f"{verdict.scenario.name}: played; nothing to compare with"
    if verdict.difference is not None:
        word = "BROKEN" if verdict.difference.problem else "DIFFERS"
        text = f"{word} at step {verdict.difference.at}"
    elif verdict.too_little:
        text = f"TOO LITTLE compared, {verdict.compared} of {len(verdict.scenario.steps)} steps"
    elif rules:
        text = f"agrees but for {rules}"
    else:
        text = "agrees"
    notes = []
    if verdict.version != "1.5.2":
        notes.append(f"compared with {verdict.version}")
    if verdict.stopped is not None:
        at, rule, why = verdict.stopped
        notes.append(f"up to step {at} of {len(verdict.scenario.steps)} ({rule}: {why})")
    if verdict.ended is not None:
        notes.append(f"the reference ended after step {verdict.ended - 1}")
    if verdict.events:
        notes.append(f"{len(verdict.events)} event records differ")
    return f"{verdict.scenario.name}: {text}" + "".join(f"; {note}" for note in notes)


def lines_of(verdict: Verdict, *, verbose: bool = False) -> list[str]:
    """The headline, and below it what there is to say about it."""
    found = [headline(verdict)]
    if verdict.difference is not None:
        found += [f"    {line}" for line in _details(verdict.difference)]
    elif verbose:
        found += [f"    {rule}: {n} steps" for rule, n in sorted(verdict.rules.items())]
        found.append(f"    {verdict.compared} steps compared")
        found += [f"    not compared: {what}" for what in sorted(verdict.not_compared)]
    if verbose:
        found += [f"    event of {each}" for each in verdict.events]
    return found


def _details(difference: Difference) -> list[str]:
    found = [f"step {difference.at} {difference.step}"]
    if difference.problem:
        return [*found, *difference.problem.splitlines()]
    missing = Counter(difference.theirs) - Counter(difference.ours)
    extra = Counter(difference.ours) - Counter(difference.theirs)
    if not missing and not extra:
        found.append("the same lines in another order:")
        found += [f"  theirs  {spelled(said)}" for said in difference.theirs]
        found += [f"  ours    {spelled(said)}" for said in difference.ours]
        return found
    found += [f"  theirs  {spelled(said)}" for said in missing.elements()]
    found += [f"  ours    {spelled(said)}" for said in extra.elements()]
    common = sum((Counter(difference.theirs) & Counter(difference.ours)).values())
    if common:
        found.append(f"  both    {common} more lines")
    return found


def ours(scenario: Scenario) -> list[str]:
    """What our core says to a scenario, step by step, in the words of the reports."""
    found = []
    player = Player(scenario.steps)
    aware = StateAware(player)
    reader = Reader(V15, aware)
    for at, step in enumerate(scenario.steps):
        answer = player.play(step)
        aware.look()
        done = answer.done or {}
        notes = [f"{k}: {done[k]}" for k in ("allocated", "confirmed", "unknown") if k in done]
        if "error" in done:
            notes.append("refused")
        about = " ".join(str(step[k]) for k in ("appID", "nodeID", "action", "ms") if k in step)
        found.append(" ".join([f"{at:2} {step['op']}", about, *notes]).rstrip())
        found += [f"     {spelled(said)}" for said in reader.read(step["op"], answer.callbacks)]
        totals = done.get("totals", {})
        found += [
            f"     {spelled((0, line))}"
            for part in ("apps", "queues", "nodes")
            for line in sorted(totals.get(part, ()), key=repr)
            if line[-1] not in ((), 0, False)
        ]
        found += [f"     WRONG {text}" for text in done.get("wrong", ())]
    return found


def spelled(said: Said) -> str:
    t, line = said
    words = " ".join(_word(word) for word in line if word != "")
    return f"t={t / 1e9:g}s {words}" if t else words


def _word(word: object) -> str:
    if isinstance(word, tuple):
        return ",".join(f"{name}={value}" for name, value in word) or "nothing"
    if isinstance(word, int) and word >= START:
        return f"at {(word - START) / 1e9:g}s"
    return str(word)


def summary(verdicts: list[Verdict]) -> str:
    differ = [v for v in verdicts if not v.agrees]
    alone = [v for v in verdicts if v.agrees and v.alone]
    plain = [v for v in verdicts if v.agrees and not v.rules and not v.alone]
    steps = sum(v.compared for v in verdicts)
    total = sum(len(v.scenario.steps) for v in verdicts)
    text = (
        f"{len(verdicts)} scenarios: {len(plain)} agree, "
        f"{len(verdicts) - len(plain) - len(differ) - len(alone)} agree but for deliberate "
        f"differences, {len(differ)} differ"
    )
    if alone:
        text += f", {len(alone)} have nothing to compare with"
    return f"{text}; {steps} of {total} steps compared"


def _word_for(verdict: Verdict) -> str:
    if verdict.difference is not None:
        return "differs"
    if verdict.alone:
        return "played"
    if verdict.too_little:
        return "too little compared"
    return "agrees but" if verdict.rules else "agrees"


def as_data(verdict: Verdict) -> dict[str, Any]:
    data: dict[str, Any] = {
        "name": verdict.scenario.name,
        "verdict": _word_for(verdict),
        "version": verdict.version,
        "settings": {setting.name: setting.value for setting in verdict.settings},
        "rules": dict(sorted(verdict.rules.items())),
        "steps": len(verdict.scenario.steps),
        "compared": verdict.compared,
        "not_compared": dict(verdict.not_compared),
        "events": verdict.events,
    }
    if verdict.stopped is not None:
        data["stopped"] = dict(zip(("step", "rule", "why"), verdict.stopped, strict=True))
    if verdict.ended is not None:
        data["reference_ended"] = verdict.ended
    if verdict.difference is not None:
        data["difference"] = {
            "step": verdict.difference.at,
            "problem": verdict.difference.problem,
            "theirs": [spelled(said) for said in verdict.difference.theirs],
            "ours": [spelled(said) for said in verdict.difference.ours],
        }
    return data
