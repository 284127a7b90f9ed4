"""Each text format, of the scheduler's lifecycles and of one with awkward names."""

import json
import re
import subprocess
import sys
from enum import Enum, StrEnum
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
from fsm_entities import switch

from quadriga.base.times import HOUR, MINUTE, SECOND
from quadriga.diagrams import FORMATS, IMAGES, DiagramError, render, render_path
from quadriga.diagrams.formats.arrows import arrows, junctions
from quadriga.diagrams.formats.style import DARK, LIGHT
from quadriga.diagrams.wording import duration, elapsed, identifiers, limit
from quadriga.fsm import (
    ALLOCATION,
    APPLICATION,
    ASK,
    LIFECYCLES,
    NODE,
    Effect,
    Fired,
    Lifecycle,
    row,
    unbounded,
    within,
)
from quadriga.fsm.coverage import Coverage

SCXML = "{http://www.w3.org/2005/07/scxml}"
OURS = "{urn:quadriga:lifecycle}"
TEXTS = [format for format in FORMATS if format not in IMAGES]
every_lifecycle = pytest.mark.parametrize("lifecycle", LIFECYCLES.values(), ids=LIFECYCLES)


def text(lifecycle: Lifecycle, format: str) -> str:
    drawn = render(lifecycle, format)
    assert isinstance(drawn, str)
    return drawn


@pytest.fixture(params=["awkward", *LIFECYCLES])
def any_lifecycle(request: pytest.FixtureRequest, awkward: Lifecycle) -> Lifecycle:
    return awkward if request.param == "awkward" else LIFECYCLES[request.param]


# fmt: off
DECLARED = [
    (30 * SECOND, "30 s"), (60 * SECOND, "60 s"), (90 * SECOND, "90 s"), (5 * MINUTE, "5 min"), (HOUR, "60 min"),
    (72 * HOUR, "72 h"), (1_500_000_000, "1500 ms"), (SECOND, "1000 ms"), (1, "1 ns"),
]
MEASURED = [
    (0, "0 s"), (999, "999 ns"), (12_345_678_901, "12.3 s"), (250_000_000, "250 ms"),
    (4030 * SECOND, "1 h 7 min 10 s"), (60 * SECOND, "1 min"), (100 * HOUR, "100 h"),
]
# fmt: on


@pytest.mark.parametrize(("ns", "words"), DECLARED)
def test_a_declared_time_is_exact(ns: int, words: str) -> None:
    assert duration(ns) == words


@pytest.mark.parametrize(("ns", "words"), MEASURED)
def test_a_measured_time_is_short(ns: int, words: str) -> None:
    assert elapsed(ns) == words


def test_limits_read_as_sentences_and_identifiers_are_plain_and_distinct() -> None:
    assert limit(APPLICATION, "Waiting") == "30 s then complete"
    assert limit(ALLOCATION, "Releasing") == "60 s then release, up to 10 min"
    assert limit(APPLICATION, "Accepted") == "unbounded: run"
    assert limit(APPLICATION, "Resuming") == "at most 30 min"
    assert limit(APPLICATION, "Expired") == ""
    ids = identifiers(["New", "in work", "s1", "end", "läuft"], reserved={"end"})
    assert ids == {"New": "New", "in work": "s1_", "s1": "s1", "end": "s3", "läuft": "s4"}


@pytest.mark.parametrize("format", TEXTS)
def test_awkward_names_are_drawn_without_breaking_lines(awkward: Lifecycle, format: str) -> None:
    drawn = text(awkward, format)
    assert not [c for c in drawn if not c.isprintable() and c not in "\n\N{NO-BREAK SPACE}"]
    # two sources with the same emitter, and no address of an object
    assert "0x" not in drawn
    if format != "json":  # where it is "\n" in a string
        assert not re.search(r"^@enduml.*\n(?=.)", drawn, re.MULTILINE)


@pytest.mark.parametrize("seed", ["1", "2"])
def test_text_is_the_same_in_another_process(seed: str) -> None:
    code = (
        "from quadriga.diagrams import render, sequence; from quadriga.fsm import LIFECYCLES;"
        "from quadriga.sim.scripted.flows import record;"
        f"made = [render(x, f) for x in LIFECYCLES.values() for f in {TEXTS}];"
        "made.append(sequence(record('gang-start'), 'svg'))"
    )
    here: dict[str, list[str]] = {}
    exec(code, here)
    command = [sys.executable, "-c", f"{code}; print(''.join(made), end='')"]
    done = subprocess.run(command, env={"PYTHONHASHSEED": seed}, capture_output=True, check=True)
    assert done.stdout.decode() == "".join(here["made"])


@every_lifecycle
def test_mermaid_lines_follow_the_grammar(lifecycle: Lifecycle) -> None:
    first, *rest = text(lifecycle, "mermaid").splitlines()
    assert first == "stateDiagram-v2"
    label = r"(?:[^:;#\n]|#\d+;)+"
    for line in rest:
        assert re.fullmatch(
            rf"    (\w+ : {label}|state \w+ <<choice>>|(\[\*]|\w+) --> (\[\*]|\w+)( : {label})?)",
            line,
        ), line


@every_lifecycle
def test_plantuml_lines_follow_the_grammar(lifecycle: Lifecycle) -> None:
    lines = text(lifecycle, "plantuml").splitlines()
    assert (lines[0], lines[-1]) == ("@startuml", "@enduml")
    for line in lines[2:-1]:
        assert re.fullmatch(
            r'state ("[^"]+" as \w+|\w+ <<choice>>)|\w+ : .+|(\[\*]|\w+) --> (\[\*]|\w+)( : .+)?',
            line,
        ), line


@pytest.mark.parametrize(("format", "indent"), [("mermaid", "    "), ("plantuml", "")])
def test_rows_with_the_same_effects_share_a_line_of_their_arrow(format: str, indent: str) -> None:
    drawn = text(APPLICATION, format).splitlines()
    (arrow,) = (line for line in drawn if line.startswith(f"{indent}Waiting --> Running"))
    assert arrow == f"{indent}Waiting --> Running : ask, run / run limit, started running, update"
    # with counts each row has a line of its own
    counts = {"application": {"rows": []}}
    counted = render(APPLICATION, format, coverage=counts)
    assert isinstance(counted, str)
    (arrow,) = (e for e in counted.splitlines() if "Waiting -" in e and "-> Running" in e)
    assert arrow.count("0×") == 2


@pytest.mark.parametrize("format", ["dot", "mermaid", "plantuml"])
def test_every_format_has_the_same_arrows(format: str, awkward: Lifecycle) -> None:
    for lifecycle in (*LIFECYCLES.values(), awkward):
        joined = junctions(lifecycle)
        expected = len(arrows(lifecycle, joined)) + sum(len(each.rows) + 1 for each in joined)
        marks = re.findall(r"^ *\w+ -+> \w+ (?:: |\[)", text(lifecycle, format), re.MULTILINE)
        assert len(marks) == expected


SIDEWAYS = {
    "dot": "rankdir=LR",
    "mermaid": "\n    direction LR\n",
    "plantuml": "\nleft to right direction\n",
}


@pytest.mark.parametrize(("format", "mark"), SIDEWAYS.items())
def test_a_diagram_may_go_from_left_to_right(format: str, mark: str) -> None:
    drawn = render(NODE, format, left_to_right=True)
    assert isinstance(drawn, str)
    assert mark in drawn
    assert mark not in text(NODE, format)


@pytest.mark.parametrize("format", ["dot", "mermaid", "plantuml"])
def test_a_dark_diagram_has_no_colour_of_a_light_one(format: str) -> None:
    steps = [(0, "submit", "Initial", "Pending")]
    counts = {"ask": {"rows": []}}
    light = [LIGHT.line, LIGHT.fill, LIGHT.soft, LIGHT.page]
    for colours in LIGHT.tones.values():
        light += [colours.text, colours.arrow, colours.fill, colours.border]
    for drawn in (
        render(ASK, format, dark=True),
        render(ASK, format, coverage=counts, dark=True),
        render_path(ASK, steps, 1, format, dark=True),
    ):
        assert isinstance(drawn, str)
        assert ("dark" if format == "mermaid" else DARK.page) in drawn
        for colour in filter(None, light):
            assert colour[1:] not in drawn


def test_formats_are_known_and_show_a_direction_and_colours_or_say_that_they_cannot() -> None:
    for format in ("scxml", "md", "json"):
        with pytest.raises(
            DiagramError, match=f"{format} cannot show dark colours; these can: dot"
        ):
            render(NODE, format, dark=True)
        with pytest.raises(DiagramError, match=f"{format} cannot show a direction"):
            render(NODE, format, left_to_right=True)
    with pytest.raises(DiagramError, match="unknown format 'gif'; there are dot, mermaid"):
        render(NODE, "gif")


def test_scxml_has_no_elements_of_its_own_and_ids_are_unique(any_lifecycle: Lifecycle) -> None:
    root = ElementTree.fromstring(text(any_lifecycle, "scxml"))
    assert {e.tag for e in root.iter()} <= {
        f"{SCXML}{tag}"
        for tag in (
            *("scxml", "datamodel", "data", "state", "final", "transition", "raise"),
            *("onentry", "onexit", "send", "cancel"),
        )
    }
    ids = [e.get("id") for e in root.iter() if e.get("id")]
    assert len(ids) == len(set(ids))
    data = {e.get("id") for e in root.iter(f"{SCXML}data")}
    assert {t.get("cond") for t in root.iter(f"{SCXML}transition")} - {None} == data


def test_awkward_names_are_beside_ids_in_scxml_and_entities_elsewhere(awkward: Lifecycle) -> None:
    root = ElementTree.fromstring(text(awkward, "scxml"))
    states = [e for e in root if e.tag != f"{SCXML}datamodel"]
    names = {e.get("id"): e.get(f"{OURS}name", e.get("id")) for e in states}
    assert sorted(map(str, names.values())) == sorted(awkward.states)
    assert {t.get("target") for t in root.iter(f"{SCXML}transition")} - {None} <= set(names)
    assert [send.get("delay") for send in root.iter(f"{SCXML}send")] == ["1500ms"]
    assert "s6 : ünï#35;#59;#58; [#42;] --#62; x #64;enduml" in text(awkward, "mermaid")
    assert "<U+0022>b<U+0022> <U+003C>c<U+003E>" in text(awkward, "plantuml")


def test_markdown_is_the_table_as_written() -> None:
    page = text(APPLICATION, "md")
    assert "| **Expired** | final | for ever |" in page
    assert "| 11 | run | Waiting | Running | | `run_limit`, `started_running`, `update` | |" in page
    assert "| Accepted, Starting, Running | Waiting |" in page
    assert "| `in_stateaware_queue` | X15: only there, Starting comes before Running. |" in page


def test_markdown_tables_are_rectangular(any_lifecycle: Lifecycle) -> None:
    for table in text(any_lifecycle, "md").split("\n\n")[1:]:
        widths = {len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in table.splitlines()}
        assert len(widths) == 1, table


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
        rows=(row(pay, status.OPEN, status.PAID, emit=thank), row(send, status.PAID, status.SENT)),
        on_enter={status.PAID: (arm, thank)},
        on_exit={status.PAID: arm},
    )


ENUM = table(Status, Move.PAY, Move.SEND)
PLAIN = table(SimpleNamespace(OPEN="OPEN", PAID="PAID", SENT="SENT"), "PAY", "SEND")


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
    page = str(render(PLAIN, "md"))
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
