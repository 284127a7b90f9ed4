"""The command with what it printed, and a small trace in the Standard Workload Format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from quadriga.cli.main import main
from quadriga.fsm.pytest_plugin import track
from quadriga.sim import SHIM_APPLICATION, SHIM_TASK

track(SHIM_APPLICATION)
track(SHIM_TASK)


class Done(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def quadriga(capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """``quadriga("draw", "node")`` gives the exit code and both outputs."""

    def run(*arguments: object) -> Done:
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
        return Done(code, *capsys.readouterr())

    return run


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Thirty jobs on four nodes of four processors; every fifth is a gang of two nodes."""
    lines = ["; MaxNodes: 4", "; MaxProcs: 16"]
    for n in range(1, 31):
        processors = 8 if n % 5 == 0 else 1 + n % 4
        lines.append(
            f"{n} {n * 10} 5 {100 + n} {processors} -1 -1 {processors} 600 -1 1 {n % 3} 1 -1 1 -1 -1 -1"
        )
    path = tmp_path / "small.swf"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
