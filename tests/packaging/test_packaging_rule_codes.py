"""docs/rules.md has every rule and section that is cited, no message relies on a code, each rule has a test."""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.packaging.conftest import PACKAGES, modules_below, text_of

#: a rule: its letter and its number
CODE = re.compile(r"(?<![\w.\-])(?:[GRIMXQSVT]\d{1,2}|K\d{1,3})(?!\w|\.\d)")

#: a section: 5.7 or 2.2.1. Versions of YuniKorn and of its interface begin with 1.
SECTION = re.compile(r"(?<![\w.:=<>$-])[2-9]\.[1-9]\d?(?:\.[1-9])?(?![\w%]|\.\d)")
#: numbers in comments that look like one: versions, other documents, measurements
NO_SECTION = re.compile(
    r"(?:(?:Python|OpenAPI|Debian|RFC \d+|HTTP/)\s?[\d.]+(?: and [\d.]+)?"
    r"|[\d.]+ (?:ns|us|µs|ms|s|kB|MB|GB|million|times)\b)"
)
#: elsewhere a section is what stands alone in parentheses, or follows one of these words
PARENTHESES = re.compile(r"\(([^()]*)\)")
PART = re.compile(r"(?:rules? |sections? |see )?([2-9]\.[1-9]\d?(?:\.[1-9])?)(?: (?:step|bug) \d)?")
WORD = re.compile(
    r"(?:rules?|sections?|table of|vectors of) ([2-9]\.[1-9]\d?(?:\.[1-9])?)(?![\w.]\d)"
)

#: modules, or their folders, whose texts are for those who read rules
TABLES = frozenset(("lifecycles", "checks", "flows"))

PROSE = frozenset(".md .txt .yaml .yml .toml .ini .cfg".split())

#: citations in a message: "(X9)", "(G45 to G50)", "(2.2.3)"
ASIDE = re.compile(
    r"\s?\((?:(?:[GRIMXQSVT]\d{1,2}|K\d{1,3}|[2-9]\.\d{1,2}(?:\.\d)?)(?:, | to | and )?)+\)"
)


@pytest.fixture(scope="module")
def page(repository: Path) -> str:
    return text_of(repository / "docs" / "rules.md")


@pytest.fixture(scope="module")
def codes(page: str) -> list[str]:
    """Every code that the page explains: each begins an entry of a list."""
    return re.findall(r"(?m)^- \*\*([A-Z]\d+)\*\* \S", page)


@pytest.fixture(scope="module")
def sections(page: str) -> set[str]:
    return set(re.findall(r'(?m)^#+ <a id="section-[\d-]+"></a>(\d(?:\.\d+)*) [\w\[]', page))


def test_every_code_and_anchor_is_unique(page: str, codes: list[str]) -> None:
    assert [code for code, times in Counter(codes).items() if times > 1] == []
    anchors = Counter(re.findall(r'<a id="([^"]+)"></a>', page))
    assert [anchor for anchor, times in anchors.items() if times > 1] == []
    for anchor, number in re.findall(r'<a id="section-([\d-]+)"></a>([\d.]+) ', page):
        assert anchor == number.replace(".", "-")


def test_every_rule_is_one_plain_line(page: str, codes: list[str]) -> None:
    lines = [line for line in page.splitlines() if line.startswith("- **")]
    assert len(lines) == len(codes) > 150
    for line in lines:
        said = line.split("** ", 1)[1]
        assert said[0].isupper() or said[0] == "`", line
        assert said.endswith(".") and len(said) < 400, line


def test_the_page_has_rules_of_the_acceptance_table_only(
    shared: Path, codes: list[str], sections: set[str], owed: frozenset[str]
) -> None:
    table = (shared / "BEHAVIOUR.md").read_text(encoding="utf-8")
    rules = set(re.findall(r"(?m)^\| ([GRIMXQ]\d+) \|", table))
    rules |= set(re.findall(r"(?m)^\* (S\d+) ", table)) | set(re.findall(r"(?m)^(V\d+)\. ", table))
    assert {code for code in codes if code[0] not in "KT"} <= rules - owed
    assert sections == set(re.findall(r"(?m)^#+ (\d(?:\.\d+)*)\.? ", table)) - {"3"}


def test_the_page_has_rules_of_the_kubernetes_reference_only(
    shared: Path, codes: list[str], owed: frozenset[str]
) -> None:
    table = (shared / "KUBERNETES.md").read_text(encoding="utf-8")
    rules = re.findall(r"(?m)^\| ([KT]\d+) \|", table)
    assert {code for code in codes if code[0] in "KT"} <= set(rules) - owed
    assert len(rules) == 211 + 25


def test_every_code_that_is_cited_is_explained(texts: list[Path], codes: list[str]) -> None:
    unknown, known = [], set()
    for path in _citing(texts):
        found = set(CODE.findall(text_of(path)))
        known |= found & set(codes)
        if found - set(codes):  # perhaps they are names in its code only
            cited = set(CODE.findall(" ".join(_prose(path))))
            unknown += [f"{path.name}: {code}" for code in sorted(cited - set(codes))]
    assert unknown == []
    assert len(known) > 100


def test_every_section_that_is_cited_is_a_heading(texts: list[Path], sections: set[str]) -> None:
    unknown, known = [], set()
    for path in _citing(texts):
        text = text_of(path)
        found = {*SECTION.findall(text), *WORD.findall(text)}
        known |= found & sections
        if found - sections:  # perhaps they are numbers in its code only
            cited = set().union(*map(_sections, _prose(path)))
            if path.suffix == ".py":
                cited |= set(SECTION.findall(NO_SECTION.sub("", _module(path).comments)))
            unknown += [f"{path.name}: {number}" for number in sorted(cited - sections)]
    assert unknown == []
    assert len(known) > 30


def test_no_message_needs_a_code_to_be_understood() -> None:
    """A code stands before the rule of a status, and in tables and checks; without it a sentence is left."""
    found = 0
    for path in _citing(path for name in PACKAGES for path in modules_below(name)):
        for line, message in _module(path).messages:
            if CODE.search(message) or ASIDE.search(message):
                found += 1
                assert _is_whole(message, path), f"{path.name}:{line}: {message}"
                if ASIDE.search(message):
                    assert {path.stem, path.parent.name} & TABLES, f"{path}:{line}: {message}"
    assert found > 50


def test_pages_have_no_code_of_their_own(repository: Path) -> None:
    scripts = sorted((repository / "web" / "pages" / "static").glob("*.js"))
    cited = {path.name: CODE.findall(text_of(path)) for path in scripts}
    assert len(cited) > 5
    assert not any(cited.values()), cited


def _is_whole(message: str, path: Path) -> bool:
    if CODE.fullmatch(message):  # handed to what writes "I39: ..." before a sentence
        return True
    rest = ASIDE.sub("", message)
    rest = re.sub(r"^(?:[GRIMXQSVT]\d{1,2}|K\d{1,3}): ", "", rest)
    if path.stem in {"invariants", "audit"} or path.parent.name == "checks":
        rest = re.sub(r"^[GRIMXQSV]\d{1,2} ", "", rest)
    words = re.findall(r"\w{2,}", rest)
    # Most of it, or all, is filled in.
    filled = "{}" in rest and (bool(words) or not rest.strip("{} "))
    return not CODE.search(rest) and (len(words) >= 2 or filled)


def _citing(paths: Iterable[Path]) -> Iterator[Path]:
    """The files that may cite anything, except for what is generated. Parsing all would take long."""
    for path in paths:
        if path.suffix in {".py", ".proto"} | PROSE and "_pb2" not in path.name:
            text = text_of(path)
            if path != Path(__file__) and (CODE.search(text) or SECTION.search(text)):
                yield path


def _prose(path: Path) -> list[str]:
    """What a reader of the file reads: of a module its comments and all texts in it."""
    if path.suffix == ".py":
        return [_module(path).comments, *(message for _, message in _module(path).messages)]
    text = text_of(path)
    return re.findall(r"//(.*)", text) if path.suffix == ".proto" else [text]


@dataclass(frozen=True)
class Module:
    """Its comments and docstrings as one text; other texts with lines, ``{}`` for what gets filled in."""

    comments: str
    messages: list[tuple[int, str]]


@cache
def _module(path: Path) -> Module:
    source = text_of(path)
    comments = re.findall(r"(?m)(?:^|\s)#:? (.*)$", source)
    messages = []
    waiting: list[ast.AST] = [ast.parse(source)]
    while waiting:
        node = waiting.pop()
        if _is_docstring(node):
            comments.append(node.value.value)
        elif isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
            messages.append((node.lineno, "".join(parts)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            messages.append((node.lineno, node.value))
        elif not (isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"):
            waiting.extend(ast.iter_child_nodes(node))
    return Module(" \n".join(comments), messages)


def _is_docstring(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _sections(text: str) -> set[str]:
    """The sections that a text cites for certain."""
    text = re.sub(r"\s+", " ", text)
    found = set(WORD.findall(text))
    for inside in PARENTHESES.findall(text):
        for part in re.split(r"[,;] | and | to | or ", inside):
            if cited := PART.fullmatch(part.strip()):
                found.add(cited[1])
    return found


def test_each_rule_is_named_by_a_test(shared: Path, repository: Path, owed: frozenset[str]) -> None:
    listing = subprocess.run(
        [sys.executable, shared / "tools" / "rules", repository / "tests"],
        capture_output=True,
        text=True,
        check=False,
    )
    *unnamed, closing = listing.stdout.splitlines()
    assert "rules are named by a test" in closing, listing.stderr
    assert {line.split()[0] for line in unnamed} == {rule for rule in owed if rule[0] != "K"}
