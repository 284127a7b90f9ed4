"""Who is next in the slow model: queues, applications, nodes, and what quotas leave (5.1, 5.4 to 5.7)."""

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

from quadriga.core.config import PartitionConfig
from tests.oracle.models.model_parts import App, Node, Queue, Resources, narrower, plus


def leaves(queue: Queue, capacity: Resources) -> Iterator[Queue]:
    """The leaves with anything pending, in the order in which they are visited (5.3, 5.4)."""
    if not queue.children:
        yield queue
        return
    waiting = [q for q in queue.children.values() if any(q.pending.values())]
    ordered: list[Queue] = []
    for child in sorted(waiting, key=lambda q: q.config.name):
        at = len(ordered)
        while at and _before(queue, child, ordered[at - 1], capacity):
            at -= 1
        ordered.insert(at, child)
    for child in ordered:
        yield from leaves(child, capacity)


def _before(parent: Queue, one: Queue, other: Queue, capacity: Resources) -> bool:
    keys: list[Any] = [(-q.priority, _fair_share(q, capacity)) for q in (one, other)]
    if not parent.config.properties.sort_priority:
        keys = [(share, urgency) for urgency, share in keys]
    if keys[0] != keys[1]:
        return bool(keys[0] < keys[1])
    more = plus(one.pending, other.pending, -1)
    return all(v >= 0 for v in more.values()) and any(more.values())


def _fair_share(queue: Queue, capacity: Resources) -> Fraction:
    most = {k: v for k, v in capacity.items() if v}
    for above in reversed(queue.lineage[:-1]):
        most.update(above.config.max or {})
    most.update(queue.config.guaranteed or {})
    share = Fraction(0)
    for name, used in queue.allocated.items():
        if used and name in most:
            share = max(share, Fraction(used, most[name]) if most[name] > 0 else Fraction(1))
    return share


def applications(leaf: Queue) -> list[App]:
    """Those with anything pending, in order; in a stateaware queue one that does not run (2.9)."""
    properties = leaf.config.properties
    guaranteed = leaf.config.guaranteed or {}

    def key(app: App) -> tuple[Any, ...]:
        if properties.sort_policy != "fair":
            order: tuple[Any, ...] = (-app.priority, app.seq)
            return order if properties.sort_priority else order[::-1]
        used = app.allocated
        each = (Fraction(n, guaranteed.get(k) or 1) for k, n in used.items() if n)
        shares = tuple(sorted(each, reverse=True))
        if properties.sort_priority:
            return -app.priority, shares, app.seq
        return shares, -app.priority, app.seq

    waiting = [app for app in leaf.apps.values() if app.waiting]
    if properties.sort_policy == "stateaware":
        accepted = [app for app in waiting if app.state == "Accepted"]
        waiting = [app for app in waiting if app.state != "Accepted"]
        if not any(app.state == "Starting" for app in leaf.apps.values()):
            waiting += sorted(accepted, key=lambda app: app.seq)[:1]
    return sorted(waiting, key=key)


def nodes(among: Iterable[Node], partition: PartitionConfig, asked: Resources) -> list[Node]:
    among = list(among)

    def score(node: Node) -> float:
        weights = {k: w for k, w in sorted(partition.resource_weights.items()) if node.total.get(k)}
        if partition.node_sort_policy == "bestfit":
            largest = {k: max(each.total.get(k, 0) for each in among) for k in weights}
            room = sum(w * (node.available[k] / largest[k]) for k, w in weights.items())
            return _by_devices(node, room, among, partition, asked)
        used = sum(w * (1.0 - node.available[k] / node.total[k]) for k, w in weights.items())
        share = used / sum(weights.values()) if used else 0.0
        return share if partition.node_sort_policy == "fair" else 1.0 - share

    return sorted(among, key=lambda node: (score(node), node.node_id))


def _by_devices(
    node: Node, room: float, among: list[Node], partition: PartitionConfig, asked: Resources
) -> float:
    """D340: what the ask strands, then what is free of devices, then of the rest."""
    names = sorted({name for each in among for name in each.total if partition.is_device(name)})
    others = [k for k, weight in partition.resource_weights.items() if weight and k not in names]
    devices = [name for name in names if any(each.total.get(name) for each in among)]
    own = [name for name in devices if node.total.get(name)]
    if not devices:
        return room
    stranded, left, least = 0.0, 0.0, math.inf
    for name in own:
        with_it = [each.total for each in among if each.total.get(name)]
        usable, lost = [], []
        free_devices = max(node.available[name], 0)
        for times in (0, 1):
            rooms = [
                (node.available.get(k, 0) - times * asked.get(k, 0))
                * max(total[name] / total[k] for total in with_it if total.get(k))
                for k in others
                if any(total.get(k) for total in with_it)
            ]
            usable.append(max(0.0, min(rooms, default=math.inf)))
            lost.append(max(free_devices - times * asked.get(name, 0) - usable[-1], 0.0))
        stranded += lost[1] - lost[0]
        left, least = left + free_devices, min(least, usable[0])
    rest = least if own and least < math.inf else max(room, 0.0)
    return 1024 * (1024 * stranded + left + 1 if own else 0) + rest / (1 + rest)


def headroom(leaf: Queue, capacity: Resources) -> Resources | None:
    room: Resources | None = None
    for queue in leaf.lineage:
        limit = queue.config.max if queue.parent is not None else capacity
        if limit:
            used = queue.allocated
            room = narrower(room, {k: v - used.get(k, 0) for k, v in limit.items()})
    return room


def fit_in_score(asked: Resources, available: Resources) -> float:
    """Low is a tight fit (5)."""
    score = 0.0
    for name, there in sorted(available.items()):
        if there > 0:
            wanted = asked.get(name, 0)
            if wanted <= 0:
                score += 1.0
            elif there > wanted:
                score += (there - wanted) / there
    return score
