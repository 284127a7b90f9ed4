"""Gangs: the whole-gang gate, placeholders, the timeout.

The order of events is the design document's (G1): the placeholders are allocated like anything else;
when all are there the application runs and its real asks come; each takes over a placeholder of its
task group (``replacement``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quadriga.core.model import accounting
from quadriga.core.model.allocation import Allocation
from quadriga.core.model.resources import Vector, plus
from quadriga.core.model.task_group import TaskGroup
from quadriga.core.runtime.kernel import Kernel
from quadriga.fsm import APPLICATION
from quadriga.fsm import application as application_fsm

if TYPE_CHECKING:
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask
    from quadriga.core.model.queue import Queue
    from quadriga.core.model.shapes import Need

__all__ = [
    "begin",
    "enlarge",
    "expect",
    "gate",
    "looked_idle",
    "may_start",
    "missing",
    "only_gathers",
    "placeholder_gone",
    "placeholder_landed",
    "timed_out",
    "waited_too_long",
    "watch_idle",
]

#: so many placeholders there are not
_NEVER: Final = 1 << 62

RESERVATION_TIMEOUT = "ResourceReservationTimeout"

#: of a gang in Accepted, beside the timer of its placeholders
IDLE_TIMER: Final = "application.gang_idle"


# -- the whole-gang gate (X16) ---------------------------------------------------------------------


def gate(app: Application) -> tuple[Queue, Vector, Vector] | None:
    """Where the whole gang does not fit at present: the queue, what it has left, what is asked.

    Configured quotas only; what started gangs below are still owed is not free (G8).
    """
    whole = app.gang.size
    if whole is None or app.gang.started or app.queue.properties.gang_admission != "whole":
        return None
    if not app.gang.announced:  # its size is not known in advance (X35)
        return None
    for queue in app.queue.lineage[:-1]:
        for index, limit in queue.limits:
            left = limit - queue.allocated[index] - queue.reserved_headroom[index]
            if index < len(whole) and whole[index] > max(0, left):
                room = tuple(
                    top - queue.allocated[at] - queue.reserved_headroom[at]
                    for at, top in queue.limits
                )
                return queue, room, whole
    return None


def may_start(app: Application) -> bool:
    """Return True if the first placeholder of the gang may be allocated. If not, the gang waits at
    the queue that lacks room."""
    closed = gate(app)
    if closed is None:
        return True
    closed[0].gated[app] = None
    app.gang.gated = True
    app.partition.waiting.refresh(app)
    return False


# -- placeholders ----------------------------------------------------------------------------------


def task_group_of(app: Application, name: str, vector: Vector) -> TaskGroup:
    """The task group of this name, which its first placeholder ask makes known (G23)."""
    group = app.gang.task_groups.get(name)
    if group is None:
        group = app.gang.task_groups[name] = TaskGroup(name, vector)
    return group


def begin(kernel: Kernel, app: Application) -> None:
    """X35: with its first placeholder ask an application is a gang, announced or not. Its time limit is
    that of its placeholders then (X17), unless it runs already as an ordinary application."""
    app.gang.size = ()
    if not app.started:
        app.run_limit = 0
    if app.state in application_fsm.GATHERS:
        watch_idle(kernel, app)


def expect(ask: Ask, number: int) -> None:
    """``number`` more placeholders are asked for (negative: fewer). Without placeholderAsk the gang is
    the sum of all placeholder asks (X35)."""
    app = ask.app
    group = task_group_of(app, ask.task_group, ask.vector)
    group.count += number
    group.pending += number
    enlarge(app, ask.vector, number)


def enlarge(app: Application, vector: Vector, number: int) -> None:
    """X35: a gang without placeholderAsk grows or shrinks by ``number`` placeholders."""
    if app.gang.announced:
        return
    held = app.holding
    more = tuple([value * number for value in vector])
    app.gang.size = plus(app.gang.size or (), more)
    if app.holding != held:  # X9
        app.partition.waiting.refresh(app)


def placeholder_landed(kernel: Kernel, placeholder: Allocation) -> None:
    """A placeholder was allocated (or recovered): the timer, the promise, and perhaps the start."""
    app = placeholder.ask.app
    app.gang.task_groups[placeholder.ask.task_group].landed(placeholder)
    if not app.gang.started:
        app.gang.started = True
        if app.gang.gated:  # recovered: the gate does not apply any more
            app.gang.gated = False
            for queue in app.queue.lineage:
                queue.gated.pop(app, None)
            app.partition.waiting.refresh(app)
    if app.state in application_fsm.GATHERS and app not in app.queue.admitted:
        for queue in app.queue.lineage:
            queue.admitted[app] = None
        app.partition.admission_changed(app.queue)
        app.partition.waiting.refresh(app)
    if app.gang.timer is None and app.gang.timeout > 0:
        if (
            app.state in application_fsm.BEFORE_RUNNING | application_fsm.GIVES_BACK_ON_TIMEOUT
        ):  # X25
            app.gang.timer = kernel.timers.start(
                kernel.now, app.gang.timeout, "application.placeholder", app
            )
    accounting.reserve_headroom(app)
    run_if_complete(kernel, app)
    app.partition.waiting.offer_replacements(app)


def only_gathers(app: Application) -> bool:
    """Whether nothing follows from one more placeholder, unless it completes the gang: the gang has
    started, nobody waits for what is promised to it, and no member waits for a placeholder."""
    return (
        app.gang.started
        and app in app.queue.admitted
        and (app.gang.timer is not None or not app.gang.timeout)
        and all(group.placeholder for group in app.groups.values())
        and not any(queue.gated for queue in app.queue.lineage)
    )


def missing(app: Application, need: Need) -> int:
    """How many more placeholders of this size it takes, at least, until the gang is complete."""
    assert app.gang.size is not None
    sizes, have, most = dict(need), app.gathered, 0
    for at, value in enumerate(app.gang.size):
        if (short := value - (have[at] if at < len(have) else 0)) > 0:
            if not sizes.get(at):
                return _NEVER
            most = max(most, -(-short // sizes[at]))
    return most


def run_if_complete(kernel: Kernel, app: Application) -> None:
    """G21: a gang stays Accepted until it has all its placeholders, and runs then (S5)."""
    if app.state in application_fsm.GATHERS and app.gang_complete:
        kernel.fire(APPLICATION, app, application_fsm.RUN)


def placeholder_gone(kernel: Kernel, placeholder: Allocation, *, replaced: bool) -> None:
    """A placeholder left the books. If nobody replaced it, real asks go the normal way for it."""
    app = placeholder.ask.app
    group = app.gang.task_groups[placeholder.ask.task_group]
    group.take(placeholder)
    group.allocated -= 1
    for timer in placeholder.timers:
        timer.cancel()
    if replaced:
        group.replaced += 1
    else:
        group.timed_out += 1
        app.gang.lost = plus(app.gang.lost, placeholder.vector)
    # while it still gathers, the timer is the only way out for a gang that lost them all (V7)
    gathers = app.state in application_fsm.BEFORE_RUNNING
    if not app.placeholders and not gathers and app.gang.timer is not None:
        app.gang.timer.cancel()
        app.gang.timer = None
    accounting.reserve_headroom(app)
    app.partition.waiting.offer_replacements(app)


# -- timeouts --------------------------------------------------------------------------------------


def timed_out(kernel: Kernel, app: Application) -> None:
    """The placeholder timer fired (G45, X38). A gang that has lost all its placeholders and still waits
    for more starts its timer anew with the next one."""
    app.gang.timer = None
    waits = any(group.pending for group in app.gang.task_groups.values())
    if app.state in application_fsm.GATHERS and waits and not app.placeholders:
        return
    fail_gang(kernel, app)


def fail_gang(kernel: Kernel, app: Application) -> None:
    """The gang's time is over; its state and style decide what follows."""
    kernel.fire(APPLICATION, app, application_fsm.PLACEHOLDER_TIMEOUT, reason=RESERVATION_TIMEOUT)


def watch_idle(kernel: Kernel, app: Application) -> None:
    """A gang in Accepted is looked at after its placeholder timeout, whether anything can still come of
    it (V7). It may last for ever only if its resource manager said so (X17)."""
    patience = app.gang.timeout
    if app.gang.over:
        patience = patience or kernel.options.placeholder_timeout
    if app.is_gang and patience:
        others = []
        for each in app.timers:
            if each.name == IDLE_TIMER:
                each.cancel()
            else:
                others.append(each)
        timer = kernel.timers.start(kernel.now, patience, IDLE_TIMER, app)
        app.timers = (*others, timer)


def looked_idle(kernel: Kernel, app: Application) -> None:
    """A gang that has sent no placeholder asks fails, as one that does not get its placeholders. One that
    has nothing left after a Soft timeout waits for a last ask, and completes. Any other goes on."""
    if app.state not in application_fsm.GATHERS:
        return
    if app.gang.over:
        if not app.asks and not app.allocations and not app.placeholders:
            kernel.fire(APPLICATION, app, application_fsm.WAIT)
            return
    elif not app.placeholders and not any(g.pending for g in app.gang.task_groups.values()):
        fail_gang(kernel, app)
        return
    watch_idle(kernel, app)


def waited_too_long(kernel: Kernel, app: Application) -> None:
    """S3: the queue limits how long a gang may wait without a single placeholder."""
    if app.state in application_fsm.GATHERS and not app.gang.started:
        fail_gang(kernel, app)
