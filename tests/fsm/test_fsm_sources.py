"""The sources of a row: a state, a group of states, or every other state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from quadriga.fsm import EVERY, DefinitionError, Lifecycle, ignored, row, unbounded
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
        lasts={"Open": unbounded("send"), "Held": unbounded("send"), "Sent": unbounded("finish")},
        rows=(
            row("hold", "Open", "Held"),
            row("send", WAITS, "Sent"),
            row("finish", "Sent", "Done"),
            *rows,
        ),
    )


CANCEL = row("cancel", "*", "Cancelled")
# fmt: off
#: by what the source is: rows behind the first three, and the sources of the lines of the first one's trigger
SOURCES: dict[str, tuple[tuple[Any, ...], list[tuple[int, str]]]] = {
    "a group may contain groups and name a state twice": (
        (row("cancel", (BUSY, "Held"), "Cancelled"),), [(3, "Open"), (3, "Held"), (3, "Sent")]),
    "a set is a group in the order of names": (
        (row("cancel", frozenset({"Sent", "Open", "Held"}), "Cancelled"),),
        [(3, "Held"), (3, "Open"), (3, "Sent")]),
    "a star is every state that is not final": ((CANCEL,), [(3, "Open"), (3, "Held"), (3, "Sent")]),
    "EVERY is the star": ((row("cancel", EVERY, "Cancelled"),), [(3, "Open"), (3, "Held"), (3, "Sent")]),
    # entering a state anew is written by name
    "a star is not the target itself": ((row("recall", "*", "Held"), CANCEL), [(3, "Open"), (3, "Sent")]),
    "a star that stays is every state that is not final": (
        (ignored("look", "*", why="so it is"), CANCEL), [(3, "Open"), (3, "Held"), (3, "Sent")]),
    "a star is the rest after rows for some states": (
        (row("cancel", "Sent", STAYS, why="it is on its way"), row("cancel", "Held", "Open", when=hurried), CANCEL),
        [(3, "Sent"), (4, "Held"), (5, "Open"), (5, "Held")]),
}
# fmt: on


@pytest.mark.parametrize("what", SOURCES)
def test_the_sources_of_a_line(what: str) -> None:
    rows, expected = SOURCES[what]
    trigger = rows[0][0].trigger
    built = table(*rows).rows
    assert [(each.line, each.source) for each in built if each.trigger == trigger] == expected


# -- rows of the wrong shape -------------------------------------------------------------------------

OPTIONS: Any = {"initial": "Open", "lasts": {"Open": unbounded("finish")}}
LINE: Any = row("finish", "Open", "Done")
# fmt: off
SHAPES: dict[str, tuple[Callable[[], object], str]] = {
    "a star before others leaves nothing to them": (
        lambda: table(CANCEL, row("cancel", "Sent", "Done")),
        "order: row 4: Sent --cancel--> Done: an earlier row always takes this trigger"),
    "a star for no state": (
        lambda: table(row("cancel", BUSY, "Cancelled"), row("cancel", "*", "Done")),
        "order: row 4: * --cancel--> Done: '*' stands for no state"),
    "a star among states": (
        lambda: row("cancel", ("Open", "*"), "Cancelled"),
        "row 'cancel': '*' is a source by itself, not one of several"),
    "a guard or an emitter by position": (
        lambda: row("pay", "Open", "Paid", hurried),  # type: ignore[arg-type]
        "row 'pay': hurried has no place after the target; "
        "write when= before a guard and emit= before emitters"),
    "a row without a source": (lambda: row("pay", (), "Paid"), "row 'pay' to 'Paid' has no source state"),
    "a row with two targets": (
        lambda: row("pay", "Open", ("Paid", "Sent")),  # type: ignore[arg-type]
        "row 'pay': the target ('Paid', 'Sent') is not a state; a row leads to one state, or STAYS"),
    "a row with two triggers": (
        lambda: row(("pay", "settle"), "Open", "Paid"),  # type: ignore[type-var]
        "row \"('pay', 'settle')\": a trigger is a string or a member of an Enum; "
        "write a row for each trigger"),
    "emitters in a list": (
        lambda: row("pay", "Open", "Paid", emit=[hurried]),  # type: ignore[arg-type]
        "row 'pay': emit is a list; write a tuple"),
    "a table of one row without its comma": (
        lambda: Lifecycle("order", final=("Done",), rows=LINE, **OPTIONS),
        "order: rows[0] is not a line; a table of one line ends with a comma: rows=(row(...),)"),
    "a line that is no row": (
        lambda: Lifecycle("order", final=("Done",), rows=("finish",), **OPTIONS),
        "order: rows[0] is 'finish', not the result of row() or ignored()"),
    "a final state without its tuple": (
        lambda: Lifecycle("order", final="Done", rows=(), **OPTIONS),
        "order: final is 'Done'; write a tuple of states: ('Done',)"),
    **{f"a source that is no state: {source}": (
        lambda source=source: row("pay", source, "Paid"),  # type: ignore[misc]
        f"row 'pay': the source {source!r} is not a state; a group of states is a tuple or a frozenset")
       for source in (["Open"], {"Open"}, None, 3)},
}
# fmt: on


@pytest.mark.parametrize("what", SHAPES)
def test_a_row_or_table_of_the_wrong_shape_is_refused(what: str) -> None:
    make, message = SHAPES[what]
    with pytest.raises(DefinitionError) as error:
        make()
    assert str(error.value) == message
