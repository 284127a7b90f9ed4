"""Effects of entering and of leaving a state, whatever row does it; guards that are made of others."""

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest
from fsm_entities import switch
from transitions import Machine

from quadriga.diagrams import functions_of, read_json, render
from quadriga.fsm import (
    STAYS,
    DefinitionError,
    Effect,
    Fired,
    Lifecycle,
    all_of,
    any_of,
    history,
    not_,
    row,
    unbounded,
    within,
)


@dataclass(frozen=True, slots=True)
class Say(Effect):
    text: str


def says(text: str) -> Any:
    def emitter(order: Any, fired: Fired) -> Iterator[Effect]:
        if fired.info.get("fails") == text:
            raise RuntimeError(text)
        yield Say(f"{text} of {fired.source} in {order.state}")

    emitter.__name__ = text.replace(" ", "_")
    return emitter


def table(**options: Any) -> Lifecycle:
    given: dict[str, Any] = {
        "on_enter": {"Live": (says("arm"), says("greet")), "Gone": says("mourn")},
        "on_exit": {"Live": says("disarm")},
    }
    return Lifecycle(
        "session",
        initial="New",
        final=("Gone",),
        lasts={"New": unbounded("open"), "Live": within(5, then="close")},
        rows=(
            row("open", "New", "Live", emit=says("log")),
            row("renew", "Live", "Live", emit=says("log")),
            row("touch", "Live", STAYS, emit=says("log")),
            row("close", ("New", "Live"), "Gone"),
        ),
        **(given | options),
    )


def born(state: str) -> Any:
    return SimpleNamespace(key="s-1", state=state)


def texts(effects: Any) -> list[str]:
    return [effect.text for effect in effects]


stock_or_own = pytest.mark.parametrize("stock", [False, True], ids=["own", "stock"])


@stock_or_own
def test_effects_come_in_the_order_of_leaving_the_row_and_entering(stock: bool) -> None:
    sessions, it = table(stock=stock), born("New")
    opened = [f"{text} of New in New" for text in ("log", "arm", "greet")]
    assert texts(sessions.fire(it, "open")) == opened
    # entering anew leaves and enters, staying does neither
    renewed = [text.split()[0] for text in texts(sessions.fire(it, "renew"))]
    assert renewed == ["disarm", "log", "arm", "greet"]
    assert texts(sessions.fire(it, "touch")) == ["log of Live in Live"]
    assert texts(sessions.fire(it, "close")) == ["disarm of Live in Live", "mourn of Live in Live"]
    assert it.state == "Gone"


@stock_or_own
@pytest.mark.parametrize("fails", ["disarm", "log", "arm"])
def test_nothing_changes_if_one_of_them_raises(fails: str, stock: bool) -> None:
    it = born("Live")
    with pytest.raises(RuntimeError, match=fails):
        table(stock=stock).fire(it, "renew", fails=fails)
    assert it.state == "Live"


def test_a_machine_of_the_library_delivers_them_too_and_a_row_keeps_what_is_written() -> None:
    heard: list[Any] = []
    model: Any = SimpleNamespace()
    table().make_machine(model, Machine, deliver=lambda _, effects: heard.append(texts(effects)))
    model.open()
    model.close()
    assert heard == [
        ["log of New in New", "arm of New in New", "greet of New in New"],
        ["disarm of Live in Live", "mourn of Live in Live"],
    ]
    opening, renewing, touching, *_ = table().rows
    assert [e.__name__ for e in opening.own_emit] == ["log"]
    assert [e.__name__ for e in renewing.emit] == ["disarm", "log", "arm", "greet"]
    assert touching.own_emit == touching.emit


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"on_enter": {"Liev": says("arm")}},
            "on_enter: unknown state 'Liev'; did you mean 'Live'?",
        ),
        ({"on_enter": {"New": says("arm")}}, "on_enter: no row enters New"),
        ({"on_exit": {"Gone": says("arm")}}, "on_exit: no row leaves Gone"),
        (
            {"on_exit": {"Live": ("arm",)}},
            "row 1: Live --renew--> Live: emitter 'arm' is not callable (names would fail only when fired)",
        ),
    ],
)
def test_actions_that_can_never_be_called_are_refused(options: Any, message: str) -> None:
    with pytest.raises(DefinitionError) as error:
        table(**options)
    assert str(error.value) == f"session: {message}"


# -- states that are lifecycles ----------------------------------------------------------------------


def heater() -> Lifecycle:
    burner = switch(
        "burner",
        *("Cold", "warm", "Hot", "cool"),
        on_enter={"Cold": says("enter cold"), "Hot": says("enter hot")},
        on_exit={"Cold": says("exit cold"), "Hot": says("exit hot")},
    )
    return Lifecycle(
        "heater",
        initial="Off",
        final=(),
        lasts={"Off": unbounded("start"), "On": unbounded("stop")},
        rows=(
            row("start", "Off", "On", emit=says("log")),
            row("stop", "On", "Off", emit=says("log")),
            row("reset", "On", "On"),
            row("resume", "Off", history("On")),
        ),
        inside={"On": burner},
        on_enter={"On": says("enter on"), "Off": says("enter off")},
        on_exit={"On": says("exit on")},
    )


NESTED_STEPS = [
    ("start", "On_Cold", ["log", "enter on", "enter cold"]),
    ("warm", "On_Hot", ["exit cold", "enter hot"]),
    ("reset", "On_Cold", ["exit hot", "exit on", "enter on", "enter cold"]),
    ("warm", "On_Hot", ["exit cold", "enter hot"]),
    ("stop", "Off", ["exit hot", "exit on", "log", "enter off"]),
    ("resume", "On_Hot", ["enter on", "enter hot"]),
]


def test_states_inside_are_left_first_and_entered_last_wherever_declared() -> None:
    table = heater()
    it = born("Off")
    for trigger, state, said in NESTED_STEPS:
        effects = table.fire(it, trigger)
        assert (it.state, [text.split(" of ")[0] for text in texts(effects)]) == (state, said)
    inside = {"On": heater().inside["On"]}
    made = partial(switch, "heater", "Off", "start", "On", "stop", inside=inside)
    table = made(on_enter={"On_Cold": says("here")})
    assert texts(table.fire(born("Off"), "start")) == ["here of Off in Off"]
    with pytest.raises(DefinitionError, match=r"on_enter: unknown state 'On_Clod'; did you mean"):
        made(on_enter={"On_Clod": says("here")})


def test_members_of_an_enum_cannot_be_nested() -> None:
    class Power(StrEnum):
        OFF = "Off"
        ON = "On"

    inside: Any = {Power.ON: heater().inside["On"]}
    with pytest.raises(DefinitionError, match="state Off is a member of an Enum; in a nested"):
        switch("heater", Power.OFF, "start", Power.ON, "stop", inside=inside)


# -- guards that are made of others ------------------------------------------------------------------


def is_late(it: Any, info: Any) -> object:
    return info.get("late", "")


def is_lost(it: Any, info: Any) -> bool:
    return bool(info["lost"])  # asked only where the first one does not decide


@pytest.mark.parametrize(
    ("guard", "name", "agrees"),
    [  # of: late, lost, both, neither
        (all_of(is_late, is_lost), "is_late and is_lost", "both"),
        (any_of(is_late, is_lost), "is_late or is_lost", "late lost both"),
        (not_(any_of(is_late, is_lost)), "not (is_late or is_lost)", "neither"),
        (all_of(is_late, not_(is_lost)), "is_late and not is_lost", "late"),
        (any_of(all_of(is_late, is_lost), not_(is_late)), "(is_late and is_lost) or not is_late", "lost both neither"),
        (not_(not_(partial(is_late))), "not not is_late", "late both"),
    ],
    ids=lambda it: getattr(it, "__name__", it),
)  # fmt: skip
def test_a_guard_of_guards_is_asked_named_and_drawn(guard: Any, name: str, agrees: str) -> None:
    rows = row("send", "Open", "Sent", when=guard) + row("send", "Open", "Held")
    parcel = Lifecycle(
        "parcel", initial="Open", final=("Sent", "Held"), lasts={"Open": unbounded("send")}, rows=(rows,)
    )  # fmt: skip
    again = read_json(str(render(parcel, "json")), {"is_late": is_late, "is_lost": is_lost})
    same = read_json(str(render(parcel, "json")), functions_of(parcel))
    for table in (parcel, pickle.loads(pickle.dumps(parcel)), parcel.copy(stock=True), again, same):
        assert str(table.rows[0]) == f"row 0: Open --send [{name}]--> Sent"
        for late, lost in product((False, True), repeat=2):
            case = {(0, 0): "neither", (0, 1): "lost", (1, 0): "late", (1, 1): "both"}[late, lost]
            it: Any = SimpleNamespace(key="p-1", state="Open")
            table.fire(it, "send", late=late, lost=lost)
            assert (it.state == "Sent") == (case in agrees.split())
    assert all_of(is_late, is_lost)(None, {}) is False  # the second one would raise
    assert pickle.loads(pickle.dumps(all_of(is_late))) == all_of(is_late) != any_of(is_late)


async def is_paid(it: Any, info: Any) -> bool:
    return True


@pytest.mark.parametrize("part", [is_paid, "is_paid"])
def test_a_part_of_a_guard_that_nobody_would_await_or_call_is_refused(part: Any) -> None:
    with pytest.raises(DefinitionError, match="is_paid is async or cannot be called"):
        not_(part)
    with pytest.raises(DefinitionError, match=r"guard <lambda>\(it\) is called with two arguments"):
        switch("door", "A", "go", "B", "back", rows=(row("x", "A", "B", when=not_(lambda it: it)),))  # type: ignore
