"""Limits of users and groups: reading and checking them (2.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from quadriga.core.config.acl import WILDCARD
from quadriga.core.config.amounts import Amounts, excess, read_amounts, tighter, unless_zero
from quadriga.core.config.names import GROUP_RULE, USER_RULE, is_group_name, is_user_name
from quadriga.core.config.place import Place
from quadriga.core.config.tree import LimitConfig

__all__ = ["Bounds", "check_limits", "read_limits"]

Named = tuple[str, str]
"""``("user", "joe")``, ``("group", "*")``."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The tightest limits that someone has in a queue and above."""

    resources: Amounts | None = None
    applications: int = 0


Bounds = dict[Named, Bound]
_UNBOUND: Final = Bound()


def read_limits(place: Place) -> tuple[LimitConfig, ...]:
    """The limits written at `place`, each checked by itself and against the others."""
    seen: set[Named] = set()
    entries = place.items()
    limits = tuple(_read_limit(entry, seen) for entry in entries)
    if {name for kind, name in seen if kind == "group"} == {WILDCARD}:
        # It would limit all users together, which is what the queue's own quota does.
        for entry, limit in zip(entries, limits, strict=True):
            if WILDCARD in limit.groups:
                entry.at("groups").problem(
                    "the wildcard is the only group with a limit; name one group at least"
                )
    return limits


def _read_limit(place: Place, seen: set[Named]) -> LimitConfig:
    fields = place.fields("limit", "users", "groups", "maxresources", "maxapplications")
    resources = read_amounts(fields["maxresources"])
    applications = fields["maxapplications"].count()
    users = _read_names(fields["users"], "user", is_user_name, USER_RULE, seen)
    groups = _read_names(fields["groups"], "group", is_group_name, GROUP_RULE, seen)
    if not users and not groups:
        place.problem("empty user and group lists; a limit is for someone")
    misshapen = fields["maxresources"].misshapen or fields["maxapplications"].misshapen
    if resources and not any(resources.values()):
        fields["maxresources"].problem("all amounts are zero; one must be more")
    elif not fields["maxresources"].entries() and not applications and not misshapen:
        place.problem("neither maxresources nor maxapplications is set")
    label = fields["limit"].text()
    return LimitConfig(label, users, groups, unless_zero(resources), applications)


def _read_names(
    place: Place,
    kind: str,
    valid: Callable[[str], bool],
    rule: str,
    seen: set[Named],
) -> tuple[str, ...]:
    """The names at `place`: valid, new, and none after the wildcard."""
    names = []
    for entry in place.items():
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
    place: Place,
    limits: tuple[LimitConfig, ...],
    queue_max: Amounts | None,
    queue_applications: int,
    above: Bounds,
) -> Bounds:
    """Compare a queue's limits with its quota and with the limits `above` it.

    Returns the bounds for the queues below. Whoever is not named in a queue has
    its wildcard's limit there. What a limit does not set is not compared.
    """
    if not limits:
        return above
    own: Bounds = {}
    for entry, limit in zip(place.items(), limits, strict=True):
        amounts, count = entry.at("maxresources"), entry.at("maxapplications")
        if more := excess(limit.max_resources, queue_max):
            amounts.problem(f"larger than the queue's maximum: {more}")
        if queue_applications and limit.max_applications > queue_applications:
            count.problem(
                f"larger than the queue's maxapplications: "
                f"{limit.max_applications} > {queue_applications}"
            )
        for named in _all_named(limit):
            own[named] = Bound(limit.max_resources, limit.max_applications)
            bound, who = _bound_of(above, named), f"{named[0]} {named[1]!r}"
            if more := excess(limit.max_resources, bound.resources):
                amounts.problem(f"larger than the limit of {who} in a queue above: {more}")
            if bound.applications and limit.max_applications > bound.applications:
                count.problem(
                    f"larger than the limit of {who} in a queue above: "
                    f"{limit.max_applications} > {bound.applications}"
                )
    return {
        named: _tighter_bound(_bound_of(above, named), _bound_of(own, named))
        for named in {**above, **own}
    }


def _all_named(limit: LimitConfig) -> Iterator[Named]:
    yield from (("user", name) for name in limit.users)
    yield from (("group", name) for name in limit.groups)


def _bound_of(bounds: Bounds, named: Named) -> Bound:
    return bounds.get(named) or bounds.get((named[0], WILDCARD), _UNBOUND)


def _tighter_bound(one: Bound, other: Bound) -> Bound:
    counts = [bound.applications for bound in (one, other) if bound.applications]
    return Bound(tighter(one.resources, other.resources), min(counts, default=0))
