"""Lifecycles derived from others: the lines stay lines, and the result is checked."""

from collections.abc import Callable
from enum import Enum, auto
from types import SimpleNamespace
from typing import Any

import pytest
from fsm_entities import switch

from quadriga.fsm import (
    APPLICATION,
    STAYS,
    DefinitionError,
    Effect,
    Fired,
    Lifecycle,
    history,
    ignored,
    row,
    unbounded,
    within,
)


def in_part(order: Any, info: Any) -> bool:
    return bool(info.get("in_part"))


def tell(order: Any, fired: Fired) -> tuple[Effect, ...]:
    return ()


# fmt: off
ORDER = Lifecycle(
    "order",
    initial="Open",
    final=("Delivered", "Cancelled"),
    lasts={
        "Open": within(5, then="cancel"),
        "Paid": unbounded("deliver"),
    },
    rows=(
        row("pay",     "Open",           STAYS,       when=in_part, why="the rest is due"),
        row("pay",     "Open",           "Paid"),
        row("deliver", "Paid",           "Delivered", emit=tell),
        row("cancel",  "*",              "Cancelled"),
        ignored("pay", ("Paid",),        why="the bank sends notices twice"),
        row("look",    ("Open", "Paid"), STAYS,       emit=tell),
    ),
    on_enter={"Paid": tell},
    on_exit={"Open": tell},
)
# fmt: on
BEFORE = [str(each) for each in ORDER.rows]


def lines(table: Lifecycle) -> list[str]:
    by_line: dict[int, list[Any]] = {}
    for each in table.rows:
        by_line.setdefault(each.line, []).append(each)
    return [
        f"{of[0].label} {'+'.join(r.source for r in of)} {of[0].target}" for of in by_line.values()
    ]


def test_an_extended_table_has_more_rows_and_states() -> None:
    longer = ORDER.extend(
        name="order with returns",
        lasts={"Delivered": within(9, then="keep"), "Held": unbounded("release")},
        final=("Kept", "Returned"),
        rows=(
            row("keep", "Delivered", "Kept"),
            row("give_back", "Delivered", "Returned"),
            row("hold", ("Open", "Paid"), "Held"),
            row("release", "Held", "Open"),
        ),
    )
    assert longer.name == "order with returns"
    assert longer.final == ("Cancelled", "Kept", "Returned")
    assert longer.states[:4] == ("Open", "Paid", "Delivered", "Held")
    assert lines(longer)[3] == "cancel Open+Paid+Delivered+Held Cancelled"  # the "*" includes them
    assert lines(longer)[8] == "hold Open+Paid Held"
    order = SimpleNamespace(key="A-1", state="Paid")
    longer.fire(order, "deliver")
    longer.fire(order, "give_back")
    assert order.state == "Returned"
    assert [str(each) for each in ORDER.rows] == BEFORE


def test_a_state_may_become_final_and_an_action_may_go() -> None:
    shorter = ORDER.without(
        triggers=["deliver", "look"],
        states=["Delivered"],
        rows=ORDER.rows_from("Paid", "pay"),
        lasts={"Paid": unbounded("cancel")},
    )
    ending = shorter.extend(final=("Paid",), on_enter={"Paid": ()})
    assert ending.final == ("Cancelled", "Paid")
    assert lines(ending)[-1] == "cancel Open Cancelled"
    assert (ending.on_enter, ending.rows[1].emit) == ({}, (tell,))


def test_the_result_of_an_extension_is_checked_and_only_what_is_there_is_replaced() -> None:
    with pytest.raises(DefinitionError, match="row 6: Open --pay--> Paid: an earlier row always"):
        ORDER.extend(rows=(row("pay", "Open", "Paid"),))
    with pytest.raises(DefinitionError, match=r"unknown state 'Piad'; did you mean 'Paid'\?"):
        ORDER.extend(rows=(row("refund", "Piad", "Open"),))
    with pytest.raises(DefinitionError, match=r"^order: rows\[0\] is not a line"):
        ORDER.extend(rows=row("refund", "Paid", "Open"))  # type: ignore[arg-type]
    with pytest.raises(DefinitionError) as error:
        ORDER.replace(row("cancle", "Open", "Cancelled"))
    assert str(error.value) == (
        "order: there is no row 'cancle' from Open to replace; did you mean 'cancel'?; extend() adds rows"
    )


(LOOKING,) = ORDER.rows_from("Paid", "look")
(CANCELLING,) = ORDER.rows_from("Paid", "cancel")
BY_LINE = lines(ORDER)
# fmt: off
DERIVED: dict[str, tuple[Callable[[], Lifecycle], list[str]]] = {
    "a trigger goes with all its rows": (lambda: ORDER.without(triggers=["look"]), BY_LINE[:5]),
    "a state goes with all rows from and to it": (
        lambda: ORDER.without(states=["Paid", "Delivered"], triggers=["pay"]),
        ["cancel Open Cancelled", "look Open None"]),
    "one row of a line goes and the line stays": (
        lambda: ORDER.without(rows=[LOOKING, CANCELLING]),
        [*BY_LINE[:3], "cancel Open Cancelled", BY_LINE[4], "look Open None"]),
    "a row is replaced where it was": (
        lambda: ORDER.replace(row("deliver", "Paid", "Open", when=in_part), row("deliver", "Paid", "Delivered")),
        [*BY_LINE[:2], "deliver [in_part] Paid Open", "deliver Paid Delivered", *BY_LINE[3:]]),
    "all alternatives of a trigger and state are replaced": (
        lambda: ORDER.replace(row("pay", "Open", "Paid", emit=tell)), ["pay Open Paid", *BY_LINE[2:]]),
    "one state of a line is replaced and the line stays": (
        lambda: ORDER.replace(row("cancel", "Paid", STAYS, why="it is paid")),
        [*BY_LINE[:3], "cancel Paid None", "cancel Open Cancelled", *BY_LINE[4:]]),
    "a star replaces every row of its trigger": (
        lambda: ORDER.replace(row("look", "*", STAYS, why="nothing to see")), BY_LINE),
}
# fmt: on


@pytest.mark.parametrize("what", DERIVED)
def test_the_lines_of_a_derived_table(what: str) -> None:
    derive, expected = DERIVED[what]
    assert lines(derive()) == expected


def test_a_limit_whose_trigger_is_gone_is_given_anew_and_the_actions_of_a_state_go() -> None:
    table = ORDER.without(states=["Paid", "Delivered"], triggers=["pay"])
    assert table.states == ("Open", "Cancelled")
    assert (table.on_enter, list(table.on_exit)) == ({}, ["Open"])
    table = ORDER.replace(row("look", "*", STAYS, why="nothing to see"))
    assert table.rows_from("Open", "look")[0].emit == ()
    with pytest.raises(DefinitionError, match="fires 'cancel', which is not legal there"):
        ORDER.without(triggers=["cancel"], states=["Cancelled"])
    anew = {"Open": unbounded("pay")}
    table = ORDER.without(triggers=["cancel"], states=["Cancelled"], lasts=anew)
    assert table.final == ("Delivered",)


@pytest.mark.parametrize(
    ("less", "message"),
    [
        ({"triggers": ["dliver"]}, "it has no trigger 'dliver'; did you mean 'deliver'?"),
        ({"states": ["Piad"]}, "it has no state 'Piad'; did you mean 'Paid'?"),
        ({"rows": APPLICATION.rows[:1]}, "it has no row 0: New --reject--> Rejected"),
    ],
)
def test_what_is_not_there_cannot_go(less: Any, message: str) -> None:
    with pytest.raises(DefinitionError) as error:
        ORDER.without(**less)
    assert str(error.value) == f"order: {message}"


def test_a_lifecycle_keeps_those_inside() -> None:
    inner = switch("burner", "Cold", "warm", "Hot", "cool")
    heater = switch("heater", "Off", "start", "On", "stop", inside={"On": inner})
    longer = heater.extend(rows=(row("resume", "Off", history("On")),))
    assert longer.states == heater.states
    assert [str(each) for each in longer.rows_from("Off", "resume")] == [
        "row 2: Off --resume [was_in_On_Hot]--> On_Hot",
        "row 2: Off --resume--> On_Cold",
    ]
    assert longer.inside == {"On": inner}
    with pytest.raises(DefinitionError, match="state On: unbounded, but 'stop' does not lead"):
        longer.without(states=["Off"])


def test_the_texts_of_members() -> None:
    class Status(Enum):
        OPEN = auto()
        DONE = auto()

    class Step(Enum):
        FINISH = auto()

    table = Lifecycle(
        "order",
        initial=Status.OPEN,
        final=(Status.DONE,),
        lasts={Status.OPEN: within(5, then=Step.FINISH)},
        rows=(row(Step.FINISH, "*", Status.DONE),),
        on_enter={Status.DONE: tell},
    )
    text = table.as_text()
    assert (text.initial, text.states, text.triggers()) == ("OPEN", ("OPEN", "DONE"), ("FINISH",))
    assert text.timed["OPEN"].then == "FINISH"
    assert list(text.on_enter) == ["DONE"]
    assert text.as_text() is text and ORDER.as_text() is ORDER
