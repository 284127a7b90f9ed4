"""docs/checking.md says what is so: its program runs and names what is public."""

import re
from pathlib import Path
from typing import Any

import pytest

from quadriga.fsm import checking


@pytest.fixture(scope="module")
def page() -> str:
    path = Path(__file__).resolve().parents[3] / "docs" / "checking.md"
    if not path.is_file():
        pytest.skip("docs/ is part of a checkout only")
    return path.read_text(encoding="utf-8")


def test_the_program_of_the_page_runs_and_every_public_name_is_there(page: str) -> None:
    code = "\n".join(re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE))
    namespace: dict[str, Any] = {"__name__": "page"}
    exec(compile(code, "checking.md", "exec"), namespace)
    assert namespace["violation"].as_mermaid().startswith("sequenceDiagram\n")
    # What a rule, a reaction or a counterexample is given explains itself where it is used.
    given = {"Happening", "Message"}
    assert [n for n in checking.__all__ if n not in page and n not in given] == []
