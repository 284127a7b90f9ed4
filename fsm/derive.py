"""Lifecycles derived from others: with more rows, with fewer, or with other ones.

Nothing here changes a lifecycle. Each function takes what a lifecycle is made from and returns what
another one is made from, which is checked as any other table is. Lines stay lines: a row for several
states, of which one goes, is a row for the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypedDict

from quadriga.fsm.errors import DefinitionError, did_you_mean, text_of
from quadriga.fsm.table import EVERY, Emitter, Limit, Row, Target, Unbounded
from quadriga.fsm.written import Actions, Lines, actions_by_state, check_lines

_Given = Mapping[Any, Emitter | tuple[Emitter, ...]]


class Parts(TypedDict):
    """The arguments of a lifecycle."""

    name: str
    initial: Any
    final: tuple[Any, ...]
    lasts: dict[Any, Limit]
    rows: Lines
    on_enter: Actions
    on_exit: Actions
    inside: dict[Any, Any]
    renamed: dict[Any, Any]
    stock: bool


def extended(
    parts: Parts,
    rows: Iterable[tuple[Row[Any, Any, Any], ...]],
    lasts: Mapping[Any, Limit],
    final: Iterable[Any],
    on_enter: _Given,
    on_exit: _Given,
    inside: Mapping[Any, Any],
    renamed: Mapping[Any, Any],
) -> Parts:
    """With more rows, after the others, and with more states. A state of ``lasts`` is no longer final, and
    one of ``final`` has no time limit any more. A new state may have the former name of another."""
    final = tuple(final)
    former = {o: n for o, n in parts["renamed"].items() if o not in lasts and o not in final}
    return {
        **parts,
        "rows": (*parts["rows"], *check_lines(parts["name"], rows)),
        "lasts": {s: limit for s, limit in parts["lasts"].items() if s not in final} | dict(lasts),
        "final": tuple(dict.fromkeys((*(s for s in parts["final"] if s not in lasts), *final))),
        "on_enter": _without_nothing({**parts["on_enter"], **actions_by_state(on_enter)}),
        "on_exit": _without_nothing({**parts["on_exit"], **actions_by_state(on_exit)}),
        "inside": parts["inside"] | dict(inside),
        "renamed": former | dict(renamed),
    }


def reduced(
    parts: Parts,
    own_rows: Iterable[Row[Any, Any, Any]],
    triggers: Iterable[Any],
    states: Iterable[Any],
    rows: Iterable[Row[Any, Any, Any]],
    lasts: Mapping[Any, Limit],
) -> Parts:
    """Without all rows of these triggers, without these states and the rows from and to them, and without
    these rows. ``own_rows`` are those that the lines stand for."""
    name, own_rows = parts["name"], tuple(own_rows)
    triggers, states, rows = tuple(triggers), tuple(states), tuple(rows)
    known = (*parts["lasts"], *parts["final"])
    _check_known(name, "trigger", triggers, dict.fromkeys(row.trigger for row in own_rows))
    _check_known(name, "state", states, known)
    gone = {(row.line, row.source) for row in rows}
    for row in rows:
        if not any((row.line, row.source) == (own.line, own.source) for own in own_rows):
            raise DefinitionError(f"{name}: it has no {row}")
    lines = _concrete(parts["rows"], own_rows, lambda row: (row.line, row.source) in gone)
    kept = []
    for number, line in enumerate(lines):
        left = tuple(
            row
            for row in line
            if row.trigger not in triggers
            and row.source not in states
            and _state_of(row.target) not in states
            and (number, row.source) not in gone
        )
        if left:
            kept.append(left)
    entered = {_state_of(row.target) for line in kept for row in line}
    moving = [row for line in kept for row in line if row.target is not None]
    some = {row.source for row in moving}
    return {
        **parts,
        "rows": tuple(kept),
        "lasts": {s: limit for s, limit in parts["lasts"].items() if s not in states} | dict(lasts),
        "final": tuple(s for s in parts["final"] if s not in states),
        # what no row does any more is not done
        "on_enter": {s: each for s, each in parts["on_enter"].items() if s in entered},
        "on_exit": {
            s: each
            for s, each in parts["on_exit"].items()
            if s not in states and (s in some or EVERY in some)
        },
        "inside": {s: each for s, each in parts["inside"].items() if s not in states},
        "renamed": {o: n for o, n in parts["renamed"].items() if n not in states},
    }


def replaced(
    parts: Parts,
    own_rows: Iterable[Row[Any, Any, Any]],
    given: Iterable[tuple[Row[Any, Any, Any], ...]],
    lasts: Mapping[Any, Limit],
) -> Parts:
    """With other rows for the triggers and source states of the given lines, which come where the first of
    the old ones was."""
    name, own_rows = parts["name"], tuple(own_rows)
    new = check_lines(name, given)
    first: list[int] = []
    gone: set[tuple[Any, Any]] = set()
    for line in new:
        pairs = {pair for row in line for pair in _pairs(name, row, own_rows)}
        first.append(min(row.line for row in own_rows if (row.trigger, row.source) in pairs))
        gone |= pairs
    lines = _concrete(parts["rows"], own_rows, lambda row: (row.trigger, row.source) in gone)
    made: list[tuple[Row[Any, Any, Any], ...]] = []
    for number, line in enumerate(lines):
        made += [each for each, at in zip(new, first, strict=True) if at == number]
        if left := tuple(row for row in line if (row.trigger, row.source) not in gone):
            made.append(left)
    return {**parts, "rows": tuple(made), "lasts": parts["lasts"] | dict(lasts)}


def is_text(parts: Parts) -> bool:
    """Whether all states and triggers are plain strings."""
    names = [*parts["lasts"], *parts["final"], *(r.trigger for line in parts["rows"] for r in line)]
    return all(name.__class__ is str for name in names)


def as_text(parts: Parts) -> Parts:
    """With the texts of all states and triggers, for files and diagrams."""

    def text(name: Any) -> Any:
        return name if name is None or isinstance(name, Target) else text_of(name)

    def limit(lasts: Limit) -> Limit:
        if isinstance(lasts, Unbounded):
            return Unbounded(text(lasts.ends))
        return replace(lasts, then=text(lasts.then))

    return {
        **parts,
        "initial": text(parts["initial"]),
        "final": tuple(map(text, parts["final"])),
        "lasts": {text(state): limit(lasts) for state, lasts in parts["lasts"].items()},
        "rows": tuple(
            tuple(
                replace(
                    row,
                    trigger=text(row.trigger),
                    source=text(row.source),
                    target=text(row.target),
                )
                for row in line
            )
            for line in parts["rows"]
        ),
        "on_enter": {text(state): each for state, each in parts["on_enter"].items()},
        "on_exit": {text(state): each for state, each in parts["on_exit"].items()},
        "renamed": {text(old): text(new) for old, new in parts["renamed"].items()},
    }


def _pairs(
    name: str, row: Row[Any, Any, Any], own_rows: tuple[Row[Any, Any, Any], ...]
) -> set[tuple[Any, Any]]:
    """The triggers and source states of the rows that a row replaces."""
    known = {(each.trigger, each.source) for each in own_rows}
    if row.source == EVERY:
        found = {pair for pair in known if pair[0] == row.trigger and pair[1] != row.target}
    else:
        found = known & {(row.trigger, row.source)}
    if not found:
        triggers = dict.fromkeys(trigger for trigger, _ in known)
        raise DefinitionError(
            f"{name}: there is no row {text_of(row.trigger)!r} from {text_of(row.source)} to replace"
            f"{did_you_mean(row.trigger, triggers)}; extend() adds rows"
        )
    return found


def _concrete(lines: Lines, own_rows: Iterable[Row[Any, Any, Any]], touched: Any) -> Lines:
    """The lines, but one with a ``"*"`` that loses some of its states names the states themselves."""
    by_line: dict[int, list[Row[Any, Any, Any]]] = {}
    for row in own_rows:
        by_line.setdefault(row.line, []).append(row)
    return tuple(
        tuple(by_line[number])
        if any(row.source == EVERY for row in line) and any(map(touched, by_line[number]))
        else line
        for number, line in enumerate(lines)
    )


def _state_of(target: Any) -> Any:
    """The state that a target names; ``history`` names one too."""
    return target.state if isinstance(target, Target) else target


def _check_known(name: str, what: str, given: Iterable[Any], known: Iterable[Any]) -> None:
    known = tuple(known)
    for each in given:
        if each not in known:
            close = did_you_mean(each, known)
            raise DefinitionError(f"{name}: it has no {what} {text_of(each)!r}{close}")


def _without_nothing(actions: Actions) -> Actions:
    return {state: emitters for state, emitters in actions.items() if emitters}
