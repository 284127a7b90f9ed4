"""What a trigger and an entity may cost. Calls are counted, so no other program on the machine matters."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from quadriga.fsm import ASK, QUEUE, Lifecycle


def calls(work: Callable[[], object]) -> int:
    """How many functions of Python and of C are called."""
    count = 0

    def see(frame: Any, what: str, arg: Any) -> None:
        nonlocal count
        count += what in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count - 1  # the last one is setprofile


@pytest.mark.parametrize(
    ("table", "state", "triggers"),
    [(QUEUE, "Active", "stop start"), (ASK, "Pending", "allocate allocate")],
    ids=["plain row", "guarded row"],
)
def test_fire_calls_a_small_part_of_what_the_stock_machine_does(
    twin: Any, table: Lifecycle, state: str, triggers: str
) -> None:
    costs = []
    for stock in (False, True):
        life = twin(table, stock=stock)
        entity = SimpleNamespace(key="it", state=state, pending=2)
        for trigger in (*triggers.split(), *triggers.split()):  # once for what is made only once
            spent = calls(lambda life=life, it=entity, trigger=trigger: life.fire(it, trigger))
        costs.append(spent)
    fire, stock = costs
    assert fire <= 5, costs
    assert stock >= 12 * fire, costs


def test_an_entity_needs_less_than_a_hundred_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = pytest.importorskip("bench.fsm", reason="bench/ is part of a checkout only")
    monkeypatch.setattr(measured, "ROUNDS", 1)
    monkeypatch.setattr(measured, "TURNS", 20)
    figures = {figure.name: figure.value for figure in measured.lifecycles()}
    assert figures["entity: its own state"] < 100
    assert figures["model of the library"] > 10 * figures["entity: its own state"]


def test_the_table_is_readable_and_unknown_names_are_refused(repository: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "bench", *arguments]
        return subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)

    table = run("config")
    assert table.returncode == 0, table.stderr
    assert table.stdout.startswith("config\n  ")
    unknown = run("nothing")
    assert unknown.returncode == 2
    assert "no measurement is named 'nothing'" in unknown.stderr
