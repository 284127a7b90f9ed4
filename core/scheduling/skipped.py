"""The scheduling state SKIPPED: asks that are not tried, and why (X43).

A shim adds no nodes for an ask in SKIPPED, because a quota, a limit, the gate or the hold of a gang, or
maxapplications stops it. Each of these causes is reported once for each ask, and again after the ask was
reported to lack nodes (FAILED) in the meantime. Only a resource manager that wants all states is told
(``si.schedulingStates``).

A walk checks every group of asks, because the asks of a group are stopped by the same causes. It runs in
short slices, so that it delays no decision, and only if something has changed since the last walk.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Final

from quadriga.base.times import SECOND
from quadriga.core.model.gang import ASKS
from quadriga.core.model.queue import LeafQueue
from quadriga.core.runtime.kernel import Kernel
from quadriga.core.steps import gang, limits
from quadriga.fsm import RESOURCE_MANAGER
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.fsm.lifecycles import resource_manager as resource_manager_fsm
from quadriga.si import UpdateContainerSchedulingStateRequest

if TYPE_CHECKING:
    from quadriga.core.model.account import Ledger
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import AskGroup
    from quadriga.core.model.partition import Partition

#: the name of a cause, which is reported once for each ask, and its text
Cause = tuple[str, str]

_SKIPPED = UpdateContainerSchedulingStateRequest.SKIPPED
#: at most this number of groups and asks is checked in one slice; ``_PAUSE`` ns later the next one starts
_SLICE: Final = 2_000
_PAUSE: Final = SECOND // 10


def watch(kernel: Kernel, partition: Partition) -> None:
    """Start the timer for the next walk after decisions, if anything has changed since the last one."""
    if partition.hints.skip_timer is None and partition.waiting.epoch != partition.hints.skip_epoch:
        _start(kernel, partition, kernel.options.inspect_interval)


def _start(kernel: Kernel, partition: Partition, wait: int) -> None:
    partition.hints.skip_timer = kernel.timers.start(
        kernel.now, wait, "partition.skipped", partition
    )


def report(kernel: Kernel, partition: Partition) -> None:
    """Run one slice of a walk, and start the timer of the next slice."""
    partition.hints.skip_timer = None
    rm = partition.rm
    if not (rm.all_states and RESOURCE_MANAGER.allows(rm.state, resource_manager_fsm.DISCONNECT)):
        partition.hints.skip_walk = None
        return
    walk = partition.hints.skip_walk
    if walk is None:
        partition.hints.skip_epoch = partition.waiting.epoch
        walk = partition.hints.skip_walk = iter(_in_order(partition))
    left = _SLICE
    while left > 0:
        app = next(walk, None)
        if app is None:
            partition.hints.skip_walk = None
            return
        if partition.applications.get(app.app_id) is app:
            for group in list(app.groups.values()):
                left -= 1 + _report_group(kernel, app, group)
    _start(kernel, partition, _PAUSE)


def _in_order(partition: Partition) -> list[Application]:
    """Return all applications with asks, in the order in which they would be served."""
    found: list[Application] = []
    for leaf in partition.leaves():
        apps = [app for app in leaf.apps.values() if app.asks]
        found += sorted(apps, key=lambda app: app.rank or app.make_rank())
    return found


def _report_group(kernel: Kernel, app: Application, group: AskGroup) -> int:
    """Report the cause for those asks of the group where it is new; return their number."""
    cause = cause_of(app, group)
    if cause is None:
        group.skipped_for = ""
        return 0
    name, text = cause
    known = group.skipped.get(name, -1)
    if group.skipped_for == name:
        fresh = list(takewhile(lambda ask: ask.seq > known, reversed(group.asks.values())))
    else:
        fresh = [ask for ask in reversed(group.asks.values()) if ask.seq > known or ask.hinted]
    group.skipped_for = name
    if fresh:
        group.skipped[name] = max(known, fresh[0].seq)
        for ask in reversed(fresh):
            if ask.hinted:  # it may lack nodes again later
                ask.hinted = False
                app.partition.hints.asks[ask] = None
            kernel.outbox.container_state(ask, _SKIPPED, text)
    return len(fresh)


def cause_of(app: Application, group: AskGroup) -> Cause | None:
    """What stops the asks of the group, whatever the nodes have free; ``None`` if nothing does."""
    return _of_application(app) or _of_group(app, group) if group.asks else None


def _of_application(app: Application) -> Cause | None:
    """No application more may start, where it has not started yet."""
    leaf = app.queue
    if (
        app.state in application_fsm.GATHERS
        and isinstance(leaf, LeafQueue)
        and app not in leaf.admitted
    ):
        for queue in leaf.lineage:
            if not queue.admits():
                return "maxapplications", f"queue {queue.path} runs as many applications as it may"
    ledger = limits.full(app)
    if ledger is not None:
        return "maxapplications", f"{_whose(ledger)} runs as many applications as allowed"
    return None


def _of_group(app: Application, group: AskGroup) -> Cause | None:
    if app.gang.lacks and app.gang.starts_whole(group):
        return _of_whole_gang(app)
    if group.kind.placeholder:
        closed = gang.gate(app)
        if closed is not None:
            return "gate", f"queue {closed[0].path} has no room for the whole gang"
    elif app.holding:
        return "hold", "it waits until its gang is complete"
    shape = group.shape
    if not group.demand_now() & shape.bits:  # it takes over a placeholder, which needs no quota
        return None
    ledger = limits.short(app, shape)
    if ledger is not None:
        return "limit", f"the limit of {_whose(ledger)} has no room for it"
    for queue in app.queue.lineage[:-1]:  # root's quota is what the nodes have
        if queue.is_short(shape):
            return "quota", f"the quota of queue {queue.path} has no room for it"
    return None


def _of_whole_gang(app: Application) -> Cause | None:
    """The gang was tried and waits for something other than nodes (Q2)."""
    for queue in app.queue.lineage[:-1]:
        if app in queue.gated:
            return "gate", f"queue {queue.path} has no room for the whole gang"
    for ledger in app.limiting:
        if app in ledger.gated:
            return "limit", f"the limit of {_whose(ledger)} has no room for the whole gang"
    if app.gang.lacks == ASKS:
        return "hold", "its gang waits for asks that have not arrived"
    return None


def _whose(ledger: Ledger) -> str:
    return f"{ledger.account.kind} {ledger.account.name} in {ledger.queue.path}"
