"""The error that all functions of this package raise."""

from __future__ import annotations


class DiagramError(Exception):
    """What was asked for cannot be drawn or read; the message gives the reason in one line."""
