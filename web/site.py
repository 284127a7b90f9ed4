"""The objects that all parts of the web application share."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quadriga.core.driver.service import SchedulerService
    from quadriga.core.views import Views
    from quadriga.si.access import Access
    from quadriga.web.reader import Reader


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """One scheduler on the web, available as ``app.state.site``.

    Handlers read the scheduler through ``reader``. Handlers that need a token call
    ``quadriga.web.guard``. Only routes below /ws/, /debug/ and /ui/data/ are protected as reads, so
    data must not be served elsewhere.
    """

    service: SchedulerService
    views: Views
    reader: Reader
    access: Access
    #: folder of a built web UI, served at /
    ui: Path | None = None
    require_token_for_reads: bool = False
    #: s: a loop or a request that takes longer makes the service not ready
    health_delay: float = 5.0
    #: metrics of other parts of the process
    extra_metrics: Sequence[ExtraMetrics] = ()
    #: identifies this run of the scheduler (2.16)
    instance: str = field(default_factory=lambda: str(uuid.uuid4()))
    #: set when the server is about to stop; endless streams end then
    leaving: asyncio.Event = field(default_factory=asyncio.Event)


#: one metric: name, ``counter`` or ``gauge``, help text, and samples with their labels
Measured = tuple[str, str, str, Sequence[tuple[Mapping[str, str], int | float]]]

#: called for every scrape
ExtraMetrics = Callable[[], Iterable[Measured]]
