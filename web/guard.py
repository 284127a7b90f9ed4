"""Authentication and authorization of HTTP requests.

A token is accepted only in the header ``Authorization: Bearer ...``. There are no cookies, so a
page of another origin cannot act in a user's name.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from quadriga.si.access import Principal, bearer_token
from quadriga.web.responses import Refusal, error_response

if TYPE_CHECKING:
    from quadriga.web.site import Site

#: paths with data of the scheduler; liveness and static files are not protected
_DATA: Final = ("/ws/", "/debug/", "/ui/data/")

#: a host and an optional port in plain form: no user, no path
_HOST: Final = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[0-9.]+|localhost)(:[0-9]{1,5})?", re.ASCII)

_CHALLENGE: Final = {"WWW-Authenticate": 'Bearer realm="quadriga"'}
_INVALID: Final = {"WWW-Authenticate": 'Bearer realm="quadriga", error="invalid_token"'}


def principal(site: Site, scope: Scope) -> Principal | None:
    """The caller, known by a token or a certificate; anonymous where no credentials are needed.
    ``None`` for an unknown caller."""
    token = bearer_token(Headers(scope=scope).get("authorization"))
    return site.access.principal(token, scope.get("state", {}).get("certificate", ()))


def unauthorized(scope: Scope) -> Refusal:
    """The error for an unknown caller: the token is wrong, or a token is needed."""
    if bearer_token(Headers(scope=scope).get("authorization")):
        return Refusal(401, "The bearer token is wrong", _INVALID)
    return Refusal(401, "A bearer token is needed", _CHALLENGE)


def authorize_change(site: Site, scope: Scope, rm_id: str) -> Principal:
    """The caller, if it may change the resource manager's state. Raises ``Refusal`` otherwise.

    Also refuses requests that a page of another origin caused. A browser reveals them in the header
    ``Origin`` or, if the page's host name resolves to this machine, in ``Host``.
    """
    same_origin(scope, "change anything")
    host = Headers(scope=scope).get("host", "")
    who = principal(site, scope)
    if who is None:
        raise unauthorized(scope)
    if site.access.is_open and not _is_local(host):
        raise Refusal(
            403,
            f"Host {host!r} is a name, and any name server may resolve it to this address; use the address",
        )
    if not who.may_act_for(rm_id):
        raise Refusal(403, f"{who.name} may not act for resource manager {rm_id!r}")
    return who


def same_origin(scope: Scope, what: str) -> None:
    """Raise ``Refusal`` if a page of another origin sends the request. ``what`` names the refused
    action."""
    headers = Headers(scope=scope)
    origin = headers.get("origin")
    if origin is None:
        return
    try:
        asks = urlsplit(origin).netloc
    except ValueError:
        asks = ""
    if not asks or asks != headers.get("host", ""):
        raise Refusal(403, f"Requests from pages of another origin cannot {what}")


def _is_local(host: str) -> bool:
    """Whether the host is an address or localhost, which no name server can redirect."""
    found = _HOST.fullmatch(host)
    if found is None:
        return False
    try:
        name = found["name"].strip("[]")
        return name == "localhost" or bool(ip_address(name))
    except ValueError:
        return False


def _has_ambiguous_length(scope: Scope) -> bool:
    """Whether a proxy in front may see another end of the request than this server (RFC 9112
    6.1)."""
    names = {name for name, _ in scope["headers"]}
    return b"content-length" in names and b"transfer-encoding" in names


class Guard:
    """Middleware: refuses requests of ambiguous length and, where reads need a token, requests for
    data without a valid one."""

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self.app = app
        self.site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and _has_ambiguous_length(scope):
            text = "Content-Length and Transfer-Encoding exclude each other"
            refused = error_response(400, text, {"Connection": "close"})
            await refused(scope, receive, send)
            return
        if (
            scope["type"] == "http"
            and self.site.require_token_for_reads
            and scope["path"].startswith(_DATA)
            and scope["method"] != "OPTIONS"
            and principal(self.site, scope) is None
        ):
            refusal = unauthorized(scope)
            refused = error_response(refusal.status, refusal.text, refusal.headers)
            await refused(scope, receive, send)
            return
        await self.app(scope, receive, send)
