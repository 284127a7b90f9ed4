"""Access control lists (2.17)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

__all__ = ["ACL", "DENY", "WILDCARD", "AclError", "parse_acl", "read_acl"]

WILDCARD: Final = "*"
# Both are narrower than in limits and filters, as they are in YuniKorn.
_USER: Final = re.compile(r"[_a-zA-Z][a-zA-Z0-9_.@-]*\$?")
_GROUP: Final = re.compile(r"[_a-zA-Z][a-zA-Z0-9_-]*")
_USER_RULE: Final = (
    "a letter or _ first, then letters, digits and characters of _ . @ -, and $ at the end only"
)
_GROUP_RULE: Final = "a letter or _ first, then letters, digits, _ and -"


class AclError(ValueError):
    """A text that is not an access control list."""


@dataclass(frozen=True, slots=True)
class ACL:
    """Who may do something: everyone, or the named users and the members of the groups.

    One list knows only itself. That submit access is also given by the admin
    list and by any ancestor's lists is for the queue to ask (2.17).
    """

    users: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    everyone: bool = False

    def allows(self, user: str, groups: Iterable[str] = ()) -> bool:
        """Whether this list lets `user`, a member of `groups`, pass."""
        return self.everyone or user in self.users or not self.groups.isdisjoint(groups)


DENY: Final = ACL()


def parse_acl(text: str) -> ACL:
    """The list that ``"users groups"`` means.

    Each half is separated by commas; a leading space leaves the users out; ``*``
    in either half lets everyone pass; invalid names are ignored; an empty text
    denies. Raises `AclError` for more than two halves (2.2, 2.17).
    """
    return read_acl(text)[0]


def read_acl(text: str) -> tuple[ACL, tuple[str, ...]]:
    """The same, and a sentence for each name that is ignored because it is invalid."""
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
    """The valid ones of these names. Nothing between two commas is an invalid name."""
    if written == [""]:
        return frozenset()
    valid = [name for name in written if pattern.fullmatch(name)]
    ignored.extend(
        f"{name!r} is not a valid {kind} name and gives nobody access: {rule}"
        for name in written
        if name not in valid
    )
    return frozenset(valid)
