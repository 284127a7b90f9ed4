"""Many siblings and many nodes: what is kept between decisions is what a look at all finds (5.4, 5.7)."""

from fractions import Fraction
from random import Random
from typing import Any

import pytest
from tree_side import tree

from quadriga.core.model.partition import Partition
from quadriga.core.model.queue import Queue
from quadriga.core.ordering import scores
from quadriga.core.resources.shapes import Requirements
from quadriga.core.resources.tied import first_of
from quadriga.si import NodeInfo
from quadriga.sim.scripted.script import Script


def more(one: list[int], other: list[int]) -> bool:
    return one != other and all(mine >= theirs for mine, theirs in zip(one, other, strict=True))


def sorted_first(queues: list[Any]) -> Any:
    """The first of an insertion sort by urgency and share, by name, and by strictly more pending."""
    least = min((queue.rank[0], Fraction(*queue.share)) for queue in queues)
    ordered: list[Any] = []
    for queue in sorted(queues, key=lambda queue: queue.name):
        if (queue.rank[0], Fraction(*queue.share)) == least:
            at = len(ordered)
            while at and more(queue.pending, ordered[at - 1].pending):
                at -= 1
            ordered.insert(at, queue)
    return ordered[0]


class Sibling:
    """What is compared of a queue."""

    rank = (0, 0.5)

    def __init__(self, name: str, pending: list[int], share: tuple[int, int]) -> None:
        self.name = name
        self.pending = pending
        self.share = share


@pytest.mark.parametrize("seed", range(20))
def test_5_4_more_pending_is_first_as_in_an_insertion_sort(seed: int) -> None:
    rng = Random(seed)
    for _ in range(200):
        most, types = rng.choice((1, 3, 6)), rng.randint(1, 3)
        shares = rng.choice((((1, 2),), ((1, 2), (2, 4), (2**54, 2**55 + 1))))
        queues = [
            Sibling(f"q{at}", [rng.randint(0, most) for _ in range(types)], rng.choice(shares))
            for at in range(rng.randint(1, 9))
        ]
        rng.shuffle(queues)
        assert first_of(queues) is sorted_first(queues)


def fresh_ranks(partition: Partition) -> None:
    """Every rank that is known is that of the present amounts and the present capacity."""
    for queue in partition.queues():
        if queue.parent is not None and queue.demand and (known := queue.rank) is not None:
            queue.forget_share()
            assert queue.make_rank() == known, queue.path


@pytest.mark.parametrize(("seed", "sizes"), [(0, 2), (2, 60)])
def test_5_4_tied_queues_are_served_as_if_all_were_compared(seed: int, sizes: int) -> None:
    """Queues and nodes come, pods end, asks are withdrawn; there are asks of two types and of some sizes or many.
    With many, some queues are first for only a part of what nodes have room for."""
    rng = Random(seed)
    leaves = [f"q{at}" for at in rng.sample(range(100), 40)]
    some = [f"{leaf}, resources: {{guaranteed: {{vcore: 4m}}}}" for leaf in leaves[:8]]
    script = Script(tree(*some, *leaves[8:]), extra={"scheduler.disableReservation": "true"})
    partition = script.scheduler.partition()
    asked = placed = gathered = 0
    for leaf in leaves:
        script.app(leaf, f"root.{leaf}")
    for step in range(100):
        what = rng.random()
        if what < 0.1 or not step:
            script.node(f"n{rng.randrange(10**6)}", vcore=rng.choice((10, 20)), memory=40)
        elif what < 0.55:
            for leaf in rng.sample(leaves, rng.randint(1, 20)):
                asked += 1
                size = {"vcore": rng.choice((1, 1, 2)), "memory": rng.randint(1, sizes)}
                script.ask(leaf, f"{leaf}-{asked}", **size)
        elif what < 0.6 and asked:
            leaf = rng.choice(leaves)
            for key in list(partition.applications[leaf].asks)[:2]:
                script.release_ask(leaf, key)
        for _ in range(rng.randint(0, 6)):
            root = partition.root
            partition.renew_shares()
            demand = root.demand & partition.node_index.feasible
            if rng.random() < 0.3:  # some sizes for which no node has room
                demand &= ~sum(1 << rng.randrange(4 * sizes) for _ in range(sizes))
            waiting: list[Queue] = [q for q in root.children.values() if q.demand & demand]
            if not waiting:
                break
            for queue in waiting:
                queue.rank or queue.make_rank()
            first = sorted_first(waiting)
            assert root.best(demand) is first  # type: ignore[attr-defined]
            gathered += root._gathered.bits.bit_count()  # type: ignore[attr-defined]
            placed += sum(line.startswith("new ") for line in script.schedule(1))
            fresh_ranks(partition)
        if what > 0.9:
            running = [a for node in partition.nodes.values() for a in node.allocations]
            for each in rng.sample(running, min(3, len(running))):
                script.release(each.ask.app.app_id, each.uuid)
    assert placed > 50
    assert (gathered > 0) is (sizes > 2)


@pytest.mark.parametrize("policy", ["fair", "binpacking", "bestfit"])
@pytest.mark.parametrize("searched_as_a_whole", [4096, 4])
def test_5_7_nodes_that_come_and_go_one_by_one_are_in_order(
    policy: str, searched_as_a_whole: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scores, "_SMALL", searched_as_a_whole)
    rng = Random(policy)
    script = Script(tree("a", partition=f"nodesortpolicy: {{type: {policy}}}"))
    script.app("app", "root.a")
    partition = script.scheduler.partition()
    index = partition.node_index
    shapes = [partition.shapes.intern(Requirements((size, size)))[0] for size in (1, 3)]
    for at in range(40):
        for _ in range(rng.choice((0, 1, 1, 2, 17))):
            size = rng.choice((4, 4, 6, 6 + at // 12))
            script.node(f"n{rng.randrange(10**6)}", vcore=size, memory=9)
        script.ask("app", f"pod-{at}", vcore=rng.randint(1, 3), memory=1)
        script.schedule()
        if len(index.nodes) > 9:
            for node in rng.sample(index.nodes, rng.choice((0, 0, 1, 3))):
                script.node(node.node_id, action=NodeInfo.DECOMISSION)
        shape = rng.choice(shapes)
        found = [index.best(shape), index.in_order(shape), index.first(shape, 3)]
        if at % 3:
            continue
        assert [index.position(node) for node in index.nodes] == list(range(len(index.nodes)))
        kept = [node.score for node in index.nodes]
        index.relayout()
        assert found == [index.best(shape), index.in_order(shape), index.first(shape, 3)]
        assert kept == [node.score for node in index.nodes]
        assert index.nodes == sorted(index.nodes, key=lambda node: node.node_id)
