"""Limits of users and groups in the slow model (2.5): everything counted anew at every look."""

from collections.abc import Iterator

from quadriga.core.config.tree import LimitConfig
from tests.oracle.models.model_parts import App, Queue, Resources, narrower, plus, sum_of

WILDCARD = "*"


def bind(app: App) -> None:
    """Its group for life: leaf to root, the first with a limit there that the user is in (2.5)."""
    app.group = ""
    for queue in app.queue.lineage:
        names = [name for limit in queue.config.limits for name in limit.groups]
        app.group = next((name for name in names if name in app.groups), "")
        if not app.group and WILDCARD in names:
            app.group = WILDCARD
        if app.group:
            return


def room_for(app: App) -> Resources | None:
    """What the limits of its user and group leave, by type."""
    room: Resources | None = None
    for queue, limit, mates in _limits(app):
        if limit.max_resources:
            used = sum_of(mate.holds for mate in mates if queue in mate.queue.lineage)
            left = plus(limit.max_resources, used, -1)
            room = narrower(room, {name: left[name] for name in limit.max_resources})
    return room


def may_run(app: App) -> bool:
    """Whether it may get its first allocation, as far as limits of applications go."""
    if app.counted:
        return True
    for queue, limit, mates in _limits(app):
        running = sum(mate.counted and queue in mate.queue.lineage for mate in mates)
        if limit.max_applications and running + 1 > limit.max_applications:
            return False
    return True


def _limits(app: App) -> Iterator[tuple[Queue, LimitConfig, list[App]]]:
    """Each limit on its path, with the queue that it is for and all who share it."""
    everybody = app.queue.lineage[-1].all_apps
    of_user = [each for each in everybody if each.user == app.user]
    of_group = [each for each in everybody if app.group and each.group == app.group]
    for queue in app.queue.lineage:
        users = {name: limit for limit in queue.config.limits for name in limit.users}
        limit = users.get(app.user) or users.get(WILDCARD)
        if limit is not None:
            yield queue, limit, of_user
        groups = {name: limit for limit in queue.config.limits for name in limit.groups}
        if app.group in groups:
            yield queue, groups[app.group], of_group
