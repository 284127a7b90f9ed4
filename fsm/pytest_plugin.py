"""A plugin for pytest that records which rows of the lifecycles the tests take.

Each of the options ``--fsm-coverage...`` (``pytest --help``) turns the recording on. The same names with underscores are
settings of the configuration file; there only ``fsm_coverage = true`` turns it on. The plugin counts the
lifecycles that a conftest or a test passes to ``track``. When it is off, it does nothing. With
pytest-xdist, worker processes send their counts to the process that reports.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from quadriga.fsm.coverage import Coverage
from quadriga.fsm.lifecycle import Lifecycle

_tracked: dict[str, Lifecycle] = {}
_running: list[Coverage] = []


def track(lifecycle: Lifecycle) -> Lifecycle:
    """Count the rows of this lifecycle, and return it.

    It may be called at any time, before or during the run, and more than once. Raises ``ValueError`` if
    another lifecycle of the same name is tracked.
    """
    if _tracked.setdefault(lifecycle.name, lifecycle) is not lifecycle:
        raise ValueError(f"another lifecycle is named {lifecycle.name!r}")
    for coverage in _running:
        coverage.add(lifecycle)
    return lifecycle


# -- hooks -------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("fsm", "coverage of state machines")
    for suffix, metavar, text in (
        ("", None, "record which rows of the lifecycles the run takes"),
        ("-min", "PERCENT", "fail below this share of all rows taken"),
        ("-guards-min", "PERCENT", "fail below this share of guards seen true and false"),
        ("-effects", None, "notice whether the effects that rows return are read"),
        ("-effects-min", "PERCENT", "fail below this share of the kinds of effects read"),
        ("-report", "FILE.json", "write the number of times each row was taken"),
        ("-of", "NAME", "count only this lifecycle (may be repeated)"),
    ):
        option, (how, setting) = f"--fsm-coverage{suffix}", _KINDS[metavar]
        group.addoption(option, help=text, **how, **({"metavar": metavar} if metavar else {}))
        parser.addini(option[2:].replace("-", "_"), f"as {option}", **setting)


def pytest_configure(config: pytest.Config) -> None:
    asked = ("", "_min", "_guards_min", "_effects", "_effects_min", "_report", "_of")
    options = [config.getoption(f"fsm_coverage{each}") for each in asked]
    given = any(option is not None and option is not False for option in options)
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


#: of an option and of the setting in a file, by what the option takes
_KINDS: dict[str | None, tuple[dict[str, Any], dict[str, Any]]] = {
    None: ({"action": "store_true"}, {"type": "bool", "default": False}),
    "PERCENT": ({"type": _percent}, {"default": ""}),
    "FILE.json": ({}, {"default": ""}),
    "NAME": ({"action": "append"}, {"type": "args", "default": []}),
}


class _Recorder:
    """The recording of one run; it is registered only when the plugin is on."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.least = self._least("fsm_coverage_min")
        self.least_guards = self._least("fsm_coverage_guards_min")
        self.least_effects = self._least("fsm_coverage_effects_min")
        only = config.getoption("fsm_coverage_of") or config.getini("fsm_coverage_of")
        name = "fsm_coverage_effects"
        effects = config.getoption(name) or config.getini(name) or self.least_effects is not None
        self.coverage = Coverage(only, effects=effects)
        for lifecycle in _tracked.values():
            self.coverage.add(lifecycle)
        _running.append(self.coverage)

    def _least(self, name: str) -> float | None:
        given: float | None = self.config.getoption(name)
        text = self.config.getini(name)
        if given is not None or not text:
            return given
        try:
            return _percent(text)
        except argparse.ArgumentTypeError as error:
            raise pytest.UsageError(f"{name}: {error}") from None

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
        coverage = self.coverage
        if unknown := sorted(coverage.only - set(coverage.names)):
            return f"no lifecycle is named {unknown[0]!r}; hand yours to track()"
        for what, least, percent in (
            ("", self.least, coverage.percent),
            (" of guards", self.least_guards, coverage.guards_percent),
            (" of effects", self.least_effects, coverage.effects_percent),
        ):
            if least is not None and not coverage.names:
                return "no lifecycle is tracked; hand yours to track()"
            if least is not None and percent < least:
                return f"less than the {least:g} %{what} asked for"
        return None

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.config.option.collectonly:
            return
        write = terminalreporter.write_line
        terminalreporter.section("rows of lifecycles taken")
        coverage = self.coverage
        for name in coverage.names:
            missing = coverage.missing(name)
            total = coverage.rows(name)
            write(f"{name}: {total - len(missing)} of {total}")
            for row in missing:
                write(f"    not taken: {row}")
            for guard in coverage.guards(name):
                if guard.missing:
                    write(f"    guard never {guard.missing}: {guard.row}")
            for effect in coverage.effects_read(name):
                if not effect.read:
                    write(f"    effect never read: {effect.effect} of {effect.row}")
        if coverage.names:
            write(f"{coverage.percent:.1f} % of all rows")
        if any(map(coverage.guards, coverage.names)):
            write(f"{coverage.guards_percent:.1f} % of all guards seen true and false")
        if any(map(coverage.effects_read, coverage.names)):
            write(f"{coverage.effects_percent:.1f} % of all kinds of effects read")
        problem = self._problem()
        if problem:
            write(problem, red=True)
        elif not coverage.names:
            write("no lifecycle is tracked; hand yours to track()", yellow=True)
