"""Reads in steps: generators that yield after each entity, so that a driver can go on between two steps.

A part that is yielded, such as the snapshot of a node, is of one moment. What a generator returns is put
together from several, unless it runs to its end at once (``finish``).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import wraps
from heapq import merge
from itertools import islice
from typing import Any, Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

#: a generator that returns this; what it yields are parts, or ``None`` after a step without one
Steps = Generator[Any, None, T]

#: at most this many small things are looked at in one step
STEP: Final = 250
#: at most this many names are sorted in one step
_MOST_SORTED: Final = 4_000


def finish(steps: Steps[T]) -> T:
    """Run all steps at once, and return what the last one returns."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            found: T = stop.value
            return found


def at_once(steps: Callable[P, Steps[T]]) -> Callable[P, T]:
    """The function that runs all steps of another at once."""

    @wraps(steps)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        return finish(steps(*args, **kwargs))

    return run


def parts(steps: Iterable[T | None]) -> list[T]:
    """All parts, read at once."""
    return [each for each in steps if each is not None]


def chunks(things: Iterable[T]) -> Iterator[Sequence[T]]:
    """The things as they are now, a few at a time."""
    copy = list(things)
    for at in range(0, len(copy), STEP):
        yield copy[at : at + STEP]


def sorted_in_steps(names: Sequence[str]) -> Steps[list[str]]:
    """The names in order."""
    runs = []
    for at in range(0, len(names), _MOST_SORTED):
        runs.append(sorted(names[at : at + _MOST_SORTED]))
        yield
    if len(runs) < 2:
        return runs[0] if runs else []
    found: list[str] = []
    merged = merge(*runs)
    while len(found) < len(names):
        found += islice(merged, STEP)
        yield
    return found
