"""Lists in the order of a column.

``name`` puts the smallest first, ``-name`` the largest. Equal rows stay in the order that the list
has without a column. That order is total, so pages never overlap and rows do not jump.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from heapq import merge
from itertools import islice
from operator import itemgetter
from typing import Any, TypeVar

from quadriga.core.runtime.stepwise import Steps, chunks, finish

T = TypeVar("T")


def both_ways(names: Iterable[str]) -> tuple[str, ...]:
    """Every name, and every name with ``-``."""
    return tuple(each for name in names for each in (name, f"-{name}"))


def in_order(rows: Iterable[T], sort: str, key: Callable[[str, T], Any]) -> list[T]:
    """The rows, ordered by the ``key`` of the name in ``sort``."""
    return finish(page_in_order(rows, sort, key, slice(None)))


def page_in_order(
    rows: Iterable[T], sort: str, key: Callable[[str, T], Any], page: slice
) -> Steps[list[T]]:
    """A page of the same. The rest of the rows is not put in order."""
    name, backwards, first = sort.removeprefix("-"), sort.startswith("-"), itemgetter(0)
    runs = []
    for some in chunks(rows):
        keyed = [(key(name, row), row) for row in some]
        runs.append(sorted(keyed, key=first, reverse=backwards))
        yield
    found = []
    for _, row in islice(merge(*runs, key=first, reverse=backwards), page.stop):
        found.append(row)
        yield
    return found[page]


def share(used: Iterable[int], whole: Mapping[int, int]) -> float:
    """The largest share of the whole, over all types."""
    shares = [value / whole[at] for at, value in enumerate(used) if at in whole]
    return max(shares, default=0.0)
