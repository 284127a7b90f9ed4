"""Random configurations with a bit of everything, for ``everything_life``."""

import json
from random import Random
from typing import Any

from quadriga.core.config import ConfigError, load

#: who submits, each with some of these groups
USERS = {"ann": ("g1", "g2"), "bob": ("g2",), "cem": (), "dot": ("g3", "g1")}
TYPES = ("vcore", "memory")
NAMES = ("a", "b", "c")
POLICIES = ("fifo", "expected", "fair", "stateaware")

Amounts = dict[str, int]
#: what a user or a group may have at most, as far as queues above have said: (kind, name)
Ceilings = dict[tuple[str, str], Amounts]


def configuration(rng: Random, partitions: tuple[str, ...], *, crowded: bool) -> str:
    """A valid one, as JSON, which is YAML; ``crowded``: in which many have to go for others."""
    while True:
        found = json.dumps({"partitions": [_partition(rng, name, crowded) for name in partitions]})
        try:
            load(found)
        except ConfigError:  # guarantees or limits do not add up
            continue
        return found


def _partition(rng: Random, name: str, crowded: bool) -> dict[str, Any]:
    keen = rng.random() < (0.8 if crowded else 0.1)
    root = _queue(rng, "root", rng.randint(1, 3), {}, 0, {}, keen=keen)
    root["submitacl"] = rng.choice(("*",) * 9 + ("ann,bob g1",))
    partition: dict[str, Any] = {
        "name": name,
        "queues": [root],
        "nodesortpolicy": {"type": rng.choice(("fair", "binpacking"))},
        "topology": ["si/instance-type"],
        "preemption": {
            "enabled": keen or rng.random() < 0.8,
            "quotapreemptionenabled": rng.random() < 0.5,
        },
    }
    if rng.random() < 0.3:
        partition["nodesortpolicy"]["resourceweights"] = {"vcore": rng.randint(0, 3), "memory": 2}
    if rng.random() < 0.5:
        made: dict[str, Any] = {"name": "fixed", "value": "root.made", "create": True}
        rules: list[dict[str, Any]] = [
            {"name": "tag", "value": "namespace", "create": True, "parent": made},
            {"name": "user", "create": True, "filter": {"users": ["cem"]}},
            {"name": "provided", "create": rng.random() < 0.5},
        ]
        partition["placementrules"] = rules[rng.randint(0, 2) :]
    return partition


def _queue(
    rng: Random, name: str, depth: int, above: Amounts, most: int, ceilings: Ceilings, *, keen: bool
) -> dict[str, Any]:
    """With all below; in a ``keen`` tree many have a guarantee, and nobody waits long to preempt."""
    queue: dict[str, Any] = {"name": name}
    is_root = name == "root"
    quota: Amounts = {}
    if not is_root and not keen:
        quota = {
            each: rng.randint(4, min(24, above.get(each, 24)))
            for each in TYPES
            if rng.random() < 0.3 and above.get(each, 24) >= 4
        }
    if not is_root and (most or rng.random() < 0.2):
        most = queue["maxapplications"] = rng.randint(1, most or 4)
    above = {**above, **quota}
    ceilings = dict(ceilings)
    if not keen and (limits := _limits(rng, above, most, ceilings)):
        queue["limits"] = limits
    is_leaf = depth == 0 or (not is_root and rng.random() < 0.4)
    queue["properties"] = _properties(rng)
    if keen:
        queue["properties"] |= {"preemption.delay": "1s", "preemption.policy": "default"}
    guaranteed = {each: rng.randint(1, 4) for each in TYPES if rng.random() < 0.5}
    if keen:
        guaranteed = {"vcore": rng.randint(1, 3), "memory": rng.randint(2, 6)}
    if not is_leaf:
        queue["parent"] = True
        if rng.random() < 0.3:
            queue["childtemplate"] = _template(rng, most)
        names = rng.sample(NAMES, rng.randint(1, len(NAMES)))
        below = [_queue(rng, e, depth - 1, above, most, ceilings, keen=keen) for e in sorted(names)]
        queue["queues"] = below
        guaranteed = {each: value * len(below) for each, value in guaranteed.items()}
    if not is_root:
        resources = {
            "max": quota,
            "guaranteed": guaranteed if rng.random() < (0.9 if keen else 0.6) else {},
        }
        if any(resources.values()):
            queue["resources"] = {kind: _texts(of) for kind, of in resources.items() if of}
    return queue


def _texts(amounts: Amounts) -> dict[str, str]:
    return {name: f"{value}m" if name == "vcore" else str(value) for name, value in amounts.items()}


def _properties(rng: Random) -> dict[str, str]:
    chosen = {
        "application.sort.policy": (1.0, rng.choice(POLICIES)),
        "application.sort.priority": (0.3, "disabled"),
        "priority.offset": (0.2, str(rng.randint(-3, 3))),
        "priority.policy": (0.15, "fence"),
        "preemption.policy": (0.15, rng.choice(("fence", "disabled"))),
        "preemption.delay": (0.8, rng.choice(("1s", "1s", "5s"))),
        "preemption.quota.delay": (0.3, rng.choice(("5s", "20s"))),
        "application.unschedasks.backoff": (0.05, rng.choice(("1", "2", "3"))),
        "application.unschedasks.backoff.delay": (0.4, "10s"),
        "gang.hold": (0.25, "false"),
        "gang.admission": (0.25, "incremental"),
        "gang.wait.limit": (0.15, "60s"),
        "gang.timeout.from": (0.15, "attempt"),
        "gang.gather.after": (0.9, rng.choice(("1s", "30s"))),
        "gang.gather.preempt": (0.3, "overrun"),
        "reservation.max.share": (0.3, rng.choice(("50%", "unlimited"))),
    }
    return {key: value for key, (likely, value) in chosen.items() if rng.random() < likely}


def _template(rng: Random, most: int) -> dict[str, Any]:
    template: dict[str, Any] = {"properties": _properties(rng)}
    if rng.random() < 0.4:
        template["maxapplications"] = rng.randint(1, most or 3)
    if rng.random() < 0.5:
        template["resources"] = {"max": _texts({"vcore": rng.randint(4, 12)})}
    return template


def _limits(rng: Random, above: Amounts, most: int, ceilings: Ceilings) -> list[dict[str, Any]]:
    """Some users and groups, named and everybody else, within what they have further up."""
    if rng.random() < 0.7:
        return []
    users = rng.sample(sorted(USERS), rng.choice((0, 0, 1)))
    groups = rng.sample(("g1", "g2", "g3"), rng.choice((0, 1, 1, 2)))
    who = [("users", name) for name in users] + [("groups", name) for name in groups]
    if groups and rng.random() < 0.4:
        who.append(("groups", "*"))
    if rng.random() < 0.6:
        who.append(("users", "*"))
    found = []
    known = dict(ceilings)
    for kind, name in who:
        ceiling = known.get((kind, name)) or known.get((kind, "*")) or {}
        limit: dict[str, Any] = {kind: [name]}
        if rng.random() < 0.8:
            each = rng.choice(TYPES)
            value = min(rng.randint(4, 14), above.get(each, 99), ceiling.get(each, 99))
            limit["maxresources"] = _texts({each: value})
            ceilings[kind, name] = {**ceiling, each: value}
        if rng.random() < 0.2 or "maxresources" not in limit:
            limit["maxapplications"] = rng.randint(1, most or 3)
        found.append(limit)
    return found
