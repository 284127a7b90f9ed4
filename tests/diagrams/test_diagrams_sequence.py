"""Sequence diagrams of message flows."""

from __future__ import annotations

import pytest

from quadriga.diagrams import SEQUENCE_FORMATS, DiagramError, Message, sequence
from quadriga.fsm.table import SECOND

FLOW = (
    Message(100, "RM", "core", "update: 2 asks; gang", "placeholders #2"),
    Message(100, "core", "core", "plan"),
    Message(100, "core", "RM", "allocated ph-1"),
    Message(100 + 30 * SECOND, "RM", 'node "1"', "start <pod>"),
    Message(100 + 30 * SECOND, 'node "1"', "RM", "running"),
)


def test_mermaid() -> None:
    assert sequence(FLOW, "mermaid").splitlines() == [
        "sequenceDiagram",
        "    participant p0 as RM",
        "    participant p1 as core",
        "    participant p2 as node #34;1#34;",
        "    p0->>p1: update#58; 2 asks#59; gang",
        "    Note right of p1: placeholders #35;2",
        "    p1->>p1: plan",
        "    p1->>p0: allocated ph-1",
        "    Note over p0,p2: after 30 s",
        "    p0->>p2: start #60;pod#62;",
        "    p2->>p0: running",
    ]


def test_plantuml() -> None:
    assert sequence(FLOW, "plantuml").splitlines() == [
        "@startuml",
        'participant "RM" as p0',
        'participant "core" as p1',
        'participant "node <U+0022>1<U+0022>" as p2',
        "p0 -> p1 : update: 2 asks; gang",
        "note right of p1 : placeholders <U+0023>2",
        "p1 -> p1 : plan",
        "p1 -> p0 : allocated ph-1",
        "== after 30 s ==",
        "p0 -> p2 : start <U+003C>pod<U+003E>",
        "p2 -> p0 : running",
        "@enduml",
    ]


def test_text() -> None:
    assert sequence(FLOW, "text").splitlines() == [
        'time  RM                         core    node "1"',
        "0 s    |-- update: 2 asks; gang -->|         |  (placeholders #2)",
        "       |                           |-. plan  |",
        "       |<----- allocated ph-1 -----|         |",
        "30 s   |----------- start <pod> ------------>|",
        "       |<------------- running --------------|",
    ]


def test_a_message_to_oneself_at_the_last_line_may_stick_out() -> None:
    drawn = sequence([Message(0, "a", "b", "go"), Message(0, "b", "b", "think")], "text")
    assert drawn.splitlines()[-1].endswith("|-. think")


@pytest.mark.parametrize("format", SEQUENCE_FORMATS)
def test_nothing_is_a_diagram_too(format: str) -> None:
    assert sequence([], format)


@pytest.mark.parametrize("format", SEQUENCE_FORMATS)
def test_line_breaks_and_empty_labels_stay_on_a_line(format: str) -> None:
    plain = sequence([Message(0, "a", "b", "x y", "n"), Message(0, "a", "b", "")], format)
    broken = sequence([Message(0, "a", "b", "x\ny", "\nn"), Message(0, "a", "b", "\n")], format)
    assert broken == plain


def test_every_label_fits_between_its_lifelines() -> None:
    flow = [Message(0, "a", "c", "from end to end, over b"), Message(0, "a", "b", "x" * 30)]
    head, *lines = sequence(flow, "text").splitlines()
    assert len(head) <= max(map(len, lines)) + 1
    assert all("- " in line and " -" in line for line in lines)


def test_what_is_wrong_is_refused() -> None:
    with pytest.raises(DiagramError, match="'b' is earlier than 'a'"):
        sequence([Message(2, "x", "y", "a"), Message(1, "x", "y", "b")])
    with pytest.raises(DiagramError, match="unknown format 'svg'; there are mermaid, plantuml"):
        sequence(FLOW, "svg")
