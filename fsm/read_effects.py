"""Effects that notice whether anything reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, SupportsIndex

from quadriga.fsm.table import Effect

__all__ = ["ReadEffects", "unread"]


class ReadEffects(tuple[Effect, ...]):
    """The effects of a step. ``read`` is called the first time that one of them is taken out of the tuple, or
    that the tuple is compared.

    Its length, its truth and its text do not count: they tell of no effect what it is.
    """

    _reads: tuple[Callable[[], object], ...]

    def __new__(cls, effects: tuple[Effect, ...], read: Callable[[], object]) -> ReadEffects:
        made = super().__new__(cls, unread(effects))
        made._reads = (*getattr(effects, "_reads", ()), read)
        return made

    def _notice(self) -> None:
        reads, self._reads = self._reads, ()
        for read in reads:
            read()

    def __iter__(self) -> Iterator[Effect]:
        self._notice()
        return super().__iter__()

    def __getitem__(self, at: SupportsIndex | slice) -> Any:
        self._notice()
        return super().__getitem__(at)

    def __contains__(self, effect: object) -> bool:
        self._notice()
        return super().__contains__(effect)

    def __eq__(self, other: object) -> bool:
        self._notice()
        return super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        self._notice()
        return super().__ne__(other)

    def __hash__(self) -> int:
        return super().__hash__()

    def __add__(self, other: Any) -> Any:
        self._notice()
        return super().__add__(other)

    def __radd__(self, other: Any) -> Any:
        return other + tuple(self)

    def __mul__(self, times: SupportsIndex) -> Any:
        self._notice()
        return super().__mul__(times)

    def count(self, effect: Any) -> int:
        self._notice()
        return super().count(effect)

    def index(self, *effect: Any) -> int:
        self._notice()
        return super().index(*effect)

    def __reduce__(self) -> Any:
        # A copy is an ordinary tuple.
        return tuple, (list(self),)


def unread(effects: tuple[Effect, ...]) -> Iterator[Effect]:
    """The effects, without that this counts as reading them."""
    return tuple.__iter__(effects)
