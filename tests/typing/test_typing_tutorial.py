"""The programs of the tutorial pass ``mypy --strict``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NAME = re.compile(r"[Ss]ave [^.]*`(\w+)\.py`")


def test_the_programs_of_the_tutorial_pass(tmp_path: Path) -> None:
    home = tmp_path / "quadriga"  # the folders as they are imported
    home.mkdir()
    for package in ("fsm", "si", "core"):
        (home / package).symlink_to(REPOSITORY / package)
    programs = []
    for page in sorted((REPOSITORY / "docs" / "tutorial").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        if code := "\n\n".join(BLOCK.findall(text)):
            named = NAME.search(text)
            programs.append(f"{named[1] if named else page.stem + '_'}.py")
            (tmp_path / programs[-1]).write_text(code, encoding="utf-8")
    assert {"shop.py", "test_shop.py"} <= set(programs)
    assert len(programs) == 5
    command = [
        *(sys.executable, "-m", "mypy", "--strict", "--config-file", REPOSITORY / "mypy.ini"),
        *("--namespace-packages", "--explicit-package-bases", "--follow-imports", "silent"),
        *("--no-pretty", "--cache-dir", tmp_path / "cache", *programs),
    ]
    environment = {**os.environ, "MYPYPATH": str(tmp_path)}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
