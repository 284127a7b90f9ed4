"""Habits of the house that ruff does not know: names of lifecycles, comparisons of states."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.packaging.conftest import imports_in, modules_below, text_of

LIFECYCLES = {"application", "ask", "allocation", "node", "queue", "resource_manager"}


def other_names(path: Path) -> Iterator[tuple[int, str]]:
    """Lines that import a lifecycle's file under another name than ``application_fsm`` and so on."""
    if "quadriga.fsm" not in text_of(path):
        return
    for node, _ in imports_in(path):
        if isinstance(node, ast.ImportFrom):
            for each in node.names if node.module == "quadriga.fsm" else ():
                name = each.asname or each.name
                if each.name in LIFECYCLES and name != f"{each.name}_fsm":
                    yield node.lineno, name
        else:
            for each in node.names:
                parent, _, last = each.name.rpartition(".")
                if parent == "quadriga.fsm" and last in LIFECYCLES:
                    yield node.lineno, each.asname or each.name


def compared_states(path: Path) -> Iterator[tuple[int, str]]:
    """Lines where an attribute ``state`` is compared with something for equality."""
    text = text_of(path)
    if ".state" not in text:
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(isinstance(each, ast.Eq | ast.NotEq) for each in node.ops) and any(
                isinstance(each, ast.Attribute) and each.attr == "state" for each in sides
            ):
                yield node.lineno, ast.unparse(node)


Check = Callable[[Path], Iterator[tuple[int, str]]]


def found_by(check: Check, paths: list[Path]) -> list[str]:
    return [f"{path}:{line}: {what}" for path in paths for line, what in check(path)]


def test_every_module_calls_a_lifecycle_alike(modules: list[Path]) -> None:
    assert found_by(other_names, modules) == []


def test_core_compares_no_state() -> None:
    """It asks whether the state is in a set of its lifecycle."""
    assert found_by(compared_states, modules_below("core")) == []


@pytest.mark.parametrize(
    ("check", "text", "found"),
    [
        (
            other_names,
            "from quadriga.fsm import APPLICATION, application as life, ask as ask_fsm\n"
            "from quadriga.fsm import node\n"
            "import quadriga.fsm.queue\n",
            [(1, "life"), (2, "node"), (3, "quadriga.fsm.queue")],
        ),
        (
            compared_states,
            "app.state == RUNNING\n"
            "x = 1 if STOPPED != queue.state else 2\n"
            "app.state in COUNTED\n"
            "state == 1\n"
            "a.state == b.state\n",
            [(1, "app.state == RUNNING"), (2, "STOPPED != queue.state"), (5, "a.state == b.state")],
        ),
    ],
)
def test_what_is_against_a_habit_is_noticed(
    tmp_path: Path, check: Check, text: str, found: list[tuple[int, str]]
) -> None:
    path = tmp_path / "module.py"
    path.write_text(text)
    assert sorted(check(path)) == found
