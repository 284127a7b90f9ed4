"""The web application: REST, metrics, our own pages and a built web UI, on one port."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from quadriga.base.times import SECOND
from quadriga.core.checks.health import CHECK_EVERY, check_interval
from quadriga.core.driver.service import SchedulerService
from quadriga.core.views import Views
from quadriga.core.views.history import INTERVAL
from quadriga.si.access import Access
from quadriga.web import metrics, openapi, pages, rest
from quadriga.web.compression import Compression
from quadriga.web.guard import Guard
from quadriga.web.reader import Reader
from quadriga.web.responses import API, Headers, Refusal, error_response
from quadriga.web.site import ExtraMetrics, Site

if TYPE_CHECKING:
    from quadriga.core.runtime.stepwise import Steps
    from quadriga.core.scheduler import Scheduler

#: first segments of API paths; unknown paths below them get 404, not the UI
_NOT_OURS = {each.strip("/") for each in API}


class WebUI(StaticFiles):
    """Serves the files of ``folder``, and its ``index.html`` for every other path, since the UI
    does its own routing. Files outside the folder are not served, not even through links."""

    def __init__(self, folder: Path) -> None:
        if not (folder / "index.html").is_file():
            raise ValueError(f"{folder} holds no index.html: it is not a web UI as built")
        super().__init__(directory=folder, html=True)

    async def get_response(self, path: str, scope: Scope) -> Response:
        try:
            return await super().get_response(path, scope)
        except HTTPException as error:
            first = path.replace("\\", "/").partition("/")[0]
            if error.status_code != 404 or first in _NOT_OURS:
                raise
            return await super().get_response("index.html", scope)


_log = logging.getLogger("quadriga.web")


def create_app(
    service: SchedulerService,
    views: Views,
    *,
    access: Access | None = None,
    ui: Path | None = None,
    require_token_for_reads: bool = False,
    health_delay: float = 5.0,
    extra_routes: Sequence[BaseRoute] = (),
    extra_metrics: Sequence[ExtraMetrics] = (),
) -> Starlette:
    """Create the ASGI application for one scheduler. Its parts share ``app.state.site``.

    ``access`` says which callers may change what; the default allows everything to everybody and is
    meant for loopback only. ``health_delay`` is the time (s) that a request may wait, and that the loop may
    spend on one thing, before the service is not ready. ``ui`` is the ``dist`` folder of YuniKorn's web UI,
    served at ``/``.
    During the application's lifespan, health is checked and history is sampled periodically (2.10,
    2.12).
    """
    site = Site(
        service=service,
        views=views,
        reader=Reader(service),
        access=access if access is not None else Access.open(),
        ui=ui,
        require_token_for_reads=require_token_for_reads,
        health_delay=health_delay,
        extra_metrics=extra_metrics,
    )
    routes: list[BaseRoute] = [
        *extra_routes,
        *rest.routes(site),
        *metrics.routes(site),
        *pages.routes(site),
    ]
    routes += openapi.routes(routes)
    if ui is not None:
        routes.append(Mount("/", app=WebUI(ui), name="web UI"))

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with periodic_tasks(site):
            yield

    app = Starlette(
        routes=routes,
        middleware=[Middleware(Headers), Middleware(Compression), Middleware(Guard, site=site)],
        exception_handlers={HTTPException: _refused, Exception: _failed},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    app.state.site = site
    return app


def _refused(request: Request, error: Exception) -> Response:
    """Answer a request that no route handles: an unknown path or a method that is not allowed. A
    browser gets an HTML page."""
    assert isinstance(error, HTTPException)
    if error.status_code == 404 and _wants_html(request):
        return pages.missing(request)
    return error_response(error.status_code, error.detail, error.headers)


def _wants_html(request: Request) -> bool:
    """Whether a browser requests a path outside the API."""
    asks = request.method in ("GET", "HEAD") and not request.url.path.startswith((*API, "/metrics"))
    return asks and "text/html" in request.headers.get("accept", "")


def _failed(request: Request, error: Exception) -> Response:
    _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return error_response(500, "Internal server error")


# -- periodic tasks: health checks and samples of the history (2.10, 2.12) -------------------------


#: ns; the shortest interval of checks, whatever extraConfig asks for
_LEAST: Final = SECOND


async def check(site: Site) -> int:
    """Run a health check, unless every resource manager disables it (``health.checkInterval`` 0).
    Return the time to the next one in ns: the shortest configured interval."""

    def look(scheduler: Scheduler) -> Steps[int]:
        wanted = [check_interval(rm.extra) for rm in scheduler.resource_managers()]
        if any(wanted) or not wanted:
            yield from site.views.health_in_steps(site.service.failure_log, site.service.now())
        return min(filter(None, wanted), default=CHECK_EVERY)

    return max(_LEAST, int(await site.reader.once("health check", look)))


async def sample(site: Site) -> int:
    """Sample the number of running applications and containers. Return the time to the next sample
    in ns."""
    await site.reader.once("sample", lambda scheduler: site.views.sample_in_steps())
    return INTERVAL


@asynccontextmanager
async def periodic_tasks(site: Site) -> AsyncIterator[None]:
    """Run both tasks at once, and then periodically until the end of the block."""
    tasks = [asyncio.create_task(_repeat(site, each)) for each in (check, sample)]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _repeat(site: Site, what: Callable[[Site], Awaitable[int]]) -> None:
    while True:
        try:
            pause = await what(site)
        except Refusal as refusal:  # the scheduler is busy or has been stopped
            _log.warning("%s: %s", what.__name__, refusal)
            pause = CHECK_EVERY
        except Exception:
            _log.exception("%s failed", what.__name__)
            pause = CHECK_EVERY
        await asyncio.sleep(pause / SECOND)
