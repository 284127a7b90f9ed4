"""A lifecycle as JSON for other programs: complete, with the names that the code uses."""

from __future__ import annotations

import json
from typing import Any

from quadriga.diagrams.paint import Mark, Paint
from quadriga.fsm import Lifecycle, Row, Unbounded, Within
from quadriga.fsm.history import History
from quadriga.fsm.nesting import SEPARATOR
from quadriga.fsm.table import name_of


def json_document(lifecycle: Lifecycle, coverage: Paint | None = None) -> str:
    """The lifecycle as a JSON document. Times are in ns; a null target means that the state stays.

    Effects of entering and leaving are with the states. A state that is a lifecycle itself has that
    ``inside``, a document of the same form; lines are counted through all of them. With coverage every row
    has the number of times that it was taken.
    """
    document = _Writer(coverage).table(lifecycle, "")
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


class _Writer:
    """One document while it is written."""

    def __init__(self, coverage: Paint | None) -> None:
        self.coverage = coverage
        self.lines = 0

    def table(self, lifecycle: Lifecycle, prefix: str) -> dict[str, Any]:
        """One lifecycle; ``prefix`` is before the names of its states in the whole."""
        first = self.lines
        self.lines += 1 + max(row.line for row in lifecycle.own_rows)
        # an outer table may say something of states that are inside of its own
        actions = (lifecycle.on_enter, lifecycle.on_exit)
        states = (
            *lifecycle.own_lasts,
            *lifecycle.own_final,
            *(s for each in actions for s in each),
        )
        return {
            "name": lifecycle.name,
            "initial": lifecycle.entry,
            "final": list(lifecycle.own_final),
            "states": [self._state(lifecycle, state, prefix) for state in dict.fromkeys(states)],
            "rows": [self._row(row, prefix, first) for row in lifecycle.own_rows],
        }

    def _state(self, lifecycle: Lifecycle, state: str, prefix: str) -> dict[str, Any]:
        written: dict[str, Any] = {"name": state, "lasts": _lasts(lifecycle, state)}
        written |= _actions(lifecycle, state)
        if inner := lifecycle.inside.get(state):
            written["inside"] = self.table(inner, f"{prefix}{state}{SEPARATOR}")
        return written

    def _row(self, row: Row, prefix: str, first: int) -> dict[str, Any]:
        line = first + row.line
        written = {
            "line": line,
            "trigger": row.trigger,
            "source": row.source,
            "target": _target(row),
            "guard": name_of(row.guard) if row.guard else None,
            "emit": [name_of(emitter) for emitter in row.own_emit],
            "why": row.why,
        }
        if self.coverage:
            mark = self.coverage.rows.get((line, f"{prefix}{row.source}"), Mark())
            written["count"] = mark.count
        return written


def _target(row: Row) -> Any:
    if isinstance(row.target, History):
        return {"history": row.target.state, "deep": row.target.deep}
    return row.target


def _actions(lifecycle: Lifecycle, state: str) -> dict[str, list[str]]:
    """The emitters for entering and for leaving the state, if there are any."""
    found = {"on_enter": lifecycle.on_enter.get(state), "on_exit": lifecycle.on_exit.get(state)}
    return {what: [name_of(each) for each in emit] for what, emit in found.items() if emit}


def _lasts(lifecycle: Lifecycle, state: str) -> dict[str, Any] | None:
    """The time limit of the state; null for a final state."""
    lasts = lifecycle.own_lasts.get(state)
    if isinstance(lasts, Unbounded):
        return {"unbounded": lasts.ends}
    if isinstance(lasts, Within):
        return {"within": lasts.ns, "then": lasts.then, "backoff_to": lasts.backoff_to}
    return None
