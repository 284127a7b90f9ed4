"""Every state with every trigger: what is legal does what its row says, the rest is refused."""

import dataclasses
import typing
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from quadriga.fsm import Effect, InvalidTransition, Lifecycle, effects

KINDS = {kind for kind in vars(effects).values() if isinstance(kind, type)} - {Effect}


def test_every_row_does_what_it_says(lifecycle: Lifecycle, born: Any, steer: Any) -> None:
    for row in lifecycle.rows:
        it = born(row.source)
        info = steer(it, row)
        assert lifecycle.choose(it, row.trigger, info) == row
        caused = lifecycle.fire(it, row.trigger, **info)
        assert it.state == (row.source if row.target is None else row.target), row
        assert isinstance(caused, tuple)
        assert row.emit or caused == (), row
        for effect in caused:
            _assert_well_formed(effect)


@pytest.mark.parametrize(
    "facts", [{"run_limit": 7, "gang_wait_limit": 8}, {"run_limit": 7, "started": True}], ids=str
)
def test_every_effect_is_well_formed_whatever_the_facts(
    lifecycle: Lifecycle, born: Any, steer: Any, facts: dict[str, Any]
) -> None:
    for row in lifecycle.rows:
        it = born(row.source)
        info = steer(it, row)
        for name, value in facts.items():
            setattr(it, name, value)
        for effect in lifecycle.fire(it, row.trigger, reason="because", **info):
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
