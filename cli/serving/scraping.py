"""The text for Prometheus, of a process that has its core inside: with and without the extra ``web``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from quadriga.core.driver.service import SchedulerService
from quadriga.core.driver.slices import Slices, read_in_slices

if TYPE_CHECKING:
    from quadriga.web.metrics import Metrics
    from quadriga.web.site import Measured


class Scraping:
    """``measured`` are metrics besides the core's."""

    def __init__(
        self, service: SchedulerService, measured: Callable[[], Iterable[Measured]]
    ) -> None:
        self._service = service
        self._measured = measured
        self._metrics: Metrics | None = None
        try:
            from quadriga.web.metrics import Metrics
        except ImportError:
            return
        self._metrics = Metrics(service, extra=[measured])

    async def text(self) -> bytes:
        """All metrics in the Prometheus text format."""
        metrics = self._metrics
        if metrics is None:
            return plain(self._measured())
        slices = Slices[Any](metrics.look)
        seen = await asyncio.wrap_future(read_in_slices(self._service, slices))
        return metrics.plain(seen)


def plain(measured: Iterable[Measured]) -> bytes:
    """Metrics in the Prometheus text format."""
    lines = []
    for name, kind, about, samples in measured:
        lines += [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
        for labels, value in samples:
            pairs = ",".join(f'{key}="{_quoted(text)}"' for key, text in labels.items())
            lines.append(f"{name}{{{pairs}}} {value}" if pairs else f"{name} {value}")
    return ("\n".join(lines) + "\n").encode()


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
