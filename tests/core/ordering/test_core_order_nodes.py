"""Which node: rules of 5.7 as scenarios, and the parts that keep the order."""

import functools
import operator
import random
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tree_side import tree

from quadriga.core.ordering import best_nodes
from quadriga.core.ordering.policies import NODE_POLICIES
from quadriga.core.resources.demand import EVERY_BIT, MAX_UNHEAPED, Level, Ranking
from quadriga.core.resources.shapes import Requirements, Shapes
from quadriga.si import NodeInfo
from quadriga.sim.scripted.script import Script


def nodes_of(heard: list[str]) -> list[str]:
    return [line.split()[-1] for line in heard if line.startswith("new ")]


def cluster(policy: str = "fair", weights: str = "{}", **nodes: dict[str, int]) -> Script:
    script = Script(
        tree("default", partition=f"nodesortpolicy: {{type: {policy}, resourceweights: {weights}}}")
    )
    script.app("app")
    for name, capacity in nodes.items():
        script.node(name, **capacity)
    return script


# -- the order of nodes (5.7) ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "nodes", "left"),
    [("binpacking", ["large"] * 3, []), ("bestfit", ["small"] * 3, ["large"])],
)
def test_5_7_bestfit_takes_the_least_room(policy: str, nodes: list[str], left: list[str]) -> None:
    """A large node with a quarter left has more room than a small one that is empty."""
    script = cluster(policy)
    script.node("large", vcore=24, memory=24, occupied={"vcore": 18, "memory": 18})
    script.node("small", vcore=4, memory=4)
    script.ask("app", "k", repeat=3, vcore=1, memory=1)
    assert nodes_of(script.schedule()) == nodes
    script.ask("app", "l", vcore=6, memory=6)  # has room if the small asks left the large node
    assert nodes_of(script.schedule()) == left


@pytest.mark.parametrize(
    ("declared", "nodes"),
    [("", ["plenty", "plenty", "none"]), ("devices: []", ["few", "few", "few"])],
)
def test_5_7_bestfit_strands_no_device_that_it_need_not(declared: str, nodes: list[str]) -> None:
    """An ask with many vcores for its GPU leaves the node alone that has few of them for each of its GPUs.
    The next one fills the node that was taken, and one without a GPU takes a node that has none."""
    policy = ", ".join(each for each in ("nodesortpolicy: {type: bestfit}", declared) if each)
    script = Script(tree("default", partition=policy))
    script.app("app")
    for name, gpu, vcore in (("few", 2, 16), ("none", 0, 32), ("plenty", 2, 32)):
        script.node(name, gpu=gpu, vcore=vcore)
    script.ask("app", "many", gpu=1, vcore=10)
    found = nodes_of(script.schedule())
    script.ask("app", "fair", gpu=1, vcore=2)
    found += nodes_of(script.schedule())
    script.ask("app", "without", vcore=4)
    assert found + nodes_of(script.schedule()) == nodes


@given(
    st.lists(st.tuples(*[st.integers(0, 1 << 40)] * 2), min_size=1, max_size=6),
    st.lists(st.integers(1, 9), min_size=2, max_size=2),
)
def test_5_7_bestfit_in_exact_fractions(sizes: list[tuple[int, int]], weights: list[int]) -> None:
    """Rounding never prefers a node that has clearly more room, and equal nodes stay equal."""
    script = cluster("bestfit", f"{{memory: {weights[0]}, vcore: {weights[1]}}}")
    script.check = False
    for at, size in enumerate(sizes):
        script.node(f"n{at}", **dict(zip(("memory", "vcore"), size, strict=True)))
    script.ask("app", "k", vcore=0, memory=0, gpu=1)
    script.schedule()
    most = [max(amounts) for amounts in zip(*sizes, strict=True)]
    nodes = script.scheduler.partition().nodes
    exact = [
        sum(Fraction(w * s, m) for w, s, m in zip(weights, size, most, strict=True) if s)
        for size in sizes
    ]
    found = [
        (nodes[f"n{at}"].score, one, size)
        for at, (one, size) in enumerate(zip(exact, sizes, strict=True))
    ]
    for (score, one, size), (beside, other, other_size) in product(found, repeat=2):
        if size == other_size:
            assert score == beside
        elif one + Fraction(1, 10**12) < other:
            assert score < beside


@pytest.mark.parametrize(
    ("policy", "weights", "score"),
    [
        ("fair", "{}", 0.35),
        ("binpacking", "{}", 0.65),
        ("fair", "{memory: 3, vcore: 1}", (3 * 0.5 + 0.2) / 4),
        ("fair", "{memory: 1, vcore: 0}", 0.5),
        ("fair", "{gpu: 1, memory: 1}", 0.5),  # the node has no GPU
        ("fair", "{gpu: 1}", 0.0),
        ("bestfit", "{}", 0.5 + 0.8),
        ("bestfit", "{memory: 3, vcore: 1}", 3 * 0.5 + 0.8),
        ("bestfit", "{gpu: 1}", 0.0),
    ],
)
def test_5_13_node_score(policy: str, weights: str, score: float) -> None:
    script = cluster(policy, weights, n1={"memory": 100, "vcore": 10})
    script.ask("app", "k", memory=50, vcore=2)
    script.schedule()
    assert script.scheduler.partition().nodes["n1"].score == pytest.approx(score)


def test_a_resource_type_that_turns_up_later_lengthens_every_book() -> None:
    script = cluster(n1={"vcore": 4})
    script.ask("app", "k", vcore=1)
    script.schedule()
    script.ask("app", "g", gpu=1, vcore=1)
    assert script.schedule() == []
    script.node("n2", gpu=2, vcore=2)
    assert nodes_of(script.schedule()) == ["n2"]
    script.ask("app", "d", disk=1)
    script.node("n1", NodeInfo.UPDATE, vcore=4, disk=1)
    assert nodes_of(script.schedule()) == ["n1"]
    partition = script.scheduler.partition()
    assert partition.registry.mapping(partition.root.allocated) == {"vcore": 2, "gpu": 1, "disk": 1}


def test_the_board_forgets_a_long_log_and_still_knows_every_node() -> None:
    """A column that nobody looked at for thousands of changes is made anew."""
    script = cluster(**{f"n{at}": {"vcore": 10} for at in range(5)})
    script.check = False
    script.ask("app", "seldom", vcore=9)
    script.schedule(1)
    for at in range(1500):
        script.ask("app", f"k{at}", vcore=1)
        script.schedule()
        script.release("app", f"k{at}-0")
    script.ask("app", "seldom2", repeat=5, vcore=9)
    assert sorted(nodes_of(script.schedule())) == ["n1", "n2", "n3", "n4"]
    assert script.scheduler.check() == []


@pytest.mark.interpreted
@pytest.mark.parametrize("few", [1, 3, 256], ids="a front of {}".format)
@pytest.mark.parametrize("policy", NODE_POLICIES)
def test_the_board_agrees_with_a_look_at_every_node(
    policy: str, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every shape's best node after arbitrary changes, against the definition."""
    monkeypatch.setattr(best_nodes, "_LEAST", few)
    monkeypatch.setattr(best_nodes, "_MANY", 2 * few)
    monkeypatch.setattr("quadriga.core.ordering.node_index._FEW_NEW", few - 1)
    monkeypatch.setattr("quadriga.core.ordering.node_index._MANY_NEW", few)
    monkeypatch.setattr("quadriga.core.ordering.free._ROWS", few)
    rng = random.Random(5)
    script = cluster(policy, weights="{vcore: 2, memory: 1}")
    script.check = False
    names = [f"n{at:02}" for at in range(12)]
    for name in names:
        script.node(name, vcore=rng.randint(4, 12), memory=rng.randint(4, 12))
    for at in range(300):
        script.ask("app", f"k{at}", vcore=rng.randint(1, 4), memory=rng.randint(0, 3))
        script.schedule(rng.choice((0, 1)))
        if rng.random() < 0.3:
            action = rng.choice((NodeInfo.DRAIN_NODE, NodeInfo.DRAIN_TO_SCHEDULABLE))
            script.node(rng.choice(names), action)
        if rng.random() < 0.4:
            script.release("app", f"k{rng.randrange(at + 1)}-0")
        for _ in range(rng.choice((0, 0, 1, 2))):  # one goes, comes or has another size
            name, size = rng.choice(names), {"vcore": rng.choice((8, 12)), "memory": 12}
            if name not in script.scheduler.partition().nodes:
                script.node(name, **size)
            elif rng.random() < 0.3:
                script.node(name, NodeInfo.UPDATE, **size)
            elif rng.random() < 0.5:
                script.node(name, NodeInfo.DECOMISSION)
        partition = script.scheduler.partition()
        node_index = partition.node_index
        for shape in [s for s in partition.shapes.by_number.values() if s.asks]:
            fits = [n for n in partition.nodes.values() if n.open and shape.fits(n.available)]
            best = min(fits, key=lambda n: (node_index.score(n, shape), n.node_id), default=None)
            assert node_index.feasible & shape.allocate or best is None
            for _ in range(2):
                if node_index.feasible & shape.allocate:
                    assert node_index.best(shape) is best


# -- wants and ranks -------------------------------------------------------------------------------


class Waiter:
    """A child with a key of its own."""

    def __init__(self, *key: Any) -> None:
        self.key = key
        self.rank: tuple[Any, ...] | None = None

    def make_rank(self) -> tuple[Any, ...]:
        self.rank = self.key
        return self.key


def test_ranking_against_sorting() -> None:
    """Random keys that grow, with and without notice, children that come and go."""
    rng = random.Random(3)
    ranking = Ranking()
    living: list[Waiter] = []
    for step in range(4000):
        what = rng.random()
        if what < 0.3 or not living:
            living.append(Waiter(rng.randint(0, 20), step))
            ranking.add(living[-1])
        elif what < 0.45:
            ranking.discard(living.pop(rng.randrange(len(living))))
        elif what < 0.8:
            child = rng.choice(living)
            child.key, child.rank = (child.key[0] + rng.randint(0, 5), child.key[1]), None
        else:
            child = rng.choice(living)
            child.key, child.rank = (rng.randint(0, 20), child.key[1]), None
            ranking.add(child)
        if living:
            best = min(living, key=lambda child: child.key)
            assert ranking.first() is best
        assert len(ranking) == len(living)


class Node(Level):
    """A level with a fixed key."""

    def __init__(self, key: int, above: Level | None = None) -> None:
        super().__init__()
        self.key = key
        self.above = above

    def make_rank(self) -> tuple[Any, ...]:
        self.rank = (self.key,)
        return self.rank


@pytest.mark.interpreted
def test_level_few_children_and_many_are_in_the_same_order() -> None:
    """Children with random bits and keys that come, go, grow and shrink; first few, then many."""
    rng = random.Random(5)
    root = Node(0)
    root.above = Node(0)
    children = [Node(key, root) for key in range(3 * MAX_UNHEAPED)]
    for child in children:
        child.announce(Waiter(1), 0b111)
        child.block(EVERY_BIT)
    most = 0
    for step in range(6000):
        wave = 1 + step // 300  # how many may wait
        child = rng.choice(children[:wave] if rng.random() < 0.7 else children)
        what = rng.random()
        if what < 0.5 and child in children[:wave]:
            child.unblock(rng.randint(1, 7))
        elif what < 0.8:
            child.block(rng.randint(1, 7) if child in children[:wave] else EVERY_BIT)
        else:
            child.key = rng.randint(0, 1000) * len(children) + children.index(child)
            child.touch()
        offered = [child.demand for child in children]
        most = max(most, len([bits for bits in offered if bits]))
        assert (
            root.demand_below == root.above.demand_below == functools.reduce(operator.or_, offered)
        )
        for able in range(1, 8):
            waiting = [child for child in children if child.demand & able]
            assert root.best(able) is min(waiting, key=lambda child: child.key, default=None)
    assert most > MAX_UNHEAPED
    assert root.few is None
    for child in children:
        child.block(EVERY_BIT)
    assert (root.demand_below, root.few) == (0, {})  # they are few again when all have gone


# -- shapes ----------------------------------------------------------------------------------------


def test_shapes_numbers_are_given_again_after_many_were_idle() -> None:
    shapes = Shapes(idle_limit=4)
    forgotten = []
    for size in range(1, 100):
        shape, fresh = shapes.intern(Requirements((size,)))
        assert fresh
        assert shape.bits not in {s.bits for s in shapes.by_number.values() if s is not shape}
        shapes.used(shape)
        gone = shapes.unused(shape)
        if gone is not None:
            forgotten.append(gone)
    assert len(shapes) == 4
    assert len(forgotten) == 95
    assert max(shapes.by_number) <= 5


def test_shapes_in_use_are_not_forgotten() -> None:
    shapes = Shapes(idle_limit=1)
    kept, _ = shapes.intern(Requirements((7,)))
    shapes.used(kept)
    shapes.unused(kept)
    shapes.used(kept)
    for size in range(20, 30):
        other, _ = shapes.intern(Requirements((size,)))
        shapes.used(other)
        shapes.unused(other)
    assert shapes.intern(Requirements((7,))) == (kept, False)
