"""The lean engine against the library's own machine: the same rows, the same random triggers."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
from fsm_entities import Model
from transitions import MachineError

from quadriga.fsm import (
    STAYS,
    Effect,
    Fired,
    InvalidTransition,
    Lifecycle,
    Row,
    ignored,
    row,
    unbounded,
    within,
)

STEPS = 3_000


@dataclass(frozen=True, slots=True)
class Noise(Effect):
    """What the synthetic emitters cause: everything they were told."""

    trigger: str
    source: str
    target: str
    state: str
    loud: int


class OutOfPaint(Exception):
    pass


def loud(it: Any, info: Any) -> bool:
    return info["loud"]  # type: ignore[no-any-return]  # truthy, not a bool: 0 to 3


def very_loud(it: Any, info: Any) -> bool:
    if info["loud"] == 1:
        raise KeyError("a guard that fails")
    return bool(info["loud"] > 2)


def noise(it: Any, fired: Fired) -> tuple[Effect, ...]:
    return (Noise(fired.trigger, fired.source, fired.target, it.state, fired.info["loud"]),)


def fragile(it: Any, fired: Fired) -> Iterator[Effect]:
    yield from noise(it, fired)
    if fired.info["fails"]:
        raise OutOfPaint
    yield from noise(it, fired)


def refused_elsewhere(it: Any, fired: Fired) -> tuple[Effect, ...]:
    """An emitter that trips over another lifecycle: that error must come through as it is."""
    if fired.info["fails"]:
        raise InvalidTransition("other", "it-2", "There", "thing")
    return ()


def library_error(it: Any, fired: Fired) -> tuple[Effect, ...]:
    if fired.info["fails"]:
        raise MachineError("the library's own")
    return ()


# fmt: off
SYNTHETIC = Lifecycle(
    "synthetic",
    initial="A",
    final=("Z",),
    lasts={"A": unbounded("go"), "B": within(5), "C": within(7, then="go")},
    rows=(
        row("go",     "A",             "B"),
        row("go",     "B",             "C",    when=loud,       emit=noise),
        row("go",     "B",             STAYS,  when=very_loud,  emit=(fragile, noise)),
        row("go",     "B",             "B",                     emit=(noise, fragile)),
        row("go",     "C",             "A",                     emit=fragile),
        row("self",   ("A", "B", "C"), "B",    when=very_loud),
        row("self",   "A",             "A"),
        row("self",   "B",             STAYS,                   emit=refused_elsewhere),
        row("self",   "C",             "C",                     emit=(noise, library_error)),
        ignored("no", ("A", "B"),      why="nothing to see"),
        row("no",     "C",             STAYS,                   emit=noise),
        row("end",    "C",             STAYS,  when=loud,       emit=noise),
        row("end",    "C",             "Z",                     emit=noise),
    ),
)
# fmt: on


def outcome(lifecycle: Lifecycle, it: Any, trigger: str, info: dict[str, Any]) -> Any:
    try:
        return lifecycle.fire(it, trigger, **info)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("observed", [False, True])
def test_the_lean_engine_does_what_the_library_does(born: Any, twin: Any, observed: bool) -> None:
    """It meets guards that fail, emitters that fail, stays and reflexive rows."""
    lean, stock = twin(SYNTHETIC), twin(SYNTHETIC, stock=True)
    taken: set[Row] = set()
    stop = lean.observe(taken.add) if observed else None
    random = Random("differential")
    ours, theirs = born("A"), born("A")
    failures = set()
    for step in range(STEPS):
        if ours.state == "Z" or random.random() < 0.05:
            ours.state = theirs.state = random.choice(lean.states)
        info = {"loud": random.randint(0, 3), "fails": random.random() < 0.3}
        trigger, before = random.choice((*lean.triggers(), "dance")), ours.state
        got, expected = outcome(lean, ours, trigger, info), outcome(stock, theirs, trigger, info)
        story = f"step {step}: {trigger} in {before} with {info}"
        assert (got, ours.state) == (expected, theirs.state), story
        failures.add(got[0] if got and isinstance(got[0], type) else None)
    assert failures >= {KeyError, OutOfPaint, InvalidTransition, MachineError}
    if stop is not None:
        stop()
        # where "loud" agrees, "very loud" is never asked: that row is legal and unreachable by facts
        assert {row for row in lean.rows if row not in taken} == {lean.rows[2]}


def test_a_model_of_the_shared_machine_does_what_fire_does(born: Any, twin: Any) -> None:
    table = twin(SYNTHETIC)
    model, it = Model("it-1"), born("A")
    table.machine.add_model(model)
    random = Random("model")
    for _ in range(2_000):
        if it.state == "Z":
            it.state = model.state = "A"  # type: ignore[attr-defined]
        info = {"loud": random.randint(0, 3), "fails": random.random() < 0.3}
        trigger = random.choice(table.triggers())
        expected = outcome(table, it, trigger, info)
        model.heard = ()
        try:
            assert getattr(model, trigger)(**info) is True
            assert model.heard == expected
        except Exception as error:
            assert (type(error), str(error)) == expected
        assert model.state == it.state  # type: ignore[attr-defined]
