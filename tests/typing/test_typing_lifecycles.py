"""A name of another lifecycle or machine, a misspelled one, or an entity without the facts is a type error."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from quadriga.diagrams.command import main
from tests.typing.test_typing_stubs import MACHINES, documented

REPOSITORY = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
SNIPPETS = [HERE / "lifecycle_facts.py", HERE / "machine_facts.py"]
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


def stubs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What ``quadriga-fsm stubs`` writes for the machines beside this file and for that of the documentation."""
    orders, wrong = documented()
    (folder / "orders.py").write_text(orders, encoding="utf-8")
    (folder / "wrong_orders.py").write_text(wrong, encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(HERE), str(folder), *sys.path])
    monkeypatch.chdir(folder)
    written = []
    for machine in (*(f"machines:{name}" for name in MACHINES), "orders:machine"):
        module, _, name = machine.partition(":")
        written.append("order_types.py" if module == "orders" else f"{name}_stub.py")
        assert main(["stubs", machine, "-o", written[-1]]) == 0
    del sys.modules["machines"], sys.modules["orders"]
    return [*written, "orders.py"]


def test_mypy_finds_what_does_not_fit_a_lifecycle_or_a_machine_and_nothing_in_the_tutorial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One run for all, since most of its time goes into what they import."""
    home = tmp_path / "quadriga"  # the folders as they are imported
    home.mkdir()
    for package in ("base", "fsm", "si", "core", "diagrams"):
        (home / package).symlink_to(REPOSITORY / package)
    programs = tutorial(tmp_path)
    assert {"shop.py", "test_shop.py"} <= set(programs)
    assert len(programs) == 5
    programs += [*stubs(tmp_path, monkeypatch), str(HERE / "machines.py")]
    snippets = [*SNIPPETS, tmp_path / "wrong_orders.py"]
    command = [
        *(sys.executable, "-m", "mypy", "--strict", "--config-file", REPOSITORY / "mypy.ini"),
        *("--namespace-packages", "--explicit-package-bases", "--follow-imports", "silent"),
        *("--no-pretty", "--cache-dir", tmp_path / "cache", *snippets, *programs),
    ]
    environment = {**os.environ, "MYPYPATH": str(tmp_path)}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment
    )
    wrong = [
        (path.name, str(number), code)
        for path in snippets
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for code in re.findall(r"  # wrong: ([a-z-]+)$", line)
    ]
    assert len(wrong) > 65
    found = re.findall(r"^.*?(\w+\.py):(\d+): error: .*\[([a-z-]+)\]$", done.stdout, re.MULTILINE)
    assert sorted(found) == sorted(wrong), done.stdout + done.stderr
    assert done.stdout.count(" error: ") == len(wrong)
