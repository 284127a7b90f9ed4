"""Gangs: the whole-gang gate, placeholders and timeouts.

A gang starts in this order (G1): its placeholders are allocated, all in one step (``gang_admission``) or
one by one like other asks, as its queue's ``gang.admission`` says; when the last one is allocated, the
application runs and submits its real asks; each real ask replaces a placeholder of its task group
(``replacement``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quadriga.base.times import SECOND
from quadriga.core.model import accounting
from quadriga.core.model.allocation import Allocation
from quadriga.core.model.gang import ASKS, QUOTA, TaskGroup
from quadriga.core.resources.vectors import Vector, covers, plus
from quadriga.core.runtime.kernel import Kernel
from quadriga.fsm import APPLICATION, GANG
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.fsm.lifecycles import gang as gang_fsm

if TYPE_CHECKING:
    from quadriga.core.model.account import QuotaPlan
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask
    from quadriga.core.model.queue import Queue
    from quadriga.core.resources.shapes import Need

#: more placeholders than any gang has: the gang cannot be completed by this size
_NEVER: Final = 1 << 62

RESERVATION_TIMEOUT = "ResourceReservationTimeout"

#: checks a gang in Accepted for progress; runs beside the placeholder timer
IDLE_TIMER: Final = "application.gang_idle"
#: bounds of the time between two looks at a gang that stays in Accepted (ns); it doubles
_IDLE_LEAST: Final = 10 * SECOND
_IDLE_MOST: Final = 900 * SECOND


# -- the whole-gang gate (X16) ---------------------------------------------------------------------


def gate(app: Application) -> tuple[Queue, Vector, Vector] | None:
    """Return the first queue whose quota has no room for the whole gang, its room, and the demand.

    Root counts with the capacity of the nodes for a gang that fits it. Headroom reserved for started
    gangs is not free (G8).
    """
    whole = app.gang.size
    if whole is None or app.gang.started or app.gang.admission == "incremental":
        return None
    if not app.gang.announced:  # its size is not known in advance (X35)
        return None
    if app.gang.admission == "atomic" and app.gang.state not in gang_fsm.WAITS:
        return None  # its application runs already, and what it still asks for is placed one by one
    queues = app.queue.lineage
    if app.gang.admission != "whole" or not covers(app.partition.capacity, whole):
        # Root's quota is the present capacity; a larger gang asks for nodes (G12).
        queues = queues[:-1]
    for queue in queues:
        delayed = _plan_delayed_by(app, queue)
        for index, limit in queue.limits:
            left = limit - queue.allocated[index] - queue.reserved_headroom[index]
            if delayed is not None:
                left = min(left, delayed.beside.get(index, left))
            if index < len(whole) and whole[index] > max(0, left):
                room = tuple(
                    top - queue.allocated[at] - queue.reserved_headroom[at]
                    for at, top in queue.limits
                )
                return queue, room, whole
    return None


def _plan_delayed_by(app: Application, queue: Queue) -> QuotaPlan | None:
    """The plan of the queue's quota if the gang is not expected to end before its start (Q12)."""
    plan, now = queue.plan, app.partition.node_index.now
    if plan is None or plan.app is app:
        return None
    groups = [group for group in app.groups.values() if group.kind.placeholder]
    return None if all(plan.lends(group.shape, now) for group in groups) else plan


def may_start(kernel: Kernel, app: Application) -> bool:
    """Return True if the first placeholder of the gang may be allocated. If not, the gang waits at
    the queue that lacks room."""
    closed = gate(app)
    if closed is None:
        return True
    attempt_failed(kernel, app)
    closed[0].gated[app] = None
    app.gang.lacks = QUOTA
    app.partition.waiting.refresh(app)
    return False


# -- placeholders ----------------------------------------------------------------------------------


def task_group_of(app: Application, name: str, vector: Vector) -> TaskGroup:
    """Return the task group of this name. Its first placeholder ask creates it (G23)."""
    group = app.gang.task_groups.get(name)
    if group is None:
        group = app.gang.task_groups[name] = TaskGroup(name, vector)
    return group


def become_gang(kernel: Kernel, app: Application) -> None:
    """X35: the first placeholder ask makes an application a gang, announced or not.

    The placeholder timeout then replaces its time limit (X17), unless it has started already.
    """
    app.gang.size = ()
    if not app.started:
        app.run_limit = 0
    if app.state in application_fsm.GATHERS:
        start_idle_timer(kernel, app)


def count_pending(ask: Ask, number: int) -> None:
    """Count ``number`` more placeholders as pending (negative: fewer).

    A gang without placeholderAsk is the sum of its placeholder asks (X35).
    """
    app = ask.app
    group = task_group_of(app, ask.kind.task_group, ask.kind.vector)
    group.count += number
    group.pending += number
    if app.gang.lacks:
        app.gang.try_again()
    resize(app, ask.kind.vector, number)


def resize(app: Application, vector: Vector, number: int) -> None:
    """X35: grow or shrink a gang without placeholderAsk by ``number`` placeholders."""
    if app.gang.announced:
        return
    held = app.holding
    more = tuple([value * number for value in vector])
    app.gang.size = plus(app.gang.size or (), more)
    if app.holding != held:  # X9
        app.partition.waiting.refresh(app)


def placeholder_allocated(kernel: Kernel, placeholder: Allocation) -> None:
    """Account for an allocated or recovered placeholder: timer, reserved headroom, start of the gang."""
    app = placeholder.ask.app
    app.gang.task_groups[placeholder.ask.kind.task_group].landed(placeholder)
    if not app.gang.started:
        app.gang.started = True
        kernel.fire(GANG, app.gang, gang_fsm.PLACE)
        if app.gang.gated:  # the placeholder was recovered, so the gate no longer applies
            app.gang.lacks = ""
            for queue in app.queue.lineage:
                queue.gated.pop(app, None)
            app.partition.waiting.refresh(app)
    if app.state in application_fsm.GATHERS and app not in app.queue.admitted:
        for queue in app.queue.lineage:
            queue.admitted[app] = None
        app.partition.admission_changed(app.queue)
        app.partition.waiting.refresh(app)
    if app.gang.timer is None and app.gang.timeout > 0:
        # A recovered one too, by the state of its application (X25).
        if app.state in application_fsm.BEFORE_RUNNING | application_fsm.GIVES_BACK_ON_TIMEOUT:
            app.gang.timer = kernel.timers.start(
                kernel.now, app.gang.timeout, "application.placeholder", app
            )
    accounting.reserve_headroom(app)
    run_if_complete(kernel, app)
    app.partition.waiting.offer_replacements(app)


def adds_placeholders_only(app: Application) -> bool:
    """Whether one more placeholder changes nothing else unless it completes the gang.

    True if the gang has started, no other gang waits for quota, and no member waits for a placeholder.
    """
    return (
        app.gang.started
        and app in app.queue.admitted
        and (app.gang.timer is not None or not app.gang.timeout)
        and all(group.kind.placeholder for group in app.groups.values())
        and not any(queue.gated for queue in app.queue.lineage)
    )


def missing(app: Application, need: Need) -> int:
    """Return the smallest number of placeholders of this size that completes the gang."""
    assert app.gang.size is not None
    sizes, have, most = dict(need), app.gathered, 0
    for at, value in enumerate(app.gang.size):
        if (short := value - (have[at] if at < len(have) else 0)) > 0:
            if not sizes.get(at):
                return _NEVER
            most = max(most, -(-short // sizes[at]))
    return most


def run_if_complete(kernel: Kernel, app: Application) -> None:
    """G21: run the gang if it has all its placeholders; until then it stays Accepted (S5)."""
    if app.state in application_fsm.GATHERS and app.gang_complete:
        kernel.fire(APPLICATION, app, application_fsm.RUN)


def placeholder_gone(kernel: Kernel, placeholder: Allocation, *, replaced: bool) -> None:
    """Update the gang after a placeholder ended. A real ask is scheduled normally if none replaced it."""
    app = placeholder.ask.app
    group = app.gang.task_groups[placeholder.ask.kind.task_group]
    group.take(placeholder)
    group.allocated -= 1
    for timer in placeholder.timers:
        timer.cancel()
    if replaced:
        group.replaced += 1
    else:
        group.timed_out += 1
        app.gang.lost = plus(app.gang.lost, placeholder.vector)
    # before the gang runs, only the timer can end a gang that lost all placeholders (V7)
    gathers = app.state in application_fsm.BEFORE_RUNNING
    if not app.placeholders and not gathers and app.gang.timer is not None:
        app.gang.timer.cancel()
        app.gang.timer = None
    accounting.reserve_headroom(app)
    # once the gang has run, the members of other task groups wait for nothing that this one had
    only = group.name if replaced and not gathers else ""
    app.partition.waiting.offer_replacements(app, only)


# -- timeouts --------------------------------------------------------------------------------------


def placeholders_timed_out(kernel: Kernel, app: Application) -> None:
    """Handle the placeholder timer (G45, X38).

    A gang that has lost all placeholders and waits for more starts a new timer with the next one.
    """
    app.gang.timer = None
    waits = any(group.pending for group in app.gang.task_groups.values())
    if app.state in application_fsm.GATHERS and waits and not app.placeholders:
        return
    fail_gang(kernel, app)


def fail_gang(kernel: Kernel, app: Application) -> None:
    """Fire the placeholder timeout. The gang's state and style decide what follows."""
    kernel.fire(APPLICATION, app, application_fsm.PLACEHOLDER_TIMEOUT, reason=RESERVATION_TIMEOUT)


def start_idle_timer(kernel: Kernel, app: Application, least: int = 0) -> None:
    """Check a gang in Accepted again after its placeholder timeout (V7), and after ``least`` ns at least.

    Only a gang whose resource manager disabled the timeout may wait without limit (X17).
    """
    patience = app.gang.timeout
    if app.gang.over:
        patience = patience or kernel.options.placeholder_timeout
    if app.is_gang and patience and not app.gang.without_placeholders:
        others = []
        for each in app.timers:
            if each.name == IDLE_TIMER:
                each.cancel()
            else:
                others.append(each)
        timer = kernel.timers.start(kernel.now, max(patience, least), IDLE_TIMER, app)
        app.timers = (*others, timer)


def idle_timed_out(kernel: Kernel, app: Application) -> None:
    """Handle the idle timer of a gang in Accepted.

    A gang without placeholders or placeholder asks fails, and so does one that waits for its asks. A
    gang that has nothing left after a Soft timeout starts to wait, and completes unless it asks again;
    one that still waits for some of its asks goes on with those that have arrived (Q5). Any other gang
    is checked again later.
    """
    if app.state not in application_fsm.GATHERS:
        return
    if app.gang.over:
        if not app.asks and not app.allocations and not app.placeholders:
            kernel.fire(APPLICATION, app, application_fsm.WAIT)
            return
        if app.gang.lacks == ASKS and app.asks:
            app.gang.announced = False  # its size is that of its asks from now on (X35)
            app.gang.try_again()
    elif (
        not app.placeholders and not any(g.pending for g in app.gang.task_groups.values())
    ) or app.gang.lacks == ASKS:
        fail_gang(kernel, app)
        return
    # The timeout is the client's, and less the application's age it may be a millisecond (Q16).
    waited = max(timer.delay for timer in app.timers if timer.name == IDLE_TIMER)
    start_idle_timer(kernel, app, min(max(2 * waited, _IDLE_LEAST), _IDLE_MOST))


def attempt_failed(kernel: Kernel, app: Application) -> None:
    """An attempt to place the whole gang failed. Its placeholder timeout counts from the first one, if its
    queue or its tag says so (D328)."""
    own = app.gang
    if own.timed_since < 0 < own.timeout and not own.over and own.timed_while_waiting:
        own.timed_since = kernel.now
        timer = kernel.timers.start(kernel.now, own.timeout, "application.gang_wait", app)
        app.timers = (*app.timers, timer)


def wait_timed_out(kernel: Kernel, app: Application) -> None:
    """Fail a gang that has waited without a placeholder for as long as its queue allows (S3), or for its
    placeholder timeout, where that counts (D328)."""
    if app.state in application_fsm.GATHERS and not app.gang.started:
        fail_gang(kernel, app)
