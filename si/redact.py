"""Messages as text for logs and errors, without what is marked ``si_secret`` (I1).

Whether a field is secret is read from its descriptor, so that messages of later versions, and
messages built at run time in a descriptor pool of their own, are treated alike.
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
"""Stands for the value of a secret field, however many or long its values are."""

# The generator's stubs and those of protobuf do not agree on the type of an extension.
_SI_SECRET: Any = si_pb2.si_secret

# What a field holds that is neither a list nor a map. Asking the descriptor instead would take one
# name in protobuf 5 and another in 7.
_SINGULAR = (Message, str, bytes, int, float)


@lru_cache(maxsize=4096)
def is_secret(field: FieldDescriptor) -> bool:
    """Whether the field bears ``si_secret`` (extension 1059 of FieldOptions) set to true."""
    # Options of a descriptor from another pool hold the mark as an unknown field. Their bytes are
    # the same in every pool, and our FieldOptions knows what 1059 means.
    options = FieldOptions.FromString(field.GetOptions().SerializeToString())
    return bool(options.Extensions[_SI_SECRET])


def redacted(message: Message) -> str:
    """The message on one line, with `HIDDEN` for the value of every field marked ``si_secret``.

    The form is that of protobuf's text format, with map entries in the order of their keys, and
    control characters escaped. For reading, not for parsing. Fields unknown to the descriptor are
    left out: nobody can tell whether they are secret.
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
    # The content of an Any is bytes to us; it may hold a secret.
    return field.full_name == "google.protobuf.Any.value"


def _assigned(field: FieldDescriptor, value: Any) -> str:
    if field.message_type is not None:
        inside = redacted(value)
        return f" {{ {inside} }}" if inside else " {}"
    if field.enum_type is not None:
        # An enum is open: a peer may send a number that has no name yet.
        known = field.enum_type.values_by_number.get(value)
        return f": {known.name if known else value}"
    return f": {_scalar(value)}"


def _scalar(value: Any) -> str:
    if isinstance(value, bytes):
        return repr(value)[1:]
    # JSON escapes line ends, control characters and what is not ASCII: a value can forge neither a
    # line of the log nor a terminal's commands.
    return json.dumps(value)
