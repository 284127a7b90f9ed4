"""The file of a lifecycle has one name wherever it is imported: ``application_fsm`` and so on."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

LIFECYCLES = {"application", "ask", "allocation", "node", "queue", "resource_manager"}


def other_names(text: str) -> Iterator[tuple[int, str]]:
    """Lines that import a lifecycle's file under another name, with that name."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module == "quadriga.fsm":
            for each in node.names:
                name = each.asname or each.name
                if each.name in LIFECYCLES and name != f"{each.name}_fsm":
                    yield node.lineno, name
        elif isinstance(node, ast.Import):
            for each in node.names:
                parent, _, last = each.name.rpartition(".")
                if parent == "quadriga.fsm" and last in LIFECYCLES:
                    yield node.lineno, each.asname or each.name


def test_every_module_calls_a_lifecycle_alike(repository: Path, modules: list[Path]) -> None:
    wrong = [
        f"{path.relative_to(repository)}:{line}: {name}"
        for path in modules
        for line, name in other_names(path.read_text(encoding="utf-8"))
    ]
    assert wrong == []


def test_another_name_is_found() -> None:
    text = (
        "from quadriga.fsm import APPLICATION, application as life, ask as ask_fsm\n"
        "from quadriga.fsm import node\n"
        "import quadriga.fsm.queue\n"
    )
    assert list(other_names(text)) == [(1, "life"), (2, "node"), (3, "quadriga.fsm.queue")]
