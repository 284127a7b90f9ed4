"""The refusal of one item of a request; the other items are processed."""

# Not compiled: its classes derive from a library's, or others derive from them.

from __future__ import annotations


class Refused(Exception):
    """An item was refused and nothing has changed; the text is the reason for the resource manager.

    ``kind`` is the class of the reason, one short word, by which metrics count.
    """

    def __init__(self, text: str, kind: str = "invalid") -> None:
        super().__init__(text)
        self.kind = kind
