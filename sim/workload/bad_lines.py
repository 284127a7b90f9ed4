"""Lines that do not have the format: each is reported and skipped, up to a bound."""

from __future__ import annotations

from pathlib import Path

from quadriga.sim.workload.model import BadLine, Skipped, WorkloadError

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


def as_skipped(bad_lines: tuple[BadLine, ...]) -> tuple[Skipped, ...]:
    """The bad lines as entries of `Workload.skipped`, which is part of a simulation's report."""
    return tuple(
        Skipped(f"line {bad.line}", ": ".join(filter(None, (bad.column, bad.reason))))
        for bad in bad_lines
    )
