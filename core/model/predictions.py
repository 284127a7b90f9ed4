"""How long allocations are expected to run, and when they end (Q11). See D327."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quadriga.base.times import SECOND
from quadriga.core.model.gather_budget import WINDOW
from quadriga.core.model.run_times import (
    BY_GROUP,
    BY_QUEUE,
    BY_USER,
    GIVEN,
    LIMIT,
    LONG,
    MEDIAN,
    NOTHING,
    RIGHT,
    SHORT,
    TOLD,
    Expected,
)
from quadriga.fsm.lifecycles import allocation as allocation_fsm

if TYPE_CHECKING:
    from collections import deque

    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask, Terms
    from quadriga.core.model.gang import Gang

#: fewer run times predict nothing
_FEWEST: Final = 3
#: the expected run time (ns) in a queue of which nothing is known
_UNKNOWN: Final = 3600 * SECOND
#: an allocation that overran, or of which nothing is known, is expected to last this long (ns) at least
_SHORTEST_REST: Final = 60 * SECOND
#: an allocation that has run this long (ns), and twice as long as any that has ended, has no end
_MAY_BE_ENDLESS: Final = 86_400 * SECOND
#: where a prediction comes from: the records of an application and a task group, the closest first
_SOURCES: Final = (BY_GROUP, BY_USER, BY_QUEUE)


def run_time(ask: Ask) -> Expected | None:
    """How long an allocation of the ask is expected to run; ``None`` if nothing is known.

    It is what the ask tells, else what its application does, and never more than its time limit. Else it is the
    smallest run time that nine in ten of the last runs did not exceed: those of the same user in the same queue
    and task group, or else of the user, or of the queue, if there are three at least.
    """
    return run_time_by_terms(ask.app, ask.terms, ask.kind.task_group)


def run_time_by_terms(app: Application, terms: Terms, task_group: str) -> Expected | None:
    """As ``run_time``, for an ask of the application with these terms."""
    limit = min(terms.run_limit, terms.runtime_bound) or terms.run_limit or terms.runtime_bound
    time, source = terms.expected_runtime or app.expected_runtime, TOLD
    if not time and app.queue.properties.runtime_prediction:
        records = app.run_records.get(task_group) or _records(app, task_group)
        for record, by in zip(records, _SOURCES, strict=True):
            if len(record) >= _FEWEST:
                time, source = sorted(record)[(9 * len(record) - 1) // 10], by
                break
    if limit and not 0 < time < limit:
        return Expected(limit, LIMIT)
    return Expected(time, source) if time else None


def typical(app: Application) -> Expected:
    """What an order takes for an application of which nothing is known: the median of the last run times of
    its queue."""
    median = app.partition.run_times.median(app.queue.path)
    return Expected(_UNKNOWN, NOTHING) if median is None else Expected(median, MEDIAN)


def expected_end(allocation: Allocation, now: int) -> Expected | None:
    """When the allocation is expected to end; ``None`` if nothing is known.

    One that has run for longer is expected to last as long again as it has overrun, at least a minute. What is
    expected of a placeholder is what its application tells of what replaces it.
    """
    expected = run_time(allocation.ask)
    if expected is None:
        return None
    end = allocation.created + expected.time
    if end <= now:
        end = now + max(now - end, _SHORTEST_REST)
    return Expected(end, expected.source)


def planned_end(allocation: Allocation, now: int) -> Expected | None:
    """When the allocation is expected to end for a plan; ``None``: never. One of which nothing is known is expected to
    last as long again as it has run, at least a minute."""
    if _is_endless(allocation, now):
        return None
    expected = expected_end(allocation, now)
    if expected is None:
        return Expected(now + max(now - allocation.created, _SHORTEST_REST), NOTHING)
    return expected


def is_told(gang: Gang) -> bool:
    """Whether the run time of each member is told, and its planned start, if it has one, depends on told ends
    alone."""
    plan = gang.partition.node_index.planned
    if plan is not None and plan.app is gang.application and not plan.is_told:
        return False
    expected = map(run_time, [group.head for group in gang.members])
    return all(each is not None and each.source in GIVEN for each in expected)


def ended(allocation: Allocation, now: int) -> None:
    """A member or a single pod has ended. What was preempted or replaced tells nothing."""
    if allocation.state not in allocation_fsm.RAN_TO_ITS_END:
        return
    ran, ask = now - allocation.created, allocation.ask
    run_times, group = ask.app.partition.run_times, ask.kind.task_group
    if run_times.judges and (expected := run_time(ask)) is not None:
        run_times.verdicts[expected.source, _verdict(expected.time, ran)] += 1
    for record in ask.app.run_records.get(group) or _records(ask.app, group):
        record.append(ran)


def _records(app: Application, group: str) -> tuple[deque[int], ...]:
    """The records of the application and the task group, which the application remembers."""
    record = app.partition.run_times.record
    path, user = app.queue.path, app.user or "-"
    records = (
        record((path, user, group)),
        record(("", user, "")),
        record((path, "", "")),
    )
    app.run_records[group] = records
    return records


def _is_endless(allocation: Allocation, now: int) -> bool:
    """Whether the allocation is not expected to end in time for a gang.

    It is if it is told to run for longer than the window, or, without being told, has run for a day
    and for twice as long as any that has ended.
    """
    terms, app = allocation.ask.terms, allocation.ask.app
    age = now - allocation.created
    told = terms.expected_runtime or app.expected_runtime or terms.run_limit
    if told >= age:
        return told - age > WINDOW
    return age > max(_MAY_BE_ENDLESS, 2 * app.partition.gather_budget.longest_run)


def _verdict(expected: int, ran: int) -> str:
    within = max(ran // 10, 60 * SECOND)
    return SHORT if expected < ran - within else LONG if expected > ran + within else RIGHT
