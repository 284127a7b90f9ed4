"""Entities that were stored: they keep their state, and renamed and unknown states are noticed."""

import asyncio
import copy
import pickle
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Any

import pytest
from fsm_entities import MACHINES, switch
from transitions import Machine
from transitions.extensions import HierarchicalMachine
from transitions.extensions.asyncio import AsyncMachine

from quadriga.fsm import DefinitionError, FastMachine, Lifecycle, UnknownState, row, unbounded


@dataclass(slots=True, eq=False)
class Order:
    key: str
    state: str


def order_table(renamed: dict[str, str]) -> Lifecycle:
    # fmt: off
    return Lifecycle(
        "order",
        initial="Open",
        final=("Delivered",),
        lasts={"Open": unbounded("pay"), "Paid": unbounded("deliver")},
        rows=(
            row("pay",     "Open", "Paid"),
            row("deliver", "Paid", "Delivered"),
        ),
        renamed=renamed,
    )
    # fmt: on


ORDER = order_table({"New": "Open", "Settled": "Paid"})


class Model:
    def __init__(self, key: str = "A-1", state: Any = None) -> None:
        self.key = key
        if state is not None:
            self.state = state


# -- entities ------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ORDER.states)
def test_a_state_of_the_table_passes(state: str) -> None:
    order = Order("A-1", state)
    ORDER.check(order)
    assert not ORDER.migrate(order)
    assert order.state == state


def test_an_unknown_state_is_named_with_what_it_resembles() -> None:
    order = Order("A-1", "Payed")
    for look in (ORDER.check, ORDER.migrate):
        with pytest.raises(UnknownState) as caught:
            look(order)
        assert str(caught.value) == (
            "order 'A-1' is in unknown state 'Payed' (states: Open, Paid, Delivered; did you mean 'Paid'?)"
        )
        error = pickle.loads(pickle.dumps(caught.value))
        assert (error.lifecycle, error.key, error.state) == ("order", "A-1", "Payed")
        assert (error.states, error.now, str(error)) == (ORDER.states, None, str(caught.value))
    assert order.state == "Payed"


@pytest.mark.parametrize("state", [None, 7, ["Open"], ""])
def test_what_is_no_name_is_unknown(state: Any) -> None:
    with pytest.raises(UnknownState, match="is in unknown state"):
        ORDER.check(Order("A-1", state))


def test_a_renamed_state_is_migrated() -> None:
    order = Order("A-1", "Settled")
    with pytest.raises(UnknownState) as caught:
        ORDER.check(order)
    assert str(caught.value) == (
        "order 'A-1' is in state 'Settled', which is 'Paid' now; migrate() changes it"
    )
    assert caught.value.now == "Paid"
    assert ORDER.migrate(order)
    assert order.state == "Paid"
    ORDER.fire(order, "deliver")
    assert order.state == "Delivered"


@pytest.mark.parametrize(
    ("renamed", "problem"),
    [
        ({"New": "Opne"}, "'New' becomes the unknown state 'Opne'; did you mean 'Open'?"),
        ({"Open": "Paid"}, "'Open' is still a state"),
        (
            {"New": "Fresh", "Fresh": "Open"},
            "'New' becomes 'Fresh', which becomes 'Open'; name the last one",
        ),
        ({"New": "New"}, "'New' becomes 'New', which becomes 'New'; name the last one"),
    ],
)
def test_a_wrong_rename_is_no_definition(renamed: dict[str, str], problem: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        order_table(renamed)
    assert str(caught.value) == f"order: renamed: {problem}"


def test_derived_lifecycles_know_the_former_names() -> None:
    more = ORDER.extend(
        rows=(row("hold", "Open", "Held"), row("go_on", "Held", "Open")),
        lasts={"Held": unbounded("go_on")},
        renamed={"Waiting": "Held"},
    )
    assert more.renamed == {**ORDER.renamed, "Waiting": "Held"}
    assert more.without(states=("Held",)).renamed == ORDER.renamed
    assert ORDER.replace(row("pay", "Open", "Paid")).renamed == ORDER.renamed
    # a new state may have a name that was another's once
    again = ORDER.extend(
        rows=(row("start", "New", "Open"), row("forget", "Open", "New")),
        lasts={"New": unbounded("start")},
    )
    assert again.renamed == {"Settled": "Paid"}


class Light(Enum):
    RED = "r"
    GREEN = "g"


class Colour(StrEnum):
    RED = "r"
    GREEN = "g"


@pytest.mark.parametrize("kind", [Light, Colour])
@pytest.mark.parametrize("text", ["GREEN", "g"])
def test_a_text_becomes_the_member_that_it_stands_for(kind: Any, text: str) -> None:
    table = switch("light", kind.RED, "go", kind.GREEN, "stop", renamed={"y": kind.RED})
    stored: Any = Order("A-1", text)
    if kind is Light or text == "GREEN":
        with pytest.raises(UnknownState, match=f"is in state '{text}', which is <{kind.__name__}"):
            table.check(stored)
    table.migrate(stored)
    assert stored.state == kind.GREEN
    table.fire(stored, "stop")
    assert stored.state is kind.RED
    for machine_cls in (Machine, FastMachine, HierarchicalMachine):
        model: Any = Model(state=text)
        old: Any = Model(state="y")
        table.make_machine(machine_cls=machine_cls).add_model([model, old])
        assert model.state is kind.GREEN
        assert old.state is kind.RED
        model.stop()
        assert model.state is kind.RED


def test_a_member_is_no_state_of_strings_and_a_model_without_a_key_has_its_class() -> None:
    with pytest.raises(UnknownState):
        ORDER.check(Order("A-1", Light.RED))  # type: ignore[arg-type]
    model = Model(state="Payed")
    del model.key
    with pytest.raises(UnknownState, match="^order 'Model' is in unknown state"):
        ORDER.make_machine(model)


def nested_table() -> Lifecycle:
    heater = switch("heater", "Cold", "warm", "Warm", "cool", renamed={"Hot": "Warm"})
    renamed = {"Switched": "On", "Out": "Off"}
    return switch("oven", "Off", "switch", "On", "switch", inside={"On": heater}, renamed=renamed)


def test_states_inside_of_states_may_be_renamed_at_each_level() -> None:
    oven = nested_table()
    names = "Out Off On_Hot On_Warm Switched_Cold On_Cold Switched_Hot On_Warm".split()
    for old, new in zip(names[::2], names[1::2], strict=True):
        stored = Order("kitchen", old)
        assert oven.migrate(stored)
        assert stored.state == new
    for unknown in ("On", "Switched", "On_Tepid"):
        with pytest.raises(UnknownState):
            oven.migrate(Order("kitchen", unknown))


@pytest.mark.parametrize("machine_cls", [HierarchicalMachine, Machine])
def test_a_model_keeps_a_state_inside_of_a_state(machine_cls: type[Machine]) -> None:
    models: list[Any] = [Model("a", "On_Warm"), Model("b", "Switched_Hot"), Model("c")]
    nested_table().make_machine(machine_cls=machine_cls).add_model(models)
    assert [model.state for model in models] == ["On_Warm", "On_Warm", "Off"]
    assert models[1].cool()
    assert models[1].state == "On_Cold"


# -- models ----------------------------------------------------------------------------------------


@pytest.fixture(params=MACHINES, ids=lambda cls: cls.__name__)
def machine_cls(request: pytest.FixtureRequest) -> type[Machine]:
    if "Graph" in request.param.__name__:
        pytest.importorskip("graphviz")
    return request.param  # type: ignore[no-any-return]


def test_a_model_keeps_its_state(machine_cls: type[Machine]) -> None:
    paid: Any = Model("A-1", "Paid")
    machine = ORDER.make_machine(paid, machine_cls)
    states = (None, "Paid", "Paid", "", "Settled", "Open")
    others: list[Any] = [Model(f"B-{n}", state) for n, state in enumerate(states)]
    machine.add_model(others)
    assert paid.state == "Paid"
    assert [each.state for each in others] == ["Open", "Paid", "Paid", "Open", "Paid", "Open"]
    assert machine.models == [paid, *others]
    # what the caller says counts
    told: Any = Model("C-1", "Paid")
    machine.add_model(told, initial="Delivered")
    assert told.state == "Delivered"

    result = paid.deliver()
    if issubclass(machine_cls, AsyncMachine):
        asyncio.run(_finish(result))
    assert paid.state == "Delivered"


async def _finish(result: Any) -> None:
    assert await result


def test_a_model_with_an_unknown_state_is_refused(machine_cls: type[Machine]) -> None:
    machine = ORDER.make_machine(None, machine_cls)
    good: Any = Model("A-1", "Open")
    with pytest.raises(
        UnknownState, match=r"^order 'A-2' is in unknown state 'Payed' .*did you mean 'Paid'\?\)$"
    ):
        machine.add_model([good, Model("A-2", "Payed")])
    assert machine.models == []
    assert not hasattr(good, "pay")


def test_the_machine_may_be_its_own_model_and_have_more_states() -> None:
    machine = ORDER.make_machine(model_attribute="phase")
    machine.add_states("Asleep")
    model: Any = Model(state="anything")
    model.phase = "Asleep"
    machine.add_model(model)
    assert (model.state, model.phase) == ("anything", "Asleep")
    machine: Any = ORDER.make_machine()
    machine.add_model("self")
    assert machine.state == "Open"
    assert machine.pay()


def test_the_shared_machine_keeps_states_too() -> None:
    for stock in (False, True):
        shared = switch("lamp", "Off", "on", "On", "off", renamed={"Lit": "On"}, stock=stock)
        models: list[Any] = [Model("a", "On"), Model("b"), Model("c", "Lit")]
        shared.machine.add_model(models)
        assert [model.state for model in models] == ["On", "Off", "On"]
        assert models[2].off()


def test_a_machine_can_be_copied_and_pickled(machine_cls: type[Machine]) -> None:
    machine = ORDER.make_machine(Model("A-1", "Paid"), machine_cls)
    named = machine_cls.__name__, machine_cls.__module__
    assert (type(machine).__name__, type(machine).__module__) == named
    for other in (pickle.loads(pickle.dumps(machine)), copy.deepcopy(machine)):
        assert isinstance(other, machine_cls)
        assert other is not machine
        assert [model.state for model in other.models] == ["Paid"]
        late: Any = Model("A-2", "Settled")
        other.add_model(late)
        assert late.state == "Paid"
