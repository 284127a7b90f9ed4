"""Back-off: an application with too many unschedulable asks is skipped for a time (2.2.2, +1.8).

A queue may set the number of unschedulable asks of an application that starts a back-off. They are
counted before the application's next ask is tried, and at the end of a round that decided nothing. The
application is not tried again until its deadline, whatever becomes free.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import AskGroup
    from quadriga.core.model.partition import Partition
    from quadriga.core.runtime.kernel import Kernel


def start_before_group(kernel: Kernel, app: Application, group: AskGroup) -> bool:
    """Start a back-off if too many asks before this group are unschedulable; return True if so."""
    enough = app.queue.properties.backoff
    if not enough:
        return False
    key = group.rank or group.make_rank()
    before = (g for g in app.groups.values() if (g.rank or g.make_rank()) < key)
    return _start_if(kernel, app, _unschedulable(before) >= enough)


def start_after_round(kernel: Kernel, partition: Partition) -> None:
    """Start back-offs after a round that decided nothing."""
    for leaf in partition.leaves():
        enough = leaf.properties.backoff
        if enough:
            for app in list(leaf.apps.values()):
                if not app.blocked:
                    _start_if(kernel, app, _unschedulable(app.groups.values()) >= enough)


def end(kernel: Kernel, app: Application) -> None:
    """End the back-off of an application at its deadline."""
    app.backoff_until = 0
    if app.partition.applications.get(app.app_id) is app:
        app.partition.waiting.refresh(app)


def _unschedulable(groups: Iterable[AskGroup]) -> int:
    """Return the number of asks in these groups that wait for a node."""
    return sum(len(group.asks) for group in groups if group.demand & group.shape.allocate)


def _start_if(kernel: Kernel, app: Application, enough: bool) -> bool:
    if enough:
        delay = app.queue.properties.backoff_delay
        app.backoff_until = kernel.now + delay
        kernel.timers.start(kernel.now, delay, "application.backoff", app)
        app.partition.waiting.refresh(app)
    return enough
