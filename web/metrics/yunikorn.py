"""YuniKorn's metrics under their names (2.15), so that its dashboards and alerts keep working.

These series distinguish neither partitions nor resource managers; queues of the same path are added
up. docs/metrics.md says which version of YuniKorn is followed where versions differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Final

from quadriga.core.views.counters import QueueCounters
from quadriga.fsm import APPLICATION
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.web.metrics.exposition import metric_name
from quadriga.web.metrics.families import Distribution, Family, Histogram, one
from quadriga.web.metrics.meter import SCHEDULING_BOUNDS
from quadriga.web.metrics.snapshot import Latencies, Snapshot


def _label(state: application_fsm.State) -> str:
    """YuniKorn's name of the state in lower case; states that count as running are "running" (2.1)."""
    shown = application_fsm.RUNNING if state in application_fsm.COUNTED else state
    return application_fsm.YUNIKORN_STATES[shown].lower()


_LABELS: Final[dict[str, str]] = {state: _label(state) for state in application_fsm.YUNIKORN_STATES}

#: states of applications in the labels of queues (1.5, with the additions of 1.6)
QUEUE_STATES: Final = tuple(dict.fromkeys(_LABELS.values()))

#: states of applications in the labels of the scheduler: YuniKorn's six in its order, then others;
#: without states before running, rejected and expired applications
_SCHEDULER_STATES: Final = tuple(
    dict.fromkeys(
        _LABELS[state]
        for state in (
            *(
                *application_fsm.COUNTED,
                application_fsm.COMPLETED,
                application_fsm.KILLED,
                application_fsm.RESUMING,
                application_fsm.KILLING,
                application_fsm.WAITING,
            ),
            *application_fsm.YUNIKORN_STATES,
        )
        if state
        not in application_fsm.BEFORE_RUNNING | application_fsm.TURNED_AWAY | set(APPLICATION.final)
    )
)

#: the ten ranges in YuniKorn's spelling; the second one has a space
_RANGES: Final = (
    "[0,10%]",
    "(10%, 20%]",
    *(f"({low}%,{low + 10}%]" for low in range(20, 100, 10)),
)

#: amounts of a queue, in the order of the label values
_AMOUNTS: Final = ("guaranteed", "max", "allocated", "pending", "preempting")

_NEVER: Final = Histogram(SCHEDULING_BOUNDS).read()


def scheduler_families(seen: Snapshot, resources: Collection[str]) -> Iterator[Family]:
    """The families of the whole scheduler. Node usage is limited to these resources."""
    counters = seen.counters
    containers = Family(
        "yunikorn_scheduler_container_allocation_attempt_total",
        "counter",
        "Allocations made and ended, asks rejected, failures of the scheduler itself.",
    )
    for state in ("allocated", "rejected", "error", "released"):
        containers.add(counters["containers"][state], state=state)
    yield containers

    submissions = Family(
        "yunikorn_scheduler_application_submission_total",
        "counter",
        "Applications submitted, and what became of them on arrival.",
    )
    for result in ("new", "accepted", "rejected"):
        submissions.add(counters["submissions"][result], result=result)
    yield submissions

    applications = Family(
        "yunikorn_scheduler_application_total", "gauge", "Applications in a state now."
    )
    states = _by_label(counters["applications"])
    for state in _SCHEDULER_STATES:
        applications.add(states[state], state=state)
    yield applications

    nodes = Family("yunikorn_scheduler_node", "gauge", "Nodes in a state.")
    for state in ("active", "draining", "decommissioned", "unhealthy", "failed"):
        nodes.add(counters["nodes"][state], state=state)
    yield nodes

    yield from _latencies(seen.latencies)

    taken: dict[str, Family] = {}
    for resource, counts in counters["node_usage"].items():
        name = f"yunikorn_scheduler_{metric_name(resource)}_node_usage_total"
        # two resource types may have the same name as metrics
        if name in taken or resource not in resources:
            continue
        usage = taken[name] = Family(
            name, "gauge", f"Nodes by how much of their {resource} is allocated."
        )
        for label, count in zip(_RANGES, counts, strict=True):
            usage.add(count, range=label)
        yield usage

    for what, help in _EVENTS.items():
        yield one(f"yunikorn_event_total_{what}", "gauge", help, counters["events"][what])


_EVENTS: Final = {
    "created": "Event records that were made.",
    "channeled": "Event records on their way to the sinks; all are.",
    "not_channeled": "Event records lost on that way; none is.",
    "processed": "Event records that came through it.",
    "stored": "Event records put into the stores of resource managers.",
    "not_stored": "Event records that found the store full.",
    "collected": "Event records sent to resource managers.",
}


def _latencies(seen: Latencies) -> Iterator[Family]:
    """Values are in seconds, whatever the names say."""

    def family(name: str, help: str, *values: Distribution) -> Family:
        found = Family(f"yunikorn_scheduler_{name}_milliseconds", "histogram", help)
        for value in values:
            found.add(value)
        return found

    yield family(
        "scheduling_latency", "Seconds for one round of scheduling that decided.", seen.scheduling
    )
    sorting = family(
        "node_sorting_latency", "Nothing is ever sorted to decide, so there is nothing to time."
    )
    for level in ("app", "queue"):
        sorting.add(_NEVER, level=level)
    yield sorting
    yield family("trynode_latency", "Seconds for the predicates of one ask and node.", seen.node)
    yield family(
        "trypreemption_latency", "Seconds to look for whom to preempt for one ask.", seen.preemption
    )
    yield family("scheduling_cycle", "Seconds for one call of the scheduler.", seen.cycle)
    yield family("trynode_evaluation", "Seconds for all predicates within one call.", seen.nodes)


# -- queues ----------------------------------------------------------------------------------------


def queue_families(
    queues: list[QueueCounters], resources: Collection[str], *, old_names: bool
) -> Iterator[Family]:
    """The families of each queue; the paths of the queues are unique. ``old_names`` repeats them
    with the queue in the metric's name, as up to 1.7."""
    apps = Family("yunikorn_queue_app", "gauge", "Applications of a queue and all below, by state.")
    ended = Family(
        "yunikorn_queue_app_total", "counter", "Applications that ended in a queue and all below."
    )
    amounts = Family(
        "yunikorn_queue_resource", "gauge", "Amounts of a queue; vcore in milli, memory in bytes."
    )
    old: dict[str, tuple[Family, ...]] = {}
    for queue in queues:
        path = queue["queue"]
        states = _by_label(queue["applications"])
        held = [
            (state, name, value)
            for state in _AMOUNTS
            for name, value in _amounts(queue, state)
            if name in resources
        ]
        if queue["maxRunningApps"]:
            held.append(("maxRunningApps", "apps", queue["maxRunningApps"]))
        for state in QUEUE_STATES:
            apps.add(states[state], queue=path, state=state)
        for state, count in _by_label(queue["ended"]).items():
            ended.add(count, queue=path, state=state)
        for state, resource, value in held:
            amounts.add(value, queue=path, state=state, resource=resource)
        prefix = f"yunikorn_{metric_name(path)}"
        if prefix in old:  # "a-b" and "a_b" have the same name; only labels distinguish them
            continue
        containers = Family(
            f"{prefix}_queue_container", "counter", f"Allocations made and ended in {path}."
        )
        containers.add_all("state", queue["containers"])
        old[prefix] = (containers,)
        if old_names:
            old_apps = Family(f"{prefix}_queue_app", "gauge", f"Applications of {path}, by state.")
            old_amounts = Family(f"{prefix}_queue_resource", "gauge", f"Amounts of {path}.")
            old_apps.add_all("state", {state: states[state] for state in QUEUE_STATES})
            for state, resource, value in held:
                old_amounts.add(value, state=state, resource=resource)
            old[prefix] = (containers, old_apps, old_amounts)
    yield apps
    yield ended
    yield amounts
    for families in old.values():
        yield from families


def _amounts(queue: QueueCounters, state: str) -> list[tuple[str, int]]:
    found: dict[str, int] = queue[state]  # type: ignore[literal-required]
    if state in ("guaranteed", "max"):
        return list(found.items())
    # types that are limited but unused: a series that falls to zero must not disappear
    types = {**queue["max"], **queue["guaranteed"], **queue["allocated"], **queue["pending"]}
    return [(name, found.get(name, 0)) for name in sorted({*types, *found})]


def _by_label(states: dict[str, int]) -> Counter[str]:
    """Counts of applications by label."""
    found: Counter[str] = Counter()
    for state, count in states.items():
        found[_LABELS[state]] += count
    return found
