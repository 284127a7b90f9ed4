"""Valid names of users and groups in limits and placement filters, as in YuniKorn."""

from __future__ import annotations

import re
from typing import Final

_USER: Final = re.compile(r"[_a-zA-Z][a-zA-Z0-9:#/_.@-]*\$?")
_GROUP: Final = re.compile(r"[_a-zA-Z][a-zA-Z0-9:_.-]*")

USER_RULE: Final = (
    "a letter or _ first, then letters, digits and characters of : # / _ . @ -, "
    "and $ at the end only"
)
GROUP_RULE: Final = "a letter or _ first, then letters, digits and characters of : _ . -"


def is_user_name(name: str) -> bool:
    """Return True for a valid user name in a limit or a filter; ``host$`` is a machine account."""
    return _USER.fullmatch(name) is not None


def is_group_name(name: str) -> bool:
    """Return True for a valid group name in a limit or a filter."""
    return _GROUP.fullmatch(name) is not None
