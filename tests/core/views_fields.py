"""What every object of a view must look like, from the list of fields (2.12 to 2.14), and a check against it.

``?`` after a name: may be absent. A type is ``int``, ``str``, ``bool``, ``number``, ``amounts`` (type to integer),
``texts``, ``weights``, the name of another object, or one of these in brackets: a list, which is never null.
"""

from typing import Any


def _fields(said: str) -> dict[str, str]:
    """From ``type: name name?; type: name``."""
    kinds = (each.split(": ") for each in said.split("; "))
    return {name: kind for kind, names in kinds for name in names.split()}


_SAID = {
    "Cluster": "int: startTime?; [texts]: rmBuildInformation; str: partition clusterName",
    "Partition": (
        "str: clusterId name state; Capacity: capacity; NodeSortingPolicy: nodeSortingPolicy; "
        "int: totalNodes totalContainers lastStateTransitionTime; amounts: applications; bool: "
        "preemptionEnabled quotaPreemptionEnabled"
    ),
    "Capacity": "amounts: capacity usedCapacity utilization",
    "NodeSortingPolicy": "str: type; weights: resourceWeights",
    "Queue": (
        "str: queuename status partition parent sortingPolicy preemptionDelay "
        "quotaPreemptionDelay; amounts: pendingResource maxResource guaranteedResource "
        "allocatedResource preemptingResource headroom absUsedCapacity; bool: isLeaf isManaged "
        "prioritySorting preemptionEnabled isPreemptionFence isPriorityFence; int: "
        "maxRunningApps runningApps currentPriority priorityOffset; texts: properties; "
        "Template: template?; [Queue]: children; [str]: childrenNames childNames "
        "allocatingAcceptedApps"
    ),
    "Template": "int: maxApplications; amounts: maxResource guaranteedResource; texts: properties",
    "Application": (
        "str: applicationID partition queueName applicationState user rejectedMessage; amounts: "
        "usedResource maxUsedResource pendingResource; int: submissionTime startTime? "
        "finishedTime? maxRequestPriority backoffDeadline?; bool: hasReserved; ResourceHistory: "
        "resourceHistory; [Ask]: requests; [Allocation]: allocations; [str]: groups "
        "reservations; [State]: stateLog; [Placeholder]: placeholderData; WaitingGang: waitingGang?"
    ),
    "WaitingGang": (
        "str: style lacks; int: members missing budgetLeft waitingSince? mayGatherFrom? timesOut?; "
        "bool: mayGather; PlannedStart: plannedStart?"
    ),
    "PlannedStart": "int: start promised nodeCount userCount overran; [str]: nodes users; amounts: estimates",
    "State": "int: time; str: applicationState",
    "Placeholder": "str: taskGroupName; int: count replaced timedout; amounts: minResource",
    "ResourceHistory": "usage: resourceUsage preemptedResource placeholderResource",
    "Ask": (
        "str: allocationKey priority requiredNodeId applicationId partition taskGroupName; "
        "texts: allocationTags; int: requestTime pendingCount placeholderTimeout; amounts: "
        "resource; bool: placeholder triggeredPreemption originator schedulingAttempted "
        "triggeredScaleUp; [AskLog]: allocationLog"
    ),
    "AskLog": "str: message; int: lastOccurrence count",
    "Allocation": (
        "str: allocationKey uuid allocationID priority nodeId applicationId partition "
        "taskGroupName; texts: allocationTags; int: requestTime allocationTime allocationDelay; "
        "amounts: resource; bool: placeholder placeholderUsed preempted originator"
    ),
    "Node": (
        "str: nodeID hostName rackName partition; texts: attributes; amounts: capacity "
        "allocated occupied available utilized; bool: schedulable isReserved; [Allocation]: "
        "allocations; [Foreign]: foreignAllocations; [str]: reservations"
    ),
    "Foreign": (
        "str: allocationKey priority nodeId; texts: allocationTags; int: allocationTime; "
        "amounts: resource; bool: preemptable"
    ),
    "PartitionNodes": "str: partitionName; [Node]: nodesInfo",
    "PartitionUtilisation": "str: clusterId partition; [TypeUtilisation]: utilizations",
    "TypeUtilisation": "str: type; [Bucket]: utilization",
    "Bucket": "str: bucketName; int: numOfNodes; [str]: nodeNames",
    "User": "str: userName; texts: groups; QueueUsage: queues",
    "Group": "str: groupName; [str]: applications; QueueUsage: queues",
    "QueueUsage": (
        "str: queuePath; amounts: resourceUsage maxResources?; [str]: runningApplications; int: "
        "maxApplications?; [QueueUsage]: children"
    ),
    "Placement": "str: partition; [Rule]: rules",
    "Rule": "str: name; texts: parameters; Filter: filter?; Rule: parentRule?",
    "Filter": "str: type userExp groupExp; [str]: userList groupList",
    "Health": "bool: Healthy; [Check]: HealthChecks",
    "Check": "str: Name Description DiagnosisMessage; bool: Succeeded",
    "ApplicationSample": "int: timestamp; str: totalApplications",
    "ContainerSample": "int: timestamp; str: totalContainers",
    "Configuration": "[any]: partitions; str: checksum; texts: extra",
    "StateDump": (
        "int: timestamp; [Partition]: partitions; [Application]: applications; "
        "[ApplicationSample]: appHistory; [PartitionNodes]: nodes; [Cluster]: clusterInfo; "
        "[ContainerSample]: containerHistory; [Queue]: queues; [Placement]: placementRules; "
        "any: rmDiagnostics; str: logLevel; Configuration: config; [any]: eventStreams; "
        "int: lastTimestamp; [any]: transitions"
    ),
}
FIELDS: dict[str, dict[str, str]] = {name: _fields(said) for name, said in _SAID.items()}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_map(value: object, of: str) -> bool:
    return isinstance(value, dict) and all(
        isinstance(name, str) and _SCALARS[of](each) for name, each in value.items()
    )


_SCALARS = {
    "any": lambda value: value is not None,
    "int": lambda value: type(value) is int,
    "str": lambda value: type(value) is str,
    "bool": lambda value: type(value) is bool,
    "number": _is_number,
    "amounts": lambda value: _is_map(value, "int"),
    "texts": lambda value: _is_map(value, "str"),
    "weights": lambda value: _is_map(value, "number"),
    "usage": lambda value: _is_map(value, "amounts"),
}


def flaws(value: Any, kind: str, path: str = "") -> list[str]:
    """Where the value is not what the table says of its kind; empty when all is right."""
    if kind.startswith("["):
        if not isinstance(value, list):
            return [f"{path} is {value!r} and not a list"]
        return [a for at, e in enumerate(value) for a in flaws(e, kind[1:-1], f"{path}[{at}]")]
    if kind in _SCALARS:
        return [] if _SCALARS[kind](value) else [f"{path} is {value!r} and not {kind}"]
    if not isinstance(value, dict):
        return [f"{path} is {value!r} and not a {kind}"]
    table = {name.rstrip("?"): each for name, each in FIELDS[kind].items()}
    needed = {name for name in FIELDS[kind] if not name.endswith("?")}
    found = [f"{path}.{name} is missing" for name in sorted(needed - set(value))]
    found += [f"{path}.{name} is nobody's" for name in value if name not in table]
    for name, each in value.items():
        if name in table:
            found += flaws(each, table[name], f"{path}.{name}")
    return found
