"""The usage and limits of users and groups, as data (2.5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from quadriga.core.runtime.stepwise import Steps
from quadriga.core.steps import limits
from quadriga.core.views.quantities import amounts, sorted_amounts

if TYPE_CHECKING:
    from quadriga.core.model.account import Holding
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.queue import Queue
    from quadriga.core.views.objects import GroupObject, QueueUsage, UserObject

    Limited = Mapping[str, Iterable[Queue]] | None

T = TypeVar("T")


def users_in_steps(partition: Partition) -> Steps[list[UserObject]]:
    """Every user with an application or a limit of their own, by name."""
    return (yield from _gather(partition, user_in_steps))


def _gather(
    partition: Partition, look: Callable[..., Steps[T]], *, groups: bool = False
) -> Steps[list[T]]:
    found = []
    limited = yield from limits.limited_in_steps(partition, groups=groups)
    names = yield from limits.names_in_steps(partition, limited, groups=groups)
    for name in names:
        with suppress(KeyError):  # it has gone meanwhile
            found.append((yield from look(partition, name, limited)))
        yield
    return found


def user_in_steps(partition: Partition, name: str, limited: Limited = None) -> Steps[UserObject]:
    """One user. Raises ``KeyError`` for an unknown one. ``limited`` are the queues with limits, if known."""
    holding = yield from limits.holding_in_steps(partition, name, limited=limited)
    account = partition.users.get(name)
    return {
        "userName": name,
        "groups": (yield from limits.groups_in_steps(account)) if account is not None else {},
        "queues": (yield from _usage(partition, holding)),
    }


def groups_in_steps(partition: Partition) -> Steps[list[GroupObject]]:
    """Every group with an application or a limit, by name; ``*`` stands for all others."""
    return (yield from _gather(partition, group_in_steps, groups=True))


def group_in_steps(partition: Partition, name: str, limited: Limited = None) -> Steps[GroupObject]:
    """One group, as ``user_in_steps``."""
    holding = yield from limits.holding_in_steps(partition, name, group=True, limited=limited)
    return {
        "groupName": name,
        "applications": list(holding.running),
        "queues": (yield from _usage(partition, holding)),
    }


def _usage(partition: Partition, holding: Holding) -> Steps[QueueUsage]:
    yield
    children = []
    for child in holding.children:
        children.append((yield from _usage(partition, child)))
    found: QueueUsage = {
        "queuePath": holding.path,
        "resourceUsage": amounts(partition, holding.usage),
        "runningApplications": list(holding.running),
        "children": children,
    }
    if holding.limit is not None:
        if holding.limit.max is not None:
            found["maxResources"] = sorted_amounts(holding.limit.max)
        if holding.limit.applications:
            found["maxApplications"] = holding.limit.applications
    return found
