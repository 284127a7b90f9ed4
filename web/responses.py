"""HTTP responses: their headers, their JSON, and the body of an error (2.14)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, TypedDict

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

JSON: Final = "application/json; charset=UTF-8"
YAML: Final = "application/x-yaml; charset=UTF-8"
TEXT: Final = "text/plain; charset=UTF-8"

#: path prefixes that belong to the API
API: Final = ("/ws/", "/debug/", "/livez", "/readyz")

#: Headers of every response of the API, errors included. The allowed methods do not include any
#: that changes something, so a browser never sends such a request for a page of another origin.
HEADERS: Final[Mapping[str, str]] = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Credentials": "true",
    "Access-Control-Allow-Methods": "GET,POST,HEAD,OPTIONS",
    "Access-Control-Allow-Headers": "X-Requested-With,Content-Type,Accept,Origin",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


class ErrorObject(TypedDict):
    """An error. ``description`` repeats ``message`` unless there is more to say."""

    status_code: int
    message: str
    description: str


class Refusal(Exception):
    """Raised to answer a request with an error."""

    def __init__(self, status: int, text: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.headers = dict(headers or {})


def encode(value: Any) -> bytes:
    """Compact JSON in ASCII."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def text_response(text: str | bytes, media: str) -> Response:
    """A response with this text and media type."""
    return Response(text, headers={**HEADERS, "Content-Type": media})


def json_response(
    value: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    return Response(encode(value), status, {**HEADERS, **(headers or {}), "Content-Type": JSON})


def error_response(status: int, text: str, headers: Mapping[str, str] | None = None) -> Response:
    """An error response in YuniKorn's form."""
    body: ErrorObject = {"status_code": status, "message": text, "description": text}
    return json_response(body, status, headers)


class Headers:
    """Middleware: adds ``HEADERS`` to the responses of the `API` and removes the bodies of
    responses to HEAD."""

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
