"""What an audit has found: differences between the cluster, the shim and the core (K176).

A difference that one audit finds may be a change on its way. One that the next audit finds again, with the
same values, stands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

__all__ = ["KINDS", "NOTHING", "Audit", "Difference", "Report"]

#: of a pod that the API server has and the shim does not know as it is, or the other way round
WATCHED: Final = "watched"
#: of a pod that the cache counts on a node that nobody has chosen for it
ASSUMED: Final = "assumed"
#: of a node that only one side knows; of its capacity; of whether it takes new pods
NODE: Final = "node"
CAPACITY: Final = "capacity"
SCHEDULABLE: Final = "schedulable"
#: of what a pod takes on its node: one of ours, or one of another scheduler
POD: Final = "pod"
FOREIGN: Final = "foreign"
#: of an ask, and of an application, that only one side knows, and of the size of an ask
ASK: Final = "ask"
APPLICATION: Final = "application"

#: the value of a side that has nothing of the kind
NOTHING: Final = "nothing"

KINDS: Final = (WATCHED, ASSUMED, NODE, CAPACITY, SCHEDULABLE, POD, FOREIGN, ASK, APPLICATION)


class Difference(NamedTuple):
    """``where`` is a node, an application or a namespace, ``what`` a pod's UID or the name of the node or
    application. ``cluster`` and ``core`` are the two values as texts: what the cluster has, and what is
    counted."""

    kind: str
    where: str
    what: str
    cluster: str
    core: str


class Report(NamedTuple):
    """The last audit that came to its end. ``at`` in ns; ``number`` counts all audits. ``compared`` has
    the things that were compared, by kind; ``fleeting`` those that differed for the first time."""

    at: int
    number: int
    #: whether the core's state was compared too: it is at hand in this process only
    with_core: bool
    compared: dict[str, int]
    standing: tuple[Difference, ...]
    fleeting: int


class Audit:
    """The audit that is under way, and what is left of those before."""

    def __init__(self) -> None:
        #: no audit has begun, or it was given up
        self.runs = False
        self.with_core = False
        #: with what mends them: a pod, or the id of an application
        self.found: dict[Difference, Any] = {}
        self.compared: Counter[str] = Counter()
        #: how many have stood so far, by kind; each is counted once
        self.stood: Counter[str] = Counter()
        self.report: Report | None = None
        self._before: dict[Difference, Any] = {}
        self._standing: frozenset[Difference] = frozenset()
        self._number = 0

    def begin(self, with_core: bool) -> None:
        self.runs, self.with_core = True, with_core
        self.found = {}
        self.compared = Counter()

    def give_up(self) -> None:
        """What was found says nothing: the core is being told everything anew."""
        self.runs = False
        self._before, self._standing = {}, frozenset()

    def differs(
        self, kind: str, where: str, what: str, cluster: str, core: str, subject: Any = None
    ) -> None:
        self.found[Difference(kind, where, what, cluster, core)] = subject

    def end(self, now: int) -> Iterator[tuple[Difference, Any, bool]]:
        """The differences that stand, with what mends them, and whether each of them is new."""
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
