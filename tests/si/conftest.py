"""The protocol as a set of facts: lines of text, one for each name, number, type or signature.

Facts of ours are read from the generated code. Facts of the specification are in facts.txt and, in
a checkout that has the document beside it, also come from the document itself.
"""

import inspect
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

from quadriga import si
from quadriga.si.v1 import si_pb2

Shape = Callable[[str], set[str]]

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]


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


def _constant_facts() -> Iterator[str]:
    # Go writes HostName where we write HOST_NAME.
    for name, value in vars(si.constants).items():
        if name.isupper():
            yield f"const {name.replace('_', '')} = {value}"


def _api_facts() -> Iterator[str]:
    # Go writes UpdateNode where we write update_node.
    for protocol in (si.SchedulerAPI, si.ResourceManagerCallback, si.StateDumpPlugin):
        yield f"api {protocol.__name__}"
        for name, method in vars(protocol).items():
            if not name.startswith("_"):
                parameters = list(inspect.signature(method).parameters)[1:]
                pascal = name.title().replace("_", "")
                yield f"api {protocol.__name__}.{pascal}({', '.join(parameters)})"


@pytest.fixture(scope="session")
def ours() -> set[str]:
    """The facts of the package: messages, constants and interfaces."""
    file = FileDescriptorProto()
    si_pb2.DESCRIPTOR.CopyToProto(file)
    return facts_of(file) | set(_constant_facts()) | set(_api_facts())


@pytest.fixture(scope="session")
def shape(ours: set[str]) -> Shape:
    """The fields, values and reservations of a message or enum of ours: ``string rmID = 1``."""

    def of(name: str) -> set[str]:
        found = set()
        for fact in ours:
            kind, _, rest = fact.partition(" ")
            owner, separator, text = rest.partition(": ")
            if separator and owner == name:
                found.add(f"reserved {text}" if kind == "reserved" else text)
        return found

    return of


@pytest.fixture(scope="session")
def table() -> set[str]:
    """The facts of the specification, as committed."""
    lines = (HERE / "facts.txt").read_text(encoding="utf-8").splitlines()
    return {line for line in lines if line and not line.startswith("#")}


@pytest.fixture(scope="session")
def proto_facts() -> Callable[[FileDescriptorProto], set[str]]:
    """The function that reads facts from a descriptor."""
    return facts_of


@pytest.fixture(scope="session")
def repository() -> Path:
    """The checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def spec_document() -> str:
    """The text of the specification, in the folder QUADRIGA_SHARED or beside the checkout."""
    shared = Path(os.environ.get("QUADRIGA_SHARED") or REPOSITORY.parent / "shared")
    path = shared / "spec" / "scheduler-interface-spec.md"
    if path.is_file():
        return path.read_text(encoding="utf-8")
    missing = f"no {path}: set QUADRIGA_SHARED to the folder with the source documents"
    if os.environ.get("QUADRIGA_REQUIRE_SHARED") == "1":
        pytest.fail(missing)
    pytest.skip(missing)
