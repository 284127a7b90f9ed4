"""The routing table: each part of a message, the triggers that it fires at which entities, its answers.

The table can be read, drawn and tested row by row. It is the only place in ``intake`` that names the
triggers to fire: a handler gets those of its row, and answers with the fields of its row. The parts of
one message are handled in the table's order, which the protocol prescribes: asks, then ask releases, then
allocation releases (M2); applications added, then removed (M5). See D180.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from quadriga.core.config import Configuration
from quadriga.core.intake import (
    applications,
    asks,
    nodes,
    recovery,
    registration,
    releases,
    unified,
)
from quadriga.core.intake.fires import (
    AdditionFires,
    AskFires,
    AskReleaseFires,
    NodeFires,
    RecoveryFires,
    RegistrationFires,
    ReleaseFires,
    RemovalFires,
    UpdateFires,
)
from quadriga.core.intake.routes import Answers, Route, part
from quadriga.core.model.resource_manager import ResourceManager
from quadriga.core.runtime.kernel import Kernel
from quadriga.core.runtime.refusal import Refused
from quadriga.fsm import ALLOCATION, APPLICATION, ASK, NODE, QUEUE, RESOURCE_MANAGER
from quadriga.fsm.lifecycles import allocation as allocation_fsm
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.fsm.lifecycles import ask as ask_fsm
from quadriga.fsm.lifecycles import node as node_fsm
from quadriga.fsm.lifecycles import queue as queue_fsm
from quadriga.fsm.lifecycles import resource_manager as resource_manager_fsm
from quadriga.si import (
    AcceptedNode,
    AllocationRequest,
    ApplicationRequest,
    NodeInfo,
    NodeRequest,
    NodeResponse,
    RegisterResourceManagerRequest,
    RejectedNode,
    UpdateConfigurationRequest,
)

Request = ApplicationRequest | AllocationRequest | NodeRequest


# -- nodes -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NodeRoute:
    """An ``ActionFromRM``, the trigger that it fires at the node, and the fields of the response that may
    name the node: ``accepted`` after the handler, ``rejected`` if it refuses."""

    action: NodeInfo.ActionFromRM
    trigger: node_fsm.Trigger
    answers: Answers
    handle: Callable[[Kernel, ResourceManager, NodeInfo, NodeFires], None]


_ADDED, _KNOWN = Answers("accepted", "rejected"), Answers("rejected")

# fmt: off
NODE_ROUTES: Final = (
    #         action                          trigger                 answers  handler
    NodeRoute(NodeInfo.CREATE,                node_fsm.ACCEPT,        _ADDED,  nodes.create),
    NodeRoute(NodeInfo.CREATE_DRAIN,          node_fsm.ACCEPT,        _ADDED,  nodes.create_draining),
    NodeRoute(NodeInfo.UPDATE,                node_fsm.UPDATE,        _KNOWN,  nodes.update),
    NodeRoute(NodeInfo.DRAIN_NODE,            node_fsm.DRAIN,         _KNOWN,  nodes.trigger),
    NodeRoute(NodeInfo.DRAIN_TO_SCHEDULABLE,  node_fsm.SCHEDULE,      _KNOWN,  nodes.trigger),
    NodeRoute(NodeInfo.DECOMISSION,           node_fsm.DECOMMISSION,  _KNOWN,  nodes.trigger),
)
# fmt: on

_BY_ACTION: Final = {route.action: route for route in NODE_ROUTES}


def _act_on_nodes(
    kernel: Kernel, rm: ResourceManager, infos: Any, fires: NodeFires, answers: Answers
) -> None:
    """Apply the action of each node; one response answers all of them (M7, X20)."""
    response = NodeResponse()
    for info in infos:
        route = _BY_ACTION.get(info.action)
        if route is None:  # X7: an error in the log, and nothing changes
            kernel.note(f"node {info.nodeID!r}: unknown action {info.action} ignored")
            continue
        try:
            route.handle(kernel, rm, info, fires)
        except Refused as refused:
            route.answers.require("rejected")
            kernel.tally.rejected["node", refused.kind] += 1
            response.rejected.append(RejectedNode(nodeID=info.nodeID, reason=str(refused)))
        else:
            if "accepted" in route.answers.fields:
                response.accepted.append(AcceptedNode(nodeID=info.nodeID))
    if response.accepted or response.rejected:
        answers.send(kernel, rm, response)


# -- the table -------------------------------------------------------------------------------------

_ASKS: Final = "releases.allocationAsksToRelease"
_ALLOCATIONS: Final = "releases.allocationsToRelease"
_ACTIONS: Final = {route.action: route.trigger for route in NODE_ROUTES}

_RECOVERED: Final = RecoveryFires(
    ALLOCATION, allocation_fsm.ALLOCATE,
    ASK, ask_fsm.SUBMIT, ask_fsm.ALLOCATE,
    APPLICATION, application_fsm.ASK, application_fsm.RUN,
)  # fmt: skip

# fmt: off
ROUTES: Final[tuple[Route, ...]] = (
    #     message, field
    #     entity, triggers
    #     answers, handler
    part(RegisterResourceManagerRequest, "",
          RegistrationFires(RESOURCE_MANAGER, resource_manager_fsm.REGISTER),
          Answers(), registration.register),
    part(UpdateConfigurationRequest, "",
          UpdateFires(QUEUE, queue_fsm.RESTORE, queue_fsm.REMOVE),
          Answers(), registration.update_configuration),
    part(ApplicationRequest, "new",
          AdditionFires(APPLICATION, application_fsm.REJECT),
          Answers("accepted", "rejected"), applications.add_applications),
    part(ApplicationRequest, "remove",
          RemovalFires(APPLICATION, application_fsm.TO_ITS_END,
                       ALLOCATION, allocation_fsm.COMPLETE,
                       ASK, ask_fsm.REJECT),
          Answers("released"), applications.remove_applications),
    part(AllocationRequest, "allocations", _RECOVERED,
          Answers("new", "rejectedAllocations"), recovery.recover_allocations, of=unified.is_report),
    part(AllocationRequest, "asks",
          AskFires(ASK, ask_fsm.SUBMIT, ask_fsm.UPDATE, APPLICATION, application_fsm.ASK),
          Answers("rejected"), asks.add_asks, whole=True),
    part(AllocationRequest, "allocations",
          AskFires(ASK, ask_fsm.SUBMIT, ask_fsm.UPDATE, APPLICATION, application_fsm.ASK),
          Answers("rejectedAllocations"), unified.add_asks, of=unified.is_ask),
    part(AllocationRequest, _ASKS,
          AskReleaseFires(ASK, ask_fsm.REJECT),
          Answers("releasedAsks"), asks.release_asks, asks.check_ask_releases),
    part(AllocationRequest, _ALLOCATIONS,
          ReleaseFires(ALLOCATION, allocation_fsm.COMPLETE, allocation_fsm.CONFIRM,
                       ASK, ask_fsm.REJECT),
          Answers("released"), releases.release_allocations, releases.check_releases),
    part(NodeRequest, "nodes",
          NodeFires(NODE, _ACTIONS, node_fsm.REJECT, _RECOVERED),
          Answers("accepted", "rejected"), _act_on_nodes),
)
# fmt: on

_BY_MESSAGE: dict[type[Request], tuple[Route, ...]] = {
    kind: tuple(route for route in ROUTES if route.message is kind)
    for kind in (ApplicationRequest, AllocationRequest, NodeRequest)
}
#: the messages without parts
_CONFIGURE: Final = {route.message: route for route in ROUTES if not route.field}


def routes_of(message: Request) -> tuple[Route, ...]:
    """Return the parts of a message in the order in which they are applied."""
    return _BY_MESSAGE[type(message)]


def check(rm: ResourceManager, message: Request) -> None:
    """Raise ``RequestError`` for a message that is refused as a whole; nothing changes."""
    for route, items in _parts(message):
        if route.check is not None:
            route.check(rm, items)


def _parts(message: Request) -> list[tuple[Route, Any]]:
    """The parts of a message that are not empty, in the order in which they are applied."""
    present = {field.name for field, _ in message.ListFields()}  # an empty field is slow to read
    return [
        (route, items)
        for route in _BY_MESSAGE[type(message)]
        if route.field.partition(".")[0] in present and (items := route.items(message))
    ]


def dispatch(kernel: Kernel, rm: ResourceManager, message: Request) -> None:
    """Apply a message part by part. Raises ``RequestError`` before anything was applied."""
    parts = _parts(message)
    for route, items in parts:
        if route.check is not None:
            route.check(rm, items)
    for route, items in parts:
        kernel.cause = route.cause
        route.handle(kernel, rm, message if route.whole else items, route.fires, route.answers)
        kernel.settle()


def configure(
    kernel: Kernel,
    rm: ResourceManager,
    message: RegisterResourceManagerRequest | UpdateConfigurationRequest,
    configuration: Configuration | None,
) -> None:
    """Apply a registration or an update, whose configuration has been read."""
    route = _CONFIGURE[type(message)]
    kernel.cause = route.cause
    configured = registration.Configured(message, configuration)
    route.handle(kernel, rm, configured, route.fires, route.answers)
