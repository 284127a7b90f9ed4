"""The direction and the colours of a state diagram.

Every format that can show them reads the colours from here: a tone has the same colour in DOT, in
Mermaid and in PlantUML.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from quadriga.diagrams.paint import Tone


@dataclass(frozen=True, slots=True)
class Colours:
    """How a tone is drawn; an empty colour is that of the plain diagram.

    ``text`` and ``arrow`` are for rows, ``faded`` is the text in a state, ``fill`` and ``border`` are
    its box.
    """

    text: str = ""
    arrow: str = ""
    fill: str = ""
    border: str = ""
    faded: str = ""


@dataclass(frozen=True, slots=True)
class Palette:
    """All colours of a diagram. ``soft`` is for effects, limits and reasons."""

    page: str
    line: str
    fill: str
    text: str
    soft: str
    tones: Mapping[Tone, Colours]


LIGHT = Palette(
    page="#ffffff",
    line="#3b4a63",
    fill="#f3f6fb",
    text="#000000",
    soft="#5f6b7a",
    tones=MappingProxyType(
        {
            Tone.PLAIN: Colours(),
            Tone.COVERED: Colours(text="#1a7f37", arrow="#1a7f37"),
            Tone.MISSED: Colours(text="#c62828", arrow="#c62828"),
            Tone.WALKED: Colours(text="#0b57d0", arrow="#0b57d0", fill="#d6e6ff"),
            Tone.CURRENT: Colours(fill="#ffe9a8", border="#0b57d0"),
            Tone.FAINT: Colours("#9aa3ae", "#c3c9d1", "#ffffff", "#c3c9d1", faded="#9aa3ae"),
        }
    ),
)
DARK = Palette(
    page="#14181f",
    line="#9fb0c9",
    fill="#232b38",
    text="#e8edf5",
    soft="#a3afbf",
    tones=MappingProxyType(
        {
            Tone.PLAIN: Colours(),
            Tone.COVERED: Colours(text="#5bd279", arrow="#5bd279"),
            Tone.MISSED: Colours(text="#ff8a80", arrow="#ff8a80"),
            Tone.WALKED: Colours(text="#8ab8ff", arrow="#8ab8ff", fill="#1f3a66"),
            Tone.CURRENT: Colours(fill="#5c4a10", border="#8ab8ff"),
            Tone.FAINT: Colours("#8b96a6", "#465061", "#14181f", "#465061", faded="#8b96a6"),
        }
    ),
)


@dataclass(frozen=True, slots=True)
class Style:
    """``left_to_right`` instead of top to bottom; ``dark`` for pages with a dark background."""

    left_to_right: bool = False
    dark: bool = False

    @property
    def palette(self) -> Palette:
        return DARK if self.dark else LIGHT
