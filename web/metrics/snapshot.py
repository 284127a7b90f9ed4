"""The numbers. They are collected in the owner thread, in steps, so they are only copied here and evaluated
elsewhere."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from quadriga.core.config.properties import WHOLE
from quadriga.core.model.gang import ASKS, LIMIT, NODES, PREDICATES, QUOTA
from quadriga.core.model.gather_budget import CHARGED, GATHERINGS, LENDING, WINDOW
from quadriga.core.runtime.stepwise import STEP, Steps, chunks
from quadriga.core.views.counters import (
    QueueCounters,
    SchedulerCounters,
    queue_counters_in_steps,
    scheduler_counters_in_steps,
)
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.fsm.lifecycles import gang as gang_fsm

if TYPE_CHECKING:
    from quadriga.core.driver.service import SchedulerService
    from quadriga.core.model.application import Application
    from quadriga.core.model.partition import Partition
    from quadriga.core.runtime.tally import Tally
    from quadriga.core.scheduler import Scheduler
    from quadriga.web.metrics.families import Distribution
    from quadriga.web.metrics.meter import Measurer

#: phases of a gang that has not ended: its quota has no room for the whole gang; it waits for its
#: first placeholder, or for a place for every member; it waits for the other placeholders, or keeps nodes
#: until all members fit; it has had all of them
GANG_PHASES = ("gated", "waiting", "gathering", "started")

#: results of an attempt to place all members of a gang in one step: they were placed; allocations were
#: preempted for them; or what the gang lacked
GANG_RESULTS = ("placed", "preempted", NODES, PREDICATES, QUOTA, LIMIT, ASKS)


@dataclass(frozen=True, slots=True)
class PartitionNumbers:
    """One partition. Waiting times and the oldest ask (ns) are by the path of the leaf queue."""

    rm: str
    name: str
    queues: list[QueueCounters]
    #: asks that are not fully allocated
    asks: int
    reservations: int
    gangs: dict[str, int]
    #: how often gangs began to gather and how that ended, and the time (ns) of the whole partition that was
    #: kept idle for them, and that may still be (Q10)
    gatherings: dict[str, int]
    #: allocations that were lent nodes of planned starts, that overran there, and that were preempted for it
    lending: dict[str, int]
    kept_idle: int
    budget_left: int
    #: the same at quotas and limits (Q12), the number of those that are kept now, and the least that one of their
    #: budgets has left
    quota_plannings: dict[str, int]
    quotas_idle: int
    quota_plans: int
    quota_budget_left: int
    #: placeholders of active applications: pending and allocated
    placeholders: dict[str, int]
    waits: dict[tuple[str, bool], Distribution]
    oldest: dict[str, int]


@dataclass(frozen=True, slots=True)
class Latencies:
    """Latencies that the driver has measured."""

    scheduling: Distribution
    cycle: Distribution
    node: Distribution
    nodes: Distribution
    preemption: Distribution
    work: Distribution


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that metrics are made of, except the process and metrics of other parts of it."""

    counters: SchedulerCounters
    partitions: list[PartitionNumbers]
    resource_managers: dict[str, int]
    latencies: Latencies
    edges: dict[tuple[str, str, str, str], int]
    lasted: dict[tuple[str, str], Distribution]
    releases: dict[str, int]
    placeholders: dict[str, int]
    rejected: dict[tuple[str, str], int]
    forgotten: dict[str, int]
    watchdog: dict[tuple[str, str], int]
    reservations: int
    gang_attempts: dict[str, int]
    rounds: int
    messages: int
    failures: int
    inbox: int
    #: by RM: the time (ns) for which its oldest request waits
    delays: dict[str, int]
    #: requests that were taken, and the sum of the times (ns) that they waited
    taken: int
    waited: int
    #: what the loop spent more than a second on
    slow: int
    journal_records: int
    journal_missed: int


def take(scheduler: Scheduler, service: SchedulerService, meter: Measurer) -> Steps[Snapshot]:
    """Copy everything, after processing the rest of the journal."""
    meter.follow(scheduler.journal)
    counters = yield from scheduler_counters_in_steps(scheduler, service.failures)
    partitions = []
    for each in list(scheduler.partitions()):
        partitions.append((yield from _partition(each, meter, scheduler.tally)))
    journal_metrics, tally = meter.journal_metrics, scheduler.tally
    journal_metrics.prune()
    managers = Counter(rm.state for rm in scheduler.resource_managers())
    return Snapshot(
        counters=counters,
        partitions=partitions,
        resource_managers=dict(sorted(managers.items())),
        latencies=Latencies(
            meter.scheduling.read(),
            meter.cycle.read(),
            meter.node.read(),
            meter.nodes.read(),
            meter.preemption.read(),
            meter.work.read(),
        ),
        edges=journal_metrics.edges,
        lasted={
            state: journal_metrics.lasted[state].read() for state in sorted(journal_metrics.lasted)
        },
        releases=dict(sorted(journal_metrics.releases.items())),
        placeholders=dict(sorted(journal_metrics.placeholders.items())),
        rejected=dict(sorted(tally.rejected.items())),
        forgotten={kind: tally.forgotten[kind] for kind in ("ended", "rejected")},
        watchdog=dict(sorted(tally.watchdog.items())),
        reservations=tally.reservations,
        gang_attempts={result: tally.gang_attempts[result] for result in GANG_RESULTS},
        rounds=tally.rounds,
        messages=meter.messages,
        failures=service.failures,
        inbox=service.waiting,
        delays=dict.fromkeys((rm.rm_id for rm in scheduler.resource_managers()), 0)
        | service.delays(),
        taken=service.taken_and_waited[0],
        waited=service.taken_and_waited[1],
        slow=service.watchdog.count,
        journal_records=scheduler.journal.count,
        journal_missed=journal_metrics.missed,
    )


def _partition(partition: Partition, meter: Measurer, tally: Tally) -> Steps[PartitionNumbers]:
    budget, waiting = partition.gather_budget, partition.waiting
    budgets = [quota.budget for quota in waiting.quota_plans]
    gangs = dict.fromkeys(GANG_PHASES, 0)
    pending = placed = asks = 0
    for number, app in enumerate(list(partition.applications.values()), 1):
        if number % STEP == 0:
            yield
        asks += len(app.asks)
        if app.gang.size is None and not app.gang.task_groups:
            continue
        phase = _phase(app)
        if phase:
            gangs[phase] += 1
        if app.gang.over:
            continue
        pending += sum(group.pending for group in app.gang.task_groups.values())
        placed += len(app.placeholders)
    queues = yield from queue_counters_in_steps(partition, tally)
    oldest = yield from _oldest(partition)
    waits = {
        (queue.path, placeholder): waited.read()
        for (queue, placeholder), waited in meter.journal_metrics.waits.items()
        if queue.partition is partition
    }
    return PartitionNumbers(
        rm=partition.rm.rm_id,
        name=partition.name,
        queues=queues,
        asks=asks,
        reservations=len(partition.reservations),
        gangs=gangs,
        gatherings={result: budget.counts[result] for result in GATHERINGS},
        lending={result: budget.counts[result] for result in LENDING},
        kept_idle=budget.kept_idle,
        budget_left=budget.left(),
        quota_plannings={result: waiting.quota_counts[result] for result in GATHERINGS},
        quotas_idle=waiting.quota_counts[CHARGED] // WHOLE,
        quota_plans=len(waiting.quota_plans),
        quota_budget_left=min(
            (each.left() for each in budgets if each is not None),
            default=partition.root.properties.gang_gather_budget * WINDOW // WHOLE,
        ),
        placeholders={"pending": pending, "placed": placed},
        waits=dict(sorted(waits.items())),
        oldest=oldest,
    )


def _phase(app: Application) -> str:
    """The phase of the gang; empty if it has ended, or its members are placed one by one after its
    placeholders timed out."""
    own = app.gang
    if app.state not in application_fsm.BEFORE_RUNNING:
        return "started" if app.state in application_fsm.COUNTED and not own.timed_out else ""
    if own.gated:
        return "gated"
    if own.state in gang_fsm.KEEPS_NODES:
        return "gathering"
    if own.over:
        return "waiting" if own.lacks else ""
    return "gathering" if own.started else "waiting"


def _oldest(partition: Partition) -> Steps[dict[str, int]]:
    """Leaf queue -> arrival of the oldest ask that waits there (ns)."""
    found: dict[str, int] = {}
    for leaf in list(partition.leaves()):
        heads = []
        for apps in chunks(leaf.apps.values()):
            heads += [
                ask.created
                for app in apps
                for group in app.groups.values()
                for ask in islice(group.asks.values(), 1)
            ]
            yield
        if heads:
            found[leaf.path] = min(heads)
    return found
