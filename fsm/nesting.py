"""States that are lifecycles themselves, and how they become one flat table.

``Lifecycle(..., inside={"On": HEATER})`` says that the state On is the lifecycle HEATER. Here the states
of both become one flat table: ``On_Warming`` is the state Warming of HEATER inside On. A row from On
becomes a row from each state inside, unless rows from the inner states always take its trigger; a row to
On leads to the initial state of HEATER. So ``fire``, the paths of ``explore`` and the coverage of tests
see plain rows, and a lifecycle without inner ones costs nothing more than before.

The words: a *composite* is a state that is a lifecycle; a *leaf* is a state that is not. Entities are
always in a leaf. The names are joined as the library's ``HierarchicalMachine`` joins them.
See D170 and D172.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

from quadriga.fsm.errors import DefinitionError, did_you_mean, text_of
from quadriga.fsm.history import AsyncWas, History, Remember, Was
from quadriga.fsm.machine import is_async
from quadriga.fsm.table import Emitter, Guard, Limit, Row, Unbounded, Within
from quadriga.fsm.written import Actions, add_actions

#: Between the name of a composite and that of a state inside, as in the library.
SEPARATOR: Final = "_"


@dataclass(frozen=True, slots=True)
class Composite:
    """A state that is a lifecycle: the states directly inside, and all leaves inside, in order."""

    name: str
    initial: str
    children: tuple[str, ...]
    leaves: tuple[str, ...]
    #: How long the composite as a whole may last, whatever happens inside.
    lasts: Limit


class WrittenTable:
    """What is written of a lifecycle: its own states and rows, and the lifecycles inside."""

    name: str
    entry: Any
    own_final: tuple[Any, ...]
    own_lasts: dict[Any, Limit]
    own_rows: tuple[Row[Any, Any, Any], ...]
    inside: dict[Any, Any]
    on_enter: Actions
    on_exit: Actions


class Nesting:
    """A table with its composites, flat.

    ``nested_rows`` are the rows as they are written, with composites and ``History`` in them; ``rows`` are
    those of the leaves, in the order in which they are tried. ``line`` refers to the same line in both.
    """

    def __init__(self, table: WrittenTable) -> None:
        self.name = table.name
        self.composites: dict[str, Composite] = {}
        self._limits: dict[str, Limit] = {}
        #: The emitters for entering and for leaving each leaf and composite.
        self.on_enter: dict[str, tuple[Emitter, ...]] = {}
        self.on_exit: dict[str, tuple[Emitter, ...]] = {}
        #: The leaves and composites that some row enters and leaves.
        self.entered_by_rows: set[str] = set()
        self.left_by_rows: set[str] = set()
        #: The leaves that end the lifecycle inside of a composite, with the composite.
        self.ends: dict[str, str] = {}
        self._lines = 0
        written: list[Row] = []
        self.children = self._collect(table, "", written)
        self.leaves = tuple(leaf for child in self.children for leaf in self.leaves_of(child))
        # the innermost first: they decide before those around them
        self.nested_rows = tuple(sorted(written, key=lambda row: -len(_path(row.source))))
        for row in self.nested_rows:
            self._check(row)
        self.initial = self.enter(table.entry)
        self.final = table.own_final
        for state in self._limits:
            if state not in self.composites and state not in self.leaves:
                close = did_you_mean(state, sorted((*self.leaves, *self.composites)))
                raise self._wrong(f"unknown state {state!r} of lasts{close}")
        self._remembered = {
            row.target.state for row in self.nested_rows if isinstance(row.target, History)
        }
        #: For each written row, its flat rows by leaf; several for each leaf if it returns to history.
        self.expanded: list[tuple[Row, dict[str, tuple[Row, ...]]]] = []
        #: The composites that are left and entered, by source, trigger and target of a flat row.
        self.crossings: dict[tuple[str, str, str], tuple[tuple[str, ...], tuple[str, ...]]] = {}
        self._expand()
        self.rows = tuple(r for _, each in self.expanded for flat in each.values() for r in flat)
        self.lasts = {leaf: self._limit(leaf) for leaf in self.leaves if leaf not in self.final}
        for composite in self.composites.values():
            self._check_limit(composite)

    def nested_rows_of(self, rows: tuple[Row, ...]) -> tuple[Row, ...]:
        """The rows as they are written, for the rows of a machine that may have been changed since."""
        if rows == self.rows:
            return self.nested_rows
        flat = [
            (written, [row for each in by_leaf.values() for row in each])
            for written, by_leaf in self.expanded
        ]
        kept = (written for written, meant in flat if any(row in rows for row in meant))
        return (*kept, *(row for row in rows if not any(row in meant for _, meant in flat)))

    # -- states ------------------------------------------------------------------------------

    def leaves_of(self, state: str) -> tuple[str, ...]:
        """The leaves inside of a state; a leaf itself."""
        composite = self.composites.get(state)
        return composite.leaves if composite else (state,)

    def enter(self, state: str) -> str:
        """The leaf that is entered with a state."""
        while composite := self.composites.get(state):
            state = composite.initial
        return state

    def _collect(self, table: WrittenTable, prefix: str, written: list[Row]) -> tuple[str, ...]:
        """Take the states and rows of a table, those around before those inside."""
        inside = table.inside
        for state in inside:
            if state in table.own_final:
                raise self._wrong(f"state {prefix}{state} is final and cannot be a lifecycle")
            if state not in table.own_lasts:
                close = did_you_mean(state, table.own_lasts)
                raise self._wrong(f"unknown state {state!r} of inside{close}")
            if not hasattr(inside[state], "own_rows"):
                raise self._wrong(f"state {prefix}{state}: {inside[state]!r} is not a lifecycle")
            if (entry := inside[state].entry) not in inside[state].children:
                raise self._wrong(
                    f"state {prefix}{state}: its initial state {entry} is not one of its own, but lies deeper"
                )
        named = dict.fromkeys((*table.own_lasts, *table.own_final))
        own = [state for state in named if not names_inside(state, inside)]
        for state in own:
            if isinstance(state, Enum):
                raise self._wrong(
                    f"state {prefix}{text_of(state)} is a member of an Enum; in a nested lifecycle "
                    "the names of states are joined, so they are strings"
                )
            if SEPARATOR in state or not state:
                raise self._wrong(
                    f"state {prefix}{state}: in a nested lifecycle {SEPARATOR!r} separates a state "
                    "from the one around it, so no name may contain it"
                )
        for state, limit in table.own_lasts.items():
            self._limits.setdefault(f"{prefix}{state}", limit)
        for collected, actions in ((self.on_enter, table.on_enter), (self.on_exit, table.on_exit)):
            for state, emitters in actions.items():
                collected.setdefault(f"{prefix}{state}", emitters)
        offset = self._lines
        for row in table.own_rows:
            self._lines = max(self._lines, offset + row.line + 1)
            written.append(
                replace(
                    row,
                    source=f"{prefix}{row.source}",
                    target=_prefixed(prefix, row.target),
                    line=offset + row.line,
                )
            )
        for state, inner in inside.items():
            name = f"{prefix}{state}"
            below = f"{name}{SEPARATOR}"
            children = self._collect(inner, below, written)
            for final in inner.own_final:
                self.ends[f"{below}{final}"] = name
            self.composites[name] = Composite(
                name,
                f"{below}{inner.entry}",
                children,
                tuple(leaf for child in children for leaf in self.leaves_of(child)),
                self._limits[name],
            )
        return tuple(f"{prefix}{state}" for state in own)

    # -- rows --------------------------------------------------------------------------------

    def _check(self, row: Row) -> None:
        known = (*self.leaves, *self.composites)
        target = row.target
        for state in (row.source, target.state if isinstance(target, History) else target):
            if state is not None and state not in known:
                close = did_you_mean(state, sorted(known))
                raise self._wrong(f"{row}: unknown state {state!r}{close}")
        if isinstance(target, History):
            if target.state not in self.composites:
                raise self._wrong(f"{row}: {target.state} is not a lifecycle, so it has no history")
            if _is_within(row.source, target.state):
                raise self._wrong(
                    f"{row}: {row.source} is within {target.state}, so it was not left"
                )
            if _is_within(target.state, row.source):
                raise self._wrong(
                    f"{row}: {row.source} contains {target.state}; write its own states"
                )

    def _expand(self) -> None:
        taken: dict[tuple[str, str], list[Guard | None]] = {}
        for row in self.nested_rows:
            flat: dict[str, tuple[Row, ...]] = {}
            for leaf in self.leaves_of(row.source):
                earlier = taken.setdefault((row.trigger, leaf), [])
                if leaf == row.source or not any(g is None or g == row.guard for g in earlier):
                    flat[leaf] = tuple(self._flat(row, leaf))
                    earlier.append(row.guard)
            for each in flat.values():
                for one in each:
                    self._add_crossing(row, one)
            if not flat:
                raise self._wrong(f"{row}: rows of the states inside always take this trigger")
            self.expanded.append((row, flat))

    def _flat(self, row: Row, leaf: str) -> Iterator[Row]:
        """The rows from one leaf that a written row stands for."""
        target = row.target
        row = replace(row, source=leaf)
        if isinstance(target, History):
            home = self.enter(target.state)
            for back, last in self._ways_back(target):
                if back != home:
                    was_in = AsyncWas if row.guard is not None and is_async(row.guard) else Was
                    guard = was_in(target.state, back, last, row.guard)
                    yield self._moving(replace(row, guard=guard), target, back)
            yield self._moving(row, target, home)
        elif target is None:
            yield row
        else:
            yield self._moving(row, target, self.enter(target))

    def _moving(self, row: Row, written: str | History, target: str) -> Row:
        """A row from leaf to leaf with all its emitters: those of the states that it leaves, the innermost
        first, its own, those of the states that it enters, the outermost first, and at last history."""
        common = self._common(row.source, written)
        left = tuple(reversed(self.around(row.source)[common:]))
        exits = (row.source, *left)
        enters = (*self.around(target)[common:], target)
        self.left_by_rows.update(exits)
        self.entered_by_rows.update(enters)
        moving = add_actions(
            replace(row, target=target),
            tuple(emitter for state in exits for emitter in self.on_exit.get(state, ())),
            tuple(emitter for state in enters for emitter in self.on_enter.get(state, ())),
        )
        if remembered := tuple(composite for composite in left if composite in self._remembered):
            remember = Remember(remembered, row.source)
            moving = replace(moving, emit=(*moving.emit, remember), own=moving.own_emit)
        return moving

    def _ways_back(self, target: History) -> Iterator[tuple[str, frozenset[str]]]:
        """The leaves that a row may return to, each with the leaves that were left for that."""
        composite = self.composites[target.state]
        for state in composite.leaves if target.deep else composite.children:
            yield self.enter(state), frozenset(self.leaves_of(state))

    def _add_crossing(self, written: Row, flat: Row) -> None:
        """Which composites a flat row leaves, innermost first, and enters, outermost first.

        A row to the leaf itself or to a composite around it leaves that state and enters it again.
        """
        if flat.target is None:
            return
        common = self._common(flat.source, written.target)
        left = tuple(reversed(self.around(flat.source)[common:]))
        entered = self.around(flat.target)[common:]
        edge = (flat.source, flat.trigger, flat.target)
        crossed = self.crossings.setdefault(edge, (left, entered))
        if crossed != (left, entered):  # a timer of the composite could not tell them apart
            raise self._wrong(
                f"{flat}: another alternative leads there too, and only one of them leaves "
                f"{(left or crossed[0])[-1]}"
            )

    def around(self, state: Any) -> tuple[str, ...]:
        """The composites around a state, the outermost first."""
        parts = _path(state)
        return tuple(SEPARATOR.join(parts[:n]) for n in range(1, len(parts)))

    def _common(self, leaf: str, target: str | History | None) -> int:
        """How many of the composites around a leaf are not left on the way to a target as written."""
        here = _path(leaf)
        if target is None:
            return len(here)
        goal = _path(target.state if isinstance(target, History) else target)
        same = 0
        while same < min(len(here), len(goal)) and here[same] == goal[same]:
            same += 1
        return same - 1 if same == len(goal) else same

    def rename_history(self, entity: Any, renamed: Mapping[Any, Any]) -> bool:
        """Give the states in a stored history their present names; those that are gone are forgotten.

        Returns whether anything has changed.
        """
        left: dict[str, str] = getattr(entity, "history", None) or {}
        if not self._remembered:
            return False  # the attribute, if there is one, is not ours
        present = {}
        for composite, former in left.items():
            leaf = renamed.get(former, former)
            around = self.around(leaf) if leaf in self.leaves else ()
            depth = composite.count(SEPARATOR)
            if depth < len(around):
                present[around[depth]] = leaf
        if present == left:
            return False
        left.clear()
        left.update(present)
        return True

    # -- limits ------------------------------------------------------------------------------

    def _limit(self, leaf: str) -> Limit:
        if leaf in self._limits:
            return self._limits[leaf]
        # final in the inner lifecycle, which says nothing about it: a row of those around leads on. A row
        # from the composite does not count, because that leaves it in the midst of its work as well.
        for row in self.nested_rows:
            if row.source == leaf and row.target not in (None, leaf):
                return Unbounded(row.trigger)
        raise self._wrong(
            f"state {leaf} ends the lifecycle inside {self.ends[leaf]}, and no row leads on from it; "
            "write one, or its limit in lasts"
        )

    def _check_limit(self, composite: Composite) -> None:
        limit = composite.lasts
        from_inside = [row for row in self.rows if row.source in composite.leaves]
        if isinstance(limit, Unbounded):
            leads_out = {
                r.trigger for r in from_inside if r.target and r.target not in composite.leaves
            }
            if limit.ends not in leads_out:
                close = did_you_mean(limit.ends, leads_out)
                raise self._wrong(
                    f"state {composite.name}: unbounded, but {limit.ends!r} does not lead out of it{close}"
                )
        elif isinstance(limit, Within):
            if limit.ns <= 0:
                raise self._wrong(f"state {composite.name}: its time limit is not positive")
            legal = {(row.source, row.trigger) for row in from_inside}
            for leaf in composite.leaves:
                if limit.then is not None and (leaf, limit.then) not in legal:
                    raise self._wrong(
                        f"state {composite.name}: its time limit fires {limit.then!r}, "
                        f"which is not legal in {leaf}"
                    )

    def _wrong(self, what: str) -> DefinitionError:
        return DefinitionError(f"{self.name}: {what}")


def flatten(table: WrittenTable) -> Nesting | None:
    """The flat form of a table with composites; ``None`` if it has none. Raises ``DefinitionError``."""
    return Nesting(table) if table.inside else None


def names_inside(state: Any, composites: Iterable[Any]) -> bool:
    """Whether a name in an outer table is that of a state inside of one of its composites."""
    return isinstance(state, str) and any(
        state.startswith(f"{each}{SEPARATOR}") for each in composites
    )


def _path(state: str) -> list[str]:
    return state.split(SEPARATOR)


def _is_within(state: str, around: str) -> bool:
    return state == around or state.startswith(f"{around}{SEPARATOR}")


def _prefixed(prefix: str, target: Any) -> Any:
    if isinstance(target, History):
        return replace(target, state=f"{prefix}{target.state}")
    return None if target is None else f"{prefix}{target}"
