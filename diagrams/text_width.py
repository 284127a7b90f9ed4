"""The width of text in Arial and the fonts of the same widths (Helvetica, Liberation Sans).

Graphviz is not needed for this, and the result is the same on every machine.
"""

from __future__ import annotations

import unicodedata
from typing import Final

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
    """The width of one line, never less than it is for Latin, in the unit of ``size``."""
    thousandths = sum(map(_width, text))
    return thousandths * size / 1000 * (_BOLD if bold else 1)


def _width(character: str) -> int:
    known = _OF.get(character)
    if known is not None:
        return known
    if unicodedata.combining(character):
        return 0
    return _WIDE if unicodedata.east_asian_width(character) in "WF" else _OTHER
