"""Standard interpreters run the SCXML of every lifecycle, and do what the table says.

Two are used where they are installed: python-statemachine, and the one of Qt (PySide6-Addons).
``QUADRIGA_REQUIRE_SCXML`` names those that must be (``python-statemachine,PySide6-Addons``).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from quadriga.cli.catalogue import all_lifecycles
from quadriga.diagrams import render
from quadriga.diagrams.wording import function_name, identifiers
from quadriga.fsm import Lifecycle, tour

INTERPRETERS = {"python-statemachine": "statemachine", "PySide6-Addons": "PySide6.QtScxml"}
PROGRAM = Path(__file__).with_name("scxml_interpreters.py")


def require(package: str) -> None:
    module = INTERPRETERS[package]
    if find_spec(module.partition(".")[0]) is None or find_spec(module) is None:
        if package in os.environ.get("QUADRIGA_REQUIRE_SCXML", "").split(","):
            pytest.fail(f"{package} is missing")
        pytest.skip(f"{package} is not installed")


def walks_of(lifecycle: Lifecycle) -> tuple[list[list[Any]], list[list[str | None]]]:
    """Walks that together take every row, with an illegal trigger before each step; and the states.

    An illegal trigger changes nothing: SCXML ignores an event that no transition takes.
    """
    ids: dict[str, str | None] = {**identifiers(lifecycle.states)}
    ids |= dict.fromkeys(lifecycle.final)
    names = {function_name(row.guard) for row in lifecycle.rows if row.guard}
    illegal = {
        state: [each for each in lifecycle.triggers() if not lifecycle.allows(state, each)]
        for state in lifecycle.states
    }
    walks, states = [], []
    for rows in tour(lifecycle):
        walk: list[Any] = []
        seen = [ids[lifecycle.initial]]
        for number, row in enumerate(rows):
            if wrong := illegal[row.source]:
                walk.append([dict.fromkeys(names, True), wrong[number % len(wrong)]])
                seen.append(ids[row.source])
            agreeing = {function_name(row.guard)} if row.guard else set()
            walk.append([{name: name in agreeing for name in names}, row.trigger])
            seen.append(ids[row.target or row.source])
        walks.append(walk)
        states.append(seen)
    return walks, states


@pytest.mark.parametrize("package", INTERPRETERS)
@pytest.mark.parametrize("name", all_lifecycles())
def test_an_interpreter_takes_the_rows_of_the_table(
    name: str, package: str, tmp_path: Path
) -> None:
    require(package)
    lifecycle = all_lifecycles()[name]
    document = tmp_path / f"{name}.scxml"
    document.write_text(str(render(lifecycle, "scxml")), encoding="utf-8")
    walks, states = walks_of(lifecycle)
    done = subprocess.run(
        [sys.executable, str(PROGRAM), package, str(document)],
        input=json.dumps(walks),
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == states
