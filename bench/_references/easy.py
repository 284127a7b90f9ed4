"""(c) EASY backfill: the first job that does not fit gets a start time, and nobody may delay it."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bench._references.cluster import Groups, Piece
from bench._references.loop import Schedule, Task
from bench._references.rules import FirstFit
from bench._references.waiting import Kind


class Easy(FirstFit):
    """Runtimes are as estimated: by the job's requested limit, or exactly without one. A job that
    exceeds its limit is expected to end at any moment.

    At each instant the first job that does not fit (the head) gets the earliest start at which it would
    fit, and its places. A later job starts if it fits now and would end before that start, or if it
    leaves these places free.
    """

    by_estimate = True

    def __init__(self, schedule: Schedule, fair: bool) -> None:
        super().__init__(schedule, fair)
        # by expected end
        self._running: list[tuple[int, int, Task, Sequence[Piece]]] = []
        self._ends: dict[int, int] = {}  # task number -> expected end
        self._start = 0
        #: what is free at the head's start beside the head; None without a head
        self._spare: Any = None

    def ended(self, task: Task, pieces: Sequence[Piece]) -> None:
        at = bisect_left(self._running, (self._ends.pop(task.number), task.number))
        del self._running[at]
        super().ended(task, pieces)

    def decide(self) -> None:
        self._spare = None
        if self.waiting.ready:
            self.walk(self._heads())

    def _heads(self) -> Iterator[Kind]:
        """The first job of each line among those that are known not to fit: one of them may be head."""
        first: dict[int, Kind] = {}
        for number, kind in self.waiting.kinds.items():
            if number not in self.waiting.ready and self.cluster.allows(kind.queue, kind.groups):
                known = first.setdefault(kind.line, kind)
                if kind.first.number < known.first.number:
                    first[kind.line] = kind
        yield from first.values()

    def attempt(self, kind: Kind) -> bool:
        cluster = self.cluster
        if not cluster.allows(kind.queue, kind.groups):
            self.waiting.failed(kind)
            return False
        end = self.schedule.ends_at(kind.first)
        long = self._spare is not None and end > self._start
        room = np.minimum(cluster.free, self._spare) if long else cluster.free
        pieces = cluster.fit(kind.groups, room)
        if pieces is None:
            if not long:
                self.waiting.failed(kind)
            if self._spare is None:
                self._plan(kind.groups)
            return False
        if long:
            for node, group, count in pieces:
                self._spare[:, node] -= np.multiply(kind.groups.needs[group], count)
        task = self.begin(kind, pieces)
        self._ends[task.number] = end
        insort(self._running, (end, task.number, task, pieces))
        return True

    def _plan(self, groups: Groups) -> None:
        """Find the head's start: let what runs end, one after the other, until the head fits."""
        now, running = self.schedule.now, self._running
        counted = _Counted(groups, self.cluster.free)
        for at, (end, _, task, pieces) in enumerate(running):
            for piece in pieces:
                counted.free(piece, task.groups)
            self._start = max(end, now)
            if at + 1 < len(running) and running[at + 1][0] <= self._start:
                continue  # it ends at the same time
            if counted.enough:
                room = counted.room()
                if (places := self.cluster.fit(groups, room)) is not None:
                    break
        else:
            raise AssertionError(
                "a job that fits the empty cluster fits when all others have ended"
            )
        for node, group, count in places:
            room[:, node] -= np.multiply(groups.needs[group], count)
        self._spare = room


class _Counted:
    """Free room that grows, and how many pods of each group of a job fit there. Plain lists: one node
    changes at a time."""

    def __init__(self, groups: Groups, free: Any) -> None:
        self._columns: list[list[int]] = free.T.tolist()
        self._needs = [
            [(row, amount) for row, amount in enumerate(need) if amount] for need in groups.needs
        ]
        self._wanted = groups.counts
        self._fitting = [[_times(need, room) for room in self._columns] for need in self._needs]
        self._total = [sum(fitting) for fitting in self._fitting]

    def free(self, piece: Piece, groups: Groups) -> None:
        """These pods end."""
        node, group, count = piece
        room = self._columns[node]
        for row, amount in enumerate(groups.needs[group]):
            room[row] += count * amount
        for number, need in enumerate(self._needs):
            fitting = _times(need, room)
            self._total[number] += fitting - self._fitting[number][node]
            self._fitting[number][node] = fitting

    @property
    def enough(self) -> bool:
        """Whether each group alone fits. All together may still not fit."""
        return all(t >= w for t, w in zip(self._total, self._wanted, strict=True))

    def room(self) -> Any:
        return np.array(self._columns, np.int64).T.copy()


def _times(need: list[tuple[int, int]], room: list[int]) -> int:
    return min([room[row] // amount for row, amount in need], default=1 << 30)
