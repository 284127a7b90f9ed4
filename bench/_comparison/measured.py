"""How the figures are taken, and what several modules need."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from time import perf_counter_ns, process_time_ns

ROUNDS = 9
TURNS = 3_000
OBJECTS = 500


class Plain:
    """An object without a state of its own."""


def time(turn: Callable[[], object], turns: int = TURNS) -> float:
    """The time of one call (ns): the best of several rounds. The call through ``turn`` itself is in it."""
    best = float("inf")
    for _ in range(ROUNDS):
        gc.collect()
        begun = process_time_ns()
        for _ in range(turns):
            turn()
        best = min(best, (process_time_ns() - begun) / turns)
    return best


def memory(make: Callable[[], object]) -> float:
    """The bytes of one object with all that it keeps alive and does not share with the others."""
    kept = [make() for _ in range(OBJECTS)]
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    kept += [make() for _ in range(OBJECTS)]
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del kept
    return (after - before) / OBJECTS


def import_time(package: str) -> float:
    """The time (ns) of an import in a new process, without that of Python itself: the best of five."""
    best = float("inf")
    for _ in range(5):
        begun = perf_counter_ns()
        subprocess.run([sys.executable, "-c", f"import {package}"], check=True)
        middle = perf_counter_ns()
        subprocess.run([sys.executable, "-c", ""], check=True)
        best = min(best, (middle - begun) - (perf_counter_ns() - middle))
    return best


def mypy(program: str, expected: str) -> str:
    """Whether ``mypy --strict`` finds the mistake in the last line of a program, and nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "program.py")
        file.write_text(program, encoding="utf-8")
        command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", str(file)]
        found = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    last = len(program.splitlines())
    errors = [line for line in found.stdout.splitlines() if ": error: " in line]
    hits = [line for line in errors if f":{last}: error: " in line and expected in line]
    others = [line for line in errors if line not in hits]
    said = f"yes: `{hits[0].partition(': error: ')[2]}`" if hits else "no"
    if others:
        said += f"; {len(others)} other errors: `{others[0].partition(': error: ')[2]}`"
    return said


TESTED = """
from quadriga.fsm import Lifecycle, row, unbounded
from quadriga.fsm.pytest_plugin import track
LAMP = Lifecycle("lamp", initial="Off", final=(), lasts={"Off": unbounded("on"), "On": unbounded("off")},
                 rows=(row("on", "Off", "On"), row("off", "On", "Off")))
track(LAMP)
class Lamp:
    key, state = "x", "Off"
def test_it():
    LAMP.fire(Lamp(), "on")
"""


def pytest_coverage() -> str:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "test_lamp.py").write_text(TESTED, encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "quadriga.fsm.pytest_plugin"]
        command += ["--fsm-coverage", "test_lamp.py"]
        environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=folder, env=environment, check=False
        )
    wanted = ("lamp: ", "not taken: ")
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip().startswith(wanted)]
    if done.returncode or not lines:
        raise RuntimeError(done.stdout + done.stderr)
    return f"a pytest plugin: `{', '.join(lines)}`"
