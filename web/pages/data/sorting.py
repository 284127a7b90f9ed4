"""Lists in the order of a column.

``name`` puts the smallest first, ``-name`` the largest. Equal rows stay in the order that the list
has without a column. That order is total, so pages never overlap and rows do not jump.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import Any, TypeVar

from quadriga.core.runtime.stepwise import Steps, chunks

T = TypeVar("T")


def both_ways(names: Iterable[str]) -> tuple[str, ...]:
    """Every name, and every name with ``-``."""
    return tuple(each for name in names for each in (name, f"-{name}"))


def in_order(rows: Iterable[T], sort: str, key: Callable[[str, T], Any]) -> list[T]:
    """The rows, ordered by the ``key`` of the name in ``sort``."""
    name = sort.removeprefix("-")
    return sorted(rows, key=lambda row: key(name, row), reverse=sort.startswith("-"))


def page_in_order(
    rows: Iterable[T], sort: str, key: Callable[[str, T], Any], page: slice
) -> Steps[list[T]]:
    """A page of the same, in steps."""
    name, first = sort.removeprefix("-"), itemgetter(0)
    best: list[tuple[Any, T]] = []
    for some in chunks(rows):
        best += [(key(name, row), row) for row in some]
        best = sorted(best, key=first, reverse=sort.startswith("-"))[: page.stop]
        yield
    return [row for _, row in best[page]]


def share(used: Iterable[int], whole: Mapping[int, int]) -> float:
    """The largest share of the whole, over all types."""
    shares = [value / whole[at] for at, value in enumerate(used) if at in whole]
    return max(shares, default=0.0)
