"""Running gangs that lack members, because they lost placeholders (Q6).

Such a gang keeps what it holds and waits for the rest, so two of them can wait for each other. Nothing
that ends by itself helps them then. When the first of them has waited for as long as a gang waits before
it gathers, others of them are preempted, the last one first, if the first has its members then. Each is
preempted as a whole, because a part of a gang is of no use (Q5).
"""

from __future__ import annotations

from functools import cmp_to_key
from typing import TYPE_CHECKING, Final

from quadriga.base.times import SECOND
from quadriga.core.preemption import for_gang
from quadriga.core.preemption.candidates import of_application
from quadriga.core.resources.vectors import covers
from quadriga.core.steps import reservation
from quadriga.core.steps.releasing import evict
from quadriga.fsm.lifecycles import application as application_fsm

if TYPE_CHECKING:
    from collections.abc import Callable

    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import AskGroup
    from quadriga.core.model.partition import Partition
    from quadriga.core.preemption.candidates import Candidate
    from quadriga.core.runtime.kernel import Kernel

#: the timer after which other gangs may be preempted, and its shortest time (ns)
_TIMER: Final = "application.short_of_members"
_LEAST: Final = 60 * SECOND


def note(kernel: Kernel, app: Application) -> None:
    """A running gang has lost a placeholder that no member had replaced."""
    own, waiting = app.gang, app.partition.waiting
    waiting.short_of_members[app] = None
    for timer in own.timers:
        if timer.name == _TIMER:
            timer.cancel()
    own.timers = tuple([timer for timer in own.timers if timer.name != _TIMER])
    _start(kernel, app)


def _start(kernel: Kernel, app: Application) -> None:
    wait = max(_LEAST, app.queue.properties.gang_gather_after)
    timer = kernel.timers.start(kernel.now, wait, _TIMER, app)
    app.gang.timers = (*app.gang.timers, timer)


def _is_short(app: Application) -> bool:
    return (
        app.has_asks
        and app.state in application_fsm.COUNTED
        and not covers(app.allocated, app.gang.size or ())
    )


def is_any_short(partition: Partition) -> bool:
    """Whether a running gang lacks members."""
    short = partition.waiting.short_of_members
    for app in list(short):
        if not _is_short(app):
            del short[app]
    return bool(short)


def help_first(
    kernel: Kernel, app: Application, precedes: Callable[[Application, Application], bool]
) -> None:
    """The gang has lacked members for long: if it is the first one, preempt others that lack some."""
    partition = app.partition
    if not is_any_short(partition) or app not in partition.waiting.short_of_members:
        return
    own = app.gang
    own.timers = tuple([timer for timer in own.timers if timer.name != _TIMER])
    _start(kernel, app)  # where nothing can be done now, it is tried again

    def compare(one: Application, other: Application) -> int:
        return -1 if precedes(one, other) else 1

    short = sorted(partition.waiting.short_of_members, key=cmp_to_key(compare))
    short.sort(key=_priority, reverse=True)
    members = _waiting_members(app)
    if short[0] is not app or not members or not partition.config.preemption_enabled:
        return
    victims: list[Candidate] = []
    for other in reversed(short[1:]):
        if other.gang.elastic:
            continue
        victims += _all_of(other, _priority(app))
        if victims and _preempt(kernel, app, members, victims):
            return


def _priority(app: Application) -> int:
    """The highest priority of its asks."""
    return max((group.priority for group in app.groups.values()), default=0)


def _waiting_members(app: Application) -> list[AskGroup]:
    """The groups of its asks that wait for a node, not for a placeholder."""
    return [each for each in app.groups.values() if each.demand_now() & each.shape.bits]


def _all_of(app: Application, priority: int) -> list[Candidate]:
    """All allocations of the gang, or none if some of them may not be preempted for this priority."""
    found = list(of_application(app))
    held = len(app.allocations) + len(app.placeholders)
    if len(found) < held or any(c.allocation.ask.priority > priority for c in found):
        return []
    return found


def _preempt(
    kernel: Kernel, app: Application, members: list[AskGroup], victims: list[Candidate]
) -> bool:
    found = for_gang.room_without(kernel, app, members, victims)
    if isinstance(found, str):
        return False
    for each in found.evictions:
        evict(kernel, each)
    for node, ask in found.nodes.items():
        if node.reservation is None and ask.reservations < ask.pending:
            reservation.make(kernel, ask, node, bounded=False)
    return True
