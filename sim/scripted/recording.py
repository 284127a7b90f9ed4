"""A journal as a file of JSON lines: one transition per line, in order."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

FIELDS = ("seq", "time", "key", "trigger", "source", "target", "cause")
#: the first bytes of a record; no text of a record can contain them, as its quotes are escaped
_BEGIN: Final = b'{"seq":'
_DECODER: Final = json.JSONDecoder()
#: what JSON that is no record raises
_WRONG: Final = (ValueError, TypeError, KeyError, RecursionError)


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


class Gap(NamedTuple):
    """Bytes of a file that contain no whole record. `before` and `after` are the numbers (`seq`) of
    the records next to them, `None` at the start and at the end of the file."""

    offset: int
    size: int
    before: int | None
    after: int | None


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


def read_journal(
    path: Path | str, skipped: Callable[[Gap], object] | None = None
) -> Iterator[Line]:
    """Read a file of `write_journal`. Raises `OSError` and `JournalError`.

    With `skipped` the damaged parts of a file are passed to it, and reading continues with the next
    whole record; only a file without any record is an error. A last line that was not written to its
    end is no damage.
    """
    begin = end = read = 0
    before: int | None = None
    fault: JournalError | None = None
    empty = True
    raw = b""
    with Path(path).open("rb") as stream:
        for number, raw in enumerate(stream, 1):
            begin, end = end, end + len(raw)
            if not raw.strip():
                read = end if read == begin else read
                continue
            found: Iterable[tuple[int, int, Line]]
            try:
                found = ((0, len(raw), _line(path, number, raw)),)
            except JournalError as error:
                if skipped is None:
                    raise
                fault = fault or error
                found = _whole(raw)
            for start, stop, line in found:
                if skipped is not None and begin + start > read:
                    skipped(Gap(read, begin + start - read, before, line.seq))
                read, before, empty = begin + stop, line.seq, False
                yield line
    if fault is not None and empty:
        raise fault
    if (
        skipped is not None
        and read < end
        and not (read >= begin and is_cut_off(raw[read - begin :]))
    ):
        skipped(Gap(read, end - read, before, None))


def _line(path: Path | str, number: int, raw: bytes) -> Line:
    try:
        line = _record(json.loads(raw.decode("utf-8")))
    except UnicodeDecodeError:
        raise JournalError(f"{path}: not a journal (not UTF-8 text)") from None
    except _WRONG:
        raise JournalError(
            f"{path}:{number}: not a line of a journal (an object with {', '.join(FIELDS)})"
        ) from None
    if not _typed(line):
        raise JournalError(f"{path}:{number}: time is not a whole number or key is not text")
    return line


def _whole(raw: bytes) -> Iterator[tuple[int, int, Line]]:
    """The whole records in a damaged line, each with its start and end in the line."""
    start = raw.find(_BEGIN)
    while start >= 0:
        following = raw.find(_BEGIN, start + 1)
        stop = following if following >= 0 else len(raw)
        text = raw[start:stop].decode("utf-8", "surrogateescape")
        try:
            found, length = _DECODER.raw_decode(text)
            size = len(text[:length].encode("utf-8"))  # an error if a byte of it is not UTF-8
            line = _record(found)
        except _WRONG:
            pass
        else:
            if _typed(line):
                # with the white space behind it, such as the end of the line
                yield start, start + size if text[length:].strip() else stop, line
        start = following


def _record(found: Any) -> Line:
    return Line(*(found[name] for name in FIELDS))


def _typed(line: Line) -> bool:
    return isinstance(line.time, int) and isinstance(line.key, str)


def is_cut_off(tail: bytes) -> bool:
    """Whether the end of a file is the start of a record that was not written to its end."""
    if tail.endswith(b"\n") or tail[: len(_BEGIN)] != _BEGIN[: len(tail)] or any(_whole(tail)):
        return False
    try:
        json.loads(tail)
    except _WRONG:
        return True
    return False
