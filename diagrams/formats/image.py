"""DOT text drawn by graphviz.

This is the only module that imports the ``graphviz`` package and starts the ``dot`` program.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from quadriga.diagrams.errors import DiagramError


def image(source: str, format: str) -> bytes:
    """DOT text drawn as ``svg``, ``png`` or ``pdf``, or laid out as ``json``.

    Raises ``DiagramError`` where the ``graphviz`` package or the ``dot`` program is missing, and
    with dot's own message where dot refuses the text. The text formats need neither.
    """
    graphviz = _package(format)
    try:
        drawn: bytes = graphviz.Source(source).pipe(format=format)
    except graphviz.ExecutableNotFound:
        raise _no_program(format) from None
    except graphviz.CalledProcessError as error:
        said = (error.stderr or b"").decode(errors="replace").strip().splitlines()
        raise DiagramError(f"dot failed: {said[0] if said else error}") from None
    return drawn


def graphviz_version() -> str:
    """The version of the ``dot`` program: ``2.43.0``. Raises ``DiagramError`` as ``image`` does."""
    graphviz = _package("json")
    try:
        return ".".join(map(str, graphviz.version()))
    except graphviz.ExecutableNotFound:
        raise _no_program("json") from None


def _package(format: str) -> Any:
    try:
        return import_module("graphviz")
    except ImportError:
        raise DiagramError(
            f"{format} needs the Python package graphviz: pip install graphviz"
        ) from None


def _no_program(format: str) -> DiagramError:
    return DiagramError(
        f"{format} needs the program dot of graphviz (https://graphviz.org/download/), "
        "and it is not on the PATH"
    )
