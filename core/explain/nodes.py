"""Explanation of a pending ask by nodes, grouped by the reason why they cannot take it.

A reserved node that lacks room is listed under what it lacks, not under its reservation.
"""

from __future__ import annotations

from collections import Counter
from heapq import heapify, heappop, nsmallest
from itertools import chain
from math import inf
from typing import TYPE_CHECKING, Final

import numpy as np

from quadriga.base.times import SECOND, spelled
from quadriga.core.explain.explanation import HOLDERS, Check, Holder
from quadriga.core.explain.free_nodes import MOST_TYPES, FreeNodes
from quadriga.core.ordering.lending import lends, lent_until
from quadriga.core.resources.units import WHOLE, largest, room
from quadriga.core.resources.vectors import type_name
from quadriga.core.runtime.kernel import Kernel
from quadriga.core.runtime.stepwise import STEP, chunks
from quadriga.si.predicates import ANSWER_PENDING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from quadriga.core.model.ask import Ask
    from quadriga.core.model.node import Node
    from quadriga.core.resources.shapes import Shape
    from quadriga.core.resources.vectors import Vector

#: what is known if the resource manager is not asked now
_REFUSED: Final = Check(
    "predicates",
    False,
    "the resource manager refused it on every node",
    verdict="The resource manager has refused it on every node with room.",
)


def of_nodes(
    kernel: Kernel,
    ask: Ask,
    shape: Shape,
    predicate: Callable[[str], object] | None,
    nodes: FreeNodes | None,
    *,
    asked: bool,
) -> Iterator[Check | None]:
    """Yield the checks of nodes, grouped by the reason why they cannot take the ask, and ``None`` after a step
    without one. Unless the predicates are ``asked``, what they said in the last round counts. Without ``nodes``
    only the required one is looked at."""
    partition = ask.app.partition
    required = partition.nodes.get(ask.required_node) if ask.required_node else None
    if nodes is not None:
        sizes, large = nodes.sizes, nodes.large_sizes
    else:
        sizes = Counter([tuple(required.total)] if required is not None else [])
        large = {size for size in sizes if shape.fits(size)}
    if not large:
        yield _too_small(ask, shape, sizes)
        return
    text = f"{sum(map(sizes.__getitem__, large))} of {sizes.total()} nodes are large enough"
    yield Check("node sizes", True, text)
    yield from _reservations(ask)
    if not asked and ask in partition.waiting.deferred_asks:
        yield _REFUSED
    draining, kept, free, planned = [], [], [], []
    plan = None if ask.required_node else partition.node_index.planned
    if (
        plan is not None
        and plan.app is ask.app
        and ask.group
        and ask.app.gang.starts_whole(ask.group)
    ):
        plan = None
    lacking: dict[tuple[int, ...], int] = {}
    nearest: list[Node] = []
    one_by_one = [required] if required is not None else list(partition.nodes.values())
    split: list[Node] = []
    in_order: Iterator[Node] = iter(())
    if nodes is not None and not shape.shares and len(shape.need) <= MOST_TYPES:
        lacking, nearest = _of_free(nodes, shape)
        one_by_one, in_order = nodes.others, _in_order(nodes)
    for at, node in enumerate(one_by_one):
        if not at % STEP:
            nearest = _nearest(ask, shape, nearest)
            yield None
        if not shape.fits(node.total):
            continue
        if not node.open and not ask.required_node:
            draining.append(node)
        elif not shape.fits(node.available):
            if short := _short(node, shape):
                lacking[short] = lacking.get(short, 0) + 1
                nearest.append(node)
            else:
                split.append(node)
        elif _is_kept_from(node, ask) and not lends(node, shape, kernel.now):
            kept.append(node)
        elif plan is not None and node.beside and not lends(node, shape, kernel.now):
            planned.append(node)
        else:
            free.append(node)
    refused: dict[str, int] = {}
    unanswered = 0
    #: a heap with the node reserved for the ask first, then in the order of a decision
    first: list[tuple[bool, float, str, Node]] = []
    for few in chunks(free):
        score = partition.node_index.score
        first += [(n.reservation is None, score(n, shape), n.node_id, n) for n in few]
        yield None
    heapify(first)
    for node in chain((heappop(first)[3] for _ in free), in_order):
        yield None
        reason = predicate and predicate(node.node_id)
        if not reason:
            yield Check("nodes", True, f"node {node.node_id} has room", node=node.node_id)
            return
        if reason is ANSWER_PENDING:
            unanswered += 1
            continue
        refused[str(reason)] = refused.get(str(reason), 0) + 1
    if unanswered:
        yield (
            _REFUSED
            if ask in partition.waiting.deferred_asks
            else Check(
                "predicates",
                False,
                f"{_number(unanswered)}: the resource manager has not said whether it may go there",
                verdict="The resource manager has not said yet whether it may go to a node with room.",
            )
        )
    for reason, count in sorted(refused.items()):
        verdict = f"The resource manager refuses it on each node with room: {reason}."
        yield Check("nodes", False, f"{_number(count)}: {reason}", verdict=verdict)
    if kept:
        yield _reserved(kept, kernel.now)
    if planned and plan is not None:
        who = plan.app.app_id
        said = f"kept for the gang {who}, whose start is planned in {spelled(max(0, plan.start - kernel.now))}"
        yield Check(
            "nodes",
            False,
            f"{_number(len(planned))}: room, but {said}",
            verdict=f"Each node with room for it is {said}, and it may run until then.",
            holders=(Holder(who, amount=len(planned)),),
            held=1,
            until=f"the gang {who} has to start",
        )
    yield from _lacking(ask, shape, lacking, nearest)
    if split:
        yield from _split(ask, shape, split)
    if draining:
        verdict = "Each node that is large enough for it is draining."
        yield Check("nodes", False, f"{_number(len(draining))}: draining", verdict=verdict)


def _of_free(nodes: FreeNodes, shape: Shape) -> tuple[dict[tuple[int, ...], int], list[Node]]:
    """The number of free nodes that are large enough but lack some types, by these, and the nearest of them."""
    codes, numbers = np.unique(nodes.lacks[nodes.large], return_counts=True)
    lacking = {
        tuple([at for bit, (at, _) in enumerate(shape.need) if code >> bit & 1]): number
        for code, number in zip(codes.tolist(), numbers.tolist(), strict=True)
        if code
    }
    share = np.where(nodes.large & (nodes.lacks != 0), nodes.missing, inf)
    return lacking, [nodes.nodes[int(share.argmin())]] if lacking else []


def _in_order(nodes: FreeNodes) -> Iterator[Node]:
    """The free nodes with room, in the order of a decision."""
    scores = np.where(nodes.large, nodes.scores, inf)
    if not len(scores) or scores[first := int(scores.argmin())] == inf:
        return
    yield nodes.nodes[first]  # mostly the only one
    with_room = np.flatnonzero(scores < inf)
    for at in with_room[scores[with_room].argsort(kind="stable")].tolist():
        if at != first:
            yield nodes.nodes[at]


def _too_small(ask: Ask, shape: Shape, sizes: Counter[Vector]) -> Check:
    """Return the check for an ask that is larger than every node."""
    registry = ask.app.partition.registry
    whole = registry.words(ask.kind.vector)
    if ask.required_node and not sizes:
        text = f"required node {ask.required_node} is not there"
        verdict = f"Node {ask.required_node}, which it requires, is not there."
        return Check("node sizes", False, text, verdict=verdict)
    most = [0] * len(registry)
    for at, _ in shape.need:
        most[at] = max((size[at] for size in sizes), default=0)
    largest = registry.words(most)
    if ask.required_node:
        text = f"required node {ask.required_node} is too small for {whole}: it has {largest}"
        verdict = f"Node {ask.required_node}, which it requires, is too small for it."
        return Check("node sizes", False, text, verdict=verdict, node=ask.required_node)
    if not sizes:
        text = f"no node is large enough for {whole}: there are no nodes"
    else:
        each = "" if sizes.total() == 1 else ", and none has all of it"
        text = (
            f"no node is large enough for {whole}: {_number(sizes.total())}, "
            f"at most {largest} among them{each}"
        )
    verdict = f"No node is large enough for it: it needs {whole} on one node."
    return Check("node sizes", False, text, verdict=verdict)


def _number(nodes: int) -> str:
    return "1 node" if nodes == 1 else f"{nodes} nodes"


def _reservations(ask: Ask) -> Iterator[Check]:
    """Yield a check that names the nodes reserved for the ask, or the bound that keeps it from reserving
    one (Q7)."""
    own = [each.node.node_id for each in ask.app.reservations if each.ask is ask]
    if own:
        more = f" and {len(own) - 1} more" if len(own) > 1 else ""
        yield Check("reservation", True, f"node {own[0]}{more} is reserved for it", node=own[0])
        return
    partition = ask.app.partition
    bounds, group = partition.reservation_bounds, ask.group
    if ask.required_node or group is None or not partition.rm.reservations:
        return
    if bounds.holds(group):
        equal = next(each for each in ask.app.reservations if each.kind == group.kind)
        node = equal.node.node_id
        text = f"node {node} is reserved for ask {equal.ask.ask_key}, which is equal to it"
        yield Check("reservation", True, text, node=node)
    elif bounds.full(len(partition.nodes)):
        text = (
            f"it cannot reserve a node: {_number(bounds.count)} of {len(partition.nodes)} "
            f"{'is' if bounds.count == 1 else 'are'} reserved, as many as reservation.max.share allows"
        )
        yield Check("reservation", True, text)


def _short(node: Node, shape: Shape) -> tuple[int, ...]:
    return tuple(index for index, value in shape.need if node.available[index] < value)


def _split(ask: Ask, shape: Shape, nodes: list[Node]) -> Iterator[Check | None]:
    """Yield the check for nodes where enough of a shared device is free, but in too small pieces (Q14)."""
    names, lacks = ask.app.partition.registry.names, []
    for each in shape.shares:
        name, one, most = names[each.of.device], (each._replace(number=1),), 0
        for few in chunks(nodes):
            if each.milli < WHOLE:
                most = max(most, *[largest(each.of, node.available) for node in few])
            else:
                most = max(most, *[room(one, node.available) for node in few])
            yield None
        if each.milli < WHOLE and most < each.milli:
            lacks.append(f"no {name} has {each.milli}m left; the most is {most}m")
        elif each.milli >= WHOLE and most < each.number:
            number = f"{each.number} {name} wholly free"
            lacks.append(f"no node has {number}; the most is {most}")
    text = " and ".join(lacks) or "not enough free devices"
    yield Check(
        "nodes",
        False,
        f"{_number(len(nodes))}: {text}",
        verdict=f"It takes {'a share of one device' if shape.shares[0].milli < WHOLE else 'whole devices'}: "
        f"{text}.",
        node=nodes[0].node_id if len(nodes) == 1 else "",
    )


def _is_kept_from(node: Node, ask: Ask) -> bool:
    """Whether the node is reserved for another ask.

    An ask that requires the node waits only for other asks that require it.
    """
    first = node.reservation
    if first is None or (ask.required_node and not first.ask.required_node):
        return False
    return not any(each.ask is ask for each in (first, *node.also_reserved))


def _reserved(kept: list[Node], now: int) -> Check:
    """Return the check for nodes with room that are reserved for other asks."""
    lent = (max(lent_until(node, now) for node in kept) - now) // SECOND
    remedy = ""
    if lent > 0:
        remedy = f"if it ends within {lent} s: the tag expected.runtime with its seconds"
    shown = tuple(
        Holder(node.reservation.ask.app.app_id, node.reservation.ask.ask_key, node.node_id)
        for node in nsmallest(HOLDERS, kept, key=lambda each: each.node_id)
        if node.reservation is not None
    )
    reserved_for = ", ".join(
        f"{each.node} for ask {each.ask} of {each.application}" for each in shown
    )
    more = f" and {len(kept) - len(shown)} more" if len(kept) > len(shown) else ""
    have = "has room but is" if len(kept) == 1 else "have room but are"
    return Check(
        "nodes",
        False,
        f"{_number(len(kept))} {have} reserved: {reserved_for}{more}",
        remedy,
        verdict="Each node with room for it is reserved for another ask.",
        holders=shown,
        held=len(kept),
    )


def _nearest(ask: Ask, shape: Shape, candidates: list[Node]) -> list[Node]:
    """The candidate that comes nearest: one without a reservation if possible, with the smallest missing share."""

    def distance(node: Node) -> tuple[bool, float, str]:
        share = max((value - node.available[index]) / value for index, value in shape.need)
        return _is_kept_from(node, ask), share, node.node_id

    return nsmallest(1, candidates, key=distance)


def _lacking(
    ask: Ask, shape: Shape, lacking: dict[tuple[int, ...], int], candidates: list[Node]
) -> Iterator[Check]:
    """Yield the checks for nodes without room, grouped by the resource types that they lack, with the nearest of
    the candidates."""
    registry = ask.app.partition.registry
    nearest = next(iter(_nearest(ask, shape, candidates)), None)
    its_types = _short(nearest, shape) if nearest is not None else None
    groups = {
        ", ".join(type_name(registry.names[index]) for index in short): (short, number)
        for short, number in lacking.items()
    }
    for types, (short, number) in sorted(
        groups.items(), key=lambda group: (group[1][0] != its_types, group[0])
    ):
        text = f"{_number(number)}: not enough free {types}"
        if nearest is None or short != its_types:
            yield Check("nodes", False, text)
            continue
        name = nearest.node_id
        need = dict(shape.need)
        less = registry.words(
            [max(0, need.get(at, 0) - free) for at, free in enumerate(nearest.available)]
        )
        first = nearest.reservation
        holders: tuple[Holder, ...] = ()
        kept = ""
        if first is not None and _is_kept_from(nearest, ask):
            holders = (Holder(first.ask.app.app_id, first.ask.ask_key, name),)
            kept = f", and is reserved for ask {first.ask.ask_key} of {first.ask.app.app_id}"
        yield Check(
            "nodes",
            False,
            f"{text}; node {name} comes nearest and lacks {less}{kept}",
            verdict=f"No node has enough free room: node {name} comes nearest and lacks {less}{kept}.",
            node=name,
            holders=holders,
            held=len(holders),
        )
