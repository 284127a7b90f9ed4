"""Composites in every format: drawn as boxes around states, with rows from and to their borders."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from quadriga.base.times import SECOND
from quadriga.diagrams import DiagramError, functions_of, read_json, render, render_path
from quadriga.fsm import STAYS, Effect, Lifecycle, history, row, unbounded, within

# fmt: off
MOTOR = Lifecycle(
    "motor",
    initial="Slow",
    final=(),
    lasts={"Slow": unbounded("faster"), "Fast": within(5 * SECOND, then="slower")},
    rows=(
        row("faster", "Slow", "Fast"),
        row("slower", "Fast", "Slow"),
    ),
)
FAN = Lifecycle(
    "fan",
    initial="Off",
    final=("Gone",),
    lasts={"Off": unbounded("start"), "On": within(60 * SECOND, then="stop")},
    rows=(
        row("start",  "Off",         "On"),
        row("resume", "Off",         history("On")),
        row("back",   "Off",         history("On", deep=True)),
        row("stop",   "On",          "Off"),
        row("reset",  "On",          "On"),
        row("hurry",  "On",          "On_Fast"),
        row("look",   "On",          STAYS,  why="it spins"),
        row("jam",    "On_Fast",     "On"),
        row("sell",   ("Off", "On"), "Gone"),
    ),
    inside={"On": MOTOR},
)
# fmt: on


DRAWN = {
    "mermaid": """\
stateDiagram-v2
    Off : Off
    Off : unbounded until start
    state "On<br/>60 s then stop<br/>reset (to On)<br/>hurry (to On Fast)<br/>look (stays)" as On {
        On_Slow : Slow
        On_Slow : unbounded until faster
        On_Fast : Fast
        On_Fast : 5 s then slower
        [*] --> On_Slow
    }
    Gone : Gone
    [*] --> Off
    Off --> On : start
    Off --> On : resume<br/>(history)
    Off --> On : back<br/>(deep history)
    On --> Off : stop
    On_Fast --> On_Slow : jam<br/>slower
    Off --> Gone : sell
    On --> Gone : sell
    On_Slow --> On_Fast : faster
    Gone --> [*]
""",
    "plantuml": """\
@startuml
hide empty description
state "Off" as Off
Off : unbounded: start
state "On" as On {
  state "Slow" as On_Slow
  On_Slow : unbounded: faster
  state "Fast" as On_Fast
  On_Fast : 5 s then slower
  [*] --> On_Slow
}
On : 60 s then stop
On : reset (to On)
On : hurry (to On Fast)
On : look (stays)
state "Gone" as Gone
[*] --> Off
Off --> On : start
Off --> On[H] : resume
Off --> On[H*] : back
On --> Off : stop
On_Fast --> On_Slow : jam\\nslower
Off --> Gone : sell
On --> Gone : sell
On_Slow --> On_Fast : faster
Gone --> [*]
@enduml
""",
}


@pytest.mark.parametrize("format", DRAWN)
def test_a_text_format_has_nested_states(format: str) -> None:
    assert render(FAN, format) == DRAWN[format]


def test_json_has_the_lifecycle_inside_of_its_state() -> None:
    document = json.loads(str(render(FAN, "json")))
    assert document["initial"] == "Off"
    off, on, gone = document["states"]
    assert (off["name"], on["name"], gone["name"]) == ("Off", "On", "Gone")
    assert on["lasts"] == {"within": 60 * SECOND, "then": "stop", "backoff_to": None}
    assert on["inside"]["name"] == "motor"
    assert [each["name"] for each in on["inside"]["states"]] == ["Slow", "Fast"]
    assert [(r["line"], r["source"]) for r in on["inside"]["rows"]] == [(9, "Slow"), (10, "Fast")]
    targets = [r["target"] for r in document["rows"][:3]]
    assert targets == ["On", {"history": "On", "deep": False}, {"history": "On", "deep": True}]
    counted = json.loads(str(render(FAN, "json", coverage=coverage(("stop", "On_Fast", "Off")))))
    assert [r["count"] for r in counted["rows"]] == [2, 4, 4, 2, 4, 4, 4, 2, 2, 4]
    assert [r["count"] for r in counted["states"][1]["inside"]["rows"]] == [2, 2]


def buzz(fan: object, fired: object) -> tuple[Effect, ...]:
    return ()


def hot(fan: object, info: object) -> bool:
    return True


def test_a_nested_lifecycle_with_names_that_nobody_knows_is_refused() -> None:
    table = house()
    assert functions_of(table) == {"buzz": buzz, "hot": hot}
    text = str(render(table, "json"))
    with pytest.raises(DiagramError, match="house: no function for guard hot, emitter buzz"):
        read_json(text)
    wrong = text.replace('"deep": true', '"deep": 1')
    with pytest.raises(
        DiagramError, match=r"inside\.rows\[2\]\.target\.deep is neither true nor false"
    ):
        read_json(wrong, {"buzz": buzz, "hot": hot})


def house() -> Lifecycle:
    """Three levels, with actions of states, and with a limit and a guarded row from further out."""
    deep = FAN.extend(
        rows=(row("cool", "On_Fast", "On_Slow", when=hot), row("cool", "On", "Off", emit=buzz)),
        lasts={"On_Fast": within(9 * SECOND, then="stop")},
        on_enter={"On": buzz, "On_Slow": buzz},
        on_exit={"Off": buzz},
    )
    return Lifecycle(
        "house",
        initial="Empty",
        final=("Sold",),
        lasts={"Empty": unbounded("move"), "Used": within(90 * SECOND)},
        rows=(
            row("move", "Empty", "Used"),
            row("move", "Used", "Empty"),
            row("sell", ("Used_Gone", "Empty"), "Sold"),
        ),
        inside={"Used": deep},
    )


def test_a_nested_lifecycle_is_read_back() -> None:
    for table in (FAN, house()):
        text = str(render(table, "json"))
        again = read_json(text, functions_of(table))
        assert render(again, "json") == text
        assert [str(r) for r in again.rows] == [str(r) for r in table.rows]
        assert [r.own_emit for r in again.rows] == [r.own_emit for r in table.rows]
        for name in ("states", "lasts", "timed", "composites"):
            assert getattr(again, name) == getattr(table, name)
        assert list(again.inside) == list(table.inside)
        assert again.nesting and table.nesting
        assert again.nesting.on_enter == table.nesting.on_enter
        assert again.nesting.on_exit == table.nesting.on_exit
    assert again.nesting.on_enter == {"Used_On": (buzz,), "Used_On_Slow": (buzz,)}


def edges(text: str | bytes) -> set[str]:
    assert isinstance(text, str)
    found = re.findall(r"^ *(\w+ -> \w+)(?: \[(.*)\])?$", text, re.MULTILINE)
    ends = re.compile(r"[lh]?(?:head|tail)=\w+")
    return {" ".join([arrow, *ends.findall(attributes)]) for arrow, attributes in found}


def test_dot_has_clusters_and_arrows_end_at_their_borders() -> None:
    text = render(FAN, "dot")
    assert "graph [compound=true " in text and "  subgraph cluster_On {\n" in text
    assert edges(text) == {
        "start -> Off",
        "start_On -> On_Slow",
        "Off -> start_On lhead=cluster_On",
        "Off -> history_On",
        "Off -> deep_history_On",
        "On_Slow -> Off ltail=cluster_On",
        "On_Fast -> On_Slow",
        "On_Slow -> On_Fast",
        "Off -> Gone",
        "On_Slow -> Gone ltail=cluster_On",
    }
    dark = render(FAN, "dot", dark=True)
    assert re.search(r'graph \[compound=true bgcolor="#\w+" fontcolor="#\w+" ', str(dark))


def test_pictures_show_all_names(needs_dot: None, words: Callable[[bytes | str], set[str]]) -> None:
    shown = words(render(FAN, "svg"))
    assert shown >= {"Off", "On", "Slow", "Fast", "Gone", "H", "H*", "60 s then stop", "stop"}
    assert "reset → On" in shown and "hurry → On Fast" in shown


def test_a_composite_is_one_of_the_sources_of_a_joined_row() -> None:
    table = Lifecycle(
        "joined",
        initial="A",
        final=("End",),
        lasts={s: unbounded("end" if s == "On" else "on") for s in ("A", "B", "C", "On")},
        rows=(
            row("on", "A", "B"),
            row("on", "B", "C"),
            row("on", "C", "On"),
            row("end", ("A", "B", "C", "On"), "End"),
        ),
        inside={"On": MOTOR},
    )
    assert edges(render(table, "dot")) >= {
        "A -> line3 head=none",
        "On_Slow -> line3 ltail=cluster_On head=none",
        "line3 -> End",
    }
    assert "    On --> line3 : end\n" in str(render(table, "mermaid"))


def test_markdown_has_the_rows_as_they_are_written() -> None:
    page = str(render(FAN, "md"))
    assert "| **On** | has 2 states inside | 60 s then stop |\n" in page
    assert "| **On\\_Slow** | initial in On | unbounded: faster |\n" in page
    assert "| 1 | resume | Off | history of On | | | |\n" in page
    assert "| 2 | back | Off | deep history of On | | | |\n" in page
    assert "| 3 | stop | On | Off | | | |\n" in page
    assert "was_in" not in page  # the guards that read the history are not the table's


def coverage(*missing: tuple[str, str, str | None]) -> dict[str, Any]:
    names = ("line", "trigger", "source", "target")
    rows = [
        {name: getattr(r, name) for name in names}
        | {"count": 0 if (r.trigger, r.source, r.target) in missing else 2}
        for r in FAN.rows
    ]
    return {"fan": {"rows": rows}}


def test_a_row_of_a_composite_is_covered_if_it_was_taken_from_every_state_inside() -> None:
    some = coverage(("stop", "On_Fast", "Off"), ("resume", "Off", "On_Fast"))
    page = str(render(FAN, "md", coverage=some))
    assert "| 3 | stop | On | Off | | | | 2 |" in page
    text = str(render(FAN, "mermaid", coverage=some))
    assert "On --> Off : (2×, 1 of 2) stop" in text
    assert "Off --> On : (2×, 1 of 2) resume<br/>(history)" in text
    assert "On --> Gone : (4×, 2 of 2) sell" in text and "Off --> Gone : (2×) sell" in text
    drawn = str(render(FAN, "dot", coverage=some))
    assert re.search(r'ltail=cluster_On color="#c62828" style=dashed label=.*stop', drawn)
    assert re.search(r'ltail=cluster_On color="#1a7f37" penwidth=1.6 label=.*sell', drawn)


def test_a_path_marks_the_composites_that_the_entity_was_in() -> None:
    steps = [
        (1 * SECOND, "start", "Off", "On_Slow"),
        (3 * SECOND, "faster", "On_Slow", "On_Fast"),
        (4 * SECOND, "stop", "On_Fast", "Off"),
    ]
    gone = str(render_path(FAN, steps, 5 * SECOND, "mermaid", born=0))
    assert "class On,On_Slow,On_Fast walked" in gone and "On --> Off : (3) stop" in gone
    inside = str(render_path(FAN, steps[:2], 5 * SECOND, "mermaid", born=0))
    assert "class On,On_Fast current" in inside
