"""Who may look, and who may change something.

A token comes in the header ``Authorization: Bearer ...`` and nowhere else. There are no cookies, so a
page of somebody else can do nothing in a reader's name.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from quadriga.si.access import bearer_token
from quadriga.web.answers import Refusal, problem

if TYPE_CHECKING:
    from quadriga.si.access import Principal
    from quadriga.web.site import Site

__all__ = ["Guard", "may_change", "principal", "same_origin", "unknown"]

#: what shows something of the scheduler; whether it lives, and files that anybody has, are no secret
_DATA: Final = ("/ws/", "/debug/", "/ui/data/")

#: a host and a port, and nothing that a name could hide in: no user, no path
_HOST: Final = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[0-9.]+|localhost)(:[0-9]{1,5})?", re.ASCII)

_CHALLENGE: Final = {"WWW-Authenticate": 'Bearer realm="quadriga"'}
_INVALID: Final = {"WWW-Authenticate": 'Bearer realm="quadriga", error="invalid_token"'}


def principal(site: Site, scope: Scope) -> Principal | None:
    """Who asks: the bearer of a token or a certificate that is known, or anybody where none is
    needed."""
    token = bearer_token(Headers(scope=scope).get("authorization"))
    return site.access.principal(token, scope.get("state", {}).get("certificate", ()))


def unknown(scope: Scope) -> Refusal:
    """What is said to a caller that is not known: that its token is wrong, or that one is needed."""
    if bearer_token(Headers(scope=scope).get("authorization")):
        return Refusal(401, "The bearer token is wrong", _INVALID)
    return Refusal(401, "A bearer token is needed", _CHALLENGE)


def may_change(site: Site, scope: Scope, rm_id: str) -> Principal:
    """Who asks, if he may change what belongs to the resource manager; else ``Refusal``.

    A browser that was led here by a page of somebody else says so in ``Origin``, and, where the page
    has made its own name point to this machine, in ``Host``.
    """
    same_origin(scope, "change anything")
    host = Headers(scope=scope).get("host", "")
    who = principal(site, scope)
    if who is None:
        raise unknown(scope)
    if site.access.is_open and not _is_local(host):
        raise Refusal(
            403, f"Host {host!r} is a name, which anybody's name server may give; use the address"
        )
    if not who.may_act_for(rm_id):
        raise Refusal(403, f"{who.name} may not act for resource manager {rm_id!r}")
    return who


def same_origin(scope: Scope, what: str) -> None:
    """Raises ``Refusal`` where a page of another origin asks; ``what`` it cannot do."""
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
    """Whether it names the machine by an address or as localhost, which no name server can change."""
    found = _HOST.fullmatch(host)
    if found is None:
        return False
    try:
        name = found["name"].strip("[]")
        return name == "localhost" or bool(ip_address(name))
    except ValueError:
        return False


def _says_two_lengths(scope: Scope) -> bool:
    """Whether a server before this one may think that the request ends elsewhere (RFC 9112 6.1)."""
    names = {name for name, _ in scope["headers"]}
    return b"content-length" in names and b"transfer-encoding" in names


class Guard:
    """Around the application: a request whose end is not clear is refused, and where reads need a
    token, nobody without one sees any data."""

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self.app = app
        self.site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and _says_two_lengths(scope):
            text = "Content-Length and Transfer-Encoding exclude each other"
            refused = problem(400, text, {"Connection": "close"})
            await refused(scope, receive, send)
            return
        if (
            scope["type"] == "http"
            and self.site.require_token_for_reads
            and scope["path"].startswith(_DATA)
            and scope["method"] != "OPTIONS"
            and principal(self.site, scope) is None
        ):
            refusal = unknown(scope)
            refused = problem(refusal.status, refusal.text, refusal.headers)
            await refused(scope, receive, send)
            return
        await self.app(scope, receive, send)
