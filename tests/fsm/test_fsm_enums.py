"""States and triggers that are strings, members of a StrEnum, or members of any Enum."""

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from typing import Any

import pytest

from quadriga.fsm import (
    DefinitionError,
    Effect,
    Fired,
    InvalidTransition,
    Lifecycle,
    path_to,
    reachable,
    row,
    tour,
    unbounded,
    within,
)
from quadriga.fsm.table import STAYS


class Status(Enum):
    OPEN = auto()
    PAID = auto()
    SENT = auto()


class Step(Enum):
    PAY = auto()
    SEND = auto()


class TextStatus(StrEnum):
    OPEN = "Open"
    PAID = "Paid"
    SENT = "Sent"


class TextStep(StrEnum):
    PAY = "pay"
    SEND = "send"


class Plain:
    OPEN, PAID, SENT = "Open", "Paid", "Sent"


class PlainStep:
    PAY, SEND = "pay", "send"


KINDS = {"enum": (Status, Step), "strenum": (TextStatus, TextStep), "str": (Plain, PlainStep)}
TEXTS = {"enum": ("OPEN", "PAID", "PAY"), "strenum": ("Open", "Paid", "pay")}
TEXTS["str"] = TEXTS["strenum"]


@dataclass(frozen=True, slots=True)
class Told(Effect):
    trigger: Any
    source: Any
    target: Any


def tell(order: Any, fired: Fired) -> Iterator[Effect]:
    yield Told(fired.trigger, fired.source, fired.target)


def in_part(order: Any, info: Any) -> bool:
    return bool(info.get("in_part"))


def table(kind: str, **options: Any) -> Lifecycle:
    state, step = KINDS[kind]
    return Lifecycle(
        "order",
        initial=state.OPEN,
        final=(state.SENT,),
        lasts={state.OPEN: within(5, then=step.PAY), state.PAID: unbounded(step.SEND)},
        rows=(
            row(step.PAY, state.OPEN, STAYS, when=in_part, why="the rest is due"),
            row(step.PAY, state.OPEN, state.PAID, emit=tell),
            row(step.SEND, state.PAID, state.SENT),
        ),
        **options,
    )


@dataclass(eq=False)
class Order:
    state: Any
    key: str = "A-1"


@pytest.fixture(params=list(KINDS))
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.mark.parametrize("stock", [False, True], ids=["own", "stock"])
def test_the_entity_has_the_member(kind: str, stock: bool) -> None:
    state, step = KINDS[kind]
    orders = table(kind, stock=stock)
    order = Order(orders.initial)
    assert orders.fire(order, step.PAY, in_part=True) == ()
    assert order.state is state.OPEN
    assert orders.fire(order, step.PAY) == (Told(step.PAY, state.OPEN, state.PAID),)
    assert order.state is state.PAID
    taken = orders.take(order, step.SEND)
    assert (taken.target, taken.edge[1:3]) == (state.SENT, (state.PAID, step.SEND))
    assert order.state is state.SENT


def test_the_table_is_read_by_members(kind: str) -> None:
    state, step = KINDS[kind]
    orders = table(kind)
    assert orders.states == (state.OPEN, state.PAID, state.SENT)
    assert orders.triggers(state.OPEN) == (step.PAY,)
    assert orders.allows(state.PAID, step.SEND) and not orders.allows(state.OPEN, step.SEND)
    assert list(orders.timed) == [state.OPEN]
    assert orders.choose(Order(state.OPEN), step.PAY, {}).target is state.PAID
    assert [r.trigger for r in path_to(orders, state.SENT)] == [step.PAY, step.SEND]
    assert reachable(orders, state.PAID) == (state.PAID, state.SENT)
    assert sum(map(len, tour(orders))) == 3
    colours = {state.OPEN: 1, state.PAID: 2, state.SENT: 3}
    assert orders.total("colours", colours) == colours


def test_errors_print_the_text_of_a_member(kind: str) -> None:
    state, step = KINDS[kind]
    open_, paid, pay = TEXTS[kind]
    orders = table(kind)
    with pytest.raises(InvalidTransition) as refused:
        orders.fire(Order(state.OPEN), step.SEND)
    send = "SEND" if kind == "enum" else "send"
    said = f"order 'A-1' cannot '{send}' in state {open_} (possible: {pay})"
    assert str(refused.value) == said
    assert refused.value.state is state.OPEN
    assert refused.value.possible == (step.PAY,)
    again = pickle.loads(pickle.dumps(refused.value))
    assert (str(again), again.state, again.trigger) == (said, state.OPEN, step.SEND)
    assert str(orders.rows[1]) == f"row 1: {open_} --{pay}--> {paid}"
    with pytest.raises(DefinitionError, match=f"^order: colours lacks {open_}$"):
        orders.total("colours", {state.PAID: 2, state.SENT: 3})


def test_a_string_is_no_member_of_an_enum_and_a_number_no_state() -> None:
    order = Order("Open")
    table("strenum").fire(order, "pay")
    assert order.state is TextStatus.PAID
    with pytest.raises(InvalidTransition, match=r"; did you mean Step.PAY, not 'PAY'\?\)$"):
        table("enum").fire(Order(Status.OPEN), "PAY")
    with pytest.raises(DefinitionError, match="state 1 is neither a string nor a member"):
        Lifecycle("n", initial=1, final=(), lasts={1: unbounded("go")}, rows=())  # type: ignore[type-var]


class Other(Enum):
    OPEN = auto()
    OPNE = auto()


PAYS = {Status.OPEN: unbounded(Step.PAY)}
# fmt: off
MISTAKES: list[tuple[Any, dict[Any, Any], tuple[Any, ...], str]] = [
    # the final state, the limits and the rows; what the error says
    (Status.SENT, PAYS, (row(Step.PAY, Status.OPEN, Other.OPNE),), r"unknown state 'OPNE'; did you mean 'OPEN'\?"),
    (Other.OPEN, PAYS, (row(Step.PAY, Status.OPEN, Other.OPEN),),
     r"order: the states <Status.OPEN: 1> and <Other.OPEN: 1> have the same name 'OPEN'"),
    (Status.SENT, {**PAYS, Status.PAID: unbounded("PAY")},
     (row(Step.PAY, Status.OPEN, Status.PAID), row("PAY", Status.PAID, Status.SENT)),
     r"<Step.PAY: 1> and 'PAY' have the same name$"),
]
# fmt: on


@pytest.mark.parametrize(("final", "lasts", "rows", "message"), MISTAKES)
def test_misspelled_or_equal_names_fail(final: Any, lasts: Any, rows: Any, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        Lifecycle("order", initial=Status.OPEN, final=(final,), lasts=lasts, rows=rows)
