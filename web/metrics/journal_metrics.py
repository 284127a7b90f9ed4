"""Metrics from the journal: transitions taken, durations of states, waiting times of pods, and
outcomes of placeholders.

The journal is a ring buffer, so every record is processed once, in batches, in the owner thread of
the scheduler, before it is overwritten. Times are the scheduler's own: the same history gives the
same numbers. A decision writes two or three records, so the cost of each record matters. See D93.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from quadriga.base.times import SECOND
from quadriga.core.model.application import Application
from quadriga.core.model.partition import Partition
from quadriga.core.model.queue import Queue
from quadriga.core.runtime.journal import Journal
from quadriga.fsm import LIFECYCLES
from quadriga.fsm.lifecycles import allocation as allocation_fsm
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.fsm.lifecycles import ask as ask_fsm
from quadriga.fsm.table import Edge
from quadriga.web.metrics.families import Histogram


def _bounds(*seconds: float) -> tuple[int, ...]:
    return tuple(round(each * SECOND) for each in seconds)


#: ns; from one scheduling cycle to the three days for which ended applications are kept
STATE_BOUNDS: Final = _bounds(0.01, 0.1, 1, 5, 15, 60, 300, 900, 3600, 14400, 86400, 259200)
WAIT_BOUNDS: Final = _bounds(0.01, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 14400, 86400)

#: initial states, whose entry time the entity records itself
_BEGAN: Final[dict[tuple[str, str], str]] = {
    ("ask", ask_fsm.PENDING): "created",
    ("allocation", allocation_fsm.ALLOCATED): "created",
    ("application", application_fsm.NEW): "submitted",
    **{("application", state): "finished" for state in application_fsm.ENDED},
}

#: causes that restore rather than place an allocation; allocations with these causes have not
#: waited here
_BROUGHT: Final = frozenset({"AllocationRequest.allocations", "NodeRequest.nodes"})

#: actions for a transition, in addition to counting it
_NOTHING, _PLACED, _TIMED, _MOVED = 0, 1, 2, 3


class _Edge:
    """One transition of a lifecycle: its count, and the actions for it."""

    __slots__ = ("began", "count", "enters", "kind", "lasted")

    def __init__(self, lifecycle: str, source: str, target: str) -> None:
        table = LIFECYCLES[lifecycle]
        self.count = 0
        #: durations of the state that was left, of this batch (ns)
        self.lasted: list[int] = []
        self.began = _BEGAN.get((lifecycle, source))
        #: whether the entry time must be kept until the state is left
        ended = lifecycle == "application" and target in application_fsm.ENDED
        self.enters = not (ended or target in table.final) and (
            source != table.initial or (lifecycle, target) not in _BEGAN
        )
        if lifecycle == "resource_manager" or (lifecycle == "queue" and target in table.final):
            self.kind = _MOVED
        elif source == target:
            self.kind = _NOTHING
        elif lifecycle == "allocation" and target == allocation_fsm.ALLOCATED:
            self.kind = _PLACED
        elif source == table.initial and self.began is None and not self.enters:
            self.kind = _NOTHING
        else:
            self.kind = _TIMED


class JournalMetrics:
    """Follows the journal of one scheduler, from the oldest record that is still there."""

    __slots__ = (
        "_edges",
        "_since",
        "cursor",
        "lasted",
        "missed",
        "placeholders",
        "releases",
        "waits",
    )

    def __init__(self) -> None:
        #: number of the next record, and number of records that were overwritten unread
        self.cursor = 0
        self.missed = 0
        self._edges: dict[Edge, _Edge] = {}
        #: (lifecycle, state) -> durations of the state
        self.lasted: dict[tuple[str, str], Histogram] = {}
        #: (leaf queue, for a placeholder) -> waiting times until an allocation
        self.waits: dict[tuple[Queue, bool], Histogram] = {}
        #: releases demanded by the scheduler, by reason; and states that placeholders have entered
        self.releases: Counter[str] = Counter()
        self.placeholders: Counter[str] = Counter()
        #: entity -> entry time of its current state (ns), for entities that do not record it
        #: themselves
        self._since: dict[Any, int] = {}

    def follow(self, journal: Journal, most: int | None = None) -> None:
        """Process new records, at most ``most`` of them."""
        entries = journal.entries(self.cursor)
        gone = journal.count - self.cursor - len(entries)
        if most is not None and most < len(entries):
            del entries[most:]
        self.missed += gone
        self.cursor += gone + len(entries)
        edges, since, placeholders = self._edges, self._since, self.placeholders
        find, left = edges.get, since.pop
        waited: tuple[dict[Application, list[int]], dict[Application, list[int]]] = ({}, {})
        moved = False
        for _, time, entity, way, cause in entries:
            edge = find(way)
            if edge is None:
                edge = edges[way] = _Edge(way.lifecycle, way.source, way.target)
            edge.count += 1
            kind = edge.kind
            if kind == _NOTHING:
                continue
            who: Any = entity
            if kind == _PLACED:
                ask = who.ask
                if ask.placeholder:
                    placeholders[way.target] += 1
                if cause not in _BROUGHT:
                    waits, app = waited[ask.placeholder], ask.app
                    if app in waits:
                        waits[app].append(time - ask.created)
                    else:
                        waits[app] = [time - ask.created]
                continue
            if kind == _MOVED:
                moved = True
                if way.source == way.target:
                    continue
            began = left(who, None)
            if began is None and edge.began is not None and cause not in _BROUGHT:
                began = getattr(who, edge.began)
            if began is not None:
                edge.lasted.append(time - began)
            if edge.enters:
                since[who] = time
            if way.lifecycle == "allocation":
                if way.target == allocation_fsm.RELEASING:
                    self.releases[who.reason] += 1
                if who.ask.placeholder:
                    placeholders[way.target] += 1
        self._settle(waited)
        if moved:
            self._forget()

    def _settle(self, waited: tuple[dict[Application, list[int]], ...]) -> None:
        """Add the durations of a batch to their histograms."""
        for way, edge in self._edges.items():
            if edge.lasted:
                state = way.lifecycle, way.source
                if state not in self.lasted:
                    self.lasted[state] = Histogram(STATE_BOUNDS)
                self.lasted[state].observe_all(edge.lasted)
                edge.lasted = []
        for placeholder, by_application in enumerate(waited):
            for app, durations in by_application.items():
                leaf = app.queue, bool(placeholder)
                if leaf not in self.waits:
                    self.waits[leaf] = Histogram(WAIT_BOUNDS)
                self.waits[leaf].observe_all(durations)

    def skip(self, journal: Journal) -> None:
        """Skip all records that are waiting; they count as missed."""
        self.missed += journal.count - self.cursor
        self.cursor = journal.count

    def _forget(self) -> None:
        """Forget entities of a resource manager or a partition that was added or removed: the
        journal has no end of their states."""
        for entity in [entity for entity in self._since if _dropped(entity)]:
            del self._since[entity]
        self.prune()

    def prune(self) -> None:
        """Drop the waiting times of removed queues (2.15)."""
        for key in [key for key in self.waits if not _exists(key[0])]:
            del self.waits[key]

    @property
    def edges(self) -> dict[tuple[str, str, str, str], int]:
        """The number of times each (lifecycle, trigger, from, to) was taken, sorted."""
        known = {(w.lifecycle, w.trigger, w.source, w.target): w for w in self._edges}
        return {edge: self._edges[known[edge]].count for edge in sorted(known)}

    @property
    def remembered(self) -> int:
        """The number of entities whose entry time is kept."""
        return len(self._since)


def _exists(queue: Queue) -> bool:
    return _is_there(queue.partition) and queue.partition.queue(queue.path) is queue


def _dropped(entity: Any) -> bool:
    """Whether the entity's partition has been removed."""
    entity = getattr(entity, "ask", entity)  # the ask of an allocation
    entity = getattr(entity, "app", entity)  # the application of an ask
    home = getattr(entity, "partition", entity)
    return isinstance(home, Partition) and not _is_there(home)


def _is_there(partition: Partition) -> bool:
    return partition.rm.partitions.get(partition.name) is partition
