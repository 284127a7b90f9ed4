"""The command with what it printed, and a small trace in the Standard Workload Format."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from service_process import Service

from quadriga.cli.main import main
from quadriga.fsm.pytest_plugin import track
from quadriga.sim import SHIM_APPLICATION, SHIM_TASK
from tests.si.certificates import certify, tokens_in

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
        size = 8 if n % 5 == 0 else 1 + n % 4
        times = f"{n} {n * 10} 5 {100 + n}"
        lines.append(f"{times} {size} -1 -1 {size} 600 -1 1 {n % 3} 1 -1 1 -1 -1 -1")
    path = tmp_path / "small.swf"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Service]]:
    """``start("--demo")`` gives the service when it is ready."""
    services: list[Service] = []

    def started(*options: object, ready: bool = True, **how: Any) -> Service:
        folder = tmp_path / str(len(services))
        folder.mkdir()
        service = Service(folder, *options, **how)
        services.append(service)
        return service.wait_until_ready() if ready else service

    yield started
    for service in services:
        service.close()


@pytest.fixture
def logging_as_before() -> Iterator[None]:
    """Logging is the process's."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    logging.captureWarnings(False)
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture(scope="session")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority, and certificates of a server and of a client called shim-a."""
    here = "DNS:localhost,IP:127.0.0.1"
    certified = {"server": here, "new": here, "shim-a": "DNS:shim-a"}
    return certify(tmp_path_factory.mktemp("pki"), {"ca": certified})


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    text = "ops admin plain:correct-horse-battery-staple\nshim-a rm:rm-a certificate:shim-a\n"
    return tokens_in(tmp_path, text)
