"""Every command that installs Quadriga works: from the checkout or its wheel, because no index has it."""

from __future__ import annotations

import configparser
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.packaging.conftest import text_of

#: of a requirement or a path: what is installed, and its extras
TARGET = re.compile(r"(?P<what>[^\[\]]+)(?:\[(?P<extras>[\w,{}-]+)\])?")
#: a command, and the first thing that it installs
COMMAND = re.compile(r"(?<![\w.])pip install (?:-[\w-]+ )*('[^'\n]+'|\"[^\"\n]+\"|[^\s`'\",;]+)")
#: these records weigh what does not exist
LEFT_OUT = {"decisions", "tests", "shared"}


def pages(repository: Path) -> Iterator[Path]:
    """Whatever a person reads or runs."""
    for pattern in (
        "*.md",
        "*.ini",
        "deploy/**/*",
        "docs/**/*.md",
        "examples/**/*",
        ".ci/*",
        "packaging/**/*",
    ):
        yield from repository.glob(pattern)
    for room in ("fsm", "core", "si", "k8s", "sim", "web", "cli", "diagrams"):
        yield from (repository / room).rglob("*.py")


def commands(repository: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(set(pages(repository))):
        where = path.relative_to(repository)
        if not path.is_file() or LEFT_OUT & set(where.parts):
            continue
        try:
            text = text_of(path)
        except UnicodeDecodeError:
            continue
        for found in COMMAND.finditer(text):
            yield str(where), found[1].strip("'\"")


@pytest.fixture(scope="module")
def installed(repository: Path) -> list[tuple[str, str]]:
    return list(commands(repository))


def test_nothing_is_installed_by_the_name_of_this_project(installed: list[tuple[str, str]]) -> None:
    named = [
        (where, word) for where, word in installed if re.match(r"quadriga(-fsm)?(\[|=|<|>|$)", word)
    ]
    assert named == [], "no index has it: name the checkout (.) or its wheel"


def test_what_is_installed_from_a_checkout_is_there_with_its_extras(
    repository: Path, installed: list[tuple[str, str]]
) -> None:
    setup = configparser.ConfigParser()
    setup.read(repository / "setup.cfg", encoding="utf-8")
    declared = set(setup["options.extras_require"])
    version = setup["metadata"]["version"]
    seen = set()
    for where, word in installed:
        found = TARGET.fullmatch(word)
        assert found, (where, word)
        what, extras = found["what"], found["extras"]
        if what.endswith(".whl"):
            assert what == f"dist/quadriga-{version}-py3-none-any.whl", (where, word)
        elif what.startswith((".", "/")) or what == "packaging/fsm":
            assert (repository / what / "setup.cfg").is_file(), (where, word)
        else:
            continue  # a tool of others
        seen.add(what)
        assert {
            each for each in (extras or "").split(",") if each and "{" not in each
        } <= declared, (where, word)
    assert {".", "./packaging/fsm", f"dist/quadriga-{version}-py3-none-any.whl"} <= seen
    assert len(installed) > 20
