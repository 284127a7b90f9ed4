"""Outgoing messages of the simulated resource manager, collected into one request per kind and
instant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sized

from quadriga import si
from quadriga.si.constants import NODE_PARTITION
from quadriga.sim.destinations import DEFAULT_PARTITION, Destinations
from quadriga.sim.options import SimulationOptions
from quadriga.sim.pods import Pod, Run
from quadriga.sim.workload.model import NodeSpec, Resources

RM_ID = "sim"

_EXPECTED_RUNTIME = "expected.runtime"

Request = si.ApplicationRequest | si.AllocationRequest


def group_name(group: int) -> str:
    """The name of a job's task group, from its index in the job's members."""
    return f"group-{group}"


class Outbox:
    """Requests under construction. `sent` counts the requests that were sent and their items.

    Asks of one size differ only in their names, and so do applications of one queue and user, so they
    are copied from a prototype: building a protobuf message in Python costs several times as much as
    copying it.
    """

    def __init__(self, options: SimulationOptions, destinations: Destinations) -> None:
        self.sent: Counter[str] = Counter()
        self._options = options
        self._destinations = destinations
        self._partition = destinations.partition
        self._applications = si.ApplicationRequest(rmID=RM_ID)
        self._allocations = si.AllocationRequest(rmID=RM_ID)
        #: the number of items in each part of the requests under construction
        self._items: dict[str, int] = {}
        self._new_applications = False
        self._new_allocations = False
        self._prototypes: dict[tuple[tuple[str, int], ...], si.AllocationAsk] = {}
        #: by queue and user of the job
        self._submissions: dict[tuple[str, str], si.AddApplicationRequest] = {}
        #: the last ask of the request under construction, and its pod
        self._last: tuple[Pod, si.AllocationAsk | si.Allocation] | None = None
        self._by_key = options.ask_form == "allocation"

    @property
    def empty(self) -> bool:
        """Whether there is nothing to send."""
        return not (self._new_applications or self._new_allocations)

    def requests(self) -> list[Request]:
        """The requests to send now, applications first. The outbox is empty afterwards."""
        due: list[Request] = []
        if self._new_applications:
            self.sent["ApplicationRequest"] += 1
            due.append(self._applications)
            self._applications = si.ApplicationRequest(rmID=RM_ID)
            self._new_applications = False
        if self._new_allocations:
            self.sent["AllocationRequest"] += 1
            due.append(self._allocations)
            self._allocations = si.AllocationRequest(rmID=RM_ID)
            self._new_allocations = False
            self._last = None
        if due:
            self.sent.update(self._items)
            self._items.clear()
        return due

    def _count_item(self, part: str) -> None:
        self._items[part] = self._items.get(part, 0) + 1

    # -- the cluster ---------------------------------------------------------------------------

    def registration(self, config: str) -> si.RegisterResourceManagerRequest:
        """The first message of all."""
        self.sent["RegisterResourceManagerRequest"] += 1
        return si.RegisterResourceManagerRequest(
            rmID=RM_ID,
            version="1.0",
            policyGroup="sim",
            config=config,
            extraConfig=self._options.settings(),
        )

    def clear(self) -> None:
        """Drop everything that was not sent yet."""
        self._applications = si.ApplicationRequest(rmID=RM_ID)
        self._allocations = si.AllocationRequest(rmID=RM_ID)
        self._new_applications = self._new_allocations = False
        self._items.clear()
        self._last = None

    def act(self, action: si.NodeInfo.ActionFromRM, names: Iterable[str]) -> si.NodeRequest:
        """The same action for each of these nodes, such as their removal."""
        infos = [si.NodeInfo(nodeID=name, action=action) for name in names]
        self._count("NodeRequest", nodes=infos)
        return si.NodeRequest(rmID=RM_ID, nodes=infos)

    def existing(self, pods: Iterable[Pod]) -> si.AllocationRequest:
        """Report existing allocations in the form of SI 1.4 and later."""
        allocations = [self._existing(pod) for pod in pods]
        self._count("AllocationRequest", allocations=allocations)
        return si.AllocationRequest(rmID=RM_ID, allocations=allocations)

    def nodes(
        self, nodes: Iterable[NodeSpec], pods: Iterable[Pod] = (), *, draining: bool = False
    ) -> si.NodeRequest:
        """Report these nodes in one request, each with the pods that run there already (I33)."""
        nodes = tuple(nodes)
        existing: dict[str, list[si.Allocation]] = {node.name: [] for node in nodes}
        for pod in pods:
            existing[pod.node].append(self._existing(pod))
        self._count("NodeRequest", nodes=nodes)
        elsewhere = {}
        if self._partition != DEFAULT_PARTITION:
            elsewhere[NODE_PARTITION] = self._partition
        return si.NodeRequest(
            rmID=RM_ID,
            nodes=[
                si.NodeInfo(
                    nodeID=node.name,
                    action=si.NodeInfo.CREATE_DRAIN if draining else si.NodeInfo.CREATE,
                    attributes={**node.attributes, **elsewhere},
                    schedulableResource=_resource(node.resources),
                    existingAllocations=existing[node.name],
                )
                for node in nodes
            ],
        )

    def _existing(self, pod: Pod) -> si.Allocation:
        run = pod.run
        return si.Allocation(
            allocationKey=pod.key,
            UUID="" if self._by_key else pod.uuid,
            applicationID=run.key,
            partitionName=self._partition,
            nodeID=pod.node,
            resourcePerAlloc=_resource(pod.resources),
            taskGroupName=group_name(pod.group) if run.gang else "",
            placeholder=pod.placeholder,
        )

    # -- a job ---------------------------------------------------------------------------------

    def add(self, run: Run) -> None:
        """Submit the application. A gang announces the total of its placeholders and their
        timeout."""
        job = run.job
        prototype = self._submissions.get((job.queue, job.user))
        if prototype is None:
            prototype = si.AddApplicationRequest(
                queueName=self._destinations.queue(job),
                partitionName=self._partition,
                ugi=self._destinations.user(job),
                tags=self._destinations.tags(job),
            )
            self._submissions[job.queue, job.user] = prototype
        message = self._applications.new.add()
        message.CopyFrom(prototype)
        message.applicationID = run.key
        if job.walltime_s is not None and self._options.expected_runtime:
            message.tags[_EXPECTED_RUNTIME] = str(job.walltime_s)
        message.tags.update(job.tags)
        if run.gang:
            message.placeholderAsk.CopyFrom(_resource(job.total()))
            message.gangSchedulingStyle = self._options.gang_style
            message.executionTimeoutMilliSeconds = self._options.placeholder_timeout_ms
        self._new_applications = True
        self._count_item("ApplicationRequest.new")

    def remove(self, run: Run) -> None:
        """Remove the application with everything that belongs to it."""
        self._applications.remove.add(applicationID=run.key, partitionName=self._partition)
        self._new_applications = True
        self._count_item("ApplicationRequest.remove")

    def ask(self, pod: Pod) -> None:
        """Ask for one pod: one ask per member with maxAllocations 1 (G35)."""
        self._new_allocations = True
        allocations, run = self._allocations, pod.run
        ask: si.AllocationAsk | si.Allocation
        if self._by_key:
            ask = allocations.allocations.add()
            self._count_item("AllocationRequest.allocations")
        else:
            ask = allocations.asks.add()
            self._count_item("AllocationRequest.asks")
        last = self._last
        if (
            last is not None
            and last[0].run is run
            and last[0].group == pod.group
            and last[0].placeholder == pod.placeholder
        ):
            ask.CopyFrom(last[1])  # type: ignore[arg-type]  # all asks have the same form
        else:
            self._fill_in(ask, pod)
        ask.allocationKey = pod.key
        self._last = pod, ask

    def _fill_in(self, ask: si.AllocationAsk | si.Allocation, pod: Pod) -> None:
        """Everything but the key."""
        resources = pod.resources
        size = tuple(resources.items())
        prototype = self._prototypes.get(size)
        if prototype is None:
            prototype = self._prototypes[size] = si.AllocationAsk(
                partitionName=self._partition,
                resourceAsk=_resource(resources),
                maxAllocations=1,
            )
            if self._destinations.preempts:  # like the shim, unless a priority class forbids it
                prototype.preemptionPolicy.allowPreemptSelf = True
                prototype.preemptionPolicy.allowPreemptOther = True
        if isinstance(ask, si.AllocationAsk):
            ask.CopyFrom(prototype)
        else:
            ask.partitionName = self._partition
            ask.resourcePerAlloc.CopyFrom(prototype.resourceAsk)
            if prototype.HasField("preemptionPolicy"):
                ask.preemptionPolicy.CopyFrom(prototype.preemptionPolicy)
        run = pod.run
        ask.applicationID = run.key
        if run.gang:
            ask.taskGroupName = group_name(pod.group)
            ask.placeholder = pod.placeholder

    def release(self, pod: Pod, kind: si.TerminationType) -> None:
        """Report that the pod is gone: it ended by itself, or this confirms a release of the same
        type (R3)."""
        release = self._allocations.releases.allocationsToRelease.add()
        release.partitionName = self._partition
        release.applicationID = pod.run.key
        if not self._by_key:
            release.UUID = pod.uuid
        release.allocationKey = pod.key
        release.terminationType = kind
        self._new_allocations = True
        self._count_item("AllocationRequest.releases")

    def release_ask(self, pod: Pod, kind: si.TerminationType) -> None:
        """Release an ask, or confirm its release."""
        if self._by_key:
            self.release(pod, kind)
            return
        self._allocations.releases.allocationAsksToRelease.add(
            partitionName=self._partition,
            applicationID=pod.run.key,
            allocationKey=pod.key,
            terminationType=kind,
        )
        self._new_allocations = True
        self._count_item("AllocationRequest.askReleases")

    def _count(self, request: str, **parts: Sized) -> None:
        self.sent[request] += 1
        for name, items in parts.items():
            if count := len(items):
                self.sent[f"{request}.{name}"] += count


def _resource(resources: Resources) -> si.Resource:
    return si.Resource(resources={n: si.Quantity(value=v) for n, v in resources.items()})
