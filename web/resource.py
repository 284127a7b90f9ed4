"""A path with its operations: it answers requests and describes itself for OpenAPI.

Paths are matched segment by segment before they are decoded, so a name may contain any character,
including a slash (``%2F``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, unquote

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from quadriga.core.views import ViewError
from quadriga.si import RequestError
from quadriga.web.responses import Refusal, error_response

_log = logging.getLogger("quadriga.web")

#: s; a client must have sent the body of its request within this time
BODY_TIMEOUT: Final = 30.0


@dataclass(frozen=True, slots=True)
class Query:
    """A query parameter: its JSON schema and its meaning."""

    name: str
    schema: Mapping[str, Any]
    about: str
    required: bool = False


@dataclass(frozen=True, slots=True)
class Body:
    """A request body: its media types and its maximum size in bytes."""

    media: tuple[str, ...]
    limit: int
    about: str


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of a path. ``returns`` maps media types to the type of the JSON (``None`` for
    text). ``errors`` are the statuses of its errors."""

    answer: Callable[[Request], Awaitable[Response]]
    about: str
    returns: Mapping[str, Any]
    errors: tuple[int, ...] = ()
    query: tuple[Query, ...] = ()
    body: Body | None = None
    status: int = 200
    #: whether the operation needs a token where tokens are configured
    changes: bool = False


@dataclass(eq=False)
class Resource(BaseRoute):
    """``path`` has ``{name}`` for a whole segment. ``operations`` maps methods to operations; HEAD
    is derived from GET, and OPTIONS is automatic."""

    path: str
    operations: Mapping[str, Operation]
    tag: str = ""
    #: JSON schemas of path parameters that are more specific than text
    schemas: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    _segments: Sequence[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._segments = self.path.split("/")

    @property
    def parameters(self) -> list[str]:
        """The names of the path parameters, in order."""
        return [each[1:-1] for each in self._segments if each.startswith("{")]

    @property
    def methods(self) -> list[str]:
        head = ["HEAD"] if "GET" in self.operations else []
        return sorted([*self.operations, *head, "OPTIONS"])

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] != "http":
            return Match.NONE, {}
        raw = scope.get("raw_path") or quote(scope["path"]).encode()
        sent = raw.decode("ascii", "replace").partition("?")[0].split("/")
        if len(sent) != len(self._segments):
            return Match.NONE, {}
        found = {}
        for pattern, segment in zip(self._segments, sent, strict=True):
            if pattern.startswith("{"):
                found[pattern[1:-1]] = unquote(segment)
            elif pattern != unquote(segment):
                return Match.NONE, {}
        return Match.FULL, {"path_params": found, "endpoint": self}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._answer(scope, receive)
        await response(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive) -> Response:
        method = scope["method"]
        allow = {"Allow": ", ".join(self.methods)}
        if method == "OPTIONS":
            return Response(status_code=200, headers=allow)
        operation = self.operations.get("GET" if method == "HEAD" else method)
        if operation is None:
            return error_response(405, "Method Not Allowed", allow)
        try:
            return await operation.answer(Request(scope, receive))
        except ViewError as error:
            return error_response(error.status, error.text)
        except Refusal as refusal:
            return error_response(refusal.status, refusal.text, refusal.headers)
        except RequestError as error:
            return error_response(400, str(error))
        except ClientDisconnect:  # the client has gone
            return error_response(400, "The client has gone away")
        except Exception:
            _log.exception("%s %s failed", method, self.path)
            return error_response(500, "Internal server error")


async def read_body(request: Request, limit: int) -> bytes:
    """Read the body. Raises ``Refusal`` if it is larger than the limit or does not arrive in
    time."""
    too_long = Refusal(413, f"The body must not have more than {limit} bytes")
    said = request.headers.get("content-length", "")
    if said.isascii() and said.isdecimal() and (len(said) > 18 or int(said) > limit):
        raise too_long
    found = bytearray()
    try:
        async with asyncio.timeout(BODY_TIMEOUT):
            async for chunk in request.stream():
                found += chunk
                if len(found) > limit:
                    raise too_long
    except TimeoutError:
        raise Refusal(408, f"The body did not arrive within {BODY_TIMEOUT:g} s") from None
    return bytes(found)
