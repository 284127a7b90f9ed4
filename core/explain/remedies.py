"""What would make an ask start: the changes that are needed, each with the amount that is enough (Q15).

A change is enough if it makes room for the ask, or for all missing members of its gang, and for the rivals
that may be served before it (``rivals``). If one change is needed, it is the remedy; if several are needed,
each alone is not. No change is named that depends on what is not known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from quadriga.core.explain.node_remedies import node_change
from quadriga.core.explain.rivals import (
    NODES,
    Rivals,
    limit_key,
    needs_a_slot,
    quota_key,
    rivals_in_steps,
    slots_key,
)
from quadriga.core.resources.shapes import needed_by
from quadriga.core.steps.gang import gate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from quadriga.core.explain.free_nodes import FreeNodes
    from quadriga.core.explain.rivals import Key
    from quadriga.core.model.account import Ledger
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask, AskGroup
    from quadriga.core.model.node import Node
    from quadriga.core.resources.shapes import Shape
    from quadriga.core.runtime.stepwise import Steps


class Change(NamedTuple):
    """A change, as an order to the reader, and the check that it makes pass: what that is about, and whose
    quota or limit it is."""

    about: str
    subject: str
    text: str
    key: Key


class Changes(NamedTuple):
    """The changes that are enough together, whatever comes before the ask, and the number of those that
    the ask itself needs. ``certain`` is false if too many asks wait to say that these are enough. ``others``
    says for whom the changes have to be enough besides; empty if for nobody."""

    all: list[Change]
    own: int
    certain: bool = True
    others: str = ""


def changes_for(
    now: int,
    ask: Ask,
    members: Sequence[AskGroup],
    shape: Shape,
    nodes: FreeNodes | None,
    accepts: Callable[[Node], bool],
    condition: str,
) -> Steps[Changes]:
    """The changes that make the ask start. ``members`` are the groups that are placed together, if the ask
    is one of them. ``nodes`` are those that it may use unless it requires one; ``accepts`` says whether the
    predicates may accept a node, and ``condition`` what they demand of a new one."""
    rivals = yield from rivals_in_steps(ask, members)
    of_nodes = (nodes, accepts, condition)
    alone = found = yield from _changes(now, ask, members, shape, of_nodes, Rivals(()))
    if not rivals.complete:
        return Changes(alone, len(alone), False)
    able, changed = Rivals(()), {each.key for each in alone}
    while True:  # a further change lets more of them start
        more = rivals.if_changed(changed)
        if len(more.all) == len(able.all):
            break
        able = more
        found = yield from _changes(now, ask, members, shape, of_nodes, able)
        changed.update(each.key for each in found)
    return Changes(found, len(alone), others="" if found == alone else able.text)


def _changes(
    now: int,
    ask: Ask,
    members: Sequence[AskGroup],
    shape: Shape,
    of_nodes: tuple[FreeNodes | None, Callable[[Node], bool], str],
    rivals: Rivals,
) -> Steps[list[Change]]:
    parts = [(group.shape, group.pending) for group in members] or [(shape, 1)]
    demand = needed_by(parts)
    found = [*_slots(ask.app, rivals), *_quotas(ask, members, demand, rivals)]
    yield
    text = yield from node_change(now, ask, parts, list(members), demand, rivals, *of_nodes)
    if text is not None:
        found.append(Change("nodes", "", text, NODES))
    return found


def _slots(app: Application, rivals: Rivals) -> Iterator[Change]:
    """Changes of limits on the number of applications."""
    if not needs_a_slot(app):
        return
    for queue in app.queue.lineage:
        if queue.max_applications:
            most = queue.running + len(queue.admitted) + rivals.entering(queue) + 1
            if most > queue.max_applications:
                text = f"raise maxapplications of {queue.path} to {most}"
                yield Change("maxapplications", f"queue {queue.path}", text, slots_key(queue))
    if app.counted:
        return
    for ledger in app.limiting:
        if ledger.max_applications:
            most = len(ledger.running) + rivals.starting(ledger) + 1
            if most > ledger.max_applications:
                text = f"raise maxapplications of {whose(ledger)} to {most}"
                yield Change(
                    "limit of applications", whose(ledger), text, limit_key(ledger, "slots")
                )


def _quotas(
    ask: Ask, members: Sequence[AskGroup], demand: dict[int, int], rivals: Rivals
) -> Iterator[Change]:
    """Changes of the max of queues, but not of root, and of limits on resources."""
    app, partition = ask.app, ask.app.partition
    types = len(partition.registry)
    closed = gate(app) if ask.kind.placeholder and not members else None
    whole = dict(enumerate(closed[2])) if closed is not None else {}
    for ledger in app.limiting:
        if ledger.resources:
            first = rivals.charging(ledger, types)
            lacks = [0] * types
            for at, limit in ledger.resources:
                if demand.get(at):
                    lacks[at] = max(0, demand[at] + first[at] - (limit - ledger.usage[at]))
            if any(lacks):
                text = f"raise the limit of {whose(ledger)} by {partition.registry.words(lacks)}"
                yield Change("limit", whose(ledger), text, limit_key(ledger))
    for queue in app.queue.lineage[:-1]:
        if queue.limits:
            first = rivals.below(queue, types)
            lacks = [0] * types
            for at, limit in queue.limits:
                left = limit - queue.allocated[at]
                kept = queue.reserved_headroom[at]
                if members:
                    kept -= app.own_headroom(at)
                    left -= kept
                if demand.get(at):
                    lacks[at] = max(0, demand[at] + first[at] - left)
                if whole.get(at):
                    lacks[at] = max(lacks[at], whole[at] + first[at] - (left - kept))
            if any(lacks):
                text = f"raise the max of {queue.path} by {partition.registry.words(lacks)}"
                yield Change("quota", f"queue {queue.path}", text, quota_key(queue))


def whose(ledger: Ledger) -> str:
    """Return ``user joe in root.a``, with a note if the limit is a wildcard."""
    shared = " (limit *)" if ledger.wildcard and ledger.account.name != "*" else ""
    return f"{ledger.account.kind} {ledger.account.name} in {ledger.queue.path}{shared}"
