"""Progress of the inspections for hints to the resource manager (5.11, X43)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask

__all__ = ["Hints"]


class Hints:
    """The two inspections of one partition: one finds asks that lack nodes (FAILED, the scale-up hint),
    the other asks that are skipped for other reasons (SKIPPED)."""

    __slots__ = (
        "asks",
        "inspected_epoch",
        "inspection",
        "skip_epoch",
        "skip_timer",
        "skip_walk",
        "timer",
    )

    def __init__(self) -> None:
        #: asks without a hint so far
        self.asks: dict[Ask, None] = {}
        self.timer: object | None = None
        #: the running inspection for FAILED
        self.inspection: Iterator[None] | None = None
        #: demand epoch of the last inspection
        self.inspected_epoch = -1
        self.skip_timer: object | None = None
        #: the applications that the running inspection for SKIPPED has not reached
        self.skip_walk: Iterator[Application] | None = None
        #: epoch at which that inspection began
        self.skip_epoch = -1
