"""What a decision costs does not grow with the cluster. Ratios only: no test knows the time."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def scheduling() -> Any:
    """bench/ is not installed; it lies beside the tests in a checkout."""
    sys.path.insert(0, str(REPOSITORY))
    try:
        spec = importlib.util.spec_from_file_location(
            "bench_scheduling", REPOSITORY / "bench" / "scheduling.py"
        )
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(str(REPOSITORY))


def best_of(scheduling: Any, **case: Any) -> float:
    return min(scheduling.cost_of(**case, pods=1_500) for _ in range(3))


def test_a_decision_costs_no_more_on_four_times_the_nodes(scheduling: Any) -> None:
    # a walk over the nodes would cost four times as much
    small = best_of(scheduling, nodes=1_000, apps=50, sort="fair", shape="u50")
    large = best_of(scheduling, nodes=4_000, apps=50, sort="fair", shape="u50")
    assert large < 2.5 * small


def test_a_decision_costs_no_more_with_many_asks_in_one_application(scheduling: Any) -> None:
    # a walk over spent asks would cost fifty times as much at the end
    spread = best_of(scheduling, nodes=500, apps=50, sort="fair", shape="u50")
    heaped = best_of(scheduling, nodes=500, apps=2, sort="fair", shape="u2")
    assert heaped < 2.5 * spread


def test_binpacking_costs_about_as_much_as_fair(scheduling: Any) -> None:
    # a walk past every full node would cost many times as much
    fair = best_of(scheduling, nodes=1_000, apps=50, sort="fair", shape="u50")
    packed = best_of(scheduling, nodes=1_000, apps=50, sort="binpacking", shape="u50")
    assert packed < 2.5 * fair
