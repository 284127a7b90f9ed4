"""Explanation of a pending ask by its gang: what the gang waits for, and who keeps it from starting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadriga.base.times import spelled
from quadriga.core.explain.explanation import HOLDERS, Check, Holder
from quadriga.core.gangs.plan import could_start
from quadriga.core.model import predictions
from quadriga.core.model.gang import NODES, PREDICATES
from quadriga.core.model.queue import LeafQueue
from quadriga.core.steps import gang
from quadriga.core.topology.domains import fit, is_local, words_of
from quadriga.fsm.lifecycles import gang as gang_fsm

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask, AskGroup
    from quadriga.core.model.queue import Queue
    from quadriga.core.resources.vectors import Vector


def of_gang(ask: Ask, members: Sequence[AskGroup]) -> Iterator[Check | None]:
    """Yield the checks of the gang but for the nodes of its ``members``, if they are placed together; ``None`` after
    a step without one."""
    app = ask.app
    words = app.partition.registry.words
    if ask.planned is not None and ask.planned.partner is not None:
        placeholder = ask.planned.partner
        yield Check(
            "replacement",
            False,
            f"takes over placeholder {placeholder.uuid} on {placeholder.node.node_id}, "
            "whose release has yet to be confirmed",
            verdict=f"It takes over placeholder {placeholder.uuid} as soon as the resource manager "
            "has confirmed its release.",
            node=placeholder.node.node_id,
        )
        return
    if ask.planned is not None:
        yield Check(
            "replacement",
            False,
            f"its placeholder is gone, node {ask.planned.node.node_id} drains, and no other node has "
            "room: its quota is kept for it",
            until="another node has to have room for it",
        )
        return
    if app.gang.size is None and ask.kind.placeholder:
        return
    closed = gang.gate(app) if ask.kind.placeholder else None
    if members and not app.gang.has_all_asks:
        announced, arrived = words(app.gang.size or ()), words(app.pending)
        said = f"the gang waits for its asks: it has announced {announced}, and asked for {arrived} so far"
        yield Check(
            "gang",
            False,
            said,
            verdict=f"{said[:1].upper()}{said[1:]}.",
            until="the other asks of its gang have to arrive",
        )
    if ask.kind.placeholder:
        if closed is None:
            yield Check("gang", True, "the whole gang fits the quotas, or has started")
        else:
            yield from _of_gate(app, *closed)
    elif app.gang.size is not None and app.holding:
        have, need = words(app.allocated_placeholder), words(app.gang.size)
        yield Check(
            "gang",
            False,
            f"held until the gang is complete: has {have} of {need}",
            verdict=f"It is held until the gang has all its placeholders: it has {have} of {need}.",
        )
    elif (
        ask.kind.task_group in app.gang.task_groups
        and app.gang.task_groups[ask.kind.task_group].can_replace
    ):
        group = app.gang.task_groups[ask.kind.task_group]
        if ask.group is not None and ask.group.too_large_to_replace:
            yield Check(
                "gang",
                False,
                f"larger than every placeholder of task group {group.name}, and with one of them gone "
                "there is not enough room on a node and in the quotas: served like other asks",
            )
            return
        yield Check(
            "gang",
            bool(group.available),
            f"waits for a placeholder of task group {group.name}: {group.count} in all, "
            f"{group.pending} pending, {group.replaced} replaced, {group.timed_out} given up",
            verdict=f"It waits for a placeholder of task group {group.name} to take over.",
        )


def of_members(app: Application, members: list[AskGroup], now: int) -> Iterator[Check]:
    """Yield the check of the nodes for all members, which are placed in one step (Q2, Q8). Their number
    is that of now, not of the last attempt."""
    own, partition = app.gang, app.partition
    outstanding = sum(group.pending for group in members)
    kept = {each.node: None for each in app.reservations if each.node.reservation is each}
    if (planned := partition.node_index.planned) is not None and planned.app is app:
        kept.update(dict.fromkeys(planned.needs))
    ready = could_start(partition, members, [node for node in kept if node.open])
    holders: tuple[Holder, ...] = ()
    until = ""
    gathers = own.state in gang_fsm.KEEPS_NODES
    budget_left = partition.gather_budget.words(predictions.is_told(own))
    if own.waiting_since >= 0 and own.lacks in (NODES, "") and not (own.refused or gathers):
        left = own.may_gather_from - now
        when = f"in {spelled(left)}" if left > 0 else "when its turn comes"
        yield Check("planned start", True, f"its start may be planned {when}, {budget_left}")
    if ready < outstanding:
        said = f"{ready} of {outstanding} members of the gang could start now"
        said += ", and they are placed together or not at all"
        if own.local and is_local(members):
            short = fit(partition, members, own=[node for node in kept if node.open]).shortage
            said += (
                f": {text}" if short is not None and (text := words_of(partition, short)) else ""
            )
        plan = partition.node_index.planned
        if plan is not None and plan.app is app:
            said += f"; {plan.words(now)}, {budget_left}"
        elif plan is not None:
            said += (
                f"; the start of the gang {plan.app.app_id} is planned on {len(plan.needs)} nodes"
            )
            holders = (Holder(plan.app.app_id, amount=len(plan.needs)),)
        if own.refused:
            said += f"; it has waited long enough to keep nodes, {partition.gather_budget.words()}"
    elif own.lacks == PREDICATES:
        said = "the resource manager's predicates refused a member of the gang on every node"
        until = "the predicates have to accept a node for each member of its gang"
    else:
        yield Check("gang", True, f"nodes have room for all {outstanding} members of the gang")
        return
    yield Check(
        "gang",
        False,
        said,
        verdict=f"{said[:1].upper()}{said[1:]}.",
        holders=holders,
        held=len(holders),
        until=until,
    )


def _of_gate(app: Application, queue: Queue, free: Vector, whole: Vector) -> Iterator[Check | None]:
    """Yield a check for each resource type that the gang lacks in the queue that stops it.

    ``free`` is the room that the gate found there.
    """
    names, amount = app.partition.registry.names, app.partition.registry.amount
    for (index, limit), left in zip(queue.limits, free, strict=True):
        asked = whole[index] if index < len(whole) else 0
        used, kept = queue.allocated[index], queue.reserved_headroom[index]
        if not asked or asked <= max(0, left):
            continue
        name = names[index]
        holders = []
        for each in _applications(queue):
            yield None
            if each is not None and (owed := each.own_headroom(index)):
                holders.append(Holder(each.app_id, amount=owed))
        shown = tuple(holders[:HOLDERS])
        for_whom = "".join(
            f", {amount(name, each.amount)} kept for the gang {each.application}" for each in shown
        )
        if len(holders) > len(shown):
            rest = amount(name, kept - sum(each.amount for each in shown))
            for_whom += f", {rest} kept for {len(holders) - len(shown)} other gangs"
        size = amount(name, asked)
        room = f"queue {queue.path} has room for {amount(name, max(0, left))}"
        yield Check(
            "gang",
            False,
            f"the whole gang needs {size}, {room}: limit {amount(name, limit)}, "
            f"used {amount(name, used)}{for_whom}",
            subject=f"queue {queue.path}",
            type=name,
            numbers=(
                ("limit", limit),
                ("used", used),
                ("kept", kept),
                ("asked", asked),
                ("headroom", left),
            ),
            verdict=f"The whole gang has to fit before it starts: it needs {size}, and {room}.",
            holders=shown,
            held=len(holders),
        )


def _applications(queue: Queue) -> Iterator[Application | None]:
    """Yield the applications of the queue and all below, in order of queues and submission, and ``None`` for other
    queues."""
    for each in list(queue.walk()):
        yield None
        if isinstance(each, LeafQueue):
            yield from sorted(each.apps.values(), key=lambda app: app.seq)
