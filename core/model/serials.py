"""The numbers in the UUIDs of applications that have ended (X46).

A UUID is ``<allocationKey>-<n>``. A new application may reuse the id and the keys of an ended one. If
its n began at 0, a late confirmation of a release would name an allocation of the new application. So a
reused id begins after the highest n that any of its keys had.

The memory is bounded. An application is forgotten one to two hours after its end, once all its releases
are answered. If more than ``most`` entries would be remembered, the oldest are merged into one number,
the floor. Applications that are not remembered begin at the floor, so the merged numbers are not reused
either. See D13.
"""

from __future__ import annotations

from typing import Final

from quadriga.base.times import HOUR

#: shortest time for which an ended application is remembered (ns)
KEPT_FOR: Final = HOUR


class Serials:
    """The numbers of one partition, while its resource manager is registered.

    Ended applications are kept in two generations, the second begun an hour after the first. The older
    generation is dropped as a whole, so no application needs a time of its own.
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
        #: first number for the next application of each id, in the younger and the older generation
        self._young: dict[str, int] = {}
        self._old: dict[str, int] = {}
        #: instant at which the younger generation began (ns)
        self._began = 0
        #: first numbers of applications of dropped generations with unanswered releases
        self._held: dict[str, int] = {}
        #: UUIDs of ended allocations with an unanswered release, by application
        self._unanswered: dict[str, set[str]] = {}
        self._unanswered_number = 0
        #: first number of all other applications
        self._floor = 0

    def __len__(self) -> int:
        """Number of remembered applications and unanswered releases."""
        return len(self._young) + len(self._old) + len(self._held) + self._unanswered_number

    def is_empty(self, now: int) -> bool:
        """Whether an empty memory would give the same numbers."""
        self._age(now)
        return not len(self) and not self._floor

    def first(self, app_id: str, now: int) -> int:
        """The first number for a new application of this id."""
        self._age(now)
        for known in (self._young, self._old, self._held):
            if app_id in known:
                return max(known[app_id], self._floor)
        return self._floor

    def ended(self, app_id: str, number: int, now: int) -> None:
        """Remember an ended application; all its numbers were below ``number``."""
        self._age(now)
        if len(self._young) >= self._most // 2:
            self._raise_floor(max(self._old.values(), default=0))
            self._next_generation(now)
        self._old.pop(app_id, None)
        self._held.pop(app_id, None)
        self._young[app_id] = number

    def unanswered(self, app_id: str, uuid: str) -> None:
        """Remember that the release of an ended allocation is unanswered."""
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
        """Settle the answered release of this UUID; without a UUID all releases of this key; without
        either all of the application. Returns the least number of these, or -1 without any."""
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
        """Forget these releases."""
        left = self._unanswered[app_id]
        left -= uuids
        self._unanswered_number -= len(uuids)
        if not left:
            del self._unanswered[app_id]
            self._held.pop(app_id, None)

    def _age(self, now: int) -> None:
        """Begin a new generation if the younger one is an hour old."""
        age = now - self._began
        if age < KEPT_FOR:
            return
        self._next_generation(now)
        if age >= 2 * KEPT_FOR:  # the younger generation is out of date too
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
