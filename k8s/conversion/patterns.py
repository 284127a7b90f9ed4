"""Lists of regular expressions in settings: which namespaces, which users (K50, K160, K162)."""

from __future__ import annotations

from functools import lru_cache

from quadriga.core.config.expression import Expression


def split(text: str) -> tuple[str, ...]:
    """Return the expressions of a comma-separated list. Raises ValueError for an invalid one."""
    patterns = tuple(part for each in text.split(",") if (part := each.strip()))
    for pattern in patterns:
        _compiled(pattern)
    return patterns


def any_matches(patterns: tuple[str, ...], text: str) -> bool:
    """Return whether one of the expressions matches anywhere in the text."""
    return any(_compiled(pattern).search(text) for pattern in patterns)


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Expression:
    try:
        return Expression(pattern)
    except ValueError as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from None
