"""Metrics that YuniKorn does not have: durations of states, waiting times and their causes, the
watchdog, and the service itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from importlib.metadata import version
from typing import Final

from quadriga.base.times import SECOND
from quadriga.fsm import ALLOCATION
from quadriga.fsm.lifecycles import allocation as allocation_fsm
from quadriga.fsm.lifecycles import resource_manager as resource_manager_fsm
from quadriga.web.metrics.families import Family, one
from quadriga.web.metrics.snapshot import PartitionNumbers, Snapshot
from quadriga.web.site import ExtraMetrics

#: transitions of releases that are sent again
_RESENDS: Final = tuple(
    (ALLOCATION.name, allocation_fsm.RELEASE, state, state)
    for state in ALLOCATION.states
    if state in allocation_fsm.ASKED_BACK
)


def lifecycle_families(seen: Snapshot) -> Iterator[Family]:
    """Metrics of lifecycles, from the journal."""
    edges = Family("quadriga_transitions_total", "counter", "Changes of state, by edge.")
    for (lifecycle, trigger, source, target), count in seen.edges.items():
        edges.add(count, lifecycle=lifecycle, trigger=trigger, **{"from": source, "to": target})
    yield edges

    lasted = Family(
        "quadriga_state_seconds", "histogram", "How long a state had lasted when it was left."
    )
    for (lifecycle, state), distribution in seen.lasted.items():
        lasted.add(distribution, lifecycle=lifecycle, state=state)
    yield lasted

    releases = Family(
        "quadriga_releases_total", "counter", "Releases that the scheduler asked for, by reason."
    )
    for reason in allocation_fsm.REASONS:
        releases.add(seen.releases.get(reason, 0), reason=reason)
    yield releases

    yield one(
        "quadriga_release_resends_total",
        "counter",
        "Releases asked for again, unconfirmed.",
        sum(seen.edges.get(edge, 0) for edge in _RESENDS),
    )

    reports = Family(
        "quadriga_watchdog_reports_total", "counter", "Entities that outstayed a state."
    )
    for (lifecycle, state), count in seen.watchdog.items():
        reports.add(count, lifecycle=lifecycle, state=state)
    yield reports

    rejected = Family(
        "quadriga_rejected_total", "counter", "What was rejected on arrival, by kind of reason."
    )
    for (what, reason), count in seen.rejected.items():
        rejected.add(count, item=what, reason=reason)
    yield rejected

    forgotten = Family(
        "quadriga_applications_forgotten_total",
        "counter",
        "Ended applications that expired early, as there were too many.",
    )
    forgotten.add_all("kind", seen.forgotten)
    yield forgotten


def gang_families(seen: Snapshot) -> Iterator[Family]:
    """Gangs, reservations and asks of each partition."""
    entered = Family("quadriga_placeholders_total", "counter", "Placeholders that entered a state.")
    for state in allocation_fsm.ONCE_HELD:
        entered.add(seen.placeholders.get(state, 0), state=state)
    yield entered

    gangs = Family("quadriga_gangs", "gauge", "Gangs that have not ended, by how far they are.")
    held = Family("quadriga_gang_placeholders", "gauge", "Placeholders of living applications.")
    asks = Family("quadriga_asks", "gauge", "Asks that are not wholly allocated.")
    reserved = Family("quadriga_reservations", "gauge", "Nodes reserved for an ask.")
    gatherings = Family(
        "quadriga_gatherings_total", "counter", "Gangs that gathered, or were refused."
    )
    lent = Family(
        "quadriga_gang_lent_total", "counter", "Allocations on nodes of planned starts, by result."
    )
    idle = Family(
        "quadriga_gang_idle_seconds_total", "counter", "Whole partition kept idle for gangs."
    )
    left = Family("quadriga_gang_budget_seconds", "gauge", "What of that the budget still allows.")
    plans = Family(
        "quadriga_quota_plans", "gauge", "Quotas and limits kept for what waits longest."
    )
    plannings = Family(
        "quadriga_quota_plannings_total", "counter", "Starts planned at quotas, or refused."
    )
    quotas_idle = Family(
        "quadriga_quota_idle_seconds_total", "counter", "Whole quota kept idle for planned starts."
    )
    quota_left = Family(
        "quadriga_quota_budget_seconds", "gauge", "The least of that a kept quota still allows."
    )
    for partition in seen.partitions:
        home = {"rm": partition.rm, "partition": partition.name}
        plans.add(partition.quota_plans, **home)
        plannings.add_all("result", partition.quota_plannings, **home)
        quotas_idle.add(partition.quotas_idle / SECOND, **home)
        quota_left.add(partition.quota_budget_left / SECOND, **home)
        gangs.add_all("phase", partition.gangs, **home)
        gatherings.add_all("result", partition.gatherings, **home)
        lent.add_all("result", partition.lending, **home)
        idle.add(partition.kept_idle / SECOND, **home)
        left.add(partition.budget_left / SECOND, **home)
        held.add_all("state", partition.placeholders, **home)
        asks.add(partition.asks, **home)
        reserved.add(partition.reservations, **home)
    yield from (gangs, held, asks, reserved, gatherings, lent, idle, left)
    yield from (plans, plannings, quotas_idle, quota_left)

    attempts = Family(
        "quadriga_gang_attempts_total", "counter", "Attempts to place a whole gang, by result."
    )
    attempts.add_all("result", seen.gang_attempts)
    yield attempts

    yield one(
        "quadriga_reservations_made_total",
        "counter",
        "Reservations that were made.",
        seen.reservations,
    )


def queue_waits(partitions: Iterable[PartitionNumbers], shown: Collection[str]) -> Iterator[Family]:
    """Waiting times of pods, and the arrival of the oldest waiting ask, by leaf queue; for the
    ``shown`` queues."""
    waits = Family(
        "quadriga_queue_wait_seconds", "histogram", "From an ask to each of its allocations."
    )
    oldest = Family(
        "quadriga_queue_oldest_ask_timestamp_seconds",
        "gauge",
        "When the ask that has waited longest arrived (unix time).",
    )
    for partition in partitions:
        home = {"rm": partition.rm, "partition": partition.name}
        for (path, placeholder), distribution in partition.waits.items():
            if path in shown:
                kind = "placeholder" if placeholder else "real"
                waits.add(distribution, **home, queue=path, kind=kind)
        for path, arrived in partition.oldest.items():
            if path in shown:
                oldest.add(arrived / SECOND, **home, queue=path)
    yield waits
    yield oldest


def service_families(seen: Snapshot, left_out: int) -> Iterator[Family]:
    """The driver, and the metrics themselves."""
    work = seen.latencies.work
    yield one(
        "quadriga_work_seconds",
        "histogram",
        "Time for one request, or for one look at the state.",
        work,
    )
    yield one("quadriga_rounds_total", "counter", "Rounds of scheduling.", seen.rounds)
    yield one(
        "quadriga_messages_total", "counter", "Messages that rounds have led to.", seen.messages
    )
    yield one("quadriga_failures_total", "counter", "Bugs that the service has met.", seen.failures)
    yield one(
        "quadriga_inbox", "gauge", "Requests and looks that wait for the scheduler.", seen.inbox
    )
    delays = Family(
        "quadriga_request_delay_seconds", "gauge", "How long the oldest waiting request has waited."
    )
    for rm, delay in sorted(seen.delays.items()):
        delays.add(delay / SECOND, rm=rm)
    yield delays
    yield one("quadriga_requests_taken_total", "counter", "Requests that were taken.", seen.taken)
    yield one(
        "quadriga_requests_waited_seconds_total",
        "counter",
        "Time from the arrival of requests until they were taken.",
        seen.waited / SECOND,
    )
    yield one(
        "quadriga_slow_work_total",
        "counter",
        "How often the loop spent more than a second on one thing.",
        seen.slow,
    )
    yield one(
        "quadriga_journal_records_total",
        "counter",
        "Records written to the journal.",
        seen.journal_records,
    )
    yield one(
        "quadriga_journal_missed_total",
        "counter",
        "Records that were gone before metrics could count them.",
        seen.journal_missed,
    )
    yield one(
        "quadriga_queues_left_out",
        "gauge",
        "Queues without series of their own, as there are too many.",
        left_out,
    )
    managers = Family("quadriga_resource_managers", "gauge", "Resource managers in a state.")
    for state in resource_manager_fsm.KNOWN:
        managers.add(seen.resource_managers.get(state, 0), state=state)
    yield managers
    yield one("quadriga_build_info", "gauge", "The version.", 1, version=version("quadriga"))


def extra_families(measured: Iterable[ExtraMetrics], taken: Collection[str]) -> Iterator[Family]:
    """Metrics of other parts of the process. Raises ``ValueError`` for a name that is reserved or
    taken."""
    found: dict[str, Family] = {}
    for measure in measured:
        for name, kind, help, samples in measure():
            if not name.startswith("quadriga_") or name in taken or name in found:
                raise ValueError(f"metric {name!r} is not one that can be added")
            family = found[name] = Family(name, "counter" if kind == "counter" else "gauge", help)
            for labels, value in samples:
                family.add(value, **labels)
    yield from found.values()
