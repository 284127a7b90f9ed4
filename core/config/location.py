"""Locations in a configuration: the value at a path, and the problems found there.

The modules that read queues, limits and rules use `Location` to get texts,
numbers, lists and mappings. It records every problem with its path and line, so
that one load reports all of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from quadriga.base.texts import shortened
from quadriga.core.config.reader import Mapping, Node, Path, Scalar, Sequence, render_path

MAX_PROBLEMS: Final = 100
"""At most this many problems of one text are reported, and as many warnings."""
_MAX_SHOWN: Final = 1000
"""At most this many characters of a path, and of a reason, are reported."""

_INTEGER: Final = re.compile(r"\+?(?:([0-9]+)|0o([0-7]+)|0x([0-9a-fA-F]+))")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_BOOLEANS: Final = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INT64_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem or a warning: its path (``partitions[0].queues[1].name``) and the reason."""

    path: str
    """Empty if the problem concerns the whole text."""
    reason: str
    line: int = 0
    """The line in the text, from 1; 0 if it is not known."""

    def __str__(self) -> str:
        line = f"line {self.line}" if self.line else ""
        where = f"{self.path} ({line})" if self.path and line else self.path or line
        return f"{where}: {self.reason}" if where else self.reason


class ConfigError(ValueError):
    """The configuration is invalid. The message lists the first ``MAX_PROBLEMS`` problems; ``more`` is
    the number of the others."""

    def __init__(
        self, problems: Iterable[Problem], warnings: Iterable[Problem] = (), more: int = 0
    ) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        self.warnings: tuple[Problem, ...] = tuple(warnings)
        self.more = more
        count = len(self.problems) + more
        head = f"the queue configuration has {count} problem{'' if count == 1 else 's'}:"
        tail = [f"and {more} more"] if more else []
        super().__init__("\n  ".join([head, *map(str, self.problems), *tail]))


@dataclass(slots=True)
class Findings:
    """The problems and warnings of one load. A problem makes the configuration invalid, a warning
    does not.

    The first ``MAX_PROBLEMS`` of each are kept; further problems are counted.
    """

    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    more_problems: int = 0

    def problem(self, path: Path, reason: str, line: int) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(_problem(path, reason, line))
        else:
            self.more_problems += 1

    def warning(self, path: Path, reason: str, line: int) -> None:
        if len(self.warnings) < MAX_PROBLEMS:
            self.warnings.append(_problem(path, reason, line))


def _problem(path: Path, reason: str, line: int) -> Problem:
    return Problem(_cut(render_path(path)), _cut(reason), line)


def _cut(text: str) -> str:
    """Shorten a text for a problem: a cited value may be as long as the whole configuration."""
    return shortened(text, _MAX_SHOWN)


class Location:
    """A path in the text, and the value there if there is one."""

    __slots__ = ("_findings", "_line", "has_wrong_type", "node", "path")

    def __init__(self, node: Node | None, path: Path, findings: Findings, line: int = 0) -> None:
        self.node = node
        self.path = path
        self.has_wrong_type = False
        self._findings = findings
        # An absent value has the line of the collection that should contain it.
        self._line = node.line if node is not None else line

    @property
    def is_set(self) -> bool:
        """True if there is a value other than null."""
        return self.node is not None and not (isinstance(self.node, Scalar) and self.node.null)

    @property
    def is_text_or_absent(self) -> bool:
        """True if `text` returns a text without a problem."""
        return self.node is None or isinstance(self.node, Scalar)

    def problem(self, reason: str) -> None:
        """Record a problem with the value, which makes the configuration invalid."""
        self._findings.problem(self.path, reason, self._line)

    def warning(self, reason: str) -> None:
        """Record that the value has no effect, or one that is seldom meant."""
        self._findings.warning(self.path, reason, self._line)

    def at(self, key: str) -> Location:
        """Return the location of `key` if the mapping has it, otherwise this one. Records nothing."""
        node = self.node.entries.get(key) if isinstance(self.node, Mapping) else None
        return self if node is None else self._child(node, key)

    def without_findings(self) -> Location:
        """Return the same location for a second read that records nothing."""
        return Location(self.node, self.path, Findings(), self._line)

    def as_absent(self) -> Location:
        """Return this location without its value."""
        return Location(None, self.path, self._findings, self._line)

    def fields(self, *known: str) -> dict[str, Location]:
        """Return the locations of all `known` keys. Any other key in the mapping is a problem."""
        entries = self.entries()
        for key, location in entries.items():
            if key not in known:
                location.problem(f"unknown key; the keys here are {', '.join(known)}")
        return {key: entries.get(key) or self._child(None, key) for key in known}

    def entries(self) -> dict[str, Location]:
        """Return the locations of all keys of the mapping; empty if there is no value."""
        if not self.is_set:
            return {}
        if not isinstance(self.node, Mapping):
            self._expected("a mapping")
            return {}
        return {key: self._child(node, key) for key, node in self.node.entries.items()}

    def items(self) -> list[Location]:
        """Return the locations of all items of the list; empty if there is no value."""
        if not self.is_set:
            return []
        if not isinstance(self.node, Sequence):
            self._expected("a list")
            return []
        return [self._child(node, index) for index, node in enumerate(self.node.items)]

    def text(self) -> str:
        """Return the text as it is written; empty if there is no value."""
        if not self.is_set:
            return ""
        if not isinstance(self.node, Scalar):
            self._expected("a text")
            return ""
        return self.node.text

    def texts(self) -> tuple[str, ...]:
        """Return the texts of the list."""
        return tuple(item.text() for item in self.items())

    def text_map(self) -> dict[str, str]:
        """Return the mapping from keys to texts."""
        return {key: location.text() for key, location in self.entries().items()}

    def flag(self, default: bool) -> bool:
        """Return the boolean; `default` if there is no value."""
        if not self.is_set:
            return default
        value = _BOOLEANS.get(self._plain())
        if value is None:
            self._expected("true or false")
            return default
        return value

    def count(self) -> int:
        """Return the whole number, zero or more; 0 if there is no value."""
        if not self.is_set:
            return 0
        match = _INTEGER.fullmatch(self._plain())
        if match is None or len(match[0]) > 64:
            self._expected("a whole number, zero or more")
            return 0
        decimal, octal, hexadecimal = match.groups()
        value = int(decimal or octal or hexadecimal, 10 if decimal else 8 if octal else 16)
        if value > _INT64_MAX:
            self._expected("a number that fits 64 bits")
            return 0
        return value

    def number(self) -> float:
        """Return the finite number; anything else is a problem, and 0."""
        text = self._plain()
        value = float(text) if _FLOAT.fullmatch(text) else math.nan
        if not math.isfinite(value):
            self._expected("a finite number")
            return 0.0
        return value

    def _plain(self) -> str:
        """Return the text of an unquoted scalar. A quoted scalar is never a number or a boolean."""
        return self.node.text if isinstance(self.node, Scalar) and not self.node.quoted else ""

    def _child(self, node: Node | None, key: str | int) -> Location:
        return Location(node, (*self.path, key), self._findings, self._line)

    def _expected(self, expected: str) -> None:
        match self.node:
            case Scalar(text=text, null=False):
                found = f"the text {text if len(text) <= 40 else text[:37] + '...'!r}"
            case Mapping():
                found = "a mapping"
            case Sequence():
                found = "a list"
            case _:
                found = "nothing"
        self.problem(f"{expected} is expected, not {found}")
        # Further problems with this value would only follow from this one.
        self.has_wrong_type = True
        self._findings = Findings()
