"""The quotas that a job is under: the max of its queues, and the limits of its user and groups."""

# Not compiled: it does not run for every message.

from __future__ import annotations

from collections.abc import Iterable, Iterator

from quadriga.core import Scheduler
from quadriga.core.model.application import Application
from quadriga.sim.destinations import Destinations
from quadriga.sim.fitting import Quota
from quadriga.sim.options import SimulationOptions
from quadriga.sim.outbox import RM_ID, Outbox
from quadriga.sim.pods import Run


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
