"""What a decision costs does not grow with the cluster. Executed lines are counted: no test knows the time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PODS = 400

pytestmark = pytest.mark.interpreted  # what is compiled executes no lines


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


def cost(scheduling: Any, *case: Any) -> int:
    """How many lines are executed until all asks have their places."""
    scheduler, requests = scheduling.prepared(scheduling.Case(*case))
    for request in requests:
        scheduler.apply(request, 0)
    count = 0

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        scheduler.schedule(0)
    finally:
        sys.settrace(before)
    placed = sum(len(node.allocations) for node in scheduler.partition().nodes.values())
    assert placed == PODS
    return count


def test_a_decision_costs_no_more_on_four_times_the_nodes(scheduling: Any) -> None:
    # a walk over the nodes would cost four times as much
    assert cost(scheduling, "u50", 1_000, PODS) < 1.2 * cost(scheduling, "u50", 250, PODS)


def test_a_decision_costs_no_more_with_many_asks_in_one_application(scheduling: Any) -> None:
    # a walk over spent asks would cost fifty times as much at the end
    assert cost(scheduling, "u2", 250, PODS) < 1.2 * cost(scheduling, "u50", 250, PODS)


def test_binpacking_costs_about_as_much_as_fair(scheduling: Any) -> None:
    # a walk past every full node would cost many times as much
    fair = cost(scheduling, "u50", 250, PODS)
    assert cost(scheduling, "u50", 250, PODS, "binpacking") < 1.5 * fair
