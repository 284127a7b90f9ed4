"""Invented scenarios in which queues take back what is guaranteed to them (5.9)."""

import random

from tests.oracle.explanations.invented import Branch, Step, Tree, amount, with_root

_STEPS = ("schedule", "advance", "confirm", "release", "idle", "low", "drain")


def invent_preemption(seed: int, length: int = 110, *, below_a_max: bool = False) -> list[Step]:
    return _Inventor(random.Random(seed), below_a_max).steps(length)


class _Inventor:
    def __init__(self, rng: random.Random, below_a_max: bool) -> None:
        self.rng = rng
        self.below_a_max = below_a_max
        self.serial = 0
        #: all asks and all nodes alike, as in the shared scenarios
        self.uniform = rng.random() < 0.5
        self.priorities = rng.random() < 0.3
        self.low: list[str] = []
        self.high: list[str] = []
        self.apps: list[str] = []
        self.asked: list[tuple[str, str]] = []

    def steps(self, length: int) -> list[Step]:
        rng = self.rng
        config = self.config_below_a_max() if self.below_a_max else self.config()
        steps: list[Step] = [{"op": "register", "config": config}]
        nodes = [f"n{at:02}" for at in range(rng.randint(2, 5))]
        for node in nodes:
            memory, vcore = (50, 50) if self.uniform else rng.choices((30, 50, 80), k=2)
            resources = {"memory": memory, "vcore": vcore * 100}
            steps.append({"op": "addNode", "nodeID": node, "resources": resources})
        for _ in range(rng.randint(1, 3)):
            steps.append(self.app(rng.choice(self.low)))
            self.apps.append(steps[-1]["appID"])
            steps += [self.ask(self.apps[-1], high=False) for _ in range(rng.randint(1, 4))]
        steps += [{"op": "scheduleIdle", "count": 400}, {"op": "advance", "ms": 210}]
        for queue in self.high:
            steps.append(self.app(queue))
            steps.append(self.ask(steps[-1]["appID"], high=True))
        while len(steps) < length:
            steps.append(self.step(nodes))
        return steps

    def step(self, nodes: list[str]) -> Step:
        rng = self.rng
        kind = rng.choices(_STEPS, (25, 12, 14, 8, 2, 4, 2))[0]
        if kind == "advance":
            return {"op": "advance", "ms": rng.choice((70, 210, 490, 560, 840, 1750, 16100))}
        if kind == "confirm":
            return {"op": "confirm"}
        if kind == "release":
            app, key = rng.choice(self.asked)
            return {"op": "releaseAlloc", "appID": app, "allocationID": f"{key}-0"}
        if kind == "idle":
            return {"op": "scheduleIdle", "count": 400}
        if kind == "low":
            return self.ask(rng.choice(self.apps), high=False)
        if kind == "drain":
            action = rng.choice(("DRAIN_NODE", "DRAIN_TO_SCHEDULABLE", "DRAIN_TO_SCHEDULABLE"))
            return {"op": "nodeAction", "nodeID": rng.choice(nodes), "action": action}
        return {"op": "schedule", "count": rng.randint(1, 3)}

    def app(self, queue: str) -> Step:
        self.serial += 1
        return {"op": "addApp", "appID": f"app{self.serial:03}", "queue": queue}

    def ask(self, app: str, *, high: bool) -> Step:
        rng = self.rng
        keys = []
        for _ in range(rng.randint(1, 5 if high else 8)):
            self.serial += 1
            keys.append(f"k{self.serial:04}")
        self.asked += [(app, key) for key in keys]
        size = 10 if self.uniform else rng.choice((5, 10, 20, 25))
        step: Step = {
            "op": "ask",
            "appID": app,
            "keys": keys,
            "resources": {"memory": size, "vcore": size * rng.choice((100, 100, 100, 50))},
            "allowPreemptSelf": rng.random() < 0.7 or (self.uniform and not high),
            "allowPreemptOther": high,
        }
        if self.priorities and rng.random() < 0.5:
            step["priority"] = rng.choice((1, 5, -5))
        if rng.random() < 0.08:
            step["originator"] = True
        return step

    def config(self) -> str:
        rng = self.rng
        top: Tree = []
        tree, above = top, "root"
        if rng.random() < 0.4:
            parent = _queue("p", guaranteed=rng.choice((0, 200)))
            top.append(parent)
            tree, above = parent.setdefault("queues", []), "root.p"
        for at in range(rng.randint(1, 2)):
            properties = {}
            if rng.random() < 0.15:
                properties["preemption.policy"] = rng.choice(("fence", "disabled"))
            if rng.random() < 0.15:
                properties["priority.offset"] = rng.choice(("5", "-5"))
            name = f"b{at:02}-low"
            tree.append(_queue(name, properties, guaranteed=rng.choice((0, 30, 50, 70))))
            self.low.append(f"{above}.{name}")
        for at in range(rng.randint(1, 2)):
            properties = {"preemption.delay": "1s"}
            if rng.random() < 0.15:
                properties["priority.offset"] = "10"
            if rng.random() < 0.1:
                properties["priority.policy"] = "fence"
            name = f"c{at:02}-high"
            guaranteed, most = rng.choice((0, 50, 50, 80)), rng.choice((0, 0, 100))
            top.append(_queue(name, properties, guaranteed=guaranteed, most=most))
            self.high.append(f"root.{name}")
        return with_root(top)

    def config_below_a_max(self) -> str:
        rng = self.rng
        outside = _queue("a-low", guaranteed=rng.choice((0, 20)))
        parent = _queue("p", most=rng.choice((80, 100, 120)))
        low = _queue("b-low", guaranteed=rng.choice((10, 20)))
        high = _queue("c-high", {"preemption.delay": "1s"}, guaranteed=rng.choice((30, 50)))
        self.low += ["root.a-low", "root.p.b-low"]
        self.high.append("root.p.c-high")
        return with_root([outside, {**parent, "queues": [low, high]}])


def _queue(
    name: str, properties: dict[str, str] | None = None, *, guaranteed: int = 0, most: int = 0
) -> Branch:
    shares = {"guaranteed": guaranteed, "max": most}
    resources = {what: amount(share) for what, share in shares.items() if share}
    given = {"properties": properties, "resources": resources}
    return {"name": name, **{key: value for key, value in given.items() if value}}
