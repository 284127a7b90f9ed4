"""Batches and repeated asks change nothing: a scheduler that decides singly says and shows the same."""

from collections import Counter
from random import Random
from typing import Any

import pytest
import tree_side
from core_world import queues, serve

from quadriga import si
from quadriga.core import Options
from quadriga.core.events.records import message_of
from quadriga.core.intake import asks, repeated_asks
from quadriga.core.runtime.outbox import Output
from quadriga.core.scheduling import batch, turns
from quadriga.core.scheduling.cycle import decide
from quadriga.sim.scripted.script import ONE_QUEUE, Script, resource
from tests.core.scheduling.test_core_everything import history

RM = "rm"
USERS = ("ann", "bob", "cyd")


def decided_singly(kernel: Any, partition: Any, most: int) -> tuple[int, bool]:
    made = 0
    while made != most:
        made += 1
        if not decide(kernel, partition):
            return made, False
    return made, True


@pytest.fixture
def no_batches(monkeypatch: pytest.MonkeyPatch) -> Any:
    def switch() -> None:
        monkeypatch.setattr(turns, "decide_all", decided_singly)
        monkeypatch.setattr(repeated_asks, "_can_be_repeated", lambda ask, fires: False)

    return switch


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch is tried before every decision, however little there may be to decide."""
    monkeypatch.setattr(batch, "_MIN_BATCH", 0)
    monkeypatch.setattr(batch, "_MAX_PAUSE", 1)


def configuration(random: Random) -> str:
    """Up to three levels, with quotas that come in the way, some with limits or another order."""

    def queue(name: str, depth: int, room: int) -> dict[str, Any]:
        found: dict[str, Any] = {"name": name}
        if random.random() < 0.5:
            most = room = random.randrange(room // 3, room)  # a child's is within its parent's
            found["resources"] = {"max": {"vcore": f"{most}m", "memory": most * 10}}
        if random.random() < 0.3:
            found["properties"] = {"priority.offset": str(random.randrange(-2, 3))}
        if depth < 2 and random.random() < 0.5:
            children = range(random.randrange(1, 4))
            found["queues"] = [queue(f"{name}{at}", depth + 1, room // 2) for at in children]
        else:
            policy = random.choice(("fifo", "fifo", "expected", "fair", "fair", "stateaware"))
            found["properties"] = {"application.sort.policy": policy}
            if random.random() < 0.3:
                users = [random.choice(("ann", "*"))]
                most_each = {"vcore": f"{room // 4}m"}
                found["limits"] = [{"limit": "some", "users": users, "maxresources": most_each}]
        return found

    names = random.choice(("a", "abc", "abc", "abcdefghijklmnopq"))  # also more than are few
    below = [queue(name, 1, 400_000) for name in names]
    return tree_side.configuration({"name": "root", "submitacl": "*", "queues": below})


class World(Script):
    """A scheduler in a random cluster, and everything it said."""

    def __init__(self, seed: int, batch: int, policy: str = "fair") -> None:
        self.random = random = Random(seed)
        self.said: list[tuple[str, bytes]] = []
        self.live: list[si.Allocation] = []
        options = Options(
            batch=batch,
            journal_size=None,
            node_sort_policy=policy,
            gang_admission="whole" if seed % 3 else "atomic",
        )
        extra = {"event.trackingEnabled": "true"}
        super().__init__(configuration(random), options=options, extra=extra, check=False)
        for at in range(random.randrange(5, 60)):
            self.node(f"n{at:03}", vcore=random.choice((8_000, 16_000, 33_000)), memory=200_000)
        leaves = [q.path for q in self.scheduler.partition().leaves()]
        most = random.choice((30, 30, 30, 120))  # also more than are few in a leaf
        self.apps = [f"app-{at}" for at in range(random.randrange(2, most))]
        self.gangs = [app for app in self.apps if random.random() < 0.4]
        for app in self.apps:
            user = random.choice(USERS)
            announced = random.choice((3, 20, 60))  # what comes then may be more or less
            gang = {"vcore": 500 * announced, "memory": 100 * announced}
            style = random.choice(("Soft", "Hard"))
            gang_of = gang if app in self.gangs else None
            self.app(app, random.choice(leaves), user=user, gang=gang_of, style=style)

    def _heard(self, outputs: list[Output]) -> list[str]:
        for rm_id, message in outputs:
            self.said.append((rm_id, message.SerializeToString(deterministic=True)))
            if isinstance(message, si.AllocationResponse):
                self.live.extend(message.new)
        return super()._heard(outputs)

    def ask_much(self) -> None:
        """Runs of repeated asks, some of several applications in one request."""
        random = self.random
        request = si.AllocationRequest(rmID=RM)
        for _ in range(random.randrange(1, 6)):
            app, stem = random.choice(self.apps), random.randrange(10**6)
            size = resource(
                {"vcore": random.choice((0, 500, 1000, 3000)), "memory": random.choice((1, 5_000))}
            )
            priority, repeats = random.choice((0, 0, 0, 1, 5)), random.choice((1, 1, 1, 3, 0))
            more = random.choice(({}, {}, {}, {"executionTimeoutMilliSeconds": 5_000}))
            tags = random.choice(({}, {}, {"kubernetes.io/meta/namespace": "n"}))
            if tags and stem % 2:
                tags = {"expected.runtime": ("2", "60", "3600")[stem % 3]}  # Q7
            if app in self.gangs and random.random() < 0.8:
                size = resource({"vcore": 500, "memory": 100})
                group = random.choice("gh")
                more = {"taskGroupName": group, "placeholder": random.random() < 0.6}
            for number in range(random.choice((1, 2, 30, 120))):
                if random.random() < 0.02:
                    number //= 2  # again
                request.asks.add(
                    allocationKey=f"{stem}-{number}",
                    applicationID=app,
                    resourceAsk=size,
                    priority=priority,
                    maxAllocations=repeats,
                    tags=tags,
                    **more,
                )
        self.send(request)

    def stop_some(self) -> None:
        self.random.shuffle(self.live)
        request = si.AllocationRequest(rmID=RM)
        for each in self.live[: self.random.randrange(1, 80)]:
            request.releases.allocationsToRelease.add(
                partitionName="default",
                applicationID=each.applicationID,
                UUID=each.UUID,
                terminationType=si.TerminationType.STOPPED_BY_RM,
            )
        del self.live[: len(request.releases.allocationsToRelease)]
        self.send(request)

    def confirm_some(self) -> None:
        """What the scheduler asked back is gone."""
        request = si.AllocationRequest(rmID=RM)
        gone = self.outstanding[: self.random.randrange(1, 60)]
        request.releases.allocationsToRelease.extend(gone)
        del self.outstanding[: len(gone)]
        self.send(request)

    def step(self) -> None:
        self.random.choice((self.ask_much, self.ask_much, self.stop_some, self.confirm_some))()
        self.schedule(self.random.choice((None, None, 5, 50)))
        self.advance(self.random.choice((0, 1, 3)))

    def seen(self) -> dict[str, Any]:
        partition, tally = self.scheduler.partition(), self.scheduler.tally
        return {
            "said": self.said,
            "journal": list(self.scheduler.journal),
            "events": [str(message_of(r)) for r in self.scheduler.events.batch(0, 10**9).records],
            "books": {
                queue.path: (queue.allocated, queue.pending, queue.make_rank())
                for queue in partition.queues()
            },
            "apps": {
                app.app_id: (
                    app.state,
                    app.allocated,
                    app.allocated_placeholder,
                    app.pending,
                    app.reserved_headroom,
                    app.max_allocated,
                    {n: (g.count, g.pending, g.allocated) for n, g in app.gang.task_groups.items()},
                    *app.asks,
                )
                for app in partition.applications.values()
            },
            "users": {
                name: {path: ledger.usage for path, ledger in account.ledgers.items()}
                for name, account in partition.users.items()
            },
            "nodes": {
                node.node_id: (node.allocated, node.available, [a.key for a in node.allocations])
                for node in partition.nodes.values()
            },
            "counts": (partition.waiting.allocation_epoch, partition.waiting.demand_epoch),
            "tally": {name: getattr(tally, name) for name in tally.__slots__},
        }


def lived(seed: int, batch: int, policy: str = "fair") -> dict[str, Any]:
    world = World(seed, batch, policy)
    for _ in range(25):
        world.step()
    return world.seen()


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("seed", "policy"),
    [(seed, "fair") for seed in range(5)]
    + [(seed, policy) for policy in ("binpacking", "bestfit") for seed in range(2)]
    + [pytest.param(seed, "fair", marks=pytest.mark.slow) for seed in range(100, 106)],
)
def test_with_batches_the_decisions_are_the_same(seed: int, policy: str, no_batches: Any) -> None:
    batch = (1, 1, 10)[seed % 3] if policy == "fair" else 1
    batched = lived(seed, batch, policy)
    no_batches()
    for what, seen in lived(seed, batch, policy).items():
        assert batched[what] == seen, what


@pytest.mark.interpreted
@pytest.mark.parametrize("seed", range(6))
def test_with_everything_at_once_they_decide_alike(seed: int, eager: None, no_batches: Any) -> None:
    """Gangs, limits, reservations, preemption, faults: most decisions are not simple."""
    batched = history(seed, 60, curious=False).log
    no_batches()
    assert batched == history(seed, 60, curious=False).log


@pytest.mark.interpreted
def test_batches_and_repeated_asks_occur(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the tests above would compare single decisions with themselves."""
    made: Counter[str] = Counter()

    def count(module: Any, name: str) -> None:
        real = getattr(module, name)

        def counted(*arguments: Any) -> Any:
            found = real(*arguments)
            made[name] += 1 if name == "missing" else found
            return found

        monkeypatch.setattr(module, name, counted)

    count(batch, "place_in_batch")
    count(batch, "replace_in_batch")
    count(asks, "add_repeated")
    count(batch.gang, "missing")
    said = [lived(seed, 1)["said"] for seed in range(6)]
    least = {"place_in_batch": 500, "replace_in_batch": 50, "add_repeated": 1000, "missing": 5}
    assert all(made[name] > number for name, number in least.items()), made
    assert sum(map(len, said)) > made["place_in_batch"]


def with_asks(*keys: tuple[str, int], **more: Any) -> tuple[World, Any]:
    """A world, and its first application with asks of 10 in one request: their keys and repeats."""
    world = World(2, 1)
    request = si.AllocationRequest(rmID=RM)
    for at, (key, repeats) in enumerate(keys):
        request.asks.add(
            allocationKey=key,
            applicationID="app-0",
            resourceAsk=resource({"memory": 10}),
            maxAllocations=repeats,
            **{name: value(at) for name, value in more.items()},
        )
    world.send(request)
    return world, world.scheduler.partition().applications["app-0"]


def pending(world: World, app: Any) -> int:
    return int(app.pending[world.scheduler.partition().registry.index["memory"]])


def test_x13_i17_repeated_asks_have_repeats_and_a_key_that_comes_twice_changes_the_ask() -> None:
    assert pending(*with_asks(*((f"pod-{at}", 3) for at in range(5)))) == 150
    world, app = with_asks(("a", 1), ("b", 1), ("b", 1), ("c", 1), ("a", 2))
    assert {key: ask.pending for key, ask in app.asks.items()} == {"a": 2, "b": 1, "c": 1}
    assert pending(world, app) == 40


@pytest.mark.parametrize("key", ["", "k" * 127, "k" * 128, "k" * 300, "schlüssel", "\n"])
def test_keys_of_repeated_asks_may_have_any_length_and_script(key: str) -> None:
    keys = ("first", key, f"{key}2", "last")
    _, app = with_asks(*((each, 1) for each in keys))
    assert list(app.asks) == [each for each in keys if each]


@pytest.mark.parametrize("key", ["k", "k" * 100, "k" * 300])
@pytest.mark.parametrize("tag", ["", "t", "t" * 300])
def test_an_ask_that_says_more_is_not_a_repeated_ask(key: str, tag: str) -> None:
    says_more = (False, True, False, False, True)
    keys = [f"{key}-{at}" for at in range(len(says_more))]
    tags = {"tag": tag} if tag else {}
    more = {"Originator": says_more.__getitem__, "tags": lambda at: tags}
    asks = with_asks(*((each, 1) for each in keys), **more)[1].asks
    assert list(asks) == keys
    assert [ask.seq - asks[keys[0]].seq for ask in asks.values()] == list(range(len(says_more)))
    assert tuple(ask.terms.originator for ask in asks.values()) == says_more
    assert all(ask.terms.tags.get("tag", "") == tag for ask in asks.values())


LIMITED = queues("default", default="limits: [{users: [ann], maxresources: {vcore: 2}}]")


def test_5_6_whose_other_asks_a_limit_stops_gives_way_within_a_batch(eager: None) -> None:
    script = Script(LIMITED)
    script.node("n1", vcore=100_000, memory=10**6)
    for app, user in (("first", "ann"), ("second", "bob")):
        script.app(app, user=user)
        script.ask(app, "start", memory=1)
    script.schedule()
    script.ask("first", "large", vcore=3000)  # more than ann may have
    script.schedule()
    for at in range(5):
        script.ask("first", f"pod-{at}", memory=2)
        script.ask("second", f"pod-{at}", memory=2)
    serve(script, "second", "large", vcore=3000)
    partition = script.scheduler.partition()
    waiting = [ask.key for app in partition.applications.values() for ask in app.asks.values()]
    assert waiting == ["first/large"]
    keys = [a.key for a in partition.nodes["n1"].allocations]
    pods = [f"{app}/pod-{at}-0" for app in ("first", "second") for at in range(5)]
    assert keys[2:] == [*pods, "second/large-0"]


def test_i32_a_batch_keeps_the_quota_of_root_where_a_node_has_shrunk_below_what_runs_there() -> (
    None
):
    script = Script(ONE_QUEUE)
    script.node("n1", vcore=100)
    script.app("app")
    serve(script, "app", "large", vcore=100)
    script.node("n2", vcore=100)
    script.node("n1", si.NodeInfo.UPDATE, vcore=60)
    script.ask("app", *(f"k{at}" for at in range(40)), vcore=3)
    assert len(script.schedule()) == 20  # n2 has room for 33, root for 60


@pytest.mark.parametrize("policy", ["fair", "binpacking", "bestfit"])
@pytest.mark.parametrize("budget", [False, True])
def test_i32_the_last_node_goes_while_asks_wait(policy: str, budget: bool) -> None:
    """A call that ended at its limit starts with a batch at once: there may be no nodes by then."""
    one_policy = f"    nodesortpolicy: {{type: {policy}}}\n"
    script = Script(ONE_QUEUE + one_policy)
    script.node("n1", vcore=1_000)
    script.app("app")
    script.ask("app", *(f"k{at}" for at in range(100)), vcore=1)
    if budget:
        script.scheduler.schedule(script.now, budget=20)
    else:
        script.schedule(20)
    assert script.scheduler.unfinished
    script.node("n1", si.NodeInfo.DECOMISSION)
    assert script.schedule() == []
    assert not script.scheduler.unfinished
    script.node("n2", vcore=1_000)
    assert len(script.schedule()) == 80


def test_i32_the_last_node_goes_while_members_wait_for_placeholders() -> None:
    script = Script()
    script.node("n1", vcore=100)
    script.app("gang", gang={"vcore": 40})
    serve(script, "gang", *(f"p{at}" for at in range(40)), group="g", placeholder=True, vcore=1)
    script.ask("gang", *(f"m{at}" for at in range(40)), group="g", vcore=1)
    script.schedule(10)
    assert script.scheduler.unfinished
    script.node("n1", si.NodeInfo.DECOMISSION)
    assert script.schedule() == []


def test_i9_an_error_in_the_decisions_of_one_does_not_stop_the_others() -> None:
    """A predicate that raises ends a call; in the next one all others come first."""
    first = Script(rm_id="a")
    second = Script(rm_id="b", scheduler=first.scheduler)

    def broken(key: str, node_id: str, allocate: bool) -> str | None:
        raise OSError("out of order")

    first.scheduler.set_predicate("a", broken)
    for script in (first, second):
        script.node("n1", vcore=9)
        script.app("app")
        script.ask("app", "k", vcore=1)
    with pytest.raises(OSError, match="out of order"):
        first.schedule()
    with pytest.raises(OSError, match="out of order"):
        first.schedule()
    assert list(first.scheduler.partition(rm_id="a").applications["app"].allocations) == []
    assert list(first.scheduler.partition(rm_id="b").applications["app"].allocations) == ["k-0"]
