"""Gangs: the whole-gang gate, placeholders and their replacement, the timeout.

The order of events is the design document's (G1): the placeholders are allocated like anything else;
when all are there the application runs and its real asks come; each takes over a placeholder of its
task group. That takes two steps. First the placeholder is asked back and the real ask is parked, and
nothing is freed (G28, G29). When the resource manager confirms, both change places in one update of
all books (G31), and only then is the real allocation announced (G33).
"""

from __future__ import annotations

from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from quadriga.core import books, reservation, usage
from quadriga.core.events import happenings
from quadriga.core.far import look_ahead
from quadriga.core.kernel import Kernel
from quadriga.core.model.allocation import Allocation, next_uuid
from quadriga.core.model.task_group import TaskGroup
from quadriga.core.resources import Vector, covers, plus
from quadriga.fsm import ALLOCATION, APPLICATION, ASK
from quadriga.fsm import allocation as life
from quadriga.fsm import application as app_life
from quadriga.fsm import ask as ask_life
from quadriga.si import TerminationType
from quadriga.si.answers import UNANSWERED

if TYPE_CHECKING:
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask
    from quadriga.core.model.node import Node
    from quadriga.core.model.queue import Queue
    from quadriga.core.order.shapes import Need

__all__ = [
    "confirm_replacement",
    "gate",
    "may_start",
    "missing",
    "only_gathers",
    "placeholder_gone",
    "placeholder_landed",
    "release",
    "replace",
    "timed_out",
    "unplan",
    "waited_too_long",
]

#: looked up once: the enumeration's attributes are slow
_REPLACED: Final = TerminationType.PLACEHOLDER_REPLACED

#: so many placeholders there are not
_NEVER: Final = 1 << 62

RESERVATION_TIMEOUT = "ResourceReservationTimeout"


# -- the whole-gang gate (X16) ---------------------------------------------------------------------


def gate(app: Application) -> tuple[Queue, Vector, Vector] | None:
    """Where the whole gang does not fit at present: the queue, what it has left, what is asked.

    Configured quotas only; what started gangs below are still owed is not free (G8).
    """
    whole = app.placeholder_ask
    if whole is None or app.gang_started or app.queue.properties.gang_admission != "whole":
        return None
    for queue in app.queue.lineage[:-1]:
        for place, limit in queue.limits:
            left = limit - queue.allocated[place] - queue.promised[place]
            if place < len(whole) and whole[place] > max(0, left):
                room = tuple(
                    top - queue.allocated[at] - queue.promised[at] for at, top in queue.limits
                )
                return queue, room, whole
    return None


def may_start(app: Application) -> bool:
    """Whether the gang may place its first placeholder; if not, it waits at the queue in question."""
    closed = gate(app)
    if closed is None:
        return True
    closed[0].gated[app] = None
    app.gated = True
    app.partition.refresh(app)
    return False


# -- placeholders ----------------------------------------------------------------------------------


def task_group_of(app: Application, name: str, vector: Vector) -> TaskGroup:
    """The task group of this name, which its first placeholder ask makes known (G23)."""
    group = app.task_groups.get(name)
    if group is None:
        group = app.task_groups[name] = TaskGroup(name, vector)
    return group


def placeholder_landed(kernel: Kernel, placeholder: Allocation) -> None:
    """A placeholder was allocated (or recovered): the timer, the promise, and perhaps the start."""
    app = placeholder.ask.app
    app.task_groups[placeholder.ask.task_group].landed(placeholder)
    if not app.gang_started:
        app.gang_started = True
        if app.gated:  # recovered: the gate does not apply any more
            app.gated = False
            for queue in app.queue.lineage:
                queue.gated.pop(app, None)
            app.partition.refresh(app)
    if app.state in app_life.GATHERS and app not in app.queue.admitted:
        for queue in app.queue.lineage:
            queue.admitted[app] = None
        app.partition.admission_changed(app.queue)
        app.partition.refresh(app)
    if app.placeholder_timer is None and app.placeholder_timeout > 0:
        if app.state in app_life.BEFORE_RUNNING | app_life.GIVES_BACK_ON_TIMEOUT:  # X25
            app.placeholder_timer = kernel.timers.start(
                kernel.now, app.placeholder_timeout, "application.placeholder", app
            )
    books.owe(app)
    run_if_complete(kernel, app)
    app.partition.offer_replacements(app)


def only_gathers(app: Application) -> bool:
    """Whether nothing follows from one more placeholder, unless it completes the gang: the gang has
    started, nobody waits for what is promised to it, and no member waits for a placeholder."""
    return (
        app.gang_started
        and app in app.queue.admitted
        and (app.placeholder_timer is not None or not app.placeholder_timeout)
        and all(group.placeholder for group in app.groups.values())
        and not any(queue.gated for queue in app.queue.lineage)
    )


def missing(app: Application, need: Need) -> int:
    """How many more placeholders of this size it takes, at least, until the gang is complete."""
    assert app.placeholder_ask is not None
    sizes, have, most = dict(need), app.gathered, 0
    for at, value in enumerate(app.placeholder_ask):
        if (short := value - (have[at] if at < len(have) else 0)) > 0:
            if not sizes.get(at):
                return _NEVER
            most = max(most, -(-short // sizes[at]))
    return most


def run_if_complete(kernel: Kernel, app: Application) -> None:
    """G21: a gang stays Accepted until it has all its placeholders, and runs then (S5)."""
    if app.gang_started and not app.gang_over and app.state in app_life.GATHERS:
        if app.has_its_gang:
            kernel.fire(APPLICATION, app, app_life.RUN)


def placeholder_gone(kernel: Kernel, placeholder: Allocation, *, replaced: bool) -> None:
    """A placeholder left the books. If nobody replaced it, real asks go the normal way for it."""
    app = placeholder.ask.app
    group = app.task_groups[placeholder.ask.task_group]
    group.take(placeholder)
    group.allocated -= 1
    for timer in placeholder.timers:
        timer.cancel()
    if replaced:
        group.replaced += 1
    else:
        group.timed_out += 1
        app.lost = plus(app.lost, placeholder.vector)
    # while it still gathers, the timer is the only way out for a gang that lost them all (V7)
    gathers = app.state in app_life.BEFORE_RUNNING
    if not app.placeholders and not gathers and app.placeholder_timer is not None:
        app.placeholder_timer.cancel()
        app.placeholder_timer = None
    books.owe(app)
    app.partition.offer_replacements(app)


# -- replacement -----------------------------------------------------------------------------------


def replace(kernel: Kernel, ask: Ask) -> bool:
    """Find a placeholder that the ask can take over and ask for it back (G27, G28, X18).

    Placeholders too small for the ask are given up on the way (5.10). ``False``: nothing was found,
    and the ask has been set aside until something changes.
    """
    app = ask.app
    group = app.task_groups[ask.task_group]
    predicate = kernel.predicates.get(app.partition.rm.rm_id)
    first: Allocation | None = None
    too_small: list[Allocation] = []
    said: object = None
    for placeholder in group.available:
        if placeholder.vector != ask.vector and not covers(placeholder.vector, ask.vector):
            too_small.append(placeholder)
            continue
        first = first or placeholder
        said = predicate and predicate(ask.ask_key, placeholder.node.node_id, False)
        if said is None or said is UNANSWERED:
            break
    for each in too_small:
        release(kernel, each, life.TIMEOUT, "cancel placeholder: resource incompatible")
        if (log := app.partition.rm.events) is not None:
            happenings.placeholder_too_small(log, each, ask)
    if first is not None and said is None:
        _plan(kernel, ask, placeholder, placeholder.node)
        return True
    if said is UNANSWERED:
        look_ahead(predicate, ask, map(attrgetter("node"), group.available), allocate=False)
        app.partition.set_aside(ask)
        return False
    if first is not None and predicate is not None:
        others = _other_nodes(ask)
        for place, node in enumerate(others):
            said = predicate(ask.ask_key, node.node_id, True)
            if said is UNANSWERED:
                look_ahead(predicate, ask, islice(others, place + 1, None))
                break
            if said is None:
                _plan(kernel, ask, first, node)
                return True
    if ask.group is not None and first is not None:
        app.partition.set_aside(ask)
    else:
        app.partition.offer_replacements(app)
    return False


def _other_nodes(ask: Ask) -> list[Node]:
    assert ask.group is not None
    board = ask.app.partition.board
    shape = ask.group.shape
    board.watch(shape)
    return board.in_order(shape)


def _plan(kernel: Kernel, ask: Ask, placeholder: Allocation, node: Node) -> None:
    """Park the ask, link its future allocation with the placeholder, and ask for that one back."""
    app = ask.app
    real = Allocation(ask, next_uuid(ask), node, kernel.now)
    real.partner, placeholder.partner = placeholder, real
    ask.planned = real
    books.unexpect(ask, 1)
    reservation.cancel_all_of(app.partition, ask)
    app.partition.leave(ask)
    kernel.fire(ASK, ask, ask_life.PARK)
    if node is not placeholder.node:
        books.use_node(real)
        if (log := app.partition.rm.events) is not None:
            happenings.node_taken(log, real)
    text = f"replacing allocation with UUID: {real.uuid}"
    release(kernel, placeholder, life.REPLACEMENT, text)


def release(kernel: Kernel, allocation: Allocation, reason: str, text: str) -> None:
    """Ask the resource manager for an allocation back. One that is on its way back stays so (R5)."""
    if allocation.state != life.ALLOCATED:
        return
    allocation.reason = reason
    allocation.message = text
    if allocation.ask.placeholder:
        app = allocation.ask.app
        group = app.task_groups[allocation.ask.task_group]
        group.take(allocation)
        if not group.available:
            app.partition.offer_replacements(app)
    kernel.fire(ALLOCATION, allocation, life.RELEASE)


def unplan(kernel: Kernel, real: Allocation, *, again: bool) -> None:
    """Take a planned allocation back; its ask waits again, or is over with it (X18, X28)."""
    ask = real.ask
    placeholder = real.partner
    assert placeholder is not None
    if real.node is not placeholder.node:
        books.free_node(real)
        if (log := ask.app.partition.rm.events) is not None:
            happenings.node_released(log, real)
    placeholder.partner = real.partner = None
    ask.planned = None
    kernel.fire(ALLOCATION, real, life.DISCARD)
    if again:
        kernel.fire(ASK, ask, ask_life.UNPARK)
        books.expect(ask, 1)
        reservation.wait_again(kernel, ask)


def confirm_replacement(kernel: Kernel, placeholder: Allocation) -> Allocation | None:
    """The placeholder is gone: the real allocation takes its place (G30, G31, G33).

    Returns the real allocation, or ``None`` where nobody waits for the place any more (X28).
    """
    app = placeholder.ask.app
    real = placeholder.partner
    log = app.partition.rm.events
    kernel.fire(ALLOCATION, placeholder, life.CONFIRM)
    app.released += 1
    if real is None:
        books.free_node(placeholder)
        books.give_up(placeholder)
        usage.ended(placeholder, kernel.now)
        if log is not None:
            happenings.ended(log, placeholder, _REPLACED)
        placeholder_gone(kernel, placeholder, replaced=False)
        return None
    ask = real.ask
    placeholder.partner = real.partner = None
    ask.planned = None
    real.created = kernel.now
    if real.node is placeholder.node:
        books.swap_on_node(placeholder, real)
    else:
        books.free_node(placeholder)
    first = not app.allocations
    books.replace_in_books(placeholder, real)
    usage.ended(placeholder, kernel.now)
    kernel.fire(ALLOCATION, real, life.ALLOCATE)
    kernel.fire(ASK, ask, ask_life.ALLOCATE)
    ask.pending -= 1
    if ask.pending:
        reservation.wait_again(kernel, ask)
    else:
        del app.asks[ask.ask_key]
        app.partition.unhinted.pop(ask, None)
    app.task_groups[placeholder.ask.task_group].stood_in[real.uuid] = placeholder.created
    placeholder_gone(kernel, placeholder, replaced=True)
    if APPLICATION.allows(app.state, app_life.RESUMED):  # X28: it follows its allocations
        kernel.fire(APPLICATION, app, app_life.RESUMED)
    if app.state in app_life.RUNS_ON_ALLOCATION and not APPLICATION.idles(app.state, app_life.RUN):
        kernel.fire(APPLICATION, app, app_life.RUN, first_replacement=first)
    if log is not None:
        happenings.replaced(log, placeholder, real)
    kernel.outbox.allocated((real,))
    return real


# -- timeouts --------------------------------------------------------------------------------------


def timed_out(kernel: Kernel, app: Application) -> None:
    """The placeholder timer fired (G45). Before the start the gang fails, hard or softly; after it
    the placeholders that nobody needed are given back and nothing else happens (2.1). A gang that
    has lost all it had and still waits for more starts its timer anew with the next one."""
    app.placeholder_timer = None
    if app.state in app_life.BEFORE_RUNNING:
        if app.placeholders or not any(group.pending for group in app.task_groups.values()):
            fail_gang(kernel, app)
    elif app.state in app_life.GIVES_BACK_ON_TIMEOUT:
        for placeholder in list(app.placeholders.values()):
            text = "releasing allocated placeholders on placeholder timeout"
            release(kernel, placeholder, life.TIMEOUT, text)


def fail_gang(kernel: Kernel, app: Application) -> None:
    """Hard: the application is killed. Soft: it goes on as an ordinary one (I21)."""
    trigger = app_life.KILL if app.hard else app_life.RESUME
    if not app.hard:
        app.gang_over = True
    kernel.fire(APPLICATION, app, trigger, reason=RESERVATION_TIMEOUT)


def waited_too_long(kernel: Kernel, app: Application) -> None:
    """S3: the queue limits how long a gang may wait without a single placeholder."""
    if app.state in app_life.BEFORE_RUNNING and not app.gang_started:
        fail_gang(kernel, app)
