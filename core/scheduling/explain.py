"""Explanation of a pending ask: the checks of a decision, in order, with their numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from quadriga.core.model.account import WILDCARD
from quadriga.core.model.gang import ASKS, NODES, PREDICATES, QUOTA
from quadriga.core.model.queue import LeafQueue
from quadriga.core.model.shapes import Shape
from quadriga.core.preemption.story import awaits_victims, story_of, waits_with_its_gang
from quadriga.core.runtime.kernel import Kernel
from quadriga.core.scheduling import gang
from quadriga.core.scheduling.explain_nodes import of_nodes
from quadriga.core.scheduling.explanation import HOLDERS, Check, Explanation, Holder
from quadriga.fsm import APPLICATION, RESOURCE_MANAGER
from quadriga.fsm import application as application_fsm
from quadriga.fsm import resource_manager as resource_manager_fsm
from quadriga.fsm.table import SECOND

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quadriga.core.model.account import Ledger
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask
    from quadriga.core.model.queue import Queue
    from quadriga.core.model.resources import Totals, Vector

__all__ = ["Check", "Explanation", "Holder", "explain"]

#: the checks that preemption can help
_PREEMPTION_HELPS: Final = ("quota", "nodes")


def explain(kernel: Kernel, ask: Ask, *, predicates: bool = True) -> Explanation:
    """Run every check of a decision for this ask, including those after one that fails.

    Without ``predicates`` the resource manager is not asked about each node, which may take long; its
    answers of the last round are used instead.
    """
    shape = Shape(0, ask.kind.requires)
    checks = [
        *_of_application(kernel, ask),
        *_of_gang(ask),
        *_of_limits(ask),
        *_of_queues(ask),
    ]
    checks.extend(of_nodes(kernel, ask, shape, predicates))
    # an ask that lacks neither quota nor a node needs no preemption
    lacks = any(not each.passed and each.about in _PREEMPTION_HELPS for each in checks)
    lacks = lacks or (waits_with_its_gang(ask) and ask.app.gang.lacks in (NODES, QUOTA))
    passed, story, remedy = story_of(kernel, ask)
    checks.append(Check("preemption", passed or not lacks, story, remedy))
    # a check that passes needs no remedy
    told = tuple(replace(c, remedy="", verdict="") if c.passed else c for c in checks)
    return Explanation(ask.key, told, _verdict(ask, told))


def _verdict(ask: Ask, checks: tuple[Check, ...]) -> str:
    """Return what has to happen first.

    A node that is large enough is named before everything else, then a preemption under way, then the
    first check that fails.
    """
    failing = [each for each in checks if not each.passed]
    if not failing:
        return "Nothing is in its way: it gets its place in the next round."
    never = next((each for each in failing if each.about == "node sizes"), None)
    if never is None and awaits_victims(ask):
        return "Others have been preempted for it: it gets its place when they are gone."
    first = never or failing[0]
    return first.verdict or f"{first.text[:1].upper()}{first.text[1:]}."


def _of_application(kernel: Kernel, ask: Ask) -> Iterator[Check]:
    app = ask.app
    rm = app.partition.rm
    connected = RESOURCE_MANAGER.allows(rm.state, resource_manager_fsm.DISCONNECT)
    yield Check(
        "resource manager",
        connected,
        f"resource manager {rm.rm_id} is {rm.state}",
        verdict=f"Resource manager {rm.rm_id} is {rm.state}: nothing is allocated for it.",
    )
    asked = f" ({app.queue_asked!r} was asked for)" if app.queue_asked else ""
    yield Check("placement", True, f"queue {app.queue.path} by {app.placed_by}{asked}")
    served = app.state in application_fsm.SERVED
    yield Check(
        "application",
        served,
        f"application {app.app_id} is {app.state}",
        verdict=f"Application {app.app_id} is {app.state} and gets nothing in that state.",
    )
    if app.backoff_until:
        left = (app.backoff_until - kernel.now) / SECOND
        yield Check(
            "backoff",
            False,
            f"too many asks found no place: left alone for {left:g} s",
            verdict=f"Too many asks of its application found no place: none is tried for {left:g} s.",
        )
    leaf = app.queue
    if (
        isinstance(leaf, LeafQueue)
        and leaf.stateaware
        and app.state in application_fsm.STATEAWARE_TURN
    ):
        first = leaf.turn if leaf.turn is not None else app
        yield Check(
            "turn",
            first is app,
            f"stateaware queue {leaf.path} serves {first.app_id} before others start (2.9)",
            verdict=f"Queue {leaf.path} lets applications start one by one, and serves "
            f"{first.app_id} now.",
            holders=(Holder(first.app_id),),
            held=1,
        )
    if (
        APPLICATION.allows(app.state, application_fsm.RUN)
        and app.state not in application_fsm.COUNTED
    ):
        if app not in leaf.admitted:
            for queue in leaf.lineage:
                yield Check(
                    "maxapplications",
                    queue.admits(),
                    f"queue {queue.path} runs {queue.running + len(queue.admitted)} of "
                    f"{queue.max_applications or 'unlimited'} applications",
                    f"raise maxapplications of {queue.path}",
                )
        if not app.counted:
            for ledger in app.limiting:
                if ledger.max_applications:
                    yield Check(
                        "limit of applications",
                        ledger.admits(),
                        f"{_whose(ledger)} runs {len(ledger.running)} of "
                        f"{ledger.max_applications} applications",
                        f"raise maxapplications of {_whose(ledger)}",
                    )


def _whose(ledger: Ledger) -> str:
    """Return ``user joe in root.a``, with a note if the limit is a wildcard."""
    shared = " (limit *)" if ledger.wildcard and ledger.account.name != WILDCARD else ""
    return f"{ledger.account.kind} {ledger.account.name} in {ledger.queue.path}{shared}"


def _of_gang(ask: Ask) -> Iterator[Check]:
    app = ask.app
    text = app.partition.registry.text
    if ask.planned is not None and ask.planned.partner is not None:
        placeholder = ask.planned.partner
        yield Check(
            "replacement",
            False,
            f"takes over placeholder {placeholder.uuid} on {placeholder.node.node_id}, "
            "whose release has yet to be confirmed (G29)",
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
            "room: its quota is kept for it (X39)",
        )
        return
    if app.gang.size is None and ask.kind.placeholder:
        return
    closed = gang.gate(app) if ask.kind.placeholder else None
    if closed is None and app.gang.lacks and ask.group is not None:
        if app.gang.starts_whole(ask.group):
            yield _of_wait(app)
            return
    if ask.kind.placeholder:
        if closed is None:
            yield Check("gang", True, "the whole gang fits the quotas, or has started")
        else:
            yield from _of_gate(app, *closed)
    elif app.gang.size is not None and app.holding:
        have, need = text(app.allocated_placeholder), text(app.gang.size)
        yield Check(
            "gang",
            False,
            f"held until the gang is complete: has {have} of {need} (X9)",
            verdict=f"It is held until the gang has all its placeholders: it has {have} of {need}.",
        )
    elif (
        ask.kind.task_group in app.gang.task_groups
        and app.gang.task_groups[ask.kind.task_group].can_replace
    ):
        group = app.gang.task_groups[ask.kind.task_group]
        if ask.group is not None and ask.group.outgrown:
            yield Check(
                "gang",
                False,
                f"larger than every placeholder of task group {group.name}, and with one of them gone "
                "there is not enough room on a node and in the quotas: served like other asks (X37)",
            )
            return
        yield Check(
            "gang",
            bool(group.available),
            f"waits for a placeholder of task group {group.name}: {group.count} in all, "
            f"{group.pending} pending, {group.replaced} replaced, {group.timed_out} given up",
            verdict=f"It waits for a placeholder of task group {group.name} to take over.",
        )


def _of_wait(app: Application) -> Check:
    """Return the check of a gang whose members wait to be placed in one step (Q2, Q8)."""
    own, text = app.gang, app.partition.registry.text
    holders: tuple[Holder, ...] = ()
    if own.lacks == ASKS:
        said = f"the gang waits for its asks: it has announced {text(own.size or ())}"
        said += f", and asked for {text(app.pending)} so far"
    elif own.lacks == NODES:
        ready = own.outstanding - own.missing
        said = f"{ready} of {own.outstanding} members of the gang could start now"
        said += ", and they are placed together or not at all"
        gatherer = app.partition.waiting.gatherer
        if gatherer is app:
            said += f"; it keeps {len(app.reservations)} nodes for them"
        elif gatherer is not None:
            said += f"; the gang {gatherer.app_id} keeps {len(gatherer.reservations)} nodes"
            holders = (Holder(gatherer.app_id, amount=len(gatherer.reservations)),)
    elif own.lacks == PREDICATES:
        said = "the resource manager's predicates refused a member of the gang on every node"
    else:
        said = f"a {own.lacks} has no room for all outstanding members of the gang"
    return Check(
        "gang",
        False,
        f"{said} (Q2)",
        verdict=f"{said[:1].upper()}{said[1:]}.",
        holders=holders,
        held=len(holders),
    )


def _of_gate(app: Application, queue: Queue, free: Vector, whole: Vector) -> Iterator[Check]:
    """Yield a check for each resource type that the gang lacks in the queue that stops it.

    ``free`` is the room that the gate found there.
    """
    names = app.partition.registry.names
    for (index, limit), left in zip(queue.limits, free, strict=True):
        asked = whole[index] if index < len(whole) else 0
        used, kept = queue.allocated[index], queue.reserved_headroom[index]
        if not asked or asked <= max(0, left):
            continue
        name = names[index]
        holders = [
            Holder(each.app_id, amount=owed)
            for each in _applications(queue)
            if (owed := each.reserved_headroom[index] if index < len(each.reserved_headroom) else 0)
        ]
        shown = tuple(holders[:HOLDERS])
        for_whom = "".join(
            f", {name}={each.amount} kept for the gang {each.application}" for each in shown
        )
        if len(holders) > len(shown):
            rest = kept - sum(each.amount for each in shown)
            for_whom += f", {name}={rest} kept for {len(holders) - len(shown)} other gangs"
        room = f"queue {queue.path} has room for {name}={max(0, left)}"
        yield Check(
            "gang",
            False,
            f"the whole gang needs {name}={asked}, {room}: limit {name}={limit}, "
            f"used {name}={used}{for_whom} (X16)",
            f"{name}={asked - left} more in {queue.path}",
            f"queue {queue.path}",
            name,
            (
                ("limit", limit),
                ("used", used),
                ("kept", kept),
                ("asked", asked),
                ("headroom", left),
            ),
            verdict=f"The whole gang has to fit before it starts: it needs {name}={asked}, and {room}.",
            holders=shown,
            held=len(holders),
        )


def _applications(queue: Queue) -> Iterator[Application]:
    """Yield the applications of the queue and all below, in order of queues and submission."""
    for each in queue.walk():
        if isinstance(each, LeafQueue):
            yield from sorted(each.apps.values(), key=lambda app: app.seq)


def _of_limits(ask: Ask) -> Iterator[Check]:
    for ledger in ask.app.limiting:
        owner = _whose(ledger)
        yield from _amounts(ask, "limit", owner, f"for {owner}", ledger.resources, ledger.usage)


def _of_queues(ask: Ask) -> Iterator[Check]:
    queues = ask.app.queue.lineage
    for queue in queues[:-1] if ask.required_node else queues:  # root's max does not bound it (2.8)
        owner, where = f"queue {queue.path}", f"in {queue.path}"
        yield from _amounts(ask, "quota", owner, where, queue.limits, queue.allocated)


def _amounts(
    ask: Ask,
    about: str,
    owner: str,
    where: str,
    limits: tuple[tuple[int, int], ...],
    usage: Totals,
) -> Iterator[Check]:
    """Yield a check for each resource type of the ask that a quota or a limit bounds."""
    names = ask.app.partition.registry.names
    vector = ask.kind.vector
    for index, limit in limits:
        asked = vector[index] if index < len(vector) else 0
        if asked:
            used = usage[index]
            left = limit - used
            yield Check(
                about,
                asked <= left,
                f"{owner}: {names[index]} limit {limit}, used {used}, "
                f"asked {asked}, headroom {left}",
                f"{asked - left} more {names[index]} {where}",
                owner,
                names[index],
                (("limit", limit), ("used", used), ("asked", asked), ("headroom", left)),
                verdict=f"The {about} of {owner} has {names[index]}={max(0, left)} left, and it asks "
                f"for {names[index]}={asked}.",
            )
