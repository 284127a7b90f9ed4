"""The checks that every table must pass before it becomes a machine. Each error names the row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from inspect import signature
from typing import Any, Final

from quadriga.fsm.errors import DefinitionError, Name, did_you_mean, library_name, text_of
from quadriga.fsm.reading import ReadableTable
from quadriga.fsm.table import Limit, Row, Unbounded, Within, atoms, name_of
from quadriga.fsm.written import takes_always

#: What is missing if no declared state resembles an unknown one.
_DECLARED: Final = "; lasts names every state that is not final, with its time limit"


def validate(
    name: str,
    initial: Name,
    final: tuple[Name, ...],
    lasts: Mapping[Any, Limit],
    rows: tuple[Row, ...],
) -> None:
    """Raise ``DefinitionError`` for the first mistake in the table."""

    def wrong(what: str) -> DefinitionError:
        return DefinitionError(f"{name}: {what}")

    states = dict.fromkeys((*lasts, *final))
    if problem := _problem_of_names(states, rows):
        raise wrong(problem)
    if both := sorted(text_of(state) for state in set(lasts) & set(final)):
        raise wrong(f"final state {both[0]} cannot have a time limit")
    if initial not in states:
        close = did_you_mean(initial, states) or _DECLARED
        raise wrong(f"initial state {text_of(initial)!r} is not declared{close}")
    for row in rows:
        if problem := _problem_of_row(row, states, final):
            raise wrong(f"{row}: {problem}")
    if shadow := _shadowed(rows):
        raise wrong(f"{shadow}: an earlier row always takes this trigger")
    if open_end := _open_ended(rows):
        raise wrong(f"{open_end}: the last alternative is guarded; end with a row without a guard")
    for state in lasts:
        if not any(r.source == state and r.target not in (None, state) for r in rows):
            raise wrong(f"state {text_of(state)} has no exit and is not declared final")
        if problem := _problem_of_limit(state, lasts[state], rows):
            raise wrong(f"state {text_of(state)}: {problem}")
    reachable = _reachable(initial, rows)
    if lost := sorted(text_of(state) for state in states if state not in reachable):
        raise wrong(f"state {lost[0]} cannot be reached from {text_of(initial)}")


def _problem_of_names(states: Iterable[object], rows: Iterable[Row]) -> str | None:
    """Names of the wrong type, and two that have the same text or the same name in the library."""
    texts: dict[str, object] = {}
    for state in states:
        if not isinstance(state, Name):
            return f"state {state!r} is neither a string nor a member of an Enum"
        for text in dict.fromkeys((text_of(state), library_name(state))):
            if texts.setdefault(text, state) != state:
                return f"the states {texts[text]!r} and {state!r} have the same name {text!r}"
    triggers: dict[str, object] = {}
    for row in rows:
        if triggers.setdefault(text_of(row.trigger), row.trigger) != row.trigger:
            other = triggers[text_of(row.trigger)]
            return f"{row}: the triggers {other!r} and {row.trigger!r} have the same name"
    return None


def _problem_of_row(row: Row, states: Iterable[Name], final: Sequence[Name]) -> str | None:
    for state in (row.source, row.target):
        if state is not None and state not in states:
            return f"unknown state {text_of(state)!r}{did_you_mean(state, states) or _DECLARED}"
    if row.source in final:
        return f"final state {text_of(row.source)} has an exit"
    trigger = text_of(row.trigger)
    if not trigger.isidentifier() or trigger == "state":
        return f"trigger {trigger!r} is not a usable name"
    called = [("guard", each, "info") for each in atoms(row.guard) if each is not None]
    for what, function, second in (*called, *(("emitter", each, "fired") for each in row.emit)):
        if problem := problem_of_call(function, second):
            return f"{what} {problem}"
    if row.target is None and not row.emit and not row.why:
        return "it changes nothing; say why"
    return None


def problem_of_call(function: Any, second: str) -> str | None:
    """What is wrong with a guard or an emitter: it is called with the entity and a second argument."""
    if not callable(function):
        return f"{function!r} is not callable (names would fail only when fired)"
    try:
        takes = signature(function)
    except (TypeError, ValueError):  # made in C, which does not always say
        return None
    try:
        takes.bind(None, None)
    except TypeError:
        return f"{name_of(function)}{takes} is called with two arguments: the entity, and {second}"
    return None


def _shadowed(rows: Iterable[Row]) -> Row | None:
    taken: dict[tuple[Name, Name], list[Row]] = {}
    for row in rows:
        earlier = taken.setdefault((row.trigger, row.source), [])
        if any(takes_always(each, row) for each in earlier):
            return row
        earlier.append(row)
    return None


def _open_ended(rows: Iterable[Row]) -> Row | None:
    last = {(row.trigger, row.source): row for row in rows}
    return next((row for row in last.values() if row.guard is not None), None)


def _problem_of_limit(state: Name, limit: Limit, rows: tuple[Row, ...]) -> str | None:
    legal = dict.fromkeys(r.trigger for r in rows if r.source == state)
    if isinstance(limit, Unbounded):
        if not any(
            r.trigger == limit.ends and r.source == state and r.target not in (None, state)
            for r in rows
        ):
            return (
                f"unbounded, but {text_of(limit.ends)!r} does not lead out of it"
                f"{did_you_mean(limit.ends, legal)}"
            )
        return None
    if not isinstance(limit, Within):
        return f"its limit is {limit!r}; write within(...) or unbounded(...)"
    if problem := _problem_of_duration("time limit", limit.ns):
        return problem
    if limit.then is not None and limit.then not in legal:
        return (
            f"its time limit fires {text_of(limit.then)!r}, which is not legal there"
            f"{did_you_mean(limit.then, legal)}"
        )
    if limit.backoff_to is not None:
        if problem := _problem_of_duration("backoff_to", limit.backoff_to):
            return problem
        if limit.then is None:
            return "its backoff_to has no effect without then="
        if limit.backoff_to < limit.ns:
            return "its backoff_to is shorter than its time limit"
    return None


def _problem_of_duration(what: str, ns: object) -> str | None:
    if not isinstance(ns, int) or isinstance(ns, bool):
        return (
            f"its {what} is {ns!r}, a {type(ns).__name__}; "
            "write whole nanoseconds (5 * SECOND) or a timedelta"
        )
    return None if ns > 0 else f"its {what} is not positive"


def check_actions(table: ReadableTable[Any, Any, Any]) -> None:
    """Raise ``DefinitionError`` for an emitter of ``on_enter`` or ``on_exit`` that is never called."""
    nesting = table.nesting
    moving = [row for row in table.rows if row.target is not None]
    entered: set[Any] = nesting.entered_by_rows if nesting else {row.target for row in moving}
    left: set[Any] = nesting.left_by_rows if nesting else {row.source for row in moving}
    states = (*table.states, *(nesting.composites if nesting else ()))
    for what, actions, used, verb in (
        ("on_enter", table.on_enter, entered, "enters"),
        ("on_exit", table.on_exit, left, "leaves"),
    ):
        for state in actions:
            problem = None
            if state not in states:
                problem = f"unknown state {text_of(state)!r}{did_you_mean(state, states)}"
            elif state not in used:
                problem = f"no row {verb} {text_of(state)}"
            if problem:
                raise DefinitionError(f"{table.name}: {what}: {problem}")


def _reachable(initial: Name, rows: tuple[Row, ...]) -> set[Name]:
    found, frontier = {initial}, [initial]
    while frontier:
        here = frontier.pop()
        for row in rows:
            if row.source == here and row.target is not None and row.target not in found:
                found.add(row.target)
                frontier.append(row.target)
    return found
