"""docs/views.md says what is so: its samples run, and its table names what there is."""

import re
from pathlib import Path

import pytest

from quadriga.core.views import Views

PAGE = Path(__file__).resolve().parents[3] / "docs" / "views.md"


@pytest.fixture(scope="module")
def page() -> str:
    if not PAGE.is_file():
        pytest.skip("docs/ is part of a checkout only")
    return PAGE.read_text(encoding="utf-8")


def test_every_sample_runs_and_the_table_names_every_question(page: str) -> None:
    samples = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert {language for language, _ in samples} == {"python"}
    for _, code in samples:
        exec(compile(code, str(PAGE), "exec"), {"__name__": "sample"})
    table = page[page.index("| question |") : page.index("`Views(scheduler, dialect)`")]
    for name in vars(Views):
        if not name.startswith("_"):
            assert f"`{name}(" in table, name
    for file in re.findall(r"`(\w+\.py)`", table):
        assert (PAGE.parents[1] / "core" / "views" / file).is_file(), file
