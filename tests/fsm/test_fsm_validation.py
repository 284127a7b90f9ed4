"""A table that is not a lifecycle is refused when it is built, and the row is named."""

import datetime
from collections.abc import Mapping
from typing import Any

import pytest

from quadriga.fsm import (
    STAYS,
    DefinitionError,
    Lifecycle,
    Row,
    ignored,
    row,
    unbounded,
    within,
)
from quadriga.fsm.table import HOUR, Limit

LASTS: dict[str, Limit] = {"Closed": unbounded("open"), "Open": unbounded("close")}
GOOD = (row("open", "Closed", "Open"), row("close", "Open", "Closed"), row("rot", "Open", "Gone"))


def likely(door: Any, info: Mapping[str, Any]) -> bool:
    return bool(info.get("likely"))


def build(
    *rows: tuple[Row, ...],
    initial: str = "Closed",
    final: tuple[str, ...] = ("Gone",),
    lasts: Mapping[str, Limit] = LASTS,
) -> Lifecycle:
    return Lifecycle("door", initial=initial, final=final, lasts=lasts, rows=rows)


def refused(message: str, *rows: tuple[Row, ...], **options: Any) -> None:
    with pytest.raises(DefinitionError) as error:
        build(*rows, **options)
    assert str(error.value) == f"door: {message}"


def test_a_good_table_is_built() -> None:
    door = build(*GOOD)
    assert door.states == ("Closed", "Open", "Gone")
    assert repr(door) == "<Lifecycle door: 3 states, 3 rows>"


def test_a_misspelled_target() -> None:
    refused(
        "row 1: Open --close--> Clsoed: unknown state 'Clsoed'; did you mean 'Closed'?",
        GOOD[0],
        row("close", "Open", "Clsoed"),
        GOOD[2],
    )


def test_a_misspelled_source() -> None:
    refused(
        "row 0: Closde --open--> Open: unknown state 'Closde'; did you mean 'Closed'?",
        row("open", "Closde", "Open"),
        *GOOD[1:],
    )


def test_an_exit_of_a_final_state() -> None:
    refused(
        "row 3: Gone --open--> Open: final state Gone has an exit",
        *GOOD,
        row("open", "Gone", "Open"),
    )


@pytest.mark.parametrize("trigger", ["", "open it", "state", "1st"])
def test_a_trigger_that_cannot_be_a_method(trigger: str) -> None:
    refused(
        f"row 3: Closed --{trigger}--> Open: trigger {trigger!r} is not a usable name",
        *GOOD,
        row(trigger, "Closed", "Open"),
    )


def test_a_guard_named_by_a_string() -> None:
    refused(
        "row 3: Closed --push [likely]--> Open: guard 'likely' is not callable "
        "(names would fail only when fired)",
        *GOOD,
        row("push", "Closed", "Open", when="likely"),  # type: ignore[arg-type]
    )


def test_an_emitter_named_by_a_string() -> None:
    refused(
        "row 3: Closed --push--> Open: emitter 'ring' is not callable "
        "(names would fail only when fired)",
        *GOOD,
        row("push", "Closed", "Open", emit="ring"),  # type: ignore[arg-type]
    )


def test_a_row_that_changes_nothing_and_does_not_say_why() -> None:
    refused(
        "row 3: Open --open--> stays: it changes nothing; say why",
        *GOOD,
        row("open", "Open", STAYS),
    )
    assert build(*GOOD, ignored("open", "Open", why="it is open")).allows("Open", "open")


def test_a_row_behind_one_that_always_agrees() -> None:
    refused(
        "row 3: Closed --open [likely]--> Gone: an earlier row always takes this trigger",
        *GOOD,
        row("open", "Closed", "Gone", when=likely),
    )


def test_a_row_behind_one_with_the_same_guard() -> None:
    refused(
        "row 4: Closed --push [likely]--> Gone: an earlier row always takes this trigger",
        *GOOD,
        row("push", "Closed", "Open", when=likely),
        row("push", "Closed", "Gone", when=likely),
        row("push", "Closed", "Gone"),
    )


def test_alternatives_that_can_all_refuse() -> None:
    refused(
        "row 3: Closed --push [likely]--> Open: the last alternative is guarded; "
        "end with a row without a guard",
        *GOOD,
        row("push", "Closed", "Open", when=likely),
    )
    otherwise = ignored("push", "Closed", why="it is locked")
    assert build(*GOOD, row("push", "Closed", "Open", when=likely), otherwise)


def test_a_state_without_an_exit() -> None:
    refused("state Open has no exit and is not declared final", GOOD[0], final=())


def test_a_state_whose_only_rows_come_back_to_it() -> None:
    refused(
        "state Open has no exit and is not declared final",
        GOOD[0],
        row("close", "Open", "Open"),
        ignored("open", "Open", why="it is open"),
        final=(),
    )


def test_a_state_that_cannot_be_reached() -> None:
    refused("state Gone cannot be reached from Closed", *GOOD[:2])


def test_an_initial_state_that_is_not_declared() -> None:
    refused("initial state 'Ajar' is not declared", *GOOD, initial="Ajar")


def test_a_final_state_with_a_limit() -> None:
    refused("final state Gone cannot have a time limit", *GOOD, lasts={**LASTS, "Gone": within(1)})


def test_a_state_that_declares_no_limit() -> None:
    refused(
        "row 0: Closed --open--> Open: unknown state 'Open'",
        *GOOD,
        lasts={"Closed": unbounded("open")},
    )


@pytest.mark.parametrize("ends", ["open", "knock"])
def test_an_unbounded_state_whose_named_exit_leads_nowhere(ends: str) -> None:
    refused(
        f"state Open: unbounded, but {ends!r} does not lead out of it",
        *GOOD,
        ignored("open", "Open", why="it is open"),
        lasts={**LASTS, "Open": unbounded(ends)},
    )


@pytest.mark.parametrize("ns", [0, -1])
def test_a_limit_that_is_over_at_once(ns: int) -> None:
    refused(
        "state Open: its time limit is not positive", *GOOD, lasts={**LASTS, "Open": within(ns)}
    )


LATER = datetime.timedelta(minutes=5, microseconds=1)


def test_a_limit_may_be_a_timedelta() -> None:
    lasts = {**LASTS, "Open": within(LATER, then="close", backoff_to=2 * LATER)}
    limit = build(*GOOD, lasts=lasts).timed["Open"]
    assert (limit.ns, limit.backoff_to) == (300_000_001_000, 600_000_002_000)
    long = datetime.timedelta(days=999_999, microseconds=1)
    assert within(long).ns == 999_999 * 24 * HOUR + 1_000  # a float would lose this


@pytest.mark.parametrize(
    ("ns", "what"), [(1.5, "1.5, a float"), (True, "True, a bool"), ("5 s", "'5 s', a str")]
)
def test_a_limit_that_is_no_whole_number(ns: Any, what: str) -> None:
    write = "write whole nanoseconds (5 * SECOND) or a timedelta"
    refused(
        f"state Open: its time limit is {what}; {write}", *GOOD, lasts={**LASTS, "Open": within(ns)}
    )
    refused(
        f"state Open: its backoff_to is {what}; {write}",
        *GOOD,
        lasts={**LASTS, "Open": within(1, then="close", backoff_to=ns)},
    )


def test_a_limit_that_is_not_declared_as_one() -> None:
    refused(
        "state Open: its limit is 5; write within(...) or unbounded(...)",
        *GOOD,
        lasts={**LASTS, "Open": 5},  # type: ignore[dict-item]
    )


def test_a_back_off_that_has_no_effect() -> None:
    refused(
        "state Open: its backoff_to has no effect without then=",
        *GOOD,
        lasts={**LASTS, "Open": within(1, backoff_to=2)},
    )
    refused(
        "state Open: its backoff_to is shorter than its time limit",
        *GOOD,
        lasts={**LASTS, "Open": within(2, then="close", backoff_to=1)},
    )


def test_a_limit_that_fires_what_is_not_legal() -> None:
    refused(
        "state Open: its time limit fires 'open', which is not legal there",
        *GOOD,
        lasts={**LASTS, "Open": within(1, then="open")},
    )


def test_a_written_line_may_stand_for_several_rows() -> None:
    door = build(*GOOD, row("burn", ("Closed", "Open"), "Gone"))
    assert [(r.line, r.source) for r in door.rows if r.trigger == "burn"] == [
        (3, "Closed"),
        (3, "Open"),
    ]
    assert str(door.rows[-1]) == "row 3: Open --burn--> Gone"
