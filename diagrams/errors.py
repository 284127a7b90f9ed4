"""What can go wrong with a diagram."""

from __future__ import annotations

__all__ = ["DiagramError"]


class DiagramError(Exception):
    """A diagram that cannot be drawn, and why, in one line."""
