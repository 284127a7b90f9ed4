"""Why one item of a request cannot be done. The others of the request are."""

from __future__ import annotations

__all__ = ["Refused"]


class Refused(Exception):
    """The text is the reason that the resource manager is given. Nothing has changed.

    ``kind`` is the class of reasons it belongs to, for those who count: one short word of few.
    """

    def __init__(self, text: str, kind: str = "invalid") -> None:
        super().__init__(text)
        self.kind = kind
