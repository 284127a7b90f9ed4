"""docs/client.md and docs/grpc.md do what they say."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from quadriga.cli.main import main
from quadriga.si.client import Backoff, connection_state
from tests.si.remote_side import Serving


@pytest.fixture
def document(repository: Path) -> str:
    return (repository / "docs" / "client.md").read_text(encoding="utf-8")


def blocks(document: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", document, re.DOTALL | re.MULTILINE)


def test_the_program_runs(document: str, tmp_path: Path) -> None:
    (program,) = blocks(document, "python")
    words = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "accepted n1\n"), done.stderr


def test_the_commands_are_the_right_ones(document: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The second against what the first starts, but on a port that is free."""
    serve, simulate = (shlex.split(block) for block in blocks(document, "sh"))
    assert serve[:4] == ["quadriga", "serve", "--clock", "client"]
    address = serve[serve.index("--grpc") + 1]
    with Serving(steps=True) as serving:
        assert main([word.replace(address, serving.address) for word in simulate[1:]]) == 0
    said = capsys.readouterr().out
    assert "20 allocations" in said and "invariants checked nowhere" in said


def test_the_states_and_waits_are_those_of_the_code(document: str) -> None:
    states = re.findall(r"^\| `(\w+)` \| .* \| .*\|$", document, re.MULTILINE)
    assert set(states) >= {*connection_state.STATES}
    backoff = Backoff()
    assert f"{backoff.first_s:g} s at first" in document
    assert f"up to {backoff.most_s:g} s" in document


# -- docs/grpc.md ----------------------------------------------------------------------------------

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "grpc.md"
PROGRAMS = blocks(DOCUMENT.read_text("utf-8"), "python")


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_programs_run(program: str) -> None:
    exec(compile(program, str(DOCUMENT), "exec"), {"__name__": "document"})
