"""The rules of the interface (I) that are settled by the shape of its messages alone."""

from collections.abc import Callable
from typing import Any

from google.protobuf import descriptor_pb2

from quadriga import si
from quadriga.si import (
    AllocationAsk,
    EventRecord,
    PreemptionPredicatesArgs,
    Quantity,
    Resource,
    TerminationType,
    UpdateContainerSchedulingStateRequest,
)

Shape = Callable[[str], set[str]]


def lines(text: str) -> set[str]:
    """One fact a line."""
    return {line.strip() for line in text.strip().splitlines()}


def test_i1_package_and_secret_option(ours: set[str]) -> None:
    assert {"syntax proto3", "package si.v1"} <= ours
    assert "extend google.protobuf.FieldOptions: bool si_secret = 1059" in ours
    options = descriptor_pb2.FieldOptions()
    secret: Any = si.si_secret
    options.Extensions[secret] = True
    assert options.SerializeToString() == bytes([0x98, 0x42, 1])  # number 1059, as a varint


def test_i2_service_has_one_unary_call_and_three_streams(ours: set[str]) -> None:
    assert {fact for fact in ours if fact.startswith("rpc ")} == lines(
        """
        rpc Scheduler: RegisterResourceManager(RegisterResourceManagerRequest) \
returns (RegisterResourceManagerResponse)
        rpc Scheduler: UpdateAllocation(stream AllocationRequest) returns (stream \
AllocationResponse)
        rpc Scheduler: UpdateApplication(stream ApplicationRequest) returns (stream \
ApplicationResponse)
        rpc Scheduler: UpdateNode(stream NodeRequest) returns (stream NodeResponse)
        """
    )


def test_i10_registration(shape: Shape) -> None:
    assert shape("RegisterResourceManagerRequest") == lines(
        """
        string rmID = 1
        string version = 2
        string policyGroup = 3
        map<string, string> buildInfo = 4
        string config = 5
        map<string, string> extraConfig = 6
        """
    )
    assert shape("RegisterResourceManagerResponse") == set()


def test_i11_requests(shape: Shape) -> None:
    assert shape("AllocationRequest") == lines(
        """
        repeated AllocationAsk asks = 1
        AllocationReleasesRequest releases = 2
        string rmID = 3
        repeated Allocation allocations = 4
        """
    )
    assert shape("ApplicationRequest") == lines(
        """
        repeated AddApplicationRequest new = 1
        repeated RemoveApplicationRequest remove = 2
        string rmID = 3
        """
    )
    assert shape("NodeRequest") == lines("repeated NodeInfo nodes = 1\nstring rmID = 2")


def test_i12_responses(shape: Shape) -> None:
    assert shape("AllocationResponse") == lines(
        """
        repeated Allocation new = 1
        repeated AllocationRelease released = 2
        repeated AllocationAskRelease releasedAsks = 3
        repeated RejectedAllocationAsk rejected = 4
        repeated RejectedAllocation rejectedAllocations = 5
        """
    )
    assert shape("ApplicationResponse") == lines(
        """
        repeated RejectedApplication rejected = 1
        repeated AcceptedApplication accepted = 2
        repeated UpdatedApplication updated = 3
        """
    )
    assert shape("NodeResponse") == lines(
        "repeated RejectedNode rejected = 1\nrepeated AcceptedNode accepted = 2"
    )


def test_i13_verdicts(shape: Shape) -> None:
    assert shape("UpdatedApplication") == lines(
        """
        string applicationID = 1
        string state = 2
        int64 stateTransitionTimestamp = 3
        string message = 4
        """
    )
    assert shape("RejectedApplication") == {"string applicationID = 1", "string reason = 2"}
    assert shape("AcceptedApplication") == {"string applicationID = 1"}
    assert shape("RejectedNode") == {"string nodeID = 1", "string reason = 2"}
    assert shape("AcceptedNode") == {"string nodeID = 1"}
    assert shape("RejectedAllocationAsk") == lines(
        "string allocationKey = 1\nstring applicationID = 2\nstring reason = 3"
    )


def test_i16_resource_is_a_sparse_map_of_int64(shape: Shape) -> None:
    assert shape("Resource") == {"map<string, Quantity> resources = 1"}
    assert shape("Quantity") == {"int64 value = 1"}
    sparse = Resource(resources={"memory": Quantity(value=2**63 - 1), "vcore": Quantity()})
    again = Resource.FromString(sparse.SerializeToString())
    assert {name: q.value for name, q in again.resources.items()} == {
        "memory": 2**63 - 1,
        "vcore": 0,
    }, "zero is not the same as absent"


def test_i17_ask(shape: Shape) -> None:
    assert shape("AllocationAsk") == lines(
        """
        string allocationKey = 1
        string applicationID = 2
        string partitionName = 3
        Resource resourceAsk = 4
        int32 maxAllocations = 5
        int32 priority = 6
        int64 executionTimeoutMilliSeconds = 7
        map<string, string> tags = 8
        string taskGroupName = 9
        bool placeholder = 10
        bool Originator = 11
        PreemptionPolicy preemptionPolicy = 12
        """
    )
    assert AllocationAsk(priority=-(2**31)).priority == -(2**31)


def test_i19_preemption_policy(shape: Shape) -> None:
    assert shape("PreemptionPolicy") == {"bool allowPreemptSelf = 1", "bool allowPreemptOther = 2"}
    # No policy and a policy that forbids everything are told apart.
    assert not AllocationAsk().HasField("preemptionPolicy")
    assert AllocationAsk(preemptionPolicy={}).HasField("preemptionPolicy")


def test_i20_add_and_remove_application(shape: Shape) -> None:
    assert shape("AddApplicationRequest") == lines(
        """
        string applicationID = 1
        string queueName = 2
        string partitionName = 3
        UserGroupInformation ugi = 4
        map<string, string> tags = 5
        int64 executionTimeoutMilliSeconds = 6
        Resource placeholderAsk = 7
        string gangSchedulingStyle = 8
        """
    )
    assert shape("RemoveApplicationRequest") == {
        "string applicationID = 1",
        "string partitionName = 2",
    }


def test_i24_user_and_groups(shape: Shape) -> None:
    assert shape("UserGroupInformation") == {"string user = 1", "repeated string groups = 2"}


def test_i25_allocation(shape: Shape) -> None:
    assert shape("Allocation") == lines(
        """
        string allocationKey = 1
        map<string, string> allocationTags = 2
        string UUID = 3
        Resource resourcePerAlloc = 5
        int32 priority = 6
        string nodeID = 8
        string applicationID = 9
        string partitionName = 10
        string taskGroupName = 11
        bool placeholder = 12
        string allocationID = 13
        bool originator = 14
        PreemptionPolicy preemptionPolicy = 15
        reserved 7
        reserved queueName
        """
    )


def test_i25_allocation_travels_both_ways(shape: Shape) -> None:
    assert "repeated Allocation existingAllocations = 6" in shape("NodeInfo")
    assert "repeated Allocation new = 1" in shape("AllocationResponse")


def test_i26_releases(shape: Shape) -> None:
    assert shape("AllocationReleasesRequest") == lines(
        """
        repeated AllocationRelease allocationsToRelease = 1
        repeated AllocationAskRelease allocationAsksToRelease = 2
        """
    )


def test_i27_release_of_allocation_and_ask(shape: Shape) -> None:
    assert shape("AllocationRelease") == lines(
        """
        string partitionName = 1
        string applicationID = 2
        string UUID = 3
        TerminationType terminationType = 4
        string message = 5
        string allocationKey = 6
        string allocationID = 7
        """
    )
    assert shape("AllocationAskRelease") == lines(
        """
        string partitionName = 1
        string applicationID = 2
        string allocationKey = 3
        TerminationType terminationType = 4
        string message = 5
        """
    )


def test_i28_x3_termination_types() -> None:
    assert dict(TerminationType.items()) == {
        "UNKNOWN_TERMINATION_TYPE": 0,
        "STOPPED_BY_RM": 1,
        "TIMEOUT": 2,
        "PREEMPTED_BY_SCHEDULER": 3,
        "PLACEHOLDER_REPLACED": 4,
    }


def test_i33_node(shape: Shape) -> None:
    assert shape("NodeInfo") == lines(
        """
        string nodeID = 1
        NodeInfo.ActionFromRM action = 2
        map<string, string> attributes = 3
        Resource schedulableResource = 4
        Resource occupiedResource = 5
        repeated Allocation existingAllocations = 6
        """
    )


def test_i36_predicates(shape: Shape) -> None:
    assert shape("PredicatesArgs") == lines(
        "string allocationKey = 1\nstring nodeID = 2\nbool allocate = 3"
    )


def test_i37_preemption_predicates(shape: Shape) -> None:
    assert shape("PreemptionPredicatesArgs") == lines(
        """
        string allocationKey = 1
        string nodeID = 2
        repeated string preemptAllocationKeys = 3
        int32 startIndex = 4
        """
    )
    assert shape("PreemptionPredicatesResponse") == {"bool success = 1", "int32 index = 2"}
    assert PreemptionPredicatesArgs(startIndex=-1).startIndex == -1, "no victim needed"


def test_i38_container_scheduling_state(shape: Shape) -> None:
    assert shape("UpdateContainerSchedulingStateRequest") == lines(
        """
        string applicartionID = 1
        string allocationKey = 2
        UpdateContainerSchedulingStateRequest.SchedulingState state = 3
        string reason = 4
        """
    )
    assert dict(UpdateContainerSchedulingStateRequest.SchedulingState.items()) == {
        "UNKNOWN_SCHEDULING_STATE": 0,
        "SKIPPED": 1,
        "SCHEDULED": 2,
        "RESERVED": 3,
        "FAILED": 4,
    }


def test_i39_update_configuration(shape: Shape) -> None:
    assert shape("UpdateConfigurationRequest") == lines(
        """
        string rmID = 2
        string policyGroup = 3
        string config = 4
        map<string, string> extraConfig = 5
        reserved 1
        reserved configs
        """
    )


def test_i40_event_record(shape: Shape) -> None:
    assert shape("EventRecord") == lines(
        """
        EventRecord.Type type = 1
        string objectID = 2
        string message = 5
        int64 timestampNano = 6
        EventRecord.ChangeType eventChangeType = 7
        EventRecord.ChangeDetail eventChangeDetail = 8
        string referenceID = 9
        Resource resource = 10
        reserved 3
        reserved groupID
        reserved 4
        reserved reason
        """
    )
    assert dict(EventRecord.Type.items()) == {
        "UNKNOWN_EVENTRECORD_TYPE": 0,
        "REQUEST": 1,
        "APP": 2,
        "NODE": 3,
        "QUEUE": 4,
        "USERGROUP": 5,
    }
    assert dict(EventRecord.ChangeType.items()) == {"NONE": 0, "SET": 1, "ADD": 2, "REMOVE": 3}


def test_i41_change_details() -> None:
    details = dict(EventRecord.ChangeDetail.items())
    numbered = {
        "DETAILS_": (0, "NONE"),
        "REQUEST_": (100, "CANCEL ALLOC TIMEOUT"),
        "APP_": (
            200,
            "ALLOC REQUEST REJECT NEW ACCEPTED STARTING RUNNING COMPLETING COMPLETED FAILING "
            "FAILED RESUMING EXPIRED CANNOTRUN_QUEUE RUNNABLE_QUEUE CANNOTRUN_QUOTA RUNNABLE_QUOTA",
        ),
        "NODE_": (300, "DECOMISSION READY SCHEDULABLE ALLOC CAPACITY OCCUPIED RESERVATION"),
        "QUEUE_": (400, "CONFIG DYNAMIC TYPE MAX GUARANTEED APP ALLOC PREEMPTION"),
        "ALLOC_": (500, "CANCEL PREEMPT TIMEOUT REPLACED NODEREMOVED"),
        "UG_": (600, "USER_LIMIT GROUP_LIMIT APP_LINK USER_RESOURCE GROUP_RESOURCE"),
    }
    assert details == {
        prefix + name: first + offset
        for prefix, (first, names) in numbered.items()
        for offset, name in enumerate(names.split())
    }
