"""JSON is read back into the lifecycle that it was written from."""

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from quadriga.base.times import MINUTE, SECOND
from quadriga.cli.catalogue import all_lifecycles
from quadriga.diagrams import DiagramError, functions_of, read_json, render
from quadriga.fsm import ASK, Effect, Fired, Lifecycle, ignored, row, unbounded, within
from quadriga.fsm.errors import DefinitionError
from quadriga.fsm.table import Info


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


@pytest.mark.parametrize("name", all_lifecycles())
def test_every_lifecycle_is_read_back(name: str) -> None:
    lifecycle = all_lifecycles()[name]
    text = render(lifecycle, "json")
    again = read_json(str(text), functions_of(lifecycle))
    assert same(again, lifecycle)
    assert render(again, "json") == text


def test_names_and_limits_of_every_kind_are_read_back() -> None:
    lifecycle = door()
    again = read_json(str(render(lifecycle, "json")), globals())
    assert same(again, lifecycle)
    entity = Door()
    again.fire(entity, "open", locked=True)
    assert entity.state == "is_locked"


def test_effects_of_entering_and_leaving_stay_with_the_state() -> None:
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
    text = render(lifecycle, "json")
    again = read_json(str(text), functions_of(lifecycle))
    assert same(again, lifecycle)
    assert (again.on_enter, again.on_exit) == (lifecycle.on_enter, lifecycle.on_exit)
    assert again.own_rows == lifecycle.own_rows
    assert render(again, "json") == text
    hums, text = '<raise event="effect.hum"/>', render(again, "scxml")
    assert f'<onentry><raise event="effect.ring"/>{hums}<send id="loud.limit"' in str(text)
    assert str(text).count(hums) == 3  # once for each time it is written


def test_json_is_edited_and_may_have_the_counts_of_a_coverage() -> None:
    document = json.loads(str(render(ASK, "json")))
    document["rows"] = [each for each in document["rows"] if each["trigger"] != "update"]
    assert "update" not in read_json(json.dumps(document), functions_of(ASK)).triggers()
    text = render(ASK, "json", coverage={"ask": {"rows": []}})
    assert same(read_json(str(text), functions_of(ASK)), ASK)


def test_names_without_a_function_are_all_named() -> None:
    text = render(door(), "json")
    with pytest.raises(DiagramError) as refused:
        read_json(str(text), {"is_loked": is_locked, "ring": "a bell"})
    assert str(refused.value) == (
        "door: \u2603: no function for guard is_locked; did you mean 'is_loked'?, "
        "emitter ring, which is not callable"
    )
    with pytest.raises(DiagramError, match="no function for guard is_locked, emitter ring$"):
        read_json(str(text))


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
def test_wrong_json_is_refused_with_the_place(
    change: Callable[[Any], object], message: str
) -> None:
    document = json.loads(str(render(ASK, "json")))
    change(document)
    with pytest.raises(DiagramError, match=f"^{message}"):
        read_json(json.dumps(document), functions_of(ASK))


@pytest.mark.parametrize(
    ("text", "message"), [("{", "not JSON: "), ("[]", "the document is not an object")]
)
def test_what_is_not_json_is_refused(text: str, message: str) -> None:
    with pytest.raises(DiagramError, match=message):
        read_json(text)


def test_a_document_that_is_no_lifecycle_is_a_definition_error() -> None:
    document = json.loads(str(render(ASK, "json")))
    document["rows"][0]["target"] = "Nowhere"
    with pytest.raises(DefinitionError, match="unknown state 'Nowhere'"):
        read_json(json.dumps(document), functions_of(ASK))
