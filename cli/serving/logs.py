"""Log lines as text or JSON, without secrets and safe from forged lines.

A line has the time, the level, the logger and the message; ids passed as ``extra`` become fields.
Secret fields of protobuf messages (I1) and texts that look like bearer tokens are hidden. Control
characters are escaped, so a name chosen by a peer can neither forge a line nor control a terminal.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import IO, Any, Final

#: names allowed as ``extra``, in output order
FIELDS: Final = (
    "rm_id",
    "application_id",
    "allocation_key",
    "node_id",
    "queue",
    "principal",
    "peer",
    "method",
    "path",
    "status",
    "file",
    "line",
    "part",
    "pid",
    "ports",
)

_BEARER: Final = re.compile(r"(?i)\b(bearer|plain:|sha256:)(\s*)[^\s\"',;]+")
#: maximum length of one text in a line
_LONGEST: Final = 16_384


class Formatter(logging.Formatter):
    """One line per record: an object with ``as_json``, else text, followed by the traceback of an
    exception."""

    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        message = _one_line(self._message(record))
        fields = dict(_fields(record))
        story = self._story(record)
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        if not self._as_json:
            ids = "".join(f" {name}={_one_line(str(value))}" for name, value in fields.items())
            line = f"{when} {record.levelname:<7} {record.name}: {message}{ids}"
            return f"{line}\n{story}" if story else line
        told: dict[str, Any] = {
            "time": when,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": message,
            **fields,
        }
        if story:
            told["exception"] = story
        return json.dumps(told, ensure_ascii=True, default=str)

    def _message(self, record: logging.LogRecord) -> str:
        arguments = record.args
        if isinstance(arguments, tuple):
            arguments = tuple(map(_safe, arguments))
        try:
            return str(record.msg) % arguments if arguments else str(_safe(record.msg))
        except (TypeError, ValueError, KeyError):  # a wrong format is logged as it is
            return f"{record.msg} {arguments}"

    def _story(self, record: logging.LogRecord) -> str:
        story = self.formatException(record.exc_info) if record.exc_info else ""
        if record.stack_info:
            story = f"{story}\n{record.stack_info}" if story else record.stack_info
        return _BEARER.sub(r"\1\2<secret>", story)


def set_up(level: str, form: str, stream: IO[str] | None = None) -> None:
    """Log to ``stream``, by default standard error, from now on."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(Formatter(as_json=form == "json"))
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())
    logging.captureWarnings(True)
    # The libraries' own messages are for debugging; a line for each request would hide all others.
    # uvicorn's warnings concern mistakes of clients.
    quiet = logging.DEBUG if level == "debug" else logging.ERROR
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio", "grpc"):
        logging.getLogger(name).setLevel(max(quiet, root.level))


def _safe(value: object) -> object:
    if type(value).__module__.startswith("google."):
        return _Told(value)
    if hasattr(value, "DESCRIPTOR") and hasattr(value, "ListFields"):
        return _Told(value)
    return value


class _Told:
    """A message that is formatted, without its secrets, only if the line is printed."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value

    def __str__(self) -> str:
        from quadriga.si import redacted

        return redacted(self._value) if hasattr(self._value, "ListFields") else str(self._value)

    __repr__ = __str__


def _fields(record: logging.LogRecord) -> Iterator[tuple[str, object]]:
    for name in FIELDS:
        value = getattr(record, name, None)
        if value is not None:
            yield name, value if isinstance(value, int | float) else _one_line(str(value))


def _one_line(text: str) -> str:
    text = _BEARER.sub(r"\1\2<secret>", text)
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]} ... ({len(text)} characters)"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
