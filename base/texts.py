"""Shortened texts: what comes from outside may be megabytes long."""

from __future__ import annotations

from typing import Final

#: bounds a text that is kept or shown for a reader, in characters
LONGEST: Final = 1024


def shortened(text: str, longest: int = LONGEST, mark: str = "…") -> str:
    """Return the text, cut to ``longest`` characters of which the last are ``mark``."""
    return text if len(text) <= longest else text[: longest - len(mark)] + mark


def shortened_bytes(text: str, size: int) -> str:
    """Return the text, shortened with three dots to at most ``size`` bytes of UTF-8."""
    data = text.encode("utf-8", "replace")
    if len(data) <= size:
        return data.decode()
    return data[: size - 3].decode("utf-8", "ignore") + "..."
