"""The numbers in the UUIDs of applications that have ended (X46).

A UUID is ``<allocationKey>-<n>``. The id of an application that has ended is free, and may come again
with the same keys. If n then began at 0 again, a late confirmation of a release would name an
allocation of the new application. So an application that comes again begins after the highest n that
any of its keys had before.

What is remembered is bounded. An application is forgotten when it ended an hour ago, or up to two, and
every release that the scheduler asked of it has been answered. Where more would have to be remembered
than ``most``, the oldest are put together in one number, after which every application of the partition
that is not remembered begins: so their numbers do not come again either.
"""

from __future__ import annotations

from typing import Final

from quadriga.fsm.table import HOUR

__all__ = ["KEPT_FOR", "Serials"]

#: ns for which an ended application is remembered at least
KEPT_FOR: Final = HOUR


class Serials:
    """Of one partition, while its resource manager is registered.

    Ended applications are kept in two generations, each begun an hour after the one before; the older
    one is dropped as a whole, so nothing keeps the time of each.
    """

    __slots__ = (
        "_began",
        "_floor",
        "_held",
        "_most",
        "_old",
        "_unanswered",
        "_unanswered_number",
        "_young",
    )

    def __init__(self, most: int = 200_000) -> None:
        self._most = most
        #: where the numbers of the next application of this id begin, and when this generation began
        self._young: dict[str, int] = {}
        self._old: dict[str, int] = {}
        self._began = 0
        #: those that ended long ago, and of which releases are not answered
        self._held: dict[str, int] = {}
        #: UUIDs of releases that are not answered though the allocations are over, by application
        self._unanswered: dict[str, set[str]] = {}
        self._unanswered_number = 0
        #: where the numbers of all other applications begin
        self._floor = 0

    def __len__(self) -> int:
        """How many ended applications and unanswered releases are remembered."""
        return len(self._young) + len(self._old) + len(self._held) + self._unanswered_number

    def is_empty(self, now: int) -> bool:
        """Whether a partition that begins with nothing would give the same numbers."""
        self._turn(now)
        return not len(self) and not self._floor

    def first(self, app_id: str, now: int) -> int:
        """Where the numbers of a new application of this id begin."""
        self._turn(now)
        for known in (self._young, self._old, self._held):
            if app_id in known:
                return max(known[app_id], self._floor)
        return self._floor

    def ended(self, app_id: str, number: int, now: int) -> None:
        """An application has ended, all of whose numbers were below this one."""
        self._turn(now)
        if len(self._young) >= self._most // 2:
            self._raise_floor(max(self._old.values(), default=0))
            self._next_generation(now)
        self._old.pop(app_id, None)
        self._held.pop(app_id, None)
        self._young[app_id] = number

    def unanswered(self, app_id: str, uuid: str) -> None:
        """The allocation is over, and the release that the scheduler asked for is not answered."""
        uuids = self._unanswered.setdefault(app_id, set())
        if uuid in uuids:
            return
        uuids.add(uuid)
        self._unanswered_number += 1
        while self._unanswered_number > self._most // 2:
            oldest = next(iter(self._unanswered))
            for each in self._unanswered[oldest]:
                self._raise_floor(_after(each))
            self._raise_floor(self._held.get(oldest, 0))
            self._settle(oldest, set(self._unanswered[oldest]))

    def answered(self, app_id: str, uuid: str, key: str) -> int:
        """A release was answered: the one of this UUID; without it all of this key, or all. The least
        number of these; -1 where there is none."""
        open_releases = self._unanswered.get(app_id)
        if open_releases is None:
            return -1
        if uuid:
            found = {uuid} & open_releases
        else:
            found = {each for each in open_releases if not key or each.rpartition("-")[0] == key}
        self._settle(app_id, found)
        return min(map(_after, found), default=0) - 1

    def _settle(self, app_id: str, uuids: set[str]) -> None:
        """Nothing more is to come of these releases."""
        left = self._unanswered[app_id]
        left -= uuids
        self._unanswered_number -= len(uuids)
        if not left:
            del self._unanswered[app_id]
            self._held.pop(app_id, None)

    def _turn(self, now: int) -> None:
        """Forget what may be forgotten."""
        age = now - self._began
        if age < KEPT_FOR:
            return
        self._next_generation(now)
        if age >= 2 * KEPT_FOR:  # what was young ended an hour ago too
            self._next_generation(now)

    def _next_generation(self, now: int) -> None:
        old = self._old
        if old:
            self._held.update((app_id, old[app_id]) for app_id in self._unanswered if app_id in old)
        self._old, self._young, self._began = self._young, {}, now

    def _raise_floor(self, number: int) -> None:
        self._floor = max(self._floor, number)


def _after(uuid: str) -> int:
    """The number after that of a UUID; 0 for one that the scheduler did not make."""
    number = uuid.rpartition("-")[2]
    return int(number) + 1 if number.isdecimal() and len(number) < 19 else 0
