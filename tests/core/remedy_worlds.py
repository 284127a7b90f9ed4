"""Random worlds in which every remedy of an explanation is carried out, alone and exactly as it is said."""

import copy
import json
import re
from collections import Counter
from random import Random
from typing import Any

from quadriga.core import Options
from quadriga.si import NodeInfo, RequestError
from quadriga.sim.scripted.script import Script

#: what somebody can do, not what has to happen
_CHANGE = re.compile(r"^raise |^add | more free on node ")

GIB = 1 << 30
_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": GIB, "TiB": 1 << 40}


class World:
    """A configuration as data, and steps: the name of a method of ``Script`` and its arguments."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.config = self._configuration()
        self.steps: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.script = self.start()
        self._grow()

    def start(self) -> Script:
        return Script(json.dumps(self.config), options=Options(journal_size=None), check=False)

    def do(self, name: str, *args: Any, **given: Any) -> None:
        self.steps.append((name, args, given))
        getattr(self.script, name)(*args, **given)

    def copy(self) -> Script:
        """The same world once more."""
        script = self.start()
        for name, args, given in self.steps:
            getattr(script, name)(*args, **given)
        return script

    # -- the configuration -------------------------------------------------------------------------

    def _configuration(self) -> dict[str, Any]:
        random = self.random
        root: dict[str, Any] = {"name": "root", "submitacl": "*", "queues": []}
        for name in ("a", "b", "c")[: random.randint(1, 3)]:
            queue = self._queue(name, {})
            if random.random() < 0.4:
                queue["queues"] = [self._queue(each, queue) for each in ("x", "y")]
                queue.pop("properties", None)
            root["queues"].append(queue)
        policy = random.choice(["fair", "binpacking", "bestfit"])
        return {
            "partitions": [
                {"name": "default", "queues": [root], "nodesortpolicy": {"type": policy}}
            ]
        }

    def _queue(self, name: str, parent: dict[str, Any]) -> dict[str, Any]:
        random = self.random
        queue: dict[str, Any] = {"name": name}
        top = parent.get("resources", {}).get("max", {})
        if random.random() < 0.6:
            most = {"vcore": random.randint(2, 10) * 1000}
            if random.random() < 0.5:
                most["memory"] = random.randint(2, 12) * GIB
            most = {k: min(v, _amount(top[k])) if k in top else v for k, v in most.items()}
            queue["resources"] = {"max": {k: _written(k, v) for k, v in most.items()}}
        apps = parent.get("maxapplications", 0)
        if apps or random.random() < 0.25:
            queue["maxapplications"] = random.randint(1, min(3, apps or 3))
        bound = dict(top, **queue.get("resources", {}).get("max", {}))
        if random.random() < 0.5 and not parent:
            queue["limits"] = []
            for kind, who in (("users", "joe"), ("users", "*"), ("groups", "devs")):
                if random.random() < 0.5:
                    each: dict[str, Any] = {"limit": f"of {who}", kind: [who]}
                    if random.random() < 0.8:
                        cores = random.randint(1, 6) * 1000
                        if "vcore" in bound:
                            cores = min(cores, _amount(bound["vcore"]))
                        each["maxresources"] = {"vcore": _written("vcore", cores)}
                    if random.random() < 0.3 or "maxresources" not in each:
                        most_apps = queue.get("maxapplications", 3)
                        each["maxapplications"] = random.randint(1, most_apps)
                    queue["limits"].append(each)
            if not queue["limits"]:
                del queue["limits"]
        if random.random() < 0.2:
            queue["properties"] = {"application.sort.policy": "fair"}
        return queue

    # -- the steps ---------------------------------------------------------------------------------

    def _leaves(self) -> list[tuple[str, bool]]:
        found = []
        for queue in self.config["partitions"][0]["queues"][0]["queues"]:
            for leaf in queue.get("queues", [queue]):
                path = f"root.{queue['name']}" + ("" if leaf is queue else f".{leaf['name']}")
                found.append((path, "fair" not in str(leaf.get("properties"))))
        return found

    def _size(self) -> dict[str, int]:
        random = self.random
        size = {"vcore": random.choice([500, 1000, 1000, 2000, 3000])}
        if random.random() < 0.7:
            size["memory"] = random.choice([GIB // 2, GIB, 2 * GIB, 3 * GIB])
        return size

    def _grow(self) -> None:
        random = self.random
        for number in range(random.randint(1, 5)):
            size = {"vcore": random.randint(1, 5) * 1000, "memory": random.randint(1, 6) * GIB}
            self.do("node", f"n{number}", **size)
        for number in range(random.randint(2, 9)):
            leaf, fifo = random.choice(self._leaves())
            app, user = f"app-{number}", random.choice(["joe", "ann", "bob"])
            groups = random.choice([(), ("devs",)])
            if fifo and random.random() < 0.5:
                self._gang(app, leaf, user, groups)
            else:
                self.do("app", app, leaf, user=user, groups=groups)
                for key in range(random.randint(1, 3)):
                    priority = random.choice([0, 0, 0, 1, 5])
                    self.do("ask", app, f"k{key}", priority=priority, **self._size())
            if random.random() < 0.8:
                self.do("schedule")
            self._disturb()
        if random.random() < 0.8:
            self.do("schedule")

    def _gang(self, app: str, leaf: str, user: str, groups: tuple[str, ...]) -> None:
        random = self.random
        parts = [(self._size(), random.randint(1, 4)) for _ in range(random.choice([1, 1, 2]))]
        whole = Counter[str]()
        for size, number in parts:
            for name, value in size.items():
                whole[name] += value * number
        self.do("app", app, leaf, user=user, groups=groups, gang=dict(whole))
        for group, (size, number) in enumerate(parts):
            keys = [f"g{group}-{n}" for n in range(number)]
            if random.random() < 0.05:
                keys = keys[1:]
            self.do("ask", app, *keys, group=f"tg{group}", placeholder=True, **size)

    def _disturb(self) -> None:
        random = self.random
        what = random.random()
        if what < 0.2:
            running = [
                (app.app_id, each.uuid)
                for app in self.script.scheduler.partition("default").applications.values()
                for each in app.allocations.values()
            ]
            if running:
                self.do("release", *random.choice(running))
        elif what < 0.3:
            self.do("advance", random.choice([1, 5, 40]))
            self.do("schedule")
        elif what < 0.35:
            self.do("node", "n0", NodeInfo.DRAIN_NODE)
        elif what < 0.4:
            self.do("confirm")
            self.do("schedule")


# -- remedies --------------------------------------------------------------------------------------


def _written(name: str, value: int) -> str:
    return f"{value}m" if name == "vcore" else str(value)


def _amount(text: str) -> int:
    return int(text.removesuffix("m"))


def _read(text: str) -> dict[str, int]:
    """The amounts of ``500m CPU, 3 GiB memory and 2 gpu``."""
    found = {}
    for part in re.split(r", | and ", text):
        if match := re.fullmatch(r"(\d+)(m?) CPU", part):
            found["vcore"] = int(match[1]) * (1 if match[2] else 1000)
        elif match := re.fullmatch(r"([\d.]+) ([KMGT]?i?B) (\S+)", part):
            found[match[3]] = round(float(match[1]) * _UNITS[match[2]])
        else:
            match = re.fullmatch(r"(\d+) (\S+)", part)
            assert match is not None, part
            found[match[2]] = int(match[1])
    return found


def _queue_at(config: dict[str, Any], path: str) -> dict[str, Any]:
    queue = config["partitions"][0]["queues"][0]
    for name in path.split(".")[1:]:
        queue = next(each for each in queue["queues"] if each["name"] == name)
    found: dict[str, Any] = queue
    return found


def _limit_at(config: dict[str, Any], whose: str) -> dict[str, Any]:
    match = re.fullmatch(r"(user|group) (\S+) in (\S+?)( \(limit \*\))?", whose)
    assert match is not None, whose
    name = "*" if match[4] else match[2]
    limits = _queue_at(config, match[3])["limits"]
    found: dict[str, Any] = next(each for each in limits if name in each.get(match[1] + "s", ()))
    return found


def _raise(amounts: dict[str, str], more: dict[str, int]) -> None:
    for name, value in more.items():
        amounts[name] = _written(name, _amount(amounts[name]) + value)


def carry_out(world: World, script: Script, texts: tuple[str, ...]) -> None:
    """Do what the texts say."""
    config = copy.deepcopy(world.config)
    for said in texts:
        text = re.sub(r" \(with \d+ other asks? that may be served before it\)$", "", said)
        if match := re.fullmatch(r"raise the max of (\S+) by (.*)", text):
            _raise(_queue_at(config, match[1])["resources"]["max"], _read(match[2]))
        elif match := re.fullmatch(r"raise the limit of (.*) by (.*)", text):
            _raise(_limit_at(config, match[1])["maxresources"], _read(match[2]))
        elif match := re.fullmatch(r"raise maxapplications of (\S+) to (\d+)", text):
            _queue_at(config, match[1])["maxapplications"] = int(match[2])
        elif match := re.fullmatch(r"raise maxapplications of (.*) to (\d+)", text):
            _limit_at(config, match[1])["maxapplications"] = int(match[2])
        elif match := re.fullmatch(r"(.*) more free on node (\S+)", text):
            node = script.scheduler.partition("default").nodes[match[2]]
            size = Counter(node.partition.registry.mapping(node.total))
            size.update(_read(match[1]))
            script.node(match[2], NodeInfo.UPDATE, **size)
        elif match := re.fullmatch(r"add a node with (.*)", text):
            script.node("new", **_read(match[1]))
        elif match := re.fullmatch(r"add (\d+) nodes with (.*) each", text):
            for number in range(int(match[1])):
                script.node(f"new-{number}", **_read(match[2]))
        else:
            raise AssertionError(f"nobody can do this: {text}")
    if config != world.config:
        script.configure(json.dumps(config))


def _starts(world: World, texts: tuple[str, ...], app_id: str, key: str) -> bool:
    """Whether the ask starts at the next round if the texts are carried out in a copy of the world."""
    script = world.copy()
    try:
        carry_out(world, script, texts)
    except RequestError:  # the configuration is refused
        return False
    script.schedule()
    app = script.scheduler.partition("default").applications[app_id]
    held = [*app.allocations.values(), *app.placeholders.values()]
    return any(each.ask.ask_key == key for each in held)


def claims_of(world: World) -> list[tuple[str, str, str, tuple[str, ...], bool]]:
    """Every claim: what kind, which ask, its texts, and whether it is true."""
    found = []
    for app in list(world.script.scheduler.partition("default").applications.values()):
        for key, ask in list(app.asks.items()):
            told = world.script.scheduler.explain(app.app_id, key)
            kind = "gang" if ask.placeholder else "single"
            claims = [(text,) for text in told.remedies]
            changes = tuple(each for each in told.together if _CHANGE.search(each))
            if changes and changes == told.together:
                claims.append(changes)
            if told.verdict.endswith("it gets its place in the next round."):
                claims.append(())
            denied = [e for e in told.reasons if e.startswith("no single change is enough")]
            for text in changes if denied else ():
                started = _starts(world, (text,), app.app_id, key)
                found.append((f"{kind} not alone", app.app_id, key, (text,), not started))
            for texts in claims:
                what = f"{kind} {('nothing', 'alone')[len(texts) == 1] if len(texts) < 2 else 'together'}"
                started = _starts(world, texts, app.app_id, key)
                found.append((what, app.app_id, key, texts, started))
    return found


def count_claims(seeds: range) -> tuple[Counter[tuple[str, bool]], list[str]]:
    """The number of claims of each kind that are true or false, and the false ones in words."""
    counts = Counter[tuple[str, bool]]()
    false = []
    for seed in seeds:
        for what, app, key, texts, true in claims_of(World(seed)):
            counts[what, true] += 1
            if not true:
                false.append(f"seed {seed}: {what} {app}/{key}: {texts}")
    return counts, false
