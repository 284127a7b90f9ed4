"""Every state with every trigger: what is legal does what its row says, the rest is refused."""

import dataclasses
import typing
from dataclasses import replace
from typing import Any

import pytest

from quadriga.fsm import LIFECYCLES, Effect, InvalidTransition, Lifecycle, effects

KINDS = {kind for kind in vars(effects).values() if isinstance(kind, type)} - {Effect}


def test_every_row_does_what_it_says(edge: Any, born: Any, steer: Any) -> None:
    lifecycle, row = edge
    it = born(row.source)
    info = steer(it, row)
    assert lifecycle.choose(it, row.trigger, info) == row
    caused = lifecycle.fire(it, row.trigger, **info)
    assert it.state == (row.source if row.target is None else row.target)
    assert isinstance(caused, tuple)
    if not row.emit:
        assert caused == ()
    for effect in caused:
        _assert_well_formed(effect)


@pytest.mark.parametrize(
    "facts", [{"run_limit": 7, "gang_wait_limit": 8}, {"run_limit": 7, "started": True}], ids=str
)
def test_every_effect_is_well_formed_whatever_the_facts(
    edge: Any, born: Any, steer: Any, facts: dict[str, Any]
) -> None:
    lifecycle, row = edge
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


def test_every_pair_is_legal_or_refused(pair: Any, born: Any) -> None:
    lifecycle, state, trigger = pair
    it = born(state)
    rows = lifecycle.rows_from(state, trigger)
    assert lifecycle.allows(state, trigger) == bool(rows) == (trigger in lifecycle.triggers(state))
    if rows:
        lifecycle.fire(it, trigger)
        assert it.state in {state if r.target is None else r.target for r in rows}
        return
    with pytest.raises(InvalidTransition) as refused:
        lifecycle.fire(it, trigger)
    error = refused.value
    assert (error.lifecycle, error.key, error.state, error.trigger) == (
        lifecycle.name,
        "it-1",
        state,
        trigger,
    )
    assert error.possible == lifecycle.triggers(state)
    possible = f" (possible: {', '.join(error.possible)}" if error.possible else ""
    assert str(error).startswith(
        f"{lifecycle.name} 'it-1' cannot '{trigger}' in state {state}{possible}"
    )
    assert it.state == state
    with pytest.raises(InvalidTransition):
        lifecycle.choose(it, trigger, {})


GUARDED = [
    (table, row) for table in LIFECYCLES.values() for row in table.rows if row.guard is not None
]


@pytest.mark.parametrize(
    ("lifecycle_", "row"), GUARDED, ids=[f"{t.name}-{r.source}-{r.label}" for t, r in GUARDED]
)
def test_a_guard_decides_both_ways(lifecycle_: Lifecycle, row: Any, born: Any, steer: Any) -> None:
    it = born(row.source)
    info = steer(it, row)
    assert row.guard(it, info) is True
    assert lifecycle_.choose(it, row.trigger, info) == row

    steer(it, replace(row, guard=None))
    assert row.guard(it, {}) is False
    otherwise = lifecycle_.choose(it, row.trigger, {})
    assert otherwise.guard is None
    lifecycle_.fire(it, row.trigger)
    assert it.state == (otherwise.target or row.source)


def test_a_trigger_nobody_knows_is_refused(lifecycle: Lifecycle, born: Any) -> None:
    it = born(lifecycle.initial)
    with pytest.raises(InvalidTransition, match="cannot 'dance'"):
        lifecycle.fire(it, "dance")
    assert it.state == lifecycle.initial


def test_a_state_nobody_knows_is_refused(lifecycle: Lifecycle, born: Any) -> None:
    it = born("Limbo")
    with pytest.raises(InvalidTransition, match="in state Limbo"):
        lifecycle.fire(it, lifecycle.triggers()[0])


def test_every_effect_is_public() -> None:
    assert set(effects.__all__) == {kind.__name__ for kind in KINDS}
