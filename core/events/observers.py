"""What happens, and the function that makes the event record of it: the table is at the end (2.16).

A transition of an application or a node is reported by the kernel. Every other change is a function of
``model.observer.Observer``. Only what waits for a quota needs more than a function: ``quota_events``.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from quadriga.core.events import gang_producers, producers
from quadriga.core.events.quota_events import QuotaEvents
from quadriga.core.model.observer import Observer
from quadriga.fsm import APPLICATION, NODE, Lifecycle

if TYPE_CHECKING:
    from collections.abc import Callable

    from quadriga.core.events.system import EventLog, Events
    from quadriga.core.model.resource_manager import ResourceManager
    from quadriga.core.runtime.kernel import Kernel


def install(kernel: Kernel) -> None:
    """Let the kernel report the transitions that are worth a record."""
    for lifecycle, record in TRANSITIONS.items():
        kernel.on_entering(lifecycle, partial(_entered, kernel, record))


def _entered(kernel: Kernel, record: Callable[..., None], entity: Any) -> None:
    observer = entity.partition.rm.observer
    if isinstance(observer, Recorder):
        record(observer.log, entity, kernel.reason)


def observe(rm: ResourceManager, events: Events) -> None:
    """Give a new resource manager its observer."""
    rm.observer = Listener(events)


class Listener(Observer):
    """Makes no records, but knows when the settings of its resource manager ask for them."""

    __slots__ = ("_events",)

    def __init__(self, events: Events) -> None:
        super().__init__()
        self._events = events
        self.settings_changed = self._configure
        self.state_dropped = self._forget

    def _configure(self, rm: ResourceManager) -> None:
        log = self._events.configure(rm)
        if log is not None:
            rm.observer = recorder = Recorder(self._events, log)
            for partition in rm.partitions.values():
                recorder.quota_events.watch(partition)

    def _forget(self, rm: ResourceManager) -> None:
        self._events.forget(rm)
        rm.observer = Listener(self._events)


class Recorder(Listener):
    """Makes the records of a resource manager that tracks events."""

    __slots__ = ("log", "quota_events")

    def __init__(self, events: Events, log: EventLog) -> None:
        super().__init__(events)
        self.log = log
        self.quota_events = QuotaEvents(log)
        for change, record in CHANGES.items():
            setattr(self, change, partial(record, log))
        for change, method in QUOTA_CHANGES.items():
            setattr(self, change, partial(method, self.quota_events))

    def _configure(self, rm: ResourceManager) -> None:
        if self._events.configure(rm) is None:
            rm.observer = Listener(self._events)
            for partition in rm.partitions.values():
                self.quota_events.unwatch(partition)


# fmt: off
#: an entity of this lifecycle entered a state
TRANSITIONS: Final[dict[Lifecycle, Callable[..., None]]] = {
    APPLICATION:             producers.application_entered,
    NODE:                    producers.node_entered,
}
#: this function of the observer was called
CHANGES: Final[dict[str, Callable[..., None]]] = {
    "application_rejected":  producers.application_rejected,
    "application_added":     producers.application_added,
    "application_left":      producers.application_left,
    "application_counted":   producers.group_linked,
    "application_uncounted": producers.group_unlinked,

    "gang_waits":            gang_producers.gang_waits,
    "gang_gathers":          gang_producers.gang_gathers,
    "gang_gave_back":        gang_producers.gang_gave_back,
    "gang_placed":           gang_producers.gang_placed,
    "gang_preempts":         gang_producers.gang_preempts,

    "quota_planned":         gang_producers.quota_planned,
    "quota_given_up":        gang_producers.quota_given_up,

    "asks_added":            producers.asks_added,
    "ask_removed":           producers.ask_removed,
    "predicates_refused":    producers.predicates_refused,
    "no_victims":            producers.no_victims,

    "allocated":             producers.allocated,
    "recovered":             producers.recovered,
    "allocation_ended":      producers.allocation_ended,
    "allocation_resized":    producers.allocation_resized,
    "replaced":              producers.replaced,
    "placeholder_too_small": producers.placeholder_too_small,
    "node_charged":          producers.node_charged,
    "node_refunded":         producers.node_refunded,
    "preempted":             producers.preempted,

    "node_added":            producers.node_added,
    "node_removed":          producers.node_removed,
    "node_resized":          producers.node_capacity,
    "node_ready":            producers.node_ready,
    "node_occupied":         producers.node_occupied,
    "reserved":              producers.reserved,
    "unreserved":            producers.unreserved,
    "capacity_changed":      producers.capacity_changed,

    "queue_added":           producers.queue_added,
    "queue_removed":         producers.queue_removed,
    "queue_type_changed":    producers.queue_type,
    "queue_configured":      producers.queue_configured,
    "max_changed":           producers.queue_max,
    "guaranteed_changed":    producers.queue_guaranteed,
    "limits_changed":        producers.limits_changed,
    "quota_enforced":        producers.quota_enforced,
}
#: the same, where quota events depend on it
QUOTA_CHANGES: Final[dict[str, Callable[..., None]]] = {
    "partition_added":       QuotaEvents.watch,
    "partition_removed":     QuotaEvents.unwatch,
    "ask_served":            QuotaEvents.ask_served,
    "group_emptied":         QuotaEvents.group_emptied,
    "round_ended":           QuotaEvents.round_ended,
}
# fmt: on
