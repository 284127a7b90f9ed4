"""DOT, the language of graphviz; every image is drawn from this text.

A state is a box with its time limit and, below a line, the triggers that are legal in it and change
nothing. A final state has a double border. A composite is a cluster, in which a dot leads to its initial
state and a circle with an H stands for its history. The labels are the HTML-like ones of graphviz, so that
effects can have a smaller and lighter type. Writing the text does not need graphviz.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from html import escape

from quadriga.diagrams.formats.arrows import (
    Arrow,
    Junction,
    arrows,
    junctions,
    sharing_effects,
    staying,
    stem_tone,
)
from quadriga.diagrams.formats.style import Style
from quadriga.diagrams.nesting import histories, inward, short_name, where_to
from quadriga.diagrams.paint import Mark, Paint, Tone
from quadriga.diagrams.wording import (
    actions,
    effects,
    identifiers,
    limit,
    one_line,
    readable,
    trigger,
    unused_name,
)
from quadriga.fsm import Lifecycle, Row
from quadriga.fsm.history import History

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
        self.ids = identifiers((*lifecycle.states, *lifecycle.composites), _RESERVED)

    def text(self) -> str:
        lifecycle, ids = self.lifecycle, self.ids
        start = unused_name("start", ids.values())
        joined = junctions(lifecycle)
        lines = [self._dot(start)]
        for state in lifecycle.children:
            lines += self._lines_of(state)
        lines.append(f"  {start} -> {self._to(lifecycle.entry)}")
        lines += [self._arrow(arrow) for arrow in arrows(lifecycle, joined, self.paint)]
        for junction in joined:
            lines += self._junction(junction)
        name = identifiers([lifecycle.name], _RESERVED)[lifecycle.name]
        return f"digraph {name} {{\n{self._attributes()}" + "\n".join(lines) + "\n}\n"

    def _dot(self, name: str) -> str:
        """The dot from which an arrow leads to an initial state."""
        fill = self.palette.line
        return f'  {name} [label="" shape=circle style=filled fillcolor="{fill}" width=0.17]'

    def _lines_of(self, state: str) -> list[str]:
        """A state, or a composite with all that is inside."""
        composite = self.lifecycle.composites.get(state)
        if composite is None:
            return [self._state(state)]
        tone = self.paint.state(state).tone
        colours = self.palette.tones[tone]
        border = colours.border or self.palette.line
        width = f" {_STATES[tone]}" if tone in _STATES else ""
        inner = [
            f'  graph [color="{border}" label=<{self._table(state)}> margin=12 style=rounded{width}]',
            self._dot(self._start_in(state)),
        ]
        for kind in histories(self.lifecycle, state):
            label = "H*" if kind.deep else "H"
            inner.append(
                f'  {self._history(kind)} [fontsize=11 height=0.28 label="{label}" margin=0 '
                "shape=circle style=filled width=0.28]"
            )
        for child in composite.children:
            inner += self._lines_of(child)
        inner.append(f"  {self._start_in(state)} -> {self._to(composite.initial)}")
        indented = [f"  {line}" for line in inner]
        return [f"  subgraph cluster_{self.ids[state]} {{", *indented, "  }"]

    def _start_in(self, composite: str) -> str:
        return unused_name(f"start_{self.ids[composite]}", self.ids.values())

    def _history(self, target: History) -> str:
        kind = "deep_history" if target.deep else "history"
        return unused_name(f"{kind}_{self.ids[target.state]}", self.ids.values())

    def _to(self, target: str | History, further: str = "") -> str:
        """The head of an arrow, and its attributes in brackets. An arrow to a composite ends at its border."""
        if isinstance(target, History):
            name = self._history(target)
        elif target in self.lifecycle.composites:
            name = self._start_in(target)
            further = f"lhead=cluster_{self.ids[target]} {further}".rstrip()
        else:
            name = self.ids[target]
        return f"{name} [{further}]" if further else name

    def _from(self, source: str, further: str) -> tuple[str, str]:
        """The tail of an arrow and its attributes. An arrow from a composite begins at its border."""
        if source not in self.lifecycle.composites:
            return self.ids[source], further
        assert self.lifecycle.nesting is not None
        within = self.ids[self.lifecycle.nesting.enter(source)]
        return within, f"ltail=cluster_{self.ids[source]} {further}"

    def _attributes(self) -> str:
        """Black text on white is what graphviz draws without being asked."""
        dark, palette = self.style.dark, self.palette
        return _ATTRIBUTES.format(
            page=("compound=true " if self.lifecycle.composites else "")
            + (f'bgcolor="{palette.page}" ' if dark else "")
            + (f'fontcolor="{palette.text}" ' if dark and self.lifecycle.composites else ""),
            text=f' fontcolor="{palette.text}"' if dark else "",
            line=palette.line,
            fill=palette.fill,
            direction="LR" if self.style.left_to_right else "TB",
        )

    def _state(self, state: str) -> str:
        double = "peripheries=2" if state in self.lifecycle.final else ""
        box = self._box(self.paint.state(state).tone)
        attributes = filter(None, (box, double, f"label=<{self._table(state)}>"))
        return f"  {self.ids[state]} [{' '.join(attributes)}]"

    def _table(self, state: str) -> str:
        """What the box of a state says."""
        mark, paint = self.paint.state(state), self.paint
        colour = self.palette.tones[mark.tone].faded
        name = readable(short_name(self.lifecycle, state))
        rows = [f"<TR><TD>{_font(f'<B>{escape(name)}</B>', colour)}</TD></TR>"]
        if mark.note:
            rows.append(f"<TR><TD>{_font(f'<B>{escape(mark.note)}</B>', '', 12)}</TD></TR>")
        if until := limit(self.lifecycle, state):
            rows.append(f"<TR><TD>{self._small(until, mark.tone)}</TD></TR>")
        for text in actions(self.lifecycle, state):
            for line in textwrap.wrap(text, _LINE_LENGTH):
                rows.append(f"<TR><TD>{self._small(line, mark.tone)}</TD></TR>")
        if legal := staying(self.lifecycle, state):
            rows.append('<HR/><TR><TD HEIGHT="3"></TD></TR>')
            rows += [
                f'<TR><TD ALIGN="LEFT">'
                f"{_font(self._label([row], paint.row(row), [row]), '', 12)}</TD></TR>"
                for row in legal
            ]
        cells = "".join(rows)
        return f'<TABLE BORDER="0" CELLBORDER="0" CELLPADDING="2" CELLSPACING="0">{cells}</TABLE>'

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
        stroke = self._stroke(paint.row(arrow.rows[0]).tone)
        tail, attributes = self._from(arrow.source, f"{stroke}label=<{_padded(labels)}>")
        return f"  {tail} -> {self._to(arrow.target, attributes)}"

    def _junction(self, junction: Junction) -> list[str]:
        """A branch with the trigger from each source, and one stem with the effects of all of them."""
        ids = self.ids
        name = unused_name(f"line{junction.line}", ids.values())
        stem = stem_tone(junction, self.paint)
        lines = [f'  {name} [label="" shape=point width=0.07]']
        for row in junction.rows:
            mark = self.paint.row(row)
            label = _padded([self._triggers([row], mark)])
            branch = f"arrowhead=none {self._stroke(mark.tone)}label=<{label}>"
            tail, attributes = self._from(row.source, branch)
            lines.append(f"  {tail} -> {name} [{attributes}]")
        label = _padded([self._label(junction.rows[:1], Mark(stem))])
        lines.append(
            f"  {name} -> {self._to(junction.target, f'{self._stroke(stem)}label=<{label}>')}"
        )
        return lines

    def _triggers(self, rows: Sequence[Row], mark: Mark) -> str:
        words = escape(", ".join(map(trigger, rows)))
        for row in rows:
            if inward(self.lifecycle, row):  # one by itself, listed in a box
                words += f" \N{RIGHTWARDS ARROW} {escape(readable(where_to(row)))}"
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
