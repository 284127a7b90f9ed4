"""The errors of views, with the status and the text of the HTTP response (2.14)."""

from __future__ import annotations


class ViewError(LookupError):
    """``status`` is the HTTP status, ``text`` the message."""

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
    """The question is invalid: an unknown state, or a missing name."""

    status = 400
