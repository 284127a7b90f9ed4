"""Nothing marked ``si_secret`` gets into a text."""

from typing import Any

import pytest
from google.protobuf import any_pb2, descriptor_pb2
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from quadriga import si
from quadriga.si import is_secret, redacted
from quadriga.si.v1 import si_pb2

F = FieldDescriptorProto
MARK = bytes([0x98, 0x42, 1])  # FieldOptions: field 1059, true
UNMARK = bytes([0x98, 0x42, 0])

LOGIN = """
user string 1
password string 2 secret
"""
VAULT = """
login .test.Login 1
logins .test.Login 2 repeated
byName .test.Vault.ByNameEntry 3 repeated
tokens string 4 repeated secret
keys .test.Vault.KeysEntry 5 repeated secret
pin int32 6 secret
spare .test.Login 7 secret
level .test.Level 8
open string 9 unmarked
blob bytes 10
ratio double 11
flag bool 12
count int64 13 repeated
"""


def add_fields(message: descriptor_pb2.DescriptorProto, text: str) -> None:
    for line in text.strip().splitlines():
        name, kind, number, *marks = line.split()
        field = message.field.add(name=name, number=int(number), json_name=name)
        field.label = F.LABEL_REPEATED if "repeated" in marks else F.LABEL_OPTIONAL
        if kind.startswith("."):
            field.type = F.TYPE_ENUM if kind == ".test.Level" else F.TYPE_MESSAGE
            field.type_name = kind
        else:
            field.type = F.Type.Value(f"TYPE_{kind.upper()}")
        if "secret" in marks:
            field.options.MergeFromString(MARK)
        if "unmarked" in marks:
            field.options.MergeFromString(UNMARK)


def file_with_marks() -> bytes:
    file = FileDescriptorProto(name="test.proto", package="test", syntax="proto3")
    add_fields(file.message_type.add(name="Login"), LOGIN)
    vault = file.message_type.add(name="Vault")
    for name, value in (("ByName", ".test.Login"), ("Keys", "string")):
        entry = vault.nested_type.add(name=f"{name}Entry")
        entry.options.map_entry = True
        add_fields(entry, f"key string 1\nvalue {value} 2")
    add_fields(vault, VAULT)
    level = file.enum_type.add(name="Level")
    level.value.add(name="LOW", number=0)
    level.value.add(name="HIGH", number=1)
    return file.SerializeToString()


@pytest.fixture(params=["unknown field", "extension"])
def vault(request: pytest.FixtureRequest) -> Any:
    """A message with secrets everywhere; the pool knows no extension, or declares it for itself."""
    pool = DescriptorPool()
    if request.param == "extension":
        pool.AddSerializedFile(descriptor_pb2.DESCRIPTOR.serialized_pb)
        pool.AddSerializedFile(si_pb2.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(file_with_marks())
    return GetMessageClass(pool.FindMessageTypeByName("test.Vault"))


def test_i1_secret_values_are_in_no_text(vault: Any) -> None:
    marked = {name for name, field in vault.DESCRIPTOR.fields_by_name.items() if is_secret(field)}
    assert marked == {"tokens", "keys", "pin", "spare"}
    message = vault(
        login={"user": "ann", "password": "hunter1"},
        logins=[{"user": "bob", "password": "hunter2"}, {}],
        tokens=["hunter3", "hunter4"],
        keys={"hunter5": "hunter6"},
        pin=77007,
        spare={"user": "hunter7", "password": "hunter8"},
        level=1,
        open="door",
        blob=b"\x00\n",
        ratio=0.5,
        flag=True,
        count=[1, -2],
    )
    message.byName["z"].password = "hunter9"
    message.byName["a"].user = "cyd"
    text = redacted(message)
    assert text == (
        'login { user: "ann" password: <secret> } '
        'logins { user: "bob" password: <secret> } logins {} '
        'byName["a"] { user: "cyd" } byName["z"] { password: <secret> } '
        "tokens: <secret> keys: <secret> pin: <secret> spare: <secret> "
        "level: HIGH open: \"door\" blob: '\\x00\\n' ratio: 0.5 flag: true count: 1 count: -2"
    )


def test_i1_what_we_do_not_know_is_left_out_or_not_shown(vault: Any) -> None:
    message = vault.FromString(vault(open="door").SerializeToString() + b"\xa2\x06\x07hunter1")
    assert redacted(message) == 'open: "door"'
    packed = any_pb2.Any(type_url="type.googleapis.com/test.Login", value=b"\x12\x07hunter1")
    assert redacted(packed) == 'type_url: "type.googleapis.com/test.Login" value: <secret>'
    assert redacted(vault(level=9)) == "level: 9"  # an enum's number without a name


def test_i1_text_of_our_messages_is_one_line_and_nothing_in_them_is_secret() -> None:
    for message in si_pb2.DESCRIPTOR.message_types_by_name.values():
        assert not [field.full_name for field in message.fields if is_secret(field)]
    node = si.NodeInfo(nodeID="n\n1\u2028\x1b[2J", action=si.NodeInfo.CREATE)
    node.attributes["si/zone"] = "z1"
    node.schedulableResource.resources["vcore"].value = 4000
    node.existingAllocations.add(allocationKey="a", placeholder=True)
    request = si.NodeRequest(nodes=[node], rmID="rm")
    assert redacted(request) == (
        r'nodes { nodeID: "n\n1\u2028\u001b[2J" action: CREATE attributes["si/zone"]: "z1" '
        'schedulableResource { resources["vcore"] { value: 4000 } } '
        'existingAllocations { allocationKey: "a" placeholder: true } } rmID: "rm"'
    )
    assert redacted(si.NodeRequest()) == ""
