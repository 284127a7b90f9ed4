"""What every answer over HTTP looks like: headers, JSON, and the body of an error (2.14)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, TypedDict

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = [
    "API",
    "HEADERS",
    "JSON",
    "TEXT",
    "YAML",
    "ErrorObject",
    "Headers",
    "Refusal",
    "json_answer",
    "problem",
    "spell",
    "text_answer",
]

JSON: Final = "application/json; charset=UTF-8"
YAML: Final = "application/x-yaml; charset=UTF-8"
TEXT: Final = "text/plain; charset=UTF-8"

#: below these everything is the API
API: Final = ("/ws/", "/debug/", "/livez", "/readyz")

#: on every answer of the API, errors included. No method that changes anything is among those that a
#: page of somebody else may use, so a browser never sends one for it.
HEADERS: Final[Mapping[str, str]] = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Credentials": "true",
    "Access-Control-Allow-Methods": "GET,POST,HEAD,OPTIONS",
    "Access-Control-Allow-Headers": "X-Requested-With,Content-Type,Accept,Origin",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


class ErrorObject(TypedDict):
    """What went wrong. ``description`` says the same unless there is more to say."""

    status_code: int
    message: str
    description: str


class Refusal(Exception):
    """The request gets an error instead of an answer."""

    def __init__(self, status: int, text: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.headers = dict(headers or {})


def spell(value: Any) -> bytes:
    """JSON without needless spaces, in ASCII, so that no text can break it."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def text_answer(text: str | bytes, media: str) -> Response:
    """The text, as what it is."""
    return Response(text, headers={**HEADERS, "Content-Type": media})


def json_answer(
    value: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    return Response(spell(value), status, {**HEADERS, **(headers or {}), "Content-Type": JSON})


def problem(status: int, text: str, headers: Mapping[str, str] | None = None) -> Response:
    """The body of an error, in YuniKorn's form."""
    body: ErrorObject = {"status_code": status, "message": text, "description": text}
    return json_answer(body, status, headers)


class Headers:
    """Around the application: adds ``HEADERS`` to what answers for the `API`, keeps the bodies of
    answers to HEAD back, and leaves the rest alone."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        ours = scope["path"].startswith(API)
        bare = scope["method"] == "HEAD"

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items() if ours else ():
                    headers.setdefault(name, value)
                headers.setdefault("X-Content-Type-Options", "nosniff")
            elif bare and message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        await self.app(scope, receive, sent)
