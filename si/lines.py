"""The items of a message, one short line each, for logs and sequence diagrams.

The lines have only names (of applications, keys, nodes), never the value of a field marked
``si_secret``.
"""

from __future__ import annotations

from typing import Any

from quadriga.si.v1.si_pb2 import (
    AddApplicationRequest,
    Allocation,
    AllocationAsk,
    AllocationRequest,
    AllocationResponse,
    ApplicationRequest,
    ApplicationResponse,
    NodeInfo,
    NodeRequest,
    NodeResponse,
    RegisterResourceManagerRequest,
    TerminationType,
    UpdateConfigurationRequest,
    UpdateContainerSchedulingStateRequest,
)

#: the first word of the line of a node, by the action
_NODE_ACTIONS = {
    NodeInfo.CREATE: "add",
    NodeInfo.UPDATE: "update",
    NodeInfo.DRAIN_NODE: "drain",
    NodeInfo.DRAIN_TO_SCHEDULABLE: "undrain",
    NodeInfo.DECOMISSION: "remove",
    NodeInfo.CREATE_DRAIN: "add draining",
}


def lines(message: Any) -> list[str]:
    """The items of a request or a response; event records and anything else have none."""
    match message:
        case ApplicationRequest():
            return [
                *(f"add {app.applicationID}{_style(app)}" for app in message.new),
                *(f"remove {app.applicationID}" for app in message.remove),
            ]
        case NodeRequest():
            return [
                f"{_NODE_ACTIONS.get(node.action, 'unknown action on')} node {node.nodeID}"
                for node in message.nodes
            ]
        case AllocationRequest():
            return _of_request(message)
        case AllocationResponse():
            return _of_allocations(message)
        case ApplicationResponse():
            return [
                *(f"accepted {app.applicationID}" for app in message.accepted),
                *(f"rejected {app.applicationID}: {app.reason}" for app in message.rejected),
                *(f"{app.applicationID} {app.state} ({app.message})" for app in message.updated),
            ]
        case NodeResponse():
            return [
                *(f"accepted node {node.nodeID}" for node in message.accepted),
                *(f"rejected node {node.nodeID}: {node.reason}" for node in message.rejected),
            ]
        case UpdateContainerSchedulingStateRequest():
            state = _name(UpdateContainerSchedulingStateRequest.SchedulingState, message.state)
            return [f"{state} {message.applicartionID}/{message.allocationKey}"]
        case RegisterResourceManagerRequest():
            return [f"register {message.rmID}"]
        case UpdateConfigurationRequest():
            return [f"configure {message.rmID}"]
    return []


def _of_request(request: AllocationRequest) -> list[str]:
    releases = request.releases
    return [
        *(_ask(ask) for ask in request.asks),
        *(_ask(ask) for ask in request.allocations if not ask.nodeID),
        *(
            f"existing {each.applicationID}/{each.allocationKey} on {each.nodeID}"
            for each in request.allocations
            if each.nodeID
        ),
        *(
            f"release ask {gone.applicationID}/{gone.allocationKey} {_kind(gone.terminationType)}"
            for gone in releases.allocationAsksToRelease
        ),
        *(
            f"release {gone.applicationID}/{gone.UUID or gone.allocationKey} "
            f"{_kind(gone.terminationType)}"
            for gone in releases.allocationsToRelease
        ),
    ]


def _style(app: AddApplicationRequest) -> str:
    return f" ({app.gangSchedulingStyle} gang)" if app.gangSchedulingStyle else ""


def _ask(ask: AllocationAsk | Allocation) -> str:
    what = f"ask {ask.applicationID}/{ask.allocationKey}"
    if ask.placeholder:
        return f"{what} placeholder of {ask.taskGroupName}"
    return f"{what} of {ask.taskGroupName}" if ask.taskGroupName else what


def _of_allocations(response: AllocationResponse) -> list[str]:
    found = []
    for new in response.new:
        kind = f" placeholder of {new.taskGroupName}" if new.placeholder else ""
        found.append(f"new {new.applicationID}/{new.UUID} on {new.nodeID}{kind}")
    for ask in response.rejected:
        found.append(f"rejected ask {ask.applicationID}/{ask.allocationKey}: {ask.reason}")
    for lost in response.rejectedAllocations:
        found.append(
            f"rejected allocation {lost.applicationID}/{lost.allocationKey}: {lost.reason}"
        )
    for gone in response.released:
        kind = _kind(gone.terminationType)
        found.append(f"released {gone.applicationID}/{gone.UUID or gone.allocationKey} {kind}")
    for over in response.releasedAsks:
        kind = _kind(over.terminationType)
        found.append(f"released ask {over.applicationID}/{over.allocationKey} {kind}")
    return found


def _kind(value: int) -> str:
    return _name(TerminationType, value)


def _name(enum: Any, value: int) -> str:
    """The name of a value; a peer of another version may send one without a name here."""
    try:
        return str(enum.Name(value))
    except ValueError:
        return str(value)
