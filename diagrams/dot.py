"""DOT, the language of graphviz, and the base of every image.

States are boxes with their time limit and, below a rule, the triggers that are legal there and
change nothing; final states have a double border. Labels are graphviz's HTML-like ones, which give
effects a smaller, lighter type. Text comes out the same without graphviz.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from quadriga.diagrams.arrows import Arrow, Junction, arrows, junctions, staying
from quadriga.diagrams.paint import Mark, Paint, Tone
from quadriga.diagrams.wording import effects, identifiers, limit, one_line, readable, trigger
from quadriga.fsm import Lifecycle, Row

__all__ = ["dot"]

_WRAP = 30  # characters; longer lines of effects push states apart
_SOFT = "#5f6b7a"  # effects, limits, reasons

# Arial: Liberation Sans, which graphviz finds on a bare Linux, has the same widths, so that what
# was measured here fits where it is looked at.
_HEAD = """\
  graph [fontname="Arial" nodesep=0.3 ranksep=0.45 rankdir=TB]
  node [color="#3b4a63" fillcolor="#f3f6fb" fontname="Arial" fontsize=14 margin="0.11,0.05" \
shape=box style="rounded,filled"]
  edge [arrowsize=0.8 color="#3b4a63" fontname="Arial" fontsize=12]
"""
_RESERVED = frozenset({"node", "edge", "graph", "digraph", "subgraph", "strict"})


@dataclass(frozen=True, slots=True)
class _Look:
    """What a tone means for a line and its words."""

    text: str = ""
    line: str = ""
    fill: str = ""


_LOOKS = {
    Tone.PLAIN: _Look(),
    Tone.COVERED: _Look("#1a7f37", 'color="#1a7f37" penwidth=1.6'),
    Tone.MISSED: _Look("#c62828", 'color="#c62828" style=dashed'),
    Tone.WALKED: _Look("#0b57d0", 'color="#0b57d0" penwidth=2', 'fillcolor="#d6e6ff"'),
    Tone.CURRENT: _Look("", "", 'color="#0b57d0" fillcolor="#ffe9a8" penwidth=3'),
    Tone.FAINT: _Look("#9aa3ae", 'color="#c3c9d1"', 'color="#c3c9d1" fillcolor="#ffffff"'),
}


def dot(lifecycle: Lifecycle, paint: Paint | None = None) -> str:
    """The diagram as DOT text."""
    paint = paint or Paint()
    ids = identifiers(lifecycle.states, _RESERVED)
    start = _unused("start", ids.values())
    joined = junctions(lifecycle)
    lines = [f'  {start} [label="" shape=circle style=filled fillcolor="#3b4a63" width=0.17]']
    lines += [_state(lifecycle, state, ids[state], paint) for state in lifecycle.states]
    lines.append(f"  {start} -> {ids[lifecycle.initial]}")
    lines += [_arrow(arrow, ids, paint) for arrow in arrows(lifecycle, joined, paint)]
    for junction in joined:
        lines += _junction(junction, ids, paint)
    name = identifiers([lifecycle.name], _RESERVED)[lifecycle.name]
    return f"digraph {name} {{\n{_HEAD}" + "\n".join(lines) + "\n}\n"


def _state(lifecycle: Lifecycle, state: str, name: str, paint: Paint) -> str:
    mark = paint.state(state)
    colour = _LOOKS[mark.tone].text if mark.tone is Tone.FAINT else ""
    rows = [f"<TR><TD>{_font(f'<B>{escape(readable(state))}</B>', colour)}</TD></TR>"]
    if mark.note:
        rows.append(f"<TR><TD>{_font(f'<B>{escape(mark.note)}</B>', '', 12)}</TD></TR>")
    if until := limit(lifecycle, state):
        rows.append(f"<TR><TD>{_small(until, mark.tone)}</TD></TR>")
    if legal := staying(lifecycle, state):
        rows.append('<HR/><TR><TD HEIGHT="3"></TD></TR>')
        rows += [
            f'<TR><TD ALIGN="LEFT">{_font(_words([row], paint.row(row), [row]), "", 12)}</TD></TR>'
            for row in legal
        ]
    table = (
        '<TABLE BORDER="0" CELLBORDER="0" CELLPADDING="2" CELLSPACING="0">'
        + "".join(rows)
        + "</TABLE>"
    )
    more = [_LOOKS[mark.tone].fill, "peripheries=2" if state in lifecycle.final else ""]
    return f"  {name} [{' '.join(filter(None, more))}{' ' if any(more) else ''}label=<{table}>]"


def _arrow(arrow: Arrow, ids: dict[str, str], paint: Paint) -> str:
    look = _LOOKS[paint.row(arrow.rows[0]).tone].line
    lines = [_words(rows, paint.row(rows[0])) for rows in _alike(arrow.rows, paint)]
    ends = f"{ids[arrow.source]} -> {ids[arrow.target]}"
    return f"  {ends} [{look}{' ' if look else ''}label=<{_beside(lines)}>]"


def _junction(junction: Junction, ids: dict[str, str], paint: Paint) -> list[str]:
    """Branches with the trigger from each source, and a stem with what all of them cause."""
    name = _unused(f"line{junction.line}", ids.values())
    marks = [paint.row(row) for row in junction.rows]
    # the stem was taken if any branch was
    stem = next((m.tone for m in marks if m.tone in (Tone.COVERED, Tone.WALKED)), marks[0].tone)
    lines = [f'  {name} [label="" shape=point width=0.07]']
    for row, mark in zip(junction.rows, marks, strict=True):
        look = _LOOKS[mark.tone].line
        label = _beside([_trigger([row], mark)])
        lines.append(
            f"  {ids[row.source]} -> {name} [arrowhead=none {look}{' ' if look else ''}"
            f"label=<{label}>]"
        )
    look = _LOOKS[stem].line
    label = _beside([_words(junction.rows[:1], Mark(stem))])
    lines.append(f"  {name} -> {ids[junction.target]} [{look}{' ' if look else ''}label=<{label}>]")
    return lines


def _alike(rows: tuple[Row, ...], paint: Paint) -> list[list[Row]]:
    """Unguarded rows with the same effects share their words, unless each has a note of its own."""
    groups: dict[object, list[Row]] = {}
    for row in rows:
        shares = bool(row.guard is None and row.emit and not paint.row(row).note)
        # by identity: an emitter may be any callable object, hashable or not
        key = tuple(map(id, row.emit)) if shares else (row.line, row.source)
        groups.setdefault((shares, key), []).append(row)
    return list(groups.values())


def _trigger(rows: Iterable[Row], mark: Mark) -> str:
    words = escape(", ".join(map(trigger, rows)))
    if mark.note:
        words = f"{words} <B>({escape(mark.note)})</B>"
    return _font(words, _LOOKS[mark.tone].text)


def _words(rows: list[Row] | tuple[Row, ...], mark: Mark, reasons: Iterable[Row] = ()) -> str:
    """A row's trigger, and below it what it causes, and why where the picture has room for it."""
    lines = [_trigger(rows, mark)]
    if caused := effects(rows[0]):
        whole = caused.replace(" ", "\N{NO-BREAK SPACE}").replace(",\N{NO-BREAK SPACE}", ", ")
        lines += [
            _small(line, mark.tone) for line in textwrap.wrap(f"/\N{NO-BREAK SPACE}{whole}", _WRAP)
        ]
    for row in reasons:
        if row.why:
            lines += [
                _small(line, mark.tone, italic=True)
                for line in textwrap.wrap(one_line(row.why), _WRAP)
            ]
    return "".join(f'{line}<BR ALIGN="LEFT"/>' for line in lines)


def _beside(lines: Iterable[str]) -> str:
    """A label that keeps clear of its line: graphviz alone would let them touch."""
    cells = "".join(f'<TR><TD ALIGN="LEFT" BALIGN="LEFT">{line}</TD></TR>' for line in lines)
    return f'<TABLE BORDER="0" CELLBORDER="0" CELLPADDING="3" CELLSPACING="0">{cells}</TABLE>'


def _small(text: str, tone: Tone, *, italic: bool = False) -> str:
    words = escape(text)
    colour = _LOOKS[tone].text if tone is Tone.FAINT else _SOFT
    return _font(f"<I>{words}</I>" if italic else words, colour, 11)


def _font(text: str, colour: str = "", size: int = 0) -> str:
    attributes = (f' COLOR="{colour}"' if colour else "") + (
        f' POINT-SIZE="{size}"' if size else ""
    )
    return f"<FONT{attributes}>{text}</FONT>" if attributes else text


def _unused(name: str, taken: Iterable[str]) -> str:
    names = set(taken)
    while name in names:
        name += "_"
    return name
