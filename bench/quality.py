"""The quality of schedules: ours under several settings, beside plain references.

``python -m bench quality`` runs the embedded workload, and with ``--trace PATH`` that trace as well.
docs/quality.md explains the figures and the policies.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from random import Random
from typing import Any

from bench._references import REFERENCES, run
from bench._support.settings import SETTINGS, Setting
from quadriga.cli.memory import look_less_often
from quadriga.sim import first
from quadriga.sim.reports.rendering import table
from quadriga.sim.workload import Workload, embedded, lublin, open_workload

#: figures of `Quality` in the order of the table, with their titles
_COLUMNS = {
    "completed": "completed",
    "mean_wait": "mean wait",
    "median_wait": "median",
    "p95_wait": "p95",
    "longest_wait": "longest",
    "slowdown": "slowdown",
    "makespan": "makespan",
    "utilisation": "utilised",
    "fairness": "fairness",
    "preemptions": "preempted",
    "fragmentation": "fragments",
}
_SHARES = ("utilisation", "fairness", "fragmentation")

#: what a jitter keeps of the jobs, and how far it moves a submission
_KEPT = 0.985
_JITTER_S = 900

#: seconds between two lines of progress
_TELL_EVERY_S = 10.0


def main(arguments: Sequence[str]) -> None:
    """Run the policies on the workloads and print a table for each workload, or JSON."""
    options = _parser().parse_args(arguments)
    if options.list:
        print(*_policies(), sep="\n")
        return
    look_less_often()
    chosen = _chosen(options.policy or ["*"])
    if options.property:
        given = dict(options.property)
        for policy, ours in list(chosen.items()):
            if ours is not None:
                properties = {**ours.properties, **given}
                chosen[f"{policy}, given"] = ours._replace(properties=properties)
    found = []
    for workload in _workloads(options):
        rows = []
        for policy, setting in chosen.items():
            if setting is not None and (unknown := setting.unknown):
                print(f"{policy}: left out: {unknown}", file=sys.stderr)
                continue
            rows.append(_measure(workload, policy, setting))
        if options.json:
            found += rows
        else:
            print(_text(workload, rows, markdown=options.markdown), flush=True)
    if options.json:
        json.dump(found, sys.stdout, indent=1)
        print()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench quality", description="Compare schedules: ours and plain references."
    )
    add = parser.add_argument
    add("--trace", type=Path, action="append", default=[], help="a trace to run; repeatable")
    add("--no-model", action="store_true", help="leave the embedded workload out")
    add(
        "--lublin",
        type=float,
        action="append",
        default=[],
        metavar="LOAD",
        help="2,000 jobs of Lublin's model for 64 nodes, at this load (0.6, 0.9); repeatable",
    )
    add("--days", type=int, help="only the first days of each workload (model: 90 by default)")
    add("--limit", type=int, metavar="N", help="only the first N jobs of each workload")
    add("--seed", type=int, default=1, help="seed of the models (default: 1)")
    add(
        "--jitter",
        type=int,
        action="append",
        metavar="SEED",
        help="instead of each workload, one without 1.5 %% of its jobs and with each submission up to "
        "15 minutes earlier or later; repeatable",
    )
    add(
        "--policy",
        action="append",
        metavar="PATTERN",
        help="only policies with such names (--policy '[be]q' --policy 'default*'); repeatable",
    )
    add(
        "--property",
        action="append",
        type=_pair,
        default=[],
        metavar="NAME=VALUE",
        help="run each policy of ours with this property of root too ('told, given'); repeatable",
    )
    add("--list", action="store_true", help="list the policies and stop")
    add("--json", action="store_true", help="write JSON instead of tables")
    add("--markdown", action="store_true", help="write tables in Markdown, for docs/quality.md")
    return parser


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def _workloads(options: argparse.Namespace) -> Iterator[Workload]:
    for workload in _whole_workloads(options):
        if options.jitter:
            yield from (_jittered(workload, seed) for seed in options.jitter)
        else:
            yield workload


def _jittered(workload: Workload, seed: int) -> Workload:
    """The workload with small differences, which show how much of a figure is chance."""
    random = Random(seed)
    jobs = []
    for job in workload.jobs:
        if random.random() <= _KEPT:
            earlier_or_later = int(random.uniform(-_JITTER_S, _JITTER_S))
            submit = min(max(0, job.submit_s + earlier_or_later), workload.horizon_s - 1)
            jobs.append(replace(job, submit_s=submit))
    jobs.sort(key=lambda job: job.submit_s)
    return replace(workload, name=f"{workload.name}, jitter {seed}", jobs=tuple(jobs))


def _whole_workloads(options: argparse.Namespace) -> Iterator[Workload]:
    if not options.no_model:
        yield first(embedded(options.days or 90, options.seed), None, options.limit)
    for load in options.lublin:
        model = lublin(2000, 64, options.seed, load)
        yield first(replace(model, name=f"lublin at {load:g}"), options.days, options.limit)
    for path in options.trace:
        yield first(open_workload(path), options.days, options.limit)


def _policies() -> dict[str, Setting | None]:
    """All policies by name; None marks a reference."""
    return {**SETTINGS, **dict.fromkeys(REFERENCES)}


def _chosen(patterns: Sequence[str]) -> dict[str, Setting | None]:
    known = _policies()
    for pattern in patterns:
        if not any(fnmatch(name, pattern) for name in known):
            raise SystemExit(f"no policy is named {pattern!r}; --list shows them")
    return {
        name: setting
        for name, setting in known.items()
        if any(fnmatch(name, pattern) for pattern in patterns)
    }


def _measure(workload: Workload, policy: str, setting: Setting | None) -> dict[str, Any]:
    """One row: the figures of a policy."""
    progress = _Progress(f"{workload.name}, {policy}")
    began = time.process_time()
    if setting is None:
        figures = run(workload, policy, progress=progress).data()
    else:
        figures = setting.simulate(workload, progress).data["quality"]
    progress.over()
    spent = round(time.process_time() - began, 1)
    return {"workload": workload.name, "policy": policy, **figures, "processor_s": spent}


class _Progress:
    """Tells on the standard error how far a run is, every few seconds."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._began = self._told = time.monotonic()

    def __call__(self, ended: int, total: int) -> None:
        if time.monotonic() - self._told >= _TELL_EVERY_S:
            self._told = time.monotonic()
            self._tell(f"{ended:,} of {total:,} jobs")

    def over(self) -> None:
        self._tell(f"done after {time.monotonic() - self._began:.0f} s")

    def _tell(self, text: str) -> None:
        print(f"{self._title}: {text}", file=sys.stderr, flush=True)


def _text(workload: Workload, rows: Sequence[dict[str, Any]], *, markdown: bool) -> str:
    cells = [["waits in s", *_COLUMNS.values()]]
    for row in rows:
        name = REFERENCES.get(row["policy"], f"ours: {row['policy']}")
        cells.append([name, *(_cell(row, column) for column in _COLUMNS)])
    title = f"{workload.name}: {len(workload.jobs):,} jobs, {len(workload.nodes):,} nodes"
    if markdown:
        rule = ["---", *("---:" for _ in _COLUMNS)]
        lines = (f"| {' | '.join(line)} |" for line in (cells[0], rule, *cells[1:]))
        return "\n".join((title, "", *lines, ""))
    return "\n".join((title, *table(cells), ""))


def _cell(row: dict[str, Any], column: str) -> str:
    value = row[column]
    if value is None:
        return "-"
    if column == "completed":
        return f"{value:,} of {row['total']:,}"
    if column in _SHARES:
        return f"{value:.3f}"
    return f"{value:,.1f}" if column == "slowdown" else f"{value:,.0f}"
