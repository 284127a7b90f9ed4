"""docs/fsm.md and the tutorial say what is so: their programs run. ``tests/typing`` checks their types."""

from __future__ import annotations

import re
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from quadriga import fsm
from tests.packaging.conftest import run

#: each page of the tutorial, and the name of the program that its blocks are
PAGES = {
    "first-lifecycle": "shop",
    "timeouts": "timeouts",
    "persistence": "persistence",
    "async": "door",
    "testing": "test_shop",
}
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page: str, language: str) -> list[str]:
    return [code for found, code in BLOCK.findall(page) if found == language]


@pytest.fixture(scope="module")
def pages(repository: Path) -> dict[str, str]:
    if not (repository / "docs" / "tutorial").is_dir():
        pytest.skip("docs/ is part of a checkout only")
    paths = [*(repository / "docs" / "tutorial").glob("*.md"), repository / "docs" / "fsm.md"]
    return {path.stem: path.read_text(encoding="utf-8") for path in paths}


@pytest.fixture(scope="module")
def programs(pages: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tutorial")
    for page, name in {**PAGES, "fsm": "fsm"}.items():
        code = "\n\n".join(blocks(pages[page], "python"))
        (folder / f"{name}.py").write_text(code, encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", [*(n for n in PAGES.values() if not n.startswith("test_")), "fsm"])
def test_every_program_runs(programs: Path, name: str) -> None:
    run(sys.executable, "-W", "error", f"{name}.py", cwd=programs)


def test_the_tests_pass_the_coverage_is_as_shown_and_the_pictures_are_drawn(
    programs: Path, pages: dict[str, str]
) -> None:
    commands = "\n".join(blocks(pages["testing"], "console")).splitlines()
    (tests,) = (command for command in commands if command.startswith("pytest"))
    words = [*tests.split(), "--fsm-coverage-report=fsm.json"]
    said = run(sys.executable, "-m", *words, cwd=programs)
    assert "3 passed" in said
    (shown,) = blocks(pages["testing"], "text")
    assert shown in said
    for command in commands:
        if command.startswith("quadriga "):
            run(sys.executable, "-m", "quadriga.cli", *command.split()[1:], cwd=programs)
    for picture in ("order.md", "tested.dot"):
        assert "deliver" in (programs / picture).read_text(encoding="utf-8")


def test_the_first_block_has_ten_lines_and_each_page_leads_on(pages: dict[str, str]) -> None:
    first = blocks(pages["first-lifecycle"], "python")[0]
    assert len(first.splitlines()) <= 10
    order = [*PAGES, "first-gang"]
    assert sorted(pages) == sorted([*order, "fsm"])
    for page, following in pairwise(order):
        assert re.search(rf"^Next: \[.*\]\({following}\.md\)", pages[page], re.MULTILINE), page


def test_every_public_name_is_explained_and_every_sample_is_of_a_kind_that_is_known(
    pages: dict[str, str],
) -> None:
    assert [name for name in fsm.__all__ if not re.search(rf"\b{name}\b", pages["fsm"])] == []
    fences = re.findall(r"^```(\w*)$", pages["fsm"], re.MULTILINE)
    assert set(fences[::2]) <= {"python", "console", "ini", "json", ""}
    assert set(fences[1::2]) == {""}
