"""The checkout, and the files in it that are ours."""

from __future__ import annotations

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
PACKAGES = ("fsm", "si", "core", "diagrams", "sim", "web", "k8s", "cli")

#: what we write; other folders of a checkout hold caches, environments and builds
FOLDERS = (*PACKAGES, "packaging", "tests", "bench", "examples", "docs", "deploy", ".ci", ".github")

TEXT = frozenset(
    ".cfg .csv .dot .ini .json .md .mmd .proto .puml .py .pyi .scxml .svg "
    ".toml .txt .yaml .yml".split()
)


def sources() -> list[Path]:
    """Every text file of the checkout that is written or committed by us."""
    found = [path for path in REPOSITORY.iterdir() if path.is_file() and path.suffix in TEXT]
    for folder in FOLDERS:
        for path in (REPOSITORY / folder).rglob("*"):
            ours = path.suffix in TEXT or (folder == ".ci" and path.is_file())
            if ours and "__pycache__" not in path.parts:
                found.append(path)
    return sorted(found)


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout, or of the unpacked source distribution."""
    return REPOSITORY


@pytest.fixture(scope="session")
def texts() -> list[Path]:
    """Every text file that is ours."""
    return sources()


@pytest.fixture(scope="session")
def modules() -> list[Path]:
    """Every Python file of the subpackages, of the tests, examples and benchmarks."""
    return [path for path in sources() if path.suffix == ".py"]
