"""Documents as YAML text, which `quadriga.core.config.reader.read` reads back as it was.

A document consists of dictionaries, lists, texts, numbers and booleans, and
keeps its order. A text that YAML would read as something else is quoted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

__all__ = ["write"]

_STEP: Final = 2
"""A level is indented by this many columns."""
_MAX_INLINE_KEY: Final = 122
"""A key of at most this many characters stands on one line with its value."""

_NOT_A_TEXT: Final = re.compile(
    r"""
      ~ | null | Null | NULL | true | True | TRUE | false | False | FALSE | << | =
    | [-+]? (?: 0b[01_]+ | 0o[0-7_]+ | 0x[0-9a-fA-F_]+ ) | (?!_) [-+]? [0-9_]+
    | [-+]? [0-9] [0-9_]* (?: \.[0-9_]* )? (?: [eE][-+]?[0-9]+ )?
    | [-+]? \.[0-9_]+ (?: [eE][-+][0-9]+ )?
    | [-+]? \.(?: inf | Inf | INF ) | \.(?: nan | NaN | NAN )
    | [0-9]{4}-[0-9]{2}-[0-9]{2}
    | [0-9]{4}-[0-9]{1,2}-[0-9]{1,2} (?: [Tt] | [ ]+ )
      [0-9]{1,2}:[0-9]{2}:[0-9]{2} (?: \.[0-9]* )? (?: [ ]* (?: Z | [-+][0-9]{1,2}(?: :[0-9]{2} )? ) )?
    """,
    re.VERBOSE,
)
"""Plain scalars that are null, a boolean, a number or a time in YAML, or that merge mappings."""
_PUNCTUATION: Final = re.compile(
    r"""
      (?: [][#,{}&*!|>'"%@`] | --- | \.\.\. | [-?:](?: [ ] | $ ) | [ ] )  # at the start
    | .* (?: :(?: [ ] | $ ) | [ ]\# | [ ]$ )                              # anywhere
    """,
    re.VERBOSE,
)
"""Texts that contain something with a meaning in YAML where it stands."""
_BREAKS: Final = re.compile(r"[\n\x85\u2028\u2029]")
_UNPRINTABLE: Final = re.compile(
    r"[^ -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
"""Characters that only a text in double quotes can have, line breaks among them."""
_ESCAPED: Final = re.compile(rf'["\\]|{_UNPRINTABLE.pattern}')
_ESCAPES: Final = {
    **dict(zip("\0\a\b\t\n\v\f\r\x1b\x85\u2028\u2029", "0abtnvfreNLP", strict=True)),
    **{character: character for character in '"\\'},
}
_GAPS: Final = re.compile(r"((?<!^')(?<!\ )\ +(?!'$)(?!\ ))")
"""Spaces between words. Those at the ends of a text in single quotes belong to a word."""


def write(document: Mapping[str, Any], width: int = 80) -> str:
    """The document as YAML. A line with more than `width` columns is wrapped at its spaces if it
    can be, except in a text in double quotes."""
    return _node(document, 0, 0, width) + "\n"


def _node(value: Any, indent: int, column: int, width: int) -> str:
    """The YAML of `value`. It begins in `column`; further lines are indented by `indent`."""
    line = "\n" + " " * indent
    match value:
        case dict() if value:
            return line.join(_entry(key, below, indent, width) for key, below in value.items())
        case list() if value:
            inside = indent + _STEP
            return line.join(f"- {_node(item, inside, inside, width)}" for item in value)
        case dict():
            return "{}"
        case list():
            return "[]"
        case bool():
            written = "true" if value else "false"
        case str():
            written = _text(value)
        case _:
            written = str(value)
    return _wrapped(written, indent, column, width)


def _entry(key: str, value: Any, indent: int, width: int) -> str:
    """The YAML of a key with its value. It begins in the column `indent`."""
    inside = indent + _STEP
    written = _text(key)
    if len(key) > _MAX_INLINE_KEY or _BREAKS.search(key):
        written = f"? {_wrapped(written, inside, inside, width)}\n{' ' * indent}"
        return f"{written}: {_node(value, inside, inside, width)}"
    if isinstance(value, dict) and value:
        return f"{written}:\n{' ' * inside}{_node(value, inside, inside, width)}"
    if isinstance(value, list) and value:  # The dashes stand below the key.
        return f"{written}:\n{' ' * indent}{_node(value, indent, indent, width)}"
    return f"{written}: {_node(value, inside, indent + len(written) + 2, width)}"


def _wrapped(written: str, indent: int, column: int, width: int) -> str:
    """A plain scalar, or one in single quotes, on as many lines as it needs."""
    if column + len(written) <= width or written[0] == '"':
        return written
    plain = written[0] != "'"
    line = "\n" + " " * indent
    parts: list[str] = []
    for number, part in enumerate(_GAPS.split(written)):
        if number % 2:
            if part == " " and column >= (width if plain else width + 1):
                part, column = line, indent - len(line)  # A line break is read as one space.
        elif plain and column + len(part) > width and column > indent:
            # A word that is too long for this line gets a line of its own.
            parts.append(line)
            column = indent
        parts.append(part)
        column += len(part)
    return "".join(parts)


def _text(text: str) -> str:
    """The YAML of a text on one line: plain if it can be, else in quotes."""
    unprintable = _UNPRINTABLE.search(text)
    if not text or unprintable or _PUNCTUATION.match(text) or _NOT_A_TEXT.fullmatch(text):
        if unprintable or "'" in text:
            return f'"{_ESCAPED.sub(_escape, text)}"'
        return f"'{text}'"
    return text


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    if character in _ESCAPES:
        return "\\" + _ESCAPES[character]
    code = ord(character)
    if code <= 0xFF:
        return f"\\x{code:02X}"
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"
