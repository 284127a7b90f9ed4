"""The parameters of the endpoints: each one has a name, a type and bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from quadriga.core.views import BadRequest


@dataclass(frozen=True, slots=True)
class Text:
    """A text of at most ``most`` characters, and one of ``among`` if that is given."""

    most: int = 1024
    among: tuple[str, ...] = ()
    default: str = ""
    required: bool = False

    def read(self, name: str, text: str | None) -> str:
        if text is None or text == "":
            if self.required:
                raise BadRequest(f"{name}: is required")
            return self.default
        if len(text) > self.most:
            raise BadRequest(f"{name}: is longer than {self.most} characters")
        if self.among and text not in self.among:
            raise BadRequest(f"{name}: must be one of {', '.join(filter(None, self.among))}")
        return text


@dataclass(frozen=True, slots=True)
class Number:
    """A whole number from ``least`` to ``most``."""

    least: int
    most: int
    default: int

    def read(self, name: str, text: str | None) -> int:
        if text is None or text == "":
            return self.default
        whole = text.isascii() and text.isdecimal() and len(text) <= len(str(self.most))
        if not whole or not self.least <= int(text) <= self.most:
            raise BadRequest(f"{name}: must be a whole number from {self.least} to {self.most}")
        return int(text)


Parameters = Mapping[str, Text | Number]


def read_parameters(given: Iterable[tuple[str, str]], known: Parameters) -> dict[str, Any]:
    """The value of each parameter, with defaults. Raises ``BadRequest`` naming the parameter that is
    unauthorized, given twice, too long or out of its range."""
    texts: dict[str, str] = {}
    for name, text in given:
        if name not in known:
            shown = name[:40]
            raise BadRequest(
                f"{shown!r}: unknown parameter; there are {', '.join(known) or 'none'}"
            )
        if name in texts:
            raise BadRequest(f"{name}: was given twice")
        texts[name] = text
    return {name: kind.read(name, texts.get(name)) for name, kind in known.items()}
