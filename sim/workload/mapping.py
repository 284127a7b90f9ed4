"""The mapping file of a CSV trace: which columns are which fields of a job, in YAML.

docs/traces.md describes the file. `load` checks all of it, so that a misspelled key is an error
that names it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from quadriga.sim.workload.amounts import MEMORY_UNITS, TIME_UNITS, VCORE_UNITS, number, quoted
from quadriga.sim.workload.model import GPU, MEMORY, VCORE, NodeSpec, WorkloadError
from quadriga.sim.workload.nodes import parse_nodes

_MAX_BYTES = 65_536

#: texts that mean that there is no value
EMPTY = ("", "nan", "NaN", "NA", "null", "NULL", "None", "\\N")

#: what a gang wants of the domains of nodes: tags of its application, with an underscore for the dot
TOPOLOGY = ("topology_required", "topology_preferred", "topology_members")
_TEXTS = ("id", "user", "group", "queue", "status", *TOPOLOGY)
_TIMES = ("submit", "start", "end")
_DURATIONS = ("runtime", "estimate")
_COUNTS = ("pods", "copies")
#: the resources of fields with an amount, and the units that they may have
_AMOUNTS: dict[str, tuple[str, Mapping[str, int]]] = {
    "vcore": (VCORE, VCORE_UNITS),
    "memory": (MEMORY, MEMORY_UNITS),
    "gpu": (GPU, {}),
}
_NUMBERS = (*_TIMES, *_DURATIONS, *_COUNTS)


@dataclass(frozen=True, slots=True)
class Field:
    """Where a value comes from: columns, whose texts are joined with a dot, or a constant.

    `default` replaces an empty column, and `names` replaces texts. A number is multiplied by
    `factor`, which contains the unit. `form` is the form of a time that is no number: ``iso``,
    ``clock`` or a pattern of `strptime`.
    """

    key: str
    columns: tuple[str, ...] = ()
    constant: str | None = None
    default: str = ""
    factor: Decimal = Decimal(1)
    form: str = ""
    names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Condition:
    """A line counts only if `column` is one of `among`, none of `without`, and a number from
    `least` to `most`, as far as these are given."""

    column: str
    among: frozenset[str] | None = None
    without: frozenset[str] = frozenset()
    least: Decimal | None = None
    most: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Events:
    """The lines are events: `column` says of which kind, `time` when. The line of a submission has
    the fields of the job."""

    column: str
    time: Field
    submit: frozenset[str]
    start: frozenset[str]
    end: frozenset[str]


@dataclass(frozen=True, slots=True)
class MappedNodes:
    """A table of nodes, in a file of this name in the folder of the trace."""

    file: str
    columns: tuple[str, ...] | None
    name: Field | None
    resources: dict[str, Field]
    labels: dict[str, Field]


@dataclass(frozen=True, slots=True)
class TraceMapping:
    """A checked mapping file. `columns` names the columns of a file whose first line does not.
    `job` has fields by key, `resources` by the name of the resource."""

    path: Path
    columns: tuple[str, ...] | None
    delimiter: str
    empty: frozenset[str]
    job: dict[str, Field]
    resources: dict[str, Field]
    events: Events | None
    where: tuple[Condition, ...]
    nodes: tuple[NodeSpec, ...] | MappedNodes | None


def load(path: Path | str) -> TraceMapping:
    """Read a mapping file. Raises `WorkloadError` naming the file, the key or line, and the
    reason."""
    path = Path(path)
    try:
        with path.open("rb") as stream:
            content = stream.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise WorkloadError(path, 0, f"longer than {_MAX_BYTES} bytes")
        data = _document(path, content.decode("utf-8-sig"))
    except OSError as error:
        raise WorkloadError(path, 0, f"cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError:
        raise WorkloadError(path, 0, "not UTF-8 text") from None
    try:
        return _Reader(path).mapping(data)
    except _Wrong as error:
        raise WorkloadError(path, 0, error.reason, error.key) from None


def _document(path: Path, text: str) -> object:
    """The YAML as texts, lists and dictionaries, with None for an empty value."""
    # imported here, since other formats can be read without the scheduler
    from quadriga.core.config import reader

    def plain(node: reader.Node | None) -> object:
        if isinstance(node, reader.Mapping):
            return {key: plain(value) for key, value in node.entries.items()}
        if isinstance(node, reader.Sequence):
            return [plain(item) for item in node.items]
        return None if node is None or node.null else node.text

    try:
        document, repeated = reader.read(text)
    except reader.ReadError as error:
        raise WorkloadError(path, error.line, " ".join(error.reason.split())) from None
    if repeated:
        first = repeated[0]
        raise WorkloadError(path, first.line, first.reason, reader.render_path(first.path))
    return plain(document)


class _Wrong(Exception):
    """What is wrong at a key."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(key, reason)
        self.key = key
        self.reason = reason


class _Reader:
    """Checks one mapping file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._time = "s"

    def mapping(self, data: object) -> TraceMapping:
        known = ("columns", "delimiter", "empty", "time", "job", "events", "where", "nodes")
        top = _keys("", data, known)
        if "time" in top:
            self._time = _text("time", top["time"])
            _time_unit("time", self._time)
        delimiter = _text("delimiter", top.get("delimiter", ","))
        if len(delimiter) != 1 or delimiter in '\r\n"':
            raise _Wrong("delimiter", f"{quoted(delimiter)} is not one character")
        job = _keys("job", top.get("job"), (*_TEXTS, *_NUMBERS, *_AMOUNTS, "resources"))
        events = self._events(top["events"]) if "events" in top else None
        fields = {
            key: self._field("job", key, job[key]) for key in (*_TEXTS, *_NUMBERS) if key in job
        }
        _check_times(fields, events)
        return TraceMapping(
            path=self._path,
            columns=_columns("columns", top),
            delimiter=delimiter,
            empty=frozenset(_texts("empty", top["empty"]) if "empty" in top else EMPTY) | {""},
            job=fields,
            resources=self._resources("job", job),
            events=events,
            where=self._where(top.get("where", [])),
            nodes=self._nodes(top["nodes"]) if "nodes" in top else None,
        )

    def _resources(self, parent: str, data: Mapping[str, Any]) -> dict[str, Field]:
        found = {
            _AMOUNTS[key][0]: self._field(parent, key, data[key]) for key in _AMOUNTS if key in data
        }
        more = data.get("resources", {})
        if not isinstance(more, dict):
            raise _Wrong(f"{parent}.resources", "not names of resources with columns")
        for name, value in more.items():
            name = _text(f"{parent}.resources", name)
            if name in found:
                raise _Wrong(f"{parent}.resources.{name}", "the resource is given twice")
            found[name] = self._field(f"{parent}.resources", name, value)
        if not found:
            raise _Wrong(parent, f"no resource: one of {', '.join(_AMOUNTS)}, resources is needed")
        return found

    def _field(self, parent: str, name: str, value: object) -> Field:
        key = f"{parent}.{name}"
        is_text = parent == "nodes.labels" or (parent == "job" and name in _TEXTS)
        if isinstance(value, str):
            data: Mapping[str, Any] = {"column": value}
        elif isinstance(value, list) and is_text:
            data = {"columns": value}
        else:
            extra = ("columns", "names") if is_text else ("scale", "unit")
            data = _keys(key, value, ("column", "value", "default", *extra))
        given = [way for way in ("column", "columns", "value") if way in data]
        if len(given) != 1:
            raise _Wrong(key, "either column or value is needed")
        columns: tuple[str, ...] = ()
        if "column" in data:
            columns = (_text(f"{key}.column", data["column"]),)
        elif "columns" in data:
            columns = _texts(f"{key}.columns", data["columns"])
        factor, form = (Decimal(1), "") if is_text else self._unit(parent, name, data.get("unit"))
        if "scale" in data:
            scale = _number(f"{key}.scale", data["scale"])
            if scale <= 0 or form:
                reason = "needs a unit" if form else "is not more than 0"
                raise _Wrong(f"{key}.scale", f"{data['scale']} {reason}")
            factor *= scale
        names = data.get("names", {})
        if not isinstance(names, dict):
            raise _Wrong(f"{key}.names", "not texts with the names that replace them")
        return Field(
            key=key,
            columns=columns,
            constant=_text(f"{key}.value", data["value"]) if "value" in data else None,
            default=_text(f"{key}.default", data["default"]) if "default" in data else "",
            factor=factor,
            form=form,
            names={
                _text(f"{key}.names", text): _text(f"{key}.names", instead)
                for text, instead in names.items()
            },
        )

    def _unit(self, parent: str, name: str, unit: object) -> tuple[Decimal, str]:
        """The factor of a number, or the form of a time that is none."""
        key = f"{parent}.{name}.unit"
        if parent == "events" or (parent == "job" and name in _TIMES):
            return _time_unit(key, self._time if unit is None else _text(key, unit))
        if parent == "job" and name in _DURATIONS:
            if unit == "clock":
                return Decimal(1), "clock"
            own = self._time if self._time in TIME_UNITS else "s"
            return _time_unit(key, own if unit is None else _text(key, unit), duration=True)
        units = _AMOUNTS[name][1] if name in _AMOUNTS else {}
        if unit is None:
            return Decimal(next(iter(units.values()), 1)), ""
        text = _text(key, unit)
        if text not in units:
            known = f"known are {', '.join(units)}" if units else "this field has no unit"
            raise _Wrong(key, f"there is no unit {quoted(text)}; {known}")
        return Decimal(units[text]), ""

    def _events(self, value: object) -> Events:
        data = _keys("events", value, ("column", "time", "submit", "start", "end"))
        for key in ("column", "time", "submit", "end"):
            if key not in data:
                raise _Wrong(f"events.{key}", "is needed")
        return Events(
            column=_text("events.column", data["column"]),
            time=self._field("events", "time", data["time"]),
            submit=frozenset(_texts("events.submit", data["submit"])),
            start=frozenset(_texts("events.start", data.get("start", []))),
            end=frozenset(_texts("events.end", data["end"])),
        )

    def _where(self, value: object) -> tuple[Condition, ...]:
        if not isinstance(value, list):
            raise _Wrong("where", "not a list of conditions")
        found = []
        for index, entry in enumerate(value):
            key = f"where[{index}]"
            data = _keys(key, entry, ("column", "is", "not", "min", "max"))
            if "column" not in data or len(data) < 2:
                raise _Wrong(key, "a column and one of is, not, min and max are needed")
            found.append(
                Condition(
                    column=_text(f"{key}.column", data["column"]),
                    among=frozenset(_texts(f"{key}.is", data["is"])) if "is" in data else None,
                    without=frozenset(_texts(f"{key}.not", data.get("not", []))),
                    least=_number(f"{key}.min", data["min"]) if "min" in data else None,
                    most=_number(f"{key}.max", data["max"]) if "max" in data else None,
                )
            )
        return tuple(found)

    def _nodes(self, value: object) -> tuple[NodeSpec, ...] | MappedNodes:
        if isinstance(value, str | list):
            try:
                return parse_nodes(_texts("nodes", value))
            except ValueError as error:
                raise _Wrong("nodes", str(error)) from None
        data = _keys("nodes", value, ("file", "columns", "name", *_AMOUNTS, "resources", "labels"))
        if "file" not in data:
            raise _Wrong("nodes.file", "is needed")
        return MappedNodes(
            file=_text("nodes.file", data["file"]),
            columns=_columns("nodes.columns", data),
            name=Field("nodes.name", columns=_texts("nodes.name", data["name"]))
            if "name" in data
            else None,
            resources=self._resources("nodes", data),
            labels=self._labels(data.get("labels", {})),
        )

    def _labels(self, data: object) -> dict[str, Field]:
        if not isinstance(data, dict):
            raise _Wrong("nodes.labels", "not names of labels with columns")
        labels = {_text("nodes.labels", name): value for name, value in data.items()}
        return {name: self._field("nodes.labels", name, value) for name, value in labels.items()}


def _check_times(fields: Mapping[str, Field], events: Events | None) -> None:
    """The times of a job come either from its own columns or from events."""
    if events is None:
        if "submit" not in fields and "start" not in fields:
            raise _Wrong(
                "job.submit", "is needed, or job.start if the time of submission is not known"
            )
        if "runtime" not in fields and not ("start" in fields and "end" in fields):
            raise _Wrong("job.runtime", "is needed, or job.start and job.end")
        return
    if "id" not in fields:
        raise _Wrong("job.id", "is needed: it tells which events belong together")
    for key in (*_TIMES, "runtime"):
        if key in fields:
            raise _Wrong(f"job.{key}", "comes from the events")


def _keys(key: str, value: object, known: Sequence[str]) -> Mapping[str, Any]:
    """A mapping whose keys are all known."""
    if not isinstance(value, dict):
        raise _Wrong(key, f"not keys with values; known keys are {', '.join(known)}")
    for name in value:
        if name not in known:
            parent = f"{key}." if key else ""
            raise _Wrong(f"{parent}{name}", f"no such key; known are {', '.join(known)}")
    return value


def _text(key: str, value: object) -> str:
    if not isinstance(value, str):
        raise _Wrong(key, "not a text" if value is not None else "it is empty")
    return value


def _texts(key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        return (_text(key, value),)
    return tuple(_text(key, entry) for entry in value)


def _columns(key: str, data: Mapping[str, Any]) -> tuple[str, ...] | None:
    if "columns" not in data:
        return None
    columns = _texts(key, data["columns"])
    if len(set(columns)) < len(columns):
        raise _Wrong(key, "two columns have the same name")
    return columns


def _number(key: str, value: object) -> Decimal:
    try:
        return number(_text(key, value))
    except ValueError as error:
        raise _Wrong(key, str(error)) from None


def _time_unit(key: str, text: str, *, duration: bool = False) -> tuple[Decimal, str]:
    if text in TIME_UNITS:
        return TIME_UNITS[text], ""
    if not duration and (text == "iso" or "%" in text):
        return Decimal(1), text
    more = "clock" if duration else "iso and patterns such as %Y-%m-%d %H:%M:%S"
    known = f"{', '.join(TIME_UNITS)}, {more}"
    raise _Wrong(key, f"there is no unit {quoted(text)}; known are {known}")
