"""Whatever goes wrong while a trigger is applied leaves the entity as it was."""

import asyncio
import copy
import pickle
import re
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from fsm_entities import Model
from transitions import Machine, MachineError
from transitions.extensions import HierarchicalMachine, LockedMachine
from transitions.extensions.asyncio import AsyncMachine

from quadriga.fsm import (
    APPLICATION,
    NODE,
    Effect,
    FastMachine,
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
        "fragile", initial="A", final=("B",), lasts={"A": unbounded("go")}, rows=[line], stock=stock
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


@pytest.fixture(params=["cells", "observed", "stock", "machine", "fast machine", "async machine"])
def fire(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Fires ``go`` at an entity with every machine that a table can have."""

    def fire(line: Any, it: Any, **info: Any) -> None:
        table = build(line, stock=request.param == "stock")
        cls = {"machine": Machine, "fast machine": FastMachine, "async machine": AsyncMachine}
        if request.param in cls:
            table.make_machine(it, cls[request.param])
            done = it.go(**info)
            if isinstance(done, Awaitable):
                asyncio.run(finish(done))
        else:
            stop = table.observe(lambda row: None) if request.param == "observed" else None
            try:
                table.fire(it, "go", **info)
            finally:
                if stop is not None:
                    stop()

    return fire


async def finish(done: Awaitable[Any]) -> None:
    await done


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (None, "None"),
        ("paid", "'paid'"),
        (b"paid", "b'paid'"),
        ({"a": 1}, "{'a': 1}"),
        (Forget(), "one effect"),
        (Fired("go", "A", "B", {}), "Fired("),  # any named tuple
        (3, "3"),
    ],
    ids=str,
)
def test_emitters_without_effects_are_named(made: Any, told: str, fire: Callable[..., Any]) -> None:
    """A text would be taken for as many effects as it has letters."""

    def confirm(it: Any, fired: Fired) -> Any:
        return made

    it: Any = SimpleNamespace(key="it-1", state="A")
    for emitters in (confirm, (fine, confirm)):
        with pytest.raises(TypeError, match=rf"^confirm returned {re.escape(told)}.*\(\) for none"):
            fire(row("go", "A", "B", emit=emitters), it)
        assert it.state == "A"


@pytest.mark.parametrize("at", ["guard", "emitter"])
def test_a_trigger_fired_while_another_asks_stays(at: str, fire: Callable[..., Any]) -> None:
    """The entity would come back from its final state, and nobody would know."""

    def ends(it: Any, info: Any) -> tuple[Effect, ...]:
        it.state = "B"  # as firing does
        return (Forget(),)

    guarded = row("go", "A", "A", when=ends) + row("go", "A", "B")
    it: Any = SimpleNamespace(key="it-1", state="A")
    with pytest.raises(
        RuntimeError, match=r"^fragile 'it-1': a guard or an emitter of 'go' changed"
    ):
        fire(guarded if at == "guard" else row("go", "A", "B", emit=ends), it)
    assert it.state == "B"


@pytest.mark.parametrize(
    "cls", [Machine, FastMachine, LockedMachine, HierarchicalMachine, AsyncMachine]
)
def test_information_without_a_name_is_refused_by_every_machine(cls: type[Machine]) -> None:
    """Guards and emitters would not see it."""
    for line in (row("go", "A", "B", emit=fine), row("go", "A", "B")):
        if cls is FastMachine and not line[0].emit:
            continue  # nobody would have seen it
        machine: Any = build(line).make_machine(Model("it-1"), cls)
        (model,), (again,) = machine.models, pickle.loads(pickle.dumps(machine)).models
        for go in (model.go, again.go, partial(model.trigger, "go")):
            with pytest.raises(TypeError, match="^fragile: go takes its information by name"):
                asyncio.run(finish(go(3)))
        assert model.state == again.state == "A"


def test_a_lifecycle_equals_its_pickle_and_no_other_one() -> None:
    table = build(row("go", "A", "B", emit=fine))
    again = pickle.loads(pickle.dumps(table))
    assert again == table and hash(again) == hash(table) and len({again, table}) == 1
    assert table != build(row("go", "A", "B")) and table != "fragile"
    changed = table.copy()
    assert changed != table and changed == changed


def test_the_triggers_of_no_state_are_not_all() -> None:
    state: Any = None  # of an entity that was never given one
    assert NODE.triggers(state) == () != NODE.triggers()


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
        (
            "Schedulabel",
            "drain",
            "(unknown state 'Schedulabel' (states: New, Schedulable, Draining, Rejected, Removed; "
            "did you mean 'Schedulable'?))",
        ),
        (
            None,
            "drain",
            "(unknown state None (states: New, Schedulable, Draining, Rejected, Removed))",
        ),
        ("Schedulable", "accept", None),
    ],
)
def test_a_trigger_or_a_state_that_exists_nowhere_is_called_unknown(
    state: Any, trigger: str, told: str | None
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
