"""Messages as text for logs and errors, without the values of fields marked ``si_secret`` (I1).

The descriptor tells whether a field is secret. Later versions of a message, and messages built at
run time in a descriptor pool of their own, are therefore treated the same way.
"""

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import FieldOptions
from google.protobuf.message import Message

from quadriga.si.v1 import si_pb2

HIDDEN = "<secret>"
"""Replaces the value of a secret field, whatever its length and number of values."""

# The stubs of the generator and of protobuf disagree on the type of an extension.
_SI_SECRET: Any = si_pb2.si_secret

# Types of a field that is neither a list nor a map. The descriptor has this too, but under one name
# in protobuf 5 and another in protobuf 7.
_SINGULAR = (Message, str, bytes, int, float)


@lru_cache(maxsize=4096)
def is_secret(field: FieldDescriptor) -> bool:
    """Whether the field has the option ``si_secret`` (extension 1059 of FieldOptions)."""
    # In a descriptor from another pool the option is an unknown field. Its bytes are the same in
    # every pool, and our FieldOptions knows extension 1059.
    options = FieldOptions.FromString(field.GetOptions().SerializeToString())
    return bool(options.Extensions[_SI_SECRET])


def redacted(message: Message) -> str:
    """The message on one line, with `HIDDEN` for the value of every field marked ``si_secret``.

    The form is protobuf's text format with map entries in the order of their keys and with escaped
    control characters. It is not meant to be parsed. Fields unknown to the descriptor are left out,
    as they may be secret.
    """
    return " ".join(_fields(message))


def _fields(message: Message) -> Iterator[str]:
    for field, value in message.ListFields():
        name = f"[{field.full_name}]" if field.is_extension else field.name
        entry = field.message_type
        if is_secret(field) or _is_packed(field):
            yield f"{name}: {HIDDEN}"
        elif entry is not None and entry.GetOptions().map_entry:
            value_field = entry.fields_by_name["value"]
            for key in sorted(value):
                yield f"{name}[{_scalar(key)}]{_assigned(value_field, value[key])}"
        else:
            for item in [value] if isinstance(value, _SINGULAR) else value:
                yield name + _assigned(field, item)


def _is_packed(field: FieldDescriptor) -> bool:
    # The content of an Any is opaque bytes and may hold a secret.
    return field.full_name == "google.protobuf.Any.value"


def _assigned(field: FieldDescriptor, value: Any) -> str:
    if field.message_type is not None:
        inside = redacted(value)
        return f" {{ {inside} }}" if inside else " {}"
    if field.enum_type is not None:
        # An enum is open: a peer may send a number without a name.
        known = field.enum_type.values_by_number.get(value)
        return f": {known.name if known else value}"
    return f": {_scalar(value)}"


def _scalar(value: Any) -> str:
    if isinstance(value, bytes):
        return repr(value)[1:]
    # JSON escapes line ends, control characters and non-ASCII characters, so no value can forge a
    # line of the log or send a command to a terminal.
    return json.dumps(value)
