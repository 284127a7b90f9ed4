"""DOT, the language of graphviz; every image is drawn from this text.

A state is a box with its time limit and, below a line, the triggers that are legal in it and change
nothing. A final state has a double border. The labels are the HTML-like ones of graphviz, so that
effects can have a smaller and lighter type. Writing the text does not need graphviz.
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

#: Effects and reasons break into lines of at most this many characters: longer ones push states apart.
_LINE_LENGTH = 30
#: The colour of effects, limits and reasons.
_SOFT = "#5f6b7a"

# graphviz measures labels with Liberation Sans where Arial is not installed. Both have the same
# widths, so a label fits its box in the reader's browser as well.
_ATTRIBUTES = """\
  graph [fontname="Arial" nodesep=0.3 ranksep=0.45 rankdir=TB]
  node [color="#3b4a63" fillcolor="#f3f6fb" fontname="Arial" fontsize=14 margin="0.11,0.05" \
shape=box style="rounded,filled"]
  edge [arrowsize=0.8 color="#3b4a63" fontname="Arial" fontsize=12]
"""
_RESERVED = frozenset({"node", "edge", "graph", "digraph", "subgraph", "strict"})


@dataclass(frozen=True, slots=True)
class _Style:
    """How a tone is drawn: the colour of text, and DOT attributes of an arrow and of a state."""

    text: str = ""
    arrow: str = ""
    state: str = ""


_STYLES = {
    Tone.PLAIN: _Style(),
    Tone.COVERED: _Style("#1a7f37", 'color="#1a7f37" penwidth=1.6'),
    Tone.MISSED: _Style("#c62828", 'color="#c62828" style=dashed'),
    Tone.WALKED: _Style("#0b57d0", 'color="#0b57d0" penwidth=2', 'fillcolor="#d6e6ff"'),
    Tone.CURRENT: _Style("", "", 'color="#0b57d0" fillcolor="#ffe9a8" penwidth=3'),
    Tone.FAINT: _Style("#9aa3ae", 'color="#c3c9d1"', 'color="#c3c9d1" fillcolor="#ffffff"'),
}


def dot(lifecycle: Lifecycle, paint: Paint | None = None) -> str:
    """The diagram as DOT text."""
    paint = paint or Paint()
    ids = identifiers(lifecycle.states, _RESERVED)
    start = _unused_name("start", ids.values())
    joined = junctions(lifecycle)
    lines = [f'  {start} [label="" shape=circle style=filled fillcolor="#3b4a63" width=0.17]']
    lines += [_state(lifecycle, state, ids[state], paint) for state in lifecycle.states]
    lines.append(f"  {start} -> {ids[lifecycle.initial]}")
    lines += [_arrow(arrow, ids, paint) for arrow in arrows(lifecycle, joined, paint)]
    for junction in joined:
        lines += _junction(junction, ids, paint)
    name = identifiers([lifecycle.name], _RESERVED)[lifecycle.name]
    return f"digraph {name} {{\n{_ATTRIBUTES}" + "\n".join(lines) + "\n}\n"


def _state(lifecycle: Lifecycle, state: str, name: str, paint: Paint) -> str:
    mark = paint.state(state)
    colour = _STYLES[mark.tone].text if mark.tone is Tone.FAINT else ""
    rows = [f"<TR><TD>{_font(f'<B>{escape(readable(state))}</B>', colour)}</TD></TR>"]
    if mark.note:
        rows.append(f"<TR><TD>{_font(f'<B>{escape(mark.note)}</B>', '', 12)}</TD></TR>")
    if until := limit(lifecycle, state):
        rows.append(f"<TR><TD>{_small(until, mark.tone)}</TD></TR>")
    if legal := staying(lifecycle, state):
        rows.append('<HR/><TR><TD HEIGHT="3"></TD></TR>')
        rows += [
            f'<TR><TD ALIGN="LEFT">{_font(_label([row], paint.row(row), [row]), "", 12)}</TD></TR>'
            for row in legal
        ]
    table = (
        '<TABLE BORDER="0" CELLBORDER="0" CELLPADDING="2" CELLSPACING="0">'
        + "".join(rows)
        + "</TABLE>"
    )
    double = "peripheries=2" if state in lifecycle.final else ""
    attributes = filter(None, (_STYLES[mark.tone].state, double, f"label=<{table}>"))
    return f"  {name} [{' '.join(attributes)}]"


def _arrow(arrow: Arrow, ids: dict[str, str], paint: Paint) -> str:
    style = _STYLES[paint.row(arrow.rows[0]).tone].arrow
    labels = [_label(rows, paint.row(rows[0])) for rows in _sharing_effects(arrow.rows, paint)]
    ends = f"{ids[arrow.source]} -> {ids[arrow.target]}"
    return f"  {ends} [{style}{' ' if style else ''}label=<{_padded(labels)}>]"


def _junction(junction: Junction, ids: dict[str, str], paint: Paint) -> list[str]:
    """A branch with the trigger from each source, and one stem with the effects of all of them."""
    name = _unused_name(f"line{junction.line}", ids.values())
    marks = [paint.row(row) for row in junction.rows]
    # the stem counts as taken if any of its branches was taken
    stem = next((m.tone for m in marks if m.tone in (Tone.COVERED, Tone.WALKED)), marks[0].tone)
    lines = [f'  {name} [label="" shape=point width=0.07]']
    for row, mark in zip(junction.rows, marks, strict=True):
        style = _STYLES[mark.tone].arrow
        label = _padded([_triggers([row], mark)])
        lines.append(
            f"  {ids[row.source]} -> {name} [arrowhead=none {style}{' ' if style else ''}"
            f"label=<{label}>]"
        )
    style = _STYLES[stem].arrow
    label = _padded([_label(junction.rows[:1], Mark(stem))])
    lines.append(
        f"  {name} -> {ids[junction.target]} [{style}{' ' if style else ''}label=<{label}>]"
    )
    return lines


def _sharing_effects(rows: tuple[Row, ...], paint: Paint) -> list[list[Row]]:
    """Groups of rows that share a label: unguarded rows with the same effects and without notes."""
    groups: dict[object, list[Row]] = {}
    for row in rows:
        shares = bool(row.guard is None and row.emit and not paint.row(row).note)
        # compared by identity: an emitter may be a callable object that is not hashable
        key = tuple(map(id, row.emit)) if shares else (row.line, row.source)
        groups.setdefault((shares, key), []).append(row)
    return list(groups.values())


def _triggers(rows: Iterable[Row], mark: Mark) -> str:
    words = escape(", ".join(map(trigger, rows)))
    if mark.note:
        words = f"{words} <B>({escape(mark.note)})</B>"
    return _font(words, _STYLES[mark.tone].text)


def _label(rows: list[Row] | tuple[Row, ...], mark: Mark, reasons: Iterable[Row] = ()) -> str:
    """The triggers of the rows, below them the effects, and last the reasons of ``reasons``."""
    lines = [_triggers(rows, mark)]
    if caused := effects(rows[0]):
        # a line breaks between two effects, never within one
        whole = caused.replace(" ", "\N{NO-BREAK SPACE}").replace(",\N{NO-BREAK SPACE}", ", ")
        broken = textwrap.wrap(f"/\N{NO-BREAK SPACE}{whole}", _LINE_LENGTH)
        lines += [_small(line, mark.tone) for line in broken]
    for row in reasons:
        broken = textwrap.wrap(one_line(row.why), _LINE_LENGTH)
        lines += [_small(line, mark.tone, italic=True) for line in broken]
    return "".join(f'{line}<BR ALIGN="LEFT"/>' for line in lines)


def _padded(labels: Iterable[str]) -> str:
    """The labels of an arrow with space around them: graphviz would let text touch the arrow."""
    cells = "".join(f'<TR><TD ALIGN="LEFT" BALIGN="LEFT">{label}</TD></TR>' for label in labels)
    return f'<TABLE BORDER="0" CELLBORDER="0" CELLPADDING="3" CELLSPACING="0">{cells}</TABLE>'


def _small(text: str, tone: Tone, *, italic: bool = False) -> str:
    words = escape(text)
    colour = _STYLES[tone].text if tone is Tone.FAINT else _SOFT
    return _font(f"<I>{words}</I>" if italic else words, colour, 11)


def _font(text: str, colour: str = "", size: int = 0) -> str:
    attributes = (f' COLOR="{colour}"' if colour else "") + (
        f' POINT-SIZE="{size}"' if size else ""
    )
    return f"<FONT{attributes}>{text}</FONT>" if attributes else text


def _unused_name(name: str, taken: Iterable[str]) -> str:
    names = set(taken)
    while name in names:
        name += "_"
    return name
