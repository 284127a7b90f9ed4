"""A name of another lifecycle, a misspelled one, or an entity without the facts is a type error; what is right
is none."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
SNIPPETS = ("lifecycle_names.py", "lifecycle_facts.py")


@pytest.mark.parametrize("name", SNIPPETS)
def test_mypy_finds_what_does_not_fit_the_lifecycle(name: str, tmp_path: Path) -> None:
    snippets = Path(__file__).with_name(name)
    home = tmp_path / "quadriga"  # the folders as they are imported
    home.mkdir()
    for package in ("fsm", "si", "core"):
        (home / package).symlink_to(REPOSITORY / package)
    command = [
        *(sys.executable, "-m", "mypy", "--strict", "--config-file", REPOSITORY / "mypy.ini"),
        *("--namespace-packages", "--explicit-package-bases", "--follow-imports", "silent"),
        *("--no-pretty", "--cache-dir", tmp_path / "cache", snippets),
    ]
    environment = {**os.environ, "MYPYPATH": str(tmp_path)}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment
    )
    errors = re.findall(rf"^.*{name}:(\d+): error: .*\[([a-z-]+)\]$", done.stdout, re.MULTILINE)
    wrong = [
        (str(number), code)
        for number, line in enumerate(snippets.read_text(encoding="utf-8").splitlines(), 1)
        for code in re.findall(r"  # wrong: ([a-z-]+)$", line)
    ]
    assert len(wrong) > 20
    assert errors == wrong, done.stdout + done.stderr
    assert done.stdout.count(" error: ") == len(wrong)
