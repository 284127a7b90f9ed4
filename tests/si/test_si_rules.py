"""The rules of the interface (I) that are settled by the shape of its messages alone."""

from typing import Any

import pytest
from google.protobuf import descriptor_pb2

from quadriga import si

#: rule: the messages and enums that it describes. Their fields and numbers are in facts.txt.
DESCRIBED = [
    pytest.param("Scheduler", id="i2 m1 one unary call and three streams"),
    pytest.param("RegisterResourceManagerRequest", id="i10 registration"),
    pytest.param("RegisterResourceManagerResponse", id="i10 its answer"),
    pytest.param("AllocationRequest ApplicationRequest NodeRequest", id="i11 requests"),
    pytest.param("AllocationResponse ApplicationResponse NodeResponse", id="i12 responses"),
    pytest.param(
        "UpdatedApplication RejectedApplication AcceptedApplication RejectedNode AcceptedNode"
        " RejectedAllocationAsk RejectedAllocation",
        id="i13 verdicts",
    ),
    pytest.param("Resource Quantity", id="i16 resource"),
    pytest.param("AllocationAsk", id="i17 x5 ask"),
    pytest.param("PreemptionPolicy", id="i19 preemption policy"),
    pytest.param("AddApplicationRequest RemoveApplicationRequest", id="i20 applications"),
    pytest.param("UserGroupInformation", id="i24 user and groups"),
    pytest.param("Allocation", id="i25 x5 allocation"),
    pytest.param("AllocationReleasesRequest", id="i26 r1 releases"),
    pytest.param("AllocationRelease AllocationAskRelease", id="i27 release"),
    pytest.param("TerminationType", id="i28 x3 termination types"),
    pytest.param("NodeInfo NodeInfo.ActionFromRM", id="i33 x7 node and its actions"),
    pytest.param("PredicatesArgs", id="i36 predicates"),
    pytest.param("PreemptionPredicatesArgs PreemptionPredicatesResponse", id="i37 preemption"),
    pytest.param(
        "UpdateContainerSchedulingStateRequest UpdateContainerSchedulingStateRequest.SchedulingState",
        id="i38 scheduling states",
    ),
    pytest.param("UpdateConfigurationRequest", id="i39 configuration"),
    pytest.param("EventRecord EventRecord.Type EventRecord.ChangeType", id="i40 event record"),
    pytest.param("EventRecord.ChangeDetail", id="i41 change details"),
]


@pytest.mark.parametrize("names", DESCRIBED)
def test_fields_are_as_specified(names: str, ours: set[str], specified: set[str]) -> None:
    for name in names.split():
        mine, theirs = (
            {fact for fact in facts if fact.partition(" ")[2].partition(": ")[0] == name}
            for facts in (ours, specified)
        )
        assert mine == theirs != set()


def test_i1_package_and_secret_option(ours: set[str]) -> None:
    assert {"syntax proto3", "package si.v1"} <= ours
    assert "extend google.protobuf.FieldOptions: bool si_secret = 1059" in ours
    options = descriptor_pb2.FieldOptions()
    secret: Any = si.si_secret
    options.Extensions[secret] = True
    assert options.SerializeToString() == bytes([0x98, 0x42, 1])  # number 1059, as a varint


def test_i16_resource_is_a_sparse_map_of_int64() -> None:
    largest = 2**63 - 1
    sparse = si.Resource(resources={"memory": si.Quantity(value=largest), "vcore": si.Quantity()})
    again = si.Resource.FromString(sparse.SerializeToString())
    found = {name: quantity.value for name, quantity in again.resources.items()}
    assert found == {"memory": largest, "vcore": 0}, "zero is not the same as absent"


def test_i17_i19_i37_negative_numbers_and_what_is_not_said() -> None:
    assert si.AllocationAsk(priority=-(2**31)).priority == -(2**31)
    assert si.PreemptionPredicatesArgs(startIndex=-1).startIndex == -1, "no victim needed"
    # No policy and a policy that forbids everything are told apart.
    assert not si.AllocationAsk().HasField("preemptionPolicy")
    assert si.AllocationAsk(preemptionPolicy={}).HasField("preemptionPolicy")
