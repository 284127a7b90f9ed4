"""The members of a gang whose rule is about domains, one by one (Q13).

A member that is placed alone, because it was lost, keeps to the rule that the others were placed by: the
predicate of its ask refuses the nodes of other domains, and those of domains that have their members. A
level that is only preferred refuses none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from quadriga.core.resources.locality import Rule
from quadriga.fsm.lifecycles import allocation as allocation_fsm
from quadriga.si.predicates import KnownRefusals

if TYPE_CHECKING:
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask
    from quadriga.core.model.partition import Partition
    from quadriga.core.runtime.kernel import Kernel


def update_levels(partition: Partition) -> None:
    """The domains are those of the present nodes."""
    index = partition.node_index
    partition.levels.update(index.node_ids(), lambda: [node.attributes for node in index.nodes])


def positions_of_members(app: Application, but_not: Ask | None = None) -> dict[str, list[int]]:
    """The position of the node of each allocation of the application that stays, by task group. A placeholder
    that is being replaced counts where its member goes."""
    position = app.partition.node_index.position
    found: dict[str, list[int]] = {}

    def add(each: Allocation) -> None:
        if not each.node.gone and each.ask is not but_not:
            found.setdefault(each.ask.kind.task_group, []).append(position(each.node))

    for each in app.allocations.values():
        if each.state not in allocation_fsm.ASKED_BACK:
            add(each)
    for each in app.placeholders.values():
        if each.partner is not None:
            add(each.partner)
        elif each.state not in allocation_fsm.ASKED_BACK:
            add(each)
    return found


def predicate_of(kernel: Kernel, ask: Ask) -> Any:
    """The predicate of the resource manager, and that of the gang of the ask; ``None`` if there is neither."""
    predicate = kernel.predicates.get(ask.app.partition.rm.rm_id)
    return predicate if ask.kind.requires.locality is None else MemberPredicate(ask, predicate)


def preferring(kernel: Kernel, ask: Ask) -> Iterator[MemberPredicate]:
    """Stricter predicates to try before, for the levels that the ask prefers, from the narrowest one on."""
    locality, partition = ask.kind.requires.locality, ask.app.partition
    if locality is None:
        return
    rule = locality.group or locality.gang
    level = None if rule is None else partition.levels.number(rule.preferred)
    widest = -1 if rule is None else partition.levels.number(rule.required)
    while level is not None and level > (-1 if widest is None else widest):
        yield MemberPredicate(ask, kernel.predicates.get(partition.rm.rm_id), level)
        level -= 1


class MemberPredicate:
    """The predicate ``inner`` with that of a gang, for one ask (I36). ``near``: the number of a level in whose
    domains members run."""

    def __init__(self, ask: Ask, inner: Any, near: int | None = None) -> None:
        self._inner = inner
        partition = self._partition = ask.app.partition
        update_levels(partition)
        self._numbers = np.zeros(len(partition.node_index.node_ids()), dtype=np.int32)
        self._reasons: list[str] = []
        members = positions_of_members(ask.app, ask)
        everyone = [position for each in members.values() for position in each]
        group = members.get(ask.kind.task_group, [])
        locality = ask.kind.requires.locality
        assert locality is not None
        if locality.gang is not None:
            self._refuse(locality.gang, everyone, group)
        if locality.group is not None:
            self._refuse(locality.group, group, group)
        if near is not None:
            label = partition.levels.labels[near]
            self._refuse(Rule(label), group if locality.group is not None else everyone, group)

    def _refuse(self, rule: Rule, members: list[int], counted: list[int]) -> None:
        levels, nodes = self._partition.levels, len(self._numbers)
        for label, at in ((rule.required, members), (rule.bounded, counted)):
            if not label:
                continue
            level = levels.number(label)
            if level is None:
                self._add(np.ones(nodes, dtype=bool), f"{label} is no level of the partition")
                continue
            domains = levels.domains(level, nodes)
            self._add(domains < 0, f"the node has no label {label}")
            used = domains[np.array(at, dtype=np.int64)]
            used = used[used >= 0]
            if label == rule.bounded:
                full = np.flatnonzero(np.bincount(used) >= rule.most)
                said = f"its {label} has {rule.most} members of the task group, the most allowed"
                self._add(np.isin(domains, full), said)
            if label == rule.required and len(used):
                name = levels.name(level, int(used[0]))
                said = f"its gang runs in {name} of the level {label}"
                self._add(~np.isin(domains, used), said)

    def _add(self, refused: Any, reason: str) -> None:
        self._reasons.append(reason)
        self._numbers[refused & (self._numbers == 0)] = len(self._reasons)

    def __call__(self, key: str, node_id: str, allocate: bool, /) -> str | None:
        if number := self._number(node_id):
            return self._reasons[number - 1]
        said: str | None = self._inner and self._inner(key, node_id, allocate)
        return said

    def _number(self, node_id: str) -> int:
        """The number of the reason against the node, 0 without one."""
        node = self._partition.nodes.get(node_id)
        if node is None:
            return 0
        return int(self._numbers[self._partition.node_index.position(node)])

    def refused_nodes(self, key: str, node_ids: tuple[str, ...]) -> KnownRefusals:
        """The refused nodes. Whether members come and go is not told, so the ask is tried in each call."""
        inner: KnownRefusals | None = None
        if (find := getattr(self._inner, "refused_nodes", None)) is not None:
            inner = find(key, node_ids)
        if inner is None:
            return KnownRefusals(self._numbers, self._reasons)
        more = np.where(self._numbers, self._numbers + len(inner.reasons), 0)
        numbers = np.where(inner.numbers, inner.numbers, more).astype(np.int32)
        return KnownRefusals(numbers, [*inner.reasons, *self._reasons])

    # -- where the resource manager answers later ----------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def look_ahead(self, key: str, node_ids: Iterable[str], allocate: bool) -> None:
        """Ask about further nodes that the gang does not refuse."""
        self._inner.look_ahead(key, [each for each in node_ids if not self._number(each)], allocate)

    def allowed(self, key: str) -> Collection[str]:
        """The nodes that answers and the gang allow."""
        allowed = getattr(self._inner, "allowed", None)
        return [each for each in allowed(key) if not self._number(each)] if allowed else ()
