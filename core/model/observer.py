"""The observer of a resource manager: one function for each kind of change of its entities.

The code that changes an entity calls the function of that change: ``rm.observer.reserved(node, ask)``.
A new ``Observer`` ignores all calls; ``events.observers`` sets the functions that make event records.
Transitions of applications and nodes need no call, because the kernel reports them
(``Kernel.on_entering``). See D131.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from quadriga.core.model.account import Ledger, Limit, QuotaPlan
    from quadriga.core.model.allocation import Allocation
    from quadriga.core.model.application import Application
    from quadriga.core.model.ask import Ask, AskGroup
    from quadriga.core.model.node import Node
    from quadriga.core.model.partition import Partition
    from quadriga.core.model.queue import Queue
    from quadriga.core.model.resource_manager import ResourceManager
    from quadriga.core.resources.shapes import Shape
    from quadriga.core.resources.vectors import Vector
    from quadriga.si import TerminationType


def _ignore(*_: object) -> None:
    pass


class Observer:
    """One function for each kind of change.

    It has more than 25 attributes because it has no others: each is one kind of change, and the groups
    in ``__init__`` are the kinds of entities.
    """

    __slots__ = (
        "allocated",
        "allocation_ended",
        "allocation_resized",
        "application_added",
        "application_counted",
        "application_left",
        "application_rejected",
        "application_uncounted",
        "ask_removed",
        "ask_served",
        "asks_added",
        "capacity_changed",
        "gang_gathers",
        "gang_gave_back",
        "gang_placed",
        "gang_preempts",
        "gang_waits",
        "group_emptied",
        "guaranteed_changed",
        "limits_changed",
        "max_changed",
        "no_victims",
        "node_added",
        "node_charged",
        "node_occupied",
        "node_ready",
        "node_refunded",
        "node_removed",
        "node_resized",
        "partition_added",
        "partition_removed",
        "placeholder_too_small",
        "predicates_refused",
        "preempted",
        "quota_given_up",
        "quota_planned",
        "queue_added",
        "queue_configured",
        "queue_removed",
        "queue_type_changed",
        "quota_enforced",
        "recovered",
        "replaced",
        "reserved",
        "round_ended",
        "settings_changed",
        "state_dropped",
        "unreserved",
    )

    def __init__(self) -> None:
        # -- resource managers and partitions
        #: the resource manager registered, or its extraConfig changed
        self.settings_changed: Callable[[ResourceManager], None] = _ignore
        #: the state of the resource manager was dropped (I6, I7)
        self.state_dropped: Callable[[ResourceManager], None] = _ignore
        #: the partition is new: it has its root queue and nothing else
        self.partition_added: Callable[[Partition], None] = _ignore
        #: the partition was drained and is gone
        self.partition_removed: Callable[[Partition], None] = _ignore
        #: the capacity of the partition changed; its capacity before
        self.capacity_changed: Callable[[Partition, Vector], None] = _ignore
        #: the partition can make no further decision for now
        self.round_ended: Callable[[Partition], None] = _ignore

        # -- applications
        #: a new application was refused, for this reason; its id may belong to another application
        self.application_rejected: Callable[[str, str], None] = _ignore
        #: the application has joined its queue
        self.application_added: Callable[[Application], None] = _ignore
        #: the application has ended, and has left its queue and its partition
        self.application_left: Callable[[Application], None] = _ignore
        #: the application counts against the limits of its user and its group from now on (2.5)
        self.application_counted: Callable[[Application], None] = _ignore
        #: the application no longer counts against them
        self.application_uncounted: Callable[[Application], None] = _ignore

        # -- gangs that are placed in one step (Q2)
        #: the gang was tried and lacks something; the shapes for which nodes have no room, each with the
        #: number of members
        self.gang_waits: Callable[[Application, Sequence[tuple[Shape, int]]], None] = _ignore
        #: the gang begins to keep nodes
        self.gang_gathers: Callable[[Application], None] = _ignore
        #: the gang gives back the nodes that it kept, for this reason
        self.gang_gave_back: Callable[[Application, str], None] = _ignore
        #: the gang preempts these allocations, which overran on the nodes of its planned start
        self.gang_preempts: Callable[[Application, Sequence[Allocation]], None] = _ignore
        #: all outstanding members of the gang have a node, and are about to be allocated; their number
        self.gang_placed: Callable[[Application, int], None] = _ignore

        # -- planned starts at quotas and limits (Q12)
        #: the quota or limit is kept for the application of the plan from now on
        self.quota_planned: Callable[[Queue | Ledger, QuotaPlan], None] = _ignore
        #: it is kept no longer, for this reason, although what waited has not started
        self.quota_given_up: Callable[[Queue | Ledger, QuotaPlan, str], None] = _ignore

        # -- asks
        #: the asks are new or were updated
        self.asks_added: Callable[[Sequence[Ask]], None] = _ignore
        #: the ask was rejected and is still pending in the accounting; whether it timed out
        self.ask_removed: Callable[[Ask, bool], None] = _ignore
        #: the ask is about to get an allocation or a reservation; called only if the last quota event of
        #: the ask or its application still applies
        self.ask_served: Callable[[Ask], None] = _ignore
        #: no ask waits in the group any more
        self.group_emptied: Callable[[AskGroup], None] = _ignore
        #: predicates refused the ask on every node with room for it; the number of nodes by reason
        self.predicates_refused: Callable[[Ask, Mapping[str, int]], None] = _ignore
        #: preemption for the ask found no victims on its required node
        self.no_victims: Callable[[Ask], None] = _ignore

        # -- allocations
        #: the accounting has new allocations
        self.allocated: Callable[[Sequence[Allocation]], None] = _ignore
        #: the accounting has a recovered allocation, which has no ask in this scheduler (2.11)
        self.recovered: Callable[[Allocation], None] = _ignore
        #: the accounting no longer has the allocation; how it was terminated
        self.allocation_ended: Callable[[Allocation, TerminationType], None] = _ignore
        #: the allocation got another size, regardless of quotas; its size before
        self.allocation_resized: Callable[[Allocation, Vector], None] = _ignore
        #: the placeholder was replaced by the real allocation
        self.replaced: Callable[[Allocation, Allocation], None] = _ignore
        #: the placeholder is smaller than the ask that replaces it (5.10)
        self.placeholder_too_small: Callable[[Allocation, Ask], None] = _ignore
        #: a real allocation was charged to its node before its placeholder on another node ended (X18)
        self.node_charged: Callable[[Allocation], None] = _ignore
        #: such an allocation was refunded to its node
        self.node_refunded: Callable[[Allocation], None] = _ignore
        #: the allocation is about to be preempted, for the ask or because of the quota of the queue (2.8)
        self.preempted: Callable[[Allocation, Ask | Queue], None] = _ignore

        # -- nodes
        #: the node was accepted
        self.node_added: Callable[[Node], None] = _ignore
        #: the node is gone
        self.node_removed: Callable[[Node], None] = _ignore
        #: the capacity of the node changed
        self.node_resized: Callable[[Node], None] = _ignore
        #: the resource manager reports whether the node is ready
        self.node_ready: Callable[[Node, bool], None] = _ignore
        #: the amounts that foreign allocations use of the node changed
        self.node_occupied: Callable[[Node], None] = _ignore
        #: the node is reserved for the ask
        self.reserved: Callable[[Node, Ask], None] = _ignore
        #: the node is no longer reserved for the ask
        self.unreserved: Callable[[Node, Ask], None] = _ignore

        # -- queues
        #: the configuration or a placement rule made the queue; it has no settings yet
        self.queue_added: Callable[[Queue], None] = _ignore
        #: the queue is gone
        self.queue_removed: Callable[[Queue], None] = _ignore
        #: the queue replaces a queue of the other type, leaf or parent
        self.queue_type_changed: Callable[[Queue], None] = _ignore
        #: the settings of the queue changed, or a draining queue is configured again
        self.queue_configured: Callable[[Queue], None] = _ignore
        #: the configured max of the queue changed
        self.max_changed: Callable[[Queue], None] = _ignore
        #: the guarantee of the queue changed
        self.guaranteed_changed: Callable[[Queue], None] = _ignore
        #: the queue was configured; its limits of users and of groups before
        self.limits_changed: Callable[[Queue, Mapping[str, Limit], Mapping[str, Limit]], None] = (
            _ignore
        )
        #: the queue exceeded its max for its delay (2.21): amounts above the max, amounts of the victims
        #: (both by type), number of candidates, number of victims
        self.quota_enforced: Callable[
            [Queue, Mapping[int, int], Mapping[int, int], int, int], None
        ] = _ignore
