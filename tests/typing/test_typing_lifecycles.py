"""A name of another lifecycle, a misspelled one, or an entity without the facts is a type error."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
SNIPPETS = Path(__file__).with_name("lifecycle_facts.py")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NAME = re.compile(r"[Ss]ave [^.]*`(\w+)\.py`")


def tutorial(folder: Path) -> list[str]:
    """The programs of the tutorial, written into a folder."""
    programs = []
    for page in sorted((REPOSITORY / "docs" / "tutorial").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        if code := "\n\n".join(BLOCK.findall(text)):
            named = NAME.search(text)
            programs.append(f"{named[1] if named else page.stem + '_'}.py")
            (folder / programs[-1]).write_text(code, encoding="utf-8")
    return programs


def test_mypy_finds_what_does_not_fit_the_lifecycle_and_nothing_in_the_tutorial(
    tmp_path: Path,
) -> None:
    """One run for all, since most of its time goes into what they import."""
    home = tmp_path / "quadriga"  # the folders as they are imported
    home.mkdir()
    for package in ("fsm", "si", "core"):
        (home / package).symlink_to(REPOSITORY / package)
    programs = tutorial(tmp_path)
    assert {"shop.py", "test_shop.py"} <= set(programs)
    assert len(programs) == 5
    command = [
        *(sys.executable, "-m", "mypy", "--strict", "--config-file", REPOSITORY / "mypy.ini"),
        *("--namespace-packages", "--explicit-package-bases", "--follow-imports", "silent"),
        *("--no-pretty", "--cache-dir", tmp_path / "cache", SNIPPETS, *programs),
    ]
    environment = {**os.environ, "MYPYPATH": str(tmp_path)}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment
    )
    found = rf"^.*{SNIPPETS.name}:(\d+): error: .*\[([a-z-]+)\]$"
    wrong = [
        (str(number), code)
        for number, line in enumerate(SNIPPETS.read_text(encoding="utf-8").splitlines(), 1)
        for code in re.findall(r"  # wrong: ([a-z-]+)$", line)
    ]
    assert len(wrong) > 40
    assert re.findall(found, done.stdout, re.MULTILINE) == wrong, done.stdout + done.stderr
    assert done.stdout.count(" error: ") == len(wrong)
