"""Retries of writes, and which responses leave a doubt (K72, K79, K107)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from quadriga.base.pacing import pauses
from quadriga.base.times import SECOND

#: 401: credentials may rotate; 408 and 429: the server asks for a retry
_AGAIN: Final = frozenset({401, 408, 429})


def is_again(status: int) -> bool:
    """Return whether the same request may be answered differently later. Status 0 stands for no response."""
    return status >= 500 or status in _AGAIN or status == 0


def bind_waits(limit: int) -> Iterator[float]:
    """Yield the seconds before each further attempt of a bind, ``limit`` ns in sum: 1, 2, 4, 8, 16, 30, 30, 30
    by default."""
    waited = 0.0
    for wait in pauses(1.0, 30.0):
        waited += wait
        if waited * SECOND > limit:
            return
        yield wait


def create_waits() -> Iterator[float]:
    """Yield the seconds before each further attempt of a create: a minute in sum (K72)."""
    yield from (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)


def delete_waits() -> Iterator[float]:
    """Yield the seconds before each further attempt of a delete, without an end (K79, K112)."""
    yield from pauses(5.0, 30.0)


def patch_waits() -> Iterator[float]:
    """Yield the seconds before each further attempt of a patch: two minutes in sum."""
    yield from (1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 30.0, 30.0)
