"""What is done from time to time while the application runs: health checks, samples (2.10, 2.12)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from quadriga.core.checks.health import CHECK_EVERY, check_interval
from quadriga.core.views.history import INTERVAL
from quadriga.fsm.table import SECOND
from quadriga.web.answers import Refusal

if TYPE_CHECKING:
    from quadriga.core.scheduler import Scheduler
    from quadriga.web.site import Site

__all__ = ["check", "rounds", "sample"]

_log = logging.getLogger("quadriga.web")

#: ns; no extraConfig makes the checks more frequent
_LEAST: Final = SECOND


async def check(site: Site) -> int:
    """Check now, unless no resource manager wants that (``health.checkInterval`` 0). Returns after
    how many ns to check again: the shortest that one of them wants."""

    def look(scheduler: Scheduler) -> int:
        wanted = [check_interval(rm.extra) for rm in scheduler.resource_managers()]
        if any(wanted) or not wanted:
            site.views.check_health(site.service.failure_log, site.service.now())
        return min(filter(None, wanted), default=CHECK_EVERY)

    return max(_LEAST, await site.reader.once("health check", look))


async def sample(site: Site) -> int:
    """Remember how much runs. Returns after how many ns to do so again."""
    await site.reader.once("sample", lambda scheduler: site.views.sample())
    return INTERVAL


@asynccontextmanager
async def rounds(site: Site) -> AsyncIterator[None]:
    """Both, at once and then again and again, until the end of the block."""
    tasks = [asyncio.create_task(_again_and_again(site, each)) for each in (check, sample)]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _again_and_again(site: Site, what: Callable[[Site], Awaitable[int]]) -> None:
    while True:
        try:
            pause = await what(site)
        except Refusal as refusal:  # it has no time, or has been stopped
            _log.warning("%s: %s", what.__name__, refusal)
            pause = CHECK_EVERY
        except Exception:
            _log.exception("%s failed", what.__name__)
            pause = CHECK_EVERY
        await asyncio.sleep(pause / SECOND)
