"""The part of a cluster that is free in pieces too small to be used.

Of a node's free amount, the part counts as fragmented in which the jobs' pods do not fit: a pod that
fits the empty node and not what is free there counts with its share of all pods that fit the empty
node. This is summed over nodes and averaged over the time in which a job waits. It follows the measure
of Weng et al., "Beware of Fragmentation" (USENIX ATC 2023), with the whole workload as the population.
"""

# Not compiled: it does not run for every message.

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from quadriga.sim.usage import resource_of
from quadriga.sim.workload.model import Resources, Workload

#: comparisons of free vectors with pods that are made at once
_AT_ONCE = 1 << 22


class Holding(NamedTuple):
    """Resources held on a node, from allocation to release (ns of virtual time)."""

    node: str
    resources: Resources
    since: int
    until: int


def fragmentation(
    workload: Workload, holdings: Iterable[Holding], waiting: Iterable[tuple[int, int]]
) -> float:
    """The fragmented share of the capacity of the watched resource, averaged over the time covered by
    `waiting`, the (from, until) of each job's wait. 0 if no job ever waits."""
    watched = resource_of(workload)
    names = sorted({name for node in workload.nodes for name in node.resources} - {watched})
    names.insert(0, watched)  # the watched resource is column 0
    capacity = np.array([_vector(node.resources, names) for node in workload.nodes], np.int64)
    waited = _Covered(waiting)
    held = list(holdings)
    if not held or not waited.total or not capacity[:, 0].any():
        return 0.0
    index = {node.name: number for number, node in enumerate(workload.nodes)}
    place = np.array([index[each.node] for each in held] * 2)
    times = np.array([each.since for each in held] + [each.until for each in held], np.int64)
    amounts = np.array([_vector(each.resources, names) for each in held], np.int64)
    order = np.lexsort((times, place))
    place = place[order]
    # a node's holdings cancel out at its end, so one running sum serves all nodes
    free = np.concatenate((-amounts, amounts))[order].cumsum(axis=0) + capacity[place]
    covered = waited.until(times[order])
    # from each change of a node to its next; the last one leaves it empty
    lasts = np.append(np.diff(covered), 0)
    lasts[np.append(place[1:] != place[:-1], True)] = 0
    matters = lasts > 0
    kinds, at = _distinct(np.concatenate((free, capacity[place]), axis=1)[matters])
    lost = _unusable(workload, names, kinds)[at] * free[matters, 0]
    return float((lost * lasts[matters]).sum() / (float(capacity[:, 0].sum()) * waited.total))


class _Covered:
    """The length of the union of intervals, as a function of time."""

    def __init__(self, intervals: Iterable[tuple[int, int]]) -> None:
        edges: list[int] = []
        for since, until in sorted(intervals):
            if until <= since:
                continue
            if edges and since <= edges[-1]:
                edges[-1] = max(edges[-1], until)
            else:
                edges += (since, until)
        self._edges = np.array(edges, np.int64)
        lengths = np.diff(self._edges)
        lengths[1::2] = 0
        self._covered = np.append(0, lengths.cumsum()) if edges else np.zeros(0, np.int64)
        self.total = int(self._covered[-1]) if edges else 0

    def until(self, times: Any) -> Any:
        """The covered time before each of `times`."""
        at = np.searchsorted(self._edges, times, side="right")
        inside = np.where(at % 2 == 1, times - self._edges[np.maximum(at - 1, 0)], 0)
        return np.where(at > 0, self._covered[np.maximum(at - 1, 0)], 0) + inside


def _unusable(workload: Workload, names: Sequence[str], kinds: Any) -> Any:
    """For each (free, capacity) of a node, the share of pods that fit the empty node only."""
    pods: Counter[tuple[int, ...]] = Counter()
    for job in workload.jobs:
        for member in job.members:
            if all(name in names for name, amount in member.resources.items() if amount):
                pods[_vector(member.resources, names)] += member.count
    sizes, weights = np.array(list(pods), np.int64), np.array(list(pods.values()), np.float64)
    shares = np.zeros(len(kinds))
    step = max(1, _AT_ONCE // max(len(sizes), 1))
    for begin in range(0, len(kinds), step):
        part = kinds[begin : begin + step]
        now = _fit(sizes, part[:, : len(names)]) @ weights
        empty = _fit(sizes, part[:, len(names) :]) @ weights
        shares[begin : begin + step] = np.divide(
            empty - now, empty, out=np.zeros(len(part)), where=empty > 0
        )
    return shares


def _fit(sizes: Any, room: Any) -> Any:
    """Whether each size fits each room, by resource."""
    fits = np.ones((len(room), len(sizes)), bool)
    for column in range(sizes.shape[1]):
        fits &= sizes[:, column] <= room[:, column, None]
    return fits


def _distinct(rows: Any) -> tuple[Any, Any]:
    """The distinct rows, and for each row its number among them."""
    key = np.zeros(len(rows), np.int64)
    for column in rows.T:
        values, number = np.unique(column, return_inverse=True)
        _, key = np.unique(key * len(values) + number.reshape(-1), return_inverse=True)
        key = key.reshape(-1)
    _, first = np.unique(key, return_index=True)
    return rows[first], key


def _vector(resources: Resources, names: Sequence[str]) -> tuple[int, ...]:
    return tuple(resources.get(name, 0) for name in names)
