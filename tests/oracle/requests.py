"""The steps in which the resource manager says something: as the README's arguments, or as SI requests."""

from collections.abc import Sequence
from typing import Any

from google.protobuf.json_format import ParseDict, ParseError

from quadriga import si
from quadriga.core import Scheduler
from quadriga.core.driver.service import SchedulerService
from quadriga.sim.scripted.script import resource


class NotUnderstood(ValueError):
    """A step that is not as the README says."""


class Requests:
    """One method for each such step, with its name; what is not given has the README's default."""

    _service: SchedulerService

    def __init__(self, *, by_key: bool = False) -> None:
        self.rm_id = "rm:123"
        #: speaks as since SI 1.6: asks are allocations without a node, and keys name them (X45)
        self._by_key = by_key

    def _updateNode(self, request: dict[str, Any]) -> None:
        self._service.update_node(self._parsed(request, si.NodeRequest()))

    def _updateApplication(self, request: dict[str, Any]) -> None:
        message = self._parsed(request, si.ApplicationRequest())
        for new in message.new:
            if not new.placeholderAsk.resources:
                new.executionTimeoutMilliSeconds = 0  # X17
        self._service.update_application(message)

    def _updateAllocation(self, request: dict[str, Any]) -> None:
        message = self._parsed(request, si.AllocationRequest())
        for ask in message.asks:
            ask.executionTimeoutMilliSeconds = 0  # X17
        self._service.update_allocation(message)

    def _parsed(self, request: dict[str, Any], message: Any) -> Any:
        try:
            ParseDict(request, message)
        except ParseError as problem:
            raise NotUnderstood(str(problem)) from None
        message.rmID = message.rmID or self.rm_id
        return message

    def _addNode(
        self,
        nodeID: str,
        resources: dict[str, int] | None = None,
        occupied: dict[str, int] | None = None,
        attributes: dict[str, str] | None = None,
        action: str = "CREATE",
    ) -> None:
        info = si.NodeInfo(
            nodeID=nodeID,
            action=_value(si.NodeInfo.ActionFromRM, action),
            attributes=attributes or {},
        )
        if resources is not None:
            info.schedulableResource.CopyFrom(resource(resources))
        if occupied is not None:
            info.occupiedResource.CopyFrom(resource(occupied))
        self._service.update_node(si.NodeRequest(rmID=self.rm_id, nodes=[info]))

    _nodeAction = _addNode

    def _addApp(
        self,
        appID: str,
        queue: str = "",
        partition: str = "default",
        user: str = "testuser",
        groups: Sequence[str] = (),
        tags: dict[str, str] | None = None,
        placeholderAsk: dict[str, int] | None = None,
        gangSchedulingStyle: str = "",
        executionTimeoutMs: int = 0,
    ) -> None:
        request = si.AddApplicationRequest(
            applicationID=appID,
            queueName=queue,
            partitionName=partition,
            ugi=si.UserGroupInformation(user=user, groups=groups),
            tags=tags or {},
            gangSchedulingStyle=gangSchedulingStyle,
        )
        if placeholderAsk:
            request.placeholderAsk.CopyFrom(resource(placeholderAsk))
            # in the Go core 0 and negative are the default (X17)
            request.executionTimeoutMilliSeconds = max(0, executionTimeoutMs)
        self._service.update_application(si.ApplicationRequest(rmID=self.rm_id, new=[request]))

    def _removeApp(self, appID: str, partition: str = "default") -> None:
        removal = si.RemoveApplicationRequest(applicationID=appID, partitionName=partition)
        self._service.update_application(si.ApplicationRequest(rmID=self.rm_id, remove=[removal]))

    def _ask(
        self,
        appID: str,
        resources: dict[str, int] | None = None,
        keys: Sequence[str] = (),
        key: str = "",
        max: int = 1,
        placeholder: bool = False,
        taskGroup: str = "",
        priority: int = 0,
        tags: dict[str, str] | None = None,
        originator: bool = False,
        allowPreemptSelf: bool | None = None,
        allowPreemptOther: bool | None = None,
        executionTimeoutMs: int = 0,
        partition: str = "default",
    ) -> None:
        asks = []
        for each in keys or (key,):
            # Without the time limit, which the Go core does not use (X17).
            ask = si.AllocationAsk(
                allocationKey=each,
                applicationID=appID,
                partitionName=partition,
                resourceAsk=resource(resources or {}),
                maxAllocations=max,
                placeholder=placeholder,
                taskGroupName=taskGroup,
                priority=priority,
                tags=tags or {},
                Originator=originator,
            )
            if allowPreemptSelf is not None or allowPreemptOther is not None:
                ask.preemptionPolicy.CopyFrom(
                    si.PreemptionPolicy(
                        allowPreemptSelf=bool(allowPreemptSelf),
                        allowPreemptOther=bool(allowPreemptOther),
                    )
                )
            asks.append(ask)
        request = si.AllocationRequest(rmID=self.rm_id)
        if self._by_key:
            request.allocations.extend(map(_as_allocation, asks))
        else:
            request.asks.extend(asks)
        self._service.update_allocation(request)

    def _releaseAlloc(
        self,
        appID: str,
        allocationID: str = "",
        terminationType: str = "UNKNOWN_TERMINATION_TYPE",
        message: str = "",
        partition: str = "default",
    ) -> None:
        self._release(
            si.AllocationRelease(
                partitionName=partition,
                applicationID=appID,
                UUID=self._ours(partition, appID, allocationID),
                terminationType=termination(terminationType),
                message=message,
            )
        )

    def _ours(self, partition: str, app_id: str, allocation_id: str) -> str:
        """What ours calls an allocation: numbers go on, and in the Go core they begin at 0 again (X46)."""

        def first_number(core: Scheduler) -> int:
            try:
                app = core.partition(partition, self.rm_id).applications.get(app_id)
            except KeyError:
                return 0
            return app.first_number if app is not None else 0

        key, _, number = allocation_id.rpartition("-")
        more = self._service.read(first_number)
        return f"{key}-{int(number) + more}" if more and number.isdecimal() else allocation_id

    def _releaseAsk(
        self,
        appID: str,
        key: str = "",
        terminationType: str = "UNKNOWN_TERMINATION_TYPE",
        message: str = "",
        partition: str = "default",
    ) -> None:
        release = si.AllocationAskRelease(
            partitionName=partition,
            applicationID=appID,
            allocationKey=key,
            terminationType=termination(terminationType),
            message=message,
        )
        releases = si.AllocationReleasesRequest(allocationAsksToRelease=[release])
        self._service.update_allocation(si.AllocationRequest(rmID=self.rm_id, releases=releases))

    def _release(self, release: si.AllocationRelease) -> None:
        if self._by_key:
            release.allocationKey = release.allocationKey or release.UUID.removesuffix("-0")
            release.UUID = ""
        releases = si.AllocationReleasesRequest(allocationsToRelease=[release])
        self._service.update_allocation(si.AllocationRequest(rmID=self.rm_id, releases=releases))


def _as_allocation(ask: si.AllocationAsk) -> si.Allocation:
    allocation = si.Allocation(
        allocationKey=ask.allocationKey,
        applicationID=ask.applicationID,
        partitionName=ask.partitionName,
        resourcePerAlloc=ask.resourceAsk,
        placeholder=ask.placeholder,
        taskGroupName=ask.taskGroupName,
        priority=ask.priority,
        allocationTags=ask.tags,
        originator=ask.Originator,
    )
    if ask.HasField("preemptionPolicy"):
        allocation.preemptionPolicy.CopyFrom(ask.preemptionPolicy)
    return allocation


def termination(name: str) -> Any:
    return _value(si.TerminationType, name)


def _value(enum: Any, name: str) -> Any:
    try:
        return enum.Value(name)
    except ValueError as problem:
        raise NotUnderstood(str(problem)) from None
