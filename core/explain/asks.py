"""Explanation of a pending ask: the checks of a decision, in order, with their numbers."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final

from quadriga.base.times import SECOND, spelled
from quadriga.core.explain.explanation import Check, Explanation, Holder
from quadriga.core.explain.free_nodes import FreeNodes
from quadriga.core.explain.gangs import of_gang, of_members
from quadriga.core.explain.nodes import of_nodes
from quadriga.core.explain.remedies import Changes, changes_for, whose
from quadriga.core.explain.rivals import needs_a_slot
from quadriga.core.model import predictions
from quadriga.core.model.gang import NODES, PREDICATES, QUOTA
from quadriga.core.model.queue import LeafQueue, Queue
from quadriga.core.ordering import by_run_time
from quadriga.core.ordering.by_run_time import WHOLE
from quadriga.core.preemption.story import awaits_victims, story_of, waits_with_its_gang
from quadriga.core.resources.shapes import needed_by, shape_of
from quadriga.core.runtime.kernel import Kernel
from quadriga.core.runtime.remote_predicates import for_explanation
from quadriga.core.runtime.stepwise import Steps
from quadriga.core.steps import gang, quota_plans
from quadriga.core.topology.members import MemberPredicate
from quadriga.fsm import RESOURCE_MANAGER
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.fsm.lifecycles import resource_manager as resource_manager_fsm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from quadriga.core.explain.remedies import Change
    from quadriga.core.model.ask import Ask, AskGroup
    from quadriga.core.model.node import Node
    from quadriga.core.resources.vectors import Totals

#: the checks that preemption can help
_PREEMPTION_HELPS: Final = ("quota", "nodes")
#: the checks that more or larger nodes can make pass, in the order in which the remedy is given to one
_NODES_HELP: Final = ("node sizes", "nodes", "gang", "predicates", "quota")

_NEXT: Final = "Nothing is in its way: it gets its place in the next round."
_BEFORE_IT: Final = "Nothing is in its way but other asks, which may be served before it."
_VICTIMS: Final = "Others have been preempted for it: it gets its place when they are gone."


def explain_in_steps(kernel: Kernel, ask: Ask, *, predicates: bool = True) -> Steps[Explanation]:
    """Run every check of a decision for this ask, including those after one that fails.

    Without ``predicates`` the resource manager is not asked about each node, which may take long; its
    answers of the last round are used instead.

    Decisions may be made between two steps. If they concern the ask or its gang, all starts again (D319);
    raises ``KeyError`` if the ask does not wait any longer.
    """
    while True:
        begun, steps = _situation(ask), _explanation(kernel, ask, predicates)
        transitions = kernel.journal.count
        while kernel.journal.count == transitions or _situation(ask) == begun:
            transitions = kernel.journal.count
            try:
                next(steps)
            except StopIteration as stop:
                found: Explanation = stop.value
                return found
            yield
            if ask.app.asks.get(ask.ask_key) is not ask:
                raise KeyError(ask.ask_key)


def _situation(ask: Ask) -> object:
    """What the checks and their order depend on."""
    app = ask.app
    gang = tuple(app.pending) if app.is_gang else ()
    types = len(app.partition.registry)
    # the predicate of a local gang goes by position
    order = app.partition.node_index.node_ids() if ask.kind.requires.locality is not None else ()
    return ask.group, ask.planned, ask.preempted, app.state, app.queue, types, gang, order


def _explanation(kernel: Kernel, ask: Ask, predicates: bool) -> Steps[Explanation]:
    shape = ask.group.shape if ask.group is not None else shape_of(0, ask.kind.requires)
    members = _members(ask)
    predicate = _remembering(kernel, ask) if predicates else None
    nodes = None
    if members or not ask.required_node:
        nodes = yield from FreeNodes.read(ask.app.partition.node_index, shape)
    checks = yield from _collected(_before_nodes(ask, members, kernel.now))
    if members:
        checks.extend(of_members(ask.app, members, kernel.now))
        if checks[-1].passed:
            checks.extend(_of_root(ask, members))
    usable = nodes if not ask.required_node else None
    of_all = of_nodes(kernel, ask, shape, predicate, usable, asked=predicates)
    checks += yield from _collected(of_all)
    # an ask that lacks neither quota nor a node needs no preemption
    lacks = any(not each.passed and each.about in _PREEMPTION_HELPS for each in checks)
    lacks = lacks or (bool(members) and ask.app.gang.lacks in (NODES, QUOTA))
    passed, story = story_of(kernel, ask)
    checks.append(Check("preemption", passed or not lacks, story))
    changes = Changes([], 0)
    if not _has_its_room(ask):
        accepts, condition = _predicates_of(kernel, ask, predicate)
        changes = yield from changes_for(kernel.now, ask, members, shape, nodes, accepts, condition)
    together: tuple[str, ...] = ()
    if any(not each.passed for each in checks):
        checks, together = _with_remedies(checks, changes)
    # a check that passes needs no remedy
    told = tuple(replace(c, remedy="", verdict="", until="") if c.passed else c for c in checks)
    verdict = _verdict(ask, told)
    if verdict == _NEXT and (changes.all or not changes.certain):
        verdict = _BEFORE_IT
    return Explanation(ask.key, told, verdict, together)


def _collected(checks: Iterator[Check | None]) -> Steps[list[Check]]:
    found = []
    for each in checks:
        if each is None:
            yield
        else:
            found.append(each)
    return found


def brief(ask: Ask, now: int) -> str:
    """What the ask waits for, in one sentence, for a list of many: its verdict without the details of nodes,
    which are not looked at one by one."""
    if awaits_victims(ask):
        return _VICTIMS
    members = _members(ask)
    for check in _before_nodes(ask, members, now):
        if check is not None and not check.passed:
            return _sentence(check)
    own, partition, group = ask.app.gang, ask.app.partition, ask.group
    if members and own.lacks == NODES:
        return "Nodes have no room for all members of the gang, which are placed together or not at all."
    if (members and own.lacks == PREDICATES) or ask in partition.waiting.deferred_asks:
        return "The resource manager has refused it on every node with room."
    if (
        not members
        and group is not None
        and not group.shape.allocate & partition.node_index.feasible
    ):
        return "No node has room for it."
    return "Nothing is in its way but its turn."


def _members(ask: Ask) -> list[AskGroup]:
    """The groups of asks that are placed together with this one (Q2)."""
    return ask.app.gang.members if waits_with_its_gang(ask) else []


def _before_nodes(ask: Ask, members: Sequence[AskGroup], now: int) -> Iterator[Check | None]:
    """Yield all checks but those of nodes, in order, and ``None`` after a step without one."""
    yield from _of_application(ask, now)
    yield from of_gang(ask, members)
    demand = _demand(ask, members)
    yield from _of_limits(ask, demand, bool(members))
    yield from _of_queues(ask, demand, bool(members))
    yield from _of_plans(ask, members, now)


def _demand(ask: Ask, members: Sequence[AskGroup]) -> dict[int, int]:
    """What the ask, or all members of its gang together, ask for by type."""
    if not members:
        return {at: value for at, value in enumerate(ask.kind.vector) if value > 0}
    return needed_by((group.shape, group.pending) for group in members)


def _with_remedies(checks: list[Check], changes: Changes) -> tuple[list[Check], tuple[str, ...]]:
    """The checks with the change that makes the ask start; or, if several are needed together, with a
    check that names them, and the changes (Q15)."""
    until = [each.until for each in checks if each.until and not each.passed]
    needed = (*until, *(each.text for each in changes.all))
    if len(needed) == 1 and changes.all and changes.certain:
        change = changes.all[0]
        if changes.others:
            change = change._replace(text=f"{change.text} (with {changes.others})")
        return _with_remedy(checks, change), ()
    checks = [replace(each, remedy="") if each.remedy else each for each in checks]
    if not changes.all or (len(needed) == 1 and changes.certain):
        return checks, ()
    if len(until) + changes.own > 1:
        said = "no single change is enough, all of these are needed"
    else:
        said = "no single change is certain to be enough, "
        said += "these together are" if changes.certain else "this is needed at least"
    if not changes.certain:
        said += ", and more if others are served before it"
    elif changes.others:
        said += f", with {changes.others}"
    checks.append(Check("together", False, f"{said}: {'; '.join(needed)}"))
    return checks, needed if changes.certain else ()


def _has_its_room(ask: Ask) -> bool:
    """Whether the ask takes the room of a placeholder or of what was preempted for it, so that it waits
    for neither quota nor nodes."""
    app = ask.app
    if ask.planned is not None or awaits_victims(ask):
        return True
    if ask.kind.placeholder:
        return False
    task_group = app.gang.task_groups.get(ask.kind.task_group)
    too_large_to_replace = ask.group is not None and ask.group.too_large_to_replace
    return app.holding or (
        task_group is not None and task_group.can_replace and not too_large_to_replace
    )


def _with_remedy(checks: list[Check], change: Change) -> list[Check]:
    """The checks with the change as the remedy of the one that it makes pass."""
    failing = [each for each in checks if not each.passed]
    if change.subject:
        chosen = [each for each in failing if each.subject == change.subject]
    else:
        chosen = [each for about in _NODES_HELP for each in failing if each.about == about][:1]
    kept = [each for each in failing if each.remedy and not change.subject]
    found = []
    for each in checks:
        if kept:  # a lent node (Q7)
            found.append(each)
        elif any(each is one for one in chosen or failing[:1]):
            found.append(replace(each, remedy=change.text))
        else:
            found.append(replace(each, remedy="") if each.remedy else each)
    return found


def _remembering(kernel: Kernel, ask: Ask) -> Callable[[str], object] | None:
    """The predicates for the ask, called once at most for each node; ``None`` if there are none."""
    predicate = for_explanation(kernel, ask.app.partition.rm.rm_id)
    if ask.kind.requires.locality is not None and not _is_placed_with_others(ask):
        predicate = MemberPredicate(ask, predicate)
    return predicate and cache(lambda node_id: predicate(ask.ask_key, node_id, True))


def _is_placed_with_others(ask: Ask) -> bool:
    return ask.group is not None and ask.app.gang.starts_whole(ask.group)


def _predicates_of(
    kernel: Kernel, ask: Ask, predicate: Callable[[str], object] | None
) -> tuple[Callable[[Node], bool], str]:
    """Whether the predicates may accept a node for the ask, and what a new node has to meet for them."""
    partition = ask.app.partition
    if predicate is None and kernel.predicates.get(partition.rm.rm_id) is None:
        return lambda node: True, ""
    condition = " that the predicates accept"
    if predicate is not None:
        return lambda node: not predicate(node.node_id), condition
    if ask in partition.waiting.deferred_asks:
        shape = shape_of(0, ask.kind.requires)
        return lambda node: not shape.fits(node.available), condition
    return lambda node: True, condition


def _verdict(ask: Ask, checks: tuple[Check, ...]) -> str:
    """Return what has to happen first.

    A node that is large enough is named before everything else, then a preemption under way, then the
    first check that fails.
    """
    failing = [each for each in checks if not each.passed]
    if not failing:
        return _NEXT
    never = next((each for each in failing if each.about == "node sizes"), None)
    if never is None and awaits_victims(ask):
        return _VICTIMS
    return _sentence(never or failing[0])


def _sentence(check: Check) -> str:
    return check.verdict or f"{check.text[:1].upper()}{check.text[1:]}."


def _of_application(ask: Ask, now: int) -> Iterator[Check]:
    app = ask.app
    rm = app.partition.rm
    connected = RESOURCE_MANAGER.allows(rm.state, resource_manager_fsm.DISCONNECT)
    yield Check(
        "resource manager",
        connected,
        f"resource manager {rm.rm_id} is {rm.state}",
        verdict=f"Resource manager {rm.rm_id} is {rm.state}: nothing is allocated for it.",
        until=f"resource manager {rm.rm_id} has to connect again",
    )
    asked = f" ({app.queue_asked!r} was asked for)" if app.queue_asked else ""
    yield Check("placement", True, f"queue {app.queue.path} by {app.placed_by}{asked}")
    served = app.state in application_fsm.SERVED
    yield Check(
        "application",
        served,
        f"application {app.app_id} is {app.state}",
        verdict=f"Application {app.app_id} is {app.state} and gets nothing in that state.",
        until=f"application {app.app_id} has to leave the state {app.state}",
    )
    if app.backoff_until:
        left = (app.backoff_until - now) / SECOND
        yield Check(
            "backoff",
            False,
            f"too many asks found no place: left alone for {left:g} s",
            verdict=f"Too many asks of its application found no place: none is tried for {left:g} s.",
            until=f"{left:g} s have to pass",
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
            f"stateaware queue {leaf.path} serves {first.app_id} before others start",
            verdict=f"Queue {leaf.path} lets applications start one by one, and serves "
            f"{first.app_id} now.",
            holders=(Holder(first.app_id),),
            held=1,
            until=f"application {first.app_id} has to start and run",
        )
    expected = predictions.run_time(ask)
    told = f"{expected.time / SECOND:g} s ({expected.source})" if expected else "unknown"
    yield Check("run time", True, f"expected run time {told}")
    if leaf.expected and (terms := by_run_time.terms_of(app)) is not None:
        text = f"queue {leaf.path} serves by expected run times: {terms}; score {app.score / WHOLE**2:.3g}"
        yield Check("order", True, text)
    if not needs_a_slot(app):
        return
    for queue in leaf.lineage:
        yield Check(
            "maxapplications",
            queue.admits(),
            f"queue {queue.path} runs {queue.running + len(queue.admitted)} of "
            f"{queue.max_applications or 'unlimited'} applications",
            subject=f"queue {queue.path}",
        )
    if not app.counted:
        for ledger in app.limiting:
            if ledger.max_applications:
                yield Check(
                    "limit of applications",
                    ledger.admits(),
                    f"{whose(ledger)} runs {len(ledger.running)} of "
                    f"{ledger.max_applications} applications",
                    subject=whose(ledger),
                )


def _of_limits(ask: Ask, demand: dict[int, int], whole: bool) -> Iterator[Check]:
    for ledger in ask.app.limiting:
        for at, limit in ledger.resources:
            if demand.get(at):
                yield _amount(
                    ask, "limit", whose(ledger), at, limit, ledger.usage, 0, demand[at], whole
                )


def _of_queues(ask: Ask, demand: dict[int, int], whole: bool) -> Iterator[Check]:
    """Yield a check for each quota. A gang that is placed together has to fit as a whole, and what is
    reserved for other gangs is not free for it (G8)."""
    app = ask.app
    closed = gang.gate(app) if whole and ask.kind.placeholder else None
    for queue in app.queue.lineage:
        if queue.parent is None and (whole or ask.required_node):
            continue  # it does not bound them, or is explained with the nodes (2.8, G12)
        if closed is not None and queue is closed[0]:
            continue  # the gate has been explained
        for at, limit in queue.limits:
            if demand.get(at):
                kept = queue.reserved_headroom[at] - app.own_headroom(at) if whole else 0
                owner = f"queue {queue.path}"
                yield _amount(
                    ask, "quota", owner, at, limit, queue.allocated, kept, demand[at], whole
                )


def _of_plans(ask: Ask, members: Sequence[AskGroup], now: int) -> Iterator[Check]:
    """Yield a check for each quota and limit that is kept for what waits longest for it (Q12)."""
    app, group = ask.app, ask.group
    for quota in quota_plans.quotas_of(app):
        if (plan := quota.plan) is None or group is None:
            continue
        owner = f"queue {quota.path}" if isinstance(quota, Queue) else whose(quota)
        said = f"{owner} is kept for application {plan.app.app_id}, whose start is planned in "
        said += spelled(max(0, plan.start - now))
        delays = quota_plans.delays(quota, app, list(members))
        yield Check(
            "quota plan",
            not delays if members else plan.admits(group.shape, now),
            said,
            subject=owner,
            verdict=f"{said[:1].upper()}{said[1:]}, and it may run until then.",
            holders=(Holder(plan.app.app_id),),
            held=1,
            until=f"application {plan.app.app_id} has to start",
        )


def _of_root(ask: Ask, members: Sequence[AskGroup]) -> Iterator[Check]:
    """Yield the checks of all nodes together, for a gang whose members fit them one by one: other nodes
    may hold more than they have."""
    root, demand = ask.app.partition.root, _demand(ask, members)
    for at, limit in root.limits:
        if demand.get(at):
            yield _amount(
                ask, "quota", "queue root", at, limit, root.allocated, 0, demand[at], True
            )


def _amount(
    ask: Ask,
    about: str,
    owner: str,
    at: int,
    limit: int,
    usage: Totals,
    kept: int,
    asked: int,
    whole: bool,
) -> Check:
    """Return the check of one resource type that a quota or a limit bounds."""
    amount = ask.app.partition.registry.amount
    name = ask.app.partition.registry.names[at]
    used = usage[at]
    left = limit - used - kept
    size, room = amount(name, asked), amount(name, max(0, left))
    who = "its gang asks" if whole else "it asks"
    if owner == "queue root":
        verdict = f"The cluster is full: all nodes together have {room} left, and {who} for {size}."
    else:
        verdict = f"The {about} of {owner} has {room} left, and {who} for {size}."
    reserved = f", kept for other gangs {amount(name, kept)}" if kept else ""
    return Check(
        about,
        asked <= max(0, left),
        f"{owner}: limit {amount(name, limit)}, used {amount(name, used)}{reserved}, "
        f"asked {size}, headroom {amount(name, left)}",
        subject=owner,
        type=name,
        numbers=(("limit", limit), ("used", used), ("asked", asked), ("headroom", left)),
        verdict=verdict,
    )
