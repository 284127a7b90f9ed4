"""What docs/limits.md shows is true."""

from __future__ import annotations

import re
from pathlib import Path

from quadriga.core.config import load

PAGE = Path(__file__).resolve().parents[2] / "docs" / "limits.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_the_configuration_is_valid() -> None:
    (text,) = blocks("yaml")
    root = load(text).partitions[0].root
    assert [limit.users for limit in root.children[0].limits] == [("ann", "bob"), (), ("*",)]


def test_the_program_runs() -> None:
    (program,) = blocks("python")
    exec(compile(program, str(PAGE), "exec"), {})
