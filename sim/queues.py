"""A queue configuration made from the queues of a workload, in YuniKorn's YAML."""

# Not compiled: it does not run for every message.

from __future__ import annotations

from collections.abc import Iterator

from quadriga.sim.workload.model import GPU, VCORE, QueueSpec, Resources, Workload


def queue_configuration(
    workload: Workload, *, policy: str, node_sort: str, gang_admission: str = ""
) -> str:
    """The text: every queue is a leaf under root, and anyone may submit.

    `policy` is ``application.sort.policy`` of each leaf (gangs need fifo or stateaware, G7),
    `node_sort` is the partition's ``nodesortpolicy``; if nodes have GPUs, these count as much as
    vcores and memory. Quotas are those of the workload, if it has any. `gang_admission` is
    ``gang.admission`` of all queues; empty means the scheduler's default.
    """
    weights = f"      resourceweights: {{vcore: 1, memory: 1, {GPU}: 1}}"
    lines = [
        "partitions:",
        "  - name: default",
        "    nodesortpolicy:",
        f"      type: {node_sort}",
        *([weights] if any(GPU in node.resources for node in workload.nodes) else []),
        *(["    devices:"] if workload.shared else []),
        *(f"      - {{name: {name}, shared: true}}" for name in workload.shared),
        "    queues:",
        "      - name: root",
        "        submitacl: '*'",
        *_admission(gang_admission),
        *(["        queues:"] if workload.queues else []),
    ]
    for queue in workload.queues:
        lines += _leaf(queue, policy)
    return "\n".join(lines) + "\n"


def _admission(gang_admission: str) -> list[str]:
    if not gang_admission:
        return []
    return ["        properties:", f"          gang.admission: {gang_admission}"]


def _leaf(queue: QueueSpec, policy: str) -> Iterator[str]:
    # quoted, since YAML would not read a name such as 2012 or no as text
    yield f'          - name: "{queue.name}"'
    yield "            properties:"
    yield f"              application.sort.policy: {policy}"
    quotas = (("guaranteed", queue.guaranteed), ("max", queue.max))
    if any(quota for _, quota in quotas):
        yield "            resources:"
    for name, quota in quotas:
        if quota:
            yield f"              {name}:"
            yield from _amounts(quota)


def _amounts(quota: Resources) -> Iterator[str]:
    for name, amount in sorted(quota.items()):
        unit = "m" if name == VCORE else ""
        yield f'                {name}: "{amount}{unit}"'
