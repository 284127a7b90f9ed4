"""The coverage of rows: counted in a run of pytest, shown, written, and held to a minimum."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from quadriga.fsm import APPLICATION, NODE, Lifecycle, pytest_plugin
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

#: Has imported what takes long, and forks for every run.
SERVER = """
import json, os, sys
import pytest, quadriga.fsm.coverage
for line in sys.stdin:
    folder, arguments = json.loads(line)
    child = os.fork()
    if not child:
        os.chdir(folder)
        for number, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(name, os.O_CREAT | os.O_TRUNC | os.O_WRONLY), number)
        code = pytest.main(arguments)
        sys.stdout.flush(), sys.stderr.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
PASSED, FAILED, MISUSED = (int(pytest.ExitCode(code)) for code in (0, 1, 4))


@dataclass
class Result:
    code: int
    stdout: str
    stderr: str

    @property
    def lines(self) -> list[str]:
        return [line.strip() for line in self.stdout.splitlines()]


Run = Callable[..., Result]


@pytest.fixture(scope="module")
def server() -> Iterator[subprocess.Popen[str]]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", SERVER],
        env=environment | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.communicate()


@pytest.fixture
def run(server: subprocess.Popen[str], tmp_path: Path) -> Run:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_door.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")

    def pytest_(*arguments: str) -> Result:
        assert server.stdin and server.stdout
        options = ["-W", "error", "-p", "no:cacheprovider", "-p", "quadriga.fsm.pytest_plugin"]
        print(json.dumps([str(tmp_path), [*options, *arguments]]), file=server.stdin, flush=True)
        code = int(server.stdout.readline())
        said = [(tmp_path / name).read_text("utf-8") for name in ("stdout", "stderr")]
        return Result(code, *said)

    return pytest_


def test_nothing_is_said_unless_asked_and_only_of_some_lifecycles(run: Run) -> None:
    result = run()
    assert result.code == PASSED, result
    assert "lifecycles" not in result.stdout
    result = run("--fsm-coverage-of=door")
    assert {"door: 3 of 5", "60.0 % of all rows"} <= set(result.lines)
    assert not any(line.startswith("node") for line in result.lines)
    result = run("--fsm-coverage-of=dor")
    assert result.code == FAILED
    assert "no lifecycle is named 'dor'; hand yours to track()" in result.lines


def test_the_summary_names_what_no_test_took_and_what_guards_did_not_answer(run: Run) -> None:
    result = run("--fsm-coverage")
    assert result.code == PASSED, result
    assert set(result.lines) >= {
        "node: 1 of 10",
        "door: 3 of 5",
        "not taken: row 3: Closed --burn--> Gone",
        "not taken: row 3: Open --burn--> Gone",
        "guard never true: row 0: New --accept [created_draining]--> Draining",
        "50.0 % of all guards seen true and false",
    }
    said = result.stdout
    assert "not taken: row 0: Closed --open" not in said
    assert "application" not in said  # it is not tracked
    assert "is_heavy" not in said  # a test has seen both
    assert "effect never" not in said


EFFECTS = """
from types import SimpleNamespace
from quadriga.fsm import Effect, Lifecycle, row, unbounded
from quadriga.fsm.pytest_plugin import track

class Ring(Effect): pass
class Wait(Effect): pass
EFFECTS = (Wait(), Ring())

def ring(bell, fired):
    return EFFECTS

BELL = track(Lifecycle(
    "bell", initial="Still", final=("Rung",), lasts={"Still": unbounded("pull")},
    rows=(row("push", "Still", "Rung", emit=ring), row("pull", "Still", "Rung", emit=ring)),
))

def test_push():
    assert BELL.fire(SimpleNamespace(key="b", state="Still"), "push") == EFFECTS

def test_pull():
    BELL.fire(SimpleNamespace(key="b", state="Still"), "pull")
"""
UNREAD = [f"effect never read: {kind} of row 1: Still --pull--> Rung" for kind in ("Wait", "Ring")]


def test_the_summary_names_effects_that_nothing_has_read(run: Run, tmp_path: Path) -> None:
    (tmp_path / "test_bell.py").write_text(EFFECTS)
    result = run("--fsm-coverage-effects", "--fsm-coverage-of=bell")
    assert result.code == PASSED, result
    assert [line for line in result.lines if line.startswith("effect never")] == UNREAD
    assert "50.0 % of all kinds of effects read" in result.lines
    assert "door:" not in result.stdout


@pytest.mark.parametrize(("of", "option", "met", "missed", "what"), [
    ("door",      "",        "60", "60.1", ""),
    ("door,node", "guards-", "50", "51",   " of guards"),
    ("bell",      "effects-", "50", "51",  " of effects"),
])  # fmt: skip
def test_a_run_below_a_minimum_fails(
    run: Run, tmp_path: Path, of: str, option: str, met: str, missed: str, what: str
) -> None:
    (tmp_path / "test_bell.py").write_text(EFFECTS)
    chosen = [f"--fsm-coverage-of={name}" for name in of.split(",")]
    for least, code in ((met, PASSED), (missed, FAILED)):
        result = run(*chosen, f"--fsm-coverage-{option}min={least}")
        assert result.code == code, result
        assert (f"less than the {missed} %{what} asked for" in result.lines) == (code == FAILED)


NOTHING = "no lifecycle is tracked; hand yours to track()"


def test_where_nothing_is_tracked_it_says_so(run: Run, tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from quadriga.fsm import NODE as DOOR\n")
    (tmp_path / "test_door.py").write_text("def test_nothing(): pass\n")
    result = run("--fsm-coverage")
    assert result.code == PASSED
    assert NOTHING in result.lines
    assert "of all rows" not in result.stdout
    for name in ("min", "guards-min", "effects-min"):
        result = run(f"--fsm-coverage-{name}=0")
        assert result.code == FAILED  # a limit on nothing is a mistake
        assert result.lines.count(NOTHING) == 1


def test_collecting_fails_nothing_and_a_failed_test_is_not_hidden(run: Run, tmp_path: Path) -> None:
    (tmp_path / "test_bad.py").write_text("def test_bad(): assert False\n")
    assert run("--fsm-coverage").code == FAILED
    result = run("--collect-only", "--fsm-coverage-min=100")
    assert result.code == PASSED
    assert "of all rows" not in result.stdout


@pytest.mark.parametrize(
    ("name", "least"),
    [("min", "much"), ("min", "-1"), ("min", "101"), ("guards-min", "nan"), ("effects-min", "a")],
)
def test_a_minimum_must_be_a_percentage(run: Run, tmp_path: Path, name: str, least: str) -> None:
    result = run(f"--fsm-coverage-{name}={least}")
    assert result.code == MISUSED
    assert f"'{least}' is not a percentage from 0 to 100" in result.stderr

    setting = f"fsm_coverage_{name.replace('-', '_')}"
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nfsm_coverage = true\n{setting} = {least}\n")
    result = run()
    assert result.code == MISUSED
    assert f"{setting}: '{least}' is not a percentage" in result.stderr


def test_the_report_can_be_painted(run: Run, tmp_path: Path) -> None:
    assert run("--fsm-coverage-report=out/fsm.json").code == PASSED
    report = json.loads((tmp_path / "out" / "fsm.json").read_text(encoding="utf-8"))
    assert list(report) == ["node", "door"]
    rows = report["door"]["rows"]
    ends = {"trigger": "open", "source": "Closed", "target": None}
    assert rows[0] == {"line": 0, **ends, "guard": "is_heavy", "count": 1}
    assert [(e["line"], e["count"]) for e in rows] == [*((0, 1), (1, 2), (2, 1), (3, 0), (3, 0))]
    assert sum(each["count"] for each in report["node"]["rows"]) == 1
    assert report["door"]["guards"] == [
        {"line": 0, "source": "Closed", "guard": "is_heavy", "true": 1, "false": 2}
    ]


def test_settings_say_the_same_as_options(run: Run, tmp_path: Path) -> None:
    settings = tmp_path / "pytest.ini"
    settings.write_text(
        "[pytest]\nfsm_coverage = true\nfsm_coverage_of = door node\n"
        "fsm_coverage_min = 90\nfsm_coverage_report = fsm.json\n"
    )
    result = run()
    assert result.code == FAILED
    assert "less than the 90 % asked for" in result.lines
    assert list(json.loads((tmp_path / "fsm.json").read_text())) == ["node", "door"]
    assert run("--fsm-coverage-min=1").code == PASSED  # the option is the stronger
    # a minimum alone does not turn it on
    settings.write_text("[pytest]\nfsm_coverage_min = 90\n")
    assert run().code == PASSED


# -- without a run -----------------------------------------------------------------------------


def accept(node: Lifecycle, **info: Any) -> None:
    node.fire(SimpleNamespace(key="n-1", state="New"), "accept", **info)


@pytest.mark.parametrize("stock", [False, True])
def test_coverage_counts_between_add_and_stop(twin: Any, stock: bool) -> None:
    node, coverage = twin(NODE, stock=stock), Coverage()
    accept(node)
    coverage.add(node)
    coverage.add(node)  # twice is once
    accept(node, draining=True)
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
    accept(node, draining=True)
    coverage.stop()
    (guard,) = coverage.guards("node")
    assert (guard.true, guard.false, guard.missing) == (1, 1, "")
    assert coverage.guards_percent == 100


def test_coverage_counts_a_model_of_the_shared_machine_and_nothing_is_all(twin: Any) -> None:
    node, coverage = twin(NODE), Coverage()
    coverage.add(node)
    model: Any = SimpleNamespace()
    node.machine.add_model(model)
    model.reject()
    coverage.stop()
    assert coverage.count("node", node.rows[2]) == 1
    assert (Coverage().percent, Coverage().guards_percent) == (100, 100)


def test_observers_do_not_disturb_each_other_and_the_fast_way_comes_back(twin: Any) -> None:
    node, untouched = twin(NODE), twin(NODE)
    taken: list[Any] = []
    first, second = node.observe(taken.append), node.observe(taken.append)
    coverage = Coverage()
    coverage.add(node)
    accept(node)
    first()
    first()  # twice is once
    accept(node)
    assert len(taken) == 3
    assert node._cells != untouched._cells
    second()
    accept(node)
    coverage.stop()
    assert (len(taken), coverage.count("node", node.rows[1])) == (3, 3)
    assert node._cells == untouched._cells


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


def test_names_are_tracked_once_and_what_is_tracked_during_a_run_is_counted(
    monkeypatch: pytest.MonkeyPatch, twin: Any
) -> None:
    running, node = Coverage(), twin(NODE)
    monkeypatch.setattr(pytest_plugin, "_tracked", {})
    monkeypatch.setattr(pytest_plugin, "_running", [running])
    assert track(node) is track(node) is node
    with pytest.raises(ValueError, match="^another lifecycle is named 'node'$"):
        track(twin(NODE))
    accept(node)
    running.stop()
    assert running.count("node", node.rows[1]) == 1
