"""Text files and tables from other sources: compressed or not, bounded, with line numbers in every
error."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from quadriga.sim.workload.model import BadLine, Job, Skipped, WorkloadError

#: a longer line means that the file has another format
MAX_LINE_BYTES = 65_536
#: more jobs than any log of the Parallel Workloads Archive has; bounds the memory for a small
#: compressed file
MAX_LINES = 5_000_000

_GZIP_MAGIC = b"\x1f\x8b"


def _open(path: Path) -> gzip.GzipFile | io.BufferedReader:
    # by content, not by suffix: downloads are often renamed
    with path.open("rb") as stream:
        compressed = stream.read(2) == _GZIP_MAGIC
    return gzip.open(path, "rb") if compressed else path.open("rb")


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, text without its end) of a text file, compressed by gzip or not.

    Invalid UTF-8, which old logs have in comments, is replaced. Raises `WorkloadError` for a file
    that cannot be read, is not text, or has too long a line or too many lines.
    """
    number = 0
    try:
        with _open(path) as stream:
            while line := stream.readline(MAX_LINE_BYTES + 1):
                number += 1
                if len(line) > MAX_LINE_BYTES:
                    raise WorkloadError(path, number, f"line longer than {MAX_LINE_BYTES} bytes")
                if number > MAX_LINES:
                    raise WorkloadError(path, number, f"more than {MAX_LINES} lines")
                if b"\0" in line:
                    raise WorkloadError(path, number, "not a text file (it contains a NUL byte)")
                yield number, line.decode("utf-8", "replace").rstrip("\r\n")
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise WorkloadError(path, number and number + 1, f"cannot be read: {reason}") from error


def fingerprint(facts: Iterable[tuple[str | int, ...]]) -> str:
    """A digest of these facts in any order; it identifies a known log."""
    text = "\n".join(sorted(",".join(map(str, fact)) for fact in facts))
    return hashlib.sha256(text.encode()).hexdigest()


class Row:
    """One line of a table: its fields by column name, and errors that name the line."""

    __slots__ = ("_columns", "_fields", "line", "path")

    def __init__(self, path: Path, line: int, columns: dict[str, int], fields: list[str]) -> None:
        self.path = path
        self.line = line
        self._columns = columns
        self._fields = fields

    def error(self, reason: str) -> WorkloadError:
        """The error `reason` for this line."""
        return WorkloadError(self.path, self.line, reason)

    def has(self, column: str) -> bool:
        """Whether the field is not empty."""
        return bool(self._fields[self._columns[column]])

    def text(self, column: str) -> str:
        """The field, which must not be empty."""
        value = self._fields[self._columns[column]]
        if not value:
            raise self.error(f"{column} is empty")
        return value

    def whole(self, column: str, least: int | None = None) -> int:
        """The field as an integer of at least `least`."""
        value = self._fields[self._columns[column]]
        try:
            number = int(value)
        except ValueError:
            raise self.error(f"{column} is {value[:40]!r}, not a whole number") from None
        if least is not None and number < least:
            raise self.error(f"{column} is {number}, less than {least}")
        return number

    def real(self, column: str) -> float:
        """The field as a finite number."""
        value = self._fields[self._columns[column]]
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
        if not abs(number) < float("inf"):
            raise self.error(f"{column} is {value[:40]!r}, not a number")
        return number


def records(
    path: Path,
    bad: BadLines,
    *,
    names: Sequence[str] | None = None,
    delimiter: str = ",",
    quotes: bool = True,
) -> tuple[tuple[str, ...], Iterator[tuple[int, list[str]]]]:
    """The column names of a table, and its lines as (line number, fields).

    The first line names the columns, unless `names` are given. Blank lines are skipped, and so are
    bad lines: those with another number of fields. With `quotes`, a field may be in double quotes,
    as in CSV; it cannot contain a line break.
    """
    numbered = lines(path)
    if names is None:
        _, header = next(numbered, (0, ""))
        names = _split(header.removeprefix("\ufeff"), delimiter, quotes) or []
    return tuple(names), _fields(path, bad, numbered, len(names), delimiter, quotes)


def _fields(
    path: Path,
    bad: BadLines,
    numbered: Iterator[tuple[int, str]],
    width: int,
    delimiter: str,
    quotes: bool,
) -> Iterator[tuple[int, list[str]]]:
    for line, text in numbered:
        fields = _split(text, delimiter, quotes)
        if fields is not None and len(fields) == width:
            yield line, fields
        elif fields is None:
            bad.add(WorkloadError(path, line, "its quotes do not match"))
        elif text.strip():
            reason = f"{len(fields)} fields where the header has {width}"
            bad.add(WorkloadError(path, line, reason))


def _split(text: str, delimiter: str, quotes: bool) -> list[str] | None:
    # split is ten times faster than a csv reader per line; quotes are rare
    if not quotes or '"' not in text:
        return text.split(delimiter)
    try:
        return next(csv.reader([text], delimiter=delimiter, strict=True))
    except csv.Error:
        return None


def rows(path: Path, columns: tuple[str, ...], bad: BadLines | None = None) -> Iterator[Row]:
    """Yield the lines of a comma-separated table whose first line names its columns.

    The table may have further columns, in any order; blank lines are skipped. Raises
    `WorkloadError` for a missing column, and for a line with another number of fields unless
    these are added to `bad`.
    """
    names, found = records(path, bad or BadLines(path, 0))
    missing = [column for column in columns if column not in names]
    if missing:
        line = 1 if any(names) else 0
        raise WorkloadError(path, line, f"the header lacks the column {', '.join(missing)}")
    positions = {name: index for index, name in enumerate(names)}
    for line, fields in found:
        yield Row(path, line, positions, fields)


def table(folder: Path, name: str) -> Path | None:
    """The path of the table `name` (``jobs.csv``) in `folder`, or of its ``.gz``."""
    for candidate in (folder / name, folder / f"{name}.gz"):
        if candidate.is_file():
            return candidate
    return None


def required(folder: Path, name: str) -> Path:
    """Like `table`, but raises `WorkloadError` if `folder` has none."""
    path = table(folder, name)
    if path is None:
        raise WorkloadError(folder, 0, f"there is neither {name} nor {name}.gz")
    return path


# -- lines that do not have the format: each is reported and skipped, up to a bound ----------------


#: bad lines that a reader skips if the caller does not say otherwise
MAX_BAD_LINES = 100

#: bad lines that the error about too many of them quotes
_QUOTED = 3


class BadLines:
    """The bad lines of one source. At most `limit` of them are skipped; with 0 the first one is an
    error."""

    def __init__(self, path: Path, limit: int = MAX_BAD_LINES) -> None:
        if limit < 0:
            raise ValueError(f"the number of bad lines is {limit}, less than 0")
        self._path = path
        self._limit = limit
        self._errors: list[WorkloadError] = []

    def add(self, error: WorkloadError) -> None:
        """Skip the line that the error names. Raises `WorkloadError` beyond the bound."""
        self._errors.append(error)
        if len(self._errors) > self._limit:
            raise self._quoting(f"more than {self._limit} bad lines")

    def finish(self, good: int) -> tuple[BadLine, ...]:
        """All bad lines, by line. Raises `WorkloadError` if the source has no good line: the file
        then has another format."""
        if self._errors and not good:
            raise self._quoting("no line has the format")
        found = sorted(self._errors, key=lambda error: error.line)
        return tuple(BadLine(e.path, e.line, e.column, e.reason) for e in found)

    def _quoting(self, reason: str) -> WorkloadError:
        first = self._errors[0]
        if len(self._errors) == 1:
            return first
        quoted = "; ".join(
            f"line {error.line}: {': '.join(filter(None, (error.column, error.reason)))}"
            for error in self._errors[:_QUOTED]
        )
        more = "; ..." if len(self._errors) > _QUOTED else ""
        return WorkloadError(self._path, 0, f"{reason}: {quoted}{more}")


def read_jobs(
    folder: Path,
    name: str,
    columns: tuple[str, ...],
    bad_lines: int,
    read: Callable[[Row], Job | Skipped],
) -> tuple[list[Job], tuple[Skipped, ...], tuple[BadLine, ...]]:
    """Read the file `name`, each line of which is a job. Return the jobs, what is skipped, and the bad lines, which
    are skipped too."""
    table = required(folder, name)
    bad = BadLines(table, bad_lines)
    jobs: list[Job] = []
    skipped: list[Skipped] = []
    for row in rows(table, columns, bad):
        try:
            job = read(row)
        except WorkloadError as error:
            bad.add(error)
            continue
        if isinstance(job, Job):
            jobs.append(job)
        else:
            skipped.append(job)
    found = bad.finish(len(jobs) + len(skipped))
    return jobs, (*skipped, *as_skipped(found)), found


def as_skipped(bad_lines: tuple[BadLine, ...]) -> tuple[Skipped, ...]:
    """The bad lines as entries of `Workload.skipped`, which is part of a simulation's report."""
    return tuple(
        Skipped(f"line {bad.line}", ": ".join(filter(None, (bad.column, bad.reason))))
        for bad in bad_lines
    )
