"""Refusals of the API server (``Status`` objects)."""

from __future__ import annotations

import msgspec


class Refusal(msgspec.Struct, gc=False):
    """The refusal of a request. ``reason`` is one word, such as ``AlreadyExists``; ``message`` a sentence;
    ``code`` the status."""

    code: int = 0
    reason: str = ""
    message: str = ""

    def __str__(self) -> str:
        text = self.message or self.reason or "no explanation"
        return f"{self.code}: {text[:1000]}"


_decoder = msgspec.json.Decoder(Refusal)


def refusal_of(status: int, body: bytes) -> Refusal:
    """Return the refusal in a response. A body that is no ``Status`` is the message."""
    try:
        refusal = _decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        refusal = Refusal(message=body[:1000].decode("utf-8", "replace").strip())
    refusal.code = status
    return refusal
