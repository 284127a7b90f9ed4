"""What each handler of ``intake`` fires: lifecycles, each followed by the triggers at its entities.

The dispatcher's table has the values. A field with a lifecycle has the lifecycle's name; the field of a
trigger has a name that says what has happened.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from quadriga.fsm import Lifecycle  # all at run time: a compiled wheel evaluates annotations here
from quadriga.fsm.lifecycles import allocation as allocation_fsm
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.fsm.lifecycles import ask as ask_fsm
from quadriga.fsm.lifecycles import node as node_fsm
from quadriga.fsm.lifecycles import queue as queue_fsm
from quadriga.fsm.lifecycles import resource_manager as resource_manager_fsm
from quadriga.si import NodeInfo


class RegistrationFires(NamedTuple):
    """``RegisterResourceManagerRequest``."""

    resource_manager: Lifecycle[resource_manager_fsm.State, resource_manager_fsm.Trigger]
    register: resource_manager_fsm.Trigger


class UpdateFires(NamedTuple):
    """``UpdateConfigurationRequest``: partitions are queues too. One that is no longer configured drains,
    and one that is configured again is restored."""

    queue: Lifecycle[queue_fsm.State, queue_fsm.Trigger]
    restore: queue_fsm.Trigger
    remove: queue_fsm.Trigger


class AdditionFires(NamedTuple):
    """``ApplicationRequest.new``: an accepted application is New, for which nothing is fired (X34)."""

    application: Lifecycle[application_fsm.State, application_fsm.Trigger]
    reject: application_fsm.Trigger


class RemovalFires(NamedTuple):
    """``ApplicationRequest.remove``: ``ends`` has the triggers that end an application, by its state."""

    application: Lifecycle[application_fsm.State, application_fsm.Trigger]
    ends: Mapping[application_fsm.State, tuple[application_fsm.Trigger, ...]]
    allocation: Lifecycle[allocation_fsm.State, allocation_fsm.Trigger]
    complete: allocation_fsm.Trigger
    ask: Lifecycle[ask_fsm.State, ask_fsm.Trigger]
    reject: ask_fsm.Trigger


class AskFires(NamedTuple):
    """``AllocationRequest.asks``: a new ask is submitted and makes its application run, and one with a
    known key updates the ask of this key (I17)."""

    ask: Lifecycle[ask_fsm.State, ask_fsm.Trigger]
    submit: ask_fsm.Trigger
    update: ask_fsm.Trigger
    application: Lifecycle[application_fsm.State, application_fsm.Trigger]
    asked: application_fsm.Trigger


class AskReleaseFires(NamedTuple):
    """``AllocationRequest.releases.allocationAsksToRelease``: the asks are released."""

    ask: Lifecycle[ask_fsm.State, ask_fsm.Trigger]
    reject: ask_fsm.Trigger


class RecoveryFires(NamedTuple):
    """``AllocationRequest.allocations`` and ``NodeInfo.existingAllocations``: a recovered allocation gets
    the triggers of one that the scheduler allocates."""

    allocation: Lifecycle[allocation_fsm.State, allocation_fsm.Trigger]
    allocated: allocation_fsm.Trigger
    ask: Lifecycle[ask_fsm.State, ask_fsm.Trigger]
    submit: ask_fsm.Trigger
    served: ask_fsm.Trigger
    application: Lifecycle[application_fsm.State, application_fsm.Trigger]
    asked: application_fsm.Trigger
    run: application_fsm.Trigger


class ReleaseFires(NamedTuple):
    """``AllocationRequest.releases.allocationsToRelease``: an allocation that the resource manager stops
    completes, and a release that it confirms is confirmed. A key also releases an ask that came as an
    allocation (X45)."""

    allocation: Lifecycle[allocation_fsm.State, allocation_fsm.Trigger]
    complete: allocation_fsm.Trigger
    confirm: allocation_fsm.Trigger
    ask: Lifecycle[ask_fsm.State, ask_fsm.Trigger]
    reject: ask_fsm.Trigger


class NodeFires(NamedTuple):
    """``NodeRequest.nodes``: each action fires a trigger; a new node may have allocations to recover, and
    is rejected if that is not possible."""

    node: Lifecycle[node_fsm.State, node_fsm.Trigger]
    actions: Mapping[NodeInfo.ActionFromRM, node_fsm.Trigger]
    reject: node_fsm.Trigger
    recovery: RecoveryFires
