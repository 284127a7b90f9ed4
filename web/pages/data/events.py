"""The latest event records."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from quadriga.core import Scheduler
from quadriga.core.events import Record, message_of
from quadriga.si import EventRecord

#: At most this many of the latest records are searched.
LOOKED_AT: Final = 3000

TYPES: Final = ("", "REQUEST", "APP", "NODE", "QUEUE", "USERGROUP")


class EventSnapshot(NamedTuple):
    """A copy of the kept records; the first one has the id ``first``."""

    tracking: bool
    created: int
    first: int
    records: tuple[Record, ...]


def events(scheduler: Scheduler, *, filtered: bool, limit: int) -> EventSnapshot:
    """The latest records: as many as the caller asks for, or, with a filter, as many as are searched."""
    source = scheduler.events
    number = LOOKED_AT if filtered else limit
    remembered = source.entries.maxlen or 0
    first = max(0, source.created - min(number, remembered))
    records = source.batch(first, number).records
    return EventSnapshot(source.tracking, source.created, first, records)


def finish_events(
    taken: EventSnapshot, *, type: str, text: str, about: str, limit: int
) -> dict[str, Any]:
    """The records that match, newest first. ``about`` is an id, which is the record's object or reference;
    ``text`` is a part of any of its texts. ``lookedAt`` is the number of records searched."""
    kind = EventRecord.Type.Value(type) if type else None
    piece = text.casefold()
    rows: list[dict[str, Any]] = []
    for at in range(len(taken.records) - 1, -1, -1):
        record = taken.records[at]
        if kind is not None and record[1] != kind:
            continue
        if about and about not in (record[4], record[5]):
            continue
        row = _row(taken.first + at, record)
        if piece and not any(
            piece in str(row[name]).casefold() for name in ("object", "reference", "detail", "text")
        ):
            continue
        rows.append(row)
        if len(rows) == limit:
            break
    return {
        "tracking": taken.tracking,
        "created": taken.created,
        "lookedAt": len(taken.records),
        "rows": rows,
    }


def _row(number: int, record: Record) -> dict[str, Any]:
    message = message_of(record)
    detail = EventRecord.ChangeDetail.Name(message.eventChangeDetail)
    return {
        "id": number,
        "time": message.timestampNano,
        "type": EventRecord.Type.Name(message.type),
        "change": EventRecord.ChangeType.Name(message.eventChangeType),
        "detail": "" if detail == "DETAILS_NONE" else detail,
        "object": message.objectID,
        "reference": message.referenceID,
        "resource": {name: each.value for name, each in sorted(message.resource.resources.items())},
        "text": message.message,
    }
