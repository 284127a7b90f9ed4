"""The README does what it says: its code runs, its commands are the right ones, its links lead on."""

import configparser
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from service_process import Service

from tests.packaging.conftest import REPOSITORY, run, text_of

README = REPOSITORY / "README.md"


def blocks(language: str, document: Path = README) -> dict[str, str]:
    """The code blocks of a language: what the comment above calls them, or their number -> text."""
    pattern = rf"(?:^<!-- run: (.*?) -->\n)?^```{language}\n(.*?)^```$"
    found = re.findall(pattern, document.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return {name or f"{language} {number}": text for number, (name, text) in enumerate(found, 1)}


def steps(name: str) -> list[list[str]]:
    text = blocks("sh")[name].strip()
    return [shlex.split(command) for command in re.split(r"&&|\n", text)]


def quadriga(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    program = "import sys; from quadriga.cli.main import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


#: pages with programs, and what these show
PAGES = {"simulate": "", "configuration": "\n"}
SAMPLES = {
    f"{document.name} {name}": text
    for document in (README, *(REPOSITORY / "docs" / f"{name}.md" for name in PAGES))
    for name, text in blocks("python", document).items()
}


@pytest.mark.parametrize("name", SAMPLES)
def test_python_in_documents_runs(name: str, tmp_path: Path) -> None:
    said = run(sys.executable, "-W", "error", "-c", SAMPLES[name], cwd=tmp_path)
    assert said, "it shows something"
    assert PAGES.get(name.partition(".")[0], "") in said


def test_every_block_is_of_a_kind_that_is_tested() -> None:
    languages = re.findall(r"^```(\w*)$", README.read_text(encoding="utf-8"), re.MULTILINE)
    assert {language for language in languages if language} == {"sh", "python"}
    assert list(blocks("sh")) == [
        *("the main job", "the tests", "a log", "rights", "the service", "a table")
    ]


@pytest.mark.parametrize(
    ("name", "installed", "job"),
    [
        ("the main job", ".[all]", [".venv/bin/quadriga", "simulate"]),
        ("the tests", "tox", [".venv/bin/tox", "run"]),
    ],
)
def test_a_set_up_installs_and_runs_and_the_workflow_does_the_same(
    name: str, installed: str, job: list[str]
) -> None:
    packages, *words = steps(name)
    assert packages == [".ci/packages"]
    assert (REPOSITORY / packages[0]).stat().st_mode & 0o111
    install = [".venv/bin/pip", "install", installed]
    assert words == [["python3", "-m", "venv", ".venv"], install, job]
    workflow = (REPOSITORY / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    assert f"run: {blocks('sh')[name].strip()}\n" in workflow


@pytest.mark.parametrize("name", ["the main job", "a log", "a table"])
def test_the_command_of_a_block_runs(name: str) -> None:
    program, *words = steps(name)[-1]
    assert program == ".venv/bin/quadriga"
    done = quadriga([*words, "--days", "1"] if name == "the main job" else words)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_checked_rights_need_a_kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    ((program, *words),) = steps("rights")
    assert program == ".venv/bin/quadriga"
    done = quadriga(words)
    assert done.returncode == 2
    assert "none not found" in done.stderr


def test_the_service_runs(tmp_path: Path) -> None:
    """As it stands there, but for the ports, which may be taken here."""
    ((command, *words),) = steps("the service")
    assert (command, words[0]) == (".venv/bin/quadriga", "serve")
    service = Service(tmp_path, *words[1:])
    try:
        service.wait_until_ready()
        assert service.ask("/ui/")[0] == 200
        service.send(signal.SIGTERM)
        assert service.wait() == 0
    finally:
        service.close()


def test_every_document_is_in_the_index() -> None:
    index = (REPOSITORY / "docs" / "README.md").read_text(encoding="utf-8")
    documents = {path.name for path in (REPOSITORY / "docs").glob("*.md")} - {"README.md"}
    assert sorted(name for name in documents if f"]({name})" not in index) == []


# -- examples ----------------------------------------------------------------------------------------


EXAMPLES = sorted((REPOSITORY / "examples").glob("*.py"))

#: a line that each of them must print, so that an example which does nothing is noticed
SAYS = {
    "async_lifecycle": "web-2: confirm -> Replaced",
    "device": "back, and still Online_Paused",
    "embed_core": "Waiting --complete--> Completed",
    "embed_lifecycle": "refused: ask 'request-1' cannot 'park' in state Allocated",
    "first_gang": "start pod worker-3 on n2",
    "gangs_soon": "a guarantee and preemption           0.01     0.01",
    "order_service": "3, to A-1: Refund(cents=1995)",
    "own_lifecycle": "not a lifecycle: loan: state Shelved has no exit and is not declared final",
    "own_rm": "hard: placeholder_timeout -> Killing",
    "remote_rm": "queue: root.default",
}

#: need more than the base dependencies
WITH_EXTRAS = {"remote_rm"}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(example: Path, tmp_path: Path) -> None:
    said = run(sys.executable, "-W", "error", example, cwd=tmp_path)  # away from the checkout
    assert SAYS[example.stem] in said
    if example.stem == "first_gang":
        page = REPOSITORY / "docs" / "tutorial" / "first-gang.md"
        assert f"```text\n{said}```" in text_of(page), "the tutorial shows what its program prints"


def test_every_example_is_known_and_runs_with_the_base_dependencies() -> None:
    assert {example.stem for example in EXAMPLES} == set(SAYS)
    embedders = (
        text_of(REPOSITORY / "tox.ini").partition("[testenv:embedders]")[2].partition("\n[")[0]
    )
    base = SAYS.keys() - WITH_EXTRAS
    assert [name for name in sorted(base) if f"examples/{name}.py" not in embedders] == []


# -- every command that installs Quadriga: from the checkout or its wheel ----------------------------


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
    named = [(where, w) for where, w in installed if re.match(r"quadriga(-fsm)?(\[|=|<|>|$)", w)]
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
        assert {e for e in (extras or "").split(",") if e and "{" not in e} <= declared, (
            where,
            word,
        )
    assert {".", "./packaging/fsm", f"dist/quadriga-{version}-py3-none-any.whl"} <= seen
    assert len(installed) > 20
