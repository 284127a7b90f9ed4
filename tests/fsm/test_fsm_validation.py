"""A table that is not a lifecycle is refused when it is built, and the row is named."""

import datetime
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from quadriga.base.times import HOUR
from quadriga.fsm import (
    EVERY,
    STAYS,
    DefinitionError,
    Lifecycle,
    Row,
    ignored,
    row,
    unbounded,
    within,
)
from quadriga.fsm.table import Limit

LASTS: dict[str, Limit] = {"Closed": unbounded("open"), "Open": unbounded("close")}
GOOD = (row("open", "Closed", "Open"), row("close", "Open", "Closed"), row("rot", "Open", "Gone"))
LOOK = ignored("open", "Open", why="it is open")


def likely(door: Any, info: Mapping[str, Any]) -> bool:
    return bool(info.get("likely"))


def build(*rows: tuple[Row, ...], opens: Any = None, **options: Any) -> Lifecycle:
    """A door with these rows; ``opens`` is the limit of the state Open."""
    lasts = LASTS if opens is None else {**LASTS, "Open": opens}
    table = {"initial": "Closed", "final": ("Gone",), "lasts": lasts, **options}
    return Lifecycle("door", rows=rows, **table)


def test_a_good_table_is_built() -> None:
    door = build(*GOOD, row("burn", ("Closed", "Open"), "Gone"))
    assert door.states == ("Closed", "Open", "Gone")
    assert repr(door) == "<Lifecycle door: 3 states, 5 rows>"
    # a written line may stand for several rows
    burns = [(r.line, r.source) for r in door.rows if r.trigger == "burn"]
    assert burns == [(3, "Closed"), (3, "Open")]
    assert str(door.rows[-1]) == "row 3: Open --burn--> Gone"


def alone(door: object) -> bool:
    return True


def needy(a: object, b: object, *, c: object) -> tuple[()]:
    return ()


CALLED = "is called with two arguments: the entity"
DECLARED = "; lasts names every state that is not final, with its time limit"
NAMES = "is not callable (names would fail only when fired)"
GUARDED = row("push", "Closed", "Open", when=likely)
BACK = (GOOD[0], row("close", "Open", "Closde"), GOOD[2])
NO_EXIT = "state Open has no exit and is not declared final"
TOO_LATE = "an earlier row always takes this trigger"
# fmt: off
#: by what is wrong: the rows, the other arguments of the table, and what the error says after its name
WRONG: dict[str, tuple[tuple[Any, ...], dict[str, Any], str]] = {
    "a misspelled target": (BACK, {},
        "row 1: Open --close--> Closde: unknown state 'Closde'; did you mean 'Closed'?"),
    "a misspelled source": ((row("open", "Closde", "Open"), *GOOD[1:]), {},
        "row 0: Closde --open--> Open: unknown state 'Closde'; did you mean 'Closed'?"),
    "an exit of a final state": ((*GOOD, row("open", "Gone", "Open")), {},
        "row 3: Gone --open--> Open: final state Gone has an exit"),
    **{f"a trigger that cannot be a method: {name}": ((*GOOD, row(name, "Closed", "Open")), {},
        f"row 3: Closed --{name}--> Open: trigger {name!r} is not a usable name")
       for name in ("", "open it", "state", "1st")},
    "a guard named by a string": ((*GOOD, row("push", "Closed", "Open", when="likely")), {},  # type: ignore[arg-type]
        f"row 3: Closed --push [likely]--> Open: guard 'likely' {NAMES}"),
    "an emitter named by a string": ((*GOOD, row("push", "Closed", "Open", emit="ring")), {},  # type: ignore[arg-type]
        f"row 3: Closed --push--> Open: emitter 'ring' {NAMES}"),
    "a row that changes nothing and does not say why": ((*GOOD, row("open", "Open", STAYS)), {},
        "row 3: Open --open--> stays: it changes nothing; say why"),
    "a row behind one that always agrees": ((*GOOD, row("open", "Closed", "Gone", when=likely)), {},
        f"row 3: Closed --open [likely]--> Gone: {TOO_LATE}"),
    "a row behind one with the same guard": (
        (*GOOD, GUARDED, row("push", "Closed", "Gone", when=likely), row("push", "Closed", "Gone")), {},
        f"row 4: Closed --push [likely]--> Gone: {TOO_LATE}"),
    "alternatives that can all refuse": ((*GOOD, GUARDED), {},
        "row 3: Closed --push [likely]--> Open: the last alternative is guarded; "
        "end with a row without a guard"),
    "a state without an exit": ((GOOD[0],), {"final": ()}, NO_EXIT),
    "a state whose only rows come back to it": ((GOOD[0], row("close", "Open", "Open"), LOOK), {"final": ()}, NO_EXIT),
    "a state that cannot be reached": (GOOD[:2], {}, "state Gone cannot be reached from Closed"),
    "an initial state that is not declared": (GOOD, {"initial": "Ajar"},
        f"initial state 'Ajar' is not declared{DECLARED}"),
    "a table without limits": (GOOD, {"lasts": {}}, f"initial state 'Closed' is not declared{DECLARED}"),
    "a final state with a limit": (GOOD, {"lasts": {**LASTS, "Gone": within(1)}},
        "final state Gone cannot have a time limit"),
    "a state that declares no limit": (GOOD, {"lasts": {"Closed": unbounded("open")}},
        f"row 0: Closed --open--> Open: unknown state 'Open'{DECLARED}"),
    "a guard that takes only the entity": ((*GOOD, row("push", "Closed", "Open", when=alone)), {},  # type: ignore[arg-type]
        f"row 3: Closed --push [alone]--> Open: guard alone(door: object) -> bool {CALLED}, and info"),
    "an emitter that needs more": ((*GOOD, row("push", "Closed", "Open", emit=needy)), {},  # type: ignore[arg-type]
        f"row 3: Closed --push--> Open: emitter needy(a: object, b: object, *, c: object) -> tuple[()] "
        f"{CALLED}, and fired"),
    **{f"an unbounded state whose named exit leads nowhere: {ends}": ((*GOOD, LOOK), {"opens": unbounded(ends)},
        f"state Open: unbounded, but {ends!r} does not lead out of it")
       for ends in ("open", "knock")},
    **{f"a limit that is over at once: {ns}": (GOOD, {"opens": within(ns)},
        "state Open: its time limit is not positive")
       for ns in (0, -1)},
    **{f"a limit that is no whole number: {what}": (GOOD, {"opens": limit},
        f"state Open: its {name} is {what}; write whole nanoseconds (5 * SECOND) or a timedelta")
       for ns, what in ((1.5, "1.5, a float"), (True, "True, a bool"), ("5 s", "'5 s', a str"))
       for name, limit in (("time limit", within(ns)),  # type: ignore[arg-type]
                           ("backoff_to", within(1, then="close", backoff_to=ns)))},  # type: ignore[arg-type]
    "a limit that is not declared as one": (GOOD, {"opens": 5},
        "state Open: its limit is 5; write within(...) or unbounded(...)"),
    "a back-off that has no effect": (GOOD, {"opens": within(1, backoff_to=2)},
        "state Open: its backoff_to has no effect without then="),
    "a back-off that is too short": (GOOD, {"opens": within(2, then="close", backoff_to=1)},
        "state Open: its backoff_to is shorter than its time limit"),
    "a limit that fires what is not legal": (GOOD, {"opens": within(1, then="open")},
        "state Open: its time limit fires 'open', which is not legal there"),
}
# fmt: on


@pytest.mark.parametrize("what", WRONG)
def test_a_table_is_refused_for(what: str) -> None:
    rows, options, message = WRONG[what]
    with pytest.raises(DefinitionError) as error:
        build(*rows, **options)
    assert str(error.value) == f"door: {message}"


def test_what_a_refused_table_lacked_makes_it_legal_and_a_limit_may_be_a_timedelta() -> None:
    assert build(*GOOD, LOOK).allows("Open", "open")
    assert build(*GOOD, GUARDED, ignored("push", "Closed", why="it is locked"))
    later = datetime.timedelta(minutes=5, microseconds=1)
    limit = build(*GOOD, opens=within(later, then="close", backoff_to=2 * later)).timed["Open"]
    assert (limit.ns, limit.backoff_to) == (300_000_001_000, 600_000_002_000)
    long = datetime.timedelta(days=999_999, microseconds=1)
    assert within(long).ns == 999_999 * 24 * HOUR + 1_000  # a float would lose this


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
