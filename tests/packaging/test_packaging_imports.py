"""The house: who may import whom, and what a module may be.

fsm, si  <-  core  <-  diagrams, sim, web, k8s  <-  cli
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

MAY_IMPORT = {
    "fsm": set(),
    "si": set(),
    "core": {"fsm", "si"},
    "diagrams": {"fsm", "si", "core"},
    "sim": {"fsm", "si", "core"},
    "web": {"fsm", "si", "core"},
    "k8s": {"fsm", "si", "core"},
    "cli": {"fsm", "si", "core", "diagrams", "sim", "web", "k8s"},
}

#: the rooms of core from the ground up: each may import itself and what stands before it. Rooms in one
#: line do not import each other
CORE = (
    ("config",),
    ("model",),
    ("ordering",),
    ("runtime",),
    ("events",),
    ("placement", "preemption"),
    ("scheduling",),
    ("intake",),
    ("checks",),
    ("scheduler",),
    ("views",),
    ("driver",),
)

#: the same of k8s
K8S = (
    ("objects",),
    ("objects_volumes",),
    ("conversion", "lifecycles"),
    ("cluster",),
    ("shim",),
    ("api",),
    ("admission",),
    ("driver",),
)

#: what `quadriga --help` must not load: it would make the command slow
HEAVY = (
    *("numpy", "google.protobuf", "transitions", "rich", "graphviz", "yaml", "re2"),
    *("grpc", "starlette", "uvicorn", "asyncio", "aiohttp", "httptools", "msgspec", "lightkube"),
)

LONGEST = 700  # lines; about 400 is the aim
EMPTY_NAMES = {"utils", "util", "helpers", "helper", "manager", "managers", "misc", "common"}


def imported(path: Path) -> Iterator[tuple[str, int]]:
    """The names of all modules that a file imports, with the lines."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        yield from _names(node)


def imported_at_once(path: Path) -> Iterator[tuple[str, int]]:
    """The same for what is imported when the file is, rather than within a function.

    What stands below ``if TYPE_CHECKING`` is not imported at all.
    """
    waiting: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting.extend(node.orelse)
            continue
        yield from _names(node)
        waiting.extend(ast.iter_child_nodes(node))


def _names(node: ast.AST) -> Iterator[tuple[str, int]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.name, node.lineno
    elif isinstance(node, ast.ImportFrom):
        yield "." * node.level + (node.module or ""), node.lineno
        if node.level == 0 and node.module == "quadriga":
            for alias in node.names:
                yield f"quadriga.{alias.name}", node.lineno


def ours(name: str) -> str | None:
    """The subpackage of ours that a module belongs to."""
    first, _, rest = name.partition(".")
    return rest.partition(".")[0] or None if first == "quadriga" else None


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_point_one_way(repository: Path, package: str) -> None:
    allowed = MAY_IMPORT[package] | {package}
    wrong = [
        f"{path.relative_to(repository)}:{line} imports {name}"
        for path in sorted((repository / package).rglob("*.py"))
        for name, line in imported(path)
        if (ours(name) or package) not in allowed
    ]
    assert wrong == []


def test_the_engine_imports_the_library_and_nothing_else(repository: Path) -> None:
    """It is installed alone as well (packaging/fsm), with no dependency but transitions."""
    wrong = [
        f"{path.relative_to(repository)}:{line} imports {name}"
        for path in sorted((repository / "fsm").rglob("*.py"))
        for name, line in imported_at_once(path)
        if (first := name.partition(".")[0]) not in sys.stdlib_module_names
        and first not in {"quadriga", "transitions"}
        and (path.name, first) != ("pytest_plugin.py", "pytest")
    ]
    assert wrong == []


@pytest.mark.parametrize(("package", "levels"), [("core", CORE), ("k8s", K8S)])
def test_rooms_import_only_what_stands_below_them(
    repository: Path, package: str, levels: tuple[tuple[str, ...], ...]
) -> None:
    # Type imports and late ones included.
    home = repository / package
    rooms = {
        path.stem for path in home.iterdir() if list(path.glob("*.py")) or path.suffix == ".py"
    }
    assert rooms - {"__init__", "__pycache__"} == {room for level in levels for room in level}
    below: set[str] = set()
    wrong: list[str] = []
    for level in levels:
        for room in level:
            allowed = below | {room}
            paths = sorted((home / room).rglob("*.py")) or [home / f"{room}.py"]
            wrong += [
                f"{path.relative_to(repository)}:{line} imports {name}"
                for path in paths
                for name, line in imported(path)
                if ours(name) == package and (*name.split("."), package)[2] not in allowed
            ]
        below.update(level)
    assert wrong == []


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_are_absolute_and_by_the_full_name(repository: Path, package: str) -> None:
    # `from core import ...` would work in a checkout and nowhere else.
    wrong = [
        f"{path.relative_to(repository)}:{line} imports {name}"
        for path in sorted((repository / package).rglob("*.py"))
        for name, line in imported(path)
        if name.startswith(".") or name.partition(".")[0] in MAY_IMPORT
    ]
    assert wrong == []


def test_the_command_imports_late(repository: Path) -> None:
    # The parts of `serve` are imported as a whole, and late, so they may import what they like.
    late = ("core", "sim", "diagrams", "web", "k8s")
    wrong = [
        f"{path.relative_to(repository)}:{line} imports {name}"
        for path in sorted((repository / "cli").rglob("*.py"))
        if path.parent.name != "serving"
        for name, line in imported_at_once(path)
        if ours(name) in late or name.startswith((*HEAVY, "quadriga.cli.serving"))
    ]
    assert wrong == []


def test_help_loads_nothing_heavy() -> None:
    # A fresh interpreter: this one has everything loaded.
    program = f"""
import sys
from quadriga.cli.main import main
try:
    status = main(["--help"])
except SystemExit as stop:
    status = stop.code
loaded = [name for name in {HEAVY!r} if name in sys.modules]
print("status", status or 0, "loaded", loaded, file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stderr.splitlines()[-1:] == ["status 0 loaded []"], done.stderr
    assert "simulate" in done.stdout


def test_no_module_is_too_long(repository: Path, modules: list[Path]) -> None:
    lengths = {
        str(path.relative_to(repository)): len(path.read_text(encoding="utf-8").splitlines())
        for path in modules
        if not path.name.endswith("_pb2.py")
    }
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST} == {}


def test_modules_are_named_for_what_they_hold(repository: Path, modules: list[Path]) -> None:
    wrong = [
        str(path.relative_to(repository))
        for path in modules
        if EMPTY_NAMES & {path.stem, *path.relative_to(repository).parts[:-1]}
    ]
    assert wrong == []


def test_test_files_have_names_of_their_own(repository: Path) -> None:
    # Folders of tests are no packages, so two files of one name would be one module.
    names = [path.name for path in (repository / "tests").rglob("test_*.py")]
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_no_file_knows_the_machine_it_was_written_on(repository: Path, texts: list[Path]) -> None:
    homes = ["/" + folder + "/" for folder in ("work", "root", "home", "Users")]
    wrong = [
        f"{path.relative_to(repository)}:{number}: {home}"
        for path in texts
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for home in homes
        # A path starts after a space, a quote or a bracket; `.../work/` is part of an address.
        if any(mark + home in " " + line for mark in " \"'`(=:")
    ]
    assert wrong == []


def test_every_folder_with_modules_is_listed_as_a_package(repository: Path) -> None:
    listed = (repository / "setup.cfg").read_text(encoding="utf-8")
    block = listed.partition("\npackages =\n")[2].partition("\ninstall_requires")[0]
    named = {line.strip() for line in block.splitlines()}
    found = {
        ".".join(["quadriga", *path.parent.relative_to(repository).parts])
        for package in MAY_IMPORT
        for path in (repository / package).rglob("*.py")
        if "__pycache__" not in path.parts
    }
    assert sorted(found - named) == []
    assert sorted(named - found) == ["quadriga"]  # the package itself, in packaging/quadriga


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_every_package_is_typed(repository: Path, package: str) -> None:
    assert (repository / package / "py.typed").is_file()
