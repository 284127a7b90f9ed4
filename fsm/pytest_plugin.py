"""A plugin for pytest that records which rows of the lifecycles the tests take.

::

    pytest --fsm-coverage                            a summary, with the rows that no test took
    pytest --fsm-coverage-min=95                     fails below 95 % of all rows
    pytest --fsm-coverage-report=fsm.json            a file with the counts, for diagrams
    pytest --fsm-coverage-of=order                   only this lifecycle (may be repeated)

Each of the last three options also turns the recording on. The same names with underscores are
settings of the configuration file; there only ``fsm_coverage = true`` turns it on. The plugin knows the
scheduler's seven lifecycles and those that a conftest or a test passes to ``track``. When it is off, it
does nothing. With pytest-xdist, worker processes send their counts to the process that reports.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from quadriga.fsm import LIFECYCLES, Lifecycle, Row
from quadriga.fsm.table import name_of

__all__ = ["Coverage", "track"]

#: Counts of the rows by the name of the lifecycle, in the order of its rows; data that can be sent to
#: another process.
Counts = dict[str, list[int]]

_tracked: dict[str, Lifecycle] = dict(LIFECYCLES)
_running: list[Coverage] = []


def track(lifecycle: Lifecycle) -> Lifecycle:
    """Count the rows of this lifecycle too, and return it.

    It may be called at any time, before or during the run, and more than once. Raises ``ValueError`` if
    another lifecycle of the same name is known.
    """
    if _tracked.setdefault(lifecycle.name, lifecycle) is not lifecycle:
        raise ValueError(f"another lifecycle is named {lifecycle.name!r}")
    for coverage in _running:
        coverage.add(lifecycle)
    return lifecycle


class Coverage:
    """The number of times that each row of some lifecycles was taken between ``add`` and ``stop``."""

    def __init__(self, only: Iterable[str] = ()) -> None:
        self.only = frozenset(only)
        self.lifecycles: dict[str, Lifecycle] = {}
        self._counts: dict[str, dict[Row, int]] = {}
        self._stops: list[Callable[[], None]] = []

    def add(self, lifecycle: Lifecycle) -> None:
        """Start counting, unless the run is limited to other lifecycles."""
        name = lifecycle.name
        if name in self.lifecycles or (self.only and name not in self.only):
            return
        self.lifecycles[name] = lifecycle
        counts = self._counts[name] = dict.fromkeys(lifecycle.rows, 0)

        def taken(row: Row) -> None:
            counts[row] += 1

        self._stops.append(lifecycle.observe(taken))

    def stop(self) -> None:
        """Stop counting and keep the counts."""
        while self._stops:
            self._stops.pop()()

    def count(self, name: str, row: Row) -> int:
        """The number of times that this row of the lifecycle was taken."""
        return self._counts[name][row]

    def missing(self, name: str) -> tuple[Row, ...]:
        """The rows that were never taken, in the order of the table."""
        return tuple(row for row, count in self._counts[name].items() if not count)

    @property
    def percent(self) -> float:
        """The share of rows taken, over all lifecycles; 100 if there are no rows."""
        total = sum(len(counts) for counts in self._counts.values())
        missing = sum(len(self.missing(name)) for name in self.lifecycles)
        return 100 * (total - missing) / total if total else 100.0

    def report(self) -> dict[str, Any]:
        """``{name: {"rows": [{line, trigger, source, target, guard, count}]}}``, in table order.

        A row that stays has no target.
        """
        return {
            name: {
                "rows": [
                    {
                        "line": row.line,
                        "trigger": row.trigger,
                        "source": row.source,
                        "target": row.target,
                        "guard": name_of(row.guard) if row.guard else None,
                        "count": count,
                    }
                    for row, count in counts.items()
                ]
            }
            for name, counts in self._counts.items()
        }

    def counts(self) -> Counts:
        """All counts, for ``merge`` in another process."""
        return {name: list(counts.values()) for name, counts in self._counts.items()}

    def merge(self, counts: Mapping[str, list[int]]) -> None:
        """Add the counts of another process for the lifecycles known here."""
        for name, mine in self._counts.items():
            for row, count in zip(mine, counts.get(name, ()), strict=False):
                mine[row] += count


# -- hooks -------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("fsm", "coverage of state machines")
    group.addoption(
        "--fsm-coverage",
        action="store_true",
        help="record which rows of the lifecycles the run takes",
    )
    group.addoption(
        "--fsm-coverage-min",
        type=_percent,
        metavar="PERCENT",
        help="fail where less than this share of all rows was taken",
    )
    group.addoption(
        "--fsm-coverage-report",
        metavar="FILE.json",
        help="write the number of times each row was taken",
    )
    group.addoption(
        "--fsm-coverage-of",
        action="append",
        metavar="NAME",
        help="count only this lifecycle (may be repeated)",
    )
    parser.addini("fsm_coverage", "as --fsm-coverage", type="bool", default=False)
    parser.addini("fsm_coverage_min", "as --fsm-coverage-min", default="")
    parser.addini("fsm_coverage_report", "as --fsm-coverage-report", default="")
    parser.addini("fsm_coverage_of", "as --fsm-coverage-of", type="args", default=[])


def pytest_configure(config: pytest.Config) -> None:
    asked = ("coverage", "coverage_min", "coverage_report", "coverage_of")
    given = any(config.getoption(f"fsm_{each}") not in (None, False) for each in asked)
    if given or config.getini("fsm_coverage"):
        config.pluginmanager.register(_Recorder(config), "fsm-recorder")


def _percent(text: str) -> float:
    try:
        percent = float(text)
    except ValueError:
        percent = -1.0
    if not 0 <= percent <= 100:
        raise argparse.ArgumentTypeError(f"{text!r} is not a percentage from 0 to 100")
    return percent


class _Recorder:
    """The recording of one run; it is registered only when the plugin is on."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.least = self._least()
        only = config.getoption("fsm_coverage_of") or config.getini("fsm_coverage_of")
        self.coverage = Coverage(only)
        for lifecycle in _tracked.values():
            self.coverage.add(lifecycle)
        _running.append(self.coverage)

    def _least(self) -> float | None:
        given: float | None = self.config.getoption("fsm_coverage_min")
        text = self.config.getini("fsm_coverage_min")
        if given is not None or not text:
            return given
        try:
            return _percent(text)
        except argparse.ArgumentTypeError as error:
            raise pytest.UsageError(f"fsm_coverage_min: {error}") from None

    def pytest_unconfigure(self) -> None:
        self.coverage.stop()
        if self.coverage in _running:
            _running.remove(self.coverage)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self.coverage.stop()
        worker = getattr(self.config, "workeroutput", None)
        if worker is not None:
            worker["fsm_coverage"] = self.coverage.counts()
            return
        if self.config.option.collectonly:
            return
        if file := self._file():
            file.parent.mkdir(parents=True, exist_ok=True)
            text = json.dumps(self.coverage.report(), indent=1, ensure_ascii=False)
            file.write_text(text + "\n", encoding="utf-8")
        if self._problem() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A worker of pytest-xdist has ended."""
        self.coverage.merge(getattr(node, "workeroutput", {}).get("fsm_coverage", {}))

    def _file(self) -> Path | None:
        option: str | None = self.config.getoption("fsm_coverage_report")
        setting: str = self.config.getini("fsm_coverage_report")
        if option:
            return Path(self.config.invocation_params.dir, option)
        return Path(self.config.rootpath, setting) if setting else None

    def _problem(self) -> str | None:
        """The reason for which the run fails although its tests passed."""
        if unknown := sorted(self.coverage.only - set(self.coverage.lifecycles)):
            return f"no lifecycle is named {unknown[0]!r}; hand yours to track()"
        if self.least is not None and self.coverage.percent < self.least:
            return f"less than the {self.least:g} % asked for"
        return None

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.config.option.collectonly:
            return
        write = terminalreporter.write_line
        terminalreporter.section("rows of lifecycles taken")
        for name, lifecycle in self.coverage.lifecycles.items():
            missing = self.coverage.missing(name)
            taken = len(lifecycle.rows) - len(missing)
            write(f"{name}: {taken} of {len(lifecycle.rows)}")
            for row in missing:
                write(f"    not taken: {row}")
        write(f"{self.coverage.percent:.1f} % of all rows")
        if problem := self._problem():
            write(problem, red=True)
