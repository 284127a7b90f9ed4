"""The error that all functions of this package raise."""

from __future__ import annotations


class DiagramError(Exception):
    """A diagram cannot be drawn; the message gives the reason in one line."""
