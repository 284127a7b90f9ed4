"""Regular expressions of configurations, matched in time that is proportional to the text.

Python's own engine tries one way after the other: an expression such as ``(a+)+$`` takes hours for a
text of forty letters, during which nobody's requests would be served. Here all ways are followed at once
(a set of places in a small program, one step for each character), which is all that a yes or no needs.
What an engine of this kind cannot do, references back and looking around, YuniKorn's cannot either.
"""

from __future__ import annotations

import re
import re._constants as op  # type: ignore[import-not-found,unused-ignore]
import re._parser as parser  # type: ignore[import-not-found,unused-ignore]
import warnings
from collections.abc import Callable, Iterable
from typing import Any, Final

__all__ = ["Expression"]

#: steps of the program of one expression
_LARGEST: Final = 500
#: longer texts match nothing
_LONGEST: Final = 1_000

_Test = Callable[[str], bool]
_Context = Callable[[str, int], bool]

_CATEGORIES: Final[dict[Any, _Test]] = {
    op.CATEGORY_DIGIT: str.isdecimal,
    op.CATEGORY_NOT_DIGIT: lambda letter: not letter.isdecimal(),
    op.CATEGORY_SPACE: str.isspace,
    op.CATEGORY_NOT_SPACE: lambda letter: not letter.isspace(),
    op.CATEGORY_WORD: lambda letter: letter.isalnum() or letter == "_",
    op.CATEGORY_NOT_WORD: lambda letter: not (letter.isalnum() or letter == "_"),
}


def _at_boundary(text: str, place: int) -> bool:
    word = _CATEGORIES[op.CATEGORY_WORD]
    before = place > 0 and word(text[place - 1])
    return before != (place < len(text) and word(text[place]))


_PLACES: Final[dict[Any, _Context]] = {
    op.AT_BEGINNING: lambda text, place: place == 0,
    op.AT_BEGINNING_STRING: lambda text, place: place == 0,
    op.AT_END: lambda text, place: place == len(text) or text[place:] == "\n",
    op.AT_END_STRING: lambda text, place: place == len(text),
    op.AT_BOUNDARY: _at_boundary,
    op.AT_NON_BOUNDARY: lambda text, place: not _at_boundary(text, place),
}


class Expression:
    """Raises ``ValueError`` for a text that is no expression, one of the kind that this cannot do, or
    one that is too large."""

    __slots__ = ("_program",)

    def __init__(self, text: str) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of Python's own about odd but valid expressions
                parsed = parser.parse(text)
            if parsed.state.flags & (re.MULTILINE | re.ASCII | re.LOCALE | re.VERBOSE):
                raise ValueError("has flags other than i and s")
            #: (test, context, next places): a letter to take, a condition to pass, or a fork
            self._program: list[tuple[_Test | None, _Context | None, list[int]]] = []
            self._sequence(parsed, parsed.state.flags)
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(str(error)) from None

    def search(self, text: str) -> bool:
        """Whether it matches somewhere in the text."""
        if len(text) > _LONGEST:
            return False
        program, end = self._program, len(self._program)
        here: set[int] = set()
        for place in range(len(text) + 1):
            here.add(0)  # a match may begin anywhere
            here = self._spread(here, text, place)
            if end in here:
                return True
            if place < len(text):
                letter = text[place]
                after: set[int] = set()
                for at in here:
                    test, _, following = program[at]
                    if test is not None and test(letter):
                        after.update(following)
                here = after
        return False

    def _spread(self, places: Iterable[int], text: str, place: int) -> set[int]:
        """These, and all that can be reached from them without a letter."""
        program, found, left = self._program, set[int](), [*places]
        while left:
            at = left.pop()
            if at in found:
                continue
            found.add(at)
            if at < len(program):
                test, context, following = program[at]
                if test is None and (context is None or context(text, place)):
                    left.extend(following)
        return found

    # -- the program -----------------------------------------------------------------------------

    def _add(self, test: _Test | None = None, context: _Context | None = None) -> list[int]:
        """One more step; the list of places that follow is for the caller to correct."""
        if len(self._program) >= _LARGEST:
            raise ValueError("is too large")
        following = [len(self._program) + 1]
        self._program.append((test, context, following))
        return following

    def _sequence(self, parts: Any, flags: int) -> None:
        for kind, value in parts:
            self._part(kind, value, flags)

    def _part(self, kind: Any, value: Any, flags: int) -> None:
        if kind in (op.MAX_REPEAT, op.MIN_REPEAT):
            least, most, inside = value
            self._repeat(least, most, inside, flags)
        elif kind is op.BRANCH:
            self._branch(value[1], flags)
        elif kind is op.SUBPATTERN:
            _, more, fewer, inside = value
            if more & ~(re.IGNORECASE | re.DOTALL | re.UNICODE):
                raise ValueError("has flags other than i and s")
            self._sequence(inside, (flags | more) & ~fewer)
        elif kind is op.AT:
            if value not in _PLACES:
                raise ValueError(f"has {value}")
            self._add(context=_PLACES[value])
        else:
            self._add(_letter(kind, value, flags))

    def _repeat(self, least: int, most: Any, inside: Any, flags: int) -> None:
        for _ in range(least):
            self._sequence(inside, flags)
            if not inside:
                break
        if most is op.MAXREPEAT:
            begin = len(self._program)
            fork = self._add()
            self._sequence(inside, flags)
            self._add()[:] = [begin]
            fork.append(len(self._program))
            return
        forks = []
        for _ in range(most - least if inside else 0):
            forks.append(self._add())
            self._sequence(inside, flags)
        for fork in forks:
            fork.append(len(self._program))

    def _branch(self, ways: Any, flags: int) -> None:
        fork = self._add()
        begins, ends = [], []
        for way in ways:
            begins.append(len(self._program))
            self._sequence(way, flags)
            ends.append(self._add())
        fork[:] = begins
        for end in ends:
            end[:] = [len(self._program)]


def _letter(kind: Any, value: Any, flags: int) -> _Test:
    """Whether a letter is the one, or one of those, that the expression has."""
    if kind is op.ANY:
        return (lambda letter: True) if flags & re.DOTALL else (lambda letter: letter != "\n")
    if kind is op.IN:
        negated = value[0][0] is op.NEGATE
        tests = [_one(each, inside) for each, inside in value[negated:]]

    elif kind in (op.LITERAL, op.NOT_LITERAL):
        negated, tests = kind is op.NOT_LITERAL, [_one(op.LITERAL, value)]
    else:
        raise ValueError(f"has {str(kind).lower()}")
    ignore_case = bool(flags & re.IGNORECASE)

    def test(letter: str) -> bool:
        letters = {letter, letter.lower(), letter.upper()} if ignore_case else (letter,)
        return any(each(one) for each in tests for one in letters) != negated

    return test


def _one(kind: Any, value: Any) -> _Test:
    if kind is op.LITERAL:
        return chr(value).__eq__
    if kind is op.RANGE:
        low, high = map(chr, value)
        return lambda letter: low <= letter <= high
    if kind is op.CATEGORY and value in _CATEGORIES:
        return _CATEGORIES[value]
    raise ValueError(f"has {str(kind).lower()}")
