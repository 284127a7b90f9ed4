"""Invented scenarios, in the manner of the random ones of the shared folder."""

import json
import random
from typing import Any

Step = dict[str, Any]
Branch = dict[str, Any]
Tree = list[Branch]

USERS = ("ann", "bob", "cem")
GROUPS = ("g1", "g2")


def invent(seed: int, length: int = 120) -> list[Step]:
    return _Inventor(random.Random(seed)).steps(length)


class _Inventor:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.leaves: list[str] = []
        #: steps that follow at once
        self.next: list[Step] = []
        self.apps: list[str] = []
        self.nodes: list[str] = []
        #: what was asked for: application, key
        self.asked: list[tuple[str, str]] = []
        self.serial = 0
        self.gpus = rng.random() < 0.3
        self.priorities = rng.random() < 0.4
        self.guarantees = rng.random() < 0.7
        #: small clusters fill up, and asks reserve
        self.tight = rng.random() < 0.7
        self.turns = rng.random() < 0.3
        self.limited = rng.random() < 0.3
        self.occupied = rng.random() < 0.2
        #: gangs: application, task group, what a member needs, real asks to come
        self.gangs: list[tuple[str, str, dict[str, int], int]] = []
        self.with_gangs = rng.random() < 0.5

    def steps(self, length: int) -> list[Step]:
        rng = self.rng
        self.tree = self.make_tree()
        steps: list[Step] = [{"op": "register", "config": self.config()}]
        steps += [self.add_node() for _ in range(rng.randint(2, 6 if self.tight else 15))]
        steps += [self.add_app() for _ in range(rng.randint(1, 3))]
        while len(steps) < length:
            steps.append(self.next.pop() if self.next else self.step())
        return [step for step in steps if step]

    def step(self) -> Step:
        kind = self.rng.choices(
            "ask schedule idle release unask advance app remove node config gang member confirm".split(),
            (28, 24, 3, 20, 3, 8, 3, 1, 5, 1, *((4, 15, 12) if self.with_gangs else (0, 0, 0))),
        )[0]
        rng = self.rng
        if kind == "ask":
            return self.ask()
        if kind == "schedule":
            return {"op": "schedule", "count": rng.randint(1, 6)}
        if kind == "idle":
            return {"op": "scheduleIdle", "count": 400}
        if kind == "release" and self.asked:
            app, key = rng.choice(self.asked)
            return {"op": "releaseAlloc", "appID": app, "allocationID": f"{key}-0"}
        if kind == "unask" and self.asked:
            app, key = rng.choice(self.asked)
            return {"op": "releaseAsk", "appID": app, "key": key}
        if kind == "app":
            return self.add_app()
        if kind == "remove" and len(self.apps) > 1:
            app = self.apps.pop(rng.randrange(len(self.apps)))
            self.asked = [each for each in self.asked if each[0] != app]
            return {"op": "removeApp", "appID": app}
        if kind == "node":
            return self.change_node()
        if kind == "config":
            return self.change_configuration()
        if kind == "gang":
            return self.add_gang()
        if kind == "member" and self.gangs:
            return self.member()
        if kind == "confirm":
            return {"op": "confirm"}
        return {"op": "advance", "ms": rng.choice((150, 500, 700, 2100, 5000, 5000, 31000))}

    def add_gang(self) -> Step:
        """A gang; its placeholders are asked for with the next steps, most often all of them."""
        rng = self.rng
        step = self.add_app()
        app, count = step["appID"], rng.randint(1, 5)
        size = {"memory": rng.randint(5, 30), "vcore": rng.randint(5, 30) * 100}
        step["placeholderAsk"] = {name: value * count for name, value in size.items()}
        step["gangSchedulingStyle"] = rng.choice(("Soft", "Hard"))
        step["executionTimeoutMs"] = rng.choice((3_000, 10_000, 60_000))
        keys = []
        for _ in range(count if rng.random() < 0.8 else rng.randint(1, count)):
            self.serial += 1
            keys.append(f"p{self.serial:04}")
        self.next.append(
            {
                "op": "ask",
                "appID": app,
                "keys": keys,
                "resources": size,
                "placeholder": True,
                "taskGroup": "tg",
            }
        )
        if rng.random() < 0.1:
            self.asked += [(app, key) for key in keys]
        self.gangs.append((app, "tg", size, count + rng.randint(-1, 1)))
        return step

    def member(self) -> Step:
        rng = self.rng
        at = rng.randrange(len(self.gangs))
        app, group, size, left = self.gangs[at]
        if left < 1:
            del self.gangs[at]
            return {}
        self.gangs[at] = app, group, size, left - 1
        self.serial += 1
        key = f"r{self.serial:04}"
        self.asked.append((app, key))
        smaller = rng.random() < 0.3
        size = {n: v - (rng.randint(0, v - 1) if smaller else 0) for n, v in size.items()}
        return {"op": "ask", "appID": app, "keys": [key], "resources": size, "taskGroup": group}

    # -- steps -----------------------------------------------------------------------------------------

    def add_app(self) -> Step:
        self.serial += 1
        app = f"app{self.serial:02}"
        self.apps.append(app)
        step: Step = {"op": "addApp", "appID": app, "queue": self.rng.choice(self.leaves)}
        if self.limited:
            step["user"] = self.rng.choice(USERS)
            step["groups"] = [group for group in GROUPS if self.rng.random() < 0.5] or ["none"]
        return step

    def ask(self) -> Step:
        rng = self.rng
        app = rng.choice(self.apps)
        keys = []
        for _ in range(rng.randint(1, 4)):
            self.serial += 1
            keys.append(f"k{self.serial:04}")
        self.asked += [(app, key) for key in keys]
        size = 60 if self.tight else 25
        resources = {"memory": rng.randint(1, size), "vcore": rng.randint(1, size) * 100}
        if self.gpus and rng.random() < 0.3:
            resources["nvidia.com/gpu"] = rng.randint(1, 4)
        step: Step = {"op": "ask", "appID": app, "keys": keys, "resources": resources}
        if self.priorities and rng.random() < 0.6:
            step["priority"] = rng.choice((-5, 1, 10, 100))
        return step

    def add_node(self) -> Step:
        self.serial += 1
        node = f"n{self.serial:04}"
        self.nodes.append(node)
        step: Step = {"op": "addNode", "nodeID": node, "resources": self.capacity()}
        if self.occupied and self.rng.random() < 0.5:
            step["occupied"] = self.others()
        return step

    def others(self) -> dict[str, int]:
        return {"memory": self.rng.randint(0, 40), "vcore": self.rng.randint(0, 30) * 100}

    def capacity(self) -> dict[str, int]:
        rng = self.rng
        capacity = {"memory": rng.randint(50, 180), "vcore": rng.choice((6, 8, 12, 16)) * 1000}
        if self.gpus and rng.random() < 0.6:
            capacity["nvidia.com/gpu"] = rng.randint(1, 8)
        return capacity

    def change_node(self) -> Step:
        rng = self.rng
        if rng.random() < 0.2:
            return self.add_node()
        actions = ("UPDATE", "DRAIN_NODE", "DRAIN_TO_SCHEDULABLE", "DECOMISSION")
        action = rng.choices(actions, (4, 2, 3, 1))[0]
        if action == "DECOMISSION" and len(self.nodes) < 2:
            action = "UPDATE"
        step: Step = {"op": "nodeAction", "nodeID": rng.choice(self.nodes), "action": action}
        if action == "UPDATE":
            step["resources"] = self.capacity()
            if self.occupied:
                step["occupied"] = self.others()
        if action == "DECOMISSION":
            self.nodes.remove(step["nodeID"])
        return step

    # -- queues ----------------------------------------------------------------------------------------

    def make_tree(self) -> Tree:
        count = self.rng.randint(1, 4)
        return [self.make_queue(f"a{at:02}", "root", 300, 1, 0) for at in range(count)]

    def make_queue(self, name: str, above: str, share: int, depth: int, places: int) -> Branch:
        rng = self.rng
        path = f"{above}.{name}"
        count = rng.randint(1, 3) if depth < 3 and rng.random() < 0.45 else 0
        queue: Branch = {"name": name, "share": share, "leaf": not count, "below": []}
        if places or (self.turns and rng.random() < 0.4):
            places = rng.randint(1, places or 4)
            queue["maxapplications"] = places
        self.change_queue(queue)
        if not count:
            self.leaves.append(path)
        for at in range(count):
            child = self.make_queue(f"b{at:02}", path, share // 4, depth + 1, places)
            queue["below"].append(child)
        return queue

    def change_queue(self, queue: Branch) -> None:
        """Everything about it that a configuration may change."""
        rng = self.rng
        properties = queue["properties"] = {}
        if queue["leaf"] and rng.random() < 0.6:
            policies = ("fifo", "stateaware") if self.with_gangs else ("fifo", "fair")
            properties["application.sort.policy"] = policies[rng.random() < 0.4]
        if rng.random() < 0.2:
            properties["application.sort.priority"] = "disabled"
        if self.priorities and rng.random() < 0.3:
            properties["priority.offset"] = str(rng.choice((-20, 5, 50)))
        if self.priorities and rng.random() < 0.2:
            properties["priority.policy"] = "fence"
        share = queue["share"]
        resources = queue["resources"] = {}
        if self.guarantees or rng.random() < 0.5:
            resources["guaranteed"] = share
        if rng.random() < 0.2:
            resources["max"] = share * rng.randint(1, 2)
        queue["limits"] = []
        if self.limited and queue["leaf"] and rng.random() < 0.7:
            queue["limits"] = self.make_limits(queue, int(resources.get("max") or share))

    def make_limits(self, queue: Branch, most: int) -> list[Branch]:
        """Of users, of groups, or both; at one level only, so that none is above another."""
        rng = self.rng
        who = [{"users": [user]} for user in USERS if rng.random() < 0.3]
        who += [{"users": ["*"]}] if rng.random() < 0.5 else []
        groups = [{"groups": [group]} for group in GROUPS if rng.random() < 0.4]
        who += [*groups, {"groups": ["*"]}] if groups and rng.random() < 0.4 else groups
        limits = []
        for each in who:
            what = {"maxresources": amount(rng.randint(max(1, most // 6), max(1, most // 2)))}
            if rng.random() < 0.4:
                places = {"maxapplications": rng.randint(1, queue.get("maxapplications", 3))}
                what = [{**what, **places}, places][rng.randint(0, 1)]
            limits.append(each | what)
        return limits

    def change_configuration(self) -> Step:
        """Other amounts and properties for one branch, perhaps another order of nodes."""
        rng = self.rng
        queue = rng.choice(self.tree)
        while queue["below"] and rng.random() < 0.6:
            queue = rng.choice(queue["below"])
        self.change_queue(queue)
        return {"op": "updateConfiguration", "config": self.config()}

    def config(self) -> str:
        rng = self.rng
        partition: Branch = {"name": "default"}
        if rng.random() < 0.6:
            partition["nodesortpolicy"] = {"type": rng.choice(("fair", "binpacking"))}
            if rng.random() < 0.5:
                weights = {"memory": rng.choice((0.5, 1, 3)), "vcore": 1}
                partition["nodesortpolicy"]["resourceweights"] = weights
        properties = {"gang.hold": "false", "gang.admission": "incremental"}
        below = [_configured(queue) for queue in self.tree]
        return with_root(below, partition, properties=properties)


def _configured(queue: Branch) -> Branch:
    resources = {name: amount(share) for name, share in queue["resources"].items()}
    below = [_configured(child) for child in queue["below"]]
    given = {n: queue[n] for n in ("maxapplications", "properties", "limits") if queue.get(n)}
    given |= {"resources": resources} if resources else {}
    return {"name": queue["name"], **given} | ({"queues": below} if below else {})


def amount(memory: int) -> dict[str, Any]:
    return {"memory": memory, "vcore": f"{memory * 100}m"}


def with_root(queues: Tree, partition: Branch | None = None, **root: Any) -> str:
    """A configuration with these queues below root (JSON is YAML)."""
    top = {"name": "root", "submitacl": "*", "queues": queues, **root}
    return json.dumps({"partitions": [{"name": "default", **(partition or {}), "queues": [top]}]})
