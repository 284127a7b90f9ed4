"""Which asks the resource manager has been told of that they cannot be served (5.11, X43)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask

__all__ = ["Hints"]


class Hints:
    """Progress of the two inspections of one partition: which asks lack nodes (FAILED, the scale-up
    hint), and which are skipped for other reasons (SKIPPED)."""

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
        #: asks for which no hint has been sent
        self.asks: dict[Ask, None] = {}
        self.timer: object | None = None
        #: the inspection that is under way
        self.inspection: Iterator[None] | None = None
        #: the demand epoch at the last inspection
        self.inspected_epoch = -1
        self.skip_timer: object | None = None
        #: the applications that the present inspection has not come to
        self.skip_walk: Iterator[Application] | None = None
        #: the epoch when it began
        self.skip_epoch = -1
