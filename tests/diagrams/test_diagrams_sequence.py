"""Sequence diagrams of message flows."""

from xml.etree import ElementTree

import pytest

from quadriga.base.times import SECOND
from quadriga.diagrams import SEQUENCE_FORMATS, DiagramError, Message, sequence
from quadriga.diagrams.formats.style import LIGHT
from quadriga.diagrams.sequence_svg import text_width

FLOW = (
    Message(100, "RM", "core", "update: 2 asks; gang", "placeholders #2"),
    Message(100, "core", "core", "plan"),
    Message(100, "core", "RM", "allocated ph-1"),
    Message(100 + 30 * SECOND, "RM", 'node "1"', "start <pod>"),
    Message(100 + 30 * SECOND, 'node "1"', "RM", "running"),
)


# fmt: off
DRAWN = {
    "mermaid": """\
sequenceDiagram
    participant p0 as RM
    participant p1 as core
    participant p2 as node #34;1#34;
    p0->>p1: update#58; 2 asks#59; gang
    Note right of p1: placeholders #35;2
    p1->>p1: plan
    p1->>p0: allocated ph-1
    Note over p0,p2: after 30 s
    p0->>p2: start #60;pod#62;
    p2->>p0: running
""",
    "plantuml": """\
@startuml
participant "RM" as p0
participant "core" as p1
participant "node <U+0022>1<U+0022>" as p2
p0 -> p1 : update: 2 asks; gang
note right of p1 : placeholders <U+0023>2
p1 -> p1 : plan
p1 -> p0 : allocated ph-1
== after 30 s ==
p0 -> p2 : start <U+003C>pod<U+003E>
p2 -> p0 : running
@enduml
""",
    "text": """\
time  RM                         core    node "1"
0 s    |-- update: 2 asks; gang -->|         |  (placeholders #2)
       |                           |-. plan  |
       |<----- allocated ph-1 -----|         |
30 s   |----------- start <pod> ------------>|
       |<------------- running --------------|
""",
}
# fmt: on


@pytest.mark.parametrize("format", DRAWN)
def test_a_flow_in_a_text_format(format: str) -> None:
    assert sequence(FLOW, format).splitlines() == DRAWN[format].splitlines()


@pytest.mark.parametrize("format", SEQUENCE_FORMATS)
def test_nothing_is_a_diagram_too_and_line_breaks_stay_on_a_line(format: str) -> None:
    plain = sequence([Message(0, "a", "b", "x y", "n"), Message(0, "a", "b", "")], format)
    broken = sequence([Message(0, "a", "b", "x\ny", "\nn"), Message(0, "a", "b", "\n")], format)
    assert broken == plain
    assert sequence([], format)


def test_every_label_fits_between_its_lifelines_but_for_the_last_message_to_oneself() -> None:
    flow = [Message(0, "a", "c", "from end to end, over b"), Message(0, "a", "b", "x" * 30)]
    head, *lines = sequence(flow, "text").splitlines()
    assert len(head) <= max(map(len, lines)) + 1
    assert all("- " in line and " -" in line for line in lines)
    drawn = sequence([Message(0, "a", "b", "go"), Message(0, "b", "b", "think")], "text")
    assert drawn.splitlines()[-1].endswith("|-. think")


def test_what_is_wrong_is_refused() -> None:
    with pytest.raises(DiagramError, match="'b' is earlier than 'a'"):
        sequence([Message(2, "x", "y", "a"), Message(1, "x", "y", "b")])
    with pytest.raises(
        DiagramError, match="unknown format 'gif'; there are mermaid, plantuml, svg"
    ):
        sequence(FLOW, "gif")
    with pytest.raises(DiagramError, match="text cannot show dark colours"):
        sequence(FLOW, "text", dark=True)


# -- svg -------------------------------------------------------------------------------------------

SVG = "{http://www.w3.org/2000/svg}"


def elements(drawn: str, tag: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(drawn).iter(f"{SVG}{tag}"))


def texts(drawn: str) -> list[str]:
    return ["".join(each.itertext()) for each in elements(drawn, "text")]


def test_svg_has_every_text_once_and_the_participants_of_a_long_flow_twice() -> None:
    drawn = sequence(FLOW, "svg")
    said = 'RM|core|node "1"|0 s|update: 2 asks; gang|placeholders #2|plan|allocated ph-1|30 s'
    assert sorted(texts(drawn)) == sorted([*said.split("|"), "start <pod>", "running"])
    assert "start &lt;pod&gt;" in drawn
    assert texts(sequence([FLOW[0]] * 11, "svg")).count("core") == 1
    assert texts(sequence([FLOW[0]] * 12, "svg")).count("core") == 2


def test_svg_arrows_lead_from_the_sender_to_the_receiver() -> None:
    drawn = sequence([FLOW[0], FLOW[2]], "svg")
    columns = {
        t.text: float(t.attrib["x"]) for t in elements(drawn, "text") if t.text in ("RM", "core")
    }
    ink = LIGHT.line
    arrows = [
        (float(line.attrib["x1"]), float(line.attrib["x2"]))
        for line in elements(drawn, "line")
        if line.get("stroke") == ink
    ]
    assert arrows == [(columns["RM"], columns["core"]), (columns["core"], columns["RM"])]
    heads = [path.attrib["d"] for path in elements(drawn, "path")]
    for (_, x), head in zip(arrows, heads, strict=True):
        assert head.startswith(f"M{x:.1f}".removesuffix(".0"))


@pytest.mark.parametrize("length", [1, 40, 59, 400])
def test_svg_texts_stay_within_the_picture_and_between_their_lifelines(length: int) -> None:
    label = "W" * length if length < 60 else "word " * (length // 5)
    flow = [
        Message(0, "a", "b", label),
        Message(0, "b", "c", "x"),
        Message(0, "b", "b", label),
        Message(0, "c", "c", label, "a note " * 12),
    ]
    drawn = sequence(flow, "svg")
    root = ElementTree.fromstring(drawn)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    a, b, _ = [float(t.attrib["x"]) for t in elements(drawn, "text") if t.get("font-weight")]
    for text in elements(drawn, "text"):
        wide = text_width(text.text or "", 13)
        x, y = float(text.attrib["x"]), float(text.attrib["y"])
        left = x - wide / 2 if text.get("text-anchor") == "middle" else x
        assert left >= 0
        assert left + wide <= width
        assert y < height
    first = next(t for t in elements(drawn, "text") if t.text and t.text[0] in "Ww")
    wide = text_width(first.text or "", 13)
    assert a < float(first.attrib["x"]) - wide / 2
    assert float(first.attrib["x"]) + wide / 2 < b


def test_dark_sequences_have_no_colour_of_light_ones() -> None:
    for format in ("mermaid", "plantuml", "svg"):
        assert sequence(FLOW, format, dark=True) != sequence(FLOW, format)
    drawn = sequence(FLOW, "svg", dark=True)
    for colour in (LIGHT.page, LIGHT.line, LIGHT.fill, LIGHT.soft):
        assert colour not in drawn


@pytest.mark.parametrize(
    ("text", "width"),
    [("", 0), ("il", 444), ("W", 944), ("a b", 1390), ("日本", 2000), ("e\u0301", 556), ("é", 667)],
)
def test_the_width_of_text(text: str, width: int) -> None:
    assert text_width(text, 1000) == width
    assert text_width(text, 1000, bold=True) >= width
