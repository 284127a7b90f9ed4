"""DOT, the language of graphviz; every image is drawn from this text.

A state is a box with its time limit and, below a line, the triggers that are legal in it and change
nothing. A final state has a double border. The labels are the HTML-like ones of graphviz, so that
effects can have a smaller and lighter type. Writing the text does not need graphviz.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from html import escape

from quadriga.diagrams.arrows import (
    Arrow,
    Junction,
    arrows,
    junctions,
    sharing_effects,
    staying,
    stem_tone,
)
from quadriga.diagrams.paint import Mark, Paint, Tone
from quadriga.diagrams.style import Style
from quadriga.diagrams.wording import (
    effects,
    identifiers,
    limit,
    one_line,
    readable,
    trigger,
    unused_name,
)
from quadriga.fsm import Lifecycle, Row

__all__ = ["dot"]

#: Effects and reasons break into lines of at most this many characters: longer ones push states apart.
_LINE_LENGTH = 30

# graphviz measures labels with Liberation Sans where Arial is not installed. Both have the same
# widths, so a label fits its box in the reader's browser as well.
_ATTRIBUTES = """\
  graph [{page}fontname="Arial" nodesep=0.3 ranksep=0.45 rankdir={direction}]
  node [color="{line}" fillcolor="{fill}" fontname="Arial" fontsize=14 margin="0.11,0.05" \
shape=box style="rounded,filled"{text}]
  edge [arrowsize=0.8 color="{line}" fontname="Arial" fontsize=12{text}]
"""
_RESERVED = frozenset({"node", "edge", "graph", "digraph", "subgraph", "strict"})

#: DOT attributes of a tone beside its colours: of an arrow and of a state.
_ARROWS = {Tone.COVERED: "penwidth=1.6", Tone.MISSED: "style=dashed", Tone.WALKED: "penwidth=2"}
_STATES = {Tone.CURRENT: "penwidth=3"}


def dot(lifecycle: Lifecycle, paint: Paint | None = None, style: Style | None = None) -> str:
    """The diagram as DOT text."""
    return _Dot(lifecycle, paint or Paint(), style or Style()).text()


class _Dot:
    """One diagram while it is written."""

    def __init__(self, lifecycle: Lifecycle, paint: Paint, style: Style) -> None:
        self.lifecycle = lifecycle
        self.paint = paint
        self.style = style
        self.palette = style.palette
        self.ids = identifiers(lifecycle.states, _RESERVED)

    def text(self) -> str:
        lifecycle, ids, line = self.lifecycle, self.ids, self.palette.line
        start = unused_name("start", ids.values())
        joined = junctions(lifecycle)
        lines = [f'  {start} [label="" shape=circle style=filled fillcolor="{line}" width=0.17]']
        lines += [self._state(state) for state in lifecycle.states]
        lines.append(f"  {start} -> {ids[lifecycle.initial]}")
        lines += [self._arrow(arrow) for arrow in arrows(lifecycle, joined, self.paint)]
        for junction in joined:
            lines += self._junction(junction)
        name = identifiers([lifecycle.name], _RESERVED)[lifecycle.name]
        return f"digraph {name} {{\n{self._attributes()}" + "\n".join(lines) + "\n}\n"

    def _attributes(self) -> str:
        """Black text on white is what graphviz draws without being asked."""
        dark, palette = self.style.dark, self.palette
        return _ATTRIBUTES.format(
            page=f'bgcolor="{palette.page}" ' if dark else "",
            text=f' fontcolor="{palette.text}"' if dark else "",
            line=palette.line,
            fill=palette.fill,
            direction="LR" if self.style.left_to_right else "TB",
        )

    def _state(self, state: str) -> str:
        mark, paint = self.paint.state(state), self.paint
        colour = self.palette.tones[mark.tone].faded
        rows = [f"<TR><TD>{_font(f'<B>{escape(readable(state))}</B>', colour)}</TD></TR>"]
        if mark.note:
            rows.append(f"<TR><TD>{_font(f'<B>{escape(mark.note)}</B>', '', 12)}</TD></TR>")
        if until := limit(self.lifecycle, state):
            rows.append(f"<TR><TD>{self._small(until, mark.tone)}</TD></TR>")
        if legal := staying(self.lifecycle, state):
            rows.append('<HR/><TR><TD HEIGHT="3"></TD></TR>')
            rows += [
                f'<TR><TD ALIGN="LEFT">'
                f"{_font(self._label([row], paint.row(row), [row]), '', 12)}</TD></TR>"
                for row in legal
            ]
        table = (
            '<TABLE BORDER="0" CELLBORDER="0" CELLPADDING="2" CELLSPACING="0">'
            + "".join(rows)
            + "</TABLE>"
        )
        double = "peripheries=2" if state in self.lifecycle.final else ""
        attributes = filter(None, (self._box(mark.tone), double, f"label=<{table}>"))
        return f"  {self.ids[state]} [{' '.join(attributes)}]"

    def _box(self, tone: Tone) -> str:
        """The attributes of a state's box."""
        colours = self.palette.tones[tone]
        border = f'color="{colours.border}"' if colours.border else ""
        fill = f'fillcolor="{colours.fill}"' if colours.fill else ""
        return " ".join(filter(None, (border, fill, _STATES.get(tone, ""))))

    def _stroke(self, tone: Tone) -> str:
        """The attributes of an arrow, with a space after them."""
        colour = self.palette.tones[tone].arrow
        drawn = " ".join(filter(None, (f'color="{colour}"' if colour else "", _ARROWS.get(tone))))
        return f"{drawn} " if drawn else ""

    def _arrow(self, arrow: Arrow) -> str:
        paint = self.paint
        groups = sharing_effects(arrow.rows, paint)
        labels = [self._label(rows, paint.row(rows[0])) for rows in groups]
        ends = f"{self.ids[arrow.source]} -> {self.ids[arrow.target]}"
        stroke = self._stroke(paint.row(arrow.rows[0]).tone)
        return f"  {ends} [{stroke}label=<{_padded(labels)}>]"

    def _junction(self, junction: Junction) -> list[str]:
        """A branch with the trigger from each source, and one stem with the effects of all of them."""
        ids = self.ids
        name = unused_name(f"line{junction.line}", ids.values())
        stem = stem_tone(junction, self.paint)
        lines = [f'  {name} [label="" shape=point width=0.07]']
        for row in junction.rows:
            mark = self.paint.row(row)
            label = _padded([self._triggers([row], mark)])
            lines.append(
                f"  {ids[row.source]} -> {name} [arrowhead=none {self._stroke(mark.tone)}"
                f"label=<{label}>]"
            )
        label = _padded([self._label(junction.rows[:1], Mark(stem))])
        lines.append(f"  {name} -> {ids[junction.target]} [{self._stroke(stem)}label=<{label}>]")
        return lines

    def _triggers(self, rows: Iterable[Row], mark: Mark) -> str:
        words = escape(", ".join(map(trigger, rows)))
        if mark.note:
            words = f"{words} <B>({escape(mark.note)})</B>"
        return _font(words, self.palette.tones[mark.tone].text)

    def _label(
        self, rows: list[Row] | tuple[Row, ...], mark: Mark, reasons: Iterable[Row] = ()
    ) -> str:
        """The triggers of the rows, below them the effects, and last the reasons of ``reasons``."""
        lines = [self._triggers(rows, mark)]
        if caused := effects(rows[0]):
            # a line breaks between two effects, never within one
            whole = caused.replace(" ", "\N{NO-BREAK SPACE}").replace(",\N{NO-BREAK SPACE}", ", ")
            broken = textwrap.wrap(f"/\N{NO-BREAK SPACE}{whole}", _LINE_LENGTH)
            lines += [self._small(line, mark.tone) for line in broken]
        for row in reasons:
            broken = textwrap.wrap(one_line(row.why), _LINE_LENGTH)
            lines += [self._small(line, mark.tone, italic=True) for line in broken]
        return "".join(f'{line}<BR ALIGN="LEFT"/>' for line in lines)

    def _small(self, text: str, tone: Tone, *, italic: bool = False) -> str:
        words = escape(text)
        colour = self.palette.tones[tone].faded or self.palette.soft
        return _font(f"<I>{words}</I>" if italic else words, colour, 11)


def _padded(labels: Iterable[str]) -> str:
    """The labels of an arrow with space around them: graphviz would let text touch the arrow."""
    cells = "".join(f'<TR><TD ALIGN="LEFT" BALIGN="LEFT">{label}</TD></TR>' for label in labels)
    return f'<TABLE BORDER="0" CELLBORDER="0" CELLPADDING="3" CELLSPACING="0">{cells}</TABLE>'


def _font(text: str, colour: str = "", size: int = 0) -> str:
    attributes = (f' COLOR="{colour}"' if colour else "") + (
        f' POINT-SIZE="{size}"' if size else ""
    )
    return f"<FONT{attributes}>{text}</FONT>" if attributes else text
