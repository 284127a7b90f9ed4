"""Shared by the preemption tests: a cluster of two queues, one above its guarantee."""

from __future__ import annotations

from collections.abc import Mapping

from quadriga.si import (
    AllocationAsk,
    AllocationRequest,
    PreemptionPolicy,
)
from quadriga.sim.script import Script, resource

TWO_QUEUES = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: low
            resources: {guaranteed: {vcore: 2m}}
          - name: high
            properties: {preemption.delay: 1s}
            resources: {guaranteed: {vcore: 4m}}
"""


def ask(
    script: Script,
    app_id: str,
    *keys: str,
    others: bool = True,
    itself: bool = True,
    priority: int = 0,
    repeat: int = 1,
    originator: bool = False,
    group: str = "",
    placeholder: bool = False,
    tags: Mapping[str, str] | None = None,
    **quantities: int,
) -> list[str]:
    """Asks that say whether they may preempt others, and be preempted themselves."""
    asks = [
        AllocationAsk(
            allocationKey=key,
            applicationID=app_id,
            resourceAsk=resource(quantities),
            maxAllocations=repeat,
            priority=priority,
            tags=tags or {},
            taskGroupName=group,
            placeholder=placeholder,
            Originator=originator,
            preemptionPolicy=PreemptionPolicy(allowPreemptSelf=itself, allowPreemptOther=others),
        )
        for key in keys
    ]
    return script.send(AllocationRequest(rmID=script.rm_id, asks=asks))


def filled(config: str = TWO_QUEUES, nodes: int = 1, size: int = 4) -> Script:
    """``low`` holds all of every node with asks of one vcore each: n1-0, n1-1, ... on node n1.

    It and ``high`` are in the queues of their names, wherever these stand.
    """
    script = Script(config)
    for leaf in script.scheduler.partition().leaves():
        if leaf.name in ("low", "high"):
            script.app(leaf.name, leaf.path)
    for number in range(1, nodes + 1):
        script.node(f"n{number}", vcore=size)
        script.ask("low", *(f"n{number}-{n}" for n in range(size)), vcore=1)
        script.schedule()
    return script


def preempted(heard: list[str]) -> list[str]:
    """The victims, as ``app/uuid``."""
    return [line.split()[1] for line in heard if line.endswith("PREEMPTED_BY_SCHEDULER")]


def news(heard: list[str]) -> list[str]:
    return [line.removeprefix("new ") for line in heard if line.startswith("new ")]


def reserved(script: Script) -> dict[str, str]:
    """The asks that have a node reserved, by node id."""
    nodes = script.scheduler.partition().nodes.values()
    return {n.node_id: n.reservation.ask.key for n in nodes if n.reservation is not None}


def preempting(script: Script, path: str) -> dict[str, int]:
    """The victims that are still allocated, in a queue and below."""
    partition = script.scheduler.partition()
    queue = partition.queue(path)
    assert queue is not None
    return partition.registry.mapping(queue.preempting)
