"""The steps of deploy/Containerfile, one by one, in a folder instead of an image."""

import json
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.deployed import instructions

INSTALLED = "/opt/quadriga"
PATIENCE_S = 60


@pytest.fixture(scope="module")
def image(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("image")
    work = root / "src"
    work.mkdir()
    for word, rest in instructions():
        if word == "COPY" and not rest.startswith("--from"):
            *names, target = rest.split()
            # Absolute is in the image, relative below its WORKDIR.
            for name in names:
                copy(repository / name, root / target.lstrip("/") if target[0] == "/" else work)
        elif word == "RUN":
            command = [
                each.replace(INSTALLED, str(root / INSTALLED.lstrip("/")))
                for each in shlex.split(rest)
                if each != "--no-cache-dir"
            ]
            if command[0] == "python":
                command[0] = sys.executable
            done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
    return root


def copy(source: Path, target: Path) -> None:
    if source.is_dir():
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, target / source.name, ignore=ignored)
    else:
        target = target / source.name if target.is_dir() else target
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)


def test_what_the_image_starts_is_healthy_and_stops(image: Path, tmp_path: Path) -> None:
    found = dict(instructions())
    commands = image / INSTALLED.lstrip("/") / "bin"
    started = json.loads(found["ENTRYPOINT"]) + json.loads(found["CMD"])
    ports = tmp_path / "ports.json"
    with subprocess.Popen(
        [commands / started[0], *started[1:], "--http", "0", "--grpc", "0", "--ports-file", ports],
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={"PATH": str(commands)},
    ) as process:
        try:
            assert process.stderr is not None
            messages = (json.loads(line)["message"] for line in process.stderr)
            assert any(message.startswith("ready") for message in messages)
            port = json.loads(ports.read_text(encoding="utf-8"))["http"]
            check = shlex.join(json.loads(found["HEALTHCHECK"].partition("CMD ")[2]))
            check = check.replace(INSTALLED, str(image / INSTALLED.lstrip("/")))

            def healthy(port: int) -> subprocess.CompletedProcess[str]:
                url = f"http://127.0.0.1:{port}/livez"
                return subprocess.run(
                    shlex.split(check),
                    capture_output=True,
                    text=True,
                    check=False,
                    env={"PATH": str(commands), "QUADRIGA_HEALTH_URL": url},
                )

            assert healthy(port).returncode == 0
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_S) == 0
            away = healthy(port)
            assert away.returncode == 1
            assert "refused" in away.stderr
        finally:
            process.kill()
