"""The checks that every table must pass before it becomes a machine. Each error names the row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from quadriga.fsm.errors import DefinitionError, did_you_mean
from quadriga.fsm.table import Limit, Row, State, Unbounded, Within

__all__ = ["validate"]


def validate(
    name: str,
    initial: str,
    final: tuple[str, ...],
    lasts: Mapping[State, Limit],
    rows: tuple[Row, ...],
) -> None:
    """Raise ``DefinitionError`` for the first mistake in the table."""

    def wrong(what: str) -> DefinitionError:
        return DefinitionError(f"{name}: {what}")

    states: set[str] = {*lasts, *final}
    if both := sorted(set(lasts) & set(final)):
        raise wrong(f"final state {both[0]} cannot have a time limit")
    if initial not in states:
        raise wrong(
            f"initial state {initial!r} is not declared{did_you_mean(initial, sorted(states))}"
        )
    for row in rows:
        if problem := _problem_of_row(row, states, final):
            raise wrong(f"{row}: {problem}")
    if shadow := _shadowed(rows):
        raise wrong(f"{shadow}: an earlier row always takes this trigger")
    if open_end := _open_ended(rows):
        raise wrong(f"{open_end}: the last alternative is guarded; end with a row without a guard")
    for state in lasts:
        if not any(r.source == state and r.target not in (None, state) for r in rows):
            raise wrong(f"state {state} has no exit and is not declared final")
        if problem := _problem_of_limit(state, lasts[state], rows):
            raise wrong(f"state {state}: {problem}")
    if lost := sorted(states - _reachable(initial, rows)):
        raise wrong(f"state {lost[0]} cannot be reached from {initial}")


def _problem_of_row(row: Row, states: set[str], final: tuple[str, ...]) -> str | None:
    for state in (row.source, row.target):
        if state is not None and state not in states:
            return f"unknown state {state!r}{did_you_mean(state, sorted(states))}"
    if row.source in final:
        return f"final state {row.source} has an exit"
    if not row.trigger.isidentifier() or row.trigger == "state":
        return f"trigger {row.trigger!r} is not a usable name"
    if row.guard is not None and not callable(row.guard):
        return f"guard {row.guard!r} is not callable (names would fail only when fired)"
    for emitter in row.emit:
        if not callable(emitter):
            return f"emitter {emitter!r} is not callable (names would fail only when fired)"
    if row.target is None and not row.emit and not row.why:
        return "it changes nothing; say why"
    return None


def _shadowed(rows: Iterable[Row]) -> Row | None:
    taken: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        earlier = taken.setdefault((row.trigger, row.source), [])
        if any(e.guard is None or e.guard is row.guard for e in earlier):
            return row
        earlier.append(row)
    return None


def _open_ended(rows: Iterable[Row]) -> Row | None:
    last = {(row.trigger, row.source): row for row in rows}
    return next((row for row in last.values() if row.guard is not None), None)


def _problem_of_limit(state: str, limit: Limit, rows: tuple[Row, ...]) -> str | None:
    legal = {r.trigger for r in rows if r.source == state}
    if isinstance(limit, Unbounded):
        if not any(
            r.trigger == limit.ends and r.source == state and r.target not in (None, state)
            for r in rows
        ):
            return (
                f"unbounded, but {limit.ends!r} does not lead out of it"
                f"{did_you_mean(limit.ends, sorted(legal))}"
            )
    elif isinstance(limit, Within):
        if limit.ns <= 0:
            return "its time limit is not positive"
        if limit.then is not None and limit.then not in legal:
            return (
                f"its time limit fires {limit.then!r}, which is not legal there"
                f"{did_you_mean(limit.then, sorted(legal))}"
            )
    return None


def _reachable(initial: str, rows: tuple[Row, ...]) -> set[str]:
    found, frontier = {initial}, [initial]
    while frontier:
        here = frontier.pop()
        for row in rows:
            if row.source == here and row.target is not None and row.target not in found:
                found.add(row.target)
                frontier.append(row.target)
    return found
