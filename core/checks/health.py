"""Whether the scheduler's books agree with one another: the eleven checks of YuniKorn (2.12).

Every check is made anew from the live model, none of the running totals that it compares is used on
both sides. What is legal is not reported: a real allocation that waits for a placeholder elsewhere
stands on its node and in no queue (X18). A node whose capacity was lowered below its use (V2) is
reported, as in YuniKorn, for somebody should look at it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from quadriga.core.checks.failures import FailureLog
from quadriga.core.config import parse_duration
from quadriga.core.model.resources import Book, Vector, add, subtract
from quadriga.fsm import allocation as allocation_life

if TYPE_CHECKING:
    from quadriga.core.model.node import Node
    from quadriga.core.model.partition import Partition
    from quadriga.core.views.objects import CheckObject, HealthObject

__all__ = ["CHECK_EVERY", "check_health", "check_interval"]

#: ns between two checks, where nothing else is configured (2.10)
CHECK_EVERY: Final = 30 * 1_000_000_000

_ERRORS, _FAILED = "Scheduling errors", "Failed nodes"
_NEGATIVE, _CONSISTENT = "Negative resources", "Consistency of data"
_RESERVED = "Reservation check"
_NODE_ORPHANS, _APP_ORPHANS = "Orphan allocation on node check", "Orphan allocation on app check"


def check_interval(extra: Mapping[str, str]) -> int:
    """How often an extraConfig wants the checks, in ns; 0: never (2.2.3, ``health.checkInterval``).

    A value that is no duration leaves the default.
    """
    text = extra.get("health.checkInterval", "")
    try:
        return max(0, parse_duration(text)) if text else CHECK_EVERY
    except ValueError:
        return CHECK_EVERY


def check_health(
    partitions: Iterable[Partition],
    failures: FailureLog | None = None,
    now: int = 0,
    since: int | None = None,
) -> HealthObject:
    """All checks, in YuniKorn's order. ``failures`` are the bugs of ours that the driver survived
    (``SchedulerService.failure_log``); the first check fails for those that are recent at ``now``
    (ns), or came after ``since``, the time of the check before."""
    partitions = list(partitions)
    failures = failures or FailureLog()
    errors = failures.recent(now, since)
    nodes = [node for partition in partitions for _, node in sorted(partition.nodes.items())]
    failed = [f"{p.key}/{name}" for p in partitions for name in sorted(p.failed_nodes)]
    checks = [
        _check(
            _ERRORS,
            "Check for scheduling error entries in metrics",
            not errors,
            failures.diagnosis(errors),
        ),
        _check(
            _FAILED,
            "Check for failed nodes entries in metrics",
            not failed,
            f"nodes that could not be taken up: {_listed(failed)}",
        ),
        _listing(
            _NEGATIVE,
            "Check for negative resources in the partitions",
            "partitions with negative resources",
            (text for p in partitions for text in _negative_in_partition(p)),
        ),
        _listing(
            _NEGATIVE,
            "Check for negative resources in the nodes",
            "nodes with negative resources",
            (text for node in nodes for text in _negative_on_node(node)),
        ),
        _listing(
            _CONSISTENT,
            "Check if a partition's allocated resource <= total resource of the partition",
            "partitions whose queues and nodes do not hold the same",
            (text for p in partitions for text in _allocated_differs(p)),
        ),
        _listing(
            _CONSISTENT,
            "Check if total partition resource == sum of the node resources from the partition",
            "partitions whose total is not the sum of their nodes",
            (text for p in partitions for text in _total_differs(p)),
        ),
        _listing(
            _CONSISTENT,
            "Check if node total resource = allocated resource + occupied resource "
            "+ available resource",
            "nodes whose parts are not their total",
            (text for node in nodes for text in _parts_differ(node)),
        ),
        _listing(
            _CONSISTENT,
            "Check if node capacity >= allocated resources on the node",
            "nodes with more allocated than they have",
            (text for node in nodes for text in _overfull(node)),
        ),
        _check(
            _RESERVED,
            "Check the reservation nr compared to the number of nodes",
            True,
            "; ".join(
                f"{p.key}: {len(p.reservations)} reservations, {len(p.nodes)} nodes"
                for p in partitions
            )
            or "no partitions",
        ),
        _listing(
            _NODE_ORPHANS,
            "Check if there are orphan allocations on the nodes",
            "allocations on nodes that no application knows",
            (text for node in nodes for text in _unknown_to_applications(node)),
        ),
        _listing(
            _APP_ORPHANS,
            "Check if there are orphan allocations on the applications",
            "allocations of applications that no node knows",
            (text for p in partitions for text in _unknown_to_nodes(p)),
        ),
    ]
    return {"Healthy": all(each["Succeeded"] for each in checks), "HealthChecks": checks}


def _check(name: str, description: str, succeeded: bool, diagnosis: str) -> CheckObject:
    return {
        "Name": name,
        "Succeeded": succeeded,
        "Description": description,
        "DiagnosisMessage": diagnosis,
    }


def _listing(name: str, description: str, about: str, found: Iterable[str]) -> CheckObject:
    """A check that succeeds when nothing is found."""
    offenders = list(found)
    return _check(name, description, not offenders, f"{about}: {_listed(offenders)}")


def _listed(texts: list[str]) -> str:
    return "; ".join(texts) or "none"


# -- the checks ------------------------------------------------------------------------------------


def _negative_in_partition(partition: Partition) -> Iterator[str]:
    registry = partition.registry
    for what, book in (("allocated", partition.root.allocated), ("total", partition.capacity)):
        if any(value < 0 for value in book):
            yield f"{partition.key} {what} {registry.text(book)}"


def _negative_on_node(node: Node) -> Iterator[str]:
    parts = (
        ("capacity", node.total),
        ("allocated", node.allocated),
        ("occupied", node.occupied),
        ("available", node.available),
    )
    for what, book in parts:
        if any(value < 0 for value in book):
            yield f"{_name(node)} {what} {node.partition.registry.text(book)}"


def _allocated_differs(partition: Partition) -> Iterator[str]:
    """What the root queue holds, and with it the replacements under way, is what is on the nodes."""
    planned = _sum(
        partition,
        (
            allocation.planned_more
            for node in partition.nodes.values()
            for allocation in node.allocations
            if allocation.state == allocation_life.PLANNED
        ),
    )
    for allocation in partition.stranded:  # the quota has it, and no node yet
        subtract(planned, allocation.vector)
    held = list(planned)
    add(held, partition.root.allocated)
    on_nodes = _sum(partition, (node.allocated for node in partition.nodes.values()))
    if held != on_nodes:
        text = partition.registry.text
        yield (
            f"{partition.key} root holds {text(partition.root.allocated)}, replacements under way "
            f"{text(planned)}, its nodes {text(on_nodes)}"
        )


def _total_differs(partition: Partition) -> Iterator[str]:
    nodes = _sum(partition, (node.total for node in partition.nodes.values()))
    if nodes != partition.capacity:
        text = partition.registry.text
        yield f"{partition.key} has {text(partition.capacity)}, its nodes {text(nodes)}"


def _parts_differ(node: Node) -> Iterator[str]:
    partition = node.partition
    parts = _sum(partition, (node.allocated, node.occupied, node.available))
    text = partition.registry.text
    if parts != node.total:
        yield f"{_name(node)} has {text(node.total)}, its parts are {text(parts)}"
    running = _sum(partition, (allocation.on_node for allocation in node.allocations))
    if running != node.allocated:
        yield (
            f"{_name(node)} has {text(node.allocated)} allocated, "
            f"its allocations are {text(running)}"
        )


def _overfull(node: Node) -> Iterator[str]:
    if any(used > whole for used, whole in zip(node.allocated, node.total, strict=True)):
        text = node.partition.registry.text
        yield f"{_name(node)} has {text(node.total)}, allocated is {text(node.allocated)}"


def _unknown_to_applications(node: Node) -> Iterator[str]:
    for allocation in node.allocations:
        ask = allocation.ask
        app = ask.app
        known = node.partition.applications.get(app.app_id) is app and (
            ask.planned is allocation
            or app.allocations.get(allocation.uuid) is allocation
            or app.placeholders.get(allocation.uuid) is allocation
        )
        if not known:
            yield f"{allocation.key} on {_name(node)}"


def _unknown_to_nodes(partition: Partition) -> Iterator[str]:
    for _, app in sorted(partition.applications.items()):
        for allocation in (*app.allocations.values(), *app.placeholders.values()):
            node = allocation.node
            known = partition.nodes.get(node.node_id) is node and allocation in node.allocations
            if not known:
                yield f"{allocation.key} in {partition.key}, said to be on {node.node_id}"


def _sum(partition: Partition, vectors: Iterable[Vector | Book]) -> Book:
    total = partition.registry.zeros()
    for vector in vectors:
        add(total, vector)
    return total


def _name(node: Node) -> str:
    return f"{node.partition.key}/{node.node_id}"
