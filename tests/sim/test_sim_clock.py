"""Virtual time, the step function of what is allocated, and figures of waits."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from quadriga.sim.clock import Clock
from quadriga.sim.rendering import duration
from quadriga.sim.usage import DAY, Usage
from quadriga.sim.waits import distribution

SECOND = 1_000_000_000


def test_actions_come_in_the_order_of_time_then_of_planning() -> None:
    clock, seen = Clock(), []
    for ns, name in ((5, "c"), (3, "a"), (5, "d"), (3, "b")):
        clock.after(ns, seen.append, name)
    clock.now = clock.planned[0][0]
    clock.run_due()
    assert (seen, clock.planned[0][0], clock.done) == (["a", "b"], 5, 2)
    clock.now = 5
    clock.run_due()
    assert seen == ["a", "b", "c", "d"]
    clock.run_due()
    assert (clock.planned, clock.done) == ([], 4)


def test_what_is_planned_for_now_is_done_now() -> None:
    clock, seen = Clock(), []

    def again(left: Any) -> None:
        seen.append(left)
        if left:
            clock.after(0, again, left - 1)

    clock.after(0, again, 2)
    clock.run_due()
    assert seen == [2, 1, 0]


def test_usage_is_integrated_over_days() -> None:
    usage = Usage("vcore")
    usage.change(DAY // 2, 4, False)
    usage.change(DAY * 2, 2, True)
    usage.change(DAY * 2, -1, False)
    usage.settle(DAY * 3)
    assert usage.days == [2 * DAY, 4 * DAY, 5 * DAY]
    assert (usage.area, usage.held_area, usage.until) == (11 * DAY, 2 * DAY, 3 * DAY)
    assert usage.peak == 5  # 6 was never there for any time


@given(st.lists(st.tuples(st.integers(0, 3 * DAY), st.integers(0, 9)), max_size=30))
def test_days_add_up_to_the_whole(changes: list[tuple[int, int]]) -> None:
    usage, now, area = Usage("vcore"), 0, 0
    for step, amount in changes:
        area += usage.allocated * step
        now += step
        usage.change(now, amount - usage.allocated, False)
    usage.settle(now)
    assert usage.area == area


def test_percentiles_are_of_the_nearest_rank() -> None:
    figures = distribution([n * SECOND for n in range(100, 0, -1)])
    assert [figures[f"p{p}"] for p in (50, 75, 90, 95, 99)] == [50, 75, 90, 95, 99]
    assert (figures["count"], figures["mean"], figures["max"]) == (100, 50.5, 100)
    assert distribution([]) == dict.fromkeys(figures) | {"count": 0}


@given(st.lists(st.integers(0, 10**17), min_size=1, max_size=50), st.randoms())
def test_figures_do_not_depend_on_the_order(waits: list[int], chance: Any) -> None:
    shuffled = list(waits)
    chance.shuffle(shuffled)
    assert distribution(shuffled) == distribution(waits)


def test_durations_read_well() -> None:
    told = [duration(s) for s in (None, 0.0, 0.5, 59.9, 60, 370, 3600, 43_260, 90_000, 172_800)]
    assert told == [
        "-", "0s", "0.5s", "59.9s", "1m0s", "6m10s", "1h0m", "12h1m", "1d1h", "2d0h",
    ]  # fmt: skip
