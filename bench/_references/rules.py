"""The rules (a), (b), (d) and (e); (c) is in `bench._references.easy`.

With ``fair`` the queues' order decides who is next (the queue with the least share, then first come);
without it all jobs are in one line. Only (c) reads runtimes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

import numpy as np

from bench._references.cluster import Groups, Piece
from bench._references.loop import Held, Schedule, Task
from bench._references.waiting import Kind, Waiting, Walk


class Strict:
    """(a) First come, first served: while the first of a line does not fit, nobody behind it starts."""

    def __init__(self, schedule: Schedule, fair: bool) -> None:
        self._schedule = schedule
        self._cluster = schedule.cluster
        self._fair = fair
        self._lines: dict[int, deque[Task]] = {}

    def submitted(self, task: Task) -> None:
        self._lines.setdefault(task.queue if self._fair else 0, deque()).append(task)

    def ended(self, task: Task, pieces: Sequence[Piece]) -> None:
        pass

    def decide(self) -> None:
        cluster = self._cluster
        lines = {number for number, line in self._lines.items() if line}
        while lines:
            number = min(lines, key=lambda line: (cluster.share(line), line))
            line = self._lines[number]
            task, pieces = line[0], None
            if cluster.allows(task.queue, task.groups):
                pieces = cluster.fit(task.groups, cluster.free)
            if pieces is None:
                lines.discard(number)
                continue
            line.popleft()
            if not line:
                lines.discard(number)
            cluster.take(task.queue, task.groups, pieces)
            self._schedule.start(task, [Held(piece, self._schedule.now) for piece in pieces])


class FirstFit:
    """(b) In their order, whoever fits starts. A gang starts as a whole or not at all."""

    by_estimate = False

    def __init__(self, schedule: Schedule, fair: bool) -> None:
        self.schedule = schedule
        self.cluster = schedule.cluster
        self.waiting = Waiting(schedule.cluster, fair=fair, by_estimate=self.by_estimate)

    def submitted(self, task: Task) -> None:
        self.waiting.add(task)

    def ended(self, task: Task, pieces: Sequence[Piece]) -> None:
        self.waiting.freed({piece.node for piece in pieces}, task.queue)

    def decide(self) -> None:
        self.walk()

    def walk(self, also: Iterable[Kind] = ()) -> None:
        """Try everything that may fit, once."""
        waiting = self.waiting
        walk = Walk(self.cluster, [waiting.kinds[number] for number in waiting.ready])
        for kind in also:
            walk.push(kind)
        for kind in walk:
            if self.attempt(kind) and kind.tasks:
                walk.push(kind)

    def attempt(self, kind: Kind) -> bool:
        """Start the first task of the kind if it fits."""
        pieces = None
        if self.cluster.allows(kind.queue, kind.groups):
            pieces = self.cluster.fit(kind.groups, self.cluster.free)
        if pieces is None:
            self.waiting.failed(kind)
            return False
        self.begin(kind, pieces)
        return True

    def begin(self, kind: Kind, pieces: Sequence[Piece]) -> Task:
        """Start the first task of the kind in these places."""
        task = self.waiting.remove_first(kind)
        self.cluster.take(task.queue, task.groups, pieces)
        self.schedule.start(task, [Held(piece, self.schedule.now) for piece in pieces])
        return task


class Gathering(FirstFit):
    """(d) Like (b), but one gang at a time holds whatever part of it fits, until it is complete.

    If nobody gathers, the first gang that still waits at the end of an instant does. In its turn it
    takes what fits. Its whole size counts towards its queue's limit.
    """

    def __init__(self, schedule: Schedule, fair: bool) -> None:
        super().__init__(schedule, fair)
        self._gang: Kind | None = None
        self._missing = Groups((), ())
        self._held: list[Held] = []

    def decide(self) -> None:
        self.walk([self._gang] if self._gang else [])
        while self._gang is None and self._choose():
            pass

    def attempt(self, kind: Kind) -> bool:
        if kind is self._gang:
            self._gather(kind.first)
            return False
        return super().attempt(kind)

    def _choose(self) -> bool:
        """Let the first waiting gang gather; whether it is complete at once."""
        allows = self.cluster.allows
        gangs = (kind for kind in self.waiting.kinds.values() if kind.first.pods > 1)
        for kind in Walk(self.cluster, gangs):
            if allows(kind.queue, kind.groups):
                task = self.waiting.remove_first(kind)
                self._gang = Kind(None, -1, kind.line, task)
                self._missing = task.groups
                self.cluster.promise(task.queue, task.groups)
                self._gather(task)
                return self._gang is None
        return False

    def _gather(self, task: Task) -> None:
        cluster, needs = self.cluster, task.groups.needs
        pieces, missing = cluster.fit_some(self._missing, cluster.free)
        cluster.withdraw(task.queue)
        cluster.take(task.queue, task.groups, pieces)
        self._held += [Held(piece, self.schedule.now) for piece in pieces]
        if not missing:
            self.schedule.start(task, self._held)
            self._gang, self._held = None, []
            return
        counts = list(self._missing.counts)
        for piece in pieces:
            counts[piece.group] -= piece.pods
        self._missing = Groups(needs, tuple(counts))
        cluster.promise(task.queue, self._missing)


class Reserving(FirstFit):
    """(e) Like (b), but the oldest job that does not fit reserves nodes, at most one for each of its
    pods; on these nobody else starts.

    A reserved node could hold one of its pods if it were empty. Those with the most room are reserved.
    """

    def __init__(self, schedule: Schedule, fair: bool) -> None:
        super().__init__(schedule, fair)
        self._oldest: Task | None = None
        self._nodes: list[int] = []

    def decide(self) -> None:
        while True:
            self.walk()
            oldest = self._find_oldest()
            if oldest is self._oldest:
                break
            if not self._nodes:
                self._reserve(oldest)
                break
            # what was reserved is open again, and who failed because of it is tried again
            nodes, self._nodes, self._oldest = self._nodes, [], None
            self.cluster.open[nodes] = True
            self.waiting.freed(nodes)

    def attempt(self, kind: Kind) -> bool:
        cluster, pieces = self.cluster, None
        if cluster.allows(kind.queue, kind.groups):
            room = cluster.free
            if self._nodes and kind.first is not self._oldest:
                room = np.where(cluster.open, room, -1)
            pieces = cluster.fit(kind.groups, room)
        if pieces is None:
            self.waiting.failed(kind)
            return False
        self.begin(kind, pieces)
        return True

    def _find_oldest(self) -> Task | None:
        """The oldest job that waits for nodes, not for its queue's limit."""
        allows = self.cluster.allows
        tasks = (k.first for k in self.waiting.kinds.values() if allows(k.queue, k.groups))
        return min(tasks, key=lambda task: task.number, default=None)

    def _reserve(self, task: Task | None) -> None:
        self._oldest = task
        if task is None:
            return
        cluster = self.cluster
        most_room_first = np.argsort(-cluster.free[0], kind="stable")
        for need, count in zip(*task.groups, strict=True):
            could = (need <= cluster.capacity.T).all(axis=1) & cluster.open
            nodes = most_room_first[could[most_room_first]][:count].tolist()
            cluster.open[nodes] = False
            self._nodes += nodes
