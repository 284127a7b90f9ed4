"""The waiting tasks, in one line or in a line for each queue.

Tasks of one queue that need the same are of one kind. What does not fit keeps not fitting until room
comes back where one of its pods fits, so a kind that failed is not tried before that. This makes the
references fast; the twins in the tests try every task at every instant.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from bench._references.cluster import Cluster
from bench._references.loop import Task

_NEVER = 1 << 62


class Kind:
    """Tasks of equal needs, first come first. `line` is the number of their line. With several task
    groups every task is a kind of its own: where less is free, greedy packing may find more."""

    __slots__ = ("groups", "key", "line", "number", "queue", "tasks")

    def __init__(self, key: object, number: int, line: int, first: Task) -> None:
        self.key = key
        self.number = number
        self.line = line
        self.queue = first.queue
        self.groups = first.groups
        self.tasks = deque((first,))

    @property
    def first(self) -> Task:
        """The task that came first."""
        return self.tasks[0]

    @property
    def simple(self) -> bool:
        """Whether it has one task group."""
        return len(self.groups.counts) == 1


class Waiting:
    """`fair`: a line for each queue; else one line, in the order of submission. With `by_estimate` the
    tasks of one kind also have the same estimate.

    `kinds` has every kind, `ready` the numbers of those that may fit.
    """

    def __init__(self, cluster: Cluster, *, fair: bool, by_estimate: bool = False) -> None:
        self.kinds: dict[int, Kind] = {}
        self.ready: set[int] = set()
        self.fair = fair
        self._cluster = cluster
        self._by_estimate = by_estimate
        self._limited = any(limits is not None for limits in cluster.limits)
        self._by_key: dict[object, Kind] = {}
        self._unused: list[int] = []
        # what a pod of each kind needs, by number
        self._needs = np.full((64, len(cluster.names)), _NEVER, np.int64)

    def add(self, task: Task) -> None:
        """The task joins its line at the end."""
        groups = task.groups
        key: tuple[Any, ...] = (task.queue, groups, self._by_estimate and task.estimate)
        if len(groups.counts) > 1:
            key = (task.number,)
        if kind := self._by_key.get(key):
            kind.tasks.append(task)
            return
        number = self._unused.pop() if self._unused else len(self.kinds)
        kind = Kind(key, number, task.queue if self.fair else 0, task)
        self.kinds[number] = self._by_key[key] = kind
        self.ready.add(number)
        if number == len(self._needs):
            self._needs = np.concatenate((self._needs, np.full_like(self._needs, _NEVER)))
        if kind.simple:
            self._needs[number] = groups.needs[0]

    def remove_first(self, kind: Kind) -> Task:
        """Take the first task of the kind out of its line."""
        task = kind.tasks.popleft()
        if not kind.tasks:
            del self.kinds[kind.number], self._by_key[kind.key]
            self.ready.discard(kind.number)
            self._needs[kind.number] = _NEVER
            self._unused.append(kind.number)
        return task

    def failed(self, kind: Kind) -> None:
        """Nothing of this kind fits before room comes back."""
        if kind.simple:
            self.ready.discard(kind.number)

    def freed(self, nodes: Iterable[int], queue: int | None = None) -> None:
        """Room came back on these nodes, and in this queue."""
        for node in nodes:
            fits = (self._needs <= self._cluster.free[:, node]).all(axis=1)
            self.ready.update(np.flatnonzero(fits).tolist())
        if self._limited and queue is not None:
            self.ready.update(kind.number for kind in self.kinds.values() if kind.queue == queue)


class Walk:
    """The order in which kinds are tried at one instant: by line, then by the first task.

    With several lines the line of the queue with the least share is next. A kind that was tried and
    did not start is not tried again in this walk.
    """

    def __init__(self, cluster: Cluster, kinds: Iterable[Kind]) -> None:
        self._cluster = cluster
        self._lines: dict[int, list[tuple[int, int, Kind]]] = {}
        for kind in kinds:
            self.push(kind)

    def push(self, kind: Kind) -> None:
        """Let the first task of the kind take its turn."""
        line = self._lines.setdefault(kind.line, [])
        heapq.heappush(line, (kind.first.number, kind.number, kind))

    def __iter__(self) -> Iterator[Kind]:
        lines = self._lines
        while lines:
            if len(lines) == 1:
                (first,) = lines
            else:
                first = min(lines, key=lambda line: (self._cluster.share(line), line))
            _, _, kind = heapq.heappop(lines[first])
            if not lines[first]:
                del lines[first]
            yield kind
