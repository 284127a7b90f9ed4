"""Whom a placement rule is for (2.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from quadriga.core.config import PlacementFilter
from quadriga.core.config.expression import Expression
from quadriga.core.config.names import is_group_name, is_user_name
from quadriga.core.config.placement import as_pattern

__all__ = ["Filter"]


class Filter:
    """Users and groups, by name or by one regular expression each, which is compiled here once.

    A filter without names is for everybody, or, if it denies, for nobody. Names are compared as
    they are written; an expression matches anywhere in a name.
    """

    __slots__ = ("allow", "groups", "users")

    def __init__(self, config: PlacementFilter) -> None:
        self.allow = config.allow
        self.users = _names(config.users, is_user_name)
        self.groups = _names(config.groups, is_group_name)

    def passes(self, user: str, groups: Iterable[str]) -> bool:
        """Whether the rule is for this user, a member of these groups."""
        if self.users is None and self.groups is None:
            return self.allow
        if _matches(self.users, user) or any(_matches(self.groups, group) for group in groups):
            return self.allow
        return not self.allow


_Names = frozenset[str] | Expression | None


def _names(names: tuple[str, ...], valid: Callable[[str], bool]) -> _Names:
    """A single entry may be an expression; of several names those that are none are left out."""
    if not names:
        return None
    if len(names) == 1:
        pattern = as_pattern(names[0])
        if pattern is not None:
            return pattern
    return frozenset(filter(valid, names))


def _matches(names: _Names, name: str) -> bool:
    if names is None:
        return False
    if isinstance(names, Expression):
        return names.search(name)
    return name in names
