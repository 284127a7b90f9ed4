"""What an event record is: a plain tuple until it is read.

Most records are never read. So a record keeps references to what is at hand when it is made: the vector
of quantities, the registry with the names of their types, the parts of its text. It becomes an
``EventRecord`` (I40) on the way to a reader. Allocations have the most records, and several at once.
Those are kept as one ``Bundle``, from which the records are made when they are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from quadriga.core.resources.vectors import Registry, Vector
from quadriga.si import EventRecord

#: A text, or the parts of one: a %-format and its arguments. Vectors, and mappings from the index of a
#: type to a quantity, are written with the names of the record's registry.
Text = str | tuple[object, ...]

#: (time in ns, type, change, detail, object, reference, registry, quantities, text)
Record = tuple[int, int, int, int, str, str, Registry | None, Vector, Text]

#: (function that makes the records, number of records, time in ns, further arguments of the function)
Bundle = tuple[Any, ...]

Entry = Record | Bundle

# Numbers of the protocol, as constants because every record needs them.
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
    """The record itself, or the records of the bundle."""
    if isinstance(entry[0], int):
        return (entry,)
    records, _, now, *arguments = entry
    found: tuple[Record, ...] = records(now, *arguments)
    return found


def message_of(record: Record) -> EventRecord:
    """The record as a message; quantities of zero are left out."""
    time, kind, change, detail, subject, reference, registry, quantities, _ = record
    message = EventRecord()  # setting fields takes half as long as passing them to it
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
    """The text of a record."""
    registry, text = record[6], record[8]
    if isinstance(text, str):
        return text
    form, *parts = text
    return str(form) % tuple(_formatted(registry, part) for part in parts)


def _formatted(registry: Registry | None, part: object) -> object:
    """Quantities as in YuniKorn's texts: ``map[memory:10 vcore:1000]``. Other parts as they are."""
    if registry is None or isinstance(part, str):
        return part
    names = registry.names
    if isinstance(part, Mapping):
        pairs = {names[index]: value for index, value in part.items()}
    elif isinstance(part, tuple):
        pairs = registry.mapping(part)
    else:
        return part
    return "map[" + " ".join(f"{name}:{pairs[name]}" for name in sorted(pairs)) + "]"
