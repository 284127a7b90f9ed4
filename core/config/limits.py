"""Limits of users and groups: read and checked (2.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from quadriga.core.config.acl import WILDCARD
from quadriga.core.config.expression import GROUP_RULE, USER_RULE, is_group_name, is_user_name
from quadriga.core.config.location import Location
from quadriga.core.config.quantities import Amounts, excess, read_amounts, tighter, unless_zero
from quadriga.core.config.tree import LimitConfig

UserOrGroup = tuple[str, str]
"""``("user", "joe")``, ``("group", "*")``."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The tightest limits of a user or group in a queue and all queues above it."""

    resources: Amounts | None = None
    applications: int = 0


Bounds = dict[UserOrGroup, Bound]
_UNBOUND: Final = Bound()


def read_limits(location: Location) -> tuple[LimitConfig, ...]:
    """Return the limits at `location`, each checked by itself and against the others."""
    seen: set[UserOrGroup] = set()
    entries = location.items()
    limits = tuple(_read_limit(entry, seen) for entry in entries)
    if {name for kind, name in seen if kind == "group"} == {WILDCARD}:
        # It would limit all users together, as the queue's own quota does.
        for entry, limit in zip(entries, limits, strict=True):
            if WILDCARD in limit.groups:
                entry.at("groups").problem(
                    "the wildcard is the only group with a limit; name one group at least"
                )
    return limits


def _read_limit(location: Location, seen: set[UserOrGroup]) -> LimitConfig:
    fields = location.fields("limit", "users", "groups", "maxresources", "maxapplications")
    resources = read_amounts(fields["maxresources"])
    applications = fields["maxapplications"].count()
    users = _read_names(fields["users"], "user", is_user_name, USER_RULE, seen)
    groups = _read_names(fields["groups"], "group", is_group_name, GROUP_RULE, seen)
    if not users and not groups:
        location.problem("empty user and group lists; a limit needs at least one name")
    has_wrong_type = (
        fields["maxresources"].has_wrong_type or fields["maxapplications"].has_wrong_type
    )
    if resources and not any(resources.values()):
        fields["maxresources"].problem("all amounts are zero; one must be more")
    elif not fields["maxresources"].entries() and not applications and not has_wrong_type:
        location.problem("neither maxresources nor maxapplications is set")
    label = fields["limit"].text()
    return LimitConfig(label, users, groups, unless_zero(resources), applications)


def _read_names(
    location: Location,
    kind: str,
    valid: Callable[[str], bool],
    rule: str,
    seen: set[UserOrGroup],
) -> tuple[str, ...]:
    """Return the names at `location`. A name must be valid, unique and not after the wildcard."""
    names = []
    for entry in location.items():
        name = entry.text()
        if name != WILDCARD and not valid(name):
            entry.problem(f"{name!r} is not a valid {kind} name: {rule}")
        elif (kind, name) in seen:
            entry.problem(f"the {kind} {name!r} has a limit in this queue already")
        elif (kind, WILDCARD) in seen:
            entry.problem(f"the {kind} {name!r} comes after the wildcard, which must be the last")
        seen.add((kind, name))
        names.append(name)
    return tuple(names)


def check_limits(
    location: Location,
    limits: tuple[LimitConfig, ...],
    queue_max: Amounts | None,
    queue_applications: int,
    above: Bounds,
) -> Bounds:
    """Compare a queue's limits with its quota and with the limits `above` it.

    Returns the bounds for the queues below. The wildcard's limit applies to a user or group
    that has no limit of its own in the queue. Values that a limit does not set are not
    compared.
    """
    if not limits:
        return above
    own: Bounds = {}
    for entry, limit in zip(location.items(), limits, strict=True):
        amounts, count = entry.at("maxresources"), entry.at("maxapplications")
        if more := excess(limit.max_resources, queue_max):
            amounts.problem(f"larger than the queue's maximum: {more}")
        if queue_applications and limit.max_applications > queue_applications:
            count.problem(
                f"larger than the queue's maxapplications: "
                f"{limit.max_applications} > {queue_applications}"
            )
        for key in _users_and_groups(limit):
            own[key] = Bound(limit.max_resources, limit.max_applications)
            bound, name = _bound_of(above, key), f"{key[0]} {key[1]!r}"
            if more := excess(limit.max_resources, bound.resources):
                amounts.problem(f"larger than the limit of {name} in a queue above: {more}")
            if bound.applications and limit.max_applications > bound.applications:
                count.problem(
                    f"larger than the limit of {name} in a queue above: "
                    f"{limit.max_applications} > {bound.applications}"
                )
    return {
        key: _tighter_bound(_bound_of(above, key), _bound_of(own, key)) for key in {**above, **own}
    }


def _users_and_groups(limit: LimitConfig) -> Iterator[UserOrGroup]:
    yield from (("user", name) for name in limit.users)
    yield from (("group", name) for name in limit.groups)


def _bound_of(bounds: Bounds, key: UserOrGroup) -> Bound:
    return bounds.get(key) or bounds.get((key[0], WILDCARD), _UNBOUND)


def _tighter_bound(one: Bound, other: Bound) -> Bound:
    counts = [bound.applications for bound in (one, other) if bound.applications]
    return Bound(tighter(one.resources, other.resources), min(counts, default=0))
