"""The documents agree with each other and with the repository: links, anchors, decisions, differences."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.packaging.conftest import PACKAGES, modules_below, text_of

LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.+?)\s*$", re.MULTILINE)
ANCHOR = re.compile(r'<a id="([^"]+)"></a>')
#: names with a slash that are no paths of the repository
NO_PATHS = {"si/node-partition", "si/instance-type"}
#: pages that name metrics, or what other programs call things; other tests check the metrics
OTHER_NAMES = {"CHANGELOG.md", "glossary.md", "metrics.md"}
#: the same in other pages, and names that are examples
NO_IDENTIFIERS = {
    *("__subclasses__", "__thread", "httpGet", "priority_long", "resume_"),
    "test_x37_a_member_takes_one_placeholder",
}
CODE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


class Decision(NamedTuple):
    title: str
    page: str


def pages(repository: Path) -> list[Path]:
    return [*sorted(repository.glob("*.md")), *sorted((repository / "docs").rglob("*.md"))]


@cache
def prose(path: Path) -> str:
    return CODE.sub("", text_of(path))


@cache
def anchors(path: Path) -> set[str]:
    """The anchors of a document: explicit ones, and those that are made from headings."""
    text = prose(path)
    found = set(ANCHOR.findall(text))
    for heading in HEADING.findall(text):
        words = re.sub(r"\[(.*?)\]\(.*?\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        found.add(slug)
    return found


def decisions(repository: Path) -> dict[str, Decision]:
    found: dict[str, Decision] = {}
    for path in sorted((repository / "docs" / "decisions").glob("*.md")):
        text = text_of(path)
        pattern = (
            r'^<a id="(d\d+)"></a>\n\n## (D\d+)\. (.+)\n\n\*\*.+\*\* '
            r"(?:Replaced by D\d+, )?20\d\d-\d\d-\d\d\.\n\n[^#*]"
            if path.name != "README.md"
            else r"(?!)"
        )
        sections = re.findall(pattern, text, re.MULTILINE)
        if path.name != "README.md":
            assert len(sections) == len(re.findall("^## ", text, re.MULTILINE)), path.name
        for anchor, number, title in sections:
            assert anchor == number.lower()
            assert number not in found, f"{number} is used twice"
            found[number] = Decision(title, path.name)
    return found


def table(path: Path) -> list[list[str]]:
    rows = [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in text_of(path).splitlines()
        if line.startswith("| ")
    ]
    return rows[1:]


def test_links_and_their_anchors_resolve(repository: Path) -> None:
    broken = []
    for path in pages(repository):
        for link in LINK.findall(prose(path)):
            name, _, anchor = link.partition("#")
            target = path.parent / name if name else path
            if "://" in link or link.startswith("mailto:"):
                continue
            if not target.exists():
                broken.append(f"{path.relative_to(repository)}: {link}")
            elif anchor and target.suffix == ".md" and anchor not in anchors(target):
                broken.append(f"{path.relative_to(repository)}: {link} (no such anchor)")
    assert broken == []


def test_documents_named_in_the_code_exist(repository: Path, modules: list[Path]) -> None:
    missing = []
    for path in modules:
        for name, anchor in re.findall(r"\b(docs/[\w/-]+\.md)(#[\w-]+)?", text_of(path)):
            document = repository / name
            if not document.is_file() or (anchor and anchor[1:] not in anchors(document)):
                missing.append(f"{path.relative_to(repository)}: {name}{anchor}")
    assert missing == []


def test_paths_named_in_documents_exist(repository: Path) -> None:
    folders = "|".join(re.escape(path.name) for path in repository.iterdir() if path.is_dir())
    pattern = re.compile(rf"`((?:{folders})/[\w./*-]+)`")
    missing = [
        f"{path.relative_to(repository)}: {name}"
        for path in pages(repository)
        if path.name != "CHANGELOG.md"  # it says what was
        for name in pattern.findall(prose(path))
        if name not in NO_PATHS and not list(repository.glob(name.rstrip("/")))
    ]
    assert missing == []


def test_identifiers_named_in_documents_exist(repository: Path) -> None:
    """A function, class or constant in backticks is a word of the sources."""
    files = (
        path
        for folder in (*PACKAGES, "tests", "bench")
        for path in (repository / folder).rglob("*.p*")
    )
    words = {
        word
        for path in files
        if path.suffix in (".py", ".proto")
        for word in re.findall(r"\w+", text_of(path))
    }
    looks = re.compile(r"_\w|[a-z][A-Z]|[A-Z]{3}")  # neither a plain word nor a state
    missing = []
    for path in pages(repository):
        if path.name in OTHER_NAMES:
            continue
        for name in re.findall(r"`([A-Za-z_][\w.]*)(?:\([^`]*\))?`", prose(path)):
            last = name.rpartition(".")[2]
            if looks.search(last) and last not in words and last not in NO_IDENTIFIERS:
                missing.append(f"{path.relative_to(repository)}: {name}")
    assert missing == []


def test_the_table_of_rooms_has_every_room_of_core(repository: Path) -> None:
    page = (repository / "docs" / "core.md").read_text(encoding="utf-8")
    section = page.partition("\n## The rooms\n")[2].partition("\n## ")[0]
    rooms = re.findall(r"^\| `([\w.]+)/?` \|", section, re.MULTILINE)
    core = repository / "core"
    there = {path.parent.name for path in core.glob("*/__init__.py")}
    there |= {path.name for path in core.glob("*.py")} - {"__init__.py"}
    assert sorted(rooms) == sorted(there)


def test_the_index_of_decisions_links_every_page_and_numbers_ascend(repository: Path) -> None:
    folder = repository / "docs" / "decisions"
    there = {path.name for path in folder.glob("*.md")} - {"README.md"}
    index = (folder / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^- \[.+\]\(([\w-]+\.md)\)$", index, re.MULTILINE)) == there
    for name in there:
        numbers = [
            int(each[1:]) for each, said in decisions(repository).items() if said.page == name
        ]
        assert numbers == sorted(numbers), name


def test_every_decision_is_cited_by_what_it_explains_and_the_reverse(repository: Path) -> None:
    folders = (*PACKAGES, "bench", "examples", "tests")
    sources = [path for folder in folders for path in modules_below(folder)]
    sources += [
        repository / name
        for name in ("setup.py", "web/pages/static/app.js", "deploy/quadriga.service")
    ]
    cited = {number for path in sources for number in re.findall(r"\bD\d+\b", text_of(path))}
    assert cited == set(decisions(repository))


def test_the_second_table_of_differences_links_what_explains_each(repository: Path) -> None:
    for first, *others in table(repository / "docs" / "differences.md"):
        assert first.startswith("[") or first == "see" or len(others) == 3, first
        link = re.fullmatch(r"\[(D\d+)\]\(decisions/([\w-]+\.md)#(d\d+)\)", first)
        if link:
            assert decisions(repository)[link[1]].page == link[2]


# -- docs/performance.md: goals are ratios and sizes -------------------------------------------------


@pytest.fixture
def page(repository: Path) -> str:
    return text_of(repository / "docs" / "performance.md")


def test_what_is_measured_in_floors_has_no_goal(page: str) -> None:
    """How dear Python is beside protobuf differs from machine to machine."""
    floors = [
        node
        for path in modules_below("bench")
        for node in ast.walk(ast.parse(text_of(path)))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Figure"
        if any(isinstance(each, ast.Constant) and each.value == "floors" for each in node.args)
    ]
    assert len(floors) > 10
    assert [call.lineno for call in floors if len(call.args) + len(call.keywords) > 3] == []
    headings = [line for line in page.splitlines() if line.startswith("| in floors |")]
    assert headings
    assert [heading for heading in headings if "goal" in heading] == []


def test_every_figure_that_anybody_repeats_names_its_command(page: str, repository: Path) -> None:
    """Each section of the first part names a measurement that exists; the second part says that none does."""
    _, _, parts = page.partition("\n## Repeatable measurements\n")
    repeated, _, rest = parts.partition("\n## Measured once\n")
    for section in repeated.split("\n## ")[1:]:
        commands = re.findall(
            r"`(python -m bench [a-z -]+|tox -e \w+|QUADRIGA_COMPILE=1 [^`]+)`", section
        )
        assert commands or "`python -m bench` |" in section, section.splitlines()[0]
        measured = re.findall(r"`python -m bench (\w+)", section)
        assert [
            name for name in measured if not (repository / "bench" / f"{name}.py").exists()
        ] == []
    assert "\n## Comparison with YuniKorn's Go core\n\nNo command here repeats" in rest
    assert "million x" not in page
