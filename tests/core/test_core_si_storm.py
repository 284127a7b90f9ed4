"""Everything at once: random messages of every kind, reloads and lost connections included.

After each step the invariants hold (6.1); after each full round nothing that could be placed is left,
which a slow and simple reading of the rules finds out; and in the end all books are empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

import pytest

from quadriga.core import Options, RequestError
from quadriga.core.model.application import Application
from quadriga.core.model.ask import Ask
from quadriga.core.model.partition import Partition
from quadriga.fsm import application as life
from quadriga.si import Allocation, AllocationRequest
from quadriga.sim.script import Script, resource

APPS = [f"app-{n}" for n in range(6)]
KEYS = [f"k{n}" for n in range(8)]
NODES = [f"n{n}" for n in range(6)]
LEAVES = [f"root.{path}" for path in ("a", "b", "c", "a.x", "b.x", "c.y")]


def configuration(random: Random) -> str:
    """Some of the queues a, b and c, each a leaf or the parent of x and y."""
    chance = random.random
    queues = []
    for name in "abc":
        if chance() < 0.2:
            continue
        policy = random.choice(["fifo", "fair", "stateaware"])
        properties = [f"application.sort.policy: {policy}"]
        for text, likely in [
            (f"priority.offset: '{random.randint(-3, 3)}'", 0.3),
            ("priority.policy: fence", 0.2),
            ("gang.hold: 'false'", 0.2),
            ("gang.admission: incremental", 0.2),
            ("gang.wait.limit: 20s", 0.2),
            ("application.sort.priority: disabled", 0.3),
        ]:
            if chance() < likely:
                properties.append(text)
        most = f", maxapplications: {random.randint(1, 3)}" if chance() < 0.4 else ""
        quota = f", resources: {{max: {{vcore: {random.randint(2, 10)}}}}}"
        queue = f"name: {name}{quota if chance() < 0.5 else ''}{most}"
        own = f"properties: {{{', '.join(properties)}}}"
        if chance() < 0.3:
            queue += f", queues: [{{name: x{most}, {own}}}, {{name: y{most}}}]"
        else:
            queue += f", {own}"
        queues.append(f"{{{queue}}}")
    sort = random.choice(["fair", "binpacking"])
    return (
        f"partitions: [{{name: default, nodesortpolicy: {{type: {sort}}}, queues: [{{name: root, "
        f"submitacl: '*', queues: [{', '.join(queues)}]}}]}}]"
    )


class Storm:
    """One run: a scripted resource manager that does anything."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.script = Script(
            configuration(self.random),
            extra={"si.messageOrder": self.random.choice(["design", "k8shim"])},
            version=self.random.choice(["", "1.5"]),
            options=Options(journal_size=1000, batch=self.random.choice([1, 5])),
        )
        self.refused: set[tuple[str, str]] = set()
        if seed % 3 == 0:
            pairs = [(key, node) for key in KEYS for node in NODES]
            self.refused = set(self.random.sample(pairs, len(pairs) // 3))
            self.script.scheduler.set_predicate("rm", self.predicate)
        self.paused = False
        self.actions: list[tuple[int, Callable[[], object]]] = [
            (24, self.ask),
            (16, self.decide),
            (12, self.submit),
            (10, self.node),
            (8, self.wait),
            (8, self.confirm),
            (6, self.release),
            (4, self.remove),
            (4, self.release_ask),
            (3, self.reload),
            (2, self.recover),
            (1, self.connection),
        ]

    def predicate(self, key: str, node: str, allocate: bool) -> str | None:
        return "no" if (key, node) in self.refused else None

    def run(self, steps: int) -> None:
        weights, actions = zip(*self.actions, strict=True)
        for _ in range(steps):
            try:
                self.random.choices(actions, weights)[0]()
            except RequestError as refused:
                assert refused.field == "config" or "R7" in refused.reason, refused

    # -- what it does --------------------------------------------------------------------------

    def ask(self) -> None:
        random = self.random
        tags = {"yunikorn.apache.org/requiredNode": random.choice(NODES)}
        self.script.ask(
            random.choice(APPS),
            *random.sample(KEYS, random.randint(1, 3)),
            group=random.choice(["", "g", "h"]),
            placeholder=random.random() < 0.4,
            repeat=random.choice([1, 1, 1, 2, 3]),
            priority=random.choice([0, 0, 1, -1]),
            timeout_ms=random.choice([0, 0, 0, 5000]),
            tags=tags if random.random() < 0.1 else None,
            vcore=random.randint(0, 3) * 1000,
            **({"gpu": 1} if random.random() < 0.1 else {}),
        )

    def decide(self) -> None:
        limit = self.random.choice([None, None, 1, 2])
        self.script.schedule(limit)
        if limit is None and not self.paused:
            if self.refused:  # whom predicates refused is tried again in the next round
                self.script.schedule()
            partition = self.script.scheduler.partition()
            assert not (left := list(self.left_over(partition))), left

    def submit(self) -> None:
        random = self.random
        self.script.app(
            random.choice(APPS),
            random.choice(LEAVES),
            gang={"vcore": random.randint(1, 6) * 1000} if random.random() < 0.5 else None,
            style=random.choice(["Soft", "Hard"]),
            timeout_ms=random.choice([0, 0, -1, 3000, 8000]),
        )

    def node(self) -> None:
        random = self.random
        self.script.node(
            random.choice(NODES),
            random.choice([1, 1, 1, 2, 3, 4, 5, 6]),  # type: ignore[arg-type]
            occupied={"vcore": 1000} if random.random() < 0.2 else None,
            vcore=random.randint(0, 5) * 1000,
            gpu=random.randint(0, 2),
        )

    def wait(self) -> None:
        self.script.advance(self.random.choice([0.5, 1, 2, 3, 10, 31, 70]))

    def confirm(self) -> None:
        self.random.shuffle(self.script.outstanding)
        self.script.confirm(most=self.random.choice([1, 2, None]))

    def release(self) -> None:
        held = [
            (app.app_id, uuid)
            for app in self.script.scheduler.partition().applications.values()
            for uuid in (*app.allocations, *app.placeholders)
        ]
        if held:
            app_id, uuid = self.random.choice(held)
            everything = self.random.random() < 0.2
            kind = self.random.choice([0, 1, 1, 1, 2, 3, 4])
            self.script.release(app_id, "" if everything else uuid, kind)  # type: ignore[arg-type]

    def remove(self) -> None:
        self.script.remove_app(self.random.choice(APPS))

    def release_ask(self) -> None:
        self.script.release_ask(self.random.choice([*APPS, ""]), self.random.choice([*KEYS, ""]))

    def reload(self) -> None:
        self.script.configure(configuration(self.random))

    def recover(self) -> None:
        random = self.random
        found = Allocation(
            allocationKey=random.choice(KEYS),
            UUID=f"{random.choice(KEYS)}-{random.randint(0, 5)}",
            applicationID=random.choice(APPS),
            nodeID=random.choice(NODES),
            resourcePerAlloc=resource({"vcore": 1000}),
            taskGroupName=random.choice(["", "g"]),
            placeholder=random.random() < 0.5,
        )
        self.script.send(AllocationRequest(rmID="rm", allocations=[found]))

    def connection(self) -> None:
        scheduler, now = self.script.scheduler, self.script.now
        if self.paused:
            scheduler.reconnect("rm", now)
        else:
            scheduler.disconnect("rm", now)
            for _ in range(5):
                self.ask()
                assert not any(line.startswith("new") for line in self.script.schedule())
            scheduler.reconnect("rm", now)

    # -- what may not be left ------------------------------------------------------------------

    def left_over(self, partition: Partition) -> Iterator[str]:
        """Asks that a reader of the rules would place now."""
        for app in partition.applications.values():
            if _is_served(app):
                for ask in app.asks.values():
                    if ask.state == "Pending" and _may_go(app, ask):
                        yield from self._places(partition, app, ask)

    def _places(self, partition: Partition, app: Application, ask: Ask) -> Iterator[str]:
        need = [(place, value) for place, value in enumerate(ask.vector) if value]
        for queue in app.queue.lineage:
            limits = dict(queue.limits)
            if any(at in limits and queue.allocated[at] + v > limits[at] for at, v in need):
                return
        for node in partition.nodes.values():
            if (
                node.state == "Schedulable"
                and ask.required_node in ("", node.node_id)
                and (node.reservation is None or node.reservation.ask is ask)
                and all(node.available[at] >= value for at, value in need)
                and (ask.ask_key, node.node_id) not in self.refused
            ):
                yield f"{ask.key} of {app.queue.path} fits {node.node_id}"

    def end(self) -> None:
        """Everything goes, and nothing may be left of it."""
        script, partition = self.script, self.script.scheduler.partition()
        for app_id in list(partition.applications):
            script.remove_app(app_id)
        for node in partition.nodes.values():
            assert (node.allocations, node.reservation) == ({}, None)
        for queue in partition.queues():
            assert not any((*queue.allocated, *queue.pending, *queue.promised))
            assert (queue.mask, queue.running, queue.priorities) == (0, 0, {})
            assert not (queue.admitted or queue.gated)
        assert not (partition.reservations or partition.aside or partition.unhinted)
        script.advance(80 * 3600)
        assert all(queue.state == "Active" for queue in partition.queues())
        assert not partition.ended
        assert script.scheduler.next_deadline() is None


def _is_served(app: Application) -> bool:
    """The application's state, and its turn (2.9)."""
    leaf = app.queue
    if app.state in life.COUNTED and not leaf.stateaware:
        return True
    if app.state == life.RUNNING:
        return True
    if app.state not in life.SERVED:
        return False
    if leaf.stateaware:
        others = leaf.apps.values()  # type: ignore[attr-defined]
        starting = [other for other in others if other.state == life.STARTING]
        if starting:  # several only after a reload or a recovery
            return min(starting, key=lambda other: other.seq) is app
        waiting = [
            other
            for other in others
            if other.state == life.ACCEPTED
            and any(ask.state == "Pending" for ask in other.asks.values())
        ]
        if min(waiting, key=lambda other: other.seq, default=app) is not app:
            return False
    return app in leaf.admitted or all(queue.admits() for queue in leaf.lineage)


def _may_go(app: Application, ask: Ask) -> bool:
    """What gangs make of the ask: the gate (X16), the hold (X9), a placeholder to wait for."""
    whole = app.placeholder_ask
    if ask.placeholder:
        if whole is None or app.gang_started or app.queue.properties.gang_admission != "whole":
            return True
        return all(
            place >= len(whole)
            or whole[place] <= max(0, limit - queue.allocated[place] - queue.promised[place])
            for queue in app.queue.lineage[:-1]
            for place, limit in queue.limits
        )
    if app.holding:
        return False
    group = app.task_groups.get(ask.task_group)
    return group is None or group.count <= group.replaced + group.timed_out


@pytest.mark.parametrize("seed", [*range(24), 179, 790])
def test_v1_to_v9_nothing_is_lost_in_a_storm(seed: int) -> None:
    storm = Storm(seed)
    storm.run(400)
    storm.end()


def test_v10_two_storms_of_the_same_seed_are_the_same() -> None:
    logs = []
    for _ in range(2):
        storm = Storm(7)
        storm.run(200)
        logs.append([m.SerializeToString(deterministic=True) for _, m in storm.script.messages])
    assert logs[0] == logs[1]
