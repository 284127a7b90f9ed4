"""A deterministic cluster for tests of the shim: an API server and kubelets in memory, the real core, the real
shim, and a clock that the test moves.

Every write of the shim and every message to the core is one numbered step. ``kill_at`` ends the shim and the
core at such a step, before or after it took effect; ``restart`` starts both anew from what the API server has.
"""

import itertools
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from quadriga import si
from quadriga.base.times import SECOND
from quadriga.core.driver.service import SchedulerService
from quadriga.core.runtime.kernel import Options
from quadriga.k8s import objects
from quadriga.k8s.cluster.cache import ClusterCache
from quadriga.k8s.conversion import keys
from quadriga.k8s.conversion import settings as configuration
from quadriga.k8s.conversion.pod_groups import CONDITIONS
from quadriga.k8s.conversion.quantities import amount
from quadriga.k8s.conversion.settings import Settings
from quadriga.k8s.conversion.unified_asks import unified
from quadriga.k8s.driver.core_callback import CoreCallback
from quadriga.k8s.driver.core_state import applications_in, names_in, nodes_in
from quadriga.k8s.shim import actions, inputs
from quadriga.k8s.shim.actions import Action, Record
from quadriga.k8s.shim.differences import Report
from quadriga.k8s.shim.shim import Shim
from tests.k8s.k8s_queues import QUEUES, line_of, only

START = 1_800_000_000 * SECOND
OURS = "yunikorn"


class Killed(Exception):
    """The shim and the core have ended at this step."""


class ObservedCache(ClusterCache):
    """The real cache, with an objection that a test may have against assumptions."""

    objection: Callable[[str, str], str | None] = staticmethod(lambda uid, node: None)

    def assume(self, uid: str, node: str) -> str | None:
        return self.objection(uid, node) or super().assume(uid, node)


@dataclass
class World:
    """``settings`` by key. ``run`` lets everything happen that needs no time."""

    values: Mapping[str, str] = field(default_factory=dict)
    queues: str = QUEUES
    #: of the core
    options: Options = field(default_factory=Options)
    #: asks in the form of SI 1.6
    unified: bool = False
    kill_at: int = -1
    #: the step that kills takes effect
    kill_after: bool = False

    def __post_init__(self) -> None:
        self.now = START
        self.pods: dict[str, objects.Pod] = {}
        self.nodes: dict[str, objects.Node] = {}
        self.namespaces: dict[str, objects.Namespace] = {}
        self.groups: dict[str, objects.PodGroup] = {}
        #: of the API of PodGroups; "": the server has none
        self.group_version = "v1beta1"
        self.numbers = itertools.count(1)
        self.steps = 0
        self.log: list[str] = []
        self.records: list[Record] = []
        self.conditions: dict[str, tuple[str, str]] = {}
        #: of PodGroups, in their order: name, reason and message
        self.group_conditions: list[tuple[str, str, str]] = []
        self.log_warnings: list[str] = []
        self.stopped: actions.Stop | None = None
        #: how long a pod's containers run, in s; None: until they are deleted
        self.durations: dict[str, float] = {}
        self.ends: dict[str, int] = {}
        #: every node that a pod was ever bound to
        self.bound: dict[str, list[str]] = {}
        #: answers of the API server other than success: called with the action
        self.fault: Callable[[Action], inputs.BindEnded | inputs.CreateEnded | None] = (
            lambda action: None
        )
        self.sent: list[Any] = []
        #: the core rejects every application
        self.refuse_applications = False
        self.deletes: list[actions.Delete] = []
        #: the shim's check before an ask (K88)
        self.blocked_reason: Callable[[objects.Pod], str] = lambda pod: ""
        #: kubelets finish what is deleted at once
        self.kubelets = True
        self.start()

    # -- processes -----------------------------------------------------------------------------

    def start(self) -> None:
        """A shim and a core that know nothing; the reflectors list."""
        self.inputs: deque[inputs.Input] = deque()
        self.cache = ObservedCache(lambda: self.now)
        self.core = SchedulerService(self.options, manual=True, clock=lambda: self.now)
        # Gangs that are larger than the cluster are a common case of these tests.
        values = {"service.gangScaleUp": "true", "queues.yaml": self.queues, **self.values}
        reading = configuration.read(values)
        assert reading.settings is not None, reading.errors
        self.settings: Settings = reading.settings
        self.shim = Shim(
            self.settings,
            self.cache,
            suffix=lambda: f"{next(self.numbers):010d}",
            blocked_reason=lambda pod: self.blocked_reason(pod),
            namespace="quadriga",
        )
        self.inputs.append(inputs.PodGroupsServed(self.group_version))
        for kind in (self.namespaces, self.nodes, self.groups, self.pods):
            for found in kind.values():  # type: ignore[attr-defined]
                self.inputs.append(inputs.Changed("ADDED", found))
        self.inputs.append(inputs.Synced())
        self.inputs.append(inputs.LeaseHeld())

    def restart(self) -> None:
        self.core.stop()
        self.kill_at = -1
        self.start()

    def forget_core(self) -> None:
        """The core alone is restarted (K151)."""
        self.core.stop()
        self.core = SchedulerService(self.options, manual=True, clock=lambda: self.now)
        self.inputs.append(inputs.CoreForgot())

    # -- objects -------------------------------------------------------------------------------

    def stamp(self) -> str:
        return datetime.fromtimestamp(self.now // SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def add_namespace(self, name: str, **annotations: str) -> None:
        found = objects.Namespace(
            objects.Metadata(name=name, uid=f"ns-{name}", annotations=annotations)
        )
        self.namespaces[name] = found
        self.inputs.append(inputs.Changed("ADDED", found))

    def add_node(self, name: str, cpu: str = "4", memory: str = "64Gi", pods: int = 110) -> None:
        self.set_node(
            objects.Node(
                objects.Metadata(name=name, uid=f"node-{name}-{next(self.numbers)}"),
                objects.NodeSpec(),
                objects.NodeStatus(allocatable={"cpu": cpu, "memory": memory, "pods": str(pods)}),
            )
        )

    def set_node(self, node: objects.Node) -> None:
        change = "MODIFIED" if node.name in self.nodes else "ADDED"
        self.nodes[node.name] = node
        self.inputs.append(inputs.Changed(change, node))  # type: ignore[arg-type]

    def add_group(self, name: str, gang: int = 0, **spec: Any) -> objects.PodGroup:
        """A PodGroup, of this ``minCount``, or basic. It replaces one of that name."""
        whole = objects.GangPolicy(gang) if gang else None
        policy = objects.SchedulingPolicy(basic=None if gang else {}, gang=whole)
        uid = f"group-{name}-{next(self.numbers)}"
        metadata = objects.Metadata(name=name, namespace="default", uid=uid, generation=1)
        spec = {"scheduling_policy": policy, **spec}
        return self.set_group(objects.PodGroup(metadata, objects.PodGroupSpec(**spec)))

    def set_group(self, group: objects.PodGroup) -> objects.PodGroup:
        name = group.metadata.name
        old = self.groups.get(name)
        change = "ADDED" if old is None else "MODIFIED"
        if old is not None and old.metadata.uid != group.metadata.uid:
            self.remove_group(name)
        self.groups[name] = group
        self.inputs.append(inputs.Changed(change, group))
        return group

    def remove_group(self, name: str) -> None:
        self.inputs.append(inputs.Changed("DELETED", self.groups.pop(name)))

    def cordon(self, name: str, unschedulable: bool = True) -> None:
        self.set_node(replace(self.nodes[name], spec=objects.NodeSpec(unschedulable=unschedulable)))

    def remove_node(self, name: str) -> None:
        self.inputs.append(inputs.Changed("DELETED", self.nodes.pop(name)))

    def add_pod(
        self,
        name: str,
        app: str = "",
        cpu: str = "1",
        *,
        scheduler: str = OURS,
        duration: float | None = None,
        group: str = "",
        groups: Sequence[Mapping[str, Any]] = (),
        policy: str = "",
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        node: str = "",
        priority: int | None = None,
        queue: str = "",
        namespace: str = "default",
        daemon: str = "",
        owned: str = "",
        **spec: Any,
    ) -> objects.Pod:
        """``daemon``: it belongs to a DaemonSet, which made it for this node. ``owned``: name of a ReplicaSet."""
        owners = (objects.OwnerReference(kind="DaemonSet", name=app),) if daemon else ()
        if owned:
            owners = (objects.OwnerReference(kind="ReplicaSet", name=owned, controller=True),)
        if daemon:
            spec["affinity"] = objects.Affinity(objects.NodeAffinity(only(daemon)))
        all_labels = dict(labels or {})
        if app:
            all_labels[keys.APP_ID] = app
        if queue:
            all_labels[keys.QUEUE] = queue
        all_annotations = dict(annotations or {})
        if group:
            all_annotations[keys.TASK_GROUP_NAME] = group
        if groups:
            all_annotations[keys.TASK_GROUPS] = msgspec.json.encode(list(groups)).decode()
        if policy:
            all_annotations[keys.POLICY_PARAMETERS] = policy
        pod = objects.Pod(
            objects.Metadata(
                name=name,
                namespace=namespace,
                uid=f"{name}-{next(self.numbers)}",
                resource_version=str(next(self.numbers)),
                creation_timestamp=self.stamp(),
                labels=all_labels,
                annotations=all_annotations,
                owner_references=owners,
            ),
            objects.PodSpec(
                scheduler_name=scheduler,
                node_name=node,
                priority=priority,
                containers=(objects.Container("main", objects.ResourceRequirements({"cpu": cpu})),),
                **spec,
            ),
            objects.PodStatus(phase="Pending"),
        )
        self.pods[pod.uid] = pod
        if duration is not None:
            self.durations[pod.uid] = duration
        self.inputs.append(inputs.Changed("ADDED", pod))
        if node:
            self._run(pod.uid)
        return pod

    def add_gang(self, pods: int = 1, members: int = 3, **more: Any) -> objects.Pod:
        """The application ``spark`` and its group: ``driver``, which it gives, ``worker-0``, ``worker-1``, ..."""
        groups = [gang("w", members)]
        driver = self.add_pod("driver", "spark", group="w", groups=groups, **more)
        more.pop("policy", None)
        for n in range(pods - 1):
            self.add_pod(f"worker-{n}", "spark", group="w", **more)
        return driver

    def set_pod(self, pod: objects.Pod) -> objects.Pod:
        metadata = replace(pod.metadata, resource_version=str(next(self.numbers)))
        pod = replace(pod, metadata=metadata)
        self.pods[pod.uid] = pod
        self.inputs.append(inputs.Changed("MODIFIED", pod))
        return pod

    def resize(self, uid: str, cpu: str) -> None:
        self.set_pod(sized(self.pods[uid], cpu))

    def delete_pod(self, uid: str) -> None:
        """By a user, or by the shim. The collector deletes what it owns."""
        pod = self.pods.get(uid)
        if pod is None:
            return
        grace = pod.spec.termination_grace_period_seconds
        if not pod.spec.node_name or grace == 0 or self.kubelets:
            self._remove_pod(uid)
        elif not pod.terminating:
            self.set_pod(
                replace(pod, metadata=replace(pod.metadata, deletion_timestamp=self.stamp()))
            )

    def ungate(self, uid: str) -> None:
        pod = self.pods[uid]
        self.set_pod(replace(pod, spec=replace(pod.spec, scheduling_gates=())))

    def terminate(self, uid: str) -> None:
        """A pod that a finalizer keeps while it is being deleted."""
        metadata = replace(self.pods[uid].metadata, deletion_timestamp=self.stamp())
        self.set_pod(replace(self.pods[uid], metadata=metadata))

    def _remove_pod(self, uid: str) -> None:
        pod = self.pods.pop(uid)
        self.ends.pop(uid, None)
        self.inputs.append(inputs.Changed("DELETED", pod))
        for other in list(self.pods.values()):
            if any(owner.uid == uid for owner in other.metadata.owner_references):
                self.delete_pod(other.uid)

    def end_pod(self, uid: str, phase: str = "Succeeded") -> None:
        self.ends.pop(uid, None)
        self.set_pod(replace(self.pods[uid], status=objects.PodStatus(phase=phase)))

    def _run(self, uid: str) -> None:
        """The kubelet starts the pod."""
        self.set_pod(replace(self.pods[uid], status=objects.PodStatus(phase="Running")))
        if uid in self.durations:
            self.ends[uid] = self.now + int(self.durations[uid] * SECOND)

    def answer(
        self, kind: type[Action], answer: Callable[[Any], Any], times: int = -1
    ) -> list[Any]:
        """The API server answers these writes so: all, or so many of them. Gives those as they come."""
        seen: list[Any] = []

        def fault(action: Action) -> Any:
            if not isinstance(action, kind) or len(seen) == times:
                return None
            seen.append(action)
            return answer(action)

        self.fault = fault
        return seen

    # -- time ----------------------------------------------------------------------------------

    def run(self, seconds: float = 0, until: Callable[[], bool] | None = None) -> None:
        """Let time pass, one event after the other, until ``until`` holds."""
        end = self.now + int(seconds * SECOND)
        while True:
            self.settle()
            if until is not None and until():
                return
            due = [*self.ends.values()]
            shim, core = self.shim.next_deadline(), self.core.read(lambda s: s.next_deadline())
            due += [each for each in (shim, core) if each is not None]
            following = min(due, default=end)
            if following > end or self.now >= end:
                if until is not None:
                    raise AssertionError(f"not within {seconds} s: {self.describe()}")
                self.now = end
                return
            self.now = max(self.now + 1_000_000, following)
            for uid in [uid for uid, when in self.ends.items() if when <= self.now]:
                self.end_pod(uid)

    def settle(self) -> None:
        """Until nobody has anything to say."""
        for _ in range(10_000):
            self.half_step()
            if not self.inputs or self.stopped:
                return
        raise AssertionError("no end")

    def half_step(self) -> None:
        """The shim hears what there is, then the core decides."""
        for action in self.shim.advance(self.now):
            self.carry_out(action)
        while self.inputs:
            for action in self.shim.handle(self.inputs.popleft(), self.now):
                self.carry_out(action)
                if self.stopped:
                    return
        for send in self.shim.flush():
            self.carry_out(send)
        self.core.step(self.now)

    def audit(self) -> Report:
        """One audit of all there is (K176). The API server's pods are those of the watch."""
        self.inputs.append(inputs.AuditBegins())
        gone = [uid for uid in self.cache.pod_uids() if uid not in self.pods]
        self.inputs.append(inputs.WatchShows(list(self.pods.values()), gone))
        rm_id = self.settings.cluster_id
        names = self.core.read(lambda scheduler: names_in(scheduler, rm_id))
        nodes = sorted({*self.nodes, *names.nodes})
        ids = sorted({*self.shim.application_ids(), *names.applications})
        shown = inputs.CoreShows(
            nodes,
            self.core.read(lambda scheduler: nodes_in(scheduler, rm_id, nodes)),
            ids,
            self.core.read(lambda scheduler: applications_in(scheduler, rm_id, ids)),
        )
        self.inputs.append(shown)
        self.inputs.append(inputs.AuditEnds())
        self.settle()
        report = self.shim.audit.report
        assert report is not None
        return report

    # -- what the driver does ------------------------------------------------------------------

    def carry_out(self, action: Action) -> None:
        silent = actions.Record | actions.SetCondition | actions.DropCondition | actions.LogWarning
        if isinstance(action, silent):
            self._effect(action)
            return
        self.steps += 1
        self.log.append(line_of(action))
        if self.steps == self.kill_at and not self.kill_after:
            raise Killed
        self._effect(action)
        if self.steps == self.kill_at:
            raise Killed

    def _effect(self, action: Action) -> None:
        _EFFECTS[action.__class__](self, action)

    def _send(self, send: actions.Send) -> None:
        request = send.request
        self.sent.append(request)
        try:
            if isinstance(request, si.RegisterResourceManagerRequest):
                callback = CoreCallback(self.cache, lambda h: self.inputs.append(h), lambda: "")
                answer = self.core.register_resource_manager(request, callback)
                self.inputs.append(inputs.CoreAnswered(answer))
            elif isinstance(request, si.UpdateConfigurationRequest):
                self.core.update_configuration(request)
            elif isinstance(request, si.ApplicationRequest) and self.refuse_applications:
                rejected = [
                    si.RejectedApplication(applicationID=each.applicationID, reason="not here")
                    for each in request.new
                ]
                self.inputs.append(inputs.CoreAnswered(si.ApplicationResponse(rejected=rejected)))
            elif isinstance(request, si.ApplicationRequest):
                self.core.update_application(request)
            elif isinstance(request, si.AllocationRequest):
                for part in unified(request) if self.unified else (request,):
                    self.core.update_allocation(part)
            elif isinstance(request, si.NodeRequest):
                self.core.update_node(request)
        except si.RequestError as error:
            self.inputs.append(inputs.CoreRefused(type(request).__name__, str(error)))

    def _bind(self, bind: actions.Bind) -> None:
        faulty = self.fault(bind)
        if faulty is not None:
            self.inputs.append(faulty)
            return
        pod = self.pods.get(bind.pod.uid)
        if pod is None or pod.terminating:
            self.inputs.append(inputs.BindEnded(bind.pod.uid, "gone"))
        elif pod.spec.node_name:
            outcome = "bound" if pod.spec.node_name == bind.node else "elsewhere"
            self.inputs.append(inputs.BindEnded(pod.uid, outcome, pod.spec.node_name))  # type: ignore[arg-type]
        else:
            if bind.devices:  # the API server copies the annotations of a Binding
                meta = pod.metadata
                annotations = {**meta.annotations, keys.DEVICES: bind.devices}
                self.pods[pod.uid] = replace(pod, metadata=replace(meta, annotations=annotations))
            self.place(pod.uid, bind.node)
            self.inputs.append(inputs.BindEnded(pod.uid, "bound", bind.node))

    def place(self, uid: str, node: str) -> None:
        """The pod gets its node, from whomever."""
        pod = self.pods[uid]
        assert not pod.spec.node_name, "a pod never changes its node"
        self.bound.setdefault(uid, []).append(node)
        self.set_pod(replace(pod, spec=replace(pod.spec, node_name=node)))
        self._run(uid)

    def _cancel(self, cancel: actions.CancelBind) -> None:
        self.inputs.append(inputs.BindEnded(cancel.uid, "failed", reason="cancelled"))

    def _cancel_write(self, cancel: actions.CancelCreate | actions.CancelDelete) -> None:
        """Too late: each placeholder is created and deleted at once."""

    def _delete(self, delete: actions.Delete) -> None:
        self.deletes.append(delete)
        self.delete_pod(delete.pod.uid)

    def _create(self, create: actions.Create) -> None:
        faulty = self.fault(create)
        if faulty is not None:
            self.inputs.append(faulty)
            return
        manifest = create.manifest
        meta, spec = manifest["metadata"], manifest["spec"]
        pod = objects.Pod(
            objects.Metadata(
                name=meta["name"],
                namespace=meta["namespace"],
                uid=f"{meta['name']}-{next(self.numbers)}",
                resource_version=str(next(self.numbers)),
                creation_timestamp=self.stamp(),
                labels=dict(meta["labels"]),
                annotations=dict(meta["annotations"]),
                owner_references=msgspec.convert(
                    meta["ownerReferences"], tuple[objects.OwnerReference, ...]
                ),
            ),
            msgspec.convert(spec, objects.PodSpec),
            objects.PodStatus(phase="Pending"),
        )
        self.pods[pod.uid] = pod
        self.inputs.append(inputs.Changed("ADDED", pod))
        name = meta["name"]
        self.inputs.append(inputs.CreateEnded(create.application_id, create.group, name, "created"))
        # the collector finds placeholders whose owner is gone
        if not any(owner.uid in self.pods for owner in pod.metadata.owner_references):
            self.delete_pod(pod.uid)

    def _annotate(self, annotate: actions.Annotate) -> None:
        pod = self.pods.get(annotate.pod.uid)
        if pod is not None:
            annotations = {**pod.metadata.annotations, **annotate.annotations}
            self.set_pod(replace(pod, metadata=replace(pod.metadata, annotations=annotations)))

    def _fail(self, fail: actions.FailPod) -> None:
        if fail.pod.uid in self.pods:
            self.conditions[fail.pod.uid] = (fail.reason, fail.message)
            self.end_pod(fail.pod.uid, "Failed")

    def _condition(self, condition: actions.SetCondition) -> None:
        self.conditions[condition.pod.uid] = (condition.reason, condition.message)

    def _group_condition(self, condition: actions.SetGroupCondition) -> None:
        """The server has it at once, and the watch shows it."""
        name, reason, message = condition.pod.name, condition.reason, condition.message
        self.group_conditions.append((name, reason, message))
        group = self.groups.get(name)
        if group is not None and group.metadata.uid == condition.pod.uid:
            kind, status = CONDITIONS[condition.version], str(reason == "Scheduled")
            found = objects.PodCondition(kind, status, reason, message)
            self.set_group(replace(group, status=objects.PodGroupStatus((found,))))

    def _drop(self, condition: actions.DropCondition) -> None:
        """What a failed pod says stays."""
        pod = self.pods.get(condition.uid)
        if pod is None or pod.status.phase != "Failed":
            self.conditions.pop(condition.uid, None)

    def _record(self, record: Record) -> None:
        self.records.append(record)

    def _warn(self, warning: actions.LogWarning) -> None:
        self.log_warnings.append(warning.text)

    def _stop(self, stop: actions.Stop) -> None:
        self.stopped = stop

    # -- what tests ask ------------------------------------------------------------------------

    def named(self, prefix: str) -> list[objects.Pod]:
        return [pod for pod in self.pods.values() if pod.metadata.name.startswith(prefix)]

    @property
    def placeholders(self) -> list[objects.Pod]:
        return [pod for pod in self.named("tg-") if not pod.ended]

    def phases(self, prefix: str = "") -> Counter[str]:
        return Counter(pod.status.phase for pod in self.named(prefix))

    def reasons(self, uid: str = "") -> list[str]:
        """Of the events, each named by its action too."""
        return [f"{e.reason}/{e.action}" for e in self.records if not uid or e.uid == uid]

    def app_state(self, app_id: str) -> str:
        found = {each["id"]: each["state"] for each in self.shim.dump()["applications"]}
        return found.get(app_id, "")

    def core_app(self, app_id: str) -> str:
        def reader(scheduler: Any) -> str:
            try:
                return str(scheduler.application(app_id, "default", self.settings.cluster_id).state)
            except KeyError:
                return ""

        return self.core.read(reader)

    def core_state(self) -> dict[str, str]:
        """What the core counts: pods by UID, with their nodes."""

        def reader(scheduler: Any) -> dict[str, str]:
            found: dict[str, str] = {}
            for rm in scheduler.resource_managers():
                for partition in rm.partitions.values():
                    for node in partition.nodes.values():
                        for allocation in node.allocations:
                            key = allocation.ask.ask_key
                            assert key not in found, f"{key} is counted twice"
                            found[key] = node.node_id
                        for key in node.foreign:
                            assert key not in found, f"{key} is counted twice"
                            found[key] = node.node_id
            return found

        return self.core.read(reader)

    def used(self, node: str) -> int:
        """The vcore of what the core counts on the node."""
        found = self.core.read(lambda core: nodes_in(core, self.settings.cluster_id, [node]))
        return sum(each.amounts.get("vcore", 0) for each in found[node].pods.values())

    def live_on_nodes(self) -> dict[str, str]:
        return {
            uid: pod.spec.node_name
            for uid, pod in self.pods.items()
            if pod.spec.node_name and not pod.ended and pod.spec.node_name in self.nodes
        }

    def free(self) -> dict[str, int]:
        """The vcore that the live pods leave on each node of the cluster."""
        free = {
            each: amount("cpu", self.nodes[each].status.allocatable["cpu"]) for each in self.nodes
        }
        for uid, node in self.live_on_nodes().items():
            free[node] -= vcore_of(self.pods[uid])
        return free

    def check(self) -> None:
        """Once all is quiet: the allocations of the core are those of the cluster, its asks are of pods there, no node
        is too full, no pod had two nodes."""
        assert self.core_state() == self.live_on_nodes()
        asks = self.core.read(
            lambda core: {
                key
                for partition in core.partitions()
                for app in partition.applications.values()
                for key in app.asks
            }
        )
        assert self.pods.keys() >= asks
        for name, free in self.free().items():
            assert free >= 0, name
        for uid, nodes in self.bound.items():
            assert len(nodes) == 1, uid
        assert not self.stopped

    def check_over(self, app_id: str) -> None:
        """Nothing is left of the application, and nothing runs."""
        assert self.placeholders == []
        assert self.core_state() == {}
        assert self.app_state(app_id) == ""
        assert self.core.read(lambda core: core.notes) == ()

    def describe(self) -> str:
        pods = [(p.metadata.name, p.status.phase, p.spec.node_name) for p in self.pods.values()]
        return f"{pods} {self.shim.dump()['applications']} {self.log[-20:]}"


def vcore_of(pod: objects.Pod) -> int:
    return amount("cpu", pod.spec.containers[0].resources.requests["cpu"])


_EFFECTS: dict[type, Callable[[World, Any], None]] = {
    actions.Send: World._send,
    actions.Bind: World._bind,
    actions.CancelBind: World._cancel,
    actions.CancelCreate: World._cancel_write,
    actions.CancelDelete: World._cancel_write,
    actions.Delete: World._delete,
    actions.Create: World._create,
    actions.Annotate: World._annotate,
    actions.SetCondition: World._condition,
    actions.SetGroupCondition: World._group_condition,
    actions.DropCondition: World._drop,
    actions.FailPod: World._fail,
    actions.Record: World._record,
    actions.LogWarning: World._warn,
    actions.Stop: World._stop,
}


def gang(name: str, members: int, cpu: str = "1", **more: Any) -> dict[str, Any]:
    return {"name": name, "minMember": members, "minResource": {"cpu": cpu}, **more}


def cluster(cpu: str = "4", nodes: int = 1, **settings: Any) -> World:
    """A world with the nodes ``n1``, ``n2``, ... of so many cores each."""
    world = World(**settings)
    for n in range(1, nodes + 1):
        world.add_node(f"n{n}", cpu=cpu)
    return world


def sized(pod: objects.Pod, cpu: str) -> objects.Pod:
    main = objects.Container("main", objects.ResourceRequirements({"cpu": cpu}))
    return replace(pod, spec=replace(pod.spec, containers=(main,)))


def failed(bind: actions.Bind, reason: str = "500") -> inputs.BindEnded:
    return inputs.BindEnded(bind.pod.uid, "failed", reason=reason)
