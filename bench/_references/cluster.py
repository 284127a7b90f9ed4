"""The nodes and queues of a reference: what is free, and where a job's pods fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from quadriga.sim.usage import resource_of
from quadriga.sim.workload import Job, Workload

#: what one pod asks for, by column of the cluster
Need = tuple[int, ...]


class Piece(NamedTuple):
    """`pods` pods of one task group on one node."""

    node: int
    group: int
    pods: int


class Groups(NamedTuple):
    """The task groups of a job, largest first: what one pod needs, and how many there are."""

    needs: tuple[Need, ...]
    counts: tuple[int, ...]

    @property
    def pods(self) -> int:
        return sum(self.counts)


class Cluster:
    """`free` has a row for each resource and a column for each node; row 0 is the watched resource.

    A pod goes to the node where the least of the watched resource is free (best fit), among equal ones
    to the first. `used` is what each queue has, and `limits` what it may have; None is no limit.
    """

    def __init__(self, workload: Workload) -> None:
        watched = resource_of(workload)
        names = {name for node in workload.nodes for name in node.resources} - {watched}
        self.names = [watched, *sorted(names)]
        self.nodes = [node.name for node in workload.nodes]
        self.capacity = np.array(
            [[node.resources.get(name, 0) for node in workload.nodes] for name in self.names],
            np.int64,
        )
        self.free = self.capacity.copy()
        #: nodes without a reservation
        self.open = np.ones(len(self.nodes), bool)
        self.queues = {queue.name: number for number, queue in enumerate(workload.queues)}
        total = [int(amount) for amount in self.capacity.sum(axis=1)]
        self.limits: list[list[int] | None] = []
        self.deserved: list[list[int]] = []
        for queue in workload.queues:
            self.limits.append(self._limits(queue.max) if queue.max else None)
            guaranteed = queue.guaranteed or {}
            self.deserved.append(
                [guaranteed.get(n, 0) or whole for n, whole in zip(self.names, total, strict=True)]
            )
        self.used = [[0] * len(self.names) for _ in workload.queues]
        # what a gathering gang still lacks
        self._promised = [[0] * len(self.names) for _ in workload.queues]

    def _limits(self, maximum: dict[str, int]) -> list[int]:
        return [maximum.get(name, 1 << 62) for name in self.names]

    def groups(self, job: Job) -> Groups | None:
        """The task groups of the job; None if it asks for something that no node has."""
        found = []
        for member in job.members:
            if any(amount and name not in self.names for name, amount in member.resources.items()):
                return None
            found.append((tuple(member.resources.get(n, 0) for n in self.names), member.count))
        found.sort(key=lambda entry: entry[0], reverse=True)
        return Groups(tuple(need for need, _ in found), tuple(count for _, count in found))

    # -- queues --------------------------------------------------------------------------------------

    def share(self, queue: int) -> float:
        """What the queue has, relative to its guarantee, or without one to the cluster: the largest
        share of a resource."""
        used, deserved = self.used[queue], self.deserved[queue]
        return max((u / d for u, d in zip(used, deserved, strict=True) if d), default=0.0)

    def allows(self, queue: int, groups: Groups) -> bool:
        """Whether the queue's limit has room for all these pods."""
        limits = self.limits[queue]
        if limits is None:
            return True
        sums = zip(self.used[queue], self._promised[queue], total(groups), limits, strict=True)
        return all(u + p + t <= m for u, p, t, m in sums)

    def promise(self, queue: int, groups: Groups) -> None:
        """Count these pods towards the queue's limit before they have a place."""
        self._promised[queue] = total(groups)

    def withdraw(self, queue: int) -> None:
        """Forget what was promised in the queue."""
        self._promised[queue] = [0] * len(self.names)

    # -- nodes ---------------------------------------------------------------------------------------

    def fit(self, groups: Groups, room: Any) -> list[Piece] | None:
        """Where all these pods go, if `room` is what is free; None if they do not fit."""
        pieces, missing = self.fit_some(groups, room)
        return None if missing else pieces

    def fit_some(self, groups: Groups, room: Any) -> tuple[list[Piece], int]:
        """Where as many of these pods as possible go, and how many do not fit."""
        if groups.counts == (1,):
            return self._fit_one(groups.needs[0], room)
        pieces: list[Piece] = []
        missing = 0
        if len(groups.counts) > 1:
            room = room.copy()
        for group, (need, count) in enumerate(zip(groups.needs, groups.counts, strict=True)):
            fitting = _how_many(need, room)
            found = np.flatnonzero(fitting)
            for node in found[np.argsort(room[0][found], kind="stable")].tolist():
                if not count:
                    break
                here = min(count, int(fitting[node]))
                pieces.append(Piece(node, group, here))
                count -= here
                if len(groups.counts) > 1:
                    room[:, node] -= np.multiply(need, here)
            missing += count
        return pieces, missing

    def _fit_one(self, need: Need, room: Any) -> tuple[list[Piece], int]:
        fits = room[0] >= need[0]
        for row in range(1, len(need)):
            if need[row]:
                fits &= room[row] >= need[row]
        nodes = fits.nonzero()[0]
        if not len(nodes):
            return [], 1
        return [Piece(int(nodes[room[0][nodes].argmin()]), 0, 1)], 0

    def take(self, queue: int, groups: Groups, pieces: Sequence[Piece]) -> None:
        self._change(queue, groups, pieces, 1)

    def give_back(self, queue: int, groups: Groups, pieces: Sequence[Piece]) -> None:
        self._change(queue, groups, pieces, -1)

    def _change(self, queue: int, groups: Groups, pieces: Sequence[Piece], sign: int) -> None:
        free, used = self.free, self.used[queue]
        for node, group, count in pieces:
            for row, amount in enumerate(groups.needs[group]):
                if amount:
                    free[row, node] -= sign * count * amount
                    used[row] += sign * count * amount


def total(groups: Groups) -> list[int]:
    """What all the pods need together."""
    return [
        sum(need[row] * count for need, count in zip(*groups, strict=True))
        for row in range(len(groups.needs[0]))
    ]


def _how_many(need: Need, room: Any) -> Any:
    """How many pods of this size each node has room for."""
    rows = [row for row, amount in enumerate(need) if amount]
    if not rows:
        return np.where(room[0] >= 0, 1 << 30, 0)
    return np.minimum.reduce([room[row] // need[row] for row in rows]).clip(0)
