"""The real traces, found through QUADRIGA_SHARED, and a writer of small folders."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from quadriga.sim.workload import Workload, open_workload

_REPOSITORY = Path(__file__).resolve().parents[2]


def _trace(name: str) -> Path:
    shared = Path(os.environ.get("QUADRIGA_SHARED") or _REPOSITORY.parent / "shared")
    path = shared / "data" / "traces" / name
    if not path.is_dir():
        reason = f"the trace {name} is not here: set QUADRIGA_SHARED to the folder with data/"
        if os.environ.get("QUADRIGA_REQUIRE_SHARED") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return path


@pytest.fixture(scope="session")
def cerit_path() -> Path:
    return _trace("cerit-sc-2013")


@pytest.fixture(scope="session")
def cerit(cerit_path: Path) -> Workload:
    return open_workload(cerit_path)


@pytest.fixture(scope="session")
def philly() -> Workload:
    return open_workload(_trace("philly-2017"))


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Path]:
    def write(**tables: str) -> Path:
        for name, text in tables.items():
            (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")
        return tmp_path

    return write
