"""What every part of the web application works with."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quadriga.core.driver.service import SchedulerService
    from quadriga.core.views import Views
    from quadriga.si.access import Access
    from quadriga.web.extra_metrics import ExtraMetrics
    from quadriga.web.reading import Reader

__all__ = ["Site"]


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """One scheduler on the web; ``app.state.site``.

    Look at the scheduler through ``reader``. What needs a token asks ``quadriga.web.guard``; routes
    below /ws/ and /debug/ are guarded as reads anyway, so data must not be served anywhere else.
    """

    service: SchedulerService
    views: Views
    reader: Reader
    access: Access
    #: a folder with a built web UI to be served at /
    ui: Path | None = None
    require_token_for_reads: bool = False
    #: what others measure, for the metrics (``quadriga.web.extra_metrics``)
    extra_metrics: Sequence[ExtraMetrics] = ()
    #: names this run of the scheduler (2.16)
    instance: str = field(default_factory=lambda: str(uuid.uuid4()))
    #: set when the server is about to stop: what would go on for ever ends then
    leaving: asyncio.Event = field(default_factory=asyncio.Event)
