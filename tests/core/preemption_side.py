"""Shared by the preemption tests: a cluster of two queues, one above its guarantee."""

from typing import Any

from tree_side import below, news, reserved, tree

from quadriga.si import TerminationType
from quadriga.sim.scripted.script import Script

__all__ = [
    "ENFORCED", "NEVER", "PREEMPTED", "QUOTA", "TWO_QUEUES", "after", "ask", "cluster", "explained",
    "filled", "news", "preempted", "preempting", "reserved", "victims",
]  # fmt: skip

PREEMPTED = TerminationType.PREEMPTED_BY_SCHEDULER

#: partitions in which lowered quotas are enforced, and where nobody is preempted
ENFORCED = "preemption: {quotapreemptionenabled: true}"
NEVER = "preemption: {enabled: false}"

TWO_QUEUES = tree(
    "low, resources: {guaranteed: {vcore: 2m}}",
    "high, properties: {preemption.delay: 1s}, resources: {guaranteed: {vcore: 4m}}",
)
#: two queues below one that has room for four vcores
QUOTA = tree(
    "top, resources: {max: {vcore: 4m}}, "
    + below(
        "low, resources: {guaranteed: {vcore: 1m}}",
        "high, properties: {preemption.delay: 1s}, resources: {guaranteed: {vcore: 2m}}",
    )
)


def ask(
    script: Script, app: str, *keys: str, others: bool = True, itself: bool = True, **more: Any
) -> list[str]:
    """Asks that say whether they may preempt others, and be preempted themselves."""
    return script.ask(app, *keys, preempt=(itself, others), **more)


def cluster(config: str = TWO_QUEUES, *sizes: int, **more: int) -> Script:
    """Nodes n1, n2, ... with these many vcores each, and an application for each leaf of its name."""
    script = Script(config)
    for number, size in enumerate(sizes, 1):
        script.node(f"n{number}", vcore=size, **more)
    for leaf in script.scheduler.partition().leaves():
        script.app(leaf.name, leaf.path)
    return script


def filled(config: str = TWO_QUEUES, nodes: int = 1, size: int = 4) -> Script:
    """``low`` holds all of every node with asks of one vcore each: n1-0, n1-1, ... on node n1."""
    script = cluster(config)
    for number in range(1, nodes + 1):
        script.node(f"n{number}", vcore=size)
        script.ask("low", *(f"n{number}-{n}" for n in range(size)), vcore=1)
        script.schedule()
    return script


def preempted(heard: list[str]) -> list[str]:
    """The victims, as ``app/uuid``."""
    return [line.split()[1] for line in heard if line.endswith("PREEMPTED_BY_SCHEDULER")]


def after(script: Script, seconds: float = 1) -> list[str]:
    """The victims of the rounds after this time."""
    script.advance(seconds)
    return preempted(script.schedule())


def victims(
    script: Script, *keys: str, app: str = "high", vcore: int = 1, seconds: float = 1, **more: Any
) -> list[str]:
    """The victims of asks (``h``) of one vcore after this time, the delay of ``high``."""
    ask(script, app, *(keys or ["h"]), vcore=vcore, **more)
    return after(script, seconds)


def preempting(script: Script, path: str) -> dict[str, int]:
    """The victims that are still allocated, in a queue and below."""
    partition = script.scheduler.partition()
    queue = partition.queue(path)
    assert queue is not None
    return partition.registry.mapping(queue.preempting)


def explained(script: Script, app: str = "high", key: str = "h") -> str:
    """What the explanation of an ask says of preemption."""
    checks = script.scheduler.explain(app, key).checks
    return next(check.text for check in checks if check.about == "preemption")
