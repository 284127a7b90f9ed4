"""Access control lists (BEHAVIOUR 2.17)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

__all__ = ["ACL", "DENY", "WILDCARD", "AclError", "is_group_name", "is_user_name", "parse_acl"]

WILDCARD: Final = "*"
_USER: Final = re.compile(r"[_a-zA-Z][a-zA-Z0-9:#/_.@-]*\$?")
_GROUP: Final = re.compile(r"[_a-zA-Z][a-zA-Z0-9:#/_.@-]*")


def is_user_name(name: str) -> bool:
    """Whether `name` can name a user in an ACL or a limit (the rule of YuniKorn 1.6)."""
    return _USER.fullmatch(name) is not None


def is_group_name(name: str) -> bool:
    """Whether `name` can name a group in an ACL or a limit (the rule of YuniKorn 1.6)."""
    return _GROUP.fullmatch(name) is not None


class AclError(ValueError):
    """A text that is not an access control list."""


@dataclass(frozen=True, slots=True)
class ACL:
    """Who may do something: everyone, or the named users and the members of the groups.

    One list knows only itself. That submit access is also given by the admin
    list and by any ancestor's lists is for the queue to ask (BEHAVIOUR 2.17).
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
    denies. Raises `AclError` for more than two halves (BEHAVIOUR 2.2, 2.17).
    """
    if not text.strip():
        return DENY
    halves = text.split(" ")
    if len(halves) > 2:
        raise AclError(
            f"multiple spaces found in ACL: {text!r}; write 'user,user group,group', "
            "with one space at most"
        )
    lists = [half.split(",") for half in halves]
    if any(WILDCARD in names for names in lists):
        return ACL(everyone=True)
    users = frozenset(filter(is_user_name, lists[0]))
    groups = frozenset(filter(is_group_name, lists[1])) if len(lists) == 2 else frozenset()
    return ACL(users, groups)
