"""Images from DOT text, drawn by graphviz. Both its parts are imported or started only here."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from quadriga.diagrams.errors import DiagramError

__all__ = ["image"]


def image(source: str, format: str) -> bytes:
    """DOT text drawn as ``svg``, ``png`` or ``pdf``.

    Raises ``DiagramError`` where the ``graphviz`` package or the ``dot`` program is missing, and
    with dot's words where it refuses the text. There is no substitute: text formats need neither.
    """
    try:
        graphviz: Any = import_module("graphviz")
    except ImportError:
        raise DiagramError(
            f"{format} needs the Python package graphviz: pip install 'quadriga[diagrams]'"
        ) from None
    try:
        drawn: bytes = graphviz.Source(source).pipe(format=format)
    except graphviz.ExecutableNotFound:
        raise DiagramError(
            f"{format} needs the program dot of graphviz (https://graphviz.org/download/), "
            "and it is not on the PATH"
        ) from None
    except graphviz.CalledProcessError as error:
        said = (error.stderr or b"").decode(errors="replace").strip().splitlines()
        raise DiagramError(f"dot failed: {said[0] if said else error}") from None
    return drawn
