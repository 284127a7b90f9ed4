"""A timer as data: what is due, when, and for which entity. ``runtime.timers`` keeps them in order."""

from __future__ import annotations

from typing import Any

__all__ = ["Timer"]


class Timer:
    """Something due at ``when`` (ns). ``entries`` is -1 unless it belongs to a state."""

    __slots__ = ("delay", "entity", "entries", "name", "when")

    def __init__(self, when: int, name: str, entity: Any, delay: int, entries: int) -> None:
        self.when = when
        self.name = name
        self.entity: Any = entity
        self.delay = delay
        self.entries = entries

    def cancel(self) -> None:
        """Make sure it never fires."""
        self.entity = None

    @property
    def dead(self) -> bool:
        """Whether it was cancelled or its state was left."""
        entity = self.entity
        return entity is None or (self.entries >= 0 and entity.entries != self.entries)
