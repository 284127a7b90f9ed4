"""What the simulated resource manager says in one instant, gathered into one request of a kind."""

from __future__ import annotations

from collections import Counter

from quadriga import si
from quadriga.sim.options import SimulationOptions
from quadriga.sim.pods import Pod, Run
from quadriga.sim.workload.model import NodeSpec, Resources

__all__ = ["PARTITION", "RM_ID", "Outbox", "Request", "group_name"]

RM_ID = "sim"
PARTITION = "default"

Request = si.ApplicationRequest | si.AllocationRequest


def group_name(group: int) -> str:
    """The name of a job's task group, from its place in the job's members."""
    return f"group-{group}"


class Outbox:
    """Requests in the making. `sent` counts what left: requests, and what is in them.

    Asks of one size are alike but for their names, so they are copied from a prototype: building
    a protobuf message from Python costs ten times its copy.
    """

    def __init__(self, options: SimulationOptions) -> None:
        self.sent: Counter[str] = Counter()
        self._options = options
        self._applications = si.ApplicationRequest(rmID=RM_ID)
        self._allocations = si.AllocationRequest(rmID=RM_ID)
        self._new_applications = False
        self._new_allocations = False
        self._prototypes: dict[tuple[tuple[str, int], ...], si.AllocationAsk] = {}

    def requests(self) -> list[Request]:
        """What is to be sent now, applications first; the outbox is then empty."""
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

    def nodes(self, nodes: tuple[NodeSpec, ...]) -> si.NodeRequest:
        """All nodes of the cluster, at once."""
        self._count("NodeRequest", nodes=nodes)
        return si.NodeRequest(
            rmID=RM_ID,
            nodes=[
                si.NodeInfo(
                    nodeID=node.name,
                    action=si.NodeInfo.CREATE,
                    attributes=node.attributes,
                    schedulableResource=_resource(node.resources),
                )
                for node in nodes
            ],
        )

    # -- a job ---------------------------------------------------------------------------------

    def add(self, run: Run) -> None:
        """Submit the application; a gang says how much it will hold, and how long it may."""
        job = run.job
        message = self._applications.new.add(
            applicationID=run.key,
            queueName=f"root.{job.queue}",
            partitionName=PARTITION,
            ugi=si.UserGroupInformation(user=job.user, groups=[job.user]),
        )
        if run.gang:
            message.placeholderAsk.CopyFrom(_resource(job.total()))
            message.gangSchedulingStyle = self._options.gang_style
            message.executionTimeoutMilliSeconds = round(self._options.placeholder_timeout_s * 1000)
        self._new_applications = True

    def remove(self, run: Run) -> None:
        """Take the application away, with all that is its own."""
        self._applications.remove.add(applicationID=run.key, partitionName=PARTITION)
        self._new_applications = True

    def ask(self, pod: Pod) -> None:
        """Ask for one pod: one ask a member with maxAllocations 1 (G35)."""
        resources = pod.resources
        size = tuple(resources.items())
        prototype = self._prototypes.get(size)
        if prototype is None:
            prototype = self._prototypes[size] = si.AllocationAsk(
                partitionName=PARTITION, resourceAsk=_resource(resources), maxAllocations=1
            )
        ask = self._allocations.asks.add()
        ask.CopyFrom(prototype)
        run = pod.run
        ask.allocationKey = pod.key
        ask.applicationID = run.key
        if run.gang:
            ask.taskGroupName = group_name(pod.group)
            ask.placeholder = pod.placeholder
        self._new_allocations = True

    def release(self, pod: Pod, kind: si.TerminationType) -> None:
        """Say that the pod is gone: its own end, or a confirmation with the same type (R3)."""
        self._allocations.releases.allocationsToRelease.add(
            partitionName=PARTITION,
            applicationID=pod.run.key,
            UUID=pod.uuid,
            allocationKey=pod.key,
            terminationType=kind,
        )
        self._new_allocations = True

    def release_ask(self, pod: Pod, kind: si.TerminationType) -> None:
        """Take an ask back, or confirm that it is taken back."""
        self._allocations.releases.allocationAsksToRelease.add(
            partitionName=PARTITION,
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
