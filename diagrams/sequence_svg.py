"""Sequence diagrams as SVG, without graphviz or any other program.

Participants are columns, messages are rows. Time stands at the left where it passes, with a line across.
All coordinates come from the widths of the texts, so the result is the same on every machine.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from quadriga.diagrams.formats.style import Palette
from quadriga.diagrams.wording import one_line

#: Thousandths of the size of the font, and the characters that are so wide.
_WIDTHS: Final = {
    191: "'",
    222: "ijl",
    260: "|",
    278: " !,./:;I[\\]ft",
    333: "()-`r",
    334: "{}",
    355: '"',
    389: "*",
    469: "^",
    500: "Jckszvxy",
    556: "#$0123456789?_abdeghnopquL",
    584: "+<=>~",
    611: "FTZ",
    667: "&ABEKPSVXY",
    722: "CDHNRUw",
    778: "GOQ",
    833: "Mm",
    889: "%",
    944: "W",
    1015: "@",
}
_OF: Final = {character: width for width, characters in _WIDTHS.items() for character in characters}
_OTHER, _WIDE, _BOLD = 667, 1000, 1.08


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """The width of one line in Arial and the fonts of the same widths (Helvetica, Liberation Sans), in the unit
    of ``size``; never less than it is for Latin."""
    thousandths = sum(map(_width, text))
    return thousandths * size / 1000 * (_BOLD if bold else 1)


def _width(character: str) -> int:
    known = _OF.get(character)
    if known is not None:
        return known
    if unicodedata.combining(character):
        return 0
    return _WIDE if unicodedata.east_asian_width(character) in "WF" else _OTHER


_SIZE, _LINE = 13, 16
#: a label breaks after at most this many characters, a note after fewer
_LABEL_COLUMNS, _NOTE_COLUMNS = 60, 34
_MARGIN, _BETWEEN = 16, 40
_HEAD, _HEAD_PADDING = 30, 14
#: the room around a label on its arrow, the reach of a message to oneself, and the space below a row
_PADDING, _LOOP, _GAP = 14, 26, 10
#: with at least this many messages the names of the participants are written at the end as well
_LONG = 12


@dataclass(frozen=True, slots=True)
class Line:
    """One message: the numbers of both participants, the texts, and the time if it has passed."""

    sender: int
    receiver: int
    label: str
    note: str
    time: str


def sequence_svg(names: Sequence[str], lines: Sequence[Line], palette: Palette) -> str:
    """The diagram as an SVG document."""
    return _Drawing([one_line(name) or "?" for name in names], lines, palette).text()


class _Drawing:
    """One diagram while it is drawn."""

    def __init__(self, names: list[str], lines: Sequence[Line], palette: Palette) -> None:
        self.names = names
        self.lines = lines
        self.palette = palette
        self.labels = [_wrapped(line.label, _LABEL_COLUMNS) for line in lines]
        self.notes = [_wrapped(line.note, _NOTE_COLUMNS) for line in lines]
        self.time_width = max((_text_width([line.time]) for line in lines), default=0)
        self.columns = self._columns()
        self.drawn: list[str] = []

    def text(self) -> str:
        width = self._width()
        y: float = _MARGIN + _HEAD
        rows: list[str] = []
        for number, line in enumerate(self.lines):
            if line.time and number:
                rows += self._passed(y + _GAP, line.time, width)
                y += 2 * _GAP
            elif line.time:
                rows += self._time(y + _GAP + _LINE, line.time)
            y = self._message(rows, number, y + _GAP)
        foot = y + _GAP + _HEAD // 2
        lifelines = [
            f'<line x1="{_n(x)}" y1="{_MARGIN + _HEAD}" x2="{_n(x)}" y2="{_n(foot)}"'
            f' stroke="{self.palette.soft}" stroke-dasharray="4 4"/>'
            for x in self.columns
        ]
        heads = self._heads(_MARGIN)
        height = foot + _MARGIN
        if len(self.lines) >= _LONG:
            heads += self._heads(foot)
            height += _HEAD
        body = "\n".join([*lifelines, *heads, *rows])
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_n(width)}" height="{_n(height)}"'
            f' viewBox="0 0 {_n(width)} {_n(height)}" role="img"'
            f' font-family="Arial, Helvetica, sans-serif" font-size="{_SIZE}"'
            f' fill="{self.palette.text}">\n'
            f"<title>{escape(' and '.join(self.names))}</title>\n"
            f'<rect width="100%" height="100%" fill="{self.palette.page}"/>\n'
            f"{body}\n</svg>"
        )

    # -- measures ----------------------------------------------------------------------------

    def _columns(self) -> list[float]:
        """The lifelines, far enough apart for the names and for the labels between."""
        heads = [text_width(name, _SIZE, bold=True) + 2 * _HEAD_PADDING for name in self.names]
        left = _MARGIN + (self.time_width + _MARGIN if self.time_width else 0)
        columns: list[float] = []
        for number, head in enumerate(heads):
            at = left + head / 2
            if columns:
                at = columns[-1] + (heads[number - 1] + head) / 2 + _BETWEEN
            for line, label in zip(self.lines, self.labels, strict=True):
                low, high = sorted((line.sender, line.receiver))
                if low < high == number:
                    at = max(at, columns[low] + _text_width(label) + 2 * _PADDING)
                elif low == high == number - 1:
                    at = max(at, columns[low] + _LOOP + _text_width(label) + 2 * _PADDING)
            columns.append(at)
        return columns

    def _width(self) -> float:
        right = [
            x + text_width(name, _SIZE, bold=True) / 2 + _HEAD_PADDING
            for x, name in zip(self.columns, self.names, strict=True)
        ]
        for line, label, note in zip(self.lines, self.labels, self.notes, strict=True):
            here = self.columns[line.receiver]
            if line.sender == line.receiver:
                right.append(here + _LOOP + _PADDING + _text_width(label))
            if note:
                right.append(here + 3 * _PADDING + _text_width(note))
        return max(right, default=0) + _MARGIN

    # -- parts -------------------------------------------------------------------------------

    def _heads(self, y: float) -> list[str]:
        drawn = []
        for x, name in zip(self.columns, self.names, strict=True):
            width = text_width(name, _SIZE, bold=True) + 2 * _HEAD_PADDING
            drawn.append(self._box(x - width / 2, y, width, _HEAD, 5))
            drawn.append(
                f'<text x="{_n(x)}" y="{_n(y + _HEAD / 2 + _SIZE * 0.35)}" text-anchor="middle"'
                f' font-weight="bold">{escape(name)}</text>'
            )
        return drawn

    def _box(self, x: float, y: float, width: float, height: float, radius: int) -> str:
        return (
            f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}"'
            f' rx="{radius}" fill="{self.palette.fill}" stroke="{self.palette.line}"/>'
        )

    def _time(self, y: float, time: str) -> list[str]:
        return [f'<text x="{_MARGIN}" y="{_n(y)}" fill="{self.palette.soft}">{escape(time)}</text>']

    def _passed(self, y: float, time: str, width: float) -> list[str]:
        """The time that is now, and a line across all participants."""
        left = _MARGIN + self.time_width + _MARGIN / 2
        return [
            f'<line x1="{_n(left)}" y1="{_n(y)}" x2="{_n(width - _MARGIN)}" y2="{_n(y)}"'
            f' stroke="{self.palette.soft}" stroke-opacity="0.5"/>',
            *self._time(y + _SIZE * 0.35, time),
        ]

    def _message(self, rows: list[str], number: int, y: float) -> float:
        """Draw one message below ``y``; return where the next one may begin."""
        line, label, note = self.lines[number], self.labels[number], self.notes[number]
        here, there = self.columns[line.sender], self.columns[line.receiver]
        ink = self.palette.line
        if line.sender == line.receiver:
            rows += self._texts(label, here + _LOOP + _PADDING / 2, y, "start")
            height = max(len(label) * _LINE, _LINE)
            low = y + height + 4
            rows.append(
                f'<path d="M{_n(here)} {_n(y + 6)}h{_LOOP}V{_n(low)}H{_n(here)}" fill="none"'
                f' stroke="{ink}"/>'
            )
            rows.append(self._head(here, low, 1))
            bottom = low
        else:
            rows += self._texts(label, (here + there) / 2, y, "middle")
            bottom = y + max(len(label), 1) * _LINE + 4
            rows.append(
                f'<line x1="{_n(here)}" y1="{_n(bottom)}" x2="{_n(there)}" y2="{_n(bottom)}"'
                f' stroke="{ink}"/>'
            )
            rows.append(self._head(there, bottom, -1 if there > here else 1))
        if note:
            width = _text_width(note) + _PADDING
            height = len(note) * _LINE + 6
            rows.append(self._box(there + _PADDING, bottom + 6, width, height, 2))
            left = there + _PADDING + _PADDING / 2
            rows += self._texts(note, left, bottom + 8, "start", self.palette.soft, mask=False)
            bottom += 6 + height
        return bottom

    def _texts(
        self,
        lines: list[str],
        x: float,
        y: float,
        anchor: str,
        colour: str = "",
        *,
        mask: bool = True,
    ) -> list[str]:
        """Lines of text below ``y``, on the colour of the page where lifelines cross them."""
        drawn = []
        if mask and lines:
            width = _text_width(lines)
            left = x - width / 2 if anchor == "middle" else x
            drawn.append(
                f'<rect x="{_n(left - 2)}" y="{_n(y)}" width="{_n(width + 4)}"'
                f' height="{len(lines) * _LINE}" fill="{self.palette.page}"/>'
            )
        fill = f' fill="{colour}"' if colour else ""
        drawn += [
            f'<text x="{_n(x)}" y="{_n(y + n * _LINE + _SIZE)}" text-anchor="{anchor}"{fill}>'
            f"{escape(text)}</text>"
            for n, text in enumerate(lines)
        ]
        return drawn

    def _head(self, x: float, y: float, side: int) -> str:
        """The head of an arrow that ends at ``x``; its tail is on the given side."""
        return (
            f'<path d="M{_n(x)} {_n(y)}l{9 * side} -4v8z" fill="{self.palette.line}"'
            f' stroke="none"/>'
        )


def _wrapped(text: str, columns: int) -> list[str]:
    return textwrap.wrap(one_line(text), columns)


def _text_width(lines: Sequence[str]) -> float:
    return max((text_width(line, _SIZE) for line in lines), default=0)


def _n(number: float) -> str:
    """A coordinate with at most one digit after the point."""
    return f"{number:.1f}".removesuffix(".0")
