"""Random nested tables on ``fire`` and on the library's own nested states, compared step by step."""

from typing import Any

import pytest
from fsm_entities import Device, Model, note
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transitions import Machine, MachineError
from transitions.extensions import HierarchicalMachine

from quadriga.fsm import (
    STAYS,
    DefinitionError,
    InvalidTransition,
    Lifecycle,
    history,
    row,
    unbounded,
)
from quadriga.fsm.table import Edge, Info

TRIGGERS = ("a", "b", "c")
Drawn = tuple[str, str, str | None, bool, bool]


def guard_of(trigger: str) -> Any:
    def agrees(entity: Any, info: Info) -> bool:
        return bool(info["agrees"])

    agrees.__name__ = f"agrees_to_{trigger}"
    return agrees


AGREES = {trigger: guard_of(trigger) for trigger in TRIGGERS}


def cycle(name: str, states: list[str], step: str, inside: dict[str, Lifecycle]) -> dict[str, Any]:
    """A table that is legal by itself: each state leads to the next one."""
    ring = [row(step, s, states[(n + 1) % len(states)]) for n, s in enumerate(states)]
    lasts = {s: unbounded(step) for s in states}
    return {"name": name, "initial": states[0], "lasts": lasts, "rows": ring, "inside": inside}


@st.composite
def nested_tables(draw: st.DrawFn) -> Lifecycle:
    """A lifecycle with up to three levels, and rows from anywhere to anywhere that a table allows."""

    def level(name: str, depth: int) -> Lifecycle:
        states = [f"{letter}{depth}" for letter in "XYZ"[: draw(st.integers(2, 3))]]
        inside = {}
        for state in states:
            if depth < 3 and draw(st.integers(0, 2)) == 0:
                inside[state] = level(f"{name}{state}", depth + 1)
        table = cycle(name, states, f"step{depth}", inside)
        plain = Lifecycle(final=(), **table)
        known = [*plain.states, *plain.composites]
        for _ in range(draw(st.integers(0, 5))):
            trigger, source = draw(st.sampled_from(TRIGGERS)), draw(st.sampled_from(known))
            target: Any = draw(st.sampled_from([*known, STAYS]))
            if target in plain.composites and draw(st.booleans()):
                target = history(target, deep=draw(st.booleans()))
            guard = AGREES[trigger] if draw(st.booleans()) else None
            more = [row(trigger, source, target, when=guard, emit=note)]
            if guard is not None and draw(st.booleans()):
                more.append(row(trigger, source, draw(st.sampled_from(known)), emit=note))
            try:
                plain = Lifecycle(final=(), **{**table, "rows": [*table["rows"], *more]})
            except DefinitionError:
                continue  # for example, no row may follow one that always agrees
            table["rows"] = [*table["rows"], *more]
        return plain

    return level("random", 1)


@settings(
    max_examples=max(1, settings.default.max_examples // 2),  # type: ignore[attr-defined]
    suppress_health_check=[HealthCheck.too_slow],
    deadline=None,
)
@given(
    table=nested_tables(),
    steps=st.lists(
        st.tuples(st.sampled_from(("step1", "step2", "step3", *TRIGGERS)), st.booleans()),
        min_size=5,
        max_size=30,
    ),
)
def test_random_nested_tables_do_what_the_library_does(
    table: Lifecycle, steps: list[tuple[str, bool]]
) -> None:
    entity = Device(state=table.initial)
    nested: Any = Model()
    plain: Any = Model()
    machine = table.make_machine(nested, HierarchicalMachine)
    table.make_machine(plain, Machine)
    crossed: list[str] = []
    for composite in table.composites:
        for event in ("enter", "exit"):
            machine.get_state(composite).add_callback(
                event, lambda data, said=f"{event} {composite}": crossed.append(said)
            )
    for trigger, agrees in steps:
        before = entity.state
        crossed.clear()
        expected: list[str] = []
        if table.allows(before, trigger):
            chosen = table.choose(entity, trigger, {"agrees": agrees})
            if chosen.target is not None:
                left, entered = table.crossed(Edge("", before, trigger, chosen.target))
                expected = [f"exit {c}" for c in left] + [f"enter {c}" for c in entered]
            told = table.fire(entity, trigger, agrees=agrees)
            for model in (nested, plain):
                model.heard = ()
                getattr(model, trigger)(agrees=agrees)
                assert model.heard == told
        else:
            with pytest.raises(InvalidTransition):
                table.fire(entity, trigger, agrees=agrees)
            for model in (nested, plain):
                with pytest.raises((MachineError, AttributeError)):
                    getattr(model, trigger)(agrees=agrees)
        story = f"{trigger} in {before} of {table.rows}"
        assert entity.state == nested.state == plain.state, story
        assert entity.history == nested.history == plain.history, story
        assert crossed == expected, story
