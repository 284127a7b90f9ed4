"""docs/performance.md and the measurements: goals are ratios and sizes, and a cycle has its name."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.packaging.conftest import modules_below, text_of


@pytest.fixture
def page(repository: Path) -> str:
    return text_of(repository / "docs" / "performance.md")


def test_what_is_measured_in_floors_has_no_goal(page: str) -> None:
    """How dear Python is beside protobuf differs from machine to machine."""
    floors = [
        node
        for path in modules_below("bench")
        for node in ast.walk(ast.parse(text_of(path)))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Figure"
        if any(isinstance(each, ast.Constant) and each.value == "floors" for each in node.args)
    ]
    assert len(floors) > 10
    assert [call.lineno for call in floors if len(call.args) + len(call.keywords) > 3] == []
    headings = [line for line in page.splitlines() if line.startswith("| in floors |")]
    assert headings
    assert [heading for heading in headings if "goal" in heading] == []


def test_the_sizes_for_5000_nodes_are_measured_ones(page: str, repository: Path) -> None:
    text = text_of(repository / "docs" / "operations.md")
    table = text.partition("\n### 5,000 nodes\n")[2].partition("\n\nTwo cores")[0]
    found = [row.split(" | ")[1] for row in table.splitlines() if row.startswith("| ")][1:]
    assert len(found) == 6
    for number in re.findall(r"\d[\d,.]*", " ".join(found)):
        assert re.search(rf"(?<![\d.,]){re.escape(number)}(?![\d])", page), number


def test_the_page_says_which_fruitless_cycle_of_the_go_core_it_means(page: str) -> None:
    table = page.partition("| a fruitless cycle |")[2].partition("\n\n")[0]
    rows = [line.split("|")[1:4] for line in table.splitlines()[2:]]
    assert [(cells[0].split(":")[0].strip(), cells[1].strip()) for cells in rows] == [
        ("half a pod is free on each node", "82 s"),
        ("nothing is free", "18.5 ms"),
    ]


def test_every_figure_that_anybody_can_repeat_names_its_command(
    page: str, repository: Path
) -> None:
    """Each section of the first part names a measurement that exists; the second part says that none does."""
    _, _, parts = page.partition("\n## What anybody can repeat\n")
    repeated, _, rest = parts.partition("\n## What no command here repeats\n")
    for section in repeated.split("\n## ")[1:]:
        commands = re.findall(
            r"`(python -m bench [a-z -]+|tox -e \w+|QUADRIGA_COMPILE=1 [^`]+)`", section
        )
        assert commands or "`python -m bench` |" in section, section.splitlines()[0]
        measured = re.findall(r"`python -m bench (\w+)", section)
        assert [
            name for name in measured if not (repository / "bench" / f"{name}.py").exists()
        ] == []
    assert "\n## Comparison with YuniKorn's Go core\n\nNo command here repeats" in rest
    assert "million x" not in page
