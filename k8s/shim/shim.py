"""The deciding part of the shim: inputs and the time come in, actions come out.

It has no clock, no thread, no randomness and no I/O. All calls come from one thread. The time is in ns since
the Unix epoch and never goes back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from quadriga.k8s.cluster.cache import ClusterCache
from quadriga.k8s.conversion import messages
from quadriga.k8s.conversion import settings as configuration
from quadriga.k8s.conversion.resources import of_pod
from quadriga.k8s.conversion.settings import Settings
from quadriga.k8s.lifecycles import APPLICATION, NODE, PLACEHOLDER, TASK
from quadriga.k8s.lifecycles import application as application_fsm
from quadriga.k8s.lifecycles import shim as shim_fsm
from quadriga.k8s.lifecycles import task as task_fsm
from quadriga.k8s.objects import Namespace, Node, Pod, PodGroup, PriorityClass
from quadriga.k8s.shim import (
    applications,
    audit,
    core_messages,
    dump,
    gangs,
    group_changes,
    nodes,
    recovery,
    refused,
    tasks,
)
from quadriga.k8s.shim.actions import Action, LogWarning, Record, Send, Stop
from quadriga.k8s.shim.applications import end_task, look_again, settle, wait_is_over
from quadriga.k8s.shim.differences import Audit
from quadriga.k8s.shim.inputs import (
    AuditBegins,
    AuditEnds,
    BindEnded,
    Change,
    Changed,
    ConfigurationChanged,
    CoreAnswered,
    CoreForgot,
    CoreRefused,
    CoreShows,
    CreateEnded,
    Input,
    LeaseHeld,
    LeaseLost,
    PodGroupsServed,
    Synced,
    VolumesChanged,
    WatchShows,
)
from quadriga.k8s.shim.kernel import Handlers, Kernel
from quadriga.k8s.shim.nodes import node_changed, nodes_answered, send_changes
from quadriga.k8s.shim.pods import pod_changed
from quadriga.si import (
    AllocationResponse,
    ApplicationResponse,
    NodeResponse,
    RegisterResourceManagerResponse,
    UpdateContainerSchedulingStateRequest,
)

#: what executes each effect of the lifecycles of applications, pods, placeholders, nodes and the shim
_HANDLERS: Final[Handlers] = {
    **applications.EFFECTS,
    **gangs.EFFECTS,
    **nodes.EFFECTS,
    **recovery.EFFECTS,
    **tasks.EFFECTS,
}


def _not_blocked(pod: Pod) -> str:
    return ""


class Shim:
    """Decides about the pods of a cluster. ``settings`` are those of the ConfigMaps at the start (K152), and
    ``cache`` is the cluster cache, which the shim keeps up to date.

    ``suffix`` makes the random end of a placeholder's name: `placeholders.SUFFIX_LENGTH` characters of
    `placeholders.SUFFIX_ALPHABET`. ``blocked_reason`` returns why a pod must not be asked for yet, for example
    because of a missing claim (K88), or "". ``build`` describes the program, for display. ``namespace`` is that
    of the scheduler.

    The driver calls `handle` for each input, and `advance` when `next_deadline` is over. Both return the writes
    to the API server and the other actions. The messages to the core are collected, so that many inputs make
    few messages: `flush` returns them.
    """

    def __init__(
        self,
        settings: Settings,
        cache: ClusterCache,
        *,
        suffix: Callable[[], str],
        blocked_reason: Callable[[Pod], str] = _not_blocked,
        build: Mapping[str, str] = MappingProxyType({}),
        namespace: str = "default",
    ) -> None:
        self._kernel = Kernel(
            settings,
            cache,
            _HANDLERS,
            suffix=suffix,
            blocked_reason=blocked_reason,
            build=build,
            namespace=namespace,
        )

    # -- what the driver calls ---------------------------------------------------------------------

    def handle(self, input: Input, now_ns: int) -> list[Action]:
        """Handle one input and return the actions in the order in which they must be carried out."""
        kernel = self._kernel
        kernel.now = max(kernel.now, now_ns)
        if kernel.state not in shim_fsm.ENDED:
            self._take(input)
            if kernel.deferred and kernel.serving:
                self._catch_up()
        return self._actions()

    def advance(self, now_ns: int) -> list[Action]:
        """Fire the timers that are due."""
        kernel = self._kernel
        kernel.now = max(kernel.now, now_ns)
        if kernel.state in shim_fsm.ENDED:
            return []
        for due in kernel.timers.due(kernel.now):
            lifecycle, entity = due.lifecycle, due.entity
            if lifecycle is TASK:
                kernel.fire_task(entity, due.trigger)
            elif lifecycle is APPLICATION:
                if entity.state in application_fsm.HOLDS:
                    look_again(kernel, entity)
                elif entity.state in application_fsm.ASKS_CHOSEN:
                    wait_is_over(kernel, entity)
                else:
                    kernel.fire_application(entity, due.trigger)
                settle(kernel, entity)
            elif lifecycle is PLACEHOLDER:
                gangs.time_is_up(kernel, entity, due.trigger)
            elif lifecycle is NODE:
                kernel.fire_node(entity, due.trigger)
            else:
                kernel.fire_shim(due.trigger, reason=recovery.missing(kernel))
        kernel.try_again()
        gangs.take_turn(kernel)
        return self._actions()

    def next_deadline(self) -> int | None:
        """Return when `advance` has to be called next (ns), or ``None``."""
        kernel = self._kernel
        if kernel.state in shim_fsm.ENDED:
            return None
        due = (
            kernel.timers.next_deadline(),
            *kernel.tries_again[:1],
            gangs.next_turn(kernel),
        )
        return min((each for each in due if each is not None), default=None)

    def describe_next_timer(self) -> str:
        """Return what is due at ``next_deadline``, for reports."""
        timers = self._kernel.timers
        if self.next_deadline() == timers.next_deadline():
            return timers.describe_next()
        if gangs.next_turn(kernel_of := self._kernel) == self.next_deadline():
            return f"of gangs: {len(kernel_of.discards)} placeholders are to be deleted"
        return "that wakes the core for refused pods"

    def flush(self) -> list[Send]:
        """Return the messages to the core since the last call. Call it after each batch of inputs."""
        sends = self._kernel.outbox.flush()
        return [] if self._kernel.state in shim_fsm.SILENT else sends

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._kernel.settings

    @property
    def state(self) -> str:
        """The state of the lifecycle ``SHIM``."""
        return self._kernel.state

    @property
    def serving(self) -> bool:
        """Whether the recovery is over, so that the shim is ready (K16)."""
        return self._kernel.serving

    @property
    def audit(self) -> Audit:
        """The results of the audits."""
        return self._kernel.audit

    def application_ids(self) -> tuple[str, ...]:
        """Return the ids of all applications."""
        return tuple(self._kernel.applications)

    def ask_of(self, uid: str) -> tuple[str, str] | None:
        """Return application and key of the ask that a waiting pod waits for. For a member of a gang that is
        still reserving, that is the ask of a placeholder, preferably of its own group."""
        task = self._kernel.tasks.get(uid)
        if task is None:
            return None
        app = task.app
        if not task.is_placeholder and app.state in application_fsm.ASKS_PLACEHOLDERS:
            asked = [each for each in app.placeholders.values() if each.state in task_fsm.SOUGHT]
            own = (each for each in asked if each.group == task.group)
            task = next(own, asked[0] if asked else task)
        return app.key, task.key

    def unoffered(self, uid: str) -> list[str]:
        """Return the resources that a pod requests and no node offers."""
        task, room = self._kernel.tasks.get(uid), self._kernel.room
        asked = of_pod(task.pod) if task is not None else {}
        return [kind for kind, value in asked.items() if value > 0 and not room.offers(kind)]

    def dump(self) -> dict[str, Any]:
        """Return the state of the shim as JSON objects, without secrets and environment variables (K17)."""
        return dump.of(self._kernel)

    def _actions(self) -> list[Action]:
        kernel = self._kernel
        found, kernel.actions = kernel.actions, []
        return found

    # -- inputs ------------------------------------------------------------------------------------

    def _take(self, input: Input) -> None:
        if self._kernel.serving or not isinstance(input, _WAITS):
            _INPUTS[input.__class__](self._kernel, input)
        elif self._kernel.state in shim_fsm.RECOVERS:
            self._kernel.deferred.append(input)
        elif isinstance(input, Changed):
            _absorb(self._kernel, input)
        else:
            _INPUTS[input.__class__](self._kernel, input)

    def _catch_up(self) -> None:
        """Handle the inputs that have waited for the end of the recovery."""
        kernel = self._kernel
        while kernel.deferred and kernel.serving:
            self._take(kernel.deferred.popleft())


#: inputs that wait while a recovery is under way (K141)
_WAITS: Final = (Changed, BindEnded, CreateEnded, ConfigurationChanged)


def _absorb(kernel: Kernel, changed: Changed) -> None:
    """Update the caches only. The first recovery evaluates them."""
    found = changed.object
    if not isinstance(found, Pod):
        _changed(kernel, changed)
        return
    if changed.change == "DELETED" or found.ended:
        kernel.unsorted.pop(found.metadata.uid, None)
        kernel.cache.remove_pod(found.metadata.uid)
    else:
        kernel.unsorted[found.metadata.uid] = found
        kernel.cache.set_pod(found)


def _changed(kernel: Kernel, changed: Changed) -> None:
    _OBJECTS[changed.object.__class__](kernel, changed.change, changed.object)


def _namespace_changed(kernel: Kernel, change: Change, namespace: Namespace) -> None:
    if change == "DELETED":
        kernel.refusals.pop(f"Namespace {namespace.metadata.name}", None)
        kernel.namespaces.pop(namespace.metadata.name, None)
        kernel.cache.remove_namespace(namespace.metadata.name)
    else:
        refused.report_node_or_namespace(kernel, namespace, "what is too large is ignored")
        old = kernel.namespaces.get(namespace.metadata.name)
        kernel.namespaces[namespace.metadata.name] = namespace
        kernel.cache.set_namespace(namespace)
        if old is not None and old.metadata.labels != namespace.metadata.labels:
            kernel.wake_core()


def _class_changed(kernel: Kernel, change: Change, found: PriorityClass) -> None:
    if change == "DELETED":
        kernel.classes.pop(found.metadata.name, None)
    else:
        kernel.classes[found.metadata.name] = found


_OBJECTS: Final[dict[type, Callable[[Kernel, Change, Any], None]]] = {
    Pod: pod_changed,
    Node: node_changed,
    Namespace: _namespace_changed,
    PriorityClass: _class_changed,
    PodGroup: group_changes.changed,
}


# -- of the process ----------------------------------------------------------------------------


def _synced(kernel: Kernel, input: Synced) -> None:
    kernel.has_synced = True
    kernel.fire_shim(shim_fsm.SYNCED)


def _lease_held(kernel: Kernel, input: LeaseHeld) -> None:
    kernel.fire_shim(shim_fsm.LEAD)


def _lease_lost(kernel: Kernel, input: LeaseLost) -> None:
    kernel.fire_shim(shim_fsm.LOSE, reason=f"the lease is lost: {input.reason}")


def _core_forgot(kernel: Kernel, input: CoreForgot) -> None:
    kernel.fire_shim(shim_fsm.FORGOTTEN)


def _configuration_changed(kernel: Kernel, input: ConfigurationChanged) -> None:
    """Apply all changes of the settings or none (K49)."""
    reading = configuration.change(kernel.settings, input.values)
    errors = (*input.errors, *reading.errors)
    if errors:
        for error in errors:
            _configuration_rejected(kernel, error)
        return
    for warning in reading.warnings:
        kernel.actions.append(LogWarning(warning))
    if reading.settings is None or reading.settings == kernel.settings:
        return
    kernel.settings = kernel.outbox.settings = reading.settings
    if kernel.state not in shim_fsm.SILENT:
        kernel.outbox.request(messages.update_configuration(kernel.settings))
    kernel.rejected_applications.clear()
    group_changes.read_again(kernel)
    send_changes(kernel)
    for app in list(kernel.applications.values()):
        if app.state in application_fsm.HOLDS:
            look_again(kernel, app)


def _configuration_rejected(kernel: Kernel, reason: str) -> None:
    kernel.actions.append(
        Record(
            "ConfigMap",
            kernel.namespace,
            configuration.CONFIGS_NAME,
            "",
            "Warning",
            "ConfigurationRejected",
            "Configuration",
            reason,
        )
    )


# -- of the core -------------------------------------------------------------------------------


def _core_answered(kernel: Kernel, input: CoreAnswered) -> None:
    message = input.message
    if isinstance(message, AllocationResponse):
        core_messages.allocations_answered(kernel, message, input.refusals)
    elif isinstance(message, ApplicationResponse):
        core_messages.applications_answered(kernel, message)
    elif isinstance(message, NodeResponse):
        nodes_answered(kernel, message)
    elif isinstance(message, UpdateContainerSchedulingStateRequest):
        core_messages.scheduling_state_updated(kernel, message)
        return
    elif isinstance(message, Sequence):
        core_messages.events_sent(kernel, message)
        return
    registered = isinstance(message, RegisterResourceManagerResponse)
    if registered == (kernel.state in shim_fsm.REGISTERS) and kernel.state in shim_fsm.RECOVERS:
        recovery.advance(kernel)


def _core_refused(kernel: Kernel, input: CoreRefused) -> None:
    if input.request == "RegisterResourceManagerRequest":
        kernel.actions.append(Stop(1, f"the core refuses the registration: {input.reason}"))
    elif input.request == "UpdateConfigurationRequest":
        key = f"{kernel.settings.policy_group}.yaml"
        reason = input.reason.replace("UpdateConfigurationRequest.config", key, 1)
        _configuration_rejected(kernel, reason)
    else:
        kernel.actions.append(LogWarning(f"the core refused an {input.request}: {input.reason}"))


# -- of writes ---------------------------------------------------------------------------------


def _bind_ended(kernel: Kernel, ended: BindEnded) -> None:
    task = kernel.tasks.get(ended.uid)
    if task is None:
        return
    if ended.outcome == "bound":
        kernel.fire_task(task, task_fsm.BOUND_)
    elif ended.outcome == "elsewhere":
        kernel.place_task(task, task_fsm.ELSEWHERE, ended.node, "")
    elif ended.outcome == "gone":
        kernel.cache.remove_pod(task.key)
        end_task(kernel, task)
    else:
        kernel.place_task(task, task_fsm.BIND_FAILED, "", "", reason=ended.reason, step=ended.step)


_INPUTS: Final[dict[type, Callable[[Kernel, Any], None]]] = {
    Changed: _changed,
    VolumesChanged: lambda kernel, input: kernel.wake_core(),
    PodGroupsServed: group_changes.served,
    Synced: _synced,
    ConfigurationChanged: _configuration_changed,
    LeaseHeld: _lease_held,
    LeaseLost: _lease_lost,
    CoreAnswered: _core_answered,
    CoreRefused: _core_refused,
    CoreForgot: _core_forgot,
    BindEnded: _bind_ended,
    CreateEnded: gangs.create_ended,
    AuditBegins: audit.begin,
    WatchShows: audit.watch_shows,
    CoreShows: audit.core_shows,
    AuditEnds: audit.end,
}
