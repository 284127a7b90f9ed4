"""Our own pages, below ``/ui/``: what the scheduler does, and why, for people.

One HTML file, one style sheet and a few modules, served from the package as they are, and JSON
below ``/ui/data/`` for them to show (``sources`` has the table). No build step, nothing from elsewhere,
no cookies. A page may do nothing but load its own parts and data: the headers say so to the browser.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import lru_cache
from hashlib import blake2b
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from quadriga.core.views import ViewError
from quadriga.web.answers import JSON, Refusal, spell
from quadriga.web.packing import Shared
from quadriga.web.pages.asking import read_parameters
from quadriga.web.pages.sources import SOURCES, Source

if TYPE_CHECKING:
    from quadriga.web.site import Site

__all__ = ["HEADERS", "PAGES", "missing", "routes"]

#: the pages: each is the same file, whose module looks at its address
PAGES: Final = (
    "",
    "queue",
    "applications",
    "application",
    "nodes",
    "node",
    "lifecycles",
    "people",
    "configuration",
    "events",
)

#: what is below /ui/ and no page: who asks there is a program
_PARTS: Final = ("/ui/data/", "/ui/static/")

#: by what a file's name ends in
_TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}

#: on every answer below /ui/. Scripts, styles and data come from here and from nowhere else, nothing
#: that is inserted can become a script, and nobody may put a page into a frame.
HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}

Serve = Callable[[Request], Awaitable[Response]]


def routes(site: Site) -> list[BaseRoute]:
    """The pages, their files and their data. ``/`` leads to them unless a web UI is served there; a web
    UI may also have an icon of its own."""
    found: dict[str, Serve] = {"/ui": _to_the_pages}
    found |= {f"/ui/{page}": _file("page.html") for page in PAGES}
    found |= {f"/ui/static/{name}": _file(name) for name in _served()}
    found |= {f"/ui/data/{source.name}": _data(site, source) for source in SOURCES}
    if site.ui is None:
        found["/"] = _to_the_pages
    if site.ui is None or not (site.ui / "favicon.ico").is_file():
        found["/favicon.ico"] = _file("icon.svg")
    found["/ui/{rest:path}"] = _missing
    return [
        Route(path, serve, methods=["GET"], include_in_schema=False)
        for path, serve in found.items()
    ]


async def _to_the_pages(request: Request) -> Response:
    return RedirectResponse("/ui/", headers=HEADERS)


async def _missing(request: Request) -> Response:
    return missing(request)


def missing(request: Request) -> Response:
    """A page that says that there is none; JSON where data or a file were asked for. Its links are
    relative, as all are, so that the pages may stand below any address."""
    path = request.url.path
    if path.startswith(_PARTS):
        return _problem(404, "Not Found")
    base = "../" * (path.count("/") - 1) + "ui/"
    body = _static()["missing.html"].replace(b"{base}", base.encode())
    return Response(body, 404, {**HEADERS, "Content-Type": _TYPES["html"]})


# -- files -----------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _static() -> dict[str, bytes]:
    """The files in the package, read once."""
    folder = files(__name__).joinpath("static")
    return {
        each.name: Shared(each.read_bytes())
        for each in folder.iterdir()
        if each.is_file() and each.name.rpartition(".")[2] in _TYPES
    }


def _served() -> list[str]:
    """The files that are asked for by their names."""
    return sorted(name for name in _static() if not name.endswith(".html"))


def _file(name: str) -> Serve:
    body = _static()[name]
    kind = _TYPES[name.rpartition(".")[2]]

    async def serve(request: Request) -> Response:
        return _answer(request, body, kind)

    return serve


# -- data ------------------------------------------------------------------------------------------


def _data(site: Site, source: Source) -> Serve:
    async def serve(request: Request) -> Response:
        try:
            asked = read_parameters(request.query_params.multi_items(), source.parameters)
            body = await site.reader.text(
                ("pages", source.name, *asked.values()),
                lambda core: (source.look(site, core, asked), asked),
                spelled,
            )
        except ViewError as error:
            return _problem(error.status, str(error))
        except Refusal as refusal:
            return _problem(refusal.status, refusal.text)
        return _answer(request, body, JSON, {"Quadriga-Time": str(site.service.now())})

    def spelled(taken: tuple[Any, dict[str, Any]]) -> bytes:
        return spell(source.finish(*taken))

    return serve


def _answer(
    request: Request, body: bytes, kind: str, headers: dict[str, str] | None = None
) -> Response:
    """The body, or that the browser has it already."""
    tag = f'"{blake2b(body, digest_size=12).hexdigest()}"'
    # a weak one, as what is packed has other bytes and says the same
    found = {**HEADERS, **(headers or {}), "ETag": f"W/{tag}"}
    known = request.headers.get("if-none-match", "").split(",")
    if tag in (each.strip().removeprefix("W/") for each in known):
        return Response(status_code=304, headers=found)
    return Response(body, headers={**found, "Content-Type": kind})


def _problem(status: int, text: str) -> Response:
    return Response(spell({"error": text}), status, {**HEADERS, "Content-Type": JSON})
