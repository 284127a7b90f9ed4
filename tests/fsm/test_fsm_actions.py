"""Effects of entering and of leaving a state, whatever row does it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from fsm_entities import switch
from transitions import Machine

from quadriga.fsm import (
    STAYS,
    DefinitionError,
    Effect,
    Fired,
    Lifecycle,
    history,
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
            "row 1: Live --renew--> Live: emitter 'arm' is not callable "
            "(names would fail only when fired)",
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
