"""Which node: rules of 5.7 as scenarios, the parts that keep the order, the table of shapes, the default."""

import logging
import random
from fractions import Fraction
from functools import reduce
from itertools import product
from operator import or_
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tree_side import tree

from quadriga.core import Options
from quadriga.core.config import DEFAULT_NODE_SORT_POLICY, load
from quadriga.core.driver.service import SchedulerService
from quadriga.core.ordering import best_nodes, fitting
from quadriga.core.ordering.fitting import Fitting
from quadriga.core.ordering.policies import NODE_POLICIES
from quadriga.core.resources.demand import EVERY_BIT, MAX_UNHEAPED, Level, Ranking
from quadriga.core.resources.shapes import Requirements, Shape, Shapes
from quadriga.core.views import Views
from quadriga.si import NodeInfo, UpdateConfigurationRequest
from quadriga.sim.options import SimulationOptions
from quadriga.sim.scripted.script import ONE_QUEUE, Script
from quadriga.sim.selection import first
from quadriga.sim.simulation import Simulation
from quadriga.sim.workload import embedded
from tests.core.service_side import Heard, register


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
        assert root.demand_below == root.above.demand_below == reduce(or_, offered)
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


AMOUNTS = st.tuples(*[st.integers(0, 5)] * 3)


def fit(shapes: list[Shape], free: tuple[int, ...]) -> int:
    return sum(shape.allocate for shape in shapes if shape.fits(free))


@given(st.lists(AMOUNTS, max_size=12), st.data())
def test_the_table_knows_what_fits(vectors: list[tuple[int, ...]], data: st.DataObject) -> None:
    answers_as_each_shape(vectors, data)


@pytest.mark.interpreted
@given(st.lists(AMOUNTS, max_size=30), st.data())
def test_a_large_table_knows_what_fits(vectors: list[tuple[int, ...]], data: st.DataObject) -> None:
    """With many shapes it keeps fewer sums."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "_MANY", 4)
        patch.setattr(fitting, "_STEP", 3)
        answers_as_each_shape(vectors, data)


def answers_as_each_shape(vectors: list[tuple[int, ...]], data: st.DataObject) -> None:
    shapes, table, known = Shapes(), Fitting(), dict[int, Shape]()
    for vector in vectors:
        shape, _ = shapes.intern(Requirements(vector))
        assert table.add(shape)
        known[shape.number] = shape
        if data.draw(st.booleans()):
            gone = known.pop(data.draw(st.sampled_from(sorted(known))))
            table.remove(gone)
            table.remove(gone)
        free = data.draw(AMOUNTS)
        assert table.every == sum(each.allocate for each in known.values())
        assert table.within(free) == fit(list(known.values()), free)


@pytest.mark.interpreted
def test_the_table_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "_MOST", 1)
    shapes, table = Shapes(), Fitting()
    first, second = (shapes.intern(Requirements((value,)))[0] for value in (1, 2))
    assert table.add(first) and table.add(first)
    assert not table.add(second)
    table.remove(second)
    table.remove(first)
    assert table.add(second)


def test_q2_a_plan_that_is_taken_back_hides_no_room() -> None:
    script = Script(options=Options(gang_admission="atomic"))
    script.node("n1", vcore=4)
    for name in ("n2", "n3", "n4"):
        script.node(name, vcore=1)
    script.app("gang", gang={"vcore": 7})
    script.ask("gang", "large", group="one", placeholder=True, vcore=3)
    script.ask("gang", "small-1", "small-2", group="two", placeholder=True, vcore=2)
    assert not script.schedule()  # each group has room, and both together have not
    script.app("single")
    script.ask("single", "pod", vcore=2)
    assert [line for line in script.schedule() if line.startswith("new single/pod")]


WORKLOAD = first(embedded(days=1), None, 3)


def _served(text: str) -> str:
    service = SchedulerService(manual=True)
    service.register_resource_manager(register(config=text), Heard())
    return Views(service.scheduler).configuration()["partitions"][0]["nodesortpolicy"]["type"]


def test_a_queue_file_without_a_node_order_is_simulated_as_it_is_served() -> None:
    queues = SimulationOptions(config=ONE_QUEUE, queue_map=(("*", "root.default"),))
    report = Simulation(WORKLOAD, queues).run()
    assert report.data["options"]["node_sort"] == _served(ONE_QUEUE) == DEFAULT_NODE_SORT_POLICY
    made = Simulation(WORKLOAD, SimulationOptions()).run()
    assert made.data["options"]["node_sort"] == DEFAULT_NODE_SORT_POLICY
    assert Options().node_sort_policy == load(ONE_QUEUE).partitions[0].node_sort_policy


@pytest.mark.parametrize("policy", ["fair", "binpacking"])
def test_the_report_names_the_node_order_of_the_file(policy: str) -> None:
    text = ONE_QUEUE + f"    nodesortpolicy: {{type: {policy}}}\n"
    options = SimulationOptions(config=text, queue_map=(("*", "root.default"),))
    told = Simulation(WORKLOAD, options).run().data["options"]
    assert told["node_sort"] == _served(text) == policy
    # the file decides these for each queue
    assert told["policy"] is None and told["gang_admission"] is None


def test_the_log_names_the_node_order_of_each_manager(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "quadriga.service")
    service = SchedulerService(manual=True)
    service.configure("")
    service.register_resource_manager(register("a", config=""), Heard())
    text = ONE_QUEUE + "    nodesortpolicy: {type: fair}\n"
    service.register_resource_manager(register("b", config=text), Heard())
    assert caplog.messages == [
        "default queues: nodes are ordered by bestfit (partition default)",
        "resource manager a: nodes are ordered by bestfit (partition default)",
        "resource manager b: nodes are ordered by fair (partition default)",
    ]


def test_k55_the_log_warns_of_a_resource_managers_queues(caplog: pytest.LogCaptureFixture) -> None:
    """Those of the default queues are told by who has read them."""
    rules = "placementrules: [{name: provided}, {name: user, create: true}]"
    text = f"partitions: [{{name: default, {rules}, queues: [{{name: root, submitacl: '*'}}]}}]"
    service = SchedulerService(manual=True)
    service.configure(text)
    service.register_resource_manager(register("a", config=""), Heard())
    assert caplog.messages == []
    service.register_resource_manager(register("b", config=ONE_QUEUE), Heard())
    service.update_configuration(
        UpdateConfigurationRequest(rmID="b", config=text.replace("default", "DEFAULT"))
    )
    (told,) = caplog.messages
    assert told.startswith(
        "resource manager b: warning 1 of 1: partitions[0].placementrules[0] (line 1): everyone may name the queue"
    )


def test_the_log_names_at_most_five_partitions() -> None:
    queues = "queues: [{name: root}]"
    text = "partitions:\n" + "".join(f"- {{name: p{n}, {queues}}}\n" for n in range(7))
    assert load(text).node_order == "bestfit (partitions p0, p1, p2, p3, p4 and 2 more)"
