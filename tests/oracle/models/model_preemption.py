"""Preemption for what is guaranteed, in the slow model: 5.9 step by step, without required nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tests.oracle.models.model_parts import (
    Ask,
    Held,
    Node,
    Queue,
    Resources,
    fits,
    narrower,
    plus,
    sum_of,
    within,
)

PREEMPTED = "PREEMPTED_BY_SCHEDULER"

_ORIGINATOR, _OPTED_OUT = 2**33, 2**34


@dataclass(frozen=True)
class Plan:
    node: Node
    victims: list[Held]


def choose(ask: Ask, nodes: Iterable[Node], capacity: Resources) -> Plan | None:
    own = ask.app.queue
    root = own.lineage[-1]
    found = list(_candidates(ask, capacity))
    standing = _Standing(root, capacity)
    standing.add(own, ask.resources)
    for victim in found:
        if standing.is_within(own):
            break
        standing.take(victim)
    if not standing.is_within(own):
        return None
    offers = []
    for node in nodes:
        if not node.schedulable or node.reserved_by not in (None, ask):
            continue
        if fits(node.total, ask.resources):
            there = [victim for victim in found if victim.node is node]
            offer = _on_node(ask, node, there, _Standing(root, capacity))
            if offer is not None:
                offers.append((offer[0], node.node_id, node, offer[1]))
    best: tuple[int, Node, list[Held]] | None = None
    offers.sort(key=lambda offer: offer[:2])
    for start in range(0, len(offers), 10):
        for index, _, node, victims in offers[start : start + 10]:
            score = _score(victims[: index + 1])
            if best is None or score < best[0]:
                best = score, node, victims[: index + 1]
        if best is not None and best[0] < 2**32:
            break
    if best is None:
        return None
    more = _more(ask, best[2], found, _Standing(root, capacity))
    return None if more is None else Plan(best[1], [*best[2], *more])


def _score(victims: list[Held]) -> int:
    score = len(victims)
    if any(victim.ask.originator for victim in victims):
        score |= _ORIGINATOR
    if any(not victim.ask.allow_self for victim in victims):
        score |= _OPTED_OUT
    return score


def _cost(victim: Held) -> tuple[bool, bool, int]:
    """Who agrees, who is no originator, whose ask is the newest (in v1.5.2: the allocation)."""
    return not victim.ask.allow_self, victim.ask.originator, -victim.ask.seq


def _on_node(
    ask: Ask, node: Node, there: list[Held], standing: _Standing
) -> tuple[int, list[Held]] | None:
    """Step 4: the victims on one node in order, and the last of them that is needed."""
    available = node.available
    if fits(available, ask.resources):
        return -1, []
    standing.add(ask.app.queue, ask.resources)
    first = _Standing.copy(standing)
    head: list[Held] = []
    tail: list[Held] = []
    free = available
    for victim in sorted(there, key=_cost):
        first.take(victim)
        if not first.at_or_above(victim.ask.app.queue):
            first.put_back(victim)
            continue
        more = plus(free, victim.ask.resources)
        if _shortfall(ask, free) == _shortfall(ask, more):
            first.put_back(victim)
            tail.append(victim)
        else:
            free = more
            head.append(victim)
    free, index = available, -1
    results: list[Held] = []
    for victim in head + tail:
        standing.take(victim)
        if not standing.at_or_above(victim.ask.app.queue):
            standing.put_back(victim)
            continue
        free = plus(free, victim.ask.resources)
        if fits(free, ask.resources) and index < 0:
            index = len(results)
        results.append(victim)
    return (index, results) if index >= 0 else None


def _shortfall(ask: Ask, free: Resources) -> Resources:
    short = {name: max(0, n - free.get(name, 0)) for name, n in ask.resources.items()}
    return {name: n for name, n in short.items() if n}


def _more(
    ask: Ask, victims: list[Held], found: list[Held], standing: _Standing
) -> list[Held] | None:
    """Step 6: others, until the ask's queue is within what is guaranteed to it."""
    own = ask.app.queue
    standing.add(own, ask.resources)
    for victim in victims:
        standing.take(victim)
    more: list[Held] = []
    for victim in sorted((each for each in found if each not in victims), key=_cost):
        if standing.is_within(own):
            break
        standing.take(victim)
        if standing.at_or_above(victim.ask.app.queue):
            more.append(victim)
        else:
            standing.put_back(victim)
    return more if standing.is_within(own) else None


# -- where queues stand ----------------------------------------------------------------------------


class _Standing:
    """What every queue uses, without what is on its way out, and its bounds."""

    def __init__(self, root: Queue, capacity: Resources) -> None:
        self.capacity = capacity
        self.used: dict[Queue, Resources] = {}
        for queue in _walk(root):
            leaving = sum_of(
                held.ask.resources
                for app in queue.all_apps
                for held in app.allocations.values()
                if held.released == PREEMPTED
            )
            self.used[queue] = plus(queue.allocated, leaving, -1)

    @classmethod
    def copy(cls, other: _Standing) -> _Standing:
        new = cls.__new__(cls)
        new.capacity, new.used = other.capacity, dict(other.used)
        return new

    def add(self, queue: Queue, resources: Resources, sign: int = 1) -> None:
        for each in queue.lineage:
            self.used[each] = plus(self.used[each], resources, sign)

    def take(self, victim: Held) -> None:
        self.add(victim.ask.app.queue, victim.ask.resources, -1)

    def put_back(self, victim: Held) -> None:
        self.add(victim.ask.app.queue, victim.ask.resources)

    def guaranteed(self, queue: Queue) -> Resources:
        bound: Resources | None = None
        for each in queue.lineage:
            bound = narrower(bound, each.config.guaranteed or None)
        return bound or {}

    def bound(self, queue: Queue) -> Resources:
        """What is guaranteed, and the most it may use where nothing is."""
        most = _most_of(queue, self.capacity)
        return {**most, **(narrower(self.guaranteed(queue), most) or {})}

    def is_within(self, queue: Queue) -> bool:
        if not queue.children and not self.guaranteed(queue):
            return False
        return all(fits(self.bound(each), self.used[each]) for each in queue.lineage)

    def at_or_above(self, queue: Queue) -> bool:
        used = self.used[queue]
        if not fits(self.bound(queue), used):
            return True
        return all(used.get(name, 0) >= n for name, n in self.guaranteed(queue).items())


def _most_of(queue: Queue, capacity: Resources) -> Resources:
    most: Resources | None = capacity
    for each in queue.lineage[:-1]:
        most = narrower(most, each.config.max or None)
    return most or {}


def _walk(queue: Queue) -> Iterator[Queue]:
    yield queue
    for child in queue.children.values():
        yield from _walk(child)


# -- who may be chosen -----------------------------------------------------------------------------


def _candidates(ask: Ask, capacity: Resources) -> Iterator[Held]:
    """Steps 1 and 2: everybody inside the fence who may have to go."""
    own = ask.app.queue
    urgency: dict[Queue, int] = {}
    now = ask.priority
    fence = own
    for fence in own.lineage:
        properties = fence.config.properties
        if properties.priority_policy == "fence":
            now = properties.priority_offset
        else:
            now += properties.priority_offset
        urgency[fence] = now
        if properties.preemption_policy == "fence":
            break
        # 2.21: a queue without room for the ask under its max, or any above it, is a fence too
        if not within(_most_of(fence, capacity), plus(fence.allocated, ask.resources)):
            break
    yield from _below(fence, own, urgency, urgency[fence], False, capacity)


def _below(
    queue: Queue,
    own: Queue,
    path: dict[Queue, int],
    urgency: int,
    everybody: bool,
    capacity: Resources,
) -> Iterator[Held]:
    if queue is own:
        return
    if not queue.children:
        bound = _Standing(queue.lineage[-1], capacity).bound(queue)
        if queue.config.properties.preemption_policy == "disabled":
            return
        if within(bound, queue.allocated):
            return
        for app in queue.apps.values():
            for held in app.allocations.values():
                if not held.released and (everybody or held.ask.priority <= urgency):
                    yield held
        return
    for child in queue.children.values():
        properties = child.config.properties
        if child in path:
            yield from _below(child, own, path, path[child], everybody, capacity)
        elif properties.priority_policy == "fence":
            if properties.priority_offset <= urgency:
                yield from _below(child, own, path, urgency, True, capacity)
        else:
            seen = urgency - properties.priority_offset
            yield from _below(child, own, path, seen, everybody, capacity)
