"""A journal as a file of JSON lines: one transition per line, in order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["FIELDS", "JournalError", "Line", "read_journal", "write_journal"]

FIELDS = ("seq", "time", "key", "trigger", "source", "target", "cause")


class Line(NamedTuple):
    """One transition. `time` is in ns of virtual time, `key` names the entity
    (``application/8687``)."""

    seq: int
    time: int
    key: str
    trigger: str
    source: str
    target: str
    cause: str


class JournalError(ValueError):
    """A file that is not a journal. The text is one line with the location and the reason."""


def write_journal(path: Path | str, records: Iterable[Any]) -> int:
    """Write the records of a journal; return their number. Raises `OSError`."""
    count = 0
    with Path(path).open("w", encoding="utf-8") as stream:
        for record in records:
            line = {name: getattr(record, name) for name in FIELDS}
            stream.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
            count += 1
    return count


def read_journal(path: Path | str) -> Iterator[Line]:
    """Read a file of `write_journal`. Raises `OSError` and `JournalError`."""
    with Path(path).open(encoding="utf-8") as stream:
        try:
            for number, text in enumerate(stream, 1):
                if text.strip():
                    yield _line(path, number, text)
        except UnicodeDecodeError:
            raise JournalError(f"{path}: not a journal (not UTF-8 text)") from None


def _line(path: Path | str, number: int, text: str) -> Line:
    try:
        found = json.loads(text)
        line = Line(*(found[name] for name in FIELDS))
    except (ValueError, TypeError, KeyError, RecursionError):
        raise JournalError(
            f"{path}:{number}: not a line of a journal (an object with {', '.join(FIELDS)})"
        ) from None
    if not isinstance(line.time, int) or not isinstance(line.key, str):
        raise JournalError(f"{path}:{number}: time is not a whole number or key is not text")
    return line
