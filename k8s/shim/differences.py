"""Differences that an audit has found between the cluster, the shim and the core (K176).

A difference found once may be a change that is still under way. One that the next audit finds again with the
same values stands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

#: a pod that the API server has and the shim does not have in that form, or the other way round
WATCHED: Final = "watched"
#: a pod that the cache counts on a node although it was not assumed there
ASSUMED: Final = "assumed"
#: a node that only one side has, its capacity, or whether it accepts new pods
NODE: Final = "node"
CAPACITY: Final = "capacity"
SCHEDULABLE: Final = "schedulable"
#: what a pod uses on its node, whether the pod has our scheduler name or another one
POD: Final = "pod"
FOREIGN: Final = "foreign"
#: an ask or application that only one side has, or the size of an ask
ASK: Final = "ask"
APPLICATION: Final = "application"

#: stands for the value of a side that has nothing
NOTHING: Final = "nothing"

KINDS: Final = (WATCHED, ASSUMED, NODE, CAPACITY, SCHEDULABLE, POD, FOREIGN, ASK, APPLICATION)


class Difference(NamedTuple):
    """One difference. ``where`` is a node, an application or a namespace; ``what`` is a pod's UID or the name
    of the node or application. ``cluster`` and ``core`` are both values as texts: what the cluster has, and
    what is counted."""

    kind: str
    where: str
    what: str
    cluster: str
    core: str


class Report(NamedTuple):
    """Results of the last completed audit. ``at`` is in ns; ``number`` counts all audits; ``compared`` counts
    the compared objects by kind; ``fleeting`` those that differed for the first time."""

    at: int
    number: int
    #: whether the core's state was compared too; it is available only in the same process
    with_core: bool
    compared: dict[str, int]
    standing: tuple[Difference, ...]
    fleeting: int


class Audit:
    """The audit under way and the results of earlier ones."""

    def __init__(self) -> None:
        #: no audit has begun, or it was abandoned
        self.runs = False
        self.with_core = False
        #: each difference with what repairs it: a pod or the id of an application
        self.found: dict[Difference, Any] = {}
        self.compared: Counter[str] = Counter()
        #: how many differences have stood so far, by kind; each counts once
        self.stood: Counter[str] = Counter()
        self.report: Report | None = None
        self._before: dict[Difference, Any] = {}
        self._standing: frozenset[Difference] = frozenset()
        self._number = 0

    def begin(self, with_core: bool) -> None:
        """Start an audit."""
        self.runs, self.with_core = True, with_core
        self.found = {}
        self.compared = Counter()

    def give_up(self) -> None:
        """Abandon the audit: its results are meaningless because the core receives everything again."""
        self.runs = False
        self._before, self._standing = {}, frozenset()

    def differs(
        self, kind: str, where: str, what: str, cluster: str, core: str, subject: Any = None
    ) -> None:
        """Note a difference."""
        self.found[Difference(kind, where, what, cluster, core)] = subject

    def end(self, now: int) -> Iterator[tuple[Difference, Any, bool]]:
        """End the audit and yield the differences that stand, with what repairs each, and whether it is new."""
        self.runs = False
        before, self._before = self._before, self.found
        standing = [each for each in self.found if each in before]
        known, self._standing = self._standing, frozenset(standing)
        self._number += 1
        self.report = Report(
            now,
            self._number,
            self.with_core,
            dict(self.compared),
            tuple(standing),
            len(self.found) - len(standing),
        )
        for each in standing:
            is_new = each not in known
            self.stood[each.kind] += is_new
            yield each, self.found[each], is_new
