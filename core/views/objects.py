"""The fields of every object that a view gives, with their types (2.12 to 2.14).

Field names are YuniKorn's, and each object has the fields of all its versions from 1.5 on, so that
readers of any of them find theirs. A field is always there, empty lists and maps included, unless it
is ``NotRequired`` here. Resources map a type to an integer: vcore in milli, memory in bytes. Times
are ns since the epoch of the scheduler's clock, priorities of asks and allocations are texts.
"""

from __future__ import annotations

from typing import NotRequired, TypedDict

Resources = dict[str, int]


# -- clusters, partitions --------------------------------------------------------------------------


class ClusterObject(TypedDict):
    """One for each partition."""

    startTime: NotRequired[int]
    rmBuildInformation: list[dict[str, str]]
    partition: str
    clusterName: str


class Capacity(TypedDict):
    """``utilization`` is in percent, rounded down."""

    capacity: Resources
    usedCapacity: Resources
    utilization: Resources


class NodeSortingPolicy(TypedDict):
    type: str
    resourceWeights: dict[str, float]


class PartitionObject(TypedDict):
    """``applications`` counts by state, and in all under ``total``."""

    clusterId: str
    name: str
    capacity: Capacity
    nodeSortingPolicy: NodeSortingPolicy
    totalNodes: int
    applications: dict[str, int]
    totalContainers: int
    state: str
    lastStateTransitionTime: int
    preemptionEnabled: bool
    quotaPreemptionEnabled: bool


# -- queues ----------------------------------------------------------------------------------------


class TemplateObject(TypedDict):
    """What dynamic leaves below the queue get (2.9)."""

    maxApplications: int
    maxResource: Resources
    guaranteedResource: Resources
    properties: dict[str, str]


class QueueObject(TypedDict):
    """``partition`` is empty but for root, ``parent`` for root. Delays are Go durations (``30s``)."""

    queuename: str
    status: str
    partition: str
    pendingResource: Resources
    maxResource: Resources
    guaranteedResource: Resources
    allocatedResource: Resources
    preemptingResource: Resources
    headroom: Resources
    isLeaf: bool
    isManaged: bool
    properties: dict[str, str]
    parent: str
    template: NotRequired[TemplateObject]
    children: list[QueueObject]
    childrenNames: list[str]
    childNames: list[str]
    absUsedCapacity: Resources
    maxRunningApps: int
    runningApps: int
    currentPriority: int
    allocatingAcceptedApps: list[str]
    sortingPolicy: str
    prioritySorting: bool
    preemptionEnabled: bool
    isPreemptionFence: bool
    preemptionDelay: str
    isPriorityFence: bool
    priorityOffset: int
    quotaPreemptionDelay: str


# -- applications ----------------------------------------------------------------------------------


class StateEntry(TypedDict):
    time: int
    applicationState: str


class PlaceholderObject(TypedDict):
    """A task group: ``count`` placeholders were asked for in all (V4)."""

    taskGroupName: str
    count: int
    minResource: Resources
    replaced: int
    timedout: int


class AskLogEntry(TypedDict):
    message: str
    lastOccurrence: int
    count: int


class AskObject(TypedDict):
    """``placeholderTimeout`` is the ask's own execution timeout in ns, 0: never (X17)."""

    allocationKey: str
    allocationTags: dict[str, str]
    requestTime: int
    resource: Resources
    pendingCount: int
    priority: str
    requiredNodeId: str
    applicationId: str
    partition: str
    placeholder: bool
    placeholderTimeout: int
    taskGroupName: str
    allocationLog: list[AskLogEntry]
    triggeredPreemption: bool
    originator: bool
    schedulingAttempted: bool
    triggeredScaleUp: bool


class AllocationObject(TypedDict):
    """``uuid`` and ``allocationID`` are the same (X12). ``requestTime`` is when the ask arrived, or,
    if it took over a placeholder, when that one was allocated."""

    allocationKey: str
    allocationTags: dict[str, str]
    requestTime: int
    allocationTime: int
    allocationDelay: int
    uuid: str
    allocationID: str
    resource: Resources
    priority: str
    nodeId: str
    applicationId: str
    partition: str
    placeholder: bool
    placeholderUsed: bool
    taskGroupName: str
    preempted: bool
    originator: bool


class ResourceHistory(TypedDict):
    """By instance type of the node and resource type: quantity times whole seconds held (2.18)."""

    resourceUsage: dict[str, Resources]
    preemptedResource: dict[str, Resources]
    placeholderResource: dict[str, Resources]


class PlannedStartObject(TypedDict):
    """When (ns) the members of a protected gang are planned to start, now and as first planned, on which nodes, and
    which applications use these until then. ``estimates`` has the number of expected ends that the plan waits for, by
    where they are from: told, limit, predicted, unknown. ``overran`` is the number of allocations that were lent
    nodes until the start and run for longer. The first 100 nodes and applications are listed."""

    start: int
    promised: int
    nodes: list[str]
    nodeCount: int
    users: list[str]
    userCount: int
    estimates: dict[str, int]
    overran: int


class WaitingGangObject(TypedDict):
    """A gang whose members wait for places. ``members`` were to be placed at the last attempt, and ``missing`` of
    them had no room. It waits for nodes or asks since ``waitingSince``, and may be protected, or is, if
    ``mayGather``, from ``mayGatherFrom`` at the earliest. ``budgetLeft`` is a time (ns) of the whole partition, and
    ``timesOut`` when its timeout ends its wait, if that counts. Instants are ns."""

    style: str
    lacks: str
    members: int
    missing: int
    mayGather: bool
    budgetLeft: int
    waitingSince: NotRequired[int]
    mayGatherFrom: NotRequired[int]
    timesOut: NotRequired[int]
    plannedStart: NotRequired[PlannedStartObject]


class ApplicationObject(TypedDict):
    """``maxRequestPriority`` is -2**31 while nothing is asked for. Only a gang that waits has ``waitingGang``."""

    applicationID: str
    usedResource: Resources
    maxUsedResource: Resources
    pendingResource: Resources
    partition: str
    queueName: str
    submissionTime: int
    startTime: NotRequired[int]
    finishedTime: NotRequired[int]
    requests: list[AskObject]
    allocations: list[AllocationObject]
    applicationState: str
    user: str
    groups: list[str]
    rejectedMessage: str
    stateLog: list[StateEntry]
    placeholderData: list[PlaceholderObject]
    hasReserved: bool
    reservations: list[str]
    maxRequestPriority: int
    resourceHistory: ResourceHistory
    backoffDeadline: NotRequired[int]
    waitingGang: NotRequired[WaitingGangObject]


# -- nodes -----------------------------------------------------------------------------------------


class ForeignObject(TypedDict):
    """What others run on a node (X19)."""

    allocationKey: str
    allocationTags: dict[str, str]
    allocationTime: int
    resource: Resources
    priority: str
    nodeId: str
    preemptable: bool


class NodeObject(TypedDict):
    """``utilized`` is what is allocated, in percent of the capacity, rounded down."""

    nodeID: str
    hostName: str
    rackName: str
    partition: str
    attributes: dict[str, str]
    capacity: Resources
    allocated: Resources
    occupied: Resources
    available: Resources
    utilized: Resources
    allocations: list[AllocationObject]
    foreignAllocations: list[ForeignObject]
    schedulable: bool
    isReserved: bool
    reservations: list[str]


class PartitionNodes(TypedDict):
    """The nodes of a partition, as in a state dump."""

    partitionName: str
    nodesInfo: list[NodeObject]


class Bucket(TypedDict):
    bucketName: str
    numOfNodes: int
    nodeNames: list[str]


class TypeUtilisation(TypedDict):
    """How many nodes are how full of one resource type, in ten buckets."""

    type: str
    utilization: list[Bucket]


class PartitionUtilisation(TypedDict):
    clusterId: str
    partition: str
    utilizations: list[TypeUtilisation]


# -- users, groups, placement ----------------------------------------------------------------------


class QueueUsage(TypedDict):
    """What a user or group holds in a queue and below; limits are absent where there are none."""

    queuePath: str
    resourceUsage: Resources
    runningApplications: list[str]
    maxResources: NotRequired[Resources]
    maxApplications: NotRequired[int]
    children: list[QueueUsage]


class UserObject(TypedDict):
    """``groups`` says for each application which group it counts for."""

    userName: str
    groups: dict[str, str]
    queues: QueueUsage


class GroupObject(TypedDict):
    groupName: str
    applications: list[str]
    queues: QueueUsage


class RuleFilter(TypedDict):
    """``userExp`` and ``groupExp`` hold the single entry that is a regular expression."""

    type: str
    userList: list[str]
    groupList: list[str]
    userExp: str
    groupExp: str


class RuleObject(TypedDict):
    name: str
    parameters: dict[str, str]
    filter: NotRequired[RuleFilter]
    parentRule: NotRequired[RuleObject]


class PlacementObject(TypedDict):
    partition: str
    rules: list[RuleObject]


# -- history ------------------------------------------------------------------------------------------


class ApplicationSample(TypedDict):
    timestamp: int
    totalApplications: str


class ContainerSample(TypedDict):
    timestamp: int
    totalContainers: str
