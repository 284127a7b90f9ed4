"""A place in a configuration: where it is, what is written there, what is wrong with it.

The readers of the parts are written against `Place`, which turns what is
written into texts, numbers, lists and mappings and notes every problem with
its path, so that one load shows all of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from quadriga.core.config.reader import Mapping, Node, Path, Scalar, Sequence, render_path

__all__ = ["MOST_PROBLEMS", "ConfigError", "Findings", "Place", "Problem"]

MOST_PROBLEMS: Final = 100
"""At most this many problems of one text are told; every line may have one."""
#: characters of a path, and of a reason
_LONGEST: Final = 1000

_INTEGER: Final = re.compile(r"\+?(?:([0-9]+)|0o([0-7]+)|0x([0-9a-fA-F]+))")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_BOOLEANS: Final = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_MOST_COUNT: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: where (``partitions[0].queues[1].name``), and why."""

    path: str
    """Empty for the whole text."""
    reason: str
    line: int = 0
    """The line in the text, from 1; 0 if none can be named."""

    def __str__(self) -> str:
        line = f"line {self.line}" if self.line else ""
        where = f"{self.path} ({line})" if self.path and line else self.path or line
        return f"{where}: {self.reason}" if where else self.reason


class ConfigError(ValueError):
    """A configuration that cannot be used; the message lists its problems, ``MOST_PROBLEMS`` at most.

    ``more`` is how many others there are.
    """

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
    """What one load found: problems refuse the configuration, warnings do not.

    The first ``MOST_PROBLEMS`` of each are kept, and those after them counted.
    """

    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    more_problems: int = 0

    def problem(self, path: Path, reason: str, line: int) -> None:
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(_problem(path, reason, line))
        else:
            self.more_problems += 1

    def warning(self, path: Path, reason: str, line: int) -> None:
        if len(self.warnings) < MOST_PROBLEMS:
            self.warnings.append(_problem(path, reason, line))


def _problem(path: Path, reason: str, line: int) -> Problem:
    return Problem(_cut(render_path(path)), _cut(reason), line)


def _cut(text: str) -> str:
    """What is written may be as long as the whole text, and is cited in each problem."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


class Place:
    """What is written at one path of the text, or that nothing is."""

    __slots__ = ("_findings", "_line", "misshapen", "node", "path")

    def __init__(self, node: Node | None, path: Path, findings: Findings, line: int = 0) -> None:
        self.node = node
        self.path = path
        self.misshapen = False
        self._findings = findings
        # Where nothing is written, the line is that of what should have held it.
        self._line = node.line if node is not None else line

    @property
    def given(self) -> bool:
        """Whether something other than null is written here."""
        return self.node is not None and not (isinstance(self.node, Scalar) and self.node.null)

    @property
    def textual(self) -> bool:
        """Whether `text` has something to say here: a text, or nothing for an empty one."""
        return self.node is None or isinstance(self.node, Scalar)

    def problem(self, reason: str) -> None:
        """Refuse the configuration for what is here."""
        self._findings.problem(self.path, reason, self._line)

    def warning(self, reason: str) -> None:
        """Note that what is here has no effect."""
        self._findings.warning(self.path, reason, self._line)

    def at(self, key: str) -> Place:
        """The place of `key` if the mapping here has it, otherwise this place; reports nothing."""
        node = self.node.entries.get(key) if isinstance(self.node, Mapping) else None
        return self if node is None else self._below(node, key)

    def unheard(self) -> Place:
        """The same place, to be read again without another word about it."""
        return Place(self.node, self.path, Findings(), self._line)

    def nowhere(self) -> Place:
        """This place as if nothing were written here."""
        return Place(None, self.path, self._findings, self._line)

    def fields(self, *known: str) -> dict[str, Place]:
        """The places of all `known` keys of the mapping here; other keys are problems."""
        entries = self.entries()
        for key, place in entries.items():
            if key not in known:
                place.problem(f"unknown key; the keys here are {', '.join(known)}")
        return {key: entries.get(key) or self._below(None, key) for key in known}

    def entries(self) -> dict[str, Place]:
        """Everything in the mapping here; empty where nothing is written."""
        if not self.given:
            return {}
        if not isinstance(self.node, Mapping):
            self._unexpected("a mapping")
            return {}
        return {key: self._below(node, key) for key, node in self.node.entries.items()}

    def items(self) -> list[Place]:
        """The places of the list here; empty where nothing is written."""
        if not self.given:
            return []
        if not isinstance(self.node, Sequence):
            self._unexpected("a list")
            return []
        return [self._below(node, index) for index, node in enumerate(self.node.items)]

    def text(self) -> str:
        """The text here, as written; empty where nothing is."""
        if not self.given:
            return ""
        if not isinstance(self.node, Scalar):
            self._unexpected("a text")
            return ""
        return self.node.text

    def texts(self) -> tuple[str, ...]:
        """The list of texts here."""
        return tuple(item.text() for item in self.items())

    def text_map(self) -> dict[str, str]:
        """The mapping of texts here."""
        return {key: place.text() for key, place in self.entries().items()}

    def flag(self, default: bool) -> bool:
        """The boolean here; `default` where nothing is written."""
        if not self.given:
            return default
        value = _BOOLEANS.get(self._plain())
        if value is None:
            self._unexpected("true or false")
            return default
        return value

    def count(self) -> int:
        """The whole number here, not negative; 0 where nothing is written."""
        if not self.given:
            return 0
        match = _INTEGER.fullmatch(self._plain())
        if match is None or len(match[0]) > 64:
            self._unexpected("a whole number, zero or more")
            return 0
        decimal, octal, hexadecimal = match.groups()
        value = int(decimal or octal or hexadecimal, 10 if decimal else 8 if octal else 16)
        if value > _MOST_COUNT:
            self._unexpected("a number that fits 64 bits")
            return 0
        return value

    def number(self) -> float:
        """The finite number here; a problem and 0 where there is none."""
        text = self._plain()
        value = float(text) if _FLOAT.fullmatch(text) else math.nan
        if not math.isfinite(value):
            self._unexpected("a finite number")
            return 0.0
        return value

    def _plain(self) -> str:
        """The text of an unquoted scalar: what is quoted is a text and nothing else."""
        return self.node.text if isinstance(self.node, Scalar) and not self.node.quoted else ""

    def _below(self, node: Node | None, key: str | int) -> Place:
        return Place(node, (*self.path, key), self._findings, self._line)

    def _unexpected(self, wanted: str) -> None:
        match self.node:
            case Scalar(text=text, null=False):
                found = f"the text {text if len(text) <= 40 else text[:37] + '...'!r}"
            case Mapping():
                found = "a mapping"
            case Sequence():
                found = "a list"
            case _:
                found = "nothing"
        self.problem(f"{wanted} is expected, not {found}")
        # What does not have its shape would only cause problems that follow from this one.
        self.misshapen = True
        self._findings = Findings()
