"""The groups of a user from the operating system (I24): the group resolver of the service.

It reads the system's user database and a clock, which the sans-IO core below it never does. An answer
is cached for 300 s, an unknown user for 30 s.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from quadriga.base.times import SECOND

try:
    import grp
    import pwd
except ImportError:  # not a POSIX system: every user is unknown
    pwd = grp = None  # type: ignore[assignment]

#: gives the groups of a user, or raises ``LookupError``, ``OSError`` or ``ValueError``
LookUp = Callable[[str], tuple[str, ...]]

#: ns for which an answer, and a failed look-up, is cached (2.10)
KEEP_FOUND, KEEP_FAILED = 300 * SECOND, 30 * SECOND
#: cached answers; of more, the oldest is dropped (Q16)
MANY: Final = 32_768
#: characters; a longer name is no user of a system (Q16)
LONGEST_USER: Final = 256


class Answers:
    """At most ``most`` answers, each until it expires. ``clock`` gives ns and does not go back. The cost
    of an answer does not depend on how many there are."""

    __slots__ = ("_clock", "_most", "known")

    def __init__(self, clock: Callable[[], int], most: int = MANY) -> None:
        self._clock = clock
        self._most = most
        #: by user, the oldest first: the expiry (ns) and the groups
        self.known: OrderedDict[str, tuple[int, tuple[str, ...]]] = OrderedDict()

    def get(self, user: str) -> tuple[str, ...] | None:
        """The groups, or ``None`` if they have to be looked up."""
        if len(user) > LONGEST_USER:
            return ()
        found = self.known.get(user)
        return found[1] if found is not None and self._clock() < found[0] else None

    def put(self, user: str, groups: tuple[str, ...], keep: int) -> None:
        """Keep an answer for ``keep`` ns."""
        now, known = self._clock(), self.known
        known.pop(user, None)
        known[user] = (now + keep, groups)
        while len(known) > self._most:
            known.popitem(last=False)
        while known[oldest := next(iter(known))][0] <= now:
            del known[oldest]


def looked_up(look_up: LookUp, user: str) -> tuple[tuple[str, ...], int]:
    """The groups of a user, ``()`` for an unknown one, and how long the answer is kept (ns)."""
    try:
        return look_up(user), KEEP_FOUND
    except (LookupError, OSError, ValueError):
        return (), KEEP_FAILED


class OsGroups:
    """Callable: the groups of a user, the primary one first; ``()`` for an unknown user.

    It looks them up in the caller's thread, for a scheduler that has no thread of its own; others use
    ``group_lookups``. It never raises: the scheduler calls it while it applies a message.
    """

    __slots__ = ("_look_up", "answers")

    def __init__(
        self, clock: Callable[[], int], look_up: LookUp | None = None, most: int = MANY
    ) -> None:
        self._look_up = look_up or groups_of_system
        self.answers = Answers(clock, most)

    def __call__(self, user: str) -> tuple[str, ...]:
        known = self.answers.get(user)
        if known is not None:
            return known
        groups, keep = looked_up(self._look_up, user)
        self.answers.put(user, groups, keep)
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
