"""The numbers behind metrics: counters, and present amounts (2.15)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypedDict

from quadriga.core.model.queue import LeafQueue
from quadriga.core.runtime.stepwise import Steps, chunks
from quadriga.core.views.nodes import BUCKETS, bucket_of
from quadriga.core.views.partitions import containers_of
from quadriga.core.views.quantities import amounts, provided, sorted_amounts
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.fsm.lifecycles import node as node_fsm
from quadriga.si.constants import NODE_READY_ATTRIBUTE

if TYPE_CHECKING:
    from quadriga.core.model.application import Application, EndedApplication
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.queue import Queue
    from quadriga.core.runtime.tally import Tally
    from quadriga.core.scheduler import Scheduler
    from quadriga.core.views.objects import Resources


class SchedulerCounters(TypedDict):
    """Over all partitions.

    ``containers`` and ``submissions`` only grow, except that ``allocated`` and ``released`` restart when
    a resource manager registers again (I7). ``nodes`` and ``applications`` are present numbers, by
    canonical state name; ended applications are included until they expire. ``node_usage`` has the
    number of nodes in each of the ten buckets, by resource type.
    """

    containers: dict[str, int]
    submissions: dict[str, int]
    applications: dict[str, int]
    nodes: dict[str, int]
    node_usage: dict[str, list[int]]
    events: dict[str, int]


class QueueCounters(TypedDict):
    """One queue with all below it.

    ``containers`` are those allocated and released since the queue exists. ``ended`` are all
    applications that have ended in it, by state, also in an earlier queue of the same path.
    """

    queue: str
    applications: dict[str, int]
    ended: dict[str, int]
    containers: dict[str, int]
    guaranteed: Resources
    max: Resources
    allocated: Resources
    pending: Resources
    preempting: Resources
    maxRunningApps: int


class PartitionCounters(TypedDict):
    """The present numbers of a partition."""

    allocations: int
    applications: int
    completedApplications: int
    placeholderAllocations: int
    rejectedApplications: int
    reservations: int


def partition_counters(partition: Partition) -> PartitionCounters:
    rejected = sum(app.state in application_fsm.TURNED_AWAY for app in partition.ended)
    living = partition.applications.values()
    return {
        "allocations": containers_of(partition),
        "applications": len(living),
        "completedApplications": len(partition.ended) - rejected,
        "placeholderAllocations": sum(len(app.placeholders) for app in living),
        "rejectedApplications": rejected,
        "reservations": len(partition.reservations),
    }


def scheduler_counters_in_steps(scheduler: Scheduler, errors: int) -> Steps[SchedulerCounters]:
    """``errors`` is the number of errors that the driver survived."""
    partitions, tally = list(scheduler.partitions()), scheduler.tally
    held = released = unhealthy = 0
    states: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    usage: dict[str, list[int]] = {}
    for partition in partitions:
        released += partition.root.released
        for apps in chunks(partition.applications.values()):
            states.update([app.state for app in apps])
            held += sum([len(app.allocations) + len(app.placeholders) for app in apps])
            released += sum([app.released for app in apps])
            yield
        for ended in chunks(partition.ended):
            states.update([app.state for app in ended])
            yield
        types = [
            (partition.registry.index[name], usage.setdefault(name, [0] * len(BUCKETS)))
            for name in provided(partition)
        ]
        for nodes in chunks(partition.nodes.values()):
            kinds.update([node.state for node in nodes])
            for node in nodes:
                unhealthy += node.attributes.get(NODE_READY_ATTRIBUTE, "").lower() == "false"
                for index, counts in types:
                    if (whole := node.total[index]) > 0:
                        counts[bucket_of(node.allocated[index], whole)] += 1
            yield
    return {
        "containers": {
            "allocated": held + released,
            "released": released,
            "rejected": tally.asks_rejected,
            "error": errors,
        },
        "submissions": {
            "new": tally.applications_accepted + tally.applications_rejected,
            "accepted": tally.applications_accepted,
            "rejected": tally.applications_rejected,
        },
        "applications": dict(sorted(states.items())),
        "nodes": {
            "active": sum(kinds[state] for state in node_fsm.OPEN),
            "draining": sum(kinds[state] for state in node_fsm.CLOSED),
            "decommissioned": tally.nodes_removed,
            "unhealthy": unhealthy,
            "failed": sum(len(p.failed_nodes) for p in partitions),
        },
        "node_usage": dict(sorted(usage.items())),
        "events": scheduler.events.counts._asdict(),
    }


def queue_counters_in_steps(partition: Partition, tally: Tally) -> Steps[list[QueueCounters]]:
    """Every queue, parents first, children by name. Ended applications count in their queue."""
    ended: dict[str, list[EndedApplication]] = {}
    for apps in chunks(partition.ended):
        for app in apps:
            ended.setdefault(app.queue_path, []).append(app)
        yield
    found: list[QueueCounters] = []
    yield from _queue_counters(partition.root, _living(partition), ended, found)
    for each in found:
        counts = tally.ended.get((partition.key, each["queue"]), Counter())
        each["ended"] = {state: counts[state] for state in application_fsm.RECORDED}
    return found


def _living(partition: Partition) -> dict[Queue, tuple[list[Application], int]]:
    """The applications of each queue, and what those that have ended had released. Both are of one moment,
    so an application that ends meanwhile is counted once."""
    return {
        queue: (list(queue.apps.values()) if isinstance(queue, LeafQueue) else [], queue.released)
        for queue in partition.queues()
    }


def _queue_counters(
    queue: Queue,
    living: dict[Queue, tuple[list[Application], int]],
    ended: dict[str, list[EndedApplication]],
    found: list[QueueCounters],
) -> Steps[tuple[Counter[str], int, int]]:
    """Append the counters of the queue and all below to ``found``. Returns its applications by state, and
    the numbers of allocations that living applications hold and have released."""
    partition = queue.partition
    mine: QueueCounters = {
        "queue": queue.path,
        "applications": {},
        "ended": {},
        "containers": {},
        "guaranteed": sorted_amounts(queue.guaranteed),
        "max": sorted_amounts(queue.max) if queue.parent is not None else provided(partition),
        "allocated": amounts(partition, queue.allocated),
        "pending": amounts(partition, queue.pending),
        "preempting": amounts(partition, queue.preempting),
        "maxRunningApps": queue.max_applications,
    }
    found.append(mine)
    states: Counter[str] = Counter([app.state for app in ended.get(queue.path, ())])
    held = released = 0
    mine_living, mine_released = living.get(queue, ((), 0))
    for apps in chunks(mine_living):
        states.update([app.state for app in apps])
        held += sum([len(app.allocations) + len(app.placeholders) for app in apps])
        released += sum([app.released for app in apps])
        yield
    yield
    for child in [queue.children[name] for name in sorted(queue.children)]:
        more, below_held, below_released = yield from _queue_counters(child, living, ended, found)
        states += more
        held += below_held
        released += below_released
    mine["applications"] = dict(sorted(states.items()))
    mine["containers"] = {
        "allocated": held + released + mine_released,
        "released": released + mine_released,
    }
    return states, held, released
