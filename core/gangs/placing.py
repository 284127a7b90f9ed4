"""A plan of a gang is carried out: its members get their nodes, in the order of the asks (G4, Q2).

More follows from the first placeholder of a gang, from the one that completes it, from the first members
that run, and from the last ask of a group. These are allocated one by one. All others go together, as in
a batch.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from typing import TYPE_CHECKING

from quadriga.core.model import accounting
from quadriga.core.resources.vectors import covers
from quadriga.core.runtime.kernel import Kernel
from quadriga.core.steps import quota_plans
from quadriga.core.steps.allocating import allocate, allocate_all

if TYPE_CHECKING:
    from quadriga.core.gangs.plan import Place, Plan
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import AskGroup


def place_members(kernel: Kernel, app: Application, plan: Plan) -> None:
    """Allocate every member to its node."""
    places = plan.places
    if not plan.charged:
        for ask, node in places:
            assert ask.group is not None
            accounting.charge_planned(node, ask.group.shape, 1)
    at = 0
    for alone in sorted(_alone(app, places)):
        _place_together(kernel, app, places[at:alone])
        allocate(kernel, *places[alone], node_charged=True)
        at = alone + 1
    _place_together(kernel, app, places[at:])


def _alone(app: Application, places: list[Place]) -> set[int]:
    """The indices of the members from which more follows than their allocation."""
    groups = app.gang.members
    # after a Soft timeout the application starts with its first member and runs with the second one
    alone = {0, min(1, len(places) - 1) if app.gang.over else _completing(app, groups, places)}
    for group in groups:
        last = next(reversed(group.asks))
        alone.add(bisect_right(places, last, key=_arrival) - 1)
    if app.reservations:
        alone.update([at for at, (ask, _) in enumerate(places) if ask.reservations])
    return alone


def _arrival(place: Place) -> int:
    return place[0].seq


def _completing(app: Application, groups: list[AskGroup], places: list[Place]) -> int:
    """The index of the placeholder that completes the gang (G21); 0 if none of them does."""
    size = app.gang.size or ()
    have = list(app.gathered)
    have.extend([0] * (len(app.partition.registry) - len(have)))
    for group in groups:
        pending = group.pending
        for at, value in group.shape.need:
            have[at] += value * pending
    for index in reversed(range(len(places))):
        if not covers(have, size):
            return 0
        ask, _ = places[index]
        assert ask.group is not None
        for at, value in ask.group.shape.need:
            have[at] -= value
        if not covers(have, size):
            return index
    return 0


def _place_together(kernel: Kernel, app: Application, places: list[Place]) -> None:
    """Allocate members from which nothing else follows."""
    if not places:
        return
    partition, task_groups = app.partition, app.gang.task_groups
    for group, number in Counter([ask.group for ask, _ in places]).items():
        assert group is not None
        accounting.charge_above(group, number)
        if partition.waiting.quota_plans:
            quota_plans.took(app, group.shape, number)
    placements = [
        (task_groups[ask.kind.task_group] if ask.kind.placeholder else None, ask, node)
        for ask, node in places
    ]
    for ask in allocate_all(kernel, partition, placements):
        own = ask.group
        assert own is not None
        own.remove(ask)
        partition.hints.asks.pop(ask, None)
        del app.asks[ask.ask_key]
    if not app.gang.over:
        accounting.reserve_headroom(app)
        partition.waiting.offer_replacements(app)
