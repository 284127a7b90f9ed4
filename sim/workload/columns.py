"""Fields of a mapping in the lines of one file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path

from quadriga.sim.workload.amounts import (
    amount,
    clock,
    count,
    number,
    quoted,
    timestamp,
    whole_seconds,
)
from quadriga.sim.workload.mapping import Condition, Field
from quadriga.sim.workload.model import Resources, WorkloadError


class Columns:
    """The columns of a file that the fields and conditions of a mapping name.

    Raises `WorkloadError` naming the key of the mapping whose column the file does not have.
    """

    def __init__(
        self,
        path: Path,
        names: Sequence[str],
        fields: Mapping[str, Field],
        resources: Mapping[str, Field],
        *,
        mapping: Path,
        empty: frozenset[str],
        where: Iterable[Condition] = (),
    ) -> None:
        self._path = path
        self._mapping = mapping
        self._positions: dict[str, int] = {}
        for index, name in enumerate(names):
            self._positions.setdefault(name.strip(), index)
        self._sources = {key: self._source(field, empty) for key, field in fields.items()}
        self._resources = {name: self._source(field, empty) for name, field in resources.items()}
        self._conditions = [
            (self.position(condition.column, f"where[{index}].column"), condition)
            for index, condition in enumerate(where)
        ]

    def position(self, column: str, key: str) -> int:
        """The index of a column that is named at `key` of the mapping."""
        if column not in self._positions:
            reason = f"{self._path.name} has no column {quoted(column)}"
            raise WorkloadError(self._mapping, 0, reason, key)
        return self._positions[column]

    def line(self, at: int, fields: Sequence[str]) -> Line | None:
        """The line, or None if it does not meet the conditions. Raises `WorkloadError`."""
        for position, condition in self._conditions:
            try:
                if not _meets(fields[position].strip(), condition):
                    return None
            except ValueError as error:
                raise WorkloadError(self._path, at, str(error), condition.column) from None
        return Line(self._path, at, fields, self._sources, self._resources)

    def _source(self, field: Field, empty: frozenset[str]) -> _Source:
        return _Source(field, [self.position(name, field.key) for name in field.columns], empty)


def _meets(text: str, condition: Condition) -> bool:
    if condition.among is not None and text not in condition.among:
        return False
    if text in condition.without:
        return False
    if condition.least is None and condition.most is None:
        return True
    if not text:
        return False
    value = number(text)
    return (condition.least is None or value >= condition.least) and (
        condition.most is None or value <= condition.most
    )


class _Source:
    """A field of the mapping in the columns of a file."""

    __slots__ = ("_constant", "_empty", "_field", "_positions", "column")

    def __init__(self, field: Field, positions: Sequence[int], empty: frozenset[str]) -> None:
        self._field = field
        self._constant = field.constant
        self._positions = positions
        self._empty = empty
        #: what errors call it
        self.column = ".".join(field.columns) or field.key

    def text(self, fields: Sequence[str]) -> str:
        """The text, empty if there is none."""
        text = self._constant
        if text is None:
            parts = [part for index in self._positions if (part := fields[index].strip())]
            text = ".".join(parts)
            if text in self._empty:
                text = self._field.default
        return self._field.names.get(text, text) if self._field.names else text

    def number(self, fields: Sequence[str]) -> Decimal | None:
        """The number in the unit of the field, None if there is none. Raises `ValueError`."""
        text = self.text(fields)
        if not text:
            return None
        form = self._field.form
        if not form:
            return number(text) * self._field.factor
        if form == "clock":
            return clock(text)
        return timestamp(text, None if form == "iso" else form)


class Line:
    """One line, whose fields are read by the keys of the mapping. Every method raises
    `WorkloadError` with the line and the column."""

    __slots__ = ("_fields", "_path", "_resources", "_sources", "at")

    def __init__(
        self,
        path: Path,
        at: int,
        fields: Sequence[str],
        sources: Mapping[str, _Source],
        resources: Mapping[str, _Source],
    ) -> None:
        self._path = path
        #: the number of the line in the file
        self.at = at
        self._fields = fields
        self._sources = sources
        self._resources = resources

    def text(self, key: str) -> str:
        """A text, empty if there is none."""
        source = self._sources.get(key)
        return source.text(self._fields) if source is not None else ""

    def number(self, key: str) -> Decimal | None:
        """A number or a time in seconds, None if there is none."""
        source = self._sources.get(key)
        if source is None:
            return None
        try:
            return source.number(self._fields)
        except ValueError as error:
            raise self.error(key, error) from None

    def duration(self, key: str, value: Decimal | None = None) -> int | None:
        """Seconds as an integer: `value`, or else the number of the field."""
        if value is None:
            value = self.number(key)
        try:
            return None if value is None else whole_seconds(value, up=True)
        except ValueError as error:
            raise self.error(key, error) from None

    def count(self, key: str) -> int:
        """A number of things; 1 if there is none."""
        value = self.number(key)
        try:
            return 1 if value is None else count(value)
        except ValueError as error:
            raise self.error(key, error) from None

    def resources(self) -> Resources:
        """The amounts above 0."""
        found: Resources = {}
        for name, source in self._resources.items():
            try:
                value = source.number(self._fields)
                if value and (most := amount(value)):
                    found[name] = most
            except ValueError as error:
                raise WorkloadError(self._path, self.at, str(error), source.column) from None
        return found

    def error(self, key: str, reason: object) -> WorkloadError:
        """The error `reason` for the column of a key."""
        source = self._sources.get(key)
        column = source.column if source is not None else key
        return WorkloadError(self._path, self.at, str(reason), column)
