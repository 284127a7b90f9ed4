"""The real traces, found through QUADRIGA_SHARED, and a writer of small folders."""

from collections.abc import Callable
from pathlib import Path

import pytest

from quadriga.sim.workload import Workload, open_workload


@pytest.fixture(scope="session")
def cerit_path(shared: Path) -> Path:
    return shared / "data" / "traces" / "cerit-sc-2013"


@pytest.fixture(scope="session")
def cerit(cerit_path: Path) -> Workload:
    return open_workload(cerit_path)


@pytest.fixture(scope="session")
def philly(shared: Path) -> Workload:
    return open_workload(shared / "data" / "traces" / "philly-2017")


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Path]:
    def write(**tables: str) -> Path:
        for name, text in tables.items():
            (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")
        return tmp_path

    return write
