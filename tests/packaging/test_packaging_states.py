"""The core compares no state with another: it asks whether the state is in a set of its lifecycle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path


def compared(text: str) -> Iterator[int]:
    """Lines where an attribute ``state`` is compared with something for equality."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(isinstance(each, ast.Eq | ast.NotEq) for each in node.ops) and any(
                isinstance(each, ast.Attribute) and each.attr == "state" for each in sides
            ):
                yield node.lineno


def test_core_compares_no_state(repository: Path) -> None:
    wrong = [
        f"{path.relative_to(repository)}:{line}"
        for path in sorted((repository / "core").rglob("*.py"))
        for line in compared(path.read_text(encoding="utf-8"))
    ]
    assert wrong == []


def test_a_comparison_is_found() -> None:
    text = (
        "app.state == RUNNING\n"
        "x = 1 if STOPPED != queue.state else 2\n"
        "app.state in COUNTED\n"
        "state == 1\n"
        "a.state == b.state\n"
    )
    assert sorted(compared(text)) == [1, 2, 5]
