"""What a decision costs does not grow with the cluster. Ratios only: no test knows the time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PODS = 1_500


@pytest.fixture(scope="module")
def scheduling() -> Iterator[Any]:
    """bench/ is not installed; it lies beside the tests in a checkout."""
    sys.path.insert(0, str(REPOSITORY))
    try:
        yield import_module("bench.scheduling")
    finally:
        sys.path.remove(str(REPOSITORY))
        for name in [n for n in sys.modules if n.partition(".")[0] == "bench"]:
            del sys.modules[name]


def best_of(scheduling: Any, *case: Any) -> float:
    """ns for one decision: the least of a few runs, since only other work makes them dearer."""
    runs = [scheduling.run(scheduling.Case(*case)) for _ in range(4)]
    return min(cost.decision for cost in runs)


def test_a_decision_costs_no_more_on_four_times_the_nodes(scheduling: Any) -> None:
    # a walk over the nodes would cost four times as much
    small = best_of(scheduling, "u50", 1_000, PODS)
    large = best_of(scheduling, "u50", 4_000, PODS)
    assert large < 2.5 * small


def test_a_decision_costs_no_more_with_many_asks_in_one_application(scheduling: Any) -> None:
    # a walk over spent asks would cost fifty times as much at the end
    spread = best_of(scheduling, "u50", 500, PODS)
    heaped = best_of(scheduling, "u2", 500, PODS)
    assert heaped < 2.5 * spread


def test_binpacking_costs_about_as_much_as_fair(scheduling: Any) -> None:
    # a walk past every full node would cost many times as much
    fair = best_of(scheduling, "u50", 1_000, PODS)
    packed = best_of(scheduling, "u50", 1_000, PODS, "binpacking")
    assert packed < 2.5 * fair
