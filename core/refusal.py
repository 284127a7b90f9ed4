"""Why one item of a request cannot be done. The others of the request are."""

from __future__ import annotations

__all__ = ["Refused"]


class Refused(Exception):
    """The text is the reason that the resource manager is given. Nothing has changed."""
