"""A timer as data; ``runtime.timers`` keeps timers in order."""

from __future__ import annotations

from typing import Any


class Timer:
    """Action ``name`` for ``entity``, due at ``when`` (ns).

    ``entries`` is that of the entity for a timer of its state, else -1.
    """

    __slots__ = ("delay", "entity", "entries", "name", "when")

    def __init__(self, when: int, name: str, entity: Any, delay: int, entries: int) -> None:
        self.when = when
        self.name = name
        self.entity: Any = entity
        self.delay = delay
        self.entries = entries

    def cancel(self) -> None:
        """Prevent the timer from firing."""
        self.entity = None

    @property
    def dead(self) -> bool:
        """Whether the timer was cancelled or the entity left the state."""
        entity = self.entity
        return entity is None or (self.entries >= 0 and entity.entries != self.entries)
