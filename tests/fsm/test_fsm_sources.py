"""The sources of a row: a state, a group of states, or every other state."""

from __future__ import annotations

from typing import Any

import pytest

from quadriga.fsm import EVERY, DefinitionError, Lifecycle, Row, ignored, row, unbounded
from quadriga.fsm.table import STAYS

WAITS = ("Open", "Held")
BUSY = (WAITS, "Sent")


def hurried(order: Any, info: Any) -> bool:
    return bool(info)


def table(*rows: Any) -> Lifecycle:
    return Lifecycle(
        "order",
        initial="Open",
        final=("Done", "Cancelled"),
        lasts={
            "Open": unbounded("send"),
            "Held": unbounded("send"),
            "Sent": unbounded("finish"),
        },
        rows=(
            row("hold", "Open", "Held"),
            row("send", WAITS, "Sent"),
            row("finish", "Sent", "Done"),
            *rows,
        ),
    )


def sources(rows: tuple[Row, ...], trigger: str) -> list[tuple[int, str]]:
    return [(each.line, each.source) for each in rows if each.trigger == trigger]


def test_a_group_may_contain_groups_and_name_a_state_twice() -> None:
    orders = table(row("cancel", (BUSY, "Held"), "Cancelled"))
    assert sources(orders.rows, "cancel") == [(3, "Open"), (3, "Held"), (3, "Sent")]


def test_a_set_of_states_is_a_group_in_the_order_of_their_names() -> None:
    orders = table(row("cancel", frozenset({"Sent", "Open", "Held"}), "Cancelled"))
    assert sources(orders.rows, "cancel") == [(3, "Held"), (3, "Open"), (3, "Sent")]


def test_a_star_is_every_state_that_is_not_final() -> None:
    orders = table(row("cancel", "*", "Cancelled"))
    assert table(row("cancel", EVERY, "Cancelled")).rows == orders.rows
    assert sources(orders.rows, "cancel") == [(3, "Open"), (3, "Held"), (3, "Sent")]
    assert str(orders.rows[-1]) == "row 3: Sent --cancel--> Cancelled"


def test_a_star_is_not_the_target_itself() -> None:
    """Entering a state anew is written by name."""
    orders = table(row("recall", "*", "Held"), row("cancel", "*", "Cancelled"))
    assert sources(orders.rows, "recall") == [(3, "Open"), (3, "Sent")]


def test_a_star_that_stays_is_every_state_that_is_not_final() -> None:
    orders = table(ignored("look", "*", why="so it is"), row("cancel", "*", "Cancelled"))
    assert sources(orders.rows, "look") == [(3, "Open"), (3, "Held"), (3, "Sent")]


def test_a_star_is_the_rest_after_rows_for_some_states() -> None:
    orders = table(
        row("cancel", "Sent", STAYS, why="it is on its way"),
        row("cancel", "Held", "Open", when=hurried),
        row("cancel", "*", "Cancelled"),
    )
    assert sources(orders.rows, "cancel") == [(3, "Sent"), (4, "Held"), (5, "Open"), (5, "Held")]


def test_a_star_before_others_leaves_nothing_to_them() -> None:
    with pytest.raises(DefinitionError, match="row 4: Sent --cancel--> Done: an earlier row"):
        table(row("cancel", "*", "Cancelled"), row("cancel", "Sent", "Done"))


def test_a_star_for_no_state_is_refused() -> None:
    with pytest.raises(DefinitionError) as error:
        table(row("cancel", BUSY, "Cancelled"), row("cancel", "*", "Done"))
    assert str(error.value) == "order: row 4: * --cancel--> Done: '*' stands for no state"


# -- rows of the wrong shape -------------------------------------------------------------------------


def shape(make: Any) -> str:
    with pytest.raises(DefinitionError) as error:
        make()
    return str(error.value)


def test_a_star_among_states() -> None:
    said = shape(lambda: row("cancel", ("Open", "*"), "Cancelled"))
    assert said == "row 'cancel': '*' is a source by itself, not one of several"


def test_a_guard_or_an_emitter_by_position() -> None:
    said = shape(lambda: row("pay", "Open", "Paid", hurried))  # type: ignore[arg-type]
    assert said == (
        "row 'pay': hurried has no place after the target; "
        "write when= before a guard and emit= before emitters"
    )


@pytest.mark.parametrize("source", [["Open"], {"Open"}, None, 3])
def test_a_source_that_is_no_state(source: Any) -> None:
    said = shape(lambda: row("pay", source, "Paid"))
    assert said == (
        f"row 'pay': the source {source!r} is not a state; "
        "a group of states is a tuple or a frozenset"
    )


def test_a_row_without_a_source() -> None:
    assert shape(lambda: row("pay", (), "Paid")) == "row 'pay' to 'Paid' has no source state"


def test_a_row_with_two_targets() -> None:
    said = shape(lambda: row("pay", "Open", ("Paid", "Sent")))  # type: ignore[arg-type]
    assert said == (
        "row 'pay': the target ('Paid', 'Sent') is not a state; a row leads to one state, or STAYS"
    )


def test_a_row_with_two_triggers() -> None:
    said = shape(lambda: row(("pay", "settle"), "Open", "Paid"))  # type: ignore[type-var]
    assert said == (
        "row \"('pay', 'settle')\": a trigger is a string or a member of an Enum; "
        "write a row for each trigger"
    )


def test_emitters_in_a_list() -> None:
    said = shape(lambda: row("pay", "Open", "Paid", emit=[hurried]))  # type: ignore[arg-type]
    assert said == "row 'pay': emit is a list; write a tuple"


def test_a_table_of_one_row_without_its_comma() -> None:
    rows: Any = row("finish", "Open", "Done")
    options: Any = {"initial": "Open", "lasts": {"Open": unbounded("finish")}}
    said = shape(lambda: Lifecycle("order", final=("Done",), rows=rows, **options))
    assert said == (
        "order: rows[0] is not a line; a table of one line ends with a comma: rows=(row(...),)"
    )
    said = shape(lambda: Lifecycle("order", final=("Done",), rows=("finish",), **options))
    assert said == "order: rows[0] is 'finish', not the result of row() or ignored()"


def test_a_final_state_without_its_tuple() -> None:
    options: Any = {"initial": "Open", "lasts": {"Open": unbounded("finish")}, "rows": ()}
    said = shape(lambda: Lifecycle("order", final="Done", **options))
    assert said == "order: final is 'Done'; write a tuple of states: ('Done',)"
