"""The data of the shim: applications, tasks, nodes and foreign pods, with the facts that guards read.

Nothing here decides anything. The state of each entity changes only through its lifecycle (``kernel``).
"""

from __future__ import annotations

from collections.abc import Mapping

from quadriga.base.times import SECOND
from quadriga.k8s.conversion import identity
from quadriga.k8s.conversion.applications import ApplicationMetadata
from quadriga.k8s.conversion.keys import DEVICES
from quadriga.k8s.conversion.resources import Amounts
from quadriga.k8s.conversion.task_groups import TaskGroup
from quadriga.k8s.lifecycles import APPLICATION, NODE, PLACEHOLDER, TASK
from quadriga.k8s.lifecycles import application as application_fsm
from quadriga.k8s.lifecycles import node as node_fsm
from quadriga.k8s.lifecycles import placeholder as placeholder_fsm
from quadriga.k8s.lifecycles import task as task_fsm
from quadriga.k8s.objects import Node, Pod, PodGroup
from quadriga.k8s.shim.actions import PodRef
from quadriga.si import Allocation

#: the timeout (s) that the core applies for a placeholder timeout of 0 seconds
DEFAULT_PLACEHOLDER_TIMEOUT_S = 900


def order_of(pod: Pod) -> tuple[str, str, str, str]:
    """Return the key of the total order of pods: by creation, then by name (K59, K141)."""
    meta = pod.metadata
    return meta.creation_timestamp, meta.namespace, meta.name, meta.uid


def ref_of(pod: Pod | PodGroup) -> PodRef:
    """Return a reference to the pod or PodGroup."""
    meta = pod.metadata
    return PodRef(meta.namespace, meta.name, meta.uid)


class Task:
    """A pod with our scheduler name: one ask or one allocation of the core (K6)."""

    __slots__ = (
        "amounts",
        "app",
        "blocked_reason",
        "condition",
        "devices",
        "failures",
        "group",
        "in_core",
        "is_foreign",
        "is_placeholder",
        "key",
        "node",
        "pod",
        "release_type",
        "resized",
        "state",
        "uuid",
    )

    def __init__(self, pod: Pod, app: Application, is_placeholder: bool, group: str) -> None:
        self.key = pod.metadata.uid
        self.state: task_fsm.State = TASK.initial
        self.pod = pod
        self.app = app
        self.is_placeholder = is_placeholder
        #: task group named by the pod; "" for none
        self.group = group
        #: node chosen by the core, or of the pod
        self.node = pod.spec.node_name
        #: the units of shared devices that the core chose with it (Q14)
        self.devices = pod.metadata.annotations.get(DEVICES, "") if self.node else ""
        #: UUID of the core's allocation
        self.uuid = ""
        #: type of the release that the core requested; 0 for none
        self.release_type = 0
        #: since its application was added, the core has had, or was sent, an ask or allocation of the pod
        self.in_core = False
        #: the core rejected the running pod and counts it as foreign (K143)
        self.is_foreign = False
        #: how often the core has rejected it
        self.failures = 0
        #: reason and message of the condition that was written last while it waited (K155)
        self.condition: tuple[str, str] | None = None
        #: the failed check that was reported last (K88)
        self.blocked_reason = ""
        #: the amounts that the core has received; ``None`` before that
        self.amounts: Amounts | None = None
        #: the core was asked again with other amounts, and has not answered since (K85)
        self.resized = False

    @property
    def app_has_ended(self) -> bool:
        """Whether its application no longer exists in the core."""
        return self.app.state in application_fsm.ENDED

    @property
    def may_try_again(self) -> bool:
        """Whether it has no node and its application asks for such pods."""
        return not self.node and self.app.state in application_fsm.JOINABLE

    def __repr__(self) -> str:
        return f"<task {self.pod.metadata.name} {self.state}>"


class Group:
    """A task group of a gang and its fill level (K74)."""

    __slots__ = ("bound", "coming", "created", "early", "live", "lost", "owed", "sample", "spec")

    def __init__(self, spec: TaskGroup) -> None:
        self.spec = spec
        #: number of bound placeholders
        self.bound = 0
        #: numbers of placeholders that count, and of those being created
        self.live = self.coming = 0
        #: how many of the first placeholders are still to be created, slice by slice
        self.owed = 0
        #: how many placeholders were requested in total; makes the keys of their lifecycles
        self.created = 0
        #: a placeholder as the API server stored it, and the real pods that came before it (K203)
        self.sample: Pod | None = None
        self.early: list[Task] = []
        #: times (ns) of the last minute at which placeholders were recreated (K80)
        self.lost: list[int] = []


class PendingPlaceholder:
    """A placeholder from the decision to create it until its pod is seen."""

    __slots__ = ("app", "delay", "group", "key", "name", "state")

    def __init__(self, key: str, app: Application, group: str, delay: int) -> None:
        self.key = key
        self.state: placeholder_fsm.State = PLACEHOLDER.initial
        self.app = app
        self.group = group
        #: ns before it is created
        self.delay = delay
        #: name of the pod, set by the first create
        self.name = ""


class GroupEntry:
    """A PodGroup and the pods that name it. Either may exist first."""

    __slots__ = ("app", "group", "key", "placed", "pods", "refusal", "reported", "scheduled")

    def __init__(self, key: tuple[str, str]) -> None:
        #: namespace and name
        self.key = key
        self.group: PodGroup | None = None
        #: why its pods are not scheduled at all; "" if they may be
        self.refusal = ""
        #: live pods that name it, of any scheduler, by UID
        self.pods: dict[str, Pod] = {}
        #: how many pods with our scheduler name ever had a node
        self.placed = 0
        #: its gang, if it has one
        self.app: Application | None = None
        #: whether the condition says Scheduled, and the message of the condition that says it is not
        self.scheduled = False
        self.reported = ""

    @property
    def named(self) -> str:
        """The group as messages name it."""
        return f"PodGroup {'/'.join(self.key)}"


class Application:
    """The pods of one application id."""

    __slots__ = (
        "allocations",
        "changed",
        "chosen",
        "core_pods",
        "core_waits",
        "delay",
        "groups",
        "held_because",
        "is_too_large",
        "key",
        "later",
        "leaving",
        "members_until",
        "metadata",
        "nodes",
        "number",
        "originator",
        "patience",
        "pending_placeholders",
        "placeholders",
        "pod_group",
        "probe",
        "put_off",
        "ready",
        "real",
        "refused",
        "resumed",
        "state",
        "tasks",
        "timeout_over",
        "unfilled",
        "waits_until",
        "whole",
        "with_node",
    )

    def __init__(
        self,
        metadata: ApplicationMetadata,
        originator: Pod,
        number: int,
        nodes: Mapping[str, NodeEntry],
    ) -> None:
        self.key = metadata.id
        self.state: application_fsm.State = APPLICATION.initial
        self.metadata = metadata
        #: number of earlier applications: distinguishes two with the same id
        self.number = number
        #: those of the cluster, by name
        self.nodes = nodes
        #: its live pods by UID, in the order of their arrival
        self.tasks: dict[str, Task] = {}
        #: those tasks that are placeholders
        self.placeholders: dict[str, Task] = {}
        #: number of tasks that are not placeholders
        self.real = 0
        #: number of real pods with a node in the cluster (K45)
        self.with_node = 0
        #: number of real pods that are terminating
        self.leaving = 0
        #: pods that came after its end or after its last members: they form a new application when it is gone
        #: (K60, K200)
        self.later: dict[str, Task] = {}
        self.groups = {each.name: Group(each) for each in metadata.groups}
        #: number of groups that lack bound placeholders
        self.unfilled = sum(1 for each in metadata.groups if each.min_member > 0)
        #: placeholders that are being created, by key
        self.pending_placeholders: dict[str, PendingPlaceholder] = {}
        #: how often in a row a placeholder was refused, and the key of the pending placeholder that probes
        #: again (K202)
        self.refused, self.probe = 0, ""
        #: the pod that created the application (K71)
        self.originator: Pod | None = originator
        #: the gang has ended, and the application continues without it (K77)
        self.resumed = False
        self.timeout_over = False
        #: number of pods that the core has had asks or allocations of since it was added, without rejected ones
        self.core_pods = 0
        #: ns for which it is not submitted: its id was rejected recently (K60), it exceeds a bound, or the
        #: nodes cannot hold it (Q16)
        self.delay = 0
        #: it was reported that the nodes cannot hold the gang
        self.is_too_large = False
        #: when (ns) a gang that the nodes cannot hold gives up; 0 for never
        self.waits_until = 0
        #: reported reason why its pods are not asked for yet; "" for none
        self.held_because = ""
        #: its task groups need no placeholders if all their members exist; until when (ns) it waits for these, and
        #: how long (ns) they may wait for nodes, 0 for ever (D356)
        self.whole, self.members_until, self.patience = False, 0, 0
        #: the core knows of the gang and has not given it up
        self.core_waits = False
        #: the PodGroup whose gang this is (K204)
        self.pod_group: GroupEntry | None = None
        #: the members that are placed together, and the core's allocations for them by UID, with the cluster's
        #: refusal of each
        self.chosen: dict[str, Task] = {}
        self.allocations: dict[str, tuple[Allocation, str]] = {}
        #: members that have changed since the last look at the gang, ``None`` for all
        self.changed: dict[str, Task] | None = None
        #: the members that could be placed then, by part of the gang, and whether a look was put off since
        self.ready: dict[str, set[str]] = {}
        self.put_off = False

    @property
    def is_gang(self) -> bool:
        """Whether it has task groups that still count."""
        return bool(self.groups) and not self.resumed

    @property
    def hard(self) -> bool:
        """Whether the style of its gang is Hard."""
        return self.metadata.policy.style == "Hard"

    @property
    def timeout_s(self) -> int:
        """The placeholder timeout in seconds; below 0 for none."""
        return self.metadata.policy.timeout_seconds or DEFAULT_PLACEHOLDER_TIMEOUT_S

    def is_overdue(self, now: int) -> bool:
        """Return whether the gang is older than its placeholder timeout (K77, K202)."""
        created, limit = self.metadata.created, self.timeout_s
        return created is not None and limit > 0 and now >= (created + limit) * SECOND

    @property
    def has_started(self) -> bool:
        """Whether a real pod has a node or was asked for. One whose node went before the core knew it does not count:
        it will be deleted, and the core never hears of it."""
        return any(
            task.state in task_fsm.STARTED or task.node in self.nodes
            for task in self.tasks.values()
            if not task.is_placeholder
        )

    @property
    def gathers_members(self) -> bool:
        """Whether its members are looked for, to be placed together (K204, D356)."""
        if self.pod_group is not None:
            return True
        return self.whole and self.is_gang and not (self.timeout_over or self.placeholders)

    @property
    def places_whole(self) -> bool:
        """Whether its members are placed together, and none has a node or ask (K204, D356)."""
        return (self.pod_group is not None or bool(self.chosen)) and not self.has_started

    @property
    def groups_full(self) -> bool:
        """Whether each group has minMember bound placeholders (K74)."""
        return not self.unfilled

    @property
    def would_come_again(self) -> bool:
        """Whether the pods that wait would be recreated. A running pod needs the answer that the application
        does not exist (K143)."""
        real = (task.pod for task in self.tasks.values() if not task.is_placeholder)
        return not self.with_node and any(map(identity.is_replaced, real))

    @property
    def core_has_pods(self) -> bool:
        """Whether the core has had asks or allocations of it, and completes it."""
        return self.core_pods > 0

    @property
    def has_followers(self) -> bool:
        """Whether pods wait for its end (K60, K200)."""
        return bool(self.later)

    @property
    def is_over(self) -> bool:
        """Whether all its members are gone or terminating, so that a new pod belongs to another run (K200)."""
        return self.leaving == self.real and (
            self.real > 0 or self.state not in application_fsm.UNSUBMITTED
        )

    @property
    def has_placeholders(self) -> bool:
        """Whether it has placeholders."""
        return bool(self.placeholders)

    @property
    def has_pods(self) -> bool:
        """Whether it has pods other than those that wait for its end (K60)."""
        return bool(self.tasks)

    def asks_for(self, task: Task) -> bool:
        """Return whether the core may be asked for this real pod now."""
        if self.state in application_fsm.ASKS_CHOSEN:
            return task.key in self.chosen
        return self.state in application_fsm.ASKS_REAL

    def count_bound(self, group: str, by: int) -> None:
        """Count ``by`` more bound placeholders of the group."""
        found = self.groups.get(group)
        if found is None:
            return
        needed = found.spec.min_member
        before = found.bound >= needed
        found.bound += by
        after = found.bound >= needed
        self.unfilled += before - after

    def count_live(self, group: str, by: int) -> None:
        """Count ``by`` more existing placeholders of the group."""
        found = self.groups.get(group)
        if found is not None:
            found.live += by

    def missing(self, group: Group) -> int:
        """Return how many placeholders the group lacks, not counting those being created (K72)."""
        return group.spec.min_member - group.live - group.coming

    def __repr__(self) -> str:
        return f"<application {self.key} {self.state}>"


class NodeEntry:
    """A node as it was last seen."""

    __slots__ = ("key", "node", "sent", "state")

    def __init__(self, node: Node) -> None:
        self.key = node.metadata.name
        self.state: node_fsm.State = NODE.initial
        self.node = node
        #: what the core has received of it: allocatable resources and attributes
        self.sent: object = None

    @property
    def is_cordoned(self) -> bool:
        """Whether new pods are not to be placed on the node."""
        return self.node.spec.unschedulable

    def __repr__(self) -> str:
        return f"<node {self.key} {self.state}>"


class Foreign:
    """A pod whose resources count but which this scheduler does not schedule (K96)."""

    __slots__ = ("amounts", "pod", "reported")

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        self.amounts: Amounts = {}
        #: whether the core knows it
        self.reported = False
