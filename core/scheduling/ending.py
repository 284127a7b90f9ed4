"""How asks, allocations and applications come to their end.

Every way out leads through here: the books are settled, a replacement in flight is undone, the task
group counts, and then the application looks at what is left of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from quadriga.core.model import accounting, usage
from quadriga.core.model.ended import EndedApplication, remains_of, shortened
from quadriga.core.runtime.kernel import Kernel
from quadriga.core.scheduling import gang, replacement, reservation
from quadriga.fsm import ALLOCATION, APPLICATION, ASK
from quadriga.fsm import allocation as allocation_fsm
from quadriga.fsm import application as application_fsm
from quadriga.fsm import ask as ask_fsm
from quadriga.si import TerminationType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask
    from quadriga.core.model.resource_manager import ResourceManager

__all__ = [
    "Removed",
    "after_removal",
    "drop_ask",
    "end_allocation",
    "forget",
    "hand_over",
    "remove_application",
    "report_released",
    "turn_away",
]


#: looked up once: attributes of the enumeration are slow
_STOPPED_BY_RM: Final = TerminationType.STOPPED_BY_RM

_ASK_TEXT: Final = "ask released as per RM request"


def drop_ask(kernel: Kernel, ask: Ask, *, timed_out: bool) -> None:
    """Reject an ask that is not wholly allocated. A planned allocation of it is taken back.

    A placeholder ask that ``timed_out`` counts as such in its group, one that the resource manager
    takes back was never one (V4, S2).
    """
    app = ask.app
    partition = app.partition
    waiting = ask.pending - (1 if ask.planned is not None else 0)
    if ask.planned is not None:
        replacement.unplan(kernel, ask.planned, again=False)
    kernel.fire(ASK, ask, ask_fsm.REJECT)
    partition.rm.observer.ask_removed(ask, timed_out)
    accounting.remove_pending(ask, waiting)
    reservation.cancel_all_of(partition, ask)
    partition.waiting.remove(ask)
    partition.hints.asks.pop(ask, None)
    del app.asks[ask.ask_key]
    if ask.placeholder:
        if timed_out:
            group = app.gang.task_groups[ask.task_group]
            group.pending -= ask.pending
            group.timed_out += ask.pending
        else:
            gang.expect(ask, -ask.pending)
        app.partition.waiting.offer_replacements(app)


def end_allocation(
    kernel: Kernel,
    allocation: Allocation,
    trigger: allocation_fsm.Trigger,
    kind: TerminationType = TerminationType.STOPPED_BY_RM,
) -> None:
    """The allocation is over: out of all books. A replacement of it is planned anew (X18).

    ``kind`` is what its event record says of the reason: UNKNOWN where its node is gone (2.16).
    """
    if allocation.partner is not None:
        replacement.unplan(kernel, allocation.partner, again=True)
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
    if allocation.ask.placeholder:
        gang.placeholder_gone(kernel, allocation, replaced=False)


# -- what an application makes of it ---------------------------------------------------------------


class Removed:
    """What one request or event took from applications, until they may look at the result.

    ``mattered`` is whether a real allocation or an ask was removed: only then can an application
    have nothing left to do (G40). Losing the last placeholder matters as well.
    """

    __slots__ = ("apps",)

    def __init__(self) -> None:
        self.apps: dict[Application, bool] = {}

    def ask(self, ask: Ask) -> None:
        self.apps[ask.app] = True

    def allocation(self, allocation: Allocation) -> None:
        app = allocation.ask.app
        mattered = not allocation.ask.placeholder or not app.placeholders
        self.apps[app] = self.apps.get(app, False) or mattered

    def settle(self, kernel: Kernel) -> None:
        """Let every application concerned take its next step."""
        apps, self.apps = self.apps, {}
        for app, mattered in apps.items():
            after_removal(kernel, app, mattered)
        kernel.settle()


def report_released(
    kernel: Kernel,
    rm: ResourceManager,
    allocations: list[Allocation],
    text: str,
    removed: Removed,
    asks: Iterable[Ask] = (),
) -> None:
    """Report the release of allocations, and before it that of ``asks`` which their keys named.

    A resource manager with another message order than the design's hears of the applications first
    (X8): they are settled before the report.
    """
    if not rm.design_order:
        removed.settle(kernel)
    for ask in asks:
        kernel.outbox.released_by_key(ask, _STOPPED_BY_RM, _ASK_TEXT)
    for allocation in allocations:
        kernel.outbox.released(allocation, _STOPPED_BY_RM, text)


def _serve_on(kernel: Kernel, app: Application, mattered: bool) -> None:
    if mattered and not (app.has_asks or app.has_allocations):
        kernel.fire(APPLICATION, app, application_fsm.WAIT)
    else:
        gang.run_if_complete(kernel, app)


def _wait_on(kernel: Kernel, app: Application, mattered: bool) -> None:
    if app.completing and not app.placeholders:
        kernel.fire(APPLICATION, app, application_fsm.COMPLETE)


def _resume(kernel: Kernel, app: Application, mattered: bool) -> None:
    kernel.fire(APPLICATION, app, application_fsm.RESUMED)
    if app.state in application_fsm.GATHERS and app.allocations:  # X28: it follows its allocations
        kernel.fire(APPLICATION, app, application_fsm.RUN)


def _die(kernel: Kernel, app: Application, mattered: bool) -> None:
    kernel.fire(APPLICATION, app, application_fsm.KILLED_)


_STEPS: Final[dict[application_fsm.Trigger, Callable[[Kernel, Application, bool], None]]] = {
    application_fsm.WAIT: _serve_on,
    application_fsm.COMPLETE: _wait_on,
    application_fsm.RESUMED: _resume,
    application_fsm.KILLED_: _die,
}
#: what an application does after something of it was removed, by its state
_AFTER_REMOVAL = {
    state: _STEPS[trigger]
    for state, trigger in application_fsm.AFTER_REMOVAL.items()
    if trigger is not None
}


def after_removal(kernel: Kernel, app: Application, mattered: bool) -> None:
    """The application has fewer allocations or asks than before."""
    step = _AFTER_REMOVAL.get(app.state)
    if step is not None:
        step(kernel, app, mattered)


def remove_application(kernel: Kernel, app: Application) -> list[Allocation]:
    """Reject its asks, complete its allocations, end it (I23, X31). Returns the allocations.

    The caller says that they are released; ``finish`` of the returned application is for it too.
    """
    for ask in list(app.asks.values()):
        drop_ask(kernel, ask, timed_out=False)
    released = [*app.allocations.values(), *app.placeholders.values()]
    for allocation in released:
        end_allocation(kernel, allocation, allocation_fsm.COMPLETE)
    return released


def finish_removal(kernel: Kernel, app: Application) -> None:
    """The state changes of a removed application: to its end in the same step (X31)."""
    for trigger in application_fsm.TO_ITS_END[app.state]:
        kernel.fire(APPLICATION, app, trigger, reason="application removed")
    kernel.settle()


# -- what is remembered of applications that have ended --------------------------------------------


def hand_over(kernel: Kernel, app: Application) -> None:
    """The application has ended: a record of it goes on in its state, with its timer."""
    ended = _record(app)
    ended.state, ended.entries, ended.finished = app.state, app.entries, app.finished
    timer = kernel.limit
    assert timer is not None and timer.entity is app
    timer.entity = ended
    _remember(kernel, ended, remains_of(app))
    app.tags = {}  # the journal may refer to it for long


def turn_away(kernel: Kernel, app: Application) -> None:
    """It was refused a queue: all that there ever is of it is a record."""
    ended = _record(app)
    kernel.fire(APPLICATION, ended, application_fsm.REJECT)
    ended.finished = kernel.now
    app.history.append((kernel.now, ended.state))
    _remember(kernel, ended, remains_of(app))


def _record(app: Application) -> EndedApplication:
    ended = EndedApplication(app.app_id, app.partition, app.queue, app.seq, app.submitted, app.user)
    ended.rejected_message = app.rejected_message
    ended.reason, ended.preempted = shortened(app.reason), app.preempted
    return ended


def _remember(kernel: Kernel, ended: EndedApplication, remains: dict[str, Any]) -> None:
    """Keep it until it expires. The oldest expire at once where there are too many."""
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
    """It has expired."""
    partition = ended.partition
    partition.ended.pop(ended, None)
    partition.rm.ended.discard(ended)
    partition.rm.rejected.discard(ended)
    ended.forget()
