"""The table as a Markdown page: the states, the rows, and the meaning of the guards."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from quadriga.diagrams.nesting import drawn_rows, tree, where_to
from quadriga.diagrams.paint import Paint
from quadriga.diagrams.wording import limit, one_line, readable
from quadriga.fsm import Lifecycle, Row
from quadriga.fsm.table import Emitter, atoms, name_of


def markdown(lifecycle: Lifecycle, coverage: Paint | None = None) -> str:
    """The lifecycle as Markdown tables (GitHub's dialect).

    *Others* are all states that are not final and that no earlier row of the trigger names.
    With coverage the last column says how often each row was taken: ``3, 0`` for two sources.
    """
    lines = [f"# {escape(readable(lifecycle.name))}", ""]
    done = {
        head: by_state
        for head, by_state in _actions(lifecycle).items()
        if any(by_state.get(state) for state in tree(lifecycle))
    }
    lines += _table(
        ("State", "", "Lasts", *done),
        [
            (
                f"**{escape(s) or '?'}**",
                _kind(lifecycle, s),
                _lasts(lifecycle, s),
                *(_emitters(by_state.get(s, ())) for by_state in done.values()),
            )
            for s in tree(lifecycle)
        ],
    )
    written: dict[int, list[Row]] = {}
    for row in drawn_rows(lifecycle):
        written.setdefault(row.line, []).append(row)
    others = set() if coverage else _others(lifecycle, written)
    counted = ("Taken",) if coverage else ()
    lines += _table(
        ("#", "Trigger", "From", "To", "If", "Effects", "Why", *counted),
        [
            (
                str(line),
                escape(rows[0].trigger),
                "*others*" if line in others else ", ".join(escape(row.source) for row in rows),
                "*stays*" if rows[0].target is None else escape(where_to(rows[0])),
                _code(name_of(rows[0].guard)) if rows[0].guard else "",
                _emitters(rows[0].own_emit),
                escape(rows[0].why),
                *((", ".join(str(coverage.row(row).count) for row in rows),) if coverage else ()),
            )
            for line, rows in written.items()
        ],
    )
    used = (each for row in drawn_rows(lifecycle) if row.guard for each in atoms(row.guard))
    guards = {id(guard): guard for guard in used}
    if guards:
        meanings = [(_code(name_of(g)), escape(_meaning(g))) for g in guards.values()]
        lines += _table(("Guard", "Meaning"), meanings)
    return "\n".join(lines[:-1]) + "\n"


def _others(lifecycle: Lifecycle, written: Mapping[int, Sequence[Row]]) -> set[int]:
    """The last row of a trigger, if it names all states that are not final and in no row before."""
    found = set()
    not_final = {*lifecycle.states} - {*lifecycle.final}
    before: dict[str, set[str]] = {}
    for line, rows in written.items():
        sources = {row.source for row in rows}
        named = before.setdefault(rows[0].trigger, set())
        if len(sources) > 2 and sources == not_final - named:
            found.add(line)
        named |= sources
    return found


def escape(text: str) -> str:
    """Text with a backslash before each mark of Markdown, in one line: a row ends at a line break."""
    return re.sub(r"([\\`*_{}\[\]<>#|~&])", r"\\\1", one_line(text))


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    def line(cells: tuple[str, ...]) -> str:
        return f"| {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |")

    return [line(head), "|---" * len(head) + "|", *map(line, rows), ""]


def _kind(lifecycle: Lifecycle, state: str) -> str:
    kinds = {"initial": state == lifecycle.entry, "final": state in lifecycle.final}
    for name, composite in lifecycle.composites.items():
        kinds[f"initial in {escape(name)}"] = state == composite.initial
        kinds[f"has {len(composite.children)} states inside"] = state == name
    return ", ".join(kind for kind, applies in kinds.items() if applies)


def _lasts(lifecycle: Lifecycle, state: str) -> str:
    return "for ever" if state in lifecycle.final else escape(limit(lifecycle, state))


def _actions(lifecycle: Lifecycle) -> dict[str, Mapping[str, tuple[Emitter, ...]]]:
    table = lifecycle.nesting or lifecycle
    return {"On entry": table.on_enter, "On exit": table.on_exit}


def _emitters(emitters: Iterable[object]) -> str:
    return ", ".join(_code(name_of(emitter)) for emitter in emitters)


def _code(name: str) -> str:
    # A code span has no escapes: a bar would end the cell, and a backtick the span.
    return f"`{name}`" if re.fullmatch(r"[\w.<>() ]+", name) else escape(name)


def _meaning(guard: object) -> str:
    """The first line of the guard's docstring."""
    return next(iter((getattr(guard, "__doc__", None) or "").strip().splitlines()), "")
