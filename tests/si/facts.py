"""The facts that a .proto states, one line each; comments and order do not matter."""

from collections.abc import Iterator

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)


def facts_of(file: FileDescriptorProto) -> set[str]:
    """Every fact that a .proto states, comments and order aside."""
    return set(_file_facts(file))


def _file_facts(file: FileDescriptorProto) -> Iterator[str]:
    yield f"syntax {file.syntax}"
    yield f"package {file.package}"
    yield f"go_package {file.options.go_package}"
    for extension in file.extension:
        yield f"extend {extension.extendee.lstrip('.')}: {_field(extension, {})}"
    for message in file.message_type:
        yield from _message_facts(message, message.name)
    for enum in file.enum_type:
        yield from _enum_facts(enum, enum.name)
    for service in file.service:
        yield f"service {service.name}"
        for method in service.method:
            request = ("stream " if method.client_streaming else "") + _short(method.input_type)
            reply = ("stream " if method.server_streaming else "") + _short(method.output_type)
            yield f"rpc {service.name}: {method.name}({request}) returns ({reply})"


def _message_facts(message: DescriptorProto, name: str) -> Iterator[str]:
    yield f"message {name}"
    entries = {n.name: n for n in message.nested_type if n.options.map_entry}
    for field in message.field:
        yield f"field {name}: {_field(field, entries)}"
    for numbers in message.reserved_range:
        for number in range(numbers.start, numbers.end):
            yield f"reserved {name}: {number}"
    for reserved in message.reserved_name:
        yield f"reserved {name}: {reserved}"
    for enum in message.enum_type:
        yield from _enum_facts(enum, f"{name}.{enum.name}")
    for nested in message.nested_type:
        if not nested.options.map_entry:
            yield from _message_facts(nested, f"{name}.{nested.name}")


def _enum_facts(enum: EnumDescriptorProto, name: str) -> Iterator[str]:
    yield f"enum {name}"
    for value in enum.value:
        yield f"value {name}: {value.name} = {value.number}"
    # Unlike those of a message, the ranges of an enum include their end.
    for numbers in enum.reserved_range:
        for number in range(numbers.start, numbers.end + 1):
            yield f"reserved {name}: {number}"
    for reserved in enum.reserved_name:
        yield f"reserved {name}: {reserved}"


def _field(field: FieldDescriptorProto, entries: dict[str, DescriptorProto]) -> str:
    entry = entries.get(field.type_name.rpartition(".")[2])
    if entry:
        key, value = entry.field
        label, kind = "", f"map<{_type(key)}, {_type(value)}>"
    else:
        repeated = field.label == FieldDescriptorProto.LABEL_REPEATED
        label = "repeated " if repeated else "optional " if field.proto3_optional else ""
        kind = _type(field)
    return f"{label}{kind} {field.name} = {field.number}"


def _type(field: FieldDescriptorProto) -> str:
    if field.type_name:
        return _short(field.type_name)
    return FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()


def _short(name: str) -> str:
    return name.removeprefix(".si.v1.")
