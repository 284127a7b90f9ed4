"""The examples run, and each is run by the environment that has the base dependencies only."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.packaging.conftest import REPOSITORY, run, text_of

EXAMPLES = sorted((REPOSITORY / "examples").glob("*.py"))

#: a line that each of them must print, so that an example which does nothing is noticed
SAYS = {
    "async_lifecycle": "web-2: confirm -> Replaced",
    "device": "back, and still Online_Paused",
    "embed_core": "Waiting --complete--> Completed",
    "embed_lifecycle": "refused: ask 'request-1' cannot 'park' in state Allocated",
    "first_gang": "start pod worker-3 on n2",
    "order_service": "3, to A-1: Refund(cents=1995)",
    "own_lifecycle": "not a lifecycle: loan: state Shelved has no exit and is not declared final",
    "own_rm": "hard: placeholder_timeout -> Killing",
    "remote_rm": "queue: root.default",
}

#: need more than the base dependencies
WITH_EXTRAS = {"remote_rm"}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(example: Path, tmp_path: Path) -> None:
    said = run(sys.executable, "-W", "error", example, cwd=tmp_path)  # away from the checkout
    assert SAYS[example.stem] in said
    if example.stem == "first_gang":
        page = REPOSITORY / "docs" / "tutorial" / "first-gang.md"
        assert f"```text\n{said}```" in text_of(page), "the tutorial shows what its program prints"


def test_every_example_is_known() -> None:
    assert {example.stem for example in EXAMPLES} == set(SAYS)


def test_every_example_runs_with_the_base_dependencies() -> None:
    embedders = (
        text_of(REPOSITORY / "tox.ini").partition("[testenv:embedders]")[2].partition("\n[")[0]
    )
    base = SAYS.keys() - WITH_EXTRAS
    assert [name for name in sorted(base) if f"examples/{name}.py" not in embedders] == []
