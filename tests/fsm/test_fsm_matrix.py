"""Every state with every trigger: what is legal does what its row says, the rest is refused."""

import dataclasses
import typing
from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import pytest

from quadriga.fsm import (
    APPLICATION,
    LIFECYCLES,
    NODE,
    QUEUE,
    Effect,
    InvalidTransition,
    Lifecycle,
    Row,
    path_to,
    reachable,
    tour,
)
from quadriga.fsm.lifecycles import effects
from quadriga.fsm.pytest_plugin import Coverage

KINDS = {kind for kind in vars(effects).values() if isinstance(kind, type)} - {Effect}


@pytest.mark.parametrize(
    "facts",
    [{}, {"run_limit": 7, "gang_wait_limit": 8}, {"run_limit": 7, "started": True}],
    ids=str,
)
def test_a_row_has_well_formed_effects_or_none_whatever_the_facts(
    lifecycle: Lifecycle, born: Any, steer: Any, facts: dict[str, Any]
) -> None:
    for row in lifecycle.rows:
        it = born(row.source)
        info = steer(it, row)
        for name, value in facts.items():
            setattr(it, name, value)
        caused = lifecycle.fire(it, row.trigger, reason="because", **info)
        assert isinstance(caused, tuple)
        assert row.emit or facts or caused == (), row
        for effect in caused:
            _assert_well_formed(effect)


def _assert_well_formed(effect: Effect) -> None:
    kind = type(effect)
    assert kind in KINDS
    hints = typing.get_type_hints(kind)
    for field in dataclasses.fields(effect):  # type: ignore[arg-type]
        assert type(getattr(effect, field.name)) is hints[field.name], effect
    assert hash(effect) == hash(dataclasses.replace(effect))  # type: ignore[type-var]
    with pytest.raises((AttributeError, TypeError)):  # slots and frozen: nothing can be added
        effect.extra = 1  # type: ignore[attr-defined]


def test_every_pair_is_legal_or_refused(lifecycle: Lifecycle, born: Any) -> None:
    for state, trigger in product(lifecycle.states, lifecycle.triggers()):
        it = born(state)
        rows, possible = lifecycle.rows_from(state, trigger), lifecycle.triggers(state)
        assert lifecycle.allows(state, trigger) == bool(rows) == (trigger in possible)
        if rows:
            lifecycle.fire(it, trigger)
            assert it.state in {state if r.target is None else r.target for r in rows}
            continue
        with pytest.raises(InvalidTransition) as refused:
            lifecycle.fire(it, trigger)
        error = refused.value
        named = (error.lifecycle, error.key, error.state, error.trigger, error.possible)
        assert named == (lifecycle.name, "it-1", state, trigger, possible)
        told = f" (possible: {', '.join(possible)}" if possible else ""
        what = f"{lifecycle.name} 'it-1' cannot '{trigger}' in state {state}{told}"
        assert str(error).startswith(what)
        assert it.state == state
        with pytest.raises(InvalidTransition):
            lifecycle.choose(it, trigger, {})


def test_a_guard_decides_both_ways(lifecycle: Lifecycle, born: Any, steer: Any) -> None:
    for row in lifecycle.rows:
        if row.guard is None:
            continue
        it = born(row.source)
        info = steer(it, row)
        assert row.guard(it, info) is True
        assert lifecycle.choose(it, row.trigger, info) == row

        steer(it, replace(row, guard=None))
        assert row.guard(it, {}) is False
        otherwise = lifecycle.choose(it, row.trigger, {})
        assert otherwise.guard is None
        lifecycle.fire(it, row.trigger)
        assert it.state == (otherwise.target or row.source), row


def test_a_trigger_or_a_state_that_nobody_knows_is_refused(lifecycle: Lifecycle, born: Any) -> None:
    it = born(lifecycle.initial)
    with pytest.raises(InvalidTransition, match="cannot 'dance'"):
        lifecycle.fire(it, "dance")
    assert it.state == lifecycle.initial
    it = born("Limbo")
    with pytest.raises(InvalidTransition, match="in state Limbo"):
        lifecycle.fire(it, lifecycle.triggers()[0])


def test_every_effect_is_public() -> None:
    assert set(effects.__all__) == {kind.__name__ for kind in KINDS}


# -- ways through the tables, and a tour that takes every row of each --------------------------------


def drive(lifecycle: Lifecycle, walk: tuple[Row, ...], born: Any, steer: Any) -> None:
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


def test_everything_is_reached_by_a_shortest_way_the_same_every_time(
    lifecycle: Lifecycle, born: Any, steer: Any, twin: Any
) -> None:
    for state in lifecycle.states:
        way = path_to(lifecycle, state)
        drive(lifecycle, way, born, steer)
        assert (way[-1].target if way else lifecycle.initial) == state
    assert set(reachable(lifecycle)) == set(lifecycle.states)
    # a way of n rows: no row leads there from a state that is nearer than n - 1
    far = {state: len(path_to(lifecycle, state)) for state in lifecycle.states}
    for row in lifecycle.rows:
        if row.target is not None:
            assert far[row.target] <= far[row.source] + 1
    again = twin(lifecycle)
    assert tour(again) == tour(lifecycle)
    assert reachable(again) == reachable(lifecycle)


@pytest.mark.parametrize("ask", [path_to, reachable])
def test_a_state_that_is_not_there(ask: Any) -> None:
    with pytest.raises(ValueError, match="^queue: unknown state 'Ghost' .states: Active, "):
        ask(QUEUE, "Ghost")


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
