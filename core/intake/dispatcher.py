"""The routing table: each part of a message, the entity that it concerns, and the triggers it may fire.

The table can be read, drawn and tested row by row. The parts of one message are handled in the table's
order, which the protocol prescribes: asks, then ask releases, then allocation releases (M2);
applications added, then removed (M5).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import Any

from quadriga.core.intake import applications, asks, nodes, recovery, releases, unified
from quadriga.core.model.refusal import Refused
from quadriga.core.model.resource_manager import ResourceManager
from quadriga.core.runtime.kernel import Kernel
from quadriga.fsm import allocation as allocation_fsm
from quadriga.fsm import application as application_fsm
from quadriga.fsm import ask as ask_fsm
from quadriga.fsm import node as node_fsm
from quadriga.si import (
    AllocationRequest,
    ApplicationRequest,
    NodeInfo,
    NodeRequest,
    NodeResponse,
    RejectedNode,
)

__all__ = [
    "NODE_ROUTES",
    "ROUTES",
    "NodeRoute",
    "Request",
    "Route",
    "check",
    "dispatch",
    "routes_of",
]

Request = ApplicationRequest | AllocationRequest | NodeRequest

#: the reader of a field by its path, made once for each path
_reader = cache(attrgetter)


@cache
def _cause_of(message: str, field: str) -> str:
    return f"{message}.{field}"


@dataclass(frozen=True, slots=True)
class Route:
    """One part of a message: the items of ``field``, which ``handle`` applies together.

    ``of`` selects the items of this part if several parts share the field; with ``whole`` the handler
    gets the whole message. ``entity`` and ``triggers`` name the lifecycle and what may be fired,
    ``also`` a second lifecycle, ``response`` the answer to the resource manager. ``check`` refuses the
    whole request before anything is applied.
    """

    message: type[Request]
    field: str
    entity: str
    triggers: tuple[str, ...]
    response: str
    handle: Callable[[Kernel, ResourceManager, Any], None]
    check: Callable[[ResourceManager, Any], None] | None = None
    whole: bool = False
    of: Callable[[Any], bool] | None = None
    also: tuple[str, tuple[str, ...]] | None = None

    @property
    def cause(self) -> str:
        """What follows from this part, for the journal."""
        return _cause_of(self.message.__name__, self.field)

    def whole_field(self, message: Request) -> Any:
        """Return the repeated field, which may be nested (``releases.x``)."""
        return _reader(self.field)(message)

    def items(self, message: Request) -> Any:
        """Return the items of the field that belong to this part."""
        part = self.whole_field(message)
        return [item for item in part if self.of(item)] if self.of is not None and part else part


def _remove_applications(kernel: Kernel, rm: ResourceManager, removals: Any) -> None:
    for removal in removals:
        applications.remove_application(kernel, rm, removal)


@dataclass(frozen=True, slots=True)
class NodeRoute:
    """An ``ActionFromRM`` and the trigger that it fires at the node."""

    action: NodeInfo.ActionFromRM
    trigger: node_fsm.Trigger
    response: str


# fmt: off
NODE_ROUTES = (
    #         action                          trigger             response
    NodeRoute(NodeInfo.CREATE,                node_fsm.ACCEPT,        "accepted or rejected"),
    NodeRoute(NodeInfo.CREATE_DRAIN,          node_fsm.ACCEPT,        "accepted or rejected"),
    NodeRoute(NodeInfo.UPDATE,                node_fsm.UPDATE,        "rejected if unknown"),
    NodeRoute(NodeInfo.DRAIN_NODE,            node_fsm.DRAIN,         "rejected if unknown"),
    NodeRoute(NodeInfo.DRAIN_TO_SCHEDULABLE,  node_fsm.SCHEDULE,      "rejected if not draining"),
    NodeRoute(NodeInfo.DECOMISSION,           node_fsm.DECOMMISSION,  "rejected if unknown; released, new"),
)
# fmt: on

_NODE_TRIGGER = {route.action: route.trigger for route in NODE_ROUTES}
_CREATES = {NodeInfo.CREATE: False, NodeInfo.CREATE_DRAIN: True}


def _act_on_nodes(kernel: Kernel, rm: ResourceManager, infos: Any) -> None:
    """Apply the action of each node; one response answers all of them (M7, X20)."""
    response = NodeResponse()
    for info in infos:
        try:
            _act_on_node(kernel, rm, info, response)
        except Refused as refused:
            kernel.tally.rejected["node", refused.kind] += 1
            response.rejected.append(RejectedNode(nodeID=info.nodeID, reason=str(refused)))
    if response.accepted or response.rejected:
        kernel.outbox.add(rm, response)


def _act_on_node(
    kernel: Kernel, rm: ResourceManager, info: NodeInfo, response: NodeResponse
) -> None:
    trigger = _NODE_TRIGGER.get(info.action)
    if trigger is None:  # X7: an error in the log, and nothing changes
        kernel.note(f"node {info.nodeID!r}: unknown action {info.action} ignored (X7)")
        return
    if info.action in _CREATES:
        nodes.create(kernel, rm, info, response, draining=_CREATES[info.action])
        return
    found = [p.nodes[info.nodeID] for p in rm.partitions.values() if info.nodeID in p.nodes]
    if not found:
        text = f"node {info.nodeID!r} is not known: {trigger} is not possible (I30)"
        raise Refused(text, "unknown")
    if trigger == node_fsm.UPDATE:
        nodes.update(kernel, found[0], info)
    else:
        nodes.trigger(kernel, found[0], trigger)


_REMOVAL = (
    application_fsm.WAIT,
    application_fsm.COMPLETE,
    application_fsm.KILL,
    application_fsm.KILLED_,
)
_NODE = (*dict.fromkeys(route.trigger for route in NODE_ROUTES), node_fsm.REJECT)
_ASKS, _ALLOCATIONS = "releases.allocationAsksToRelease", "releases.allocationsToRelease"

# fmt: off
ROUTES = (
    #     message             field          entity         triggers                                     response
    Route(ApplicationRequest, "new",         "application", (application_fsm.REJECT,),                       "accepted, rejected",
          applications.add_applications),
    Route(ApplicationRequest, "remove",      "application", _REMOVAL,                                    "released, updated",
          _remove_applications),
    Route(AllocationRequest,  "allocations", "allocation",  (allocation_fsm.ALLOCATE,),                      "new, rejectedAllocations",
          recovery.recover_allocations, of=unified.is_report),
    Route(AllocationRequest,  "asks",        "ask",         (ask_fsm.SUBMIT, ask_fsm.UPDATE),                    "rejected",
          asks.add_asks, whole=True),
    Route(AllocationRequest,  "allocations", "ask",         (ask_fsm.SUBMIT, ask_fsm.UPDATE),                    "rejectedAllocations",
          unified.add_asks, of=unified.is_ask),
    Route(AllocationRequest,  _ASKS,         "ask",         (ask_fsm.REJECT,),                               "releasedAsks",
          asks.release_asks, asks.check_ask_releases),
    Route(AllocationRequest,  _ALLOCATIONS,  "allocation",  (allocation_fsm.COMPLETE, allocation_fsm.CONFIRM),   "released, new",
          releases.release_allocations, releases.check_releases, also=("ask", (ask_fsm.REJECT,))),
    Route(NodeRequest,        "nodes",       "node",        _NODE,                                       "accepted, rejected",
          _act_on_nodes),
)
# fmt: on

_BY_MESSAGE: dict[type[Request], tuple[Route, ...]] = {
    kind: tuple(route for route in ROUTES if route.message is kind)
    for kind in (ApplicationRequest, AllocationRequest, NodeRequest)
}


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
        route.handle(kernel, rm, message if route.whole else items)
        kernel.settle()
