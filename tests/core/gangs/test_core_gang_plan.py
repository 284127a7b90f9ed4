"""The plan of a gang and its carrying out: the same choices and messages as one by one (Q2, G4)."""

from random import Random

import pytest
from core_world import launch, news, queues, refuse, scripted

from quadriga.core import Options
from quadriga.core.events.records import message_of
from quadriga.core.gangs import plan
from quadriga.core.model.node import Node
from quadriga.core.ordering.node_index import NodeIndex
from quadriga.core.resources.shapes import Shape
from quadriga.core.scheduling import batch
from quadriga.si import AllocationReleasesRequest, AllocationRequest, NodeInfo
from quadriga.si.constants import TAG_REQUIRED_NODE
from quadriga.sim.scripted.script import Script

CONFIG = queues("default", "other", other="properties: {application.sort.policy: fair}")


def cluster(admission: str, sort: str, vcores: list[int]) -> Script:
    options = Options(journal_size=None, gang_admission=admission)
    policy = f"nodesortpolicy: {{type: {sort}}}, queues:"
    script = scripted(CONFIG.replace("queues:", policy, 1), options=options)
    for at, vcore in enumerate(vcores):
        script.node(f"n{at:03}", vcore=vcore, memory=vcore)
    return script


def gang(script: Script, name: str, groups: list[tuple[str, int, int]], **more: str) -> None:
    """A gang of these task groups: name, number of members, vcores of each."""
    script.app(name, gang={"vcore": sum(number * vcore for _, number, vcore in groups)}, **more)
    for group, number, vcore in groups:
        keys = [f"{name}-{group}-{at}" for at in range(number)]
        script.ask(name, *keys, group=group, placeholder=True, vcore=vcore)


def story(script: Script) -> list[str]:
    """What happened to everything but the lifecycles of gangs."""
    records = (record for record in script.scheduler.journal if not record.key.startswith("gang/"))
    return [f"{r.key} {r.trigger} {r.target}" for r in records]


@pytest.mark.parametrize("sort", ["fair", "binpacking", "bestfit"])
@pytest.mark.parametrize("seed", range(4))
def test_q2_members_get_the_nodes_and_messages_they_get_one_by_one(sort: str, seed: int) -> None:
    """Gangs of one task group that all have room: there is nothing to plan ahead for."""
    random = Random(seed)
    vcores = [random.choice((4, 6, 9, 16)) for _ in range(random.choice((3, 8, 40)))]
    scripts = [cluster(admission, sort, vcores) for admission in ("atomic", "whole")]
    left, sizes = sum(vcores) // 2, []
    while left > 0:
        sizes.append((random.choice((1, 2, 5, 12)), random.choice((1, 1, 2))))
        left -= sizes[-1][0] * sizes[-1][1]
    for script in scripts:
        launch(script, "plain", "a", "b", "c", vcore=1)
        for at, (number, vcore) in enumerate(sizes):
            gang(script, f"g{at}", [("t", number, vcore)])
        script.schedule()
        for at, (number, vcore) in enumerate(sizes):
            keys = [f"member-{each}" for each in range(number)]
            script.ask(f"g{at}", *keys, group="t", vcore=vcore)
        script.schedule()
        script.confirm()
    atomic, whole = scripts
    assert len(news(atomic.log)) == 3 + 2 * sum(number for number, _ in sizes)
    assert atomic.log == whole.log
    assert story(atomic) == story(whole)


def test_g4_g21_the_messages_of_a_gang_are_in_the_order_of_its_asks() -> None:
    """The placeholder with which the announced size is there is announced to a running application."""
    script = cluster("atomic", "fair", [8, 8])
    script.app("g", gang={"vcore": 7})
    script.ask("g", "small-0", "small-1", group="small", placeholder=True, vcore=1)
    script.ask("g", "large", group="large", placeholder=True, vcore=4)
    script.ask("g", "small-2", "more", group="small", placeholder=True, vcore=1)
    said = script.schedule()
    running = next(at for at, line in enumerate(said) if "Running" in line)
    keys = [line.split()[0] for line in news(said)]
    assert keys == ["g/small-0-0", "g/small-1-0", "g/large-0", "g/small-2-0", "g/more-0"]
    assert len(news(said[:running])) == 3


@pytest.mark.parametrize("sort", ["fair", "bestfit"])
@pytest.mark.parametrize(
    ("large", "groups"),
    [([2, 2], [("t", 3, 2)]), ([4], [("small", 32, 1), ("large", 1, 3)])],
    ids=["many nodes", "large members leave no room for small ones"],
)
def test_q2_a_plan_that_fails_on_many_nodes_refunds_them(
    sort: str, large: list[int], groups: list[tuple[str, int, int]]
) -> None:
    """With many nodes for each member the room is not counted in advance."""
    script = cluster("atomic", sort, [1] * 30 + large)
    gang(script, "g", groups)
    assert news(script.schedule()) == []
    own = script.scheduler.application("g").gang
    members = sum(number for _, number, _ in groups)
    assert (own.lacks, own.outstanding, own.missing) == ("nodes", members, 1)
    nodes = script.scheduler.partition().nodes.values()
    assert not any(any(node.allocated) for node in nodes)
    script.app("s")
    keys = "ab"[: len(large)]
    script.ask("s", *keys, vcore=2)  # the shape of the gang still has nodes
    assert news(script.schedule()) == [f"s/{k}-0 on n{30 + at:03}" for at, k in enumerate(keys)]
    script.node("n100", vcore=4)
    script.node("n101", vcore=2)
    assert len(news(script.schedule())) == members


def test_gangs_among_other_asks_are_placed_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    script = cluster("atomic", "fair", [100] * 4)
    script.check = False
    for at in range(10):
        script.app(f"s{at}", queue="root.other")
        script.ask(f"s{at}", "first", vcore=1)
        gang(script, f"g{at}", [("t", 10, 1)])
    script.schedule()
    decide, singly = batch.decide, []

    def counted(*arguments: object, **more: object) -> bool:
        singly.append(1)
        return decide(*arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(batch, "decide", counted)
    for at in range(10):
        script.ask(f"s{at}", *[f"k{each}" for each in range(10)], vcore=1)
        gang(script, f"h{at}", [("t", 10, 1)])
    assert len(news(script.schedule())) == 200
    assert len(singly) < 10


def test_q2_a_plan_with_predicates_scores_each_node_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each member is asked about on its own, but only the node that the last one took has changed."""
    script = cluster("atomic", "fair", [4] * 50)
    refuse(script, lambda key, node: int(node[-1]) % 2 == 1, "odd")
    score, scored = NodeIndex.policy_score, []

    def counted(index: NodeIndex, node: Node, shape: Shape) -> float:
        scored.append(node)
        return score(index, node, shape)

    monkeypatch.setattr(NodeIndex, "policy_score", counted)
    gang(script, "g", [("t", 40, 1)])
    placed = news(script.schedule())
    assert len(placed) == 40
    assert {int(line[-1]) % 2 for line in placed} == {0}
    assert len(scored) <= 50 + 40


@pytest.mark.parametrize("sort", ["fair", "binpacking", "bestfit"])
@pytest.mark.parametrize("seed", range(2))
def test_q2_first_nodes_are_enough(sort: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan with predicates is that among all nodes, and looks at few of them where these are accepted."""
    places: list[list[str]] = []
    score, scored = NodeIndex.policy_score, [0, 0]

    def counted(index: NodeIndex, node: Node, shape: Shape) -> float:
        scored[len(places)] += 1
        return score(index, node, shape)

    monkeypatch.setattr(NodeIndex, "policy_score", counted)
    for few in (1, 1_000):
        monkeypatch.setattr(plan, "_FEW", few)
        random = Random(seed)
        script = cluster("atomic", sort, [random.randint(1, 6) for _ in range(120)])
        refused = random.choice((0, 0, 3, 40))
        script.scheduler.set_predicate(
            "rm",
            lambda key, node, _, refused=refused: "no" if int(node[1:]) % 41 < refused else None,
        )
        found: list[str] = []
        for at in range(12):
            groups = [(name, random.randint(1, 4), random.randint(1, 3)) for name in "tu"]
            gang(script, f"g{at}", groups[: random.randint(1, 2)])
            found += news(script.schedule())
        places.append(found)
    assert places[0] == places[1] != []
    assert refused or scored[0] * 2 < scored[1]


@pytest.mark.parametrize("nodes", [3, 5])
def test_q2_members_make_way_for_one_that_predicates_accept_nowhere_else(nodes: int) -> None:
    """The last one gets the node of the first, which gets that of the second, which gets a third node."""
    script = cluster("atomic", "binpacking", [1] * nodes)
    accepted = [("n000", "n001"), ("n001", "n002"), ("n000",)]
    refuse(script, lambda key, node: node not in accepted[int(key[-1])])
    gang(script, "g", [("t", 3, 1)])
    assert [line.split()[-1] for line in news(script.schedule())] == ["n001", "n002", "n000"]


def replaced(seed: int) -> Script:
    """Gangs whose members have taken over their placeholders: of any size, with limits, on nodes that drain."""
    random = Random(seed)
    nodes = tuple(f"n{at}" for at in range(6))
    options = Options(journal_size=None, gang_admission="atomic")
    script = scripted(CONFIG, nodes=nodes, options=options, vcore=20)
    sizes = {f"g{at}": random.randint(1, 8) for at in range(6)}
    for at, (name, members) in enumerate(sizes.items()):
        queue = ("root.default", "root.other")[at % 2]
        script.app(name, queue, gang={"vcore": 2 * members})
        keys = [f"p{each}" for each in range(members)]
        script.ask(name, *keys, group="t", placeholder=True, vcore=2)
    script.schedule()
    for name, members in sizes.items():
        vcore = random.choice((2, 2, 2, 1, 3))
        keys = [f"m{each}" for each in range(members)]
        limit = random.choice((0, 0, 60_000))
        script.ask(name, *keys, group="t", vcore=vcore, timeout_ms=limit)
    script.schedule()
    if random.random() < 0.5:
        script.node(f"n{random.randrange(6)}", NodeInfo.DRAIN_NODE)
    random.shuffle(script.outstanding)
    return script


def confirm_together(script: Script) -> None:
    releases = AllocationReleasesRequest(allocationsToRelease=script.outstanding)
    script.outstanding = []
    script.send(AllocationRequest(rmID=script.rm_id, releases=releases))


def told(script: Script) -> tuple[list[str], list[str], list[str]]:
    """Messages, journal and event records."""
    story = [f"{r.key} {r.source} {r.trigger} {r.target}" for r in script.scheduler.journal]
    events = script.scheduler.events.batch(0, 10**9).records
    return script.log, story, [str(message_of(each)) for each in events]


@pytest.mark.parametrize("seed", range(12))
def test_confirmations_together_say_what_single_ones_say(seed: int) -> None:
    single, together = (replaced(seed) for _ in range(2))
    assert single.outstanding
    single.confirm()
    confirm_together(together)
    assert told(together) == told(single)


def test_g30_a_confirmation_that_comes_twice_in_a_message_counts_once() -> None:
    script = replaced(0)
    script.outstanding *= 2
    confirm_together(script)
    members = [line for line in script.log if line.startswith("new ") and "/m" in line]
    assert len(members) == len(set(members)) > 0


@pytest.mark.parametrize("sort", ["fair", "binpacking", "bestfit"])
@pytest.mark.parametrize(("others", "size"), [(2, 1), (2, 4), (7, 1)])
def test_m6_a_draining_node_takes_the_member_that_requires_it_and_no_other(
    sort: str, others: int, size: int
) -> None:
    """Also where that member is planned first, and where another order has to be searched for."""
    script = cluster("atomic", sort, [10, 6])
    script.node("n000", NodeInfo.DRAIN_NODE)
    script.app("g", gang={"vcore": 4 + others * size})
    script.ask(
        "g", "pinned", group="p", placeholder=True, vcore=4, tags={TAG_REQUIRED_NODE: "n000"}
    )
    script.ask("g", *(f"m{at}" for at in range(others)), group="m", placeholder=True, vcore=size)
    script.schedule()
    fits = others * size <= 6
    partition = script.scheduler.partition()
    held = {n: sorted(e.ask.ask_key for e in e.allocations) for n, e in partition.nodes.items()}
    if fits:
        assert held == {"n000": ["pinned"], "n001": [f"m{at}" for at in range(others)]}
    else:
        assert held == {"n000": [], "n001": []}
        (waits,) = script.scheduler.explain("g", "pinned").reasons
        assert "placed together or not at all" in waits
