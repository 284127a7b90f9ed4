"""The committed layouts of the pages are those of the tables."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from quadriga.diagrams import DiagramError, render, render_path
from quadriga.diagrams.formats.image import graphviz_version, image
from quadriga.fsm import APPLICATION, LIFECYCLES, NODE, Lifecycle
from quadriga.web.pages.layout import layout_document, layout_source, write_layouts

COMMITTED = Path(__file__).parents[2] / "web" / "pages" / "data" / "layouts.json"
STALE = "the tables have changed: run `python -m quadriga.web.pages.layout " + (
    "web/pages/data/layouts.json`"
)


def content(lifecycle: dict[str, Any]) -> dict[str, Any]:
    """What does not depend on the version of graphviz: all but the places."""
    return {
        "box": lifecycle["box"],
        "states": [state["name"] for state in lifecycle["states"]],
        "edges": [
            {key: edge[key] for key in ("source", "target", "triggers", "lines")}
            | {"label": edge["label"][2:]}
            for edge in lifecycle["edges"]
        ],
    }


@pytest.mark.usefixtures("needs_dot")
def test_the_committed_layouts_are_up_to_date() -> None:
    committed = COMMITTED.read_text(encoding="utf-8")
    made = layout_document()
    now, before = json.loads(made), json.loads(committed)
    # graphviz lays out differently from version to version; what is laid out must be the same
    assert {name: content(each) for name, each in before["lifecycles"].items()} == {
        name: content(each) for name, each in now["lifecycles"].items()
    }, STALE
    if before["graphviz"] == now["graphviz"]:
        assert committed == made, STALE


def test_what_is_laid_out_is_committed_also_where_there_is_no_graphviz() -> None:
    layouts = json.loads(COMMITTED.read_text(encoding="utf-8"))["lifecycles"]
    assert list(layouts) == list(LIFECYCLES), STALE
    for name, lifecycle in LIFECYCLES.items():
        edges: dict[tuple[str, str], list[str]] = {}
        for row in lifecycle.rows:
            if row.target is not None:
                edges.setdefault((row.source, row.target), []).append(row.trigger)
        drawn = {(e["source"], e["target"]): e["triggers"] for e in layouts[name]["edges"]}
        assert drawn == {ends: list(dict.fromkeys(all_)) for ends, all_ in edges.items()}, STALE


@pytest.mark.usefixtures("needs_dot")
def test_the_version_is_the_one_of_the_program() -> None:
    said = subprocess.run(["dot", "-V"], capture_output=True, text=True, check=True).stderr
    assert f" {graphviz_version()} " in said


@pytest.mark.usefixtures("needs_dot")
def test_any_lifecycle_can_be_laid_out(awkward: Lifecycle) -> None:
    laid_out = json.loads(layout_document([awkward]))["lifecycles"][awkward.name]
    assert [state["name"] for state in laid_out["states"]] == list(awkward.states)
    assert {(edge["source"], edge["target"]) for edge in laid_out["edges"]} == {
        (row.source, row.target) for row in awkward.rows if row.target is not None
    }


def test_the_layout_has_no_words_whose_width_a_font_decides(awkward: Lifecycle) -> None:
    source = layout_source(awkward)
    assert "label=<" in source
    assert not any(state in source for state in awkward.states if len(state) > 4)
    assert "back" not in source


def test_without_graphviz_the_file_stays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "layouts.json"
    file.write_text("before", encoding="utf-8")
    monkeypatch.setitem(sys.modules, "graphviz", None)
    with pytest.raises(DiagramError, match="needs the Python package graphviz"):
        write_layouts(file)
    assert file.read_text(encoding="utf-8") == "before"


# -- images, and what is said where graphviz is missing ----------------------------------------------


Words = Callable[[bytes | str], set[str]]
MAGIC = {"png": b"\x89PNG", "pdf": b"%PDF"}


@pytest.mark.usefixtures("needs_dot")
def test_the_widest_lifecycle_is_not_out_of_proportion() -> None:
    root = ElementTree.fromstring(render(APPLICATION, "svg"))
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    assert 0.5 < width / height < 2


@pytest.mark.usefixtures("needs_dot")
@pytest.mark.parametrize("format", MAGIC)
def test_other_images(format: str) -> None:
    drawn = render(NODE, format)
    assert isinstance(drawn, bytes)
    assert drawn.startswith(MAGIC[format])


@pytest.mark.usefixtures("needs_dot")
def test_awkward_names_and_paint_are_drawn(awkward: Lifecycle, words: Words) -> None:
    assert 'a "b" <c> & {d}|e\\' in words(render(awkward, "svg"))
    assert "ünï#;: [*] --> x @enduml" in words(render(awkward, "svg"))
    steps = [(1, "reject", "New", "Rejected")]
    assert "(1)" in words(render_path(NODE, steps, 2))


@pytest.mark.usefixtures("needs_dot")
def test_what_dot_refuses_is_told_in_its_words() -> None:
    with pytest.raises(DiagramError, match=r"dot failed: .*syntax error"):
        image("digraph {", "svg")


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "graphviz", None)
    with pytest.raises(DiagramError, match=r"^svg needs the Python package graphviz: pip install"):
        render(NODE, "svg")
    assert render(NODE, "dot")


def test_without_the_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("graphviz")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DiagramError, match=r"^png needs the program dot .* not on the PATH$"):
        render(NODE, "png")
