"""Health: eleven checks of whether the scheduler's accounts agree with each other, as YuniKorn has them
(2.12).

Each check computes both sides that it compares anew from the live entities. Legal states pass: a real
allocation that waits for a placeholder on another node is counted on its node and in no queue (X18). A
node whose capacity was lowered below its use (V2) fails, as in YuniKorn, because an operator should
look at it.
"""

# Not compiled: it does not run for every ask.

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple, TypedDict

from quadriga.base.times import SECOND
from quadriga.core.checks.failures import Failure, FailureLog
from quadriga.core.config import parse_duration
from quadriga.core.resources.vectors import Totals, Vector, add, subtract
from quadriga.core.runtime.stepwise import Steps
from quadriga.fsm.lifecycles import allocation as allocation_fsm

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.node import Node
    from quadriga.core.model.partition import Partition

#: ns between two rounds of checks, where nothing else is configured (2.10)
CHECK_EVERY: Final = 30 * SECOND

#: at most this many allocations of an application are looked at in one step
_FEW: Final = 100
#: nodes that changed meanwhile are added anew in steps until they are as few as this, in each further pass
_PASSES: Final = (0, 64, 64, 256, 1024)


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


def check_in_steps(
    partitions: Iterable[Partition],
    failures: FailureLog | None = None,
    now: int = 0,
    since: int | None = None,
) -> Steps[HealthObject]:
    """Run all checks, in YuniKorn's order, with a step for each node and each few allocations; anything may change
    between two steps.

    ``failures`` are the errors that the driver survived (``SchedulerService.failure_log``). The first check fails for
    those that are recent at ``now`` (ns) or came after ``since``, the time of the previous round. What one step looks
    at is compared within it. Sums of all nodes are compared in the last step, after the nodes that changed in the
    meantime were added anew (D345).
    """
    partitions = list(partitions)
    failures = failures or FailureLog()
    found: dict[Find, list[str]] = {check.find: [] for check in CHECKS if check.find}
    for partition in partitions:
        in_partition = yield from _look_at(partition)
        if partition.dropped:
            continue
        for find, named in in_partition.items():
            found[find] += [text for _, text in sorted(named, key=itemgetter(0))]
    state = _State(partitions, failures, failures.recent(now, since))
    checks = [_result(check, state, found) for check in CHECKS]
    return {"Healthy": all(each["Succeeded"] for each in checks), "HealthChecks": checks}


def _look_at(partition: Partition) -> Steps[dict[Find, list[tuple[str, str]]]]:
    """What each check finds in the partition, with the name by which it is sorted."""
    found: dict[Find, list[tuple[str, str]]] = defaultdict(list)
    sums = _Sums(partition)
    try:
        for node in list(partition.nodes.values()):
            if partition.nodes.get(node.node_id) is node:
                for find in ON_NODES:
                    found[find] += [(node.node_id, text) for text in find(node)]
                sums.add(node)
            yield
        for app in list(partition.applications.values()):
            for held in (app.allocations, app.placeholders):
                for number, allocation in enumerate(list(held.values()), 1):
                    if held.get(allocation.uuid) is allocation:
                        texts = _unknown_to_nodes(partition, allocation)
                        found[_unknown_to_nodes] += [(app.app_id, text) for text in texts]
                    if number % _FEW == 0:
                        yield
            yield
        yield from sums.catch_up()
        found[_negative_in_partition] = [("", text) for text in _negative_in_partition(partition)]
        found[_allocated_differs] = [("", text) for text in _allocated_differs(sums)]
        found[_total_differs] = [("", text) for text in _total_differs(sums)]
        yield from sums.forget()
        return found
    finally:
        sums.close()


class _Sums:
    """What the nodes of a partition have and hold together, while these change."""

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.total = partition.registry.zeros()
        self.allocated = partition.registry.zeros()
        #: what of each node is in the sums
        self._added: dict[Node, tuple[Vector, Vector]] = {}
        #: allocations that may be charged to a node and not to root
        self._ahead: dict[Allocation, None] = {}
        self._changed: dict[Node, None] = {}
        partition.node_index.watchers += (self._changed,)

    def close(self) -> None:
        """Watch changes no longer."""
        index = self.partition.node_index
        index.watchers = tuple([each for each in index.watchers if each is not self._changed])

    def add(self, node: Node) -> None:
        """Add what the node has now, in place of what was added before."""
        self._changed.pop(node, None)
        self.partition.registry.lengthen((self.total, self.allocated))
        if (before := self._added.pop(node, None)) is not None:
            subtract(self.total, before[0])
            subtract(self.allocated, before[1])
        if self.partition.nodes.get(node.node_id) is not node:
            return
        self._added[node] = total, allocated = tuple(node.total), tuple(node.allocated)
        add(self.total, total)
        add(self.allocated, allocated)
        self._ahead.update(
            dict.fromkeys([a for a in node.allocations if a.state in allocation_fsm.AHEAD])
        )

    def catch_up(self) -> Iterator[None]:
        """Add anew the nodes that have changed; after the last step no other has."""
        for few in _PASSES:
            if len(self._changed) <= few:
                break
            for node in list(self._changed):
                self.add(node)
                yield
        while self._changed:
            self.add(next(iter(self._changed)))
        self.partition.registry.lengthen((self.total, self.allocated))

    def forget(self) -> Iterator[None]:
        """Free what is kept of each node, which takes a while."""
        while self._added:
            self._added.popitem()
            yield

    def planned(self) -> Totals:
        """What is charged to nodes and not yet to root, less what is charged to root alone."""
        ahead = (a.planned_more for a in self._ahead if a in a.node.allocations)
        planned = _sum(self.partition, ahead)
        for allocation in self.partition.waiting.stranded:
            subtract(planned, allocation.vector)
        return planned


# -- the checks ------------------------------------------------------------------------------------


class _State(NamedTuple):
    """What the other checks look at; ``errors`` are the recent ones of the failure log."""

    partitions: list[Partition]
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


def _allocated_differs(sums: _Sums) -> Iterator[str]:
    """Do the root queue, together with the replacements in flight, and the nodes hold different amounts?"""
    partition, planned = sums.partition, sums.planned()
    held = list(planned)
    add(held, partition.root.allocated)
    without_units = partition.registry.without_units
    if without_units(held) != without_units(sums.allocated):
        text = partition.registry.text
        yield (
            f"{partition.key} root holds {text(partition.root.allocated)}, replacements under way "
            f"{text(planned)}, its nodes {text(sums.allocated)}"
        )


def _total_differs(sums: _Sums) -> Iterator[str]:
    """Is the capacity of a partition other than the sum of its nodes?"""
    partition = sums.partition
    if sums.total != partition.capacity:
        text = partition.registry.text
        yield f"{partition.key} has {text(partition.capacity)}, its nodes {text(sums.total)}"


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


def _unknown_to_nodes(partition: Partition, allocation: Allocation) -> Iterator[str]:
    """Does an application have an allocation that its node does not have?"""
    node = allocation.node
    if partition.nodes.get(node.node_id) is not node or allocation not in node.allocations:
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


#: yields what is wrong with a node, a partition or an allocation
Find = Callable[..., Iterator[str]]

#: looked for on each node
ON_NODES: Final[tuple[Find, ...]] = (
    _negative_on_node,
    _parts_differ,
    _overfull,
    _unknown_to_applications,
)


class Check(NamedTuple):
    """One check. It succeeds if ``find`` has found nothing, and its diagnosis lists what was found ``about``
    this; or ``result`` gives whether it succeeded, and what it saw, in words."""

    name: str
    description: str
    about: str = ""
    find: Find | None = None
    result: Callable[[_State], tuple[bool, str]] | None = None


# fmt: off
#: names and descriptions are YuniKorn's; what a check asks is said by its function
CHECKS: Final = (
    Check("Scheduling errors", "Check for scheduling error entries in metrics",
          result=_scheduling_errors),
    Check("Failed nodes", "Check for failed nodes entries in metrics",
          result=_failed_nodes),
    Check("Negative resources", "Check for negative resources in the partitions",
          "partitions with negative resources", _negative_in_partition),
    Check("Negative resources", "Check for negative resources in the nodes",
          "nodes with negative resources", _negative_on_node),
    Check("Consistency of data",
          "Check if a partition's allocated resource <= total resource of the partition",
          "partitions whose queues and nodes do not hold the same", _allocated_differs),
    Check("Consistency of data",
          "Check if total partition resource == sum of the node resources from the partition",
          "partitions whose total is not the sum of their nodes", _total_differs),
    Check("Consistency of data",
          "Check if node total resource = allocated resource + occupied resource + available resource",
          "nodes whose parts are not their total", _parts_differ),
    Check("Consistency of data", "Check if node capacity >= allocated resources on the node",
          "nodes with more allocated than they have", _overfull),
    Check("Reservation check", "Check the reservation nr compared to the number of nodes",
          result=_reservations),
    Check("Orphan allocation on node check", "Check if there are orphan allocations on the nodes",
          "allocations on nodes that no application knows", _unknown_to_applications),
    Check("Orphan allocation on app check",
          "Check if there are orphan allocations on the applications",
          "allocations of applications that no node knows", _unknown_to_nodes),
)
# fmt: on


def _result(check: Check, state: _State, found: Mapping[Find, list[str]]) -> CheckObject:
    if check.result is not None:
        succeeded, diagnosis = check.result(state)
    else:
        assert check.find is not None
        texts = found[check.find]
        succeeded, diagnosis = not texts, f"{check.about}: {_listed(texts)}"
    return {
        "Name": check.name,
        "Succeeded": succeeded,
        "Description": check.description,
        "DiagnosisMessage": diagnosis,
    }
