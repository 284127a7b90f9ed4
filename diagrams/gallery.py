"""All diagrams of lifecycles in one folder, with a page that shows them.

``quadriga draw --all docs/gallery`` writes the committed gallery again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from quadriga.diagrams.errors import DiagramError
from quadriga.diagrams.state import FORMATS, render
from quadriga.diagrams.wording import readable
from quadriga.fsm import Lifecycle

GALLERY_FORMATS = ("md", "svg")


def write_gallery(
    directory: str | Path,
    formats: Sequence[str],
    lifecycles: Iterable[Lifecycle],
) -> list[Path]:
    """Write ``<lifecycle>.<suffix>`` for each format, and ``README.md``; return the paths.

    Everything is rendered before the first file is written. Raises ``DiagramError`` as ``render``
    does, and for two lifecycles of the same name, whose files would overwrite each other.
    """
    shown = tuple(lifecycles)
    names = [lifecycle.name for lifecycle in shown]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise DiagramError(f"two lifecycles are called {twice}")
    pages = {
        f"{lifecycle.name}{FORMATS.get(format, '')}": render(lifecycle, format)
        for lifecycle in shown
        for format in formats
    }
    pages["README.md"] = gallery_page(shown, formats)
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    for name, page in pages.items():
        (folder / name).write_bytes(page.encode() if isinstance(page, str) else page)
    return [folder / name for name in pages]


def gallery_page(lifecycles: Iterable[Lifecycle], formats: Sequence[str] = GALLERY_FORMATS) -> str:
    """A Markdown page that shows the pictures and links to the other files."""
    lines = [
        "# Lifecycles",
        "",
        "Drawn from the tables; do not edit. `quadriga draw --all docs/gallery` writes this folder again, "
        "`quadriga draw NAME --format FORMAT` another format.",
        "",
        "A box is a state with the time it may last and, below the line, the triggers that are "
        "legal there and change nothing. A double border marks a final state. An arrow reads "
        "*trigger [guard] / effects*. In a table (md), *others* are all states that are not final and "
        "that no earlier row of the trigger names.",
    ]
    for lifecycle in lifecycles:
        name = lifecycle.name
        lines += ["", f"## {readable(name)}", ""]
        picture = next((f for f in ("svg", "png") if f in formats), None)
        if picture:
            lines += [f"![states of {readable(name)}]({name}{FORMATS[picture]})", ""]
        others = [format for format in formats if format != picture]
        lines.append(", ".join(f"[{format}]({name}{FORMATS[format]})" for format in others))
    return "\n".join(lines) + "\n"
