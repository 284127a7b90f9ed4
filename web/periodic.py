"""Periodic tasks of the running application: health checks and samples of the history (2.10,
2.12)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from quadriga.base.times import SECOND
from quadriga.core.checks.health import CHECK_EVERY, check_interval
from quadriga.core.views.history import INTERVAL
from quadriga.web.responses import Refusal

if TYPE_CHECKING:
    from quadriga.core.runtime.stepwise import Steps
    from quadriga.core.scheduler import Scheduler
    from quadriga.web.site import Site

_log = logging.getLogger("quadriga.web")

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
