"""Configurations in YAML's flow form, and what the tests of orders and preemption read off a script."""

import json
from collections.abc import Mapping
from typing import Any

from quadriga.sim.scripted.script import Script


def configuration(root: Mapping[str, Any], **partition: Any) -> str:
    """The text of a configuration whose queues are data; whatever is empty is left out."""

    def told(queue: Mapping[str, Any]) -> dict[str, Any]:
        queues = [told(child) for child in queue.get("queues", ())]
        return {key: value for key, value in {**queue, "queues": queues}.items() if value}

    default = {"name": "default", **partition, "queues": [told(root)]}
    return json.dumps({"partitions": [default]})


def in_units(resources: Mapping[str, int]) -> dict[str, str]:
    """Quantities as a configuration has them: a plain number of vcores would be a thousand each."""
    return {name: f"{value}{'m' * (name == 'vcore')}" for name, value in resources.items()}


def below(*queues: str) -> str:
    """``queues`` with these, each as its name and what else it has: ``a, maxapplications: 1``."""
    return f"queues: [{', '.join(f'{{name: {queue}}}' for queue in queues)}]"


def tree(*queues: str, root: str = "submitacl: '*'", partition: str = "") -> str:
    """A configuration with these queues below root; ``root`` and ``partition`` are added there."""
    own = ", ".join(each for each in ("name: root", root, below(*queues)) if each)
    said = ", ".join(each for each in ("name: default", partition, f"queues: [{{{own}}}]") if each)
    return f"partitions: [{{{said}}}]"


def limits(*entries: str) -> str:
    """``limits`` with these: ``users: [ann], maxapplications: 1``."""
    return f"limits: [{', '.join(f'{{limit: x, {entry}}}' for entry in entries)}]"


def room(vcore: int) -> str:
    """A max of this many whole vcores."""
    return f"resources: {{max: {{vcore: {vcore}}}}}"


def most(vcore: int) -> str:
    """A max, or none where it is zero; to follow the name of a queue."""
    return f", resources: {{max: {{vcore: {vcore}m}}}}" if vcore else ""


def news(heard: list[str]) -> list[str]:
    """The allocations: ``app/key-0 on n1``."""
    return [line.removeprefix("new ") for line in heard if line.startswith("new ")]


def keys(heard: list[str]) -> list[str]:
    """The keys of the asks that were allocated."""
    return [line.split()[0].partition("/")[2].rpartition("-")[0] for line in news(heard)]


def paths(script: Script) -> list[str]:
    """The queues of the partition."""
    return [queue.path for queue in script.scheduler.partition().queues()]


def reserved(script: Script) -> dict[str, str]:
    """The asks that have a node reserved, by node id."""
    nodes = script.scheduler.partition().nodes.values()
    return {n.node_id: n.reservation.ask.key for n in nodes if n.reservation is not None}


def waited(script: Script, seconds: float = 2) -> list[str]:
    """A round, this time, and another round, of which the lines are returned."""
    script.schedule()
    script.advance(seconds)
    return script.schedule()
