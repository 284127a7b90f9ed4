"""The coverage of rows: counted in a run of pytest, shown, written, and held to a minimum."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from quadriga.fsm import APPLICATION, NODE, Lifecycle, pytest_plugin, row, unbounded
from quadriga.fsm.pytest_plugin import Coverage, track

CONFTEST = """
from quadriga.fsm import NODE, STAYS, Lifecycle, row, unbounded
from quadriga.fsm.pytest_plugin import track

track(NODE)

def is_heavy(door, info):
    return bool(info.get("heavy"))

DOOR = track(Lifecycle(
    "door", initial="Closed", final=("Gone",),
    lasts={"Closed": unbounded("open"), "Open": unbounded("close")},
    rows=(
        row("open", "Closed", STAYS, when=is_heavy, why="it does not move"),
        row("open", "Closed", "Open"),
        row("close", "Open", "Closed"),
        row("burn", ("Closed", "Open"), "Gone"),
    ),
))
"""
TESTS = """
from types import SimpleNamespace
from conftest import DOOR
from quadriga.fsm import NODE

def test_a_door():
    door = SimpleNamespace(key="d-1", state="Closed")
    fire = DOOR.fire
    fire(door, "open", heavy=True)
    fire(door, "open")
    fire(door, "close")
    fire(door, "open")

def test_a_node():
    NODE.fire(SimpleNamespace(key="n-1", state="New"), "accept")
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run pytest on the door, with this plugin and no other."""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_door.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")

    def pytest_(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")
        }
        return subprocess.run(
            [
                *(sys.executable, "-W", "error", "-m", "pytest", "-W", "error"),
                *("-p", "no:cacheprovider", "-p", "quadriga.fsm.pytest_plugin", *arguments),
            ],
            cwd=tmp_path,
            env=environment | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            capture_output=True,
            text=True,
            check=False,
        )

    return pytest_


def lines(result: subprocess.CompletedProcess[str]) -> list[str]:
    return [line.strip() for line in result.stdout.splitlines()]


def test_nothing_is_said_unless_asked(run: Run) -> None:
    result = run()
    assert result.returncode == 0, result.stdout + result.stderr
    assert "lifecycles" not in result.stdout


def test_the_summary_names_what_no_test_took(run: Run) -> None:
    result = run("--fsm-coverage")
    assert result.returncode == 0, result.stdout + result.stderr
    said = lines(result)
    assert "node: 1 of 10" in said
    assert "door: 3 of 5" in said
    assert "not taken: row 3: Closed --burn--> Gone" in said
    assert "not taken: row 3: Open --burn--> Gone" in said
    assert not any(line.startswith("not taken: row 0: Closed --open") for line in said)
    assert not any(line.startswith("application") for line in said)  # it is not tracked


def test_the_summary_names_the_answers_that_guards_did_not_give(run: Run) -> None:
    said = lines(run("--fsm-coverage"))
    assert "guard never true: row 0: New --accept [created_draining]--> Draining" in said
    assert not any("is_heavy" in line for line in said)  # a test has seen both
    assert "50.0 % of all guards seen true and false" in said


@pytest.mark.parametrize(("least", "passes"), [("50", True), ("51", False)])
def test_guards_can_be_held_to_a_minimum(run: Run, least: str, passes: bool) -> None:
    result = run(f"--fsm-coverage-guards-min={least}")
    assert result.returncode == (0 if passes else pytest.ExitCode.TESTS_FAILED)
    assert ("less than the 51 % of guards asked for" in lines(result)) == (not passes)


EFFECTS = """
from dataclasses import dataclass
from types import SimpleNamespace
from quadriga.fsm import Effect, Lifecycle, row, unbounded
from quadriga.fsm.pytest_plugin import track

@dataclass(frozen=True)
class Ring(Effect):
    times: int

@dataclass(frozen=True)
class Wait(Effect):
    pass

def ring(bell, fired):
    return (Wait(), Ring(3))

BELL = track(Lifecycle(
    "bell", initial="Still", final=("Rung",), lasts={"Still": unbounded("pull")},
    rows=(row("push", "Still", "Rung", emit=ring), row("pull", "Still", "Rung", emit=ring)),
))

def test_push():
    assert BELL.fire(SimpleNamespace(key="b", state="Still"), "push") == (Wait(), Ring(3))

def test_pull():
    BELL.fire(SimpleNamespace(key="b", state="Still"), "pull")
"""
UNREAD = [f"effect never read: {kind} of row 1: Still --pull--> Rung" for kind in ("Wait", "Ring")]


def test_the_summary_names_effects_that_nothing_has_read(run: Run, tmp_path: Path) -> None:
    (tmp_path / "test_bell.py").write_text(EFFECTS)
    result = run("--fsm-coverage-effects", "--fsm-coverage-of=bell")
    assert result.returncode == 0, result.stdout + result.stderr
    said = lines(result)
    assert [line for line in said if line.startswith("effect never")] == UNREAD
    assert "50.0 % of all kinds of effects read" in said
    assert "effect never" not in run("--fsm-coverage", "--fsm-coverage-of=bell").stdout


@pytest.mark.parametrize(("least", "passes"), [("50", True), ("51", False)])
def test_effects_can_be_held_to_a_minimum(
    run: Run, tmp_path: Path, least: str, passes: bool
) -> None:
    (tmp_path / "test_bell.py").write_text(EFFECTS)
    result = run(f"--fsm-coverage-effects-min={least}", "--fsm-coverage-of=bell")
    assert result.returncode == (0 if passes else pytest.ExitCode.TESTS_FAILED)
    assert ("less than the 51 % of effects asked for" in lines(result)) == (not passes)
    assert UNREAD[0] in lines(result)


NOTHING = "no lifecycle is tracked; hand yours to track()"


def test_where_nothing_is_tracked_it_says_so(run: Run, tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from quadriga.fsm import NODE as DOOR\n")
    (tmp_path / "test_door.py").write_text("def test_nothing(): pass\n")
    result = run("--fsm-coverage")
    assert result.returncode == 0
    assert NOTHING in lines(result)
    assert "of all rows" not in result.stdout
    for name in ("min", "guards-min", "effects-min"):
        result = run(f"--fsm-coverage-{name}=0")
        assert result.returncode == pytest.ExitCode.TESTS_FAILED  # a limit on nothing is a mistake
        assert lines(result).count(NOTHING) == 1


def test_only_some_lifecycles(run: Run) -> None:
    said = lines(run("--fsm-coverage-of=door"))
    assert "door: 3 of 5" in said
    assert "60.0 % of all rows" in said
    assert not any(line.startswith("node") for line in said)


def test_a_lifecycle_that_nobody_knows(run: Run) -> None:
    result = run("--fsm-coverage-of=dor")
    assert result.returncode == pytest.ExitCode.TESTS_FAILED
    assert "no lifecycle is named 'dor'; hand yours to track()" in lines(result)


@pytest.mark.parametrize(("least", "passes"), [("60", True), ("60.1", False)])
def test_a_run_below_the_minimum_fails(run: Run, least: str, passes: bool) -> None:
    result = run("--fsm-coverage-of=door", f"--fsm-coverage-min={least}")
    assert result.returncode == (0 if passes else pytest.ExitCode.TESTS_FAILED)
    assert ("less than the 60.1 % asked for" in lines(result)) == (not passes)


def test_a_failed_test_is_not_hidden(run: Run, tmp_path: Path) -> None:
    (tmp_path / "test_bad.py").write_text("def test_bad(): assert False\n")
    assert run("--fsm-coverage").returncode == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize("name", ["min", "guards-min", "effects-min"])
@pytest.mark.parametrize("least", ["much", "-1", "101", "nan"])
def test_a_minimum_must_be_a_percentage(run: Run, tmp_path: Path, name: str, least: str) -> None:
    result = run(f"--fsm-coverage-{name}={least}")
    assert result.returncode == pytest.ExitCode.USAGE_ERROR
    assert f"'{least}' is not a percentage from 0 to 100" in result.stderr

    setting = f"fsm_coverage_{name.replace('-', '_')}"
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nfsm_coverage = true\n{setting} = {least}\n")
    result = run()
    assert result.returncode == pytest.ExitCode.USAGE_ERROR
    assert f"{setting}: '{least}' is not a percentage" in result.stderr


def test_the_report_can_be_painted(run: Run, tmp_path: Path) -> None:
    assert run("--fsm-coverage-report=out/fsm.json").returncode == 0
    report = json.loads((tmp_path / "out" / "fsm.json").read_text(encoding="utf-8"))
    assert list(report) == ["node", "door"]
    assert report["door"]["rows"][0] == {
        "line": 0,
        "trigger": "open",
        "source": "Closed",
        "target": None,
        "guard": "is_heavy",
        "count": 1,
    }
    assert [each["count"] for each in report["door"]["rows"]] == [1, 2, 1, 0, 0]
    assert [each["line"] for each in report["door"]["rows"]] == [0, 1, 2, 3, 3]
    assert sum(each["count"] for each in report["node"]["rows"]) == 1
    assert report["door"]["guards"] == [
        {"line": 0, "source": "Closed", "guard": "is_heavy", "true": 1, "false": 2}
    ]


def test_settings_say_the_same_as_options(run: Run, tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nfsm_coverage = true\nfsm_coverage_of = door node\n"
        "fsm_coverage_min = 90\nfsm_coverage_report = fsm.json\n"
    )
    result = run()
    assert result.returncode == pytest.ExitCode.TESTS_FAILED
    assert "less than the 90 % asked for" in lines(result)
    assert list(json.loads((tmp_path / "fsm.json").read_text())) == ["node", "door"]
    assert run("--fsm-coverage-min=1").returncode == 0  # the option is the stronger


def test_a_minimum_in_the_settings_does_not_turn_it_on(run: Run, tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nfsm_coverage_min = 90\n")
    assert run().returncode == 0


def test_collecting_alone_fails_nothing(run: Run) -> None:
    result = run("--collect-only", "--fsm-coverage-min=100")
    assert result.returncode == 0
    assert "of all rows" not in result.stdout


# -- without a run -----------------------------------------------------------------------------


def accept(node: Lifecycle) -> None:
    node.fire(SimpleNamespace(key="n-1", state="New"), "accept")


def test_coverage_counts_between_add_and_stop(twin: Any) -> None:
    node, coverage = twin(NODE), Coverage()
    accept(node)
    coverage.add(node)
    coverage.add(node)  # twice is once
    node.fire(SimpleNamespace(key="n-1", state="New"), "accept", draining=True)
    accept(node)
    accept(node)
    coverage.stop()
    accept(node)
    assert [coverage.count("node", row) for row in node.rows[:3]] == [1, 2, 0]
    assert len(coverage.missing("node")) == 8
    assert coverage.percent == 20


def test_guards_answer_by_the_rows_that_are_taken(twin: Any) -> None:
    node, coverage = twin(NODE), Coverage()
    coverage.add(node)
    (guard,) = coverage.guards("node")
    assert (guard.guard, guard.true, guard.false) == ("created_draining", 0, 0)
    assert guard.missing == "true or false"
    accept(node)
    assert [each.missing for each in coverage.guards("node")] == ["true"]
    assert coverage.guards_percent == 0
    node.fire(SimpleNamespace(key="n-1", state="New"), "accept", draining=True)
    coverage.stop()
    (guard,) = coverage.guards("node")
    assert (guard.true, guard.false, guard.missing) == (1, 1, "")
    assert coverage.guards_percent == 100


def test_nothing_to_take_is_all_taken() -> None:
    assert Coverage().percent == 100
    assert Coverage().guards_percent == 100


def test_a_model_of_the_shared_machine_counts(twin: Any) -> None:
    node, coverage = twin(NODE), Coverage()
    coverage.add(node)
    model: Any = SimpleNamespace()
    node.machine.add_model(model)
    model.reject()
    coverage.stop()
    assert coverage.count("node", node.rows[2]) == 1


def test_a_row_that_fails_was_not_taken(born: Any) -> None:
    def broken(it: Any, fired: Any) -> Any:
        raise KeyError

    line = row("go", "A", "B", emit=broken)
    table = Lifecycle("t", initial="A", final=("B",), lasts={"A": unbounded("go")}, rows=(line,))
    coverage = Coverage()
    coverage.add(table)
    with pytest.raises(KeyError):
        table.fire(born("A"), "go")
    assert coverage.percent == 0


def test_two_observers_do_not_disturb_each_other(twin: Any) -> None:
    node, first, second = twin(NODE), Coverage(), Coverage()
    first.add(node)
    second.add(node)
    accept(node)
    first.stop()
    accept(node)
    second.stop()
    assert (first.count("node", node.rows[1]), second.count("node", node.rows[1])) == (1, 2)


def test_after_the_last_observer_the_fast_way_is_back(twin: Any) -> None:
    node, untouched = twin(NODE), twin(NODE)
    stop = node.observe(print)
    assert node._cells != untouched._cells
    stop()
    stop()  # twice is once
    assert node._cells == untouched._cells


def test_observing_changes_no_outcome(edge: Any, born: Any, steer: Any, twin: Any) -> None:
    lifecycle, row = edge
    it, watched = born(row.source), born(row.source)
    observed = twin(lifecycle)
    observed.observe(lambda taken: None)
    expected = lifecycle.fire(it, row.trigger, **steer(it, row))
    assert observed.fire(watched, row.trigger, **steer(watched, row)) == expected
    assert watched.state == it.state


def test_the_stock_machine_is_observed(twin: Any) -> None:
    node, coverage = twin(NODE, stock=True), Coverage()
    coverage.add(node)
    accept(node)
    coverage.stop()
    accept(node)
    assert coverage.count("node", node.rows[1]) == 1


def test_counts_of_several_processes_are_added(twin: Any) -> None:
    mine, theirs = Coverage(), Coverage()
    mine.add(twin(NODE))
    node = twin(NODE)
    theirs.add(node)
    accept(node)
    theirs.add(twin(APPLICATION))
    for _ in range(2):
        mine.merge(json.loads(json.dumps(theirs.counts())))
    assert mine.count("node", node.rows[1]) == 2
    # A worker of pytest-xdist tracks tables of test modules, which the reporting process does not load.
    assert list(mine.report()) == ["node", "application"]
    assert mine.count("application", APPLICATION.rows[0]) == 0


def test_names_are_tracked_once(monkeypatch: pytest.MonkeyPatch, twin: Any) -> None:
    monkeypatch.setattr(pytest_plugin, "_tracked", {})
    assert track(NODE) is track(NODE) is NODE
    with pytest.raises(ValueError, match="^another lifecycle is named 'node'$"):
        track(twin(NODE))


def test_what_is_tracked_during_a_run_is_counted(
    monkeypatch: pytest.MonkeyPatch, twin: Any
) -> None:
    running, node = Coverage(), twin(NODE)
    monkeypatch.setattr(pytest_plugin, "_tracked", {})
    monkeypatch.setattr(pytest_plugin, "_running", [running])
    track(node)
    accept(node)
    running.stop()
    assert running.count("node", node.rows[1]) == 1


def test_one_function_may_observe_twice(twin: Any) -> None:
    node = twin(NODE)
    taken: list[Any] = []
    first, second = node.observe(taken.append), node.observe(taken.append)
    accept(node)
    first()
    first()
    accept(node)
    second()
    assert len(taken) == 3
