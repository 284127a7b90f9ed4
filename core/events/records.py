"""What an event record is: a plain tuple until somebody reads it.

Most records are never read. So a record holds what was at hand where something happened, the registry
that names the quantities and the parts of its text, and becomes an ``EventRecord`` (I40) only on its
way to a reader. What happens to allocations is several records at once, and happens most of all: that
is written down as a ``Bundle``, which is not even taken apart before somebody reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from quadriga.core.model.resources import Registry, Vector
from quadriga.si import EventRecord

__all__ = [
    "ADD",
    "APP",
    "Bundle",
    "Entry",
    "NODE",
    "NONE",
    "PLAIN",
    "QUEUE",
    "REMOVE",
    "REQUEST",
    "SET",
    "USERGROUP",
    "Record",
    "Text",
    "message_of",
    "records_of",
    "text_of",
]

#: A text, or the parts of one: a %-format and its arguments. Of those, vectors and maps from a
#: type's place to a quantity are spelled with the record's registry.
Text = str | tuple[object, ...]

#: (time in ns, type, change, detail, object, reference, registry, quantities, text)
Record = tuple[int, int, int, int, str, str, Registry | None, Vector, Text]

#: (how to take it apart, number of records, time in ns, what happened to what ...)
Bundle = tuple[Any, ...]

Entry = Record | Bundle

# The protocol's numbers, as plain constants of this module: they are looked up for each record.
REQUEST: Final = int(EventRecord.REQUEST)
APP: Final = int(EventRecord.APP)
NODE: Final = int(EventRecord.NODE)
QUEUE: Final = int(EventRecord.QUEUE)
USERGROUP: Final = int(EventRecord.USERGROUP)

NONE: Final = int(EventRecord.NONE)
SET: Final = int(EventRecord.SET)
ADD: Final = int(EventRecord.ADD)
REMOVE: Final = int(EventRecord.REMOVE)

#: the detail of a record that needs none
PLAIN: Final = int(EventRecord.DETAILS_NONE)


def records_of(entry: Entry) -> tuple[Record, ...]:
    """The record, or those of the bundle."""
    if isinstance(entry[0], int):
        return (entry,)
    take_apart, _, now, *parts = entry
    found: tuple[Record, ...] = take_apart(now, *parts)
    return found


def message_of(record: Record) -> EventRecord:
    """The record in the protocol's form; quantities of zero are left out."""
    time, kind, change, detail, subject, reference, registry, quantities, _ = record
    message = EventRecord()  # field by field, which takes half as long as its constructor
    message.type = kind  # type: ignore[assignment]
    message.eventChangeType = change  # type: ignore[assignment]
    message.eventChangeDetail = detail  # type: ignore[assignment]
    message.timestampNano = time
    message.objectID = subject
    message.referenceID = reference
    if registry is not None:
        message.resource.CopyFrom(registry.message(quantities))
    message.message = text_of(record)
    return message


def text_of(record: Record) -> str:
    """The text of a record, spelled out."""
    registry, text = record[6], record[8]
    if isinstance(text, str):
        return text
    form, *parts = text
    return str(form) % tuple(_spell(registry, part) for part in parts)


def _spell(registry: Registry | None, part: object) -> object:
    """Quantities the way YuniKorn's texts have them: ``map[memory:10 vcore:1000]``."""
    if registry is None or isinstance(part, str):
        return part
    names = registry.names
    if isinstance(part, Mapping):
        pairs = {names[place]: value for place, value in part.items()}
    elif isinstance(part, tuple):
        pairs = registry.mapping(part)
    else:
        return part
    return "map[" + " ".join(f"{name}:{pairs[name]}" for name in sorted(pairs)) + "]"
