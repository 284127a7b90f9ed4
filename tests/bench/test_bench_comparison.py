"""The page of the comparison has a cell for each question and library, each with a program."""

import ast
from pathlib import Path

import pytest

from bench._comparison.rows import FACTS, FIGURES

REPOSITORY = Path(__file__).parents[2]
PROGRAMS = sorted((REPOSITORY / "bench" / "_comparison").glob("_[a-z]*.py"))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_each_library_has_a_program_for_each_question(program: Path) -> None:
    tree = ast.parse(program.read_text(encoding="utf-8"))
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert functions >= {*FACTS, *FIGURES}


def test_the_page_answers_each_question_for_each_library() -> None:
    page = (REPOSITORY / "docs" / "comparison.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")]
    answers = {row[0].removeprefix("| "): row[1:] for row in rows}
    assert len(PROGRAMS) == 4
    for question in (*FACTS.values(), *FIGURES.values()):
        assert len(answers[question]) == len(PROGRAMS), question
        assert all(cell.strip(" |") for cell in answers[question]), question


def test_the_page_names_the_versions_that_are_installed_for_it() -> None:
    page = (REPOSITORY / "docs" / "comparison.md").read_text(encoding="utf-8")
    environment = (
        (REPOSITORY / "tox.ini").read_text(encoding="utf-8").partition("[testenv:comparison]")[2]
    )
    wanted = environment.partition("commands")[0]
    pinned = [e.strip().lower().replace("==", " ") for e in wanted.splitlines() if "==" in e]
    assert len(pinned) == 3
    assert [each for each in pinned if each not in page] == []
