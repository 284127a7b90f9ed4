"""``quadriga simulate``: runs a workload through the scheduler in virtual time."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from quadriga.cli.connecting import add_connection, connect
from quadriga.cli.errors import FOUND, CommandError, about
from quadriga.cli.memory import look_less_often

if TYPE_CHECKING:
    from quadriga.cli.parsing import Commands
    from quadriga.si.client import Client
    from quadriga.sim.options import SimulationOptions
    from quadriga.sim.reports.report import Report
    from quadriga.sim.simulation import Simulation
    from quadriga.sim.workload import Workload

_EPILOG = """\
examples:
  quadriga simulate --days 7
  quadriga simulate --trace week.swf --nodes 1x256vcore --policy fifo
  quadriga simulate --journal run.jsonl --json report.json
"""

_DAYS = 90

#: bad lines of a trace: so many are skipped by default, and so many are listed
_BAD_LINES = 100
_LISTED = 10

#: options that need --trace
_TRACE_OPTIONS = ("mapping", "nodes", "queue_by", "bad_lines")


def configure(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "simulate",
        help="run a workload in virtual time",
        description="Run a workload through the scheduler in virtual time and report waits,"
        " utilisation and more. Without --trace the workload is a model of 44 nodes, fitted to a real log.",
        epilog=_EPILOG,
    )
    _add_workload(parser)
    _add_scheduler(parser)
    _add_manager(parser)
    add_connection(parser)
    output = parser.add_argument_group("output")
    output.add_argument(
        "--json",
        nargs="?",
        const="-",
        metavar="FILE",
        help="write the report as JSON; it is the same for every run",
    )
    output.add_argument(
        "--measure", action="store_true", help="include time and memory of this run in the JSON"
    )
    output.add_argument(
        "--jobs",
        metavar="FILE",
        help="write a line of CSV for each job: when it was submitted, started and ended, where it ran, and what"
        " it waited for most",
    )
    output.add_argument(
        "--journal",
        metavar="FILE",
        help="write every state change to this file, for 'quadriga story'",
    )
    output.add_argument(
        "--messages",
        metavar="FILE",
        help="write every message between the resource manager and the scheduler to this file, for"
        " 'quadriga draw --messages'",
    )
    output.add_argument(
        "--check", action="store_true", help="check the invariants after every step"
    )
    output.add_argument("--quiet", action="store_true", help="print no report and no progress bar")
    parser.set_defaults(run=run)


def _add_workload(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("workload")
    group.add_argument(
        "--trace",
        metavar="PATH",
        help="a CERIT or Philly folder, an SWF file, the output of sacct -P, or CSV with --mapping;"
        " the format is detected",
    )
    group.add_argument(
        "--mapping",
        metavar="FILE",
        help="mapping file (YAML) of a CSV trace: which columns are which fields of a job",
    )
    group.add_argument(
        "--nodes",
        action="append",
        metavar="GROUP",
        help="nodes for the trace, such as 100x64vcore,256Gi,8gpu; repeatable"
        " (default: those of the trace)",
    )
    group.add_argument(
        "--queue-by",
        metavar="NAME",
        help="what queues are made of: queue, partition or group of SWF; partition, account, qos or"
        " user of sacct (default: queue and partition)",
    )
    group.add_argument(
        "--bad-lines",
        type=int,
        metavar="N",
        help="skip at most N lines of the trace that do not have the format, and list them"
        f" (default: {_BAD_LINES})",
    )
    group.add_argument(
        "--expected-runtime",
        action="store_true",
        help="submit each job with the runtime that its user estimated, if the trace has it (tag"
        " expected.runtime)",
    )
    group.add_argument(
        "--days",
        type=int,
        metavar="N",
        help=f"only the first N days (default: {_DAYS} for the model, all for a trace)",
    )
    group.add_argument("--limit", type=int, metavar="N", help="only the first N jobs")
    group.add_argument(
        "--seed",
        type=int,
        default=1,
        metavar="N",
        help="random seed of the model and of faults (default: 1)",
    )
    group.add_argument(
        "--scale", type=float, metavar="F", help="multiply the number of jobs of the model"
    )
    group.add_argument(
        "--cluster", type=float, metavar="F", help="multiply the number of nodes of the model"
    )


def _add_scheduler(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("scheduler")
    group.add_argument(
        "--config",
        metavar="FILE",
        help="queue configuration (YAML) (default: one leaf for each queue of the workload)",
    )
    group.add_argument(
        "--queue-map",
        action="append",
        default=[],
        metavar="TRACE=QUEUE",
        help="submit jobs of the workload's queue TRACE to QUEUE (root.a.b); * matches all others;"
        " repeatable",
    )
    group.add_argument(
        "--user-map",
        action="append",
        default=[],
        metavar="TRACE=USER[:GROUP,...]",
        help="submit jobs of the workload's user TRACE as USER; * matches all others; repeatable",
    )
    group.add_argument(
        "--print-config", action="store_true", help="print the queue configuration and stop"
    )
    group.add_argument(
        "--policy",
        choices=("fifo", "fair", "stateaware", "expected"),
        help="order of applications in a queue; fair rejects gangs; expected is by waiting time, expected run"
        " time and size (default: fifo)",
    )
    group.add_argument(
        "--node-sort",
        choices=("fair", "binpacking", "bestfit"),
        help="node ordering policy (default: bestfit)",
    )
    group.add_argument(
        "--gang-admission",
        choices=("atomic", "whole", "incremental"),
        help="how gangs get their placeholders (default: atomic)",
    )
    group.add_argument(
        "--reservations",
        action=BooleanOptionalAction,
        default=True,
        help="reserve nodes (default: on)",
    )
    group.add_argument("--message-order", choices=("design", "k8shim"), default="design")
    group.add_argument(
        "--ask-form",
        choices=("ask", "allocation"),
        default="ask",
        help="form of asks; allocation is the form since SI 1.6 (default: ask)",
    )


def _add_manager(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("gangs and pods")
    group.add_argument("--gang-style", choices=("Soft", "Hard"), default="Soft")
    group.add_argument(
        "--placeholder-timeout",
        type=float,
        default=0.0,
        metavar="S",
        help="timeout of placeholders; less than 0 disables it (default: 900)",
    )
    for name, what in (
        ("start", "delay between an allocation and the start of its pod"),
        ("release", "delay until a pod has stopped"),
        ("confirm", "delay until the scheduler is told that a pod has stopped"),
    ):
        group.add_argument(
            f"--latency-{name}", type=float, default=1.0, metavar="S", help=f"{what} (default: 1)"
        )
    group.add_argument(
        "--lose",
        type=float,
        default=0.0,
        metavar="SHARE",
        help="share of confirmations to lose (default: 0)",
    )
    group.add_argument(
        "--repeat",
        type=float,
        default=0.0,
        metavar="SHARE",
        help="share of confirmations to repeat (default: 0)",
    )


def run(arguments: Namespace) -> int:
    """Simulate and print the report."""
    options = _options(arguments)
    workload = _workload(arguments)
    if arguments.print_config:
        print(_configuration(workload, options), end="")
        return 0
    for path in (arguments.journal, arguments.messages, arguments.json, arguments.jobs):
        _must_be_writable(path)
    look_less_often()
    from quadriga.sim.errors import ConfigurationRefused, SimulationError
    from quadriga.sim.reports.rendering import rejection

    with ExitStack() as parts:
        progress = parts.enter_context(Progress(quiet=arguments.quiet))
        client = connect(arguments, "simulate")
        if client is not None:
            parts.enter_context(client)
        try:
            simulation = _simulation(workload, options, progress, client)
            if arguments.jobs is not None:
                simulation.watch_causes()
            with _recorded(arguments.messages, simulation):
                try:
                    report = simulation.run()
                finally:
                    # needed most if something went wrong
                    _write_journal(arguments.journal, simulation)
        except ConfigurationRefused as error:
            raise CommandError(f"simulate: {error}") from error
        except SimulationError as error:
            raise CommandError(f"simulate: {error}", FOUND) from error
    _write_report(arguments, report)
    jobs = report.data["jobs"]
    if arguments.config is not None and jobs["rejected"] == jobs["total"] and not arguments.quiet:
        text = "no job was accepted; --queue-map and --user-map say which queues and users jobs get"
        print(f"quadriga: {text}", file=sys.stderr)
    if report.unaccounted:
        raise CommandError(f"simulate: {report.unaccounted} jobs are not accounted for", FOUND)
    if rejected := rejection(report.data):
        print(f"quadriga: {rejected}", file=sys.stderr)
        return FOUND
    return 0


def _simulation(
    workload: Workload, options: SimulationOptions, progress: Progress, client: Client | None
) -> Simulation:
    if client is None:
        from quadriga.sim.simulation import Simulation

        return Simulation(workload, options, progress)
    from quadriga.sim.remote import RemoteSimulation

    return RemoteSimulation(workload, options, progress, client=client)


def _options(arguments: Namespace) -> SimulationOptions:
    from quadriga.core.config import DEFAULT_NODE_SORT_POLICY
    from quadriga.sim.options import SimulationOptions

    if arguments.connect and (arguments.check or arguments.journal is not None):
        raise CommandError("simulate: --check and --journal need a scheduler in this process")
    made = arguments.policy or arguments.node_sort or arguments.gang_admission
    if arguments.config is not None and made:
        raise CommandError(
            "simulate: --policy, --node-sort and --gang-admission cannot be combined with --config"
        )
    try:
        return SimulationOptions(
            config=_text(arguments.config) if arguments.config is not None else None,
            queue_map=tuple(_pair("--queue-map", text) for text in arguments.queue_map),
            user_map=tuple(_pair("--user-map", text) for text in arguments.user_map),
            policy=arguments.policy or "fifo",
            node_sort=arguments.node_sort or DEFAULT_NODE_SORT_POLICY,
            gang_admission=arguments.gang_admission or "atomic",
            seed=arguments.seed,
            start_s=arguments.latency_start,
            release_s=arguments.latency_release,
            confirm_s=arguments.latency_confirm,
            gang_style=arguments.gang_style,
            placeholder_timeout_s=arguments.placeholder_timeout,
            message_order=arguments.message_order,
            ask_form=arguments.ask_form,
            expected_runtime=arguments.expected_runtime,
            reservations=arguments.reservations,
            lose=arguments.lose,
            repeat=arguments.repeat,
            check=arguments.check,
            journal=arguments.journal is not None,
        )
    except ValueError as error:
        raise CommandError(f"simulate: {error}") from error


def _pair(option: str, text: str) -> tuple[str, str]:
    name, found, instead = text.partition("=")
    if not (found and name and instead):
        raise CommandError(f"simulate: {option} {text}: write {option} TRACE=INSTEAD")
    return name, instead


def _workload(arguments: Namespace) -> Workload:
    from quadriga.sim.selection import first
    from quadriga.sim.workload import WorkloadError, embedded

    try:
        if arguments.trace:
            if arguments.scale is not None or arguments.cluster is not None:
                reason = "--scale and --cluster are for the model, not for a trace"
                raise CommandError(f"simulate: {reason}")
            with about(f"simulate: {arguments.trace}"):
                return first(_trace(arguments), arguments.days, arguments.limit)
        for name in _TRACE_OPTIONS:
            if getattr(arguments, name) is not None:
                option = name.replace("_", "-")
                raise CommandError(f"simulate: --{option} is for a trace, which --trace names")
        model = embedded(
            days=_DAYS if arguments.days is None else arguments.days,
            seed=arguments.seed,
            scale=1.0 if arguments.scale is None else arguments.scale,
            cluster=1.0 if arguments.cluster is None else arguments.cluster,
        )
        return first(model, None, arguments.limit)
    except (WorkloadError, ValueError) as error:
        raise CommandError(f"simulate: {error}") from error


def _trace(arguments: Namespace) -> Workload:
    """The trace. Its bad lines are listed on the standard error."""
    from quadriga.sim.workload import MAX_BAD_LINES, NodesNeeded, open_workload, parse_nodes

    try:
        workload = open_workload(
            arguments.trace,
            nodes=None if arguments.nodes is None else parse_nodes(arguments.nodes),
            queue_by=arguments.queue_by,
            mapping=arguments.mapping,
            bad_lines=MAX_BAD_LINES if arguments.bad_lines is None else arguments.bad_lines,
        )
    except NodesNeeded as error:
        raise CommandError(f"simulate: {error} (--nodes 100x64vcore,256Gi)") from error
    bad = workload.bad_lines
    for line in bad[:_LISTED]:
        print(f"quadriga: {line}", file=sys.stderr)
    if bad:
        first = f" (the first {_LISTED} are listed)" if len(bad) > _LISTED else ""
        print(f"quadriga: bad lines skipped: {len(bad)}{first}", file=sys.stderr)
    return workload


def _configuration(workload: Workload, options: SimulationOptions) -> str:
    from quadriga.sim.queues import queue_configuration

    if options.config is not None:
        return options.config
    return queue_configuration(
        workload,
        policy=options.policy,
        node_sort=options.node_sort,
        gang_admission=options.gang_admission,
    )


def _text(path: str) -> str:
    try:
        with about(f"simulate: {path}"):
            return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise CommandError(f"simulate: {path}: not UTF-8 text") from None


def _must_be_writable(path: str | None) -> None:
    """Fail at once, not after a minute of work."""
    if path is not None and path != "-":
        with about(f"simulate: {path}"):
            Path(path).open("a").close()


@contextmanager
def _recorded(path: str | None, simulation: Simulation) -> Iterator[None]:
    """Write the messages of the run, also if it fails."""
    if path is None:
        yield
        return
    from quadriga.si.recorder import Recorder

    recorder = Recorder(limit=None)
    simulation.record(recorder)
    try:
        yield
    finally:
        with about(f"simulate: {path}"):
            recorder.write(path)


def _write_journal(path: str | None, simulation: Simulation) -> None:
    from quadriga.sim.scripted.recording import write_journal

    if path is not None:
        with about(f"simulate: {path}"):
            write_journal(path, simulation.scheduler.journal)


def _write_report(arguments: Namespace, report: Report) -> None:
    from quadriga.sim.reports.rendering import render

    if arguments.jobs is not None:
        from quadriga.sim.reports.report import write_jobs

        with (
            about(f"simulate: {arguments.jobs}"),
            Path(arguments.jobs).open("w", encoding="utf-8") as file,
        ):
            write_jobs(file, report.fates)
    if arguments.json is not None:
        text = report.json(measure=arguments.measure)
        if arguments.json == "-":
            sys.stdout.write(text)
            return
        with about(f"simulate: {arguments.json}"):
            Path(arguments.json).write_text(text, encoding="utf-8")
    if not arguments.quiet:
        bars = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
        sys.stdout.write(render(report, unicode=bars))


class Progress:
    """Call it with (ended jobs, all jobs). As a context manager it clears the line at the end.

    Drawn by rich if that is installed, else as one line with a percentage.
    """

    def __init__(self, *, quiet: bool) -> None:
        self._shown = not quiet and sys.stderr.isatty()
        self._percent = -1
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if self._shown:
            try:
                from rich.console import Console
                from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
                from rich.progress import Progress as Bar
            except ImportError:
                return self
            self._bar = Bar(
                TextColumn("simulating"),
                BarColumn(),
                TextColumn("{task.completed:,} of {task.total:,} jobs"),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._bar.add_task("simulating", total=0)
            self._bar.start()
        return self

    def __call__(self, ended: int, total: int) -> None:
        if not self._shown:
            return
        if self._bar is not None:
            self._bar.update(self._task, completed=ended, total=total)
        elif (percent := 100 * ended // max(total, 1)) != self._percent:
            self._percent = percent
            sys.stderr.write(f"\rsimulating: {percent:3} %")
            sys.stderr.flush()

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        elif self._percent >= 0:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
