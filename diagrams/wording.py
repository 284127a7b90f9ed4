"""The text of names, times and limits on a diagram.

Diagrams for people write ``run [in stateaware queue] / update``; formats for programs keep the names
that the code uses. The texts are not escaped: every format does that itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from quadriga.base.times import HOUR, MINUTE, SECOND
from quadriga.fsm import Lifecycle, Row, Within
from quadriga.fsm.table import name_of

_UNITS = ((HOUR, "h"), (MINUTE, "min"), (SECOND, "s"), (10**6, "ms"), (10**3, "µs"), (1, "ns"))


def readable(name: str) -> str:
    """A name for people: spaces in place of underscores, and ``?`` if it is empty."""
    return one_line(name.replace("_", " ")) or "?"


def one_line(text: str) -> str:
    """Text in one line, with a replacement for characters that cannot be printed."""
    words = " ".join(text.split())
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in words)


def trigger(row: Row) -> str:
    """``run [in stateaware queue]``"""
    return (
        f"{readable(row.trigger)} [{readable(name_of(row.guard))}]"
        if row.guard
        else (readable(row.trigger))
    )


def effects(row: Row) -> str:
    """``give back everything, update``, or nothing: what is written in the row itself."""
    return _names(row.own_emit)


def actions(lifecycle: Lifecycle, state: str) -> list[str]:
    """``entry / arm timer``, ``exit / cancel timer``: what every row does that enters or leaves the
    state."""
    table = lifecycle.nesting or lifecycle
    found = {"entry": table.on_enter.get(state), "exit": table.on_exit.get(state)}
    return [f"{what} / {_names(emitters)}" for what, emitters in found.items() if emitters]


def _names(emitters: Iterable[object]) -> str:
    return ", ".join(readable(name_of(emitter)) for emitter in emitters)


def label(*rows: Row) -> str:
    """``kill / give back everything, update``: the usual notation of state diagrams.

    Several rows have the same effects: ``complete, release / update``.
    """
    triggers = ", ".join(map(trigger, rows))
    return f"{triggers} / {effects(rows[0])}" if rows[0].own_emit else triggers


def duration(ns: int) -> str:
    """A declared time, exactly, in the largest unit that gives a whole number above 1: ``60 s``."""
    size, unit = next((s, u) for s, u in _UNITS if ns % s == 0 and (ns // s > 1 or s == 1))
    return f"{ns // size} {unit}"


def elapsed(ns: int) -> str:
    """A measured time, with three digits or to the second: ``12.3 s``, ``1 h 7 min 10 s``."""
    if ns >= MINUTE:
        minutes, seconds = divmod(round(ns / SECOND), 60)
        hours, minutes = divmod(minutes, 60)
        parts = ((hours, "h"), (minutes, "min"), (seconds, "s"))
        return " ".join(f"{value} {unit}" for value, unit in parts if value)
    size, unit = next(((s, u) for s, u in _UNITS if ns >= s), (1, "s"))
    value = ns / size
    return f"{value:.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


def limit(lifecycle: Lifecycle, state: str) -> str:
    """How long a state may last: ``30 s then complete``, ``unbounded: run``; empty if it is final."""
    composite = lifecycle.composites.get(state)
    lasts = composite.lasts if composite else lifecycle.lasts.get(state)
    if lasts is None:
        return ""
    if not isinstance(lasts, Within):
        return f"unbounded: {readable(lasts.ends)}"
    if lasts.then is None:
        return f"at most {duration(lasts.ns)}"
    text = f"{duration(lasts.ns)} then {readable(lasts.then)}"
    return f"{text}, up to {duration(lasts.backoff_to)}" if lasts.backoff_to else text


def identifiers(states: Iterable[str], reserved: Collection[str] = ()) -> dict[str, str]:
    """A plain ASCII identifier for each state: its name if that is an identifier, else ``s<number>``.

    ``reserved`` are the keywords of the language, in lower case.
    """
    names = tuple(states)
    plain = {
        name
        for name in names
        if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and name.lower() not in reserved
    }
    ids: dict[str, str] = {}
    for number, name in enumerate(names):
        made = f"s{number}"
        while made in plain:
            made += "_"
        ids[name] = name if name in plain else made
    return ids


def unused_name(name: str, taken: Iterable[str]) -> str:
    """The name, with as many underscores after it as make it different from all others."""
    names = set(taken)
    while name in names:
        name += "_"
    return name
