"""Event producers: one function for each kind of event record (2.16).

The table in ``observers`` says which function is called when; those about quotas and limits are called
by ``quota_events``. The first argument is the event log of the resource manager. Producers are called
often and their records are read rarely, so they format no text and copy only what may change later.

Object and reference are those of YuniKorn: records of a node name an allocation by the key of its ask,
records of an application by its UUID.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from quadriga.base.times import SECOND
from quadriga.core.events.records import (
    ADD,
    APP,
    NODE,
    NONE,
    PLAIN,
    QUEUE,
    REMOVE,
    REQUEST,
    SET,
    USERGROUP,
    Bundle,
    Record,
    Text,
)
from quadriga.core.model.account import WILDCARD
from quadriga.core.model.ask import Ask
from quadriga.core.resources.vectors import Vector, minus
from quadriga.core.runtime.dialect import EVENT_DETAIL
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.fsm.lifecycles import gang as gang_fsm
from quadriga.fsm.lifecycles import node as node_fsm
from quadriga.si import EventRecord, TerminationType

if TYPE_CHECKING:
    from quadriga.core.events.system import EventLog
    from quadriga.core.model.account import Account, Limit
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.application import Application, EndedApplication
    from quadriga.core.model.node import Node
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.queue import Queue

# Numbers of the protocol, as constants because every allocation needs them.
_APP_ALLOC = int(EventRecord.APP_ALLOC)
_NODE_ALLOC = int(EventRecord.NODE_ALLOC)
_QUEUE_ALLOC = int(EventRecord.QUEUE_ALLOC)
_REQUEST_ALLOC = int(EventRecord.REQUEST_ALLOC)
_CONFIGURED = int(EventRecord.QUEUE_CONFIG)
_DYNAMIC = int(EventRecord.QUEUE_DYNAMIC)
_USER_RESOURCE = int(EventRecord.UG_USER_RESOURCE)
_GROUP_RESOURCE = int(EventRecord.UG_GROUP_RESOURCE)

_Records = tuple[Record, ...]

#: an ask that predicates refuse on all nodes has at most one record in this time (ns; 2.10)
REFUSED_INTERVAL: Final = 15 * SECOND

#: the detail of a record by the state that was entered; ``application_rejected`` records a rejection
_ENTERED = {
    state: int(detail)
    for state, detail in EVENT_DETAIL.items()
    if state not in application_fsm.TURNED_AWAY
}

_CANCELLED = int(EventRecord.ALLOC_CANCEL)
_REPLACED = int(EventRecord.ALLOC_REPLACED)
#: the detail of the end of an allocation, by the type of its termination (2.16)
_ENDED = {
    TerminationType.UNKNOWN_TERMINATION_TYPE: int(EventRecord.ALLOC_NODEREMOVED),
    TerminationType.STOPPED_BY_RM: _CANCELLED,
    TerminationType.TIMEOUT: int(EventRecord.ALLOC_TIMEOUT),
    TerminationType.PREEMPTED_BY_SCHEDULER: int(EventRecord.ALLOC_PREEMPT),
    TerminationType.PLACEHOLDER_REPLACED: _REPLACED,
}


# -- applications ----------------------------------------------------------------------------------


def application_added(log: EventLog, app: Application) -> None:
    """One record of the application, and one of the queue that it joined."""
    log.add(
        _of_app(log, app, ADD, EventRecord.APP_NEW),
        _queue(log, app.queue, ADD, EventRecord.QUEUE_APP, app.app_id),
    )


def application_rejected(log: EventLog, app_id: str, reason: str) -> None:
    """The arrival and the rejection. There is no application yet, only its id."""
    now = log.kernel.now
    log.add(
        (now, APP, ADD, EventRecord.APP_NEW, app_id, "", None, (), ""),
        (now, APP, SET, EventRecord.APP_REJECT, app_id, "", None, (), reason),
    )


def application_entered(log: EventLog, app: Application | EndedApplication, reason: str) -> None:
    """``reason`` is the one that the trigger came with, or empty."""
    detail = _ENTERED.get(app.state)
    if detail is not None:
        log.enter(_of_app(log, app, SET, detail, reason))


def application_left(log: EventLog, app: Application) -> None:
    """One record of the queue that it left, and one of the application."""
    log.add(
        _queue(log, app.queue, REMOVE, EventRecord.QUEUE_APP, app.app_id),
        _of_app(log, app, REMOVE),
    )


def application_runnable(log: EventLog, app: Application, runnable: bool) -> None:
    """Whether maxapplications of its queues lets it start (2.9)."""
    detail = EventRecord.APP_RUNNABLE_QUEUE if runnable else EventRecord.APP_CANNOTRUN_QUEUE
    log.enter(_of_app(log, app, NONE, detail))


def application_within_limits(log: EventLog, app: Application, within: bool) -> None:
    """Whether the limits of its user and group let it start (2.5)."""
    detail = EventRecord.APP_RUNNABLE_QUOTA if within else EventRecord.APP_CANNOTRUN_QUOTA
    log.enter(_of_app(log, app, NONE, detail))


def _of_app(
    log: EventLog,
    app: Application | EndedApplication,
    change: int,
    detail: int = PLAIN,
    text: str = "",
) -> Record:
    """The quantities are those of its real allocations now."""
    held, registry = tuple(app.allocated), app.partition.registry
    return (log.kernel.now, APP, change, detail, app.app_id, "", registry, held, text)


# -- asks ------------------------------------------------------------------------------------------


def asks_added(log: EventLog, asks: Sequence[Ask]) -> None:
    now = log.kernel.now
    log.enter_all([(_asked, 1, now, ask, ask.kind.vector) for ask in asks])


def _asked(now: int, ask: Ask, vector: Vector) -> _Records:
    return (_of_ask(now, ask, vector, ADD, EventRecord.APP_REQUEST),)


def ask_removed(log: EventLog, ask: Ask, timed_out: bool) -> None:
    detail = EventRecord.REQUEST_TIMEOUT if timed_out else EventRecord.REQUEST_CANCEL
    log.enter(_of_ask(log.kernel.now, ask, ask.kind.vector, REMOVE, detail))


def _of_ask(now: int, ask: Ask, vector: Vector, change: int, detail: int) -> Record:
    app = ask.app
    return (now, APP, change, detail, app.app_id, ask.ask_key, app.partition.registry, vector, "")


def placeholder_too_small(log: EventLog, placeholder: Allocation, ask: Ask) -> None:
    """The ask, which replaces the placeholder, asks for more than the placeholder holds (5.10)."""
    form = (
        "Task group '%s' in application '%s': allocation resources '%s' are not matching "
        "placeholder '%s' allocation with ID '%s'"
    )
    key, app_id = placeholder.ask.ask_key, ask.app.app_id
    text = (form, ask.kind.task_group, app_id, ask.kind.vector, placeholder.vector, key)
    log.enter(_request(log, ask, text, subject=key))


def short_of_queue_quota(log: EventLog, ask: Ask, available: Mapping[int, int]) -> None:
    """``available`` is what the quotas of the queue and its parents leave, by index of the type."""
    form = "Request '%s' does not fit in queue '%s' (requested %s, available %s)"
    log.enter(
        _request(log, ask, (form, ask.ask_key, ask.app.queue.path, ask.kind.vector, available))
    )


def within_queue_quota(log: EventLog, ask: Ask) -> None:
    form = "Request '%s' has become schedulable in queue '%s'"
    log.enter(_request(log, ask, (form, ask.ask_key, ask.app.queue.path)))


def short_of_user_quota(log: EventLog, ask: Ask, available: Mapping[int, int]) -> None:
    """``available`` is what the limits of its user and group leave (2.5)."""
    form = "Request '%s' exceeds the available user quota (requested %s, available %s)"
    log.enter(_request(log, ask, (form, ask.ask_key, ask.kind.vector, available)))


def within_user_quota(log: EventLog, ask: Ask) -> None:
    log.enter(_request(log, ask, ("Request '%s' fits in the available user quota", ask.ask_key)))


def predicates_refused(log: EventLog, ask: Ask, reasons: Mapping[str, int]) -> None:
    """``reasons``: the number of nodes by reason. At most one record every 15 s for an ask (2.10)."""
    now = log.kernel.now
    if now < ask.quiet_until:
        return
    ask.quiet_until = now + REFUSED_INTERVAL
    text = " ".join(f"{reason} ({reasons[reason]}x)" for reason in sorted(reasons))
    log.enter(_request(log, ask, ("Unschedulable request '%s': %s", ask.ask_key, text)))


def preempted(log: EventLog, victim: Allocation, cause: Ask | Queue) -> None:
    """``cause`` is the ask that the victim makes room for, or the queue that is above its max (2.8)."""
    text: Text
    if isinstance(cause, Ask):
        app = cause.app
        form = "Preempted by %s from application %s in %s"
        text = (form, cause.ask_key, app.app_id, app.queue.path)
    else:
        text = ("Preempted by Quota change enforcement process in %s", cause.path)
    log.enter(_request(log, victim.ask, text, quantities=victim.vector))


def no_victims(log: EventLog, ask: Ask) -> None:
    """No allocation on the ask's required node may be preempted for it."""
    form = "Unschedulable request '%s' with required node '%s', no preemption victim found"
    log.enter(_request(log, ask, (form, ask.ask_key, ask.required_node)))


def _request(
    log: EventLog, ask: Ask, text: Text, *, subject: str = "", quantities: Vector = ()
) -> Record:
    app = ask.app
    subject = subject or ask.ask_key
    vector, registry = quantities or ask.kind.vector, app.partition.registry
    return (log.kernel.now, REQUEST, NONE, PLAIN, subject, app.app_id, registry, vector, text)


# -- allocations -----------------------------------------------------------------------------------


def allocated(log: EventLog, allocations: Sequence[Allocation]) -> None:
    """Records of the node, the queue, the user, the group, the application and the ask of each."""
    now = log.kernel.now
    entries: list[Bundle] = []
    for allocation in allocations:
        group = allocation.ask.app.group_account
        number = 5 if group is None else 6
        entries.append((_allocated, number, now, allocation, allocation.vector, group))
    log.enter_all(entries)


def recovered(log: EventLog, allocation: Allocation) -> None:
    """As ``allocated``, for an allocation that ran before it was asked for: no ask is served (2.11)."""
    group = allocation.ask.app.group_account
    number = 4 if group is None else 5
    log.enter((_recovered, number, log.kernel.now, allocation, allocation.vector, group), number)


def _allocated(now: int, allocation: Allocation, vector: Vector, group: Account | None) -> _Records:
    served = _of_ask(now, allocation.ask, vector, REMOVE, _REQUEST_ALLOC)
    return (*_recovered(now, allocation, vector, group), served)


def _recovered(now: int, allocation: Allocation, vector: Vector, group: Account | None) -> _Records:
    ask = allocation.ask
    app, node_id, uuid = ask.app, allocation.node.node_id, allocation.uuid
    registry = app.partition.registry
    return (
        (now, NODE, ADD, _NODE_ALLOC, node_id, ask.ask_key, registry, vector, ""),
        (now, QUEUE, ADD, _QUEUE_ALLOC, app.queue.path, uuid, registry, vector, ""),
        *_usage(now, app, group, ADD, vector),
        (now, APP, ADD, _APP_ALLOC, app.app_id, uuid, registry, vector, ""),
    )


def allocation_ended(log: EventLog, allocation: Allocation, kind: TerminationType) -> None:
    """``kind`` says how it was terminated. A node that was removed gets no record of it."""
    on_node = not allocation.node.gone
    group = allocation.ask.app.group_account
    number = 2 + on_node + (group is not None)
    now, vector = log.kernel.now, allocation.vector
    log.enter((_ended, number, now, allocation, vector, group, kind, on_node), number)


def _ended(
    now: int,
    allocation: Allocation,
    vector: Vector,
    group: Account | None,
    kind: TerminationType,
    on_node: bool,
) -> _Records:
    ask = allocation.ask
    app, node_id = ask.app, allocation.node.node_id
    registry, detail = app.partition.registry, _ENDED.get(kind, _CANCELLED)
    found = (
        *_usage(now, app, group, REMOVE, vector),
        (now, APP, REMOVE, detail, app.app_id, allocation.uuid, registry, vector, ""),
    )
    if not on_node:
        return found
    return *found, (now, NODE, REMOVE, _NODE_ALLOC, node_id, ask.ask_key, registry, vector, "")


def allocation_resized(log: EventLog, allocation: Allocation, before: Vector) -> None:
    """Of one that has grown beyond a quota: it runs, so it is not stopped (2.20). Root has no quota of its
    own."""
    more = minus(allocation.vector, before)
    for queue in allocation.ask.app.queue.lineage:
        used, names = queue.allocated, queue.partition.registry.names
        amount = queue.partition.registry.amount
        over = [
            f"{amount(names[index], used[index])} of {amount(names[index], most)}"
            for index, most in queue.limits
            if used[index] > most and index < len(more) and more[index] > 0
        ]
        if over and queue.parent is not None:
            text = f"The resize takes queue '{queue.path}' beyond its quota: {', '.join(over)}"
            record = _request(log, allocation.ask, text, quantities=allocation.vector)
            log.enter((*record[:2], SET, int(EventRecord.QUEUE_MAX), *record[4:]))
            return


def replaced(log: EventLog, placeholder: Allocation, real: Allocation) -> None:
    """The end of the placeholder and the start of the real allocation. Their node gets a record only
    where the two were on different ones."""
    group = real.ask.app.group_account
    number = 6 if group is None else 8
    vectors = placeholder.vector, real.vector
    log.enter((_replaced, number, log.kernel.now, placeholder, real, *vectors, group), number)
    if real.node is not placeholder.node and not placeholder.node.gone:
        node_refunded(log, placeholder)


def _replaced(
    now: int,
    placeholder: Allocation,
    real: Allocation,
    gone: Vector,
    new: Vector,
    group: Account | None,
) -> _Records:
    app = real.ask.app
    registry = app.partition.registry
    return (
        *_usage(now, app, group, REMOVE, gone),
        (now, APP, REMOVE, _REPLACED, app.app_id, placeholder.uuid, registry, gone, ""),
        (now, QUEUE, ADD, _QUEUE_ALLOC, app.queue.path, real.uuid, registry, new, ""),
        *_usage(now, app, group, ADD, new),
        (now, APP, ADD, _APP_ALLOC, app.app_id, real.uuid, registry, new, ""),
        _of_ask(now, real.ask, new, REMOVE, _REQUEST_ALLOC),
    )


def _usage(
    now: int, app: Application, group: Account | None, change: int, vector: Vector
) -> _Records:
    """The usage of the user, and of the group that the application counts for, by ``change``."""
    registry, path = app.partition.registry, app.queue.path
    user = (now, USERGROUP, change, _USER_RESOURCE, app.user, path, registry, vector, "")
    if group is None:
        return (user,)
    return user, (now, USERGROUP, change, _GROUP_RESOURCE, group.name, path, registry, vector, "")


def node_charged(log: EventLog, allocation: Allocation) -> None:
    """The node holds a real allocation whose placeholder on another node is not gone yet (X18)."""
    _on_node(log, allocation, ADD)


def node_refunded(log: EventLog, allocation: Allocation) -> None:
    """The node no longer holds the allocation; its application may still have it."""
    _on_node(log, allocation, REMOVE)


def _on_node(log: EventLog, allocation: Allocation, change: int) -> None:
    ask, node = allocation.ask, allocation.node
    registry, now = node.partition.registry, log.kernel.now
    vector = allocation.vector
    log.enter((now, NODE, change, _NODE_ALLOC, node.node_id, ask.ask_key, registry, vector, ""))


# -- nodes -----------------------------------------------------------------------------------------


def node_added(log: EventLog, node: Node) -> None:
    _of_node(log, node, ADD, PLAIN, tuple(node.total), "Node added to the scheduler")


def node_removed(log: EventLog, node: Node) -> None:
    text = "Node removed from the scheduler"
    _of_node(log, node, REMOVE, EventRecord.NODE_DECOMISSION, (), text)


def node_entered(log: EventLog, node: Node, reason: str) -> None:
    """Whether the node takes new allocations. A node that was rejected has no records."""
    if node.state in node_fsm.TURNED_AWAY:
        return
    text = f"schedulable: {str(node.state in node_fsm.OPEN).lower()}"
    _of_node(log, node, SET, EventRecord.NODE_SCHEDULABLE, (), text)


def node_ready(log: EventLog, node: Node, ready: bool) -> None:
    _of_node(log, node, SET, EventRecord.NODE_READY, (), f"ready: {str(ready).lower()}")


def node_capacity(log: EventLog, node: Node) -> None:
    _of_node(log, node, SET, EventRecord.NODE_CAPACITY, tuple(node.total))


def node_occupied(log: EventLog, node: Node) -> None:
    _of_node(log, node, SET, EventRecord.NODE_OCCUPIED, tuple(node.occupied))


def reserved(log: EventLog, node: Node, ask: Ask) -> None:
    """The text names the gang if the node is reserved for its members together (Q8)."""
    app = ask.app
    text: Text = ""
    if app.is_gang and app.gang.admission == "atomic" and app.gang.state in gang_fsm.WAITS:
        text = ("reserved for the gang of application '%s'", app.app_id)
    detail = EventRecord.NODE_RESERVATION
    _of_node(log, node, ADD, detail, ask.kind.vector, text, reference=ask.ask_key)


def unreserved(log: EventLog, node: Node, ask: Ask) -> None:
    detail = EventRecord.NODE_RESERVATION
    _of_node(log, node, REMOVE, detail, ask.kind.vector, reference=ask.ask_key)


def _of_node(
    log: EventLog,
    node: Node,
    change: int,
    detail: int,
    quantities: Vector,
    text: Text = "",
    reference: str = "",
) -> None:
    now, registry = log.kernel.now, node.partition.registry
    log.enter((now, NODE, change, detail, node.node_id, reference, registry, quantities, text))


# -- queues ----------------------------------------------------------------------------------------


def queue_added(log: EventLog, queue: Queue) -> None:
    log.enter(_queue(log, queue, ADD, _made_by(queue)))


def queue_removed(log: EventLog, queue: Queue) -> None:
    log.enter(_queue(log, queue, REMOVE, _made_by(queue)))


def _made_by(queue: Queue) -> int:
    """The configuration makes managed queues, placement makes the others."""
    return _CONFIGURED if queue.managed else _DYNAMIC


def queue_configured(log: EventLog, queue: Queue) -> None:
    """The configuration changed the queue, or has it again."""
    log.enter(_queue(log, queue, SET, _CONFIGURED))


def queue_type(log: EventLog, queue: Queue) -> None:
    text = f"leaf queue: {str(queue.leaf).lower()}"
    log.enter(_queue(log, queue, SET, EventRecord.QUEUE_TYPE, text=text))


def queue_max(log: EventLog, queue: Queue) -> None:
    """The quantities are the new quota."""
    vector = _quota(queue, queue.max)
    log.enter(_queue(log, queue, SET, EventRecord.QUEUE_MAX, quantities=vector))


def queue_guaranteed(log: EventLog, queue: Queue) -> None:
    vector = _quota(queue, queue.guaranteed)
    log.enter(_queue(log, queue, SET, EventRecord.QUEUE_GUARANTEED, quantities=vector))


def quota_enforced(
    log: EventLog,
    queue: Queue,
    excess: Mapping[int, int],
    claimed: Mapping[int, int],
    candidates: int,
    victims: int,
) -> None:
    """``excess`` is what the queue uses above its max, ``claimed`` what the victims hold (2.21)."""
    form = "Quota preemption: preemptable %s, claimed %s, selected %s, preempted %s"
    text = (form, dict(excess), dict(claimed), candidates, victims)
    vector = _quota(queue, queue.max)
    log.enter(_queue(log, queue, SET, EventRecord.QUEUE_PREEMPTION, quantities=vector, text=text))


def capacity_changed(log: EventLog, partition: Partition, before: Vector) -> None:
    """Root's max is the capacity of all nodes. As in YuniKorn the quantities are those *before*; the
    text has both."""
    text = ("max resources changed from %s to %s", before, tuple(partition.capacity))
    root = partition.root
    log.enter(_queue(log, root, SET, EventRecord.QUEUE_MAX, quantities=before, text=text))


def _quota(queue: Queue, quota: Mapping[str, int] | None) -> Vector:
    return queue.partition.registry.vector(quota or {})


def _queue(
    log: EventLog,
    queue: Queue,
    change: int,
    detail: int,
    reference: str = "",
    *,
    quantities: Vector = (),
    text: Text = "",
) -> Record:
    now, registry = log.kernel.now, queue.partition.registry
    return (now, QUEUE, change, detail, queue.path, reference, registry, quantities, text)


# -- users and groups ------------------------------------------------------------------------------


def limits_changed(
    log: EventLog, queue: Queue, users: Mapping[str, Limit], groups: Mapping[str, Limit]
) -> None:
    """``users`` and ``groups`` are the limits before. The wildcard stands for no user in particular,
    but for one group: all users without a named group."""
    named = {name: limit for name, limit in users.items() if name != WILDCARD}
    now = {name: limit for name, limit in queue.user_limits.items() if name != WILDCARD}
    _limits(log, EventRecord.UG_USER_LIMIT, queue, named, now)
    _limits(log, EventRecord.UG_GROUP_LIMIT, queue, groups, queue.group_limits)


def _limits(
    log: EventLog,
    detail: int,
    queue: Queue,
    before: Mapping[str, Limit],
    now: Mapping[str, Limit],
) -> None:
    """One record for each name whose limit is another one, by name."""
    for name in sorted({*before, *now}):
        if before.get(name) != now.get(name):
            change = SET if name in now else REMOVE
            log.enter((log.kernel.now, USERGROUP, change, detail, name, queue.path, None, (), ""))


def group_linked(log: EventLog, app: Application) -> None:
    """The application counts for its group, if it has one (2.5)."""
    _group_link(log, app, SET)


def group_unlinked(log: EventLog, app: Application) -> None:
    _group_link(log, app, REMOVE)


def _group_link(log: EventLog, app: Application, change: int) -> None:
    if (group := app.group_account) is not None:
        now, detail = log.kernel.now, EventRecord.UG_APP_LINK
        log.enter((now, USERGROUP, change, detail, group.name, app.app_id, None, (), ""))
