"""What every object of a view must look like, in one table, and a check of any object against it.

The table is written from the list of fields (2.12 to 2.14) and not from the code. ``?`` after a name:
may be absent. A type is ``int``, ``str``, ``bool``, ``number``, ``amounts`` (type to integer),
``texts`` (text to text), ``weights`` (text to number), the name of another object, or one of these in
brackets: a list, which is never null.
"""

from __future__ import annotations

from typing import Any

__all__ = ["FIELDS", "flaws"]


def _fields(**named: str) -> dict[str, str]:
    """From ``type="name name? name"``."""
    return {name: kind for kind, names in named.items() for name in names.split()}


FIELDS: dict[str, dict[str, str]] = {
    "Cluster": {
        "startTime?": "int",
        "rmBuildInformation": "[texts]",
        "partition": "str",
        "clusterName": "str",
    },
    "Partition": {
        "clusterId": "str",
        "name": "str",
        "capacity": "Capacity",
        "nodeSortingPolicy": "NodeSortingPolicy",
        "totalNodes": "int",
        "applications": "amounts",
        "totalContainers": "int",
        "state": "str",
        "lastStateTransitionTime": "int",
        "preemptionEnabled": "bool",
        "quotaPreemptionEnabled": "bool",
    },
    "Capacity": _fields(amounts="capacity usedCapacity utilization"),
    "NodeSortingPolicy": {"type": "str", "resourceWeights": "weights"},
    "Queue": {
        **_fields(
            str="queuename status partition parent sortingPolicy preemptionDelay "
            "quotaPreemptionDelay",
            amounts="pendingResource maxResource guaranteedResource allocatedResource "
            "preemptingResource headroom absUsedCapacity",
            bool="isLeaf isManaged prioritySorting preemptionEnabled isPreemptionFence "
            "isPriorityFence",
            int="maxRunningApps runningApps currentPriority priorityOffset",
            texts="properties",
            Template="template?",
        ),
        "children": "[Queue]",
        "childrenNames": "[str]",
        "childNames": "[str]",
        "allocatingAcceptedApps": "[str]",
    },
    "Template": {
        **_fields(int="maxApplications", amounts="maxResource guaranteedResource"),
        "properties": "texts",
    },
    "Application": {
        **_fields(
            str="applicationID partition queueName applicationState user rejectedMessage",
            amounts="usedResource maxUsedResource pendingResource",
            int="submissionTime startTime? finishedTime? maxRequestPriority backoffDeadline?",
            bool="hasReserved",
            ResourceHistory="resourceHistory",
        ),
        "requests": "[Ask]",
        "allocations": "[Allocation]",
        "groups": "[str]",
        "stateLog": "[State]",
        "placeholderData": "[Placeholder]",
        "reservations": "[str]",
    },
    "State": {"time": "int", "applicationState": "str"},
    "Placeholder": {
        **_fields(str="taskGroupName", int="count replaced timedout", amounts="minResource")
    },
    "ResourceHistory": _fields(usage="resourceUsage preemptedResource placeholderResource"),
    "Ask": {
        **_fields(
            str="allocationKey priority requiredNodeId applicationId partition taskGroupName",
            texts="allocationTags",
            int="requestTime pendingCount placeholderTimeout",
            amounts="resource",
            bool="placeholder triggeredPreemption originator schedulingAttempted triggeredScaleUp",
        ),
        "allocationLog": "[AskLog]",
    },
    "AskLog": {"message": "str", "lastOccurrence": "int", "count": "int"},
    "Allocation": _fields(
        str="allocationKey uuid allocationID priority nodeId applicationId partition taskGroupName",
        texts="allocationTags",
        int="requestTime allocationTime allocationDelay",
        amounts="resource",
        bool="placeholder placeholderUsed preempted originator",
    ),
    "Node": {
        **_fields(
            str="nodeID hostName rackName partition",
            texts="attributes",
            amounts="capacity allocated occupied available utilized",
            bool="schedulable isReserved",
        ),
        "allocations": "[Allocation]",
        "foreignAllocations": "[Foreign]",
        "reservations": "[str]",
    },
    "Foreign": _fields(
        str="allocationKey priority nodeId",
        texts="allocationTags",
        int="allocationTime",
        amounts="resource",
        bool="preemptable",
    ),
    "PartitionNodes": {"partitionName": "str", "nodesInfo": "[Node]"},
    "PartitionUtilisation": {
        "clusterId": "str",
        "partition": "str",
        "utilizations": "[TypeUtilisation]",
    },
    "TypeUtilisation": {"type": "str", "utilization": "[Bucket]"},
    "Bucket": {"bucketName": "str", "numOfNodes": "int", "nodeNames": "[str]"},
    "User": {"userName": "str", "groups": "texts", "queues": "QueueUsage"},
    "Group": {"groupName": "str", "applications": "[str]", "queues": "QueueUsage"},
    "QueueUsage": {
        "queuePath": "str",
        "resourceUsage": "amounts",
        "runningApplications": "[str]",
        "maxResources?": "amounts",
        "maxApplications?": "int",
        "children": "[QueueUsage]",
    },
    "Placement": {"partition": "str", "rules": "[Rule]"},
    "Rule": {
        "name": "str",
        "parameters": "texts",
        "filter?": "Filter",
        "parentRule?": "Rule",
    },
    "Filter": {
        "type": "str",
        "userList": "[str]",
        "groupList": "[str]",
        "userExp": "str",
        "groupExp": "str",
    },
    "Health": {"Healthy": "bool", "HealthChecks": "[Check]"},
    "Check": _fields(str="Name Description DiagnosisMessage", bool="Succeeded"),
    "ApplicationSample": {"timestamp": "int", "totalApplications": "str"},
    "ContainerSample": {"timestamp": "int", "totalContainers": "str"},
    "Configuration": {"partitions": "[any]", "checksum": "str", "extra": "texts"},
    "StateDump": {
        "timestamp": "int",
        "partitions": "[Partition]",
        "applications": "[Application]",
        "appHistory": "[ApplicationSample]",
        "nodes": "[PartitionNodes]",
        "clusterInfo": "[Cluster]",
        "containerHistory": "[ContainerSample]",
        "queues": "[Queue]",
        "placementRules": "[Placement]",
        "rmDiagnostics": "any",
        "logLevel": "str",
        "config": "Configuration",
        "eventStreams": "[any]",
    },
}


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
        return [
            flaw
            for at, each in enumerate(value)
            for flaw in flaws(each, kind[1:-1], f"{path}[{at}]")
        ]
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
