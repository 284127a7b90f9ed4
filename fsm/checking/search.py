"""The exhaustive search: all worlds that can be reached, the nearest first, and the rules in each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from quadriga.fsm.checking.system import Part, Rule, System
from quadriga.fsm.checking.world import (
    Broken,
    Happening,
    Move,
    Node,
    Overflow,
    Trial,
    Violation,
    World,
    beginning,
    moves,
    outcomes,
)
from quadriga.fsm.lifecycle import Lifecycle
from quadriga.fsm.table import Row

#: Worlds that a search looks at, if nothing else is said.
MAX_STATES = 100_000

Subject = System | Lifecycle[Any, Any, Any]


class Unfinished(AssertionError):
    """The search has met its bound before it has seen everything."""


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a search."""

    states: int
    moves: int
    #: how many moves the farthest state is away
    depth: int
    #: false if there are more states than the bound
    complete: bool
    #: moves left out because more messages would have been on their way than the network allows
    overflows: int
    #: rows, with their parts, that nothing has taken
    untaken: tuple[tuple[str, Row], ...]
    violation: Violation | None

    def __str__(self) -> str:
        end = "" if self.complete else ", not all"
        found = self.violation or "no rule is broken"
        return f"{self.states:,} states{end}, {self.moves:,} moves, {self.depth} deep; {found}"


def alone(lifecycle: Lifecycle[Any, Any, Any], will: Iterable[Any] = (), **options: Any) -> System:
    """A system of one lifecycle, whose name is the part's: every legal trigger may come at any time.

    Those that end a state without a limit come at last, and so do those of ``will``. ``options`` are
    those of ``System`` and of ``Part``.
    """
    rules = ("always", "possible", "eventually")
    of_system = {name: options.pop(name) for name in rules if name in options}
    part = Part(lifecycle.name, lifecycle, may="*", will=("*", *will), **options)
    return System(part, **of_system)


def check(subject: Subject, *, max_states: int = MAX_STATES, **options: Any) -> Report:
    """``search``, which raises the ``Violation`` that it finds, and ``Unfinished`` if the bound is too low."""
    report = search(subject, max_states=max_states, **options)
    if report.violation:
        raise report.violation
    if not report.complete:
        raise Unfinished(f"{max_states:,} states are not all: {report}")
    return report


def search(subject: Subject, *, max_states: int = MAX_STATES, **options: Any) -> Report:
    """Look at every world of a system, or of a lifecycle ``alone`` with ``options``.

    It ends with the first broken rule of ``always`` or step that fails; the other rules are judged when
    all worlds are known. If there are more than ``max_states``, ``possible`` is not judged, and
    ``eventually`` only where all that follows is known.
    """
    system = subject if isinstance(subject, System) else alone(subject, **options)
    run = Search(system, beginning(system))
    violation = run.go(max_states)
    complete = violation is None and len(run.nodes) == run.expanded
    if violation is None:
        if complete and run.possible:
            violation = Violation("possible", next(iter(run.possible)))
        else:
            violation = run.stuck()
    all_rows = [(role.name, row) for role in system.roles.values() for row in role.table.rows]
    untaken = tuple(each for each in all_rows if each not in run.rows)
    depth = len(run.way(len(run.nodes) - 1))
    return Report(len(run.nodes), run.edges, depth, complete, run.overflows, untaken, violation)


class Search:
    """The worlds that are known, from one of them on; with ``helping`` only by moves that help."""

    def __init__(self, system: System, start: Node, *, helping: bool = False) -> None:
        self.system, self._start, self._helping = system, start, helping
        self.nodes: list[Node] = []
        self.index: dict[Node, int] = {}
        #: how each world was reached first: from which other one, by which move
        self.came: list[tuple[int, Move] | None] = []
        #: from which worlds a move that helps leads here
        self.helped: list[list[int]] = []
        self.rows: set[tuple[str, Row | None]] = set()
        self.possible = dict(system.possible)
        self.expanded = self.edges = self.overflows = 0

    def go(self, most: int) -> Violation | None:
        if found := self._add(self._start, None):
            return found
        while self.expanded < len(self.nodes) <= most:
            self.expanded += 1
            if found := self._expand(self.expanded - 1):
                return found
        return None

    def _expand(self, here: int) -> Violation | None:
        system, node = self.system, self.nodes[here]
        for tried, helps in moves(system, node):
            if self._helping and not helps:
                continue
            for move, trial, found in outcomes(system, node, tried):
                if isinstance(found, Overflow):
                    self.overflows += 1
                    continue
                self.rows.update(trial.rows)
                if isinstance(found, Broken):
                    return self._violation(found.kind, str(found), here, move)
                self.edges += 1
                if found not in self.index and (broken := self._add(found, (here, move))):
                    return broken
                if helps:
                    self.helped[self.index[found]].append(here)
        return None

    def _add(self, node: Node, came: tuple[int, Move] | None) -> Violation | None:
        number = self.index[node] = len(self.nodes)
        self.nodes.append(node)
        self.came.append(came)
        self.helped.append([])
        world = World(self.system, node)
        for name in [name for name, rule in self.possible.items() if rule(world)]:
            del self.possible[name]
        rule = broken(self.system, world)
        return self._violation("always", rule, number) if rule else None

    def stuck(self) -> Violation | None:
        """The nearest world from which a rule of ``eventually`` is not reached any more."""
        for name, rule in self.system.eventually.items():
            nearest = self.reaching(rule).find(0)
            if nearest >= 0:
                return self._violation("eventually", name, nearest)
        return None

    def reaching(self, rule: Rule) -> bytearray:
        """Whether each world is one of the rule, or leads to one by moves that help, or is not known to."""
        good = [
            number
            for number, node in enumerate(self.nodes)
            if number >= self.expanded or rule(World(self.system, node))
        ]
        reached = bytearray(len(self.nodes))
        for number in good:
            reached[number] = 1
        for number in good:  # it grows
            for before in self.helped[number]:
                if not reached[before]:
                    reached[before] = 1
                    good.append(before)
        return reached

    def way(self, there: int) -> tuple[Move, ...]:
        """The shortest way to a world."""
        way: list[Move] = []
        while (came := self.came[there]) is not None:
            there = came[0]
            way.append(came[1])
        return tuple(reversed(way))

    def _violation(self, kind: str, rule: str, there: int, last: Move | None = None) -> Violation:
        way = (*self.way(there), *((last,) if last else ()))
        *_, (_, told) = follow(self.system, self._start, way)
        return Violation(kind, rule, way, told)


def broken(system: System, world: World) -> str | None:
    """The name of a rule of ``always`` that does not hold in a world."""
    return next((name for name, rule in system.always.items() if not rule(world)), None)


def follow(
    system: System, found: Node, way: Iterable[Move]
) -> Iterator[tuple[Node | Broken | Overflow, tuple[Happening, ...]]]:
    """Where moves lead with the facts that they have seen, from a world on, as far as they are possible, and all that
    has happened until then."""
    told: tuple[Happening, ...] = ()
    yield found, told
    for move in way:
        if all(each != move._replace(seen=()) for each, _ in moves(system, found)):
            return
        seen = dict(move.seen)
        trial = Trial(system, found, lambda name, values, seen=seen: seen.get(name, values[0]))  # type: ignore[misc]
        result = trial.result(move)
        told += tuple(trial.happenings)
        yield result, told
        if not isinstance(result, Node):
            return
        found = result


def replay(system: System, *way: Move) -> tuple[Happening, ...]:
    """Carry out moves from the beginning, as far as they are possible, and return what happens.

    Raises the ``Violation`` if a rule of ``always`` is broken on the way, or one of ``eventually`` is not
    reached from the end. This is how a counterexample becomes a test (``Violation.as_test``).
    """
    for length, (found, told) in enumerate(follow(system, beginning(system), way)):
        if isinstance(found, Broken):
            raise Violation(found.kind, str(found), way[:length], told)
        if isinstance(found, Node) and (rule := broken(system, World(system, found))):
            raise Violation("always", rule, way[:length], told)
    if length < len(way) or not isinstance(found, Node):
        return told
    for name, goal in system.eventually.items():
        run = Search(system, found, helping=True)
        if run.go(MAX_STATES) or not run.reaching(goal)[0]:
            raise Violation("eventually", name, way, told)
    return told
