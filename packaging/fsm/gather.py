"""Builds the distribution quadriga-fsm from the sources of the whole project.

``pip install packaging/fsm`` and ``python -m build packaging/fsm`` call these hooks. They copy what the
engine consists of to a new folder, laid out as it is imported, and let setuptools build there. So the
source distribution is an ordinary project that needs neither this module nor the rest of the checkout,
nothing is left beside the sources, and several builds may run at a time.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from setuptools import build_meta

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

BUILD_SYSTEM = """\
[build-system]
requires = ["setuptools>=70.1"]
build-backend = "setuptools.build_meta"
"""


def build_wheel(folder: str, settings: Any = None, metadata: str | None = None) -> str:
    with gathered():
        return build_meta.build_wheel(folder, settings, metadata)


def build_sdist(folder: str, settings: Any = None) -> str:
    with gathered():
        return build_meta.build_sdist(folder, settings)


@contextmanager
def gathered() -> Iterator[None]:
    """The engine as a project of its own, in a new folder that is the current one meanwhile."""
    before = Path.cwd()
    with TemporaryDirectory(prefix="quadriga-fsm-") as folder:
        project = Path(folder)
        leave_out = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "packaging" / "quadriga", project / "quadriga", ignore=leave_out)
        for name in ("base", "fsm", "diagrams"):
            shutil.copytree(ROOT / name, project / "quadriga" / name, ignore=leave_out)
        for path in (HERE / "setup.cfg", HERE / "README.md", ROOT / "LICENSE", ROOT / "NOTICE"):
            shutil.copy(path, project)
        (project / "pyproject.toml").write_text(BUILD_SYSTEM, encoding="utf-8")
        os.chdir(project)
        try:
            yield
        finally:
            os.chdir(before)
