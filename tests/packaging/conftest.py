"""The checkout, the files in it that are ours, and what is built once for all tests of a run."""

import ast
import fcntl
import os
import subprocess
from collections.abc import Callable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

# Building and installing is for tox -e packaging alone.
collect_ignore = []
try:
    version("build")
except PackageNotFoundError:
    collect_ignore += ["test_packaging_distributions.py", "test_packaging_image.py"]

REPOSITORY = Path(__file__).resolve().parents[2]

#: the subpackages, which are also the folders
PACKAGES = ("base", "fsm", "si", "core", "diagrams", "sim", "web", "k8s", "cli")

#: what we write; other folders of a checkout hold caches, environments and builds
FOLDERS = (*PACKAGES, "packaging", "tests", "bench", "examples", "docs", "deploy", ".ci", ".github")

TEXT = frozenset(
    ".cfg .csv .dot .ini .json .md .mmd .proto .puml .py .pyi .scxml .svg .toml .txt .yaml .yml".split()
)


@cache
def sources() -> list[Path]:
    """Every text file of the checkout that is written or committed by us."""
    found = [path for path in REPOSITORY.iterdir() if path.is_file() and path.suffix in TEXT]
    for folder in FOLDERS:
        for path in (REPOSITORY / folder).rglob("*"):
            ours = path.suffix in TEXT or (folder == ".ci" and path.is_file())
            if ours and "__pycache__" not in path.parts:
                found.append(path)
    return sorted(found)


Import = ast.Import | ast.ImportFrom


@cache
def imports_in(path: Path) -> list[tuple[Import, bool]]:
    """The import statements of a module, and whether they run when it is imported itself."""
    found = []
    waiting: list[tuple[ast.stmt, bool]] = [(each, True) for each in ast.parse(text_of(path)).body]
    while waiting:  # statements only: to look at each expression as well would take long
        node, at_once = waiting.pop()
        if isinstance(node, Import):
            found.append((node, at_once))
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            late = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or (
                part == "body"
                and isinstance(node, ast.If)
                and "TYPE_CHECKING" in ast.unparse(node.test)
            )
            waiting += [(each, at_once and not late) for each in getattr(node, part, ())]
    return found


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def modules_below(folder: str) -> list[Path]:
    return sorted((REPOSITORY / folder).rglob("*.py"))


def run(*words: str | Path, cwd: Path, **more: str) -> str:
    """Run a command and give what it prints; fail with all of it. ``more`` is its environment's."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=os.environ | more,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


#: rules of the acceptance tables that open issues introduce: whoever builds one takes it out of here
OWED: frozenset[str] = frozenset()


@pytest.fixture(scope="session")
def owed() -> frozenset[str]:
    return OWED


@pytest.fixture(scope="session")
def repository() -> Path:
    return REPOSITORY


@pytest.fixture(scope="session")
def texts() -> list[Path]:
    return sources()


@pytest.fixture(scope="session")
def modules() -> list[Path]:
    return [path for path in sources() if path.suffix == ".py"]


Make = Callable[[Path], None]


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Make], Path]:
    """``once(name, make)`` lets ``make`` fill a folder once in a run, for all workers of pytest-xdist."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def made(name: str, make: Make) -> Path:
        folder, done = shared / f"once-{name}", shared / f"once-{name}.done"
        with (shared / f"once-{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                folder.mkdir()
                make(folder)
                done.touch()
        return folder

    return made
