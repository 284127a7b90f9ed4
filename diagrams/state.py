"""One lifecycle in any format: plain, with a test run's coverage, or with one entity's path."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from quadriga.diagrams.dot import dot
from quadriga.diagrams.errors import DiagramError
from quadriga.diagrams.image import image
from quadriga.diagrams.json_document import json_document
from quadriga.diagrams.markdown import markdown
from quadriga.diagrams.mermaid import mermaid
from quadriga.diagrams.paint import Paint, Step, coverage_paint, path_paint
from quadriga.diagrams.plantuml import plantuml
from quadriga.diagrams.scxml import scxml
from quadriga.fsm import Lifecycle

__all__ = ["FORMATS", "IMAGES", "render", "render_path"]

#: every format of a state diagram with the suffix of its files
FORMATS: Mapping[str, str] = MappingProxyType(
    {
        "dot": ".dot",
        "mermaid": ".mmd",
        "plantuml": ".puml",
        "scxml": ".scxml",
        "markdown": ".md",
        "json": ".json",
        "svg": ".svg",
        "png": ".png",
        "pdf": ".pdf",
    }
)
#: those that need graphviz and come as bytes
IMAGES = ("svg", "png", "pdf")

_PLAIN: Mapping[str, Callable[[Lifecycle], str]] = {
    "plantuml": plantuml,
    "scxml": scxml,
    "markdown": markdown,
    "json": json_document,
}


def render(
    lifecycle: Lifecycle, format: str, *, coverage: Mapping[str, Any] | None = None
) -> str | bytes:
    """The state diagram of a lifecycle: text, or bytes for the formats in ``IMAGES``.

    ``coverage`` is what the pytest plugin wrote, loaded from its JSON; in DOT and the images, rows
    that were taken come out green with their count, and rows that were not, red and dashed.
    Raises ``DiagramError`` for an unknown format, for coverage that does not fit, and where an
    image needs what is not installed.
    """
    if coverage is None:
        return _draw(lifecycle, format, None)
    _only(format, "coverage", ("dot", *IMAGES))
    return _draw(lifecycle, format, coverage_paint(lifecycle, coverage))


def render_path(
    lifecycle: Lifecycle,
    steps: Sequence[Step],
    now: int,
    format: str = "svg",
    *,
    born: int | None = None,
) -> str | bytes:
    """The state diagram with the path of one entity: where it was, for how long, where it is.

    ``steps`` are its transitions ``(time in ns, trigger, source, target)`` in order, a row that
    stays with its source as its target; ``now`` (ns) ends the time in the present state, and
    ``born`` (ns), where known, begins that in the first. In DOT, Mermaid and the images. Raises
    ``DiagramError`` for steps that the table does not allow.
    """
    _only(format, "a path", ("dot", "mermaid", *IMAGES))
    return _draw(lifecycle, format, path_paint(lifecycle, steps, now, born))


def _draw(lifecycle: Lifecycle, format: str, paint: Paint | None) -> str | bytes:
    if format in IMAGES:
        return image(dot(lifecycle, paint), format)
    if format == "dot":
        return dot(lifecycle, paint)
    if format == "mermaid":
        return mermaid(lifecycle, paint)
    if format in _PLAIN:
        return _PLAIN[format](lifecycle)
    raise DiagramError(f"unknown format {format!r}; there are {', '.join(FORMATS)}")


def _only(format: str, what: str, able: tuple[str, ...]) -> None:
    if format in FORMATS and format not in able:
        raise DiagramError(f"{format} cannot show {what}; these can: {', '.join(able)}")
