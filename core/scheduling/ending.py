"""The end of asks, allocations and applications.

Every ask and allocation that ends passes through here: the accounting is updated, a replacement under
way is discarded, the task group is counted, and then the application takes its next step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from quadriga.base.texts import shortened
from quadriga.core.gangs import admission as gang_admission
from quadriga.core.gangs import replacement
from quadriga.core.model import accounting, usage
from quadriga.core.model.application import EndedApplication
from quadriga.core.runtime.kernel import Kernel
from quadriga.core.steps import gang, reservation
from quadriga.fsm import ALLOCATION, APPLICATION, ASK
from quadriga.fsm.lifecycles import allocation as allocation_fsm
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.fsm.lifecycles import ask as ask_fsm
from quadriga.si import TerminationType

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask
    from quadriga.core.model.resource_manager import ResourceManager

#: read once, because attributes of the enumeration are slow
_STOPPED_BY_RM: Final = TerminationType.STOPPED_BY_RM

_ASK_TEXT: Final = "ask released as per RM request"


def reject_ask(kernel: Kernel, ask: Ask, trigger: ask_fsm.Trigger, *, timed_out: bool) -> None:
    """Reject an ask that is not wholly allocated, and discard its planned allocation.

    A placeholder ask that ``timed_out`` counts as timed out in its task group. One that the resource
    manager releases is not counted at all (V4, S2).
    """
    app = ask.app
    partition = app.partition
    waiting = ask.pending - (1 if ask.planned is not None else 0)
    if ask.planned is not None:
        replacement.discard(kernel, ask.planned, again=False)
    kernel.fire(ASK, ask, trigger)
    partition.rm.observer.ask_removed(ask, timed_out)
    accounting.remove_pending(ask, waiting)
    reservation.cancel_all_of(partition, ask)
    partition.waiting.remove(ask)
    partition.hints.asks.pop(ask, None)
    del app.asks[ask.ask_key]
    if ask.kind.placeholder:
        if timed_out:
            group = app.gang.task_groups[ask.kind.task_group]
            group.pending -= ask.pending
            group.timed_out += ask.pending
        else:
            gang.count_pending(ask, -ask.pending)
        app.partition.waiting.offer_replacements(app)
    elif app.gang.over:  # the others may have room, or no longer be all
        gang_admission.retry(app)


def end_allocation(
    kernel: Kernel,
    allocation: Allocation,
    trigger: allocation_fsm.Trigger,
    kind: TerminationType = TerminationType.STOPPED_BY_RM,
) -> None:
    """End the allocation and refund its resources. The ask that was to replace it waits again (X18).

    ``kind`` is the reason in its event record: UNKNOWN if its node was removed (2.16).
    """
    if allocation.partner is not None:
        replacement.discard(kernel, allocation.partner, again=True)
    if allocation.reason is not None and trigger != allocation_fsm.CONFIRM:
        app = allocation.ask.app
        app.partition.serials.unanswered(app.app_id, allocation.uuid)
    kernel.fire(ALLOCATION, allocation, trigger)
    for timer in allocation.timers:
        timer.cancel()
    accounting.refund_node(allocation)
    accounting.refund(allocation)
    usage.ended(allocation, kernel.now)
    allocation.node.partition.rm.observer.allocation_ended(allocation, kind)
    allocation.ask.app.released += 1
    if allocation.ask.kind.placeholder:
        gang.placeholder_gone(kernel, allocation, replaced=False)
        if trigger == allocation_fsm.COMPLETE:
            gang_admission.placeholder_lost(kernel, allocation.ask.app)


# -- the application's next step -------------------------------------------------------------------


class Removals:
    """The applications that lost asks or allocations by one request or event.

    Each is marked if a real allocation, an ask or its last placeholder was removed: only then can it
    have nothing left to do (G40).
    """

    __slots__ = ("apps",)

    def __init__(self) -> None:
        self.apps: dict[Application, bool] = {}

    def add_ask(self, ask: Ask) -> None:
        self.apps[ask.app] = True

    def add_allocation(self, allocation: Allocation) -> None:
        app = allocation.ask.app
        mattered = not allocation.ask.kind.placeholder or not app.placeholders
        self.apps[app] = self.apps.get(app, False) or mattered

    def update_applications(self, kernel: Kernel) -> None:
        """Let each of these applications take its next step."""
        apps, self.apps = self.apps, {}
        for app, mattered in apps.items():
            after_removal(kernel, app, mattered)
        kernel.settle()


def report_released(
    kernel: Kernel,
    rm: ResourceManager,
    allocations: list[Allocation],
    text: str,
    removed: Removals,
    asks: Iterable[Ask] = (),
) -> None:
    """Report the release of ``asks`` that were named by key, and then of allocations.

    A resource manager with the k8shim message order receives application updates first (X8), so its
    applications take their next step before the report.
    """
    if not rm.design_order:
        removed.update_applications(kernel)
    for ask in asks:
        kernel.outbox.released_by_key(ask, _STOPPED_BY_RM, _ASK_TEXT)
    for allocation in allocations:
        kernel.outbox.released(allocation, _STOPPED_BY_RM, text)


def _wait_or_run(kernel: Kernel, app: Application, mattered: bool) -> None:
    if mattered and not (app.has_asks or app.has_allocations):
        kernel.fire(APPLICATION, app, application_fsm.WAIT)
    else:
        gang.run_if_complete(kernel, app)


def _complete(kernel: Kernel, app: Application, mattered: bool) -> None:
    """2.1: the last placeholder ends the wait, whoever released it."""
    if (app.completing or mattered) and not app.placeholders:
        kernel.fire(APPLICATION, app, application_fsm.COMPLETE)


def _resume(kernel: Kernel, app: Application, mattered: bool) -> None:
    kernel.fire(APPLICATION, app, application_fsm.RESUMED)
    # X28: it runs because it has allocations.
    if app.state in application_fsm.GATHERS and app.allocations:
        kernel.fire(APPLICATION, app, application_fsm.RUN)


def _end_killing(kernel: Kernel, app: Application, mattered: bool) -> None:
    kernel.fire(APPLICATION, app, application_fsm.KILLED_)


_STEPS: Final[dict[application_fsm.Trigger, Callable[[Kernel, Application, bool], None]]] = {
    application_fsm.WAIT: _wait_or_run,
    application_fsm.COMPLETE: _complete,
    application_fsm.RESUMED: _resume,
    application_fsm.KILLED_: _end_killing,
}
#: what an application does after something of it was removed, by its state
_AFTER_REMOVAL = {
    state: _STEPS[trigger]
    for state, trigger in application_fsm.AFTER_REMOVAL.items()
    if trigger is not None
}


def after_removal(kernel: Kernel, app: Application, mattered: bool) -> None:
    """Let an application that lost allocations or asks take its next step."""
    step = _AFTER_REMOVAL.get(app.state)
    if step is not None:
        step(kernel, app, mattered)


def remove_application(
    kernel: Kernel,
    app: Application,
    reject: ask_fsm.Trigger,
    complete: allocation_fsm.Trigger,
) -> list[Allocation]:
    """Reject the application's asks and complete its allocations (I23, X31). Return the allocations.

    The caller reports their release and calls ``finish_removal``.
    """
    for ask in list(app.asks.values()):
        reject_ask(kernel, ask, reject, timed_out=False)
    released = [*app.allocations.values(), *app.placeholders.values()]
    for allocation in released:
        end_allocation(kernel, allocation, complete)
    return released


def finish_removal(
    kernel: Kernel,
    app: Application,
    ends: Mapping[application_fsm.State, tuple[application_fsm.Trigger, ...]],
) -> None:
    """Move a removed application to its final state in the same step (X31), by the triggers that ``ends``
    has for its state."""
    for trigger in ends[app.state]:
        kernel.fire(APPLICATION, app, trigger, reason="application removed")
    kernel.settle()


# -- records of ended applications -----------------------------------------------------------------


def archive(kernel: Kernel, app: Application) -> None:
    """Replace an ended application by a record, which takes over its state and timer."""
    ended = _record(app)
    ended.state, ended.entries, ended.finished = app.state, app.entries, app.finished
    timer = kernel.limit
    assert timer is not None and timer.entity is app
    timer.entity = ended
    _store(kernel, ended, usage.remains_of(app))
    app.tags = {}  # the journal may keep the application for a long time


def record_rejected(kernel: Kernel, app: Application, reject: application_fsm.Trigger) -> None:
    """Keep a record of an application that placement rejected."""
    ended = _record(app)
    kernel.fire(APPLICATION, ended, reject)
    ended.finished = kernel.now
    app.history.append((kernel.now, ended.state))
    _store(kernel, ended, usage.remains_of(app))


def _record(app: Application) -> EndedApplication:
    ended = EndedApplication(app.app_id, app.partition, app.queue, app.seq, app.submitted, app.user)
    ended.rejected_message = app.rejected_message
    ended.reason, ended.preempted = shortened(app.reason), app.preempted
    return ended


def _store(kernel: Kernel, ended: EndedApplication, remains: dict[str, Any]) -> None:
    """Keep the record until it expires. The oldest records expire early if there are too many."""
    ended.pack(remains)
    partition = ended.partition
    partition.ended[ended] = None
    kernel.tally.application_ended(partition.key, ended.queue_path, ended.state)
    rm, options = partition.rm, kernel.options
    shelf = rm.shelf(ended.state)
    shelf.add(ended)
    if shelf is rm.rejected:
        kind, most, most_bytes = "rejected", options.keep_rejected, options.keep_rejected_bytes
    else:
        kind, most, most_bytes = "ended", options.keep_ended, options.keep_ended_bytes
    for oldest in shelf.take_over(most, most_bytes):
        kernel.tally.forgotten[kind] += 1
        kernel.fire_later(APPLICATION, oldest, application_fsm.EXPIRE)


def forget(ended: EndedApplication) -> None:
    """Remove an expired record."""
    partition = ended.partition
    partition.ended.pop(ended, None)
    partition.rm.ended.discard(ended)
    partition.rm.rejected.discard(ended)
    ended.forget()
