"""The state of the shim, and how it changes: fire a trigger, then execute its effects.

Every change of a state goes through ``fire_task``, ``fire_application``, ``fire_node``, ``fire_placeholder`` or
``fire_shim``. Each effect is executed at once by the function that has its type in one of
the tables ``EFFECTS``. The kernel has no
clock: ``now`` is the time that the caller gave.

``RejectedApplications`` remembers for how long an application that the core rejected is not submitted again
(K60): its pods fail, and a ReplicaSet recreates them at once, many times a second without a pause.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import Any, Final

from quadriga.base.pacing import backoff
from quadriga.base.times import SECOND
from quadriga.fsm import Effect, Lifecycle, Timers
from quadriga.k8s.cluster.cache import ClusterCache
from quadriga.k8s.conversion.applications import ApplicationMetadata
from quadriga.k8s.conversion.settings import Settings
from quadriga.k8s.lifecycles import APPLICATION, NODE, PLACEHOLDER, SHIM, TASK
from quadriga.k8s.lifecycles import application as application_fsm
from quadriga.k8s.lifecycles import placeholder as placeholder_fsm
from quadriga.k8s.lifecycles import shim as shim_fsm
from quadriga.k8s.lifecycles import task as task_fsm
from quadriga.k8s.objects import Namespace, Pod, PriorityClass
from quadriga.k8s.shim.actions import Action, DropCondition, Outbox
from quadriga.k8s.shim.differences import Audit
from quadriga.k8s.shim.inputs import Input
from quadriga.k8s.shim.model import (
    Application,
    Foreign,
    GroupEntry,
    NodeEntry,
    PendingPlaceholder,
    Task,
)
from quadriga.k8s.shim.room import Room
from quadriga.k8s.tuning import TUNING
from quadriga.si.constants import TAG_CREATION_TIME


@dataclass(slots=True)
class _Entry:
    metadata: ApplicationMetadata
    times: int
    at: int
    reason: str


class RejectedApplications:
    """The last rejection of each application id."""

    def __init__(self) -> None:
        #: in the order of their times
        self._entries: dict[str, _Entry] = {}

    def note(self, metadata: ApplicationMetadata, reason: str, now: int) -> None:
        """Note that the core has rejected the application."""
        for id, entry in list(self._entries.items()):
            if now - entry.at < TUNING.rejection_forgotten_ns:
                break
            del self._entries[id]
        before = self._entries.pop(metadata.id, None)
        metadata = _lasting(metadata)
        times = before.times + 1 if before is not None and before.metadata == metadata else 1
        self._entries[metadata.id] = _Entry(metadata, times, now, reason)

    def delay(self, metadata: ApplicationMetadata, now: int) -> int:
        """Return the ns until an application with this metadata may be submitted; 0 for now.

        An application that differs from the rejected one, for example in its queue, need not wait.
        """
        entry = self._entries.get(metadata.id)
        if entry is None or entry.metadata != _lasting(metadata):
            return 0
        pause = backoff(*TUNING.rejection_pauses_ns, entry.times)
        return max(0, entry.at + pause - now)

    def reason(self, id: str) -> str:
        """Return why the application was rejected last."""
        entry = self._entries.get(id)
        return "" if entry is None else entry.reason

    def forget(self, id: str) -> None:
        """Forget the rejections of an application that the core has accepted."""
        self._entries.pop(id, None)

    def clear(self) -> None:
        """Forget all rejections: the queues have changed, so every application may be tried at once."""
        self._entries.clear()


def _lasting(metadata: ApplicationMetadata) -> ApplicationMetadata:
    """Return the metadata without what differs between two pods of one template."""
    tags = {key: text for key, text in metadata.tags.items() if key != TAG_CREATION_TIME}
    return replace(metadata, tags=tags, created=None, problems=(), namespace_problems=())


#: for each type of effect, the function that executes it; called with the kernel, the entity and the effect
Handlers = Mapping[type[Effect], Callable[["Kernel", Any, Any], None]]

_DEFAULT_GRACE_S: Final = 30


class Kernel:
    """All state of the shim. The shim itself is an entity too: ``state`` is that of the lifecycle ``SHIM``."""

    key: Final = "shim"

    def __init__(
        self,
        settings: Settings,
        cache: ClusterCache,
        handlers: Handlers,
        *,
        suffix: Callable[[], str],
        blocked_reason: Callable[[Pod], str],
        build: Mapping[str, str],
        namespace: str,
    ) -> None:
        self.settings = settings
        self.cache = cache
        self._handlers = handlers
        #: makes the random end of a placeholder's name (K69)
        self.suffix = suffix
        #: returns why a pod must not be asked for yet, or "" (K88)
        self.blocked_reason = blocked_reason
        self.build = build
        #: namespace of the scheduler and its ConfigMaps
        self.namespace = namespace
        self.now = 0

        self.state: shim_fsm.State = SHIM.initial
        self.has_synced = False
        #: changes of objects are handled as they come (K141)
        self.serving = False
        #: until the recovery is over, events about existing objects may have been written before the start
        self.starting = True

        self.tasks: dict[str, Task] = {}
        self.applications: dict[str, Application] = {}
        self.nodes: dict[str, NodeEntry] = {}
        self.foreign: dict[str, Foreign] = {}
        #: reported reasons for objects that exceed the bounds: by UID of a pod, or by kind and name
        self.refusals: dict[str, str] = {}
        #: pods by node: those that the API server has there, and those that are being bound to it
        self.on_node: dict[str, dict[str, None]] = {}
        self.namespaces: dict[str, Namespace] = {}
        self.classes: dict[str, PriorityClass] = {}
        #: PodGroups, and those that pods name, by namespace and name; and the version of their API that the
        #: server has, "" if it has none (K204)
        self.pod_groups: dict[tuple[str, str], GroupEntry] = {}
        self.pod_group_version = ""
        #: pods that wait for their PodGroup, with the reported reason
        self.left_out: dict[str, str] = {}
        #: placeholders that are being created, by the name of their pod
        self.pending_placeholders: dict[str, PendingPlaceholder] = {}
        #: gangs that lack placeholders and may create more of them, in turn
        self.gathering: dict[Application, None] = {}
        #: placeholders to be deleted, and whether only if they have no node
        self.discards: deque[tuple[Task, bool]] = deque()
        #: what the nodes offer, and the gangs that they cannot hold
        self.room = Room()
        self.too_large: dict[Application, None] = {}
        #: gangs that are checked again in this turn, when the next check is due (ns), and when the last one was
        self.looked_at: dict[Application, None] = {}
        self.look_due: int | None = None
        self.look_after = 0
        #: applications that the core has not answered for, by id, in the order of the requests
        self.unanswered: dict[str, deque[Application]] = {}
        self.created_applications = 0
        self.rejected_applications = RejectedApplications()
        #: nodes that the core has not answered for
        self.unanswered_nodes: set[str] = set()

        #: live pods that the first recovery has not classified yet
        self.unsorted: dict[str, Pod] = {}
        #: inputs that wait for the end of a recovery
        self.deferred: deque[Input] = deque()
        #: pods whose report the core has not answered, during a recovery
        self.unreported: set[str] = set()

        self.audit = Audit()
        self.outbox = Outbox(settings)
        self.actions: list[Action] = []
        #: times (whole seconds, soonest first) at which the core retries what predicates have refused (K110)
        self.tries_again: list[int] = []
        self.timers = Timers(_own_limit)

    # -- firing ------------------------------------------------------------------------------------

    def fire_task(self, task: Task, trigger: task_fsm.Trigger, **info: Any) -> None:
        """Fire a trigger at a task."""
        step = TASK.take(task, trigger, info)
        if step.entered:
            self._task_entered(task, step.edge.source, step.target)
        if step.effects:
            self.execute(task, step.effects)

    def place_task(
        self, task: Task, trigger: task_fsm.Trigger, node: str, uuid: str, **info: Any
    ) -> None:
        """Fire a trigger that gives the task a node and an allocation. Set both only if the trigger changes the
        state."""
        step = TASK.take(task, trigger, {"node": node, "uuid": uuid, **info})
        left, given_up = task.node, task.uuid
        effects = step.effects
        if step.entered:
            task.node, task.uuid = node, uuid
            self._task_entered(task, step.edge.source, step.target)
            if left != node:
                self.leave_node(task.key, left)
                self.enter_node(task.key, node)
        elif not given_up and step.row is not None and not effects and left == node:
            task.uuid = uuid  # the core confirms the allocation that it received
        if effects:
            self.execute(task, effects)

    def _task_entered(self, task: Task, source: str, target: str) -> None:
        timed = TASK.timed
        if target in timed or source in timed:
            self.timers.entered(TASK, task, self.now)
        self.look_at(task.app, task)
        if task.is_placeholder:
            task.app.count_live(task.group, (target in task_fsm.LOSES) - (source in task_fsm.LOSES))
            by = (target in task_fsm.ON_NODE) - (source in task_fsm.ON_NODE)
            if by:
                task.app.count_bound(task.group, by)
        # a pod that is asked for only now still waits
        if task.condition is not None and (
            source in task_fsm.SOUGHT or target not in task_fsm.SOUGHT
        ):
            task.condition = None
            self.actions.append(DropCondition(task.key))

    def fire_application(
        self, app: Application, trigger: application_fsm.Trigger, **info: Any
    ) -> None:
        """Fire a trigger at an application."""
        self._fire(APPLICATION, app, trigger, info)

    def fire_node(self, entry: NodeEntry, trigger: str, **info: Any) -> None:
        """Fire a trigger at a node."""
        info["serving"] = self.serving
        self._fire(NODE, entry, trigger, info)

    def fire_placeholder(
        self, pending: PendingPlaceholder, trigger: placeholder_fsm.Trigger, **info: Any
    ) -> None:
        """Fire a trigger at a pending placeholder."""
        self._fire(PLACEHOLDER, pending, trigger, info)

    def fire_shim(self, trigger: shim_fsm.Trigger, **info: Any) -> None:
        """Fire a trigger at the shim itself."""
        self._fire(SHIM, self, trigger, info)

    def _fire(self, lifecycle: Lifecycle, entity: Any, trigger: Any, info: dict[str, Any]) -> None:
        effects = self.timers.fire(lifecycle, entity, trigger, self.now, **info)
        if effects:
            self.execute(entity, effects)

    def execute(self, entity: Any, effects: tuple[Effect, ...]) -> None:
        """Execute the effects of a transition."""
        for effect in effects:
            self._handlers[effect.__class__](self, entity, effect)

    # -- what predicates refuse --------------------------------------------------------------------

    def try_again_in(self, ns: int) -> None:
        """Wake the core when a refusal ends after ``ns`` and no earlier answer is valid any more."""
        if ns:
            self._wake_at(self.now + ns + TUNING.answer_valid_ns)

    def try_again(self) -> None:
        """Wake the core if it is time."""
        while self.tries_again and self.tries_again[0] <= self.now:
            heappop(self.tries_again)
            if self.serving:
                self.outbox.wake()

    def wake_core(self) -> None:
        """Make the core retry what predicates have refused. No other message informs it that the cluster has
        changed."""
        if self.serving:
            self.outbox.wake()
            # A core over gRPC may still use an earlier answer.
            self._wake_at(self.now + TUNING.answer_valid_ns)

    def _wake_at(self, when: int) -> None:
        when += -when % SECOND
        if when not in self.tries_again:
            heappush(self.tries_again, when)

    # -- gangs that the nodes cannot hold --------------------------------------------------------------

    def room_changed(self) -> None:
        """Check the gangs that wait for nodes again, at most once a second."""
        if self.too_large and self.look_due is None:
            self.look_due = max(self.now, self.look_after)

    def look_at(self, app: Application, task: Task | None = None) -> None:
        """Check in this turn a gang that is placed whole, because it or this member may have changed (K204)."""
        if not app.gathers_members or app.state not in application_fsm.LOOKED_AT:
            app.changed = None
            return
        self.looked_at[app] = None
        if task is not None and app.changed is not None:
            app.changed[task.key] = task

    # -- which pods are on which node --------------------------------------------------------------

    def enter_node(self, uid: str, node: str) -> None:
        """Note that a pod is on a node, or is being bound to it."""
        if node:
            found = self.on_node.get(node)
            if found is None:
                found = self.on_node[node] = {}
            found[uid] = None

    def leave_node(self, uid: str, node: str) -> None:
        """Note that a pod is no longer on a node."""
        found = self.on_node.get(node)
        if found is not None:
            found.pop(uid, None)
            if not found:
                del self.on_node[node]


def _own_limit(lifecycle: Lifecycle, entity: Any, state: Any) -> int | None:
    """Return the time limit of a state if it depends on the pod or application (K32, K37)."""
    if lifecycle is TASK:
        if state in task_fsm.LEAVING:
            grace = entity.pod.spec.termination_grace_period_seconds
            return (
                min(_DEFAULT_GRACE_S if grace is None else grace, TUNING.longest_grace_s) * SECOND
                + TUNING.grace_ns
            )
        if state in task_fsm.TRIES_AGAIN:
            return backoff(*TUNING.recheck_pauses_ns, int(entity.failures))
        return None
    if lifecycle is APPLICATION:
        if state in application_fsm.HOLDS:
            return int(entity.delay)
        if state in application_fsm.ASKS_CHOSEN:
            return int(entity.patience) or None
        if state in application_fsm.WAITS_FOR_PLACEHOLDERS and entity.timeout_s > 0:
            return int(entity.timeout_s * SECOND + TUNING.grace_ns)
        return None
    if lifecycle is PLACEHOLDER and state in placeholder_fsm.WAITS:
        return int(entity.delay)
    return None
