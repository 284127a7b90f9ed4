"""Filters: the users and groups to which a placement rule applies (2.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from quadriga.core.config import PlacementFilter
from quadriga.core.config.expression import Expression
from quadriga.core.config.names import is_group_name, is_user_name
from quadriga.core.config.placement import as_pattern


class Filter:
    """Users and groups that a rule allows or denies, each by names or by one regular expression.

    A filter without names includes all users, so an empty filter that denies excludes all of them.
    Names are case-sensitive; an expression matches anywhere in a name.
    """

    __slots__ = ("allow", "groups", "users")

    def __init__(self, config: PlacementFilter) -> None:
        self.allow = config.allow
        self.users = _names(config.users, is_user_name)
        self.groups = _names(config.groups, is_group_name)

    def passes(self, user: str, groups: Iterable[str]) -> bool:
        """Return True if the rule applies to this user, a member of these groups."""
        if self.users is None and self.groups is None:
            return self.allow
        if _matches(self.users, user) or any(_matches(self.groups, group) for group in groups):
            return self.allow
        return not self.allow


_Names = frozenset[str] | Expression | None


def _names(names: tuple[str, ...], valid: Callable[[str], bool]) -> _Names:
    """Return the names, or the expression if there is only one entry and it is one. Invalid names are
    left out."""
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
