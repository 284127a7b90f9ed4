"""docs/fsm.md says what is so: its samples run, in the order in which they are read."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

FENCE = re.compile(r"^```(\w*)$")


@pytest.fixture(scope="module")
def page(repository: Path) -> str:
    path = repository / "docs" / "fsm.md"
    if not path.is_file():
        pytest.skip("docs/ is part of a checkout only")
    return path.read_text(encoding="utf-8")


def samples(page: str) -> tuple[str, set[str]]:
    """The Python of a page on the lines where it stands, and all languages of its samples."""
    lines: list[str] = []
    languages: set[str] = set()
    inside: str | None = None
    for line in page.splitlines():
        fence = FENCE.match(line)
        lines.append(line if inside == "python" and not fence else "")
        if fence:
            inside = None if inside is not None else fence[1]
            languages.add(inside or "")
    assert inside is None, "a sample does not end"
    return "\n".join(lines) + "\n", languages - {""}


def test_every_sample_runs(page: str, tmp_path: Path) -> None:
    code, languages = samples(page)
    assert languages <= {"python", "console", "ini", "json"}
    # in a process of its own: the page tracks a lifecycle, which must not count here
    script = tmp_path / "fsm.md.py"
    script.write_text(code, encoding="utf-8")
    result = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def test_every_public_name_is_explained(page: str) -> None:
    from quadriga import fsm

    missing = [name for name in fsm.__all__ if not re.search(rf"\b{name}\b", page)]
    assert not missing


def test_a_broken_sample_would_be_noticed() -> None:
    code, _ = samples("text\n```python\nassert False\n```\n")
    assert code == "\n\nassert False\n\n"
