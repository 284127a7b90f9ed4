"""``python -m tests.oracle DIR``: does our core do what the Go core was seen to do?"""

import argparse
import json
import sys
import traceback
from pathlib import Path

from tests.oracle import defaults
from tests.oracle.comparison import Difference, Verdict, judge
from tests.oracle.defaults import second
from tests.oracle.events import Event, events_apart
from tests.oracle.report import as_data, lines_of, ours, spelled, summary
from tests.oracle.scenario import V15, V18, scenarios


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.oracle",
        description="Play scenarios on our core and compare with what the Go core answered. "
        "The exit status is 0 if every difference is a deliberate one (docs/oracle.md).",
    )
    parser.add_argument("paths", nargs="+", type=Path, help="folders of scenarios, or scenarios")
    parser.add_argument("--version", choices=(V15, V18), help="compare with this version only")
    parser.add_argument("--verbose", action="store_true", help="say which rules explained what")
    parser.add_argument("--json", action="store_true", help="one JSON object for each scenario")
    parser.add_argument("--ours", action="store_true", help="compare nothing, show what ours says")
    parser.add_argument(
        "--defaults",
        action="store_true",
        help="play a second time, with our defaults, and name the rules that make a difference",
    )
    parser.add_argument(
        "--events",
        choices=("report", "count", "off"),
        default="report",
        help="event records that differ: say how many (the default), count them as differences too, "
        "or do not look at them",
    )
    options = parser.parse_args(arguments)
    if options.defaults:
        return _with_defaults(options.paths, options.version)
    verdicts = []
    for scenario in scenarios(options.paths):
        if options.ours:
            print("\n".join(ours(scenario)))
            continue
        try:
            verdict = judge(scenario, options.version)
            if options.events != "off":
                verdict.events = [_spelled(side, event) for side, event in events_apart(verdict)]
        except Exception:  # one that cannot even be read must not hide the others
            problem = traceback.format_exc()
            verdict = Verdict(scenario, options.version or V15)
            verdict.difference = Difference(0, {}, [], [], problem)
        verdicts.append(verdict)
        if options.json:
            print(json.dumps(as_data(verdict)))
        else:
            print("\n".join(lines_of(verdict, verbose=options.verbose)), flush=True)
    if options.ours:
        return 0
    if not options.json:
        print(summary(verdicts))
    agree = all(verdict.agrees for verdict in verdicts)
    if options.events == "count":
        agree = agree and not any(verdict.events for verdict in verdicts)
    return 0 if verdicts and agree else 1


def _with_defaults(paths: list[Path], version: str | None) -> int:
    found = []
    for scenario in scenarios(paths):
        found.append(second(judge(scenario, version)))
        print("\n".join(defaults.lines_of(found[-1], spelled)), flush=True)
    print(defaults.summary(found))
    return 0 if found and all(each.named for each in found) else 1


def _spelled(side: str, event: Event) -> str:
    words = " ".join(str(word) for word in event[1:-1] if word)
    quantities = ",".join(f"{name}={value}" for name, value in event.quantities)
    return f"{side}: t={event.time / 1e9:g}s {words} {quantities}".rstrip()


if __name__ == "__main__":
    sys.exit(main())
