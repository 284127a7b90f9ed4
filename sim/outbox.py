"""Outgoing messages of the simulated resource manager, collected into one request per kind and
instant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from quadriga import si
from quadriga.si.constants import NODE_PARTITION
from quadriga.sim.destinations import DEFAULT_PARTITION, Destinations
from quadriga.sim.options import SimulationOptions
from quadriga.sim.pods import Pod, Run
from quadriga.sim.workload.model import NodeSpec, Resources

__all__ = ["RM_ID", "Outbox", "Request", "group_name"]

RM_ID = "sim"

_EXPECTED_RUNTIME = "expected.runtime"

Request = si.ApplicationRequest | si.AllocationRequest


def group_name(group: int) -> str:
    """The name of a job's task group, from its index in the job's members."""
    return f"group-{group}"


class Outbox:
    """Requests under construction. `sent` counts the requests that were sent and their items.

    Asks of one size differ only in their names, so they are copied from a prototype: building a
    protobuf message in Python costs ten times as much as copying it.
    """

    def __init__(self, options: SimulationOptions, destinations: Destinations) -> None:
        self.sent: Counter[str] = Counter()
        self._options = options
        self._destinations = destinations
        self._partition = destinations.partition
        self._applications = si.ApplicationRequest(rmID=RM_ID)
        self._allocations = si.AllocationRequest(rmID=RM_ID)
        self._new_applications = False
        self._new_allocations = False
        self._prototypes: dict[tuple[tuple[str, int], ...], si.AllocationAsk] = {}
        self._by_key = options.ask_form == "allocation"

    def requests(self) -> list[Request]:
        """The requests to send now, applications first. The outbox is empty afterwards."""
        due: list[Request] = []
        if self._new_applications:
            applications = self._applications
            due.append(applications)
            self._count("ApplicationRequest", new=applications.new, remove=applications.remove)
            self._applications = si.ApplicationRequest(rmID=RM_ID)
            self._new_applications = False
        if self._new_allocations:
            allocations = self._allocations
            due.append(allocations)
            self._count(
                "AllocationRequest",
                asks=allocations.asks,
                allocations=allocations.allocations,
                releases=allocations.releases.allocationsToRelease,
                askReleases=allocations.releases.allocationAsksToRelease,
            )
            self._allocations = si.AllocationRequest(rmID=RM_ID)
            self._new_allocations = False
        return due

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
        message = self._applications.new.add(
            applicationID=run.key,
            queueName=self._destinations.queue(job),
            partitionName=self._partition,
            ugi=self._destinations.user(job),
            tags=self._destinations.tags(job),
        )
        if job.walltime_s is not None and self._options.expected_runtime:
            message.tags[_EXPECTED_RUNTIME] = str(job.walltime_s)
        if run.gang:
            message.placeholderAsk.CopyFrom(_resource(job.total()))
            message.gangSchedulingStyle = self._options.gang_style
            message.executionTimeoutMilliSeconds = self._options.placeholder_timeout_ms
        self._new_applications = True

    def remove(self, run: Run) -> None:
        """Remove the application with everything that belongs to it."""
        self._applications.remove.add(applicationID=run.key, partitionName=self._partition)
        self._new_applications = True

    def ask(self, pod: Pod) -> None:
        """Ask for one pod: one ask per member with maxAllocations 1 (G35)."""
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
        self._new_allocations = True
        run = pod.run
        ask: si.AllocationAsk | si.Allocation
        if self._by_key:
            ask = self._allocations.allocations.add(
                partitionName=self._partition, resourcePerAlloc=prototype.resourceAsk
            )
            if prototype.HasField("preemptionPolicy"):
                ask.preemptionPolicy.CopyFrom(prototype.preemptionPolicy)
        else:
            ask = self._allocations.asks.add()
            ask.CopyFrom(prototype)
        ask.allocationKey = pod.key
        ask.applicationID = run.key
        if run.gang:
            ask.taskGroupName = group_name(pod.group)
            ask.placeholder = pod.placeholder

    def release(self, pod: Pod, kind: si.TerminationType) -> None:
        """Report that the pod is gone: it ended by itself, or this confirms a release of the same
        type (R3)."""
        self._allocations.releases.allocationsToRelease.add(
            partitionName=self._partition,
            applicationID=pod.run.key,
            UUID="" if self._by_key else pod.uuid,
            allocationKey=pod.key,
            terminationType=kind,
        )
        self._new_allocations = True

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

    def _count(self, request: str, **parts: object) -> None:
        self.sent[request] += 1
        for name, items in parts.items():
            if count := len(items):  # type: ignore[arg-type]
                self.sent[f"{request}.{name}"] += count


def _resource(resources: Resources) -> si.Resource:
    return si.Resource(resources={n: si.Quantity(value=v) for n, v in resources.items()})
