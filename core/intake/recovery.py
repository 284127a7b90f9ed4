"""Recovery: allocations that were running before the scheduler started, as reported (2.11).

A recovered allocation has no ask, so an ask is made from it (G56). If an ask with its key is pending,
the report says that this ask is allocated. The allocation is charged without a quota check, and its
application receives the same triggers as after an allocation by the scheduler.

The report of a known allocation gives its present size (2.20). An equal report changes nothing, so a
resource manager may repeat it.
"""

# Not compiled: it does not run for every ask.

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from quadriga.core.intake import asks, foreign, tags
from quadriga.core.intake.fires import RecoveryFires
from quadriga.core.intake.routes import Answers
from quadriga.core.model import accounting
from quadriga.core.model.allocation import Allocation
from quadriga.core.model.ask import Ask, AskKind
from quadriga.core.preemption import quota
from quadriga.core.resources.shapes import Requirements
from quadriga.core.runtime.kernel import Kernel
from quadriga.core.steps import gang, reservation
from quadriga.core.steps.releasing import release
from quadriga.fsm.lifecycles import allocation as allocation_fsm
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.si import Allocation as AllocationMessage
from quadriga.si import RejectedAllocation
from quadriga.si.constants import TAG_DEVICES

if TYPE_CHECKING:
    from quadriga.core.model.application import Application
    from quadriga.core.model.node import Node
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.resource_manager import ResourceManager
    from quadriga.core.resources.vectors import Vector

# -- with a new node -------------------------------------------------------------------------------


def problem_of(
    partition: Partition, messages: Iterable[AllocationMessage], fires: RecoveryFires
) -> str:
    """Return why these existing allocations of a new node cannot be recovered, or an empty text."""
    seen: set[tuple[str, str]] = set()
    for message in messages:
        if foreign.is_foreign(message):
            problem, named = (
                foreign.problem_of(message),
                ("", message.allocationKey),
            )
        else:
            problem = _problem(partition, message, fires)
            named = message.applicationID, _uuid(partition, message)
            if not problem and _known(partition, message) is not None:
                problem = "is known already"
        if not problem and named in seen:
            problem = "is reported twice"
        seen.add(named)
        if problem:
            return f"allocation {named[1]!r} of {message.applicationID!r} {problem}"
    return ""


def recover_on(
    kernel: Kernel, node: Node, messages: Iterable[AllocationMessage], fires: RecoveryFires
) -> None:
    """Recover the existing allocations of a new node (I33), which ``problem_of`` has checked."""
    partition = node.partition
    for message in messages:
        if foreign.is_foreign(message):
            foreign.record(kernel, partition, node, message)
        else:
            _release_leftover(kernel, _recover(kernel, node, message, fires))


# -- with a request --------------------------------------------------------------------------------


def recover_allocations(
    kernel: Kernel,
    rm: ResourceManager,
    messages: Iterable[AllocationMessage],
    fires: RecoveryFires,
    answers: Answers,
) -> None:
    """AllocationRequest.allocations (2.20): echo new allocations as new, and reject wrong ones."""
    rejected = []
    for message in messages:
        problem = _report(kernel, rm, message, fires, answers)
        if problem:
            rejected.append(
                RejectedAllocation(
                    allocationKey=message.allocationKey,
                    applicationID=message.applicationID,
                    reason=problem,
                )
            )
    if rejected:
        kernel.tally.asks_rejected += len(rejected)
        kernel.tally.rejected["allocation", "recovery"] += len(rejected)
        answers.rejected_allocations(kernel, rm, rejected)


def _report(
    kernel: Kernel,
    rm: ResourceManager,
    message: AllocationMessage,
    fires: RecoveryFires,
    answers: Answers,
) -> str:
    """Apply one report; return why it cannot be applied, or an empty text."""
    partition = rm.partitions.get(message.partitionName or "default")
    if partition is None:
        return f"names the unknown partition {message.partitionName!r}"
    node = partition.nodes.get(message.nodeID)
    if node is None:
        if not message.nodeID:  # else it would be an ask (X45)
            return "is foreign and names no node"
        return f"names the unknown node {message.nodeID!r}"
    if foreign.is_foreign(message):
        problem = foreign.problem_of(message)
        if not problem:
            foreign.record(kernel, partition, node, message)
        return problem
    problem = _problem(partition, message, fires)
    if problem:
        return problem
    known = _known(partition, message)
    if known is not None:
        if known.node is not node:
            return f"runs on node {known.node.node_id}"
        if known.ask.ask_key != message.allocationKey:
            return f"is known already with the allocationKey {known.ask.ask_key!r}"
        return resize(kernel, known, message)
    allocation = _recover(kernel, node, message, fires)
    answers.new(kernel, allocation)
    _release_leftover(kernel, allocation)
    return ""


# -- checks ----------------------------------------------------------------------------------------

_UNUSABLE = "has no usable resourcePerAlloc"


def _is_unusable(message: AllocationMessage) -> bool:
    quantities = [each.value for each in message.resourcePerAlloc.resources.values()]
    return any(value < 0 for value in quantities) or not any(quantities)


def _uuid(partition: Partition, message: AllocationMessage) -> str:
    """Return the reported UUID, or else the next one of its key."""
    named = message.UUID or message.allocationID
    if named:
        return named
    key, app = message.allocationKey, partition.applications.get(message.applicationID)
    number = app.serial.get(key, app.first_number) if app is not None else 0
    return f"{key}-{number}"


def _role(message: AllocationMessage) -> tuple[bool, str]:
    """Whether it is a placeholder, and of which task group (G57, I18)."""
    return message.placeholder and bool(message.taskGroupName), message.taskGroupName


def _problem(partition: Partition, message: AllocationMessage, fires: RecoveryFires) -> str:
    """Return what is wrong with the report of a new or known allocation, or an empty text."""
    if not message.applicationID:
        return "has no applicationID: independent allocations are not supported"
    if not message.allocationKey:
        return "has no allocationKey"
    app = partition.applications.get(message.applicationID)
    if app is None:
        return "belongs to an unknown application"
    if not fires.application.allows(app.state, fires.asked):
        return f"belongs to an application that is {app.state}"
    if _is_unusable(message):
        return _UNUSABLE
    if partition.registry.shared and (problem := _units_problem(partition, message)):
        return problem
    uuid = _uuid(partition, message)
    parked = app.asks.get(uuid.rpartition("-")[0])
    if parked is not None and parked.planned is not None and parked.planned.uuid == uuid:
        return "has the UUID of a replacement in flight"
    if app.gang.without_placeholders and _role(message)[0]:
        return "is a placeholder of an application that has none"
    ask = app.asks.get(message.allocationKey)
    if ask is not None and _known(partition, message) is None:
        if ask.planned is not None:
            return "has the key of an ask that takes over a placeholder"
        if (ask.placeholder, ask.task_group) != _role(message):
            return "has the key of an ask with another part in the gang"
    return ""


def _units_problem(partition: Partition, message: AllocationMessage) -> str:
    """Return what is wrong with its shared devices (Q14), or an empty text."""
    vector = partition.registry.read_report(message.resourcePerAlloc)
    problem = partition.registry.problem_of_shares(vector)
    return f"has {problem}" if problem else ""


def _charge_units(node: Node, allocation: Allocation, tags: Mapping[str, str]) -> None:
    """Give the allocation the units that it names. Those of one that names none, others than it has, or others
    than there are, are chosen when it is charged (Q14)."""
    if node.units is not None and (named := tags.get(TAG_DEVICES, "")):
        units = node.partition.registry.read_units(named, allocation.vector)
        if units is not None and all(node.total[at] for at, _ in units):
            node.units.of[allocation] = units


def _known(partition: Partition, message: AllocationMessage) -> Allocation | None:
    """Return the known allocation that is reported again: by UUID, or the oldest of its key (X12)."""
    app = partition.applications[message.applicationID]
    uuid = message.UUID or message.allocationID
    if uuid:
        return app.allocations.get(uuid) or app.placeholders.get(uuid)
    return next(iter(app.held_of(message.allocationKey)), None)


# -- new allocations -------------------------------------------------------------------------------


def _recover(
    kernel: Kernel, node: Node, message: AllocationMessage, fires: RecoveryFires
) -> Allocation:
    """Charge one recovered allocation, and create or count down its ask."""
    partition = node.partition
    app = partition.applications[message.applicationID]
    vector = partition.registry.read_report(message.resourcePerAlloc)
    ask = app.asks.get(message.allocationKey)
    waited = ask is not None
    if ask is None:
        ask = _make_ask(kernel, app, message, vector)
        if ask.placeholder and not app.is_gang:
            gang.become_gang(kernel, app)
        kernel.fire(fires.ask, ask, fires.submit)
        kernel.fire(fires.application, app, fires.asked)
    allocation = Allocation(ask, _free_uuid(app, message), node, kernel.now)
    allocation.vector = vector
    _charge_units(node, allocation, message.allocationTags)
    accounting.charge_node(allocation)
    accounting.charge(allocation)
    if waited:
        accounting.remove_pending(ask, 1)
    kernel.fire(fires.ask, ask, fires.served)
    kernel.fire(fires.allocation, allocation, fires.allocated)
    observer = partition.rm.observer
    if waited:
        observer.allocated((allocation,))
    else:
        observer.recovered(allocation)
    ask.pending -= 1
    quota.watch_growth(kernel, app.queue)
    if waited:
        _repeat_allocated(partition, ask)
    if ask.placeholder:
        if not waited:
            gang.count_pending(ask, 1)
        elif vector != ask.vector:
            gang.resize(app, ask.vector, -1)
            gang.resize(app, vector, 1)
        gang.placeholder_allocated(kernel, allocation)
    elif app.state in application_fsm.RUNS_ON_ALLOCATION:
        kernel.fire(fires.application, app, fires.run)
    return allocation


def _repeat_allocated(partition: Partition, ask: Ask) -> None:
    """Update a pending ask after one of its repeats was recovered; remove it after the last one."""
    reservation.cancel_all_of(partition, ask)
    if ask.last_quota_event or ask.app.last_quota_event:
        partition.rm.observer.ask_served(ask)
    if not ask.pending:
        partition.waiting.remove(ask)
        partition.hints.asks.pop(ask, None)
        del ask.app.asks[ask.ask_key]
        if ask.placeholder:
            partition.waiting.offer_replacements(ask.app)


def _make_ask(kernel: Kernel, app: Application, message: AllocationMessage, vector: Vector) -> Ask:
    """Make the ask of a recovered allocation (G56). Its tag gives the creation time."""
    partition = app.partition
    partition.waiting.arrivals += 1
    by_key = not (message.UUID or message.allocationID)  # the form of SI 1.6 and later
    terms = asks.read_terms(message.allocationTags, message, message.originator, by_key=by_key)
    shares = partition.registry.shares_of(vector)
    requires = Requirements(vector, asks.required_node(terms), shares=shares)
    kind = AskKind(requires, message.priority, *_role(message))
    ask = Ask(app, message.allocationKey, kind, partition.waiting.arrivals, kernel.now)
    ask.terms = terms
    ask.created = tags.created(terms.tags, kernel.now)
    app.submitted = min(app.submitted, ask.created)
    if not ask.placeholder:
        app.ran_since = min(app.ran_since or ask.created, ask.created)
    return ask


def _free_uuid(app: Application, message: AllocationMessage) -> str:
    """Return the reported UUID, and make sure that it is never assigned again (X12)."""
    uuid = _uuid(app.partition, message)
    key, _, number = uuid.rpartition("-")
    if number.isdecimal() and len(number) < 19:
        app.serial[key] = max(app.serial.get(key, app.first_number), int(number) + 1)
        ours = f"{message.allocationKey}-{int(number)}"
        if uuid != ours or int(number) < app.first_number:
            app.odd_uuids = True
    else:
        app.odd_uuids = True
    app.serial.setdefault(message.allocationKey, app.first_number)
    return uuid


def _release_leftover(kernel: Kernel, allocation: Allocation) -> None:
    """X25: release a recovered placeholder if its gang is releasing its placeholders."""
    if allocation.placeholder and allocation.ask.app.state in application_fsm.GIVES_BACK:
        text = "releasing allocated placeholders on placeholder timeout"
        release(kernel, allocation, allocation_fsm.TIMEOUT, text)


# -- known allocations -----------------------------------------------------------------------------


def resize(kernel: Kernel, known: Allocation, message: AllocationMessage) -> str:
    """Change the size of a known allocation (2.20); return why that is impossible, or an empty text."""
    if (known.ask.placeholder, known.ask.task_group) != _role(message):
        return "is known already with another part in the gang"
    if _is_unusable(message):
        return _UNUSABLE
    registry = known.node.partition.registry
    vector = registry.read_report(message.resourcePerAlloc)
    if registry.mapping(vector) == registry.mapping(known.vector):
        return ""
    before_units, after_units = registry.shares_of(known.vector), registry.shares_of(vector)
    if before_units != after_units:
        return "cannot change its shared devices"
    if known.state not in allocation_fsm.RESIZABLE:
        return f"is {known.state} and cannot change"
    if known.placeholder:
        gang.resize(known.ask.app, known.vector, -1)
        gang.resize(known.ask.app, vector, 1)
    before = known.vector
    accounting.resize(known, vector)
    known.ask.app.partition.rm.observer.allocation_resized(known, before)
    quota.watch_growth(kernel, known.ask.app.queue)
    if known.placeholder:
        app = known.ask.app
        accounting.reserve_headroom(app)
        gang.run_if_complete(kernel, app)
    return ""
