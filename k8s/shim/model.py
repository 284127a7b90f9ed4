"""What the shim keeps: applications, tasks, nodes and foreign pods, with the facts that guards read.

Nothing here decides anything. The state of each changes through its lifecycle only (``kernel``).
"""

from __future__ import annotations

from quadriga.fsm.table import SECOND
from quadriga.k8s.conversion import identity
from quadriga.k8s.conversion.applications import ApplicationMetadata
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

__all__ = [
    "Application",
    "PendingPlaceholder",
    "Foreign",
    "Group",
    "GroupEntry",
    "NodeEntry",
    "Task",
    "order_of",
    "ref_of",
]

#: what the core counts, in ns: a placeholder timeout of 0 seconds means this one
DEFAULT_PLACEHOLDER_TIMEOUT_S = 900


def order_of(pod: Pod) -> tuple[str, str, str, str]:
    """The total order of pods: by creation, then by name (K59, K141)."""
    meta = pod.metadata
    return meta.creation_timestamp, meta.namespace, meta.name, meta.uid


def ref_of(pod: Pod | PodGroup) -> PodRef:
    meta = pod.metadata
    return PodRef(meta.namespace, meta.name, meta.uid)


class Task:
    """A pod of ours: one ask or one allocation of the core (K6)."""

    __slots__ = (
        "amounts",
        "app",
        "blocked_reason",
        "condition",
        "failures",
        "group",
        "in_core",
        "is_foreign",
        "is_placeholder",
        "key",
        "node",
        "pod",
        "release_type",
        "state",
        "uuid",
    )

    def __init__(self, pod: Pod, app: Application, is_placeholder: bool, group: str) -> None:
        self.key = pod.metadata.uid
        self.state: task_fsm.State = TASK.initial
        self.pod = pod
        self.app = app
        self.is_placeholder = is_placeholder
        #: task group, as the pod names it; "": none
        self.group = group
        #: chosen by the core, or of the pod
        self.node = pod.spec.node_name
        #: of the allocation of the core
        self.uuid = ""
        #: of the release that the core asked for; 0: none
        self.release_type = 0
        #: the core has an ask or an allocation of it, or was sent one, since its application was added
        self.in_core = False
        #: the core would not have the running pod, and counts it as foreign (K143)
        self.is_foreign = False
        #: how often the core has rejected it
        self.failures = 0
        #: what was said of the waiting pod last: reason and message (K155)
        self.condition: tuple[str, str] | None = None
        #: the failed check that was told last (K88)
        self.blocked_reason = ""
        #: what the core was told that it needs; None: nothing yet
        self.amounts: Amounts | None = None

    @property
    def app_has_ended(self) -> bool:
        return self.app.state in application_fsm.ENDED

    @property
    def may_try_again(self) -> bool:
        return not self.node and self.app.state in application_fsm.JOINABLE

    def __repr__(self) -> str:
        return f"<task {self.pod.metadata.name} {self.state}>"


class Group:
    """A task group of a gang, and how full it is (K74)."""

    __slots__ = ("bound", "coming", "created", "early", "live", "lost", "owed", "sample", "spec")

    def __init__(self, spec: TaskGroup) -> None:
        self.spec = spec
        #: placeholders that are bound
        self.bound = 0
        #: placeholders that count, and those that are being created
        self.live = self.coming = 0
        #: how many of the first ones are still to be created, slice by slice
        self.owed = 0
        #: how many were ever to be created, for the keys of their lifecycles
        self.created = 0
        #: a placeholder as the server made it, and the real pods that came before it (K203)
        self.sample: Pod | None = None
        self.early: list[Task] = []
        #: when placeholders were created again, in ns: those of the last minute (K80)
        self.lost: list[int] = []


class PendingPlaceholder:
    """A placeholder from the decision to create it until its pod is seen."""

    __slots__ = ("app", "delay", "group", "key", "name", "state")

    def __init__(self, key: str, app: Application, group: str, delay: int) -> None:
        self.key = key
        self.state: placeholder_fsm.State = PLACEHOLDER.initial
        self.app = app
        self.group = group
        #: how long it waits for its turn, in ns
        self.delay = delay
        #: of the pod, from the first create on
        self.name = ""


class GroupEntry:
    """A PodGroup and the pods that name it. Either may come first."""

    __slots__ = ("app", "group", "key", "placed", "pods", "refusal", "scheduled", "told")

    def __init__(self, key: tuple[str, str]) -> None:
        #: namespace and name
        self.key = key
        self.group: PodGroup | None = None
        #: why its pods are not scheduled at all; "": they may be
        self.refusal = ""
        #: the live pods that name it, of any scheduler, by UID
        self.pods: dict[str, Pod] = {}
        #: how many of ours ever had a node
        self.placed = 0
        #: its gang, if it has one
        self.app: Application | None = None
        #: the condition says that it is scheduled, and the message of the one that says that it is not
        self.scheduled = False
        self.told = ""

    @property
    def named(self) -> str:
        return f"PodGroup {'/'.join(self.key)}"


class Application:
    """The pods of one application id."""

    __slots__ = (
        "allocations",
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
        "metadata",
        "number",
        "originator",
        "pending_placeholders",
        "placeholders",
        "pod_group",
        "probe",
        "real",
        "refused",
        "resumed",
        "state",
        "tasks",
        "timeout_over",
        "unfilled",
        "waits_until",
        "with_node",
    )

    def __init__(self, metadata: ApplicationMetadata, originator: Pod, number: int) -> None:
        self.key = metadata.id
        self.state: application_fsm.State = APPLICATION.initial
        self.metadata = metadata
        #: how many applications there were before: two of one id are different
        self.number = number
        #: its live pods by UID, in the order in which they came
        self.tasks: dict[str, Task] = {}
        #: those of them that are placeholders
        self.placeholders: dict[str, Task] = {}
        #: how many of them are not
        self.real = 0
        #: how many real ones have a node in the cluster (K45)
        self.with_node = 0
        #: how many real ones are being deleted
        self.leaving = 0
        #: pods that came after its end, or after its last members: they make a new application when it is
        #: gone (K60, K200)
        self.later: dict[str, Task] = {}
        self.groups = {each.name: Group(each) for each in metadata.groups}
        #: groups that lack bound placeholders
        self.unfilled = sum(1 for each in metadata.groups if each.min_member > 0)
        #: placeholders that are being created, by their keys
        self.pending_placeholders: dict[str, PendingPlaceholder] = {}
        #: how often in a row a placeholder was refused, and the creation that tries again (K202)
        self.refused, self.probe = 0, ""
        #: the pod that created the application (K71)
        self.originator: Pod | None = originator
        #: the gang is over, and the application goes on without it (K77)
        self.resumed = False
        self.timeout_over = False
        #: how many pods the core has had asks or allocations of since it was added; rejected ones do not count
        self.core_pods = 0
        #: how long it is not submitted, in ns: its id was turned down shortly before (K60), it is beyond a
        #: bound, or the nodes cannot hold it (Q16)
        self.delay = 0
        #: it was said that the nodes cannot hold the gang
        self.is_too_large = False
        #: when a gang that the nodes cannot hold gives up, in ns; 0: never
        self.waits_until = 0
        #: why its pods are not asked for yet, as far as that is to be told; "": nothing
        self.held_because = ""
        #: the core was told of a gang and has not given it up
        self.core_waits = False
        #: the PodGroup that it is the gang of (K204)
        self.pod_group: GroupEntry | None = None
        #: the members that are placed together, and what the core has allocated for them: by UID, with what the
        #: cluster says against it
        self.chosen: dict[str, Task] = {}
        self.allocations: dict[str, tuple[Allocation, str]] = {}

    @property
    def is_gang(self) -> bool:
        return bool(self.groups) and not self.resumed

    @property
    def hard(self) -> bool:
        return self.metadata.policy.style == "Hard"

    @property
    def timeout_s(self) -> int:
        """The placeholder timeout in seconds; below 0: none."""
        return self.metadata.policy.timeout_seconds or DEFAULT_PLACEHOLDER_TIMEOUT_S

    def is_overdue(self, now: int) -> bool:
        """Whether the gang is older than its placeholder timeout (K77, K202)."""
        created, limit = self.metadata.created, self.timeout_s
        return created is not None and limit > 0 and now >= (created + limit) * SECOND

    @property
    def has_started(self) -> bool:
        return any(
            task.state in task_fsm.STARTED or task.node
            for task in self.tasks.values()
            if not task.is_placeholder
        )

    @property
    def places_whole(self) -> bool:
        return self.pod_group is not None and not self.has_started

    @property
    def groups_full(self) -> bool:
        return not self.unfilled

    @property
    def would_come_again(self) -> bool:
        """A running pod needs the answer that the application is not there (K143)."""
        real = (task.pod for task in self.tasks.values() if not task.is_placeholder)
        return not self.with_node and any(map(identity.is_replaced, real))

    @property
    def core_has_pods(self) -> bool:
        return self.core_pods > 0

    @property
    def has_followers(self) -> bool:
        return bool(self.later)

    @property
    def is_over(self) -> bool:
        """All its members are gone or going, so a new one belongs to another run (K200)."""
        return self.leaving == self.real and (
            self.real > 0 or self.state not in application_fsm.UNSUBMITTED
        )

    @property
    def has_placeholders(self) -> bool:
        return bool(self.placeholders)

    @property
    def has_pods(self) -> bool:
        return bool(self.tasks)

    def asks_for(self, task: Task) -> bool:
        """Whether the core may be asked for a real pod of it now."""
        if self.state in application_fsm.ASKS_CHOSEN:
            return task.key in self.chosen
        return self.state in application_fsm.ASKS_REAL

    def count_bound(self, group: str, by: int) -> None:
        """One placeholder of the group more, or one less, is bound."""
        found = self.groups.get(group)
        if found is None:
            return
        needed = found.spec.min_member
        before = found.bound >= needed
        found.bound += by
        after = found.bound >= needed
        self.unfilled += before - after

    def count_live(self, group: str, by: int) -> None:
        """One placeholder of the group more, or one less, counts as there."""
        found = self.groups.get(group)
        if found is not None:
            found.live += by

    def missing(self, group: Group) -> int:
        """How many placeholders the group lacks, those being created not counted (K72)."""
        return group.spec.min_member - group.live - group.coming

    def __repr__(self) -> str:
        return f"<application {self.key} {self.state}>"


class NodeEntry:
    """A node, as it was last seen."""

    __slots__ = ("key", "node", "state", "told")

    def __init__(self, node: Node) -> None:
        self.key = node.metadata.name
        self.state: node_fsm.State = NODE.initial
        self.node = node
        #: what the core was told of it: allocatable resources and attributes
        self.told: object = None

    @property
    def is_cordoned(self) -> bool:
        return self.node.spec.unschedulable

    def __repr__(self) -> str:
        return f"<node {self.key} {self.state}>"


class Foreign:
    """A pod whose room counts and that is not ours to schedule (K96)."""

    __slots__ = ("amounts", "pod", "told")

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        self.amounts: Amounts = {}
        #: the core knows it
        self.told = False
