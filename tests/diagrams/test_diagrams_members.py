"""Lifecycles with members of an Enum, and with effects of entering and leaving a state, in every format."""

from __future__ import annotations

import json
from enum import Enum, StrEnum
from types import SimpleNamespace
from typing import Any

import pytest
from fsm_entities import switch

from quadriga.diagrams import FORMATS, IMAGES, render, render_path
from quadriga.fsm import Effect, Fired, Lifecycle, row, unbounded, within
from quadriga.fsm.coverage import Coverage


class Status(Enum):
    OPEN = 1
    PAID = 2
    SENT = 3


class Word(StrEnum):
    OPEN = "OPEN"
    PAID = "PAID"
    SENT = "SENT"


class Move(Enum):
    PAY = 1
    SEND = 2


def arm(order: Any, fired: Fired) -> tuple[Effect, ...]:
    return ()


def thank(order: Any, fired: Fired) -> tuple[Effect, ...]:
    return ()


def table(status: Any, pay: Any, send: Any) -> Lifecycle:
    return Lifecycle(
        "order",
        initial=status.OPEN,
        final=(status.SENT,),
        lasts={status.OPEN: within(5, then=pay), status.PAID: unbounded(send)},
        rows=(
            row(pay, status.OPEN, status.PAID, emit=thank),
            row(send, status.PAID, status.SENT),
        ),
        on_enter={status.PAID: (arm, thank)},
        on_exit={status.PAID: arm},
    )


ENUM = table(Status, Move.PAY, Move.SEND)
PLAIN = table(SimpleNamespace(OPEN="OPEN", PAID="PAID", SENT="SENT"), "PAY", "SEND")
TEXTS = [format for format in FORMATS if format not in IMAGES]


@pytest.mark.parametrize("format", TEXTS)
def test_members_are_drawn_as_their_texts(format: str) -> None:
    assert render(ENUM, format) == render(PLAIN, format)
    assert render(table(Word, Move.PAY, Move.SEND), format) == render(PLAIN, format)


def test_members_are_drawn_as_their_texts_in_a_path_and_with_coverage() -> None:
    members = [(5, Move.PAY, Status.OPEN, Status.PAID)]
    texts = [(5, "PAY", "OPEN", "PAID")]
    assert render_path(ENUM, members, 9, "dot") == render_path(PLAIN, texts, 9, "dot")  # type: ignore[arg-type]
    coverage = Coverage()
    coverage.add(ENUM)
    ENUM.fire(SimpleNamespace(key="A-1", state=Status.OPEN), Move.PAY)
    coverage.stop()
    report = json.loads(json.dumps(coverage.report()))
    assert [each["source"] for each in report["order"]["rows"]] == ["OPEN", "PAID"]
    assert "(1×)" in str(render(ENUM, "dot", coverage=report))


def test_what_a_state_does_is_drawn_with_the_state_and_a_row_has_its_own_effects_only() -> None:
    assert "entry / arm, thank" in str(render(PLAIN, "dot"))
    assert "exit / arm" in str(render(PLAIN, "dot"))
    assert "    PAID : entry / arm, thank\n    PAID : exit / arm\n" in str(render(PLAIN, "mermaid"))
    assert "PAID : entry / arm, thank\nPAID : exit / arm\n" in str(render(PLAIN, "plantuml"))
    page = str(render(PLAIN, "markdown"))
    assert "| State | | Lasts | On entry | On exit |" in page
    assert "| **PAID** | | unbounded: SEND | `arm`, `thank` | `arm` |" in page
    states = json.loads(str(render(PLAIN, "json")))["states"]
    assert states[0] == {"name": "OPEN", "lasts": {"within": 5, "then": "PAY", "backoff_to": None}}
    assert (states[1]["on_enter"], states[1]["on_exit"]) == (["arm", "thank"], ["arm"])
    rows = json.loads(str(render(PLAIN, "json")))["rows"]
    assert [each["emit"] for each in rows] == [["thank"], []]
    assert "OPEN --> PAID : PAY / thank\n" in str(render(PLAIN, "mermaid"))
    assert "PAID --> SENT : SEND\n" in str(render(PLAIN, "mermaid"))


def test_a_composite_has_what_it_does_in_its_border() -> None:
    inner = switch("burner", "Cold", "warm", "Hot", "cool", on_exit={"Hot": thank})
    made = {"inside": {"On": inner}, "on_enter": {"On": arm}}
    heater = switch("heater", "Off", "start", "On", "stop", **made)
    assert "On : entry / arm\n" in str(render(heater, "plantuml"))
    assert "On_Hot : exit / thank\n" in str(render(heater, "plantuml"))
    assert "<br/>entry / arm" in str(render(heater, "mermaid"))
    assert "entry / arm" in str(render(heater, "dot"))
    on = json.loads(str(render(heater, "json")))["states"][1]
    assert on["on_enter"] == ["arm"]
    assert on["inside"]["states"][1]["on_exit"] == ["thank"]
