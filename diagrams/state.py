"""One lifecycle in any format: plain, with the coverage of a test run, or with an entity's path."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from quadriga.diagrams.errors import DiagramError
from quadriga.diagrams.formats.dot import dot
from quadriga.diagrams.formats.image import image
from quadriga.diagrams.formats.json_document import json_document
from quadriga.diagrams.formats.markdown import markdown
from quadriga.diagrams.formats.mermaid import mermaid
from quadriga.diagrams.formats.plantuml import plantuml
from quadriga.diagrams.formats.scxml import scxml
from quadriga.diagrams.formats.style import Style
from quadriga.diagrams.paint import Paint, Step, coverage_paint, path_paint
from quadriga.fsm import Lifecycle
from quadriga.fsm.errors import text_of

#: The formats of a state diagram, each with the suffix of its files.
FORMATS: Mapping[str, str] = MappingProxyType(
    {
        "dot": ".dot",
        "mermaid": ".mmd",
        "plantuml": ".puml",
        "scxml": ".scxml",
        "md": ".md",
        "json": ".json",
        "svg": ".svg",
        "png": ".png",
        "pdf": ".pdf",
    }
)
#: The formats that graphviz draws and that are bytes.
IMAGES = ("svg", "png", "pdf")

_WRITERS: Mapping[str, Callable[[Lifecycle, Paint | None, Style], str]] = {
    "dot": dot,
    "mermaid": mermaid,
    "plantuml": plantuml,
    "scxml": lambda lifecycle, paint, style: scxml(lifecycle),
    "md": lambda lifecycle, paint, style: markdown(lifecycle, paint),
    "json": lambda lifecycle, paint, style: json_document(lifecycle, paint),
}
_PICTURES = ("dot", "mermaid", "plantuml", *IMAGES)
_WITH_COUNTS = (*_PICTURES, "md", "json")


def render(
    lifecycle: Lifecycle,
    format: str,
    *,
    coverage: Mapping[str, Any] | None = None,
    left_to_right: bool = False,
    dark: bool = False,
) -> str | bytes:
    """The state diagram of a lifecycle: text, or bytes for the formats in ``IMAGES``.

    ``coverage`` is the JSON file of the pytest plugin, loaded. Rows that a test took are green with
    their count, and the other rows are red and dashed; Mermaid, Markdown and JSON have the counts
    only, and SCXML cannot show them. ``left_to_right`` and ``dark`` (for pages with a dark background)
    change the pictures; the formats that are not pictures do not have them. Raises ``DiagramError``
    for an unknown format, for what a format cannot show, for coverage that does not fit the table,
    and for an image if graphviz is not installed.
    """
    lifecycle = lifecycle.as_text()
    style = Style(left_to_right, dark)
    _require_style(format, style)
    if coverage is None:
        return _draw(lifecycle, format, None, style)
    _require_format(format, "coverage", _WITH_COUNTS)
    return _draw(lifecycle, format, coverage_paint(lifecycle, coverage), style)


def render_path(
    lifecycle: Lifecycle,
    steps: Sequence[Step],
    now: int,
    format: str = "svg",
    *,
    born: int | None = None,
    left_to_right: bool = False,
    dark: bool = False,
) -> str | bytes:
    """The state diagram with one entity's path: its states, the time in each, its current state.

    ``steps`` are the transitions ``(time in ns, trigger, source, target)`` in order; source and
    target are equal if the state did not change. The time in the current state ends at ``now`` (ns),
    and that in the first state begins at ``born`` (ns), if it is given. The formats are DOT, Mermaid,
    PlantUML and the images. Raises ``DiagramError`` for steps that the table does not allow.
    """
    _require_format(format, "a path", _PICTURES)
    lifecycle = lifecycle.as_text()
    steps = [(time, text_of(by), text_of(here), text_of(there)) for time, by, here, there in steps]
    paint = path_paint(lifecycle, steps, now, born)
    return _draw(lifecycle, format, paint, Style(left_to_right, dark))


def _draw(lifecycle: Lifecycle, format: str, paint: Paint | None, style: Style) -> str | bytes:
    if format in IMAGES:
        return image(dot(lifecycle, paint, style), format)
    if format in _WRITERS:
        return _WRITERS[format](lifecycle, paint, style)
    raise DiagramError(f"unknown format {format!r}; there are {', '.join(FORMATS)}")


def _require_style(format: str, style: Style) -> None:
    for asked, what in ((style.left_to_right, "a direction"), (style.dark, "dark colours")):
        if asked:
            _require_format(format, what, _PICTURES)


def _require_format(format: str, what: str, allowed: tuple[str, ...]) -> None:
    if format in FORMATS and format not in allowed:
        raise DiagramError(f"{format} cannot show {what}; these can: {', '.join(allowed)}")
