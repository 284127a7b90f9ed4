"""The pages below ``/ui/``: what the scheduler does, and why, for people.

There are one HTML file, one style sheet and a few modules, served from the package as they are, and
the JSON that they show below ``/ui/data/`` (``sources`` has the table). The pages need no build step,
no other server and no cookies. The headers tell the browser that a page may load only its own parts
and data.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from functools import lru_cache
from hashlib import blake2b
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from quadriga.core.views import ViewError
from quadriga.web.compression import Shared
from quadriga.web.pages.endpoints import ENDPOINTS, Endpoint, read_parameters
from quadriga.web.responses import JSON, Refusal, encode

if TYPE_CHECKING:
    from quadriga.core.runtime.stepwise import Steps
    from quadriga.core.scheduler import Scheduler
    from quadriga.web.site import Site

__all__ = ["HEADERS", "PAGES", "missing", "routes"]

#: The pages. All are the same HTML file; its script chooses the page by the address.
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

#: Paths below /ui/ that are not pages; programs read them.
_PARTS: Final = ("/ui/data/", "/ui/static/")

#: Content types by the suffix of the file.
_TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}

#: Headers of every answer below /ui/. Scripts, styles and data come only from this server, inserted
#: text cannot become a script, and no other page may show these in a frame.
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
    """The pages, their files and their data. ``/`` leads to the pages unless another web UI is served
    there, which may also have an icon of its own."""
    found: dict[str, Serve] = {"/ui": _to_the_pages}
    found |= {f"/ui/{page}": _file("page.html") for page in PAGES}
    found |= {f"/ui/static/{name}": _file(name) for name in _served()}
    found |= {f"/ui/data/{source.name}": _data(site, source) for source in ENDPOINTS}
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
    """A 404 answer: a page, or JSON for paths of data and files. Its links are relative, like all
    links, so that the pages work below any address."""
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
    """The files that are served under their own names."""
    return sorted(name for name in _static() if not name.endswith(".html"))


def _file(name: str) -> Serve:
    body = _static()[name]
    kind = _TYPES[name.rpartition(".")[2]]

    async def serve(request: Request) -> Response:
        return _answer(request, body, kind)

    return serve


# -- data ------------------------------------------------------------------------------------------


def _data(site: Site, source: Endpoint) -> Serve:
    async def serve(request: Request) -> Response:
        try:
            asked = read_parameters(request.query_params.multi_items(), source.parameters)

            def look(core: Scheduler) -> Steps[tuple[Any, dict[str, Any]]]:
                taken = source.look(site, core, asked)
                return ((yield from taken) if isinstance(taken, Generator) else taken), asked

            name = ("pages", source.name, *asked.values())
            body = await site.reader.text(name, look, spelled, long=source.long)
        except ViewError as error:
            return _problem(error.status, str(error))
        except Refusal as refusal:
            return _problem(refusal.status, refusal.text)
        return _answer(request, body, JSON, {"Quadriga-Time": str(site.service.now())})

    def spelled(taken: tuple[Any, dict[str, Any]]) -> bytes:
        return encode(source.finish(*taken))

    return serve


def _answer(
    request: Request, body: bytes, kind: str, headers: dict[str, str] | None = None
) -> Response:
    """The body, or 304 if the browser has it already."""
    tag = f'"{blake2b(body, digest_size=12).hexdigest()}"'
    # a weak tag: the same body has other bytes when it is compressed
    found = {**HEADERS, **(headers or {}), "ETag": f"W/{tag}"}
    known = request.headers.get("if-none-match", "").split(",")
    if tag in (each.strip().removeprefix("W/") for each in known):
        return Response(status_code=304, headers=found)
    return Response(body, headers={**found, "Content-Type": kind})


def _problem(status: int, text: str) -> Response:
    return Response(encode({"error": text}), status, {**HEADERS, "Content-Type": JSON})
