"""What the journal tells of lives: which edges were taken, how long states lasted, how long pods
waited, what became of placeholders.

The journal is a ring that keeps going round, so it is followed: every record is looked at once, in
batches, on the thread of whoever owns the scheduler. Time is the scheduler's own; the same history
gives the same numbers. A decision writes two or three records, so what is done for each counts.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from quadriga.core.model.partition import Partition
from quadriga.fsm import LIFECYCLES
from quadriga.fsm import allocation as allocation_fsm
from quadriga.fsm import application as application_fsm
from quadriga.fsm import ask as ask_fsm
from quadriga.fsm.table import SECOND, Edge
from quadriga.web.metrics.families import Histogram

if TYPE_CHECKING:
    from quadriga.core.model.application import Application
    from quadriga.core.model.queue import Queue
    from quadriga.core.runtime.journal import Journal

__all__ = ["STATE_BOUNDS", "WAIT_BOUNDS", "Lives"]


def _bounds(*seconds: float) -> tuple[int, ...]:
    return tuple(round(each * SECOND) for each in seconds)


#: ns; from one round of scheduling to the three days for which ended applications are remembered
STATE_BOUNDS: Final = _bounds(0.01, 0.1, 1, 5, 15, 60, 300, 900, 3600, 14400, 86400, 259200)
WAIT_BOUNDS: Final = _bounds(0.01, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 14400, 86400)

#: states in which everybody arrives at an instant that is written down with them
_BEGAN: Final[dict[tuple[str, str], str]] = {
    ("ask", ask_fsm.PENDING): "created",
    ("allocation", allocation_fsm.ALLOCATED): "created",
    ("application", application_fsm.NEW): "submitted",
    **{("application", state): "finished" for state in application_fsm.ENDED},
}

#: causes that do not place anything here: an allocation is made by a decision, or when the
#: placeholder before it is confirmed to be gone; what a restart brings back has not waited here
_BROUGHT: Final = frozenset({"AllocationRequest.allocations", "NodeRequest.nodes"})

#: what there is to do for an edge, beside counting it
_NOTHING, _PLACED, _TIMED, _MOVED = 0, 1, 2, 3


class _Edge:
    """One edge of a lifecycle: how often it was taken, and what is to be done when it is."""

    __slots__ = ("began", "count", "enters", "kind", "lasted")

    def __init__(self, lifecycle: str, source: str, target: str) -> None:
        table = LIFECYCLES[lifecycle]
        self.count = 0
        #: how long those who took it had been in the state that they left (ns), of this batch
        self.lasted: list[int] = []
        self.began = _BEGAN.get((lifecycle, source))
        #: when it was entered has to be remembered until the state is left
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


class Lives:
    """Follows one scheduler's journal, from its first record on as far as that is still there."""

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
        #: the number of the next record to look at, and how many had gone before anybody looked
        self.cursor = 0
        self.missed = 0
        self._edges: dict[Edge, _Edge] = {}
        #: how long those who have left a state had been in it, by (lifecycle, state)
        self.lasted: dict[tuple[str, str], Histogram] = {}
        #: how long it took until something was allocated, by leaf and whether to a placeholder
        self.waits: dict[tuple[Queue, bool], Histogram] = {}
        #: releases that the scheduler asked for, by reason; states that placeholders have entered
        self.releases: Counter[str] = Counter()
        self.placeholders: Counter[str] = Counter()
        #: when they entered the state they are in (ns), for those who do not know it themselves
        self._since: dict[Any, int] = {}

    def follow(self, journal: Journal, most: int | None = None) -> None:
        """Look at what has come since the last time, at ``most`` so many records."""
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
        """Enter the durations of a batch into their histograms."""
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
        """Go on behind what there is now; it counts as missed."""
        self.missed += journal.count - self.cursor
        self.cursor = journal.count

    def _forget(self) -> None:
        """A resource manager came or left, or a partition: what was there has no end that is written
        down."""
        for entity in [entity for entity in self._since if _dropped(entity)]:
            del self._since[entity]
        self.prune()

    def prune(self) -> None:
        """Queues that are gone take their waits along (2.15)."""
        for key in [key for key in self.waits if not _exists(key[0])]:
            del self.waits[key]

    @property
    def edges(self) -> dict[tuple[str, str, str, str], int]:
        """How often each (lifecycle, trigger, from, to) was taken, in order."""
        known = {(w.lifecycle, w.trigger, w.source, w.target): w for w in self._edges}
        return {edge: self._edges[known[edge]].count for edge in sorted(known)}

    @property
    def remembered(self) -> int:
        """Of how many entities it remembers since when they are in their state."""
        return len(self._since)


def _exists(queue: Queue) -> bool:
    return _is_there(queue.partition) and queue.partition.queue(queue.path) is queue


def _dropped(entity: Any) -> bool:
    """Whether its partition is no longer anybody's."""
    entity = getattr(entity, "ask", entity)  # of an allocation
    entity = getattr(entity, "app", entity)  # of an ask
    home = getattr(entity, "partition", entity)
    return isinstance(home, Partition) and not _is_there(home)


def _is_there(partition: Partition) -> bool:
    return partition.rm.partitions.get(partition.name) is partition
