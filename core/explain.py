"""Why an ask is still pending: the checks of a decision, in their order, with their numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from quadriga.core import gang
from quadriga.core.kernel import Kernel
from quadriga.core.model.account import WILDCARD
from quadriga.core.model.queue import LeafQueue
from quadriga.core.order.shapes import Shape
from quadriga.core.preemption.story import story_of
from quadriga.fsm import APPLICATION, RESOURCE_MANAGER
from quadriga.fsm import application as life
from quadriga.fsm import resource_manager as rm_life
from quadriga.fsm.table import SECOND

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quadriga.core.model.account import Ledger
    from quadriga.core.model.ask import Ask
    from quadriga.core.model.node import Node
    from quadriga.core.resources import Book

__all__ = ["Check", "Explanation", "explain"]


@dataclass(frozen=True, slots=True)
class Check:
    """One check: what it is about, whether it passes, and its numbers in words.

    ``remedy`` is the smallest change that would make it pass, where one can be named. For those who
    spell quantities themselves, a check of a quota or a limit says whose it is (``subject``), of
    which resource ``type``, and has its ``numbers`` by name: limit, used, asked, headroom.
    """

    about: str
    passed: bool
    text: str
    remedy: str = ""
    subject: str = ""
    type: str = ""
    numbers: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """All checks of an ask. ``reasons`` are the texts of those that fail, in order."""

    key: str
    checks: tuple[Check, ...]

    @property
    def reasons(self) -> tuple[str, ...]:
        return tuple(check.text for check in self.checks if not check.passed)

    @property
    def remedies(self) -> tuple[str, ...]:
        return tuple(check.remedy for check in self.checks if not check.passed and check.remedy)

    @property
    def hopeless(self) -> bool:
        """Whether no node could take it even if it were empty."""
        return any(not c.passed and c.about == "node sizes" for c in self.checks)


def explain(kernel: Kernel, ask: Ask, *, predicates: bool = True) -> Explanation:
    """Run every check of a decision for this ask, also those behind one that fails.

    Without ``predicates`` the resource manager is not asked about each node, which may take its
    time; what it said in the last round is told instead.
    """
    shape = Shape(0, ask.vector, ask.required_node)
    checks = [
        *_of_application(kernel, ask),
        *_of_gang(ask),
        *_of_limits(ask),
        *_of_queues(ask),
    ]
    checks.extend(_of_nodes(kernel, ask, shape, predicates))
    checks.append(Check("preemption", *story_of(kernel, ask)))
    # what passes needs no remedy
    return Explanation(ask.key, tuple(replace(c, remedy="") if c.passed else c for c in checks))


def _of_application(kernel: Kernel, ask: Ask) -> Iterator[Check]:
    app = ask.app
    rm = app.partition.rm
    connected = RESOURCE_MANAGER.allows(rm.state, rm_life.DISCONNECT)
    yield Check("resource manager", connected, f"resource manager {rm.rm_id} is {rm.state}")
    asked = f" ({app.queue_asked!r} was asked for)" if app.queue_asked else ""
    yield Check("placement", True, f"queue {app.queue.path} by {app.placed_by}{asked}")
    served = app.state in life.SERVED
    yield Check("application", served, f"application {app.app_id} is {app.state}")
    if app.backoff_until:
        left = (app.backoff_until - kernel.now) / SECOND
        yield Check("backoff", False, f"too many asks found no place: left alone for {left:g} s")
    leaf = app.queue
    if isinstance(leaf, LeafQueue) and leaf.stateaware and app.state in life.STATEAWARE_TURN:
        first = leaf.turn if leaf.turn is not None else app
        yield Check(
            "turn",
            first is app,
            f"stateaware queue {leaf.path} serves {first.app_id} before others start (2.9)",
        )
    if APPLICATION.allows(app.state, life.RUN) and app.state not in life.COUNTED:
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
    """``user joe in root.a``, with a note where the limit is one for everybody."""
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
        )
        return
    if app.placeholder_ask is None and ask.placeholder:
        return
    if ask.placeholder:
        closed = gang.gate(app)
        if closed is None:
            yield Check("gang", True, "the whole gang fits the quotas, or has started")
        else:
            queue, room, whole = closed
            yield Check(
                "gang",
                False,
                f"the whole gang needs {text(whole)}, queue {queue.path} has room for "
                f"{_limits(ask, queue.limits, room)} (X16)",
                f"raise max of {queue.path} or wait for it to empty",
            )
    elif app.placeholder_ask is not None and app.holding:
        have, need = text(app.allocated_placeholder), text(app.placeholder_ask)
        yield Check("gang", False, f"held until the gang is complete: has {have} of {need} (X9)")
    elif ask.task_group in app.task_groups and app.task_groups[ask.task_group].can_replace:
        group = app.task_groups[ask.task_group]
        yield Check(
            "gang",
            bool(group.available),
            f"waits for a placeholder of task group {group.name}: {group.count} in all, "
            f"{group.pending} pending, {group.replaced} replaced, {group.timed_out} given up",
        )


def _limits(ask: Ask, limits: tuple[tuple[int, int], ...], room: tuple[int, ...]) -> str:
    names = ask.app.partition.registry.names
    return " ".join(f"{names[at]}={left}" for (at, _), left in zip(limits, room, strict=True))


def _of_limits(ask: Ask) -> Iterator[Check]:
    for ledger in ask.app.limiting:
        whose = _whose(ledger)
        yield from _amounts(ask, "limit", whose, f"for {whose}", ledger.resources, ledger.usage)


def _of_queues(ask: Ask) -> Iterator[Check]:
    for queue in ask.app.queue.lineage:
        whose, where = f"queue {queue.path}", f"in {queue.path}"
        yield from _amounts(ask, "quota", whose, where, queue.limits, queue.allocated)


def _amounts(
    ask: Ask,
    about: str,
    whose: str,
    where: str,
    limits: tuple[tuple[int, int], ...],
    usage: Book,
) -> Iterator[Check]:
    """What is asked of each type against what a quota or a limit leaves of it."""
    names = ask.app.partition.registry.names
    for place, limit in limits:
        asked = ask.vector[place] if place < len(ask.vector) else 0
        if asked:
            used = usage[place]
            left = limit - used
            yield Check(
                about,
                asked <= left,
                f"{whose}: {names[place]} limit {limit}, used {used}, "
                f"asked {asked}, headroom {left}",
                f"{asked - left} more {names[place]} {where}",
                whose,
                names[place],
                (("limit", limit), ("used", used), ("asked", asked), ("headroom", left)),
            )


def _of_nodes(kernel: Kernel, ask: Ask, shape: Shape, predicates: bool) -> Iterator[Check]:
    """Nodes grouped by why they refuse."""
    partition = ask.app.partition
    names = partition.registry.names
    nodes = list(partition.nodes.values())
    if ask.required_node:
        nodes = [node for node in nodes if node.node_id == ask.required_node]
    fitting = [node for node in nodes if shape.fits(node.total)]
    text = partition.registry.text
    if not fitting:
        most = [max((node.total[place] for node in nodes), default=0) for place, _ in shape.need]
        largest = " ".join(
            f"{names[place]}={value}" for (place, _), value in zip(shape.need, most, strict=True)
        )
        which = f"required node {ask.required_node}" if ask.required_node else "no node"
        yield Check(
            "node sizes",
            False,
            f"{which} is large enough for {text(ask.vector)}: {len(nodes)} nodes, "
            f"at most {largest or 'nothing'} among them, and none has all of it",
            f"add a node with {text(ask.vector)}",
        )
        return
    yield Check("node sizes", True, f"{len(fitting)} of {len(nodes)} nodes are large enough")
    refusals: dict[str, int] = {}
    predicate = kernel.predicates.get(partition.rm.rm_id) if predicates else None
    if not predicates and ask in partition.aside:
        yield Check("predicates", False, "the resource manager refused it on every node (I36)")
    for node in fitting:
        reason = _refusal(node, ask, shape, names)
        if not reason and predicate is not None:
            reason = predicate(ask.ask_key, node.node_id, True) or ""
        if not reason:
            yield Check("nodes", True, f"node {node.node_id} has room")
            return
        refusals[reason] = refusals.get(reason, 0) + 1
    for reason, count in sorted(refusals.items()):
        yield Check("nodes", False, f"{count} nodes: {reason}")


def _refusal(node: Node, ask: Ask, shape: Shape, names: list[str]) -> str:
    if not node.open and not ask.required_node:
        return "draining"
    kept = (node.reservation, *node.also_reserved)
    if node.reservation is not None and not any(each and each.ask is ask for each in kept):
        return "reserved for another ask"
    short = [names[place] for place, value in shape.need if node.available[place] < value]
    return f"not enough free {', '.join(short)}" if short else ""
