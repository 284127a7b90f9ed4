"""A queue configuration made from the queues of a workload, in YuniKorn's YAML, and the quotas of jobs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from quadriga.core import Scheduler
from quadriga.core.model.application import Application
from quadriga.sim.destinations import Destinations
from quadriga.sim.fitting import Quota
from quadriga.sim.options import SimulationOptions
from quadriga.sim.outbox import RM_ID, Outbox
from quadriga.sim.pods import Run
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


def quotas_of(
    runs: Iterable[Run], options: SimulationOptions, destinations: Destinations, config: str
) -> dict[str, tuple[Quota, ...]]:
    """The quotas of each of these applications, by application id.

    A scheduler of its own, with this configuration and without nodes, places the applications and binds
    them to limits, so placement rules, templates and wildcards have their usual effect, and a scheduler
    in another process need not be asked. Root is left out: its max is the capacity of the nodes.
    """
    scheduler, outbox = Scheduler(), Outbox(options, destinations)
    scheduler.apply(outbox.registration(config), 0)
    for run in runs:
        outbox.add(run)
    for request in outbox.requests():
        scheduler.apply(request, 0)
    applications = scheduler.partition(destinations.partition, RM_ID).applications
    return {key: tuple(_of_application(app)) for key, app in applications.items()}


def _of_application(app: Application) -> Iterator[Quota]:
    for queue in app.queue.lineage[:-1]:
        if queue.max:
            yield Quota(f"queue {queue.path}", queue.max)
    for ledger in app.limiting:
        if ledger.limit is not None and ledger.limit.max:
            account = ledger.account
            yield Quota(
                f"the limit of {account.kind} {account.name} in {ledger.queue.path}",
                ledger.limit.max,
            )
