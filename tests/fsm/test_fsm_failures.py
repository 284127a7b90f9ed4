"""Whatever goes wrong while a trigger is applied leaves the entity as it was."""

import copy
import pickle
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from transitions import MachineError

from quadriga.fsm import (
    APPLICATION,
    NODE,
    Effect,
    Fired,
    InvalidTransition,
    Lifecycle,
    row,
    unbounded,
)
from quadriga.fsm.lifecycles.effects import Forget
from quadriga.fsm.timers import Timers


class Broken(Exception):
    pass


def broken_guard(it: Any, info: Any) -> bool:
    raise Broken


def broken(it: Any, fired: Fired) -> tuple[Effect, ...]:
    raise Broken


def broken_midway(it: Any, fired: Fired) -> Iterator[Effect]:
    yield Forget()
    raise Broken


def fine(it: Any, fired: Fired) -> tuple[Effect, ...]:
    assert it.state == fired.source  # the change comes after
    return (Forget(),)


def nothing(it: Any, fired: Fired) -> Any:
    return None  # an emitter that forgot to return


# fmt: off
FRAGILE = {
    "guard":          row("go", "A", "B", when=broken_guard) + row("go", "A", "B"),
    "emitter":        row("go", "A", "B", emit=broken),
    "second emitter": row("go", "A", "B", emit=(fine, broken)),
    "generator":      row("go", "A", "B", emit=broken_midway),
    "both":           row("go", "A", "B", emit=(fine, broken_midway)),
}
# fmt: on


def build(line: Any, stock: bool = False) -> Lifecycle:
    return Lifecycle(
        "fragile",
        initial="A",
        final=("B",),
        lasts={"A": unbounded("go")},
        rows=(line,),
        stock=stock,
    )


@pytest.mark.parametrize("what", FRAGILE)
def test_a_failure_changes_no_model_either(what: str) -> None:
    heard: list[Any] = []

    class Model:
        on_effects = heard.append

    for made in (build(FRAGILE[what]).machine, build(FRAGILE[what]).make_machine()):
        model: Any = Model()
        made.add_model(model)
        with pytest.raises(Broken):
            model.go()
        assert model.state == "A"
    assert heard == []


@pytest.mark.parametrize("observed", [False, True], ids=["plain", "observed"])
@pytest.mark.parametrize("stock", [False, True], ids=["lean", "stock"])
@pytest.mark.parametrize("what", FRAGILE)
def test_a_failure_changes_nothing_and_names_the_lifecycle_the_entity_and_the_row(
    what: str, stock: bool, observed: bool, born: Any
) -> None:
    table, it = build(FRAGILE[what], stock), born("A")
    stop = table.observe(lambda row: None) if observed else None
    with pytest.raises(Broken) as caught:
        table.fire(it, "go")
    if stop is not None:
        stop()
    assert it.state == "A"
    assert caught.value.__notes__ == [f"fragile 'it-1' in state A: raised in {table.rows[0]}"]


@pytest.mark.parametrize("stock", [False, True], ids=["lean", "stock"])
def test_an_emitter_that_returns_nothing_is_noticed(stock: bool, born: Any) -> None:
    it = born("A")
    with pytest.raises(TypeError):
        build(row("go", "A", "B", emit=nothing), stock).fire(it, "go")
    assert it.state == "A"


# -- the exception -----------------------------------------------------------------------------


@pytest.fixture
def refusal(born: Any) -> InvalidTransition:
    with pytest.raises(InvalidTransition) as caught:
        APPLICATION.fire(born("Expired"), "run")
    return caught.value


COPIES: dict[str, Callable[[Any], Any]] = {
    f"pickle {protocol}": lambda it, protocol=protocol: pickle.loads(pickle.dumps(it, protocol))
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
} | {"copy": copy.copy, "deepcopy": copy.deepcopy}


@pytest.mark.parametrize("way", COPIES)
def test_a_refusal_can_be_sent_elsewhere(refusal: InvalidTransition, way: str) -> None:
    again = COPIES[way](refusal)
    assert type(again) is InvalidTransition
    assert vars(again) == vars(refusal)
    assert str(again) == "application 'it-1' cannot 'run' in state Expired"


@pytest.mark.parametrize(
    ("state", "trigger", "told"),
    [
        ("Schedulable", "drian", "(possible: {}; unknown trigger 'drian'; did you mean 'drain'?)"),
        ("Schedulabel", "drain", "(unknown state 'Schedulabel'; did you mean 'Schedulable'?)"),
        ("Schedulable", "accept", None),
    ],
)
def test_a_trigger_or_a_state_that_exists_nowhere_is_called_unknown(
    state: str, trigger: str, told: str | None
) -> None:
    """A trigger that only this state does not have is not."""
    node: Any = SimpleNamespace(state=state, key="n-1")
    for fire in (NODE.fire, lambda it, trigger: Timers().fire(NODE, it, trigger, 0)):
        with pytest.raises(InvalidTransition) as caught:
            fire(node, trigger)
        assert bool(caught.value.unknown) == (told is not None)
        if told is not None:
            possible = ", ".join(caught.value.possible)
            assert str(caught.value).endswith(f"in state {state} {told.format(possible)}")
        assert vars(pickle.loads(pickle.dumps(caught.value))) == vars(caught.value)


def test_a_refusal_is_the_librarys_and_hides_its_cause(refusal: InvalidTransition) -> None:
    assert isinstance(refusal, MachineError)
    assert refusal.__cause__ is None
    assert refusal.__context__ is None or refusal.__suppress_context__
