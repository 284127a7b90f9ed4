"""Ways through the tables, and a tour that takes every row of each."""

from itertools import pairwise
from typing import Any

import pytest

from quadriga.fsm import (
    APPLICATION,
    LIFECYCLES,
    NODE,
    QUEUE,
    Lifecycle,
    Row,
    path_to,
    reachable,
    tour,
)
from quadriga.fsm.pytest_plugin import Coverage


def drive(lifecycle: Lifecycle, walk: tuple[Row, ...], born: Any, steer: Any) -> None:
    """Take exactly these rows, one after the other."""
    it = born(lifecycle.initial)
    for row in walk:
        assert it.state == row.source
        info = steer(it, row)
        assert lifecycle.choose(it, row.trigger, info) == row
        lifecycle.fire(it, row.trigger, **info)
        assert it.state == (row.target or row.source)


def test_the_shortest_way_and_what_can_follow() -> None:
    assert [row.trigger for row in path_to(APPLICATION, "Killed")] == ["kill", "killed"]
    assert [row.trigger for row in path_to(NODE, "Draining", "Schedulable")] == ["drain"]
    assert reachable(NODE) == ("New", "Draining", "Schedulable", "Rejected", "Removed")
    assert reachable(NODE, "Draining") == ("Draining", "Schedulable", "Removed")
    assert reachable(NODE, "Removed") == ("Removed",)
    with pytest.raises(ValueError, match="^node cannot get from Draining to New$"):
        path_to(NODE, "New", "Draining")


def test_every_state_can_be_reached_by_its_way(lifecycle: Lifecycle, born: Any, steer: Any) -> None:
    for state in lifecycle.states:
        way = path_to(lifecycle, state)
        drive(lifecycle, way, born, steer)
        assert (way[-1].target if way else lifecycle.initial) == state


@pytest.mark.parametrize("ask", [path_to, reachable])
def test_a_state_that_is_not_there(ask: Any) -> None:
    with pytest.raises(ValueError, match="^queue has no state 'Ghost'$"):
        ask(QUEUE, "Ghost")


def test_everything_can_follow_the_beginning_by_a_shortest_way(lifecycle: Lifecycle) -> None:
    assert set(reachable(lifecycle)) == set(lifecycle.states)
    # a way of n rows: no row leads there from a state that is nearer than n - 1
    far = {state: len(path_to(lifecycle, state)) for state in lifecycle.states}
    for row in lifecycle.rows:
        if row.target is not None:
            assert far[row.target] <= far[row.source] + 1


def test_answers_are_the_same_every_time(lifecycle: Lifecycle, twin: Any) -> None:
    again = twin(lifecycle)
    assert tour(again) == tour(lifecycle)
    assert reachable(again) == reachable(lifecycle)


def test_a_tour_covers_every_row_and_no_walk_of_it_is_idle(lifecycle: Lifecycle) -> None:
    walks = tour(lifecycle)
    assert {row for walk in walks for row in walk} == set(lifecycle.rows)
    for walk in walks:
        assert walk[0].source == lifecycle.initial
        for row, following in pairwise(walk):
            assert following.source == (row.target or row.source)
    # each ends with a row that no walk before it took
    taken: set[Row] = set()
    for walk in tour(lifecycle):
        assert walk[-1] not in taken
        taken.update(walk)


def test_the_tours_take_every_row_of_every_table(born: Any, steer: Any) -> None:
    coverage = Coverage()
    for lifecycle in LIFECYCLES.values():
        coverage.add(lifecycle)
        for walk in tour(lifecycle):
            drive(lifecycle, walk, born, steer)
    coverage.stop()
    assert {name: coverage.missing(name) for name in LIFECYCLES} == dict.fromkeys(LIFECYCLES, ())
    assert coverage.percent == 100
