"""The groups of a user from the operating system (I24): the group resolver of the service.

It reads the system's user database and a clock, which the sans-IO core below it never does. An answer
is cached for 300 s, an unknown user for 30 s.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

try:
    import grp
    import pwd
except ImportError:  # not a POSIX system: every user is unknown
    pwd = grp = None  # type: ignore[assignment]

__all__ = ["OsGroups", "groups_of_system"]

_SECOND: Final = 1_000_000_000
#: ns for which an answer, and a failed look-up, is cached (2.10)
KEEP_FOUND, KEEP_FAILED = 300 * _SECOND, 30 * _SECOND
#: with this number of cached answers, the expired ones are removed
_MANY: Final = 1024


class OsGroups:
    """Callable: the groups of a user, the primary one first; ``()`` for an unknown user.

    ``clock`` gives ns and does not go back; ``look_up`` gives the groups, or raises ``LookupError``
    or ``OSError``. It never raises: the scheduler calls it while it applies a message.
    """

    __slots__ = ("_answers", "_clock", "_look_up")

    def __init__(
        self,
        clock: Callable[[], int],
        look_up: Callable[[str], tuple[str, ...]] | None = None,
    ) -> None:
        self._clock = clock
        self._look_up = look_up or groups_of_system
        #: by user: the expiry (ns) and the groups
        self._answers: dict[str, tuple[int, tuple[str, ...]]] = {}

    def __call__(self, user: str) -> tuple[str, ...]:
        now = self._clock()
        known = self._answers.get(user)
        if known is not None and now < known[0]:
            return known[1]
        try:
            groups, good = self._look_up(user), KEEP_FOUND
        except (LookupError, OSError, ValueError):
            groups, good = (), KEEP_FAILED
        if len(self._answers) >= _MANY:
            self._answers = {name: kept for name, kept in self._answers.items() if now < kept[0]}
        self._answers[user] = (now + good, groups)
        return groups


def groups_of_system(user: str) -> tuple[str, ...]:
    """The user's groups by name, the primary one first, then by name. Raises ``LookupError``.

    The name of a group without one is its number.
    """
    if pwd is None:
        raise LookupError(user)
    primary = pwd.getpwnam(user).pw_gid
    others = {_name(gid) for gid in os.getgrouplist(user, primary) if gid != primary}
    first = _name(primary)
    return (first, *sorted(others - {first}))


def _name(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
