"""docs/kubernetes.md says what the tables say: settings and rights."""

import re
from pathlib import Path

import pytest

from quadriga.k8s.conversion.bounds import BOUNDS
from quadriga.k8s.conversion.settings_table import KEYS
from quadriga.k8s.transport.rights import DEVICE_CLASS_RIGHTS, POD_GROUP_RIGHTS, RIGHTS

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def page() -> str:
    return (REPOSITORY / "docs" / "kubernetes.md").read_text(encoding="utf-8")


def tables(page: str, heading: str) -> list[list[list[str]]]:
    """The tables of a section: rows of cells, without the heading."""
    section = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [
        [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()[2:]]
        for table in re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE)
    ]


def test_k50_every_setting_is_told_with_its_default(page: str) -> None:
    at_once, restart, ignored = tables(page, "Settings")
    for rows, restarts in ((at_once, False), (restart, True)):
        assert {name.strip("`"): default for name, default, _ in rows} == {
            name: f"`{key.default}`" if key.default else "–"
            for name, key in KEYS.items()
            if not key.ignored and bool(key.restart) is restarts
        }
        assert all(meaning for *_, meaning in rows)
    assert {name.strip("`"): why for name, why in ignored} == {
        name: key.ignored for name, key in KEYS.items() if key.ignored
    }


def test_k18_every_right_is_told_with_what_it_is_for(page: str) -> None:
    (rights,) = tables(page, "Rights")
    told = [[group, resource, *rest] for group, r, *rest in rights for resource in r.split(", ")]
    assert told == [
        [
            right.group or "core",
            right.resource,
            ", ".join(right.verbs),
            "own namespace" if right.own_namespace else "cluster",
            right.without,
        ]
        for right in (*RIGHTS, *POD_GROUP_RIGHTS, *DEVICE_CLASS_RIGHTS)
    ]


def test_k153_every_event_that_is_written_is_told_and_no_other(page: str) -> None:
    section = page.partition("\n### Events\n")[2].partition("\n## ")[0]
    rows = [line.strip("|").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    told = {word.strip() for row in rows[1:] for c in row[:2] for word in c.split(",") if c}
    sources = [
        path.read_text(encoding="utf-8")
        for room in ("shim", "lifecycles", "conversion", "transport", "writers")
        for path in (REPOSITORY / "k8s" / room).rglob("*.py")
    ]
    written = {
        word
        for text in sources
        for call in (
            r'\bSay\(\s*(?:_GANG|"(\w+)"),\s*"(\w+)"',
            r'record_about\(\s*kernel,[^"()]*"(\w+)",\s*"(\w+)"',
            r'SayNode\(\s*"(\w+)"()',
        )
        for found in re.findall(call, text)
        for word in found
        if word
    }
    assert len(written) > 15
    assert written <= told
    assert told <= {word for text in sources for word in re.findall(r'"(\w+)"', text)}


def test_q16_every_bound_is_told_with_its_default(page: str) -> None:
    (rows,) = tables(page, "Bounds")
    told = [pair for _, cell in rows for pair in re.findall(r"`(\w+)` (\d+)", cell)]
    assert sorted(told) == sorted((name, str(most)) for name, most in BOUNDS.items())
