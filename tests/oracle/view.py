"""What a rule gets to see of one step, and what it remembers from one to the next."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from quadriga.core import Scheduler
from quadriga.fsm import NODE
from quadriga.fsm.lifecycles import allocation as allocation_fsm
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.fsm.lifecycles import node as node_fsm
from tests.oracle.lines import Said
from tests.oracle.totals import Line

#: steps in which decisions follow each other, or time passes
_GOES_ON = ("schedule", "scheduleIdle", "multiStep", "advance", "sleep")

Key = tuple[str, str]
"""An application id and an allocation key."""


@dataclass(frozen=True, slots=True)
class AskFacts:
    """One ask that is not wholly allocated."""

    placeholder: bool
    task_group: str
    required_node: str
    parked: bool
    #: the node that a replacement of it is planned on
    planned_on: str
    #: what one allocation of it needs
    size: Line


@dataclass(slots=True)
class Facts:
    #: whether it may be drained back, by node
    nodes: dict[str, bool]
    asks: dict[Key, AskFacts]
    #: placeholders that a replacement has asked back
    replaced: set[Key]
    placeholders: set[Key]
    #: what is allocated of either kind, by its ask
    allocated: dict[Key, list[Line]]
    #: queue paths from the leaf up, for every living application
    paths: dict[str, tuple[str, ...]]
    gangs: set[str]
    #: applications that are being killed, and those whose gang has not run yet
    dying: set[str]
    gathering: set[str]
    #: asks that have a node reserved, by application
    reserved: dict[str, set[str]]
    #: nodes that drain and are reserved
    closed: set[str]

    @classmethod
    def of(cls, core: Scheduler) -> Facts:
        facts = cls({}, {}, set(), set(), {}, {}, set(), set(), set(), {}, set())
        for partition in core.partitions():
            names = partition.registry.mapping
            for node in partition.nodes.values():
                facts.nodes[node.node_id] = NODE.allows(node.state, node_fsm.SCHEDULE)
                if not node.open and node.reservation is not None:
                    facts.closed.add(node.node_id)
            for app in partition.applications.values():
                app_id = app.app_id
                facts.paths[app_id] = tuple(queue.path for queue in app.queue.lineage)
                if app.is_gang:
                    facts.gangs.add(app_id)
                facts.reserved[app_id] = {kept.ask.ask_key for kept in app.reservations}
                if app.state == application_fsm.KILLING:
                    facts.dying.add(app_id)
                if app.state in application_fsm.BEFORE_RUNNING | application_fsm.GIVES_BACK:
                    facts.gathering.add(app_id)
                for key, ask in app.asks.items():
                    facts.asks[app_id, key] = AskFacts(
                        ask.placeholder,
                        ask.task_group,
                        ask.required_node,
                        ask.planned is not None,
                        ask.planned.node.node_id if ask.planned is not None else "",
                        tuple(sorted(names(ask.vector).items())),
                    )
                for each in (*app.allocations.values(), *app.placeholders.values()):
                    size = tuple(names(each.vector).items())
                    facts.allocated.setdefault((app_id, each.ask.ask_key), []).append(size)
                for placeholder in app.placeholders.values():
                    named = (app_id, placeholder.ask.ask_key)
                    facts.placeholders.add(named)
                    if placeholder.reason == allocation_fsm.REPLACEMENT:
                        facts.replaced.add(named)
        return facts

    def sizes(self, named: Key) -> list[Counter[str]]:
        """What an ask that is known under this key wants and has."""
        found = [self.asks[named].size] if named in self.asks else []
        return [Counter(dict(size)) for size in (*found, *self.allocated.get(named, ()))]


@dataclass(slots=True)
class Memory:
    """What earlier steps brought that makes later ones differ, each with its rule."""

    #: applications that the resource manager removed (X31)
    removed: set[str] = field(default_factory=set)
    #: asks that ours still has and the Go core dropped
    kept: dict[Key, str] = field(default_factory=dict)
    #: applications that are Running here and Accepted there
    ahead: dict[str, str] = field(default_factory=dict)
    #: applications that never leave Completing there
    stuck: set[str] = field(default_factory=set)
    #: replacements in flight when the placeholder timer fired: the node and what they hold
    flying: dict[Key, tuple[str, Line]] = field(default_factory=dict)
    #: what ended applications still hold there, by node
    ghosts: dict[str, Counter[str]] = field(default_factory=dict)
    #: keys of asks that were sent again while the first was not over, and the quantities of each
    repeated: dict[Key, list[Counter[str]]] = field(default_factory=dict)
    #: task groups of which the resource manager took back a pending placeholder ask
    shrunk: set[Key] = field(default_factory=set)
    #: queues in which a gang ended before it ran
    leaked: set[str] = field(default_factory=set)
    #: asks that only theirs has reported as waiting for nodes
    reported: set[Key] = field(default_factory=set)
    #: applications of which all allocations were released at once
    emptied: set[str] = field(default_factory=set)


class View:
    """One step whose lines differ."""

    def __init__(
        self,
        at: int,
        step: dict[str, Any],
        version: str,
        theirs: list[Said],
        ours: list[Said],
        facts: Facts,
        core: Scheduler,
        memory: Memory,
    ) -> None:
        self.at = at
        self.step = step
        self.op: str = step.get("op", "")
        self.version = version
        self.theirs = theirs
        self.ours = ours
        self.facts = facts
        self.core = core
        self.memory = memory
        self.missing = list((Counter(theirs) - Counter(ours)).elements())
        self.extra = list((Counter(ours) - Counter(theirs)).elements())
        #: rules that explained something, in order
        self.used: list[str] = []
        self.stopped: tuple[str, str] | None = None
        self._parting: Said | None = None
        self._allowed_theirs: Counter[Said] = Counter()
        self._allowed_ours: Counter[Said] = Counter()

    def allow_missing(self, rule: str, said: Said) -> None:
        self.missing.remove(said)
        self._allowed_theirs[said] += 1
        self._use(rule)

    def allow_extra(self, rule: str, said: Said) -> None:
        self.extra.remove(said)
        self._allowed_ours[said] += 1
        self._use(rule)

    def allow_moved(self, rule: str, said: Said) -> None:
        """A line that both have, at different places of the step."""
        self._allowed_theirs[said] += 1
        self._allowed_ours[said] += 1
        self._use(rule)

    def stop(self, rule: str, why: str, parting: Said | None = None) -> None:
        """From here on the histories are different ones."""
        if self.stopped is None:
            self.stopped = rule, why
            self._parting = parting
            self._use(rule)

    def _use(self, rule: str) -> None:
        if rule not in self.used:
            self.used.append(rule)

    @property
    def agrees(self) -> bool:
        """Whether nothing is left to explain, the order included."""
        if self.missing or self.extra:
            return False
        return _without(self.theirs, self._allowed_theirs) == _without(
            self.ours, self._allowed_ours
        )

    @property
    def agrees_up_to_the_parting(self) -> bool:
        """Whether nothing is left to explain before the line by which the histories part."""
        if self._parting is None or self.op not in _GOES_ON:
            return False
        theirs = self.theirs, self._allowed_theirs
        ours = self.ours, self._allowed_ours
        return all(
            _without(said, other)[: len(before)] == before
            for (lines, allowed), (said, other) in ((theirs, ours), (ours, theirs))
            if self._parting in lines
            for before in [_without(_up_to(lines, self._parting), allowed)]
        )

    def first_apart(self) -> tuple[Line | None, Line | None]:
        """The first lines that differ and that no rule explains: (theirs, ours)."""
        theirs = _without(self.theirs, self._allowed_theirs)
        ours = _without(self.ours, self._allowed_ours)
        for one, other in itertools.zip_longest(theirs, ours):
            if one != other:
                return one and one[1], other and other[1]
        return None, None

    def lines(self, kind: str, *, missing: bool) -> Iterator[tuple[Said, Line]]:
        for said in list(self.missing if missing else self.extra):
            if said[1][0] == kind:
                yield said, said[1]

    def total_pairs(self) -> Iterator[tuple[Said, Said]]:
        """Totals of a dump that both have with different values: (theirs, ours)."""
        ours = {said[1][:-1]: said for said in self.extra}
        for said in list(self.missing):
            if said[1][:-1] in ours and self.op == "dump":
                yield said, ours[said[1][:-1]]


def _up_to(said: list[Said], parting: Said) -> list[Said]:
    """The lines before this one, and before the states that it brings: they are said first."""
    at = said.index(parting)
    while at and said[at - 1][1][:2] == ("state", parting[1][1]):
        at -= 1
    return said[:at]


def _without(said: list[Said], allowed: Counter[Said]) -> list[Said]:
    left = Counter(allowed)
    kept = []
    for each in said:
        if left[each] > 0:
            left[each] -= 1
        else:
            kept.append(each)
    return kept
