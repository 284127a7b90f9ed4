"""The same decisions as the slow model of ``tests/oracle``, where it is less even than there (5.1 to 5.7, 2.5).

Limits are nested and change, nodes are in every order, and nothing is reserved.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tree_side import configuration, in_units

from quadriga.core.config import NODE_SORT_POLICIES
from tests.oracle.lines import Reader
from tests.oracle.models.model import Model
from tests.oracle.models.model_parts import sum_of
from tests.oracle.player import START, Player
from tests.oracle.scenario import V15
from tests.oracle.test_oracle_model import words

Resources = dict[str, int]
TYPES = ("gpu", "memory", "vcore")
USERS = ("ann", "bob", "cem", "dot")
GROUPS = ("g1", "g2", "g3")


# -- random queues ---------------------------------------------------------------------------------


@dataclass(eq=False)
class Grant:
    """What one entry of ``limits`` grants."""

    users: list[str]
    groups: list[str]
    resources: Resources
    applications: int

    def said(self) -> dict[str, Any]:
        most = {"maxresources": in_units(self.resources), "maxapplications": self.applications}
        found = {"users": self.users, "groups": self.groups} | most
        return {"limit": "x"} | {key: value for key, value in found.items() if value}


@dataclass(eq=False)
class Queue:
    name: str
    parent: Queue | None = None
    children: list[Queue] = field(default_factory=list)
    grants: list[Grant] = field(default_factory=list)
    max: Resources = field(default_factory=dict)
    guaranteed: Resources = field(default_factory=dict)
    max_applications: int = 0
    properties: dict[str, str] = field(default_factory=dict)

    @property
    def lineage(self) -> list[Queue]:
        return [self, *(self.parent.lineage if self.parent else ())]

    @property
    def path(self) -> str:
        return ".".join(queue.name for queue in reversed(self.lineage))

    def walk(self) -> Iterator[Queue]:
        """Parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def said(self) -> dict[str, Any]:
        limits = {"max": in_units(self.max), "guaranteed": in_units(self.guaranteed)}
        return {
            "name": self.name,
            "submitacl": "" if self.parent else "*",
            "parent": bool(self.children),
            "resources": {kind: limit for kind, limit in limits.items() if limit},
            "maxapplications": self.max_applications,
            "properties": self.properties,
            "limits": [grant.said() for grant in self.grants],
            "queues": [child.said() for child in self.children],
        }


def amounts(rng: random.Random, most: int) -> Resources:
    """Something of one type at least."""
    chosen = [name for name in TYPES if rng.random() < 0.7] or [rng.choice(TYPES)]
    return {name: rng.randint(1, most) for name in chosen}


def grow(rng: random.Random, queue: Queue, depth: int = 0) -> None:
    """One to three levels below it. Quotas grow downwards to the root, never up."""
    priority = "enabled" if rng.random() < 0.7 else "disabled"
    queue.properties["application.sort.priority"] = priority
    if depth:
        queue.properties["priority.offset"] = rng.choice(("0", "0", "0", "1", "-1", "5"))
        queue.properties["priority.policy"] = "fence" if rng.random() < 0.15 else "default"
    if depth == 0 or (depth < 3 and rng.random() < 0.35):
        for name in "abcd"[: rng.randint(1, 4)]:
            queue.children.append(Queue(name, queue))
            grow(rng, queue.children[-1], depth + 1)
    else:
        policy = rng.choice(("fifo", "fifo", "fair", "fair", "stateaware"))
        queue.properties["application.sort.policy"] = policy
    if depth:
        _bound(rng, queue)


def _bound(rng: random.Random, queue: Queue) -> None:
    below = sum_of(child.guaranteed for child in queue.children)
    if below:
        queue.guaranteed = {name: value + rng.randint(0, 2) for name, value in below.items()}
    elif not queue.children and rng.random() < 0.5:
        queue.guaranteed = amounts(rng, 6)
    if rng.random() < 0.4:
        largest = dict(queue.guaranteed)
        for each in queue.walk():
            for name, value in each.max.items():
                largest[name] = max(largest.get(name, 0), value)
        queue.max = {name: largest.get(name, 0) + rng.randint(1, 8) for name in amounts(rng, 1)}
    if all(child.max_applications for child in queue.children) and rng.random() < 0.3:
        most = max((child.max_applications for child in queue.children), default=0)
        queue.max_applications = most + rng.randint(1, 3)


def grant(rng: random.Random, root: Queue) -> None:
    """No entry exceeds that of the same name, or else of the wildcard, in a queue above."""
    for queue in root.walk():
        queue.grants = []
        if rng.random() < 0.45:
            entries = [_grant(rng, queue, *names) for names in _names(rng)]
            entries = [entry for entry in entries if entry.resources or entry.applications]
            if [name for entry in entries for name in entry.groups] == ["*"]:  # forbidden (2.2)
                entries = [entry for entry in entries if entry.users]
            queue.grants = entries


def _names(rng: random.Random) -> list[tuple[list[str], list[str]]]:
    users = rng.sample(USERS, rng.choice((0, 0, 1, 2)))
    groups = rng.sample(GROUPS, rng.choice((0, 0, 1, 2)))
    names = [([user], []) for user in users] + [([], [group]) for group in groups]
    if groups and rng.random() < 0.5:
        names.append(([], ["*"]))
    if rng.random() < 0.6:
        names.append((["*"], []))
    if len(users) == 2 and rng.random() < 0.5:  # one entry for two: each gets as much
        names = [(users, []), *names[2:]]
    return names


def _grant(rng: random.Random, queue: Queue, users: list[str], groups: list[str]) -> Grant:
    resources: Resources = amounts(rng, 7) if rng.random() < 0.8 else {}
    applications = rng.choice((0, 0, 1, 2, 3))
    ceilings, counts = [queue.max], [queue.max_applications]
    for each in queue.lineage[1:]:
        for kind, name in [*(("users", u) for u in users), *(("groups", g) for g in groups)]:
            known = {n: g for g in each.grants for n in getattr(g, kind)}
            bound = known.get(name) or known.get("*")
            if bound is not None:
                ceilings.append(bound.resources)
                counts.append(bound.applications)
    for ceiling in ceilings:
        resources = {n: min(v, ceiling.get(n, v)) for n, v in resources.items()}
    for count in counts:
        applications = min(applications, count) if count else applications
    return Grant(users, groups, resources, applications)


# -- both ------------------------------------------------------------------------------------------


class AtOnce(Player):
    """Makes the decisions of a step in one call."""

    def _schedule(self, count: int = 1) -> dict[str, Any]:
        self._service.step(START + self.now, limit=count)
        return {}

    def _scheduleIdle(self, count: int = 0) -> dict[str, Any]:
        self._service.step(START + self.now)
        return {}


class Both:
    """Ours and the slow model, told the same."""

    def __init__(self, rng: random.Random, limited: bool) -> None:
        self.rng, self.limited = rng, limited
        self.root = Queue("root")
        grow(rng, self.root)
        weights = rng.choice(
            ({"vcore": 1, "memory": 1}, {"vcore": 3, "memory": 1}, {"gpu": 1, "vcore": 2}, {})
        )
        self.policy = {"type": rng.choice(NODE_SORT_POLICIES), "resourceweights": weights}
        self.leaves = [queue.path for queue in self.root.walk() if not queue.children]
        self.serial = 0
        self.model, self.player = Model(), AtOnce([])
        self.reader = Reader(V15, self.model.starts_aware)
        self.configure("register")
        for _ in range(rng.randint(1, 6)):
            self.add_node()
        for _ in range(rng.randint(1, 6)):
            self.add_app()

    def play(self, op: str, **step: Any) -> None:
        answer = self.player.play({"op": op, **step})
        assert not answer.done.keys() & {"error", "unknown", "wrong"}, answer.done
        ours = words(self.reader.read(op, answer.callbacks), set())
        theirs = self.model.play({"op": op, **step})
        assert [w for w in ours if w[0] == "new"] == [w for w in theirs if w[0] == "new"]
        assert sorted(ours) == sorted(theirs)

    def name(self, kind: str) -> str:
        self.serial += 1
        return f"{kind}{self.serial:03}"

    def configure(self, op: str = "updateConfiguration") -> None:
        if self.limited:
            grant(self.rng, self.root)
        self.play(op, config=configuration(self.root.said(), nodesortpolicy=self.policy))

    def add_node(self) -> None:
        self.play("addNode", nodeID=self.name("n"), resources=amounts(self.rng, 12))

    def add_app(self) -> None:
        user, groups = self.rng.choice(USERS), self.rng.sample(GROUPS, self.rng.randint(0, 3))
        queue = self.rng.choice(self.leaves)
        self.play(
            "addApp", appID=self.name("app"), queue=queue, user=user, groups=groups or ["none"]
        )

    def ask(self) -> None:
        rng = self.rng
        app = rng.choice(list(self.model.apps))
        keys = [self.name("k") for _ in range(rng.choice((1, 1, 1, 2, 3)))]
        priority = rng.choice((0, 0, 0, 1, 2, -1))
        self.play("ask", appID=app, keys=keys, resources=amounts(rng, 4), priority=priority)

    def change_ask(self) -> None:
        """It keeps its place (I17)."""
        asked = [ask for app in self.model.apps.values() for ask in app.asks.values()]
        if asked:
            ask = self.rng.choice(asked)
            ask.resources, ask.priority = amounts(self.rng, 4), self.rng.choice((0, 1, 2))
            step = {"resources": ask.resources, "priority": ask.priority, "keys": [ask.key]}
            answer = self.player.play({"op": "ask", "appID": ask.app.app_id, **step})
            assert not answer.done.keys() & {"error", "unknown", "wrong"} and not answer.callbacks

    def release(self) -> None:
        held = [(name, key) for name, a in self.model.apps.items() for key in a.allocations]
        if held:
            app, key = self.rng.choice(held)
            self.play("releaseAlloc", appID=app, allocationID=f"{key}-0")

    def release_ask(self) -> None:
        asked = [(name, key) for name, a in self.model.apps.items() for key in a.asks]
        if asked:
            app, key = self.rng.choice(asked)
            self.play("releaseAsk", appID=app, key=key)

    def change_node(self) -> None:
        rng = self.rng
        if not self.model.nodes:
            return
        actions = ("DRAIN_NODE", "DRAIN_TO_SCHEDULABLE", "UPDATE", "DECOMISSION")
        step: dict[str, Any] = {"action": rng.choices(actions, (1, 1, 2, 1))[0]}
        node = rng.choice(list(self.model.nodes.values()))
        if step["action"] == "UPDATE" and rng.random() < 0.5:
            step["occupied"] = amounts(rng, 3)
        elif step["action"] == "UPDATE":
            step["resources"] = amounts(rng, 12)
        if step["action"] != "DRAIN_TO_SCHEDULABLE" or not node.schedulable:
            self.play("nodeAction", nodeID=node.node_id, **step)

    def schedule(self) -> None:
        count = self.rng.choice((1, 2, 3, 1000))
        self.play("scheduleIdle" if count == 1000 else "schedule", count=count)

    def run(self, steps: int) -> None:
        does = {
            self.ask: 9, self.change_ask: 1, self.schedule: 6, self.release: 4, self.release_ask: 1,
            self.add_app: 1, self.add_node: 1, self.change_node: 2, self.configure: 0.3 * self.limited,
        }  # fmt: skip
        for _ in range(steps):
            self.rng.choices(list(does), list(does.values()))[0]()
        self.play("scheduleIdle", count=1000)


LIMITED = pytest.mark.parametrize("limited", [False, True], ids=["plain", "with limits"])
#: in 1041 a limit gets room while a level is blocked wholly
LONG = (1000, 1041)
RUNS = [(n, 60) for n in range(12)] + [(n, 400) for n in LONG]


@LIMITED
@pytest.mark.parametrize(("seed", "steps"), RUNS)
def test_x5_12_the_same_decisions_as_the_reference(seed: int, steps: int, limited: bool) -> None:
    Both(random.Random(seed), limited).run(steps)


@LIMITED
@settings(max_examples=max(5, settings.default.max_examples // 10))  # each is dear
@given(st.randoms(use_true_random=False))
def test_x5_12_same_decisions_as_the_reference_shrunk(limited: bool, rng: random.Random) -> None:
    Both(rng, limited).run(25)
