"""Rules on how messages are shared and split, and on what was decided where sources conflict."""

import ast
import pickle
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2, json_format

from quadriga import si
from quadriga.si.v1 import si_pb2


def test_r9_termination_type_is_shared_and_not_nested() -> None:
    shared = si_pb2.DESCRIPTOR.enum_types_by_name["TerminationType"]
    assert shared.containing_type is None
    for message in (si.AllocationRelease, si.AllocationAskRelease):
        assert message.DESCRIPTOR.fields_by_name["terminationType"].enum_type is shared
        assert not message.DESCRIPTOR.enum_types


def test_x3_x7_numbers_on_the_wire_are_those_of_the_specification_and_of_later_times() -> None:
    release = si.AllocationRelease(terminationType=si.TerminationType.STOPPED_BY_RM)
    assert release.SerializeToString() == bytes([4 << 3, 1])
    assert si.AllocationRelease().terminationType == si.TerminationType.UNKNOWN_TERMINATION_TYPE
    assert si.NodeInfo.FromString(b"\x10\x63").action == 99


def test_x6_event_record_never_reuses_3_and_4() -> None:
    assert {3, 4}.isdisjoint(si.EventRecord.DESCRIPTOR.fields_by_number)
    assert {"groupID", "reason"}.isdisjoint(si.EventRecord.DESCRIPTOR.fields_by_name)
    # What an old scheduler sent there is carried along and changes nothing that we read.
    old = si.EventRecord(objectID="app-1").SerializeToString() + b"\x1a\x01g" + b"\x22\x01r"
    assert si.EventRecord.FromString(old).objectID == "app-1"
    assert si.EventRecord.FromString(old).message == ""


def test_x12_uuid_is_kept_beside_allocation_id() -> None:
    for message in (si.Allocation, si.AllocationRelease):
        reserved = descriptor_pb2.DescriptorProto()
        message.DESCRIPTOR.CopyToProto(reserved)
        assert "UUID" not in reserved.reserved_name
        both = message(UUID="key-0", allocationID="key-0")
        assert message.FromString(both.SerializeToString()) == both


def test_x14_misspelled_field_is_read_by_both_names_and_written_by_the_right_one() -> None:
    field = si.UpdateContainerSchedulingStateRequest.DESCRIPTOR.fields_by_number[1]
    assert (field.name, field.json_name) == ("applicartionID", "applicationID")
    for name in ("applicartionID", "applicationID"):
        read = json_format.ParseDict({name: "app-1"}, si.UpdateContainerSchedulingStateRequest())
        assert read.applicartionID == "app-1"
        assert json_format.MessageToDict(read) == {"applicationID": "app-1"}
        assert read.SerializeToString() == b"\x0a\x05app-1"


def test_m9_the_interface_depends_on_nothing_else_of_ours() -> None:
    folder = Path(str(si.__file__)).parent
    imported = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path.name}: imports are absolute"
                imported.add(node.module or "")
            elif isinstance(node, ast.Import):
                imported.update(alias.name for alias in node.names)
    ours = {name for name in imported if name.partition(".")[0] == "quadriga"}
    assert ours
    below = ("quadriga.si.", "quadriga.base.")
    assert {name for name in ours if not f"{name}.".startswith(below)} == set()


def test_exports_are_all_there_and_in_order() -> None:
    assert si.__all__ == sorted(si.__all__)
    for name in si.__all__:
        assert hasattr(si, name)
    assert set(si_pb2.DESCRIPTOR.message_types_by_name) <= set(si.__all__)


def test_request_error_names_the_field_and_can_be_pickled() -> None:
    error = si.RequestError("NodeRequest", "rmID", "not registered")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == "NodeRequest.rmID: not registered"
    assert (again.request, again.field, again.reason) == ("NodeRequest", "rmID", "not registered")
    with pytest.raises(ValueError, match="not registered"):
        raise again
