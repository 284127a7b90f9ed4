"""What a view cannot give, with the status and the text that a reader over HTTP gets (2.14)."""

from __future__ import annotations

__all__ = ["BadRequest", "NotFound", "ViewError"]


class ViewError(LookupError):
    """``status`` is that of HTTP, ``text`` the message for the reader."""

    status = 500

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return self.text


class NotFound(ViewError):
    """There is no such partition, queue, application, node, user or group."""

    status = 404


class BadRequest(ViewError):
    """The question itself makes no sense: a state that nobody can ask for, a name that is missing."""

    status = 400
