"""Access control lists (2.17)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

WILDCARD: Final = "*"
# As in YuniKorn, both patterns allow fewer characters than those of limits and filters.
_USER: Final = re.compile(r"[_a-zA-Z][a-zA-Z0-9_.@-]*\$?")
_GROUP: Final = re.compile(r"[_a-zA-Z][a-zA-Z0-9_-]*")
_USER_RULE: Final = (
    "a letter or _ first, then letters, digits and characters of _ . @ -, and $ at the end only"
)
_GROUP_RULE: Final = "a letter or _ first, then letters, digits, _ and -"


class AclError(ValueError):
    """The text is not an access control list."""


@dataclass(frozen=True, slots=True)
class ACL:
    """An access control list: everyone, or the listed users and the members of the listed groups.

    The queue checks its other list, and the lists of its ancestors, which also grant
    access (2.17).
    """

    users: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    everyone: bool = False

    def allows(self, user: str, groups: Iterable[str] = ()) -> bool:
        """Return True if this list grants access to `user`, a member of `groups`."""
        return self.everyone or user in self.users or not self.groups.isdisjoint(groups)


DENY: Final = ACL()


def read_acl(text: str) -> tuple[ACL, tuple[str, ...]]:
    """Return the list that a text such as ``"user1,user2 group1"`` stands for, and a warning for each invalid
    name, which is ignored.

    A text with a leading space lists groups only. ``*`` in either half grants access
    to everyone, an empty text to no one. Raises `AclError` if the text has more than
    two halves (2.2, 2.17).
    """
    if not text.strip():
        return DENY, ()
    halves = text.split(" ")
    if len(halves) > 2:
        raise AclError(
            f"multiple spaces found in ACL: {text!r}; write 'user,user group,group', "
            "with one space at most"
        )
    lists = [half.split(",") for half in halves]
    if any(WILDCARD in names for names in lists):
        return ACL(everyone=True), ()
    ignored: list[str] = []
    users = _names(lists[0], "user", _USER, _USER_RULE, ignored)
    groups = _names(lists[1] if len(lists) == 2 else [], "group", _GROUP, _GROUP_RULE, ignored)
    return ACL(users, groups), tuple(ignored)


def _names(
    written: list[str], kind: str, pattern: re.Pattern[str], rule: str, ignored: list[str]
) -> frozenset[str]:
    """Return the valid names. An empty name between two commas is invalid."""
    if written == [""]:
        return frozenset()
    valid = [name for name in written if pattern.fullmatch(name)]
    ignored.extend(
        f"{name!r} is not a valid {kind} name and grants no access: {rule}"
        for name in written
        if name not in valid
    )
    return frozenset(valid)
