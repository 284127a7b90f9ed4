"""A report as text: plain tables without colours, 100 columns wide."""

# Not compiled: it does not run for every message.

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Any

from quadriga.sim.reports.quality import PERCENTILES
from quadriga.sim.reports.report import Report
from quadriga.sim.workload.model import GIB, MILLI, VCORE

_BARS = " ▁▂▃▄▅▆▇█"
_PLAIN_BARS = " .:-=+*%#"
_WEEK = 7
_WIDTH = 99
#: number of jobs listed by name if several ended the same way
_SHOWN = 5

#: number of holders in the table of those at the end
_SHOWN_HOLDERS = 10
#: number of users in the table of waits, and the columns of that table
_SHOWN_USERS = 10
_BRIEF = ("", "jobs", "mean", "p95", "max")
#: number of groups of jobs that never started for different reasons
_SHOWN_GROUPS = 20

_OUTCOMES = ("completed", "unschedulable", "never_started", "rejected", "failed", "skipped")


def render(report: Report, *, measure: bool = True, unicode: bool = True) -> str:
    """The whole report. `measure` adds wall time and memory; `unicode` draws bars."""
    data = report.data
    blocks = [
        rejection(data),
        _head(data),
        _table("Jobs", *_job_table(data)),
        _gang_lines(data["gangs"]),
        _preemption(data["preemption"]),
        _quality(data["quality"]),
        _table("Waits", *_wait_table(data["waits"])),
        _table("Waits by width", *_width_table(data["waits"]["widths"])),
        _table("Waits by user", *_user_table(data["waits"]["users"])),
        _inside(data["scheduler"]),
        _utilisation(data, _BARS if unicode else _PLAIN_BARS),
        _messages(data),
        _reasons("unschedulable", data["unschedulable"]),
        _never_started(data["never_started"]),
        _held(data["held_at_end"], data["workload"]),
        *(_reasons(name, data[name]) for name in ("rejected", "failed")),
        _reasons("skipped", data["skipped"]),
        _measured(report.measured) if measure else "",
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def rejection(data: dict[str, Any]) -> str:
    """A line if the scheduler rejected jobs, as the figures cover the others alone."""
    rejected, jobs = data["rejected"], data["jobs"]
    if not rejected:
        return ""
    return (
        f"{len(rejected):,} of {jobs['total']:,} jobs were rejected, and nothing else here is about them; "
        f"the first: {rejected[0]['reasons'][0]}"
    )


def duration(seconds: float | None) -> str:
    """A duration in at most two units: ``0.5s``, ``6m10s``, ``1d3h``."""
    if seconds is None:
        return "-"
    if seconds < 60:
        return f"{seconds:.3g}s"
    whole = round(seconds)
    for size, name, part, part_name in (
        (86_400, "d", 3600, "h"),
        (3600, "h", 60, "m"),
    ):
        if whole >= size:
            return f"{whole // size}{name}{whole % size // part}{part_name}"
    return f"{whole // 60}m{whole % 60}s"


def table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Aligned lines. The first row is the header; the first column is text, the others are
    numbers."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for number, row in enumerate(rows):
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        yield ("  " + "  ".join(cells)).rstrip()
        if not number:
            yield "  " + "  ".join("-" * width for width in widths)


def _table(title: str, *rows: Sequence[str]) -> str:
    return "\n".join((title, *table(rows)))


def _head(data: dict[str, Any]) -> str:
    workload, capacity = data["workload"], data["workload"]["capacity"]
    sizes = [_amount(workload, name, amount) for name, amount in capacity.items()]
    return "\n".join(
        (
            f"{workload['name']}: {workload['days']:g} days of submissions",
            f"  {workload['nodes']:,} nodes ({', '.join(sizes)}), {workload['queues']} queues,"
            f" {workload['users']} users",
            f"  node order: {data['options']['node_sort']}",
            *wrap(workload["source"], _WIDTH, initial_indent="  ", subsequent_indent="  "),
        )
    )


def _job_table(data: dict[str, Any]) -> Iterator[Sequence[str]]:
    jobs, gangs = data["jobs"], data["gangs"]
    yield ("", "jobs", "of them gangs")
    for name in _OUTCOMES:
        of_gangs = f"{gangs['completed']:,}" if name == "completed" else ""
        if jobs[name] or name == "completed":
            yield (name.replace("_", " "), f"{jobs[name]:,}", of_gangs)
    yield ("total", f"{jobs['total']:,}", f"{gangs['total']:,}")


def _gang_lines(gangs: dict[str, int]) -> str:
    if not gangs["total"]:
        return ""
    lines = [
        "Gangs",
        f"  {gangs['total']:,} gangs of {gangs['members']:,} members:"
        f" {gangs['placed']:,} held all their placeholders at once,"
        f" {gangs['replaced']:,} members replaced one",
    ]
    lines += [
        f"  {gangs[name]:,} {what}"
        for name, what in (
            ("soft_timeouts", "gave up their placeholders and went on without (Soft)"),
            ("hard_timeouts", "were killed, not having them in time (Hard)"),
            ("confirmations_lost", "confirmations lost on purpose"),
            ("confirmations_repeated", "confirmations repeated on purpose"),
        )
        if gangs.get(name)
    ]
    return "\n".join(lines)


def _preemption(preemption: dict[str, int]) -> str:
    if not preemption["allocations"]:
        return ""
    return (
        f"Preemption\n  {preemption['allocations']:,} allocations were taken back,"
        f" {preemption['restarts']:,} times a job began again"
    )


def _quality(figures: dict[str, Any]) -> str:
    def share(value: float | None) -> str:
        return "-" if value is None else f"{value:.1%}"

    waits = [f"{name} {duration(figures[f'{name}_wait'])}" for name in ("mean", "median", "p95")]
    slowdown, fairness = figures["slowdown"], figures["fairness"]
    rows = (
        ("completed", f"{figures['completed']:,} of {figures['total']:,} jobs"),
        ("wait of these", f"{', '.join(waits)}, longest {duration(figures['longest_wait'])}"),
        ("bounded slowdown", "-" if slowdown is None else f"{slowdown:,.4g}"),
        ("makespan", duration(figures["makespan"])),
        ("utilisation", f"{share(figures['utilisation'])} by running jobs"),
        ("fairness", f"{'-' if fairness is None else f'{fairness:.3f}'} between queues (Jain)"),
        ("preemptions", f"{figures['preemptions']:,}"),
        ("fragmentation", share(figures["fragmentation"])),
    )
    width = max(len(name) for name, _ in rows)
    return "\n".join(("Quality", *(f"  {name.ljust(width)}  {text}" for name, text in rows)))


def _wait_table(waits: dict[str, Any]) -> Iterator[Sequence[str]]:
    names = ("mean", *(f"p{percent}" for percent in PERCENTILES), "max")
    yield ("", "jobs", *names)
    groups = [("all jobs", waits)]
    groups += [(f"queue {name}", beside) for name, beside in waits["queues"].items()]
    for title, both in groups:
        for label, beside in ((title, both), ("  gangs", both["gangs"])):
            if not beside["simulated"]["count"]:
                continue
            for each, figures in (
                (label, beside["simulated"]),
                ("    recorded" if both is not beside else "  recorded", beside["recorded"]),
            ):
                if figures:
                    cells = [duration(figures[name]) for name in names]
                    yield (each, f"{figures['count']:,}", *cells)


def _width_table(widths: dict[str, Any]) -> Iterator[Sequence[str]]:
    yield _BRIEF
    for unit, classes in (("pods", widths["pods"]), ("% of the cluster", widths["percent"])):
        for name, figures in classes.items():
            if figures["count"]:
                yield _brief(f"{name} {unit}", figures)


def _user_table(users: dict[str, Any]) -> Iterator[Sequence[str]]:
    """Those who waited longest on average."""
    yield _BRIEF
    longest = sorted(users.items(), key=lambda each: (-each[1]["mean"], each[0]))
    for name, figures in longest[:_SHOWN_USERS]:
        yield _brief(name, figures)
    if (rest := len(longest) - _SHOWN_USERS) > 0:
        yield (f"and {rest:,} more", "", "", "", "")


def _brief(name: str, figures: dict[str, Any]) -> Sequence[str]:
    return name, f"{figures['count']:,}", *(duration(figures[each]) for each in _BRIEF[2:])


def _inside(told: dict[str, Any] | None) -> str:
    if told is None:
        return ""
    lines = []
    if begun := told["gatherings"]["begun"]:
        idle = duration(told["kept_idle_s"])
        lines.append(
            f"  a gang kept nodes {begun:,} times, in all {idle} of the whole cluster kept idle"
        )
        lent, overran, preempted = told["lending"].values()
        lines.append(
            f"  {lent:,} pods were lent these: {overran:,} overran, {preempted:,} preempted"
        )
    for source, verdicts in told["estimates"].items():
        numbers = ", ".join(f"{number:,} {verdict}" for verdict, number in verdicts.items())
        lines.append(f"  expected run times {source}: {numbers}")
    return "\n".join(["In the scheduler", *lines]) if lines else ""


def _utilisation(data: dict[str, Any], bars: str) -> str:
    usage = data["utilisation"]
    size = _amount(data["workload"], usage["resource"], usage["capacity"])
    days = usage["days"]
    lines = [
        f"Utilisation ({usage['resource']}, {size})",
        f"  mean {usage['mean']:.1%}, peak {usage['peak']:.1%},"
        f" held by placeholders {usage['placeholders']:.2%}",
    ]
    for start in range(0, len(days), _WEEK):
        week = days[start : start + _WEEK]
        cells = "".join(bars[min(8, round(share * 8))] for share in week)
        share = sum(week) / len(week)
        lines.append(f"  week {start // _WEEK + 1:>3}  |{cells.ljust(_WEEK)}|  {share:6.1%}")
    return "\n".join(lines)


def _messages(data: dict[str, Any]) -> str:
    lines = ["Messages"]
    for title, counts in (
        ("to the scheduler", data["messages"]["in"]),
        ("from the scheduler", data["messages"]["out"]),
    ):
        lines.append(f"  {title}")
        width = max(map(len, counts), default=0)
        lines += [f"    {name.ljust(width)}  {count:>9,}" for name, count in counts.items()]
    decisions = data["decisions"]
    lines.append(
        f"  {decisions['total']:,} decisions: {decisions['allocations']:,} allocations,"
        f" {decisions['replacements']:,} replacements"
    )
    return "\n".join(lines)


def _reasons(outcome: str, jobs: list[dict[str, Any]]) -> str:
    """Jobs that ended the same way on one line, followed by all reasons of the first one."""
    alike: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for job in jobs:
        alike[_nameless(job["job"], job["reasons"])].append(job["job"])
    lines = [f"{outcome.capitalize()} jobs: {len(jobs):,}"] if alike else []
    for reasons, names in alike.items():
        lines.append(f"  {_listed(names, len(names))}")
        for reason in dict.fromkeys(reasons):
            lines += wrap(reason, _WIDTH, initial_indent="    ", subsequent_indent="      ")
    return "\n".join(lines)


def _never_started(jobs: list[dict[str, Any]]) -> str:
    """Jobs that others kept from starting for the same reasons on one line, followed by all reasons of
    the first one and by who holds what it needs."""
    alike: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
    for job in jobs:
        holders = tuple(_holders(job["held_by"]))
        alike[(*_nameless(job["job"], job["reasons"]), *holders)].append(job)
    lines = [f"Jobs that never started, but fit the empty cluster: {len(jobs):,}"] if jobs else []
    groups = list(alike.values())
    for group in groups[:_SHOWN_GROUPS]:
        lines.append(f"  {_listed([job['job'] for job in group], len(group))}")
        first = group[0]
        reasons = dict.fromkeys(_nameless(first["job"], first["reasons"]))
        for text in (*reasons, *_holders(first["held_by"])):
            lines += wrap(text, _WIDTH, initial_indent="    ", subsequent_indent="      ")
    if rest := sum(map(len, groups[_SHOWN_GROUPS:])):
        lines.append(f"  and {rest:,} more; the JSON report has all of them")
    return "\n".join(lines)


def _holders(held_by: dict[str, Any]) -> Iterator[str]:
    gathering, running, reserved = (
        held_by[name] for name in ("gathering", "running", "reservations")
    )
    if count := gathering["count"]:
        what = "a gang that gathers" if count == 1 else "gangs that gather"
        yield f"held by {_listed(gathering['first'], count)}: {what}"
    if count := running["count"]:
        yield f"held by {_listed(running['first'], count)}: pods that run"
    if reserved["count"]:
        nodes = [f"{each['node']} (for {each['application']})" for each in reserved["first"]]
        yield f"reserved: {_listed(nodes, reserved['count'])}"
    if held_by["quotas"]:
        yield f"no room left in {', '.join(held_by['quotas'])}"


def _held(held: dict[str, Any], workload: dict[str, Any]) -> str:
    """What is held when nothing moves any more: by whom, and which nodes are reserved for which asks."""
    applications, reservations = held["applications"], held["reservations"]
    lines: list[str] = []
    if applications:
        names = sorted({name for each in applications for name in (*each["holds"], *each["lacks"])})
        rows = [
            (
                each["application"],
                each["queue"],
                "gathers" if each["gathers"] else "runs",
                f"{each['pods']:,} of {each['members']:,}",
                *(_amount(workload, name, each["holds"].get(name, 0)) for name in names),
            )
            for each in applications[:_SHOWN_HOLDERS]
        ]
        header = ("application", "queue", "state", "pods", *(f"holds {name}" for name in names))
        lines += ["Held at the end", *table((header, *rows))]
        if (more := len(applications) - len(rows)) > 0:
            lines.append(f"  and {more:,} more")
    if reservations:
        nodes = [
            f"{each['node']} for {each['ask']} of {each['application']}" for each in reservations
        ]
        text = f"reserved nodes: {_listed(nodes[:_SHOWN], len(nodes))}"
        lines += [] if lines else ["Held at the end"]
        lines += wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="    ")
    return "\n".join(lines)


def _listed(names: list[str], count: int) -> str:
    """The first names, and the number of the others."""
    shown = ", ".join(names[:_SHOWN])
    return f"{shown} and {count - _SHOWN:,} more" if count > _SHOWN else shown


def _nameless(job: str, reasons: list[str]) -> tuple[str, ...]:
    """The reasons without the application's id, so that equal reasons can be counted."""
    own = re.compile(rf"\bapplication {re.escape(job)}(\.\d+)?(-again-\d+)?(?![\w.-])")
    return tuple(own.sub("the application", reason) for reason in reasons)


def _measured(measured: dict[str, Any]) -> str:
    return (
        f"Measured: {measured['wall_s']:.1f} s, {measured['decisions_per_s'] or 0:,} decisions/s,"
        f" peak memory {measured['peak_memory_bytes'] / 1024**2:,.0f} MiB,"
        f" invariants checked {measured['invariants_checked']}"
    )


def _amount(workload: dict[str, Any], name: str, amount: int) -> str:
    if name == VCORE or name in workload.get("shared", ()):
        return f"{amount / MILLI:,.6g} {name}"
    if name == "memory":
        return f"{amount / GIB:,.6g} GiB"
    return f"{amount:,} {name}"
