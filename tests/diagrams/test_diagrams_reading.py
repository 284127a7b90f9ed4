"""JSON and SCXML are read back into the lifecycle that they were written from."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from quadriga.base.times import MINUTE, SECOND
from quadriga.cli.catalogue import all_lifecycles
from quadriga.diagrams import DiagramError, functions_of, read_json, read_scxml, render
from quadriga.fsm import (
    ASK,
    Effect,
    Fired,
    Lifecycle,
    Row,
    Unbounded,
    ignored,
    row,
    unbounded,
    within,
)
from quadriga.fsm.errors import DefinitionError
from quadriga.fsm.table import Info

READERS: dict[str, Callable[..., Lifecycle]] = {"json": read_json, "scxml": read_scxml}
both = pytest.mark.parametrize("format", READERS)


def same(one: Lifecycle, other: Lifecycle) -> bool:
    return (one.name, one.initial, one.final, one.lasts, one.states, one.rows) == (
        (other.name, other.initial, other.final, other.lasts, other.states, other.rows)
    )


class Door:
    key, state = "door-1", "Closed"


def is_locked(door: Door, info: Info) -> bool:
    return bool(info.get("locked"))


def ring(door: Door, fired: Fired) -> Iterable[Effect]:
    return ()


def hum(door: Door, fired: Fired) -> Iterable[Effect]:
    return ()


def door(**changed: Any) -> Lifecycle:
    """Each kind of row and of limit, names that are no identifiers, and a trigger named effect."""
    table: dict[str, Any] = {
        "initial": "Closed",
        "final": ("torn down", "class"),
        "lasts": {
            "Closed": unbounded("open"),
            "wide open": within(1_500_000_000, then="close", backoff_to=MINUTE),
            "is_locked": within(30 * MINUTE),
        },
        "rows": (
            row("open", "Closed", "is_locked", when=is_locked, emit=(ring, ring)),
            row("open", ("Closed", "is_locked"), "wide open", why='"no" <reason> & more'),
            row("close", "wide open", "Closed"),
            row("effect", "Closed", "Closed", emit=ring),
            row("effect", "is_locked", None, emit=ring),
            ignored("close", "Closed", why="it is\nclosed"),
            row("tear", ("wide open", "is_locked", "Closed"), "torn down"),
            row("learn", "wide open", "class"),
        ),
    } | changed
    return Lifecycle("door: \u2603", **table)


@both
@pytest.mark.parametrize("name", all_lifecycles())
def test_every_lifecycle_is_read_back(name: str, format: str) -> None:
    lifecycle = all_lifecycles()[name]
    text = render(lifecycle, format)
    again = READERS[format](text, functions_of(lifecycle))
    assert same(again, lifecycle)
    assert render(again, format) == text


@both
def test_names_and_limits_of_every_kind_are_read_back(format: str) -> None:
    lifecycle = door()
    again = READERS[format](render(lifecycle, format), globals())
    assert same(again, lifecycle)
    entity = Door()
    again.fire(entity, "open", locked=True)
    assert entity.state == "is_locked"


@both
def test_effects_of_entering_and_leaving_stay_with_the_state(format: str) -> None:
    lifecycle = Lifecycle(
        "bell",
        initial="off",
        final=("gone",),
        lasts={"off": unbounded("on"), "loud": within(SECOND, then="off")},
        rows=(
            row("on", "off", "loud", emit=hum),
            row("on", "loud", "loud"),
            row("off", "loud", "off"),
            row("drop", "off", "gone"),
        ),
        on_enter={"loud": (ring, hum), "gone": hum, "off": ring},
        on_exit={"loud": ring},
    )
    text = render(lifecycle, format)
    again = READERS[format](text, functions_of(lifecycle))
    assert same(again, lifecycle)
    assert (again.on_enter, again.on_exit) == (lifecycle.on_enter, lifecycle.on_exit)
    assert again.own_rows == lifecycle.own_rows
    assert render(again, format) == text
    if format == "scxml":
        hums = '<raise event="effect.hum"/>'
        assert f'<onentry><raise event="effect.ring"/>{hums}<send id="loud.limit"' in str(text)
        assert str(text).count(hums) == 3  # once for each time it is written


def test_json_is_edited_and_may_have_the_counts_of_a_coverage() -> None:
    document = json.loads(str(render(ASK, "json")))
    document["rows"] = [each for each in document["rows"] if each["trigger"] != "update"]
    assert "update" not in read_json(json.dumps(document), functions_of(ASK)).triggers()
    text = render(ASK, "json", coverage={"ask": {"rows": []}})
    assert same(read_json(str(text), functions_of(ASK)), ASK)


@both
def test_names_without_a_function_are_all_named(format: str) -> None:
    text = render(door(), format)
    with pytest.raises(DiagramError) as refused:
        READERS[format](text, {"is_loked": is_locked, "ring": "a bell"})
    assert str(refused.value) == (
        "door: \u2603: no function for guard is_locked; did you mean 'is_loked'?, "
        "emitter ring, which is not callable"
    )
    with pytest.raises(DiagramError, match="no function for guard is_locked, emitter ring$"):
        READERS[format](text)


def test_two_functions_of_one_name_cannot_be_told_apart() -> None:
    rows = (
        row("go", "a", "b", when=lambda entity, info: True),
        row("go", "a", "c", when=lambda entity, info: False),
        row("go", "a", "d"),
    )
    lifecycle = Lifecycle(
        "x", initial="a", final=("b", "c", "d"), lasts={"a": unbounded("go")}, rows=rows
    )
    with pytest.raises(DiagramError, match="x: two functions are called <lambda>"):
        functions_of(lifecycle)
    # an interpreter must tell them apart
    text = str(render(lifecycle, "scxml"))
    assert len(set(re.findall('cond="([^"]+)"', text))) == 2
    with pytest.raises(DiagramError, match="two guards that are called <lambda>"):
        read_scxml(text, {"<lambda>": is_locked})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("rows"), "the document lacks rows"),
        (lambda d: d.update(more=1), "the document has unknown 'more'"),
        (lambda d: d.update(name=3), "name is not text"),
        (lambda d: d.update(final="x"), "final is not a list"),
        (lambda d: d.update(final=[1]), r"final\[0\] is not text"),
        (lambda d: d["rows"][2].update(line="1"), r"rows\[2\].line is not a whole number"),
        (lambda d: d["rows"][2].update(emit=[None]), r"rows\[2\].emit\[0\] is not text"),
        (lambda d: d["rows"].append(None), r"rows\[12\] is not an object"),
        (lambda d: d["states"][0].update(lasts={}), r"states\[0\].lasts lacks within"),
        (lambda d: d["states"][0].update(lasts=None), r"states\[0\].lasts is not an object"),
        (lambda d: d["states"][0].pop("lasts"), r"states\[0\] has no lasts"),
    ],
)
def test_json_of_another_form_is_refused_with_the_place(
    change: Callable[[Any], object], message: str
) -> None:
    document = json.loads(str(render(ASK, "json")))
    change(document)
    with pytest.raises(DiagramError, match=f"^{message}"):
        read_json(json.dumps(document), functions_of(ASK))


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (read_json, "{", "not JSON: "),
        (read_json, "[]", "the document is not an object"),
        (read_scxml, "<scxml", "not XML: "),
        (read_scxml, "<svg/>", "not SCXML: the root is svg"),
        (read_scxml, "<!DOCTYPE x><scxml/>", "has a DOCTYPE"),
    ],
)
def test_what_is_neither_json_nor_scxml_is_refused(read: Any, text: str, message: str) -> None:
    with pytest.raises(DiagramError, match=message):
        read(text)


def test_a_document_that_is_no_lifecycle_is_a_definition_error() -> None:
    document = json.loads(str(render(ASK, "json")))
    document["rows"][0]["target"] = "Nowhere"
    with pytest.raises(DefinitionError, match="unknown state 'Nowhere'"):
        read_json(json.dumps(document), functions_of(ASK))


OTHER = """<?xml version="1.0" encoding="us-ascii"?>
<!-- a turnstile -->
<scxml xmlns="http://www.w3.org/2005/07/scxml" xmlns:q="http://www.qt.io/x" version="1.0" name="gate">
  <state id="Locked" q:geometry="1;2">
    <q:editorinfo/>
    <transition event="coin token" cond="x &gt; 3" target="Open"><raise event="thank"/></transition>
    <transition event="coin token" target="Locked"/>
    <transition event="push"/>
  </state>
  <state id="Open">
    <onentry><send id="t" event="push" delay="1.5m"/></onentry>
    <onexit><cancel sendid="t"/></onexit>
    <transition event="push" target="Locked"/>
    <transition event="break" target="Broken"/>
  </state>
  <final id="Broken"/>
</scxml>"""


def test_a_document_of_another_tool_is_read() -> None:
    lifecycle = read_scxml(OTHER, {"x > 3": is_locked, "thank": ring})
    assert (lifecycle.name, lifecycle.initial) == ("gate", "Locked")
    assert lifecycle.lasts == {
        "Locked": Unbounded("coin"),
        "Open": within(90 * SECOND, then="push"),
    }
    assert lifecycle.rows == (
        Row("coin", "Locked", "Open", is_locked, (ring,), line=0),
        Row("token", "Locked", "Open", is_locked, (ring,), line=0),
        Row("coin", "Locked", "Locked", line=1),
        Row("token", "Locked", "Locked", line=1),
        Row("push", "Locked", None, why="ignored in the document", line=2),
        Row("push", "Open", "Locked", line=3),
        Row("break", "Open", "Broken", line=4),
    )


def test_what_a_lifecycle_cannot_express_is_refused_all_at_once() -> None:
    text = """<scxml xmlns="http://www.w3.org/2005/07/scxml" initial="none">
      <parallel id="p"/>
      <script>1</script>
      <state id="a">
        <onentry><log label="x"/></onentry>
        <transition target="b"/>
        <transition event="x.y" target="b"><assign location="n" expr="1"/></transition>
        <transition event="go" target="b c"/>
        <invoke id="inner"/>
      </state>
      <state id="b">
        <onentry><send id="t" event="x" delay="1 day"/></onentry>
        <onexit><cancel sendid="t"/></onexit>
      </state>
      <final id="f"><donedata/></final>
    </scxml>"""
    with pytest.raises(DiagramError) as refused:
        read_scxml(text)
    said = str(refused.value)
    for problem in (
        "<parallel>",
        "<script>",
        "the initial state 'none', which is not there",
        "a transition without an event (state a)",
        "the event 'x.y' (a trigger is one word)",
        "<assign> in the transition of a on x.y",
        "the transition of a on go to 'b c', which is not one state of the document",
        "<invoke> in the state a",
        "actions on entry or exit of a other than one delayed event",
        "the time '1 day' of b",
        "<donedata> in the final state f",
    ):
        assert problem in said
    assert said.startswith("lifecycle: a lifecycle cannot have ")
