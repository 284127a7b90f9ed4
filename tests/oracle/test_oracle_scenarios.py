"""Scenarios of our own, and what is written beside them; docs/differences.md has the rules of the runner."""

import json
from pathlib import Path

import pytest

from tests.oracle.differences import RULES
from tests.oracle.player import OPERATIONS
from tests.oracle.report import ours
from tests.oracle.scenario import scenarios

#: to write a text anew: python -m tests.oracle --ours tests/oracle/scenarios/NAME.json > .../NAME.txt
FOLDER = Path(__file__).parent / "scenarios"


@pytest.mark.parametrize("name", sorted(file.stem for file in FOLDER.glob("*.json")))
def test_ours_says_what_is_written(name: str) -> None:
    (scenario,) = scenarios([FOLDER / name])
    assert "\n".join(ours(scenario)) + "\n" == (FOLDER / f"{name}.txt").read_text()


def test_every_text_has_its_scenario_and_every_operation_is_played_here() -> None:
    """All but ``rest``: its paths are not served by the core."""
    played = {s["op"] for f in FOLDER.glob("*.json") for s in json.loads(f.read_text())["steps"]}
    assert played == OPERATIONS - {"rest"}
    assert {f.stem for f in FOLDER.glob("*.txt")} == {f.stem for f in FOLDER.glob("*.json")}


PAGE = Path(__file__).resolve().parents[2] / "docs" / "differences.md"


def test_the_page_lists_exactly_the_rules_each_once() -> None:
    rows = [
        tuple(cell.strip() for cell in line.strip("|").split("|"))
        for line in PAGE.read_text().splitlines()
        if line.startswith("| ") and line.count("|") == 5
    ]
    assert rows[0] == ("rule", "the Go core", "ours", "how")
    assert rows[1:] == [(rule.id, rule.theirs, rule.ours, rule.how) for rule in RULES]
    ids = [rule.id for rule in RULES]
    assert len(ids) == len(set(ids))
