"""A name of another lifecycle, or a misspelled one, is a type error; every right name is none."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
SNIPPETS = Path(__file__).with_name("lifecycle_names.py")


def test_mypy_finds_names_that_the_lifecycle_does_not_have(tmp_path: Path) -> None:
    home = tmp_path / "quadriga"  # the folders as they are imported
    home.mkdir()
    for package in ("fsm", "si", "core"):
        (home / package).symlink_to(REPOSITORY / package)
    command = [
        *(sys.executable, "-m", "mypy", "--strict", "--config-file", REPOSITORY / "mypy.ini"),
        *("--namespace-packages", "--explicit-package-bases", "--follow-imports", "silent"),
        *("--no-pretty", "--cache-dir", tmp_path / "cache", SNIPPETS),
    ]
    environment = {**os.environ, "MYPYPATH": str(tmp_path)}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment
    )
    errors = re.findall(
        r"^.*lifecycle_names\.py:(\d+): error: .*\[([a-z-]+)\]$", done.stdout, re.MULTILINE
    )
    wrong = [
        (str(number), code)
        for number, line in enumerate(SNIPPETS.read_text(encoding="utf-8").splitlines(), 1)
        for code in re.findall(r"  # wrong: ([a-z-]+)$", line)
    ]
    assert len(wrong) > 20
    assert errors == wrong, done.stdout + done.stderr
    assert done.stdout.count(" error: ") == len(wrong)
