"""Images through graphviz, and what is said where it is missing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from quadriga.diagrams import DiagramError, render, render_path
from quadriga.diagrams.image import image
from quadriga.fsm import APPLICATION, NODE, Lifecycle

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
