"""Health: eleven checks of whether the scheduler's accounts agree with each other, as YuniKorn has them
(2.12).

Each check computes both sides that it compares anew from the live entities. Legal states pass: a real
allocation that waits for a placeholder on another node is counted on its node and in no queue (X18). A
node whose capacity was lowered below its use (V2) fails, as in YuniKorn, because an operator should
look at it.
"""

# Not compiled: it does not run for every ask.

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, TypedDict

from quadriga.base.times import SECOND
from quadriga.core.checks.failures import Failure, FailureLog
from quadriga.core.config import parse_duration
from quadriga.core.resources.vectors import Totals, Vector, add, subtract
from quadriga.fsm.lifecycles import allocation as allocation_fsm

if TYPE_CHECKING:
    from quadriga.core.model.node import Node
    from quadriga.core.model.partition import Partition

#: ns between two rounds of checks, where nothing else is configured (2.10)
CHECK_EVERY: Final = 30 * SECOND


# The result of one check, and those of all; without docstrings, which the REST schema would quote.


class CheckObject(TypedDict):
    Name: str
    Succeeded: bool
    Description: str
    DiagnosisMessage: str


class HealthObject(TypedDict):
    Healthy: bool
    HealthChecks: list[CheckObject]


def check_interval(extra: Mapping[str, str]) -> int:
    """The interval (ns) between two rounds of checks in an extraConfig; 0: never (2.2.3,
    ``health.checkInterval``).

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
    """Run all checks, in YuniKorn's order.

    ``failures`` are the errors that the driver survived (``SchedulerService.failure_log``). The first
    check fails for those that are recent at ``now`` (ns) or came after ``since``, the time of the
    previous round.
    """
    partitions = list(partitions)
    failures = failures or FailureLog()
    nodes = [node for partition in partitions for _, node in sorted(partition.nodes.items())]
    state = _State(partitions, nodes, failures, failures.recent(now, since))
    checks = [_run(check, state) for check in CHECKS]
    return {"Healthy": all(each["Succeeded"] for each in checks), "HealthChecks": checks}


# -- the checks ------------------------------------------------------------------------------------


class _State(NamedTuple):
    """What the checks look at; ``errors`` are the recent ones of the failure log."""

    partitions: list[Partition]
    nodes: list[Node]
    failures: FailureLog
    errors: list[Failure]


def _scheduling_errors(state: _State) -> tuple[bool, str]:
    """Has an error occurred in the scheduler recently?"""
    return not state.errors, state.failures.diagnosis(state.errors)


def _failed_nodes(state: _State) -> tuple[bool, str]:
    """Is a node missing because its allocations could not be recovered?"""
    failed = [f"{p.key}/{name}" for p in state.partitions for name in sorted(p.failed_nodes)]
    return not failed, f"nodes that could not be taken up: {_listed(failed)}"


def _reservations(state: _State) -> tuple[bool, str]:
    """How many nodes are reserved? Any number is fine."""
    counts = [
        f"{p.key}: {len(p.reservations)} reservations, {len(p.nodes)} nodes"
        for p in state.partitions
    ]
    return True, "; ".join(counts) or "no partitions"


def _negative_in_partition(partition: Partition) -> Iterator[str]:
    """Is what a partition has, or has allocated, negative for some type?"""
    registry = partition.registry
    for what, book in (("allocated", partition.root.allocated), ("total", partition.capacity)):
        if any(value < 0 for value in book):
            yield f"{partition.key} {what} {registry.text(book)}"


def _negative_on_node(node: Node) -> Iterator[str]:
    """Is some quantity of a node negative?"""
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
    """Do the root queue, together with the replacements in flight, and the nodes hold different amounts?"""
    planned = _sum(
        partition,
        (
            allocation.planned_more
            for node in partition.nodes.values()
            for allocation in node.allocations
            if allocation.state in allocation_fsm.AHEAD
        ),
    )
    for allocation in partition.waiting.stranded:  # charged to the quota, on no node yet
        subtract(planned, allocation.vector)
    held = list(planned)
    add(held, partition.root.allocated)
    on_nodes = _sum(partition, (node.allocated for node in partition.nodes.values()))
    without_units = partition.registry.without_units
    if without_units(held) != without_units(on_nodes):
        text = partition.registry.text
        yield (
            f"{partition.key} root holds {text(partition.root.allocated)}, replacements under way "
            f"{text(planned)}, its nodes {text(on_nodes)}"
        )


def _total_differs(partition: Partition) -> Iterator[str]:
    """Is the capacity of a partition other than the sum of its nodes?"""
    nodes = _sum(partition, (node.total for node in partition.nodes.values()))
    if nodes != partition.capacity:
        text = partition.registry.text
        yield f"{partition.key} has {text(partition.capacity)}, its nodes {text(nodes)}"


def _parts_differ(node: Node) -> Iterator[str]:
    """Is a node's capacity other than the sum of what is allocated, occupied and available?"""
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
    """Is more allocated on a node than its capacity?"""
    if any(used > whole for used, whole in zip(node.allocated, node.total, strict=True)):
        text = node.partition.registry.text
        yield f"{_name(node)} has {text(node.total)}, allocated is {text(node.allocated)}"


def _unknown_to_applications(node: Node) -> Iterator[str]:
    """Does a node have an allocation that its application does not have?"""
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
    """Does an application have an allocation that its node does not have?"""
    for _, app in sorted(partition.applications.items()):
        for allocation in (*app.allocations.values(), *app.placeholders.values()):
            node = allocation.node
            known = partition.nodes.get(node.node_id) is node and allocation in node.allocations
            if not known:
                yield f"{allocation.key} in {partition.key}, said to be on {node.node_id}"


def _sum(partition: Partition, vectors: Iterable[Vector | Totals]) -> Totals:
    total = partition.registry.zeros()
    for vector in vectors:
        add(total, vector)
    return total


def _name(node: Node) -> str:
    return f"{node.partition.key}/{node.node_id}"


def _listed(texts: list[str]) -> str:
    return "; ".join(texts) or "none"


# -- the table -------------------------------------------------------------------------------------


class Check(NamedTuple):
    """One check. ``result`` gives whether it succeeded, and what it saw, in words."""

    name: str
    description: str
    result: Callable[[_State], tuple[bool, str]]


def _in_partitions(
    about: str, find: Callable[[Partition], Iterable[str]]
) -> Callable[[_State], tuple[bool, str]]:
    """A check that succeeds if it finds nothing in any partition."""

    def result(state: _State) -> tuple[bool, str]:
        found = [text for partition in state.partitions for text in find(partition)]
        return not found, f"{about}: {_listed(found)}"

    return result


def _on_nodes(
    about: str, find: Callable[[Node], Iterable[str]]
) -> Callable[[_State], tuple[bool, str]]:
    """A check that succeeds if it finds nothing on any node."""

    def result(state: _State) -> tuple[bool, str]:
        found = [text for node in state.nodes for text in find(node)]
        return not found, f"{about}: {_listed(found)}"

    return result


# fmt: off
#: names and descriptions are YuniKorn's; what a check asks is said by its function
CHECKS: Final = (
    Check("Scheduling errors", "Check for scheduling error entries in metrics",
          _scheduling_errors),
    Check("Failed nodes", "Check for failed nodes entries in metrics",
          _failed_nodes),
    Check("Negative resources", "Check for negative resources in the partitions",
          _in_partitions("partitions with negative resources", _negative_in_partition)),
    Check("Negative resources", "Check for negative resources in the nodes",
          _on_nodes("nodes with negative resources", _negative_on_node)),
    Check("Consistency of data",
          "Check if a partition's allocated resource <= total resource of the partition",
          _in_partitions("partitions whose queues and nodes do not hold the same", _allocated_differs)),
    Check("Consistency of data",
          "Check if total partition resource == sum of the node resources from the partition",
          _in_partitions("partitions whose total is not the sum of their nodes", _total_differs)),
    Check("Consistency of data",
          "Check if node total resource = allocated resource + occupied resource + available resource",
          _on_nodes("nodes whose parts are not their total", _parts_differ)),
    Check("Consistency of data", "Check if node capacity >= allocated resources on the node",
          _on_nodes("nodes with more allocated than they have", _overfull)),
    Check("Reservation check", "Check the reservation nr compared to the number of nodes",
          _reservations),
    Check("Orphan allocation on node check", "Check if there are orphan allocations on the nodes",
          _on_nodes("allocations on nodes that no application knows", _unknown_to_applications)),
    Check("Orphan allocation on app check",
          "Check if there are orphan allocations on the applications",
          _in_partitions("allocations of applications that no node knows", _unknown_to_nodes)),
)
# fmt: on


def _run(check: Check, state: _State) -> CheckObject:
    succeeded, diagnosis = check.result(state)
    return {
        "Name": check.name,
        "Succeeded": succeeded,
        "Description": check.description,
        "DiagnosisMessage": diagnosis,
    }
