"""Whether a job could run at all: all its pods at once on the empty nodes, within its quotas.

Only jobs for which this is impossible are unschedulable; any other job that does not start is kept from
it by what else is in the cluster. See D133.
"""

# Not compiled: it does not run for every message.

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from quadriga.sim.workload.model import Member, Resources

#: The search for a placement of unequal members ends after this many placed members (and one for each
#: member), without a result.
_SEARCH_LIMIT: Final = 10_000

_Vector = tuple[int, ...]


class Quota(NamedTuple):
    """The amounts that ``owner`` may use, by type; a type that is absent is unlimited. ``owner`` is a
    queue, or a user or group in a queue, in words."""

    owner: str
    max: Mapping[str, int]


def obstacle(
    members: Sequence[Member], nodes: Sequence[Resources], quotas: Iterable[Quota] = ()
) -> str:
    """Say why pods of ``members`` cannot all run at once on these empty nodes within the quotas.

    The text is empty if they can. The answer is exact for members of one size, because what a node
    takes of them does not depend on the other nodes. Members of several sizes are a packing problem:
    each size is checked alone, then their total, then placements are tried, one after the other. The
    text is also empty if that search reaches its limit, so a text is always true, but for members of
    several sizes an empty text need not be.
    """
    sizes = _sizes(members)
    total: Counter[str] = Counter()
    for size, count in sizes.items():
        for name, amount in size:
            total[name] += amount * count
    for quota in quotas:
        over = [name for name in sorted(total) if total[name] > quota.max.get(name, total[name])]
        if over:
            asked = amounts({name: total[name] for name in over})
            allowed = amounts({name: quota.max[name] for name in over})
            return f"it needs {asked}, and {quota.owner} allows {allowed}"
    for size, count in sizes.items():
        resources = dict(size)
        room = sum(rooms(resources, node, enough=count) for node in nodes)
        if room >= count:
            continue
        if not room:
            return f"no node of the empty cluster has {amounts(resources)}"
        return f"the empty cluster has room for {room} of {count} pods with {amounts(resources)}"
    if len(sizes) < 2:
        return ""
    for name in sorted(total):
        if (capacity := sum(node.get(name, 0) for node in nodes)) < total[name]:
            return f"it needs {name}={total[name]}, and the empty cluster has {name}={capacity}"
    if _packs(sizes, nodes, sorted(total)) is False:
        pods = sum(sizes.values())
        return f"its {pods} pods of {len(sizes)} sizes do not fit the empty cluster together"
    return ""


def rooms(resources: Resources, free: Resources, *, enough: int) -> int:
    """The number of pods with these resources for which ``free`` has room, at most ``enough``."""
    found = enough
    for name, amount in resources.items():
        if amount > 0:
            found = min(found, free.get(name, 0) // amount)
    return max(0, found)


def amounts(resources: Mapping[str, int]) -> str:
    """The amounts in words, as in the scheduler's texts."""
    return " ".join(f"{name}={resources[name]}" for name in sorted(resources)) or "nothing"


def _sizes(members: Iterable[Member]) -> dict[tuple[tuple[str, int], ...], int]:
    """The number of pods of each size; types of which nothing is asked are left out."""
    sizes: Counter[tuple[tuple[str, int], ...]] = Counter()
    for member in members:
        size = tuple(sorted((name, n) for name, n in member.resources.items() if n > 0))
        sizes[size] += member.count
    return dict(sizes)


def _packs(
    sizes: Mapping[tuple[tuple[str, int], ...], int],
    nodes: Iterable[Resources],
    names: Sequence[str],
) -> bool | None:
    """Whether all pods have room together; ``None`` if the search reached its limit.

    Pods are placed one after the other, large ones first, each on a node of every distinct free room
    that is large enough, the tightest first. Nodes of equal free room are interchangeable, and a state
    that has failed is not searched again.
    """
    free = Counter(tuple(node.get(name, 0) for name in names) for node in nodes)
    whole = [max(1, sum(room[at] * n for room, n in free.items())) for at in range(len(names))]

    def share(vector: _Vector) -> float:
        return sum(amount / of for amount, of in zip(vector, whole, strict=True))

    vectors = {
        tuple(dict(size).get(name, 0) for name in names): count for size, count in sizes.items()
    }
    order = sorted(vectors, key=lambda vector: (-share(vector), vector))
    pods = [vector for vector in order for _ in range(vectors[vector])]
    limit = _SEARCH_LIMIT + len(pods)
    failed: set[tuple[int, frozenset[tuple[_Vector, int]]]] = set()
    # one entry for each pod placed so far: the free room before, and the nodes still to be tried
    tried: list[tuple[Counter[_Vector], list[_Vector]]] = []
    while True:
        at = len(tried)
        if at == len(pods):
            return True
        key = (at, frozenset(free.items()))
        fitting: list[_Vector] = []
        if key not in failed:
            failed.add(key)  # unless the search ends below this state, it fails
            pod = pods[at]
            fitting = [room for room in free if all(map(int.__ge__, room, pod))]
            fitting.sort(key=lambda room: (share(room), room), reverse=True)
        tried.append((free, fitting))
        while tried and not tried[-1][1]:
            tried.pop()
        if not tried:
            return False
        limit -= 1
        if not limit:
            return None
        before, candidates = tried[-1]
        chosen, pod = candidates.pop(), pods[len(tried) - 1]
        free = before.copy()
        free[chosen] -= 1
        if not free[chosen]:
            del free[chosen]
        free[tuple(map(int.__sub__, chosen, pod))] += 1
