"""A scripted resource manager that records what it receives.

For tests, examples and golden message flows. Every step sends one message or lets time pass, and
returns the resulting messages of the scheduler: one short line for each item of each response.
Lines of one response are adjacent; ``messages`` has the responses themselves.

    script = Script()
    script.node("n1", vcore=4000)
    script.app("app-1")
    script.ask("app-1", "a", vcore=1000)     # ["app-1 Accepted (ask)"]
    script.schedule()                        # ["app-1 Running (run)", "new app-1/a-0 on n1"]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from quadriga.base.times import SECOND
from quadriga.core import Options, Output, Scheduler
from quadriga.si import (
    AddApplicationRequest,
    Allocation,
    AllocationAsk,
    AllocationAskRelease,
    AllocationRelease,
    AllocationReleasesRequest,
    AllocationRequest,
    AllocationResponse,
    ApplicationRequest,
    EventRecord,
    NodeInfo,
    NodeRequest,
    PreemptionPolicy,
    Quantity,
    RegisterResourceManagerRequest,
    RemoveApplicationRequest,
    Resource,
    TerminationType,
    UpdateConfigurationRequest,
    UserGroupInformation,
)
from quadriga.si.lines import lines

#: a configuration with one queue for everyone, ``root.default``
ONE_QUEUE: Final = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: default
"""

_OPTIONS: Final = Options(journal_size=None, gang_admission="whole", node_sort_policy="fair")

#: kinds of release that the resource manager confirms (R2)
_BY_CORE: Final = (
    TerminationType.TIMEOUT,
    TerminationType.PREEMPTED_BY_SCHEDULER,
    TerminationType.PLACEHOLDER_REPLACED,
)


def resource(quantities: Mapping[str, int]) -> Resource:
    """A resource message; vcore in milli, memory in bytes."""
    return Resource(resources={name: Quantity(value=value) for name, value in quantities.items()})


class Script:
    """One resource manager with a scheduler of its own, or a given one.

    Without ``options`` gangs get their placeholders one by one, as in the flows of the design document
    (``gang.admission: whole``). ``check`` makes every step check the scheduler's invariants. Times are in seconds here.
    """

    def __init__(
        self,
        config: str = ONE_QUEUE,
        *,
        extra: Mapping[str, str] | None = None,
        rm_id: str = "rm",
        options: Options | None = None,
        scheduler: Scheduler | None = None,
        check: bool = True,
        version: str = "",
        policy_group: str = "",
    ) -> None:
        self.scheduler = scheduler or Scheduler(options or _OPTIONS)
        self.rm_id = rm_id
        self.check = check
        self.now = self.scheduler.now
        self.messages: list[Output] = []
        #: event records, which come every two seconds, kept apart from the answers
        self.events: list[EventRecord] = []
        self.log: list[str] = []
        #: unconfirmed releases by the scheduler, oldest first
        self.outstanding: list[AllocationRelease] = []
        self.send(
            RegisterResourceManagerRequest(
                rmID=rm_id,
                config=config,
                extraConfig=extra or {},
                version=version,
                policyGroup=policy_group,
            )
        )

    # -- time and decisions ------------------------------------------------------------------------

    def schedule(self, limit: int | None = None) -> list[str]:
        """Run at most ``limit`` scheduling rounds."""
        return self._heard(self.scheduler.schedule(self.now, limit))

    def advance(self, seconds: float) -> list[str]:
        """Let time pass: timers fire, but nothing is scheduled."""
        self.now += round(seconds * SECOND)
        return self._heard(self.scheduler.advance(self.now))

    # -- messages ------------------------------------------------------------------------------------

    def send(
        self,
        message: RegisterResourceManagerRequest
        | UpdateConfigurationRequest
        | ApplicationRequest
        | AllocationRequest
        | NodeRequest,
    ) -> list[str]:
        """Send any message. Raises what the scheduler raises."""
        return self._heard(self.scheduler.apply(message, self.now))

    def configure(self, config: str, extra: Mapping[str, str] | None = None) -> list[str]:
        """UpdateConfiguration."""
        return self.send(
            UpdateConfigurationRequest(rmID=self.rm_id, config=config, extraConfig=extra or {})
        )

    def node(
        self,
        name: str,
        action: NodeInfo.ActionFromRM = NodeInfo.CREATE,
        *,
        attributes: Mapping[str, str] | None = None,
        occupied: Mapping[str, int] | None = None,
        existing: Iterable[object] = (),
        **quantities: int,
    ) -> list[str]:
        """One NodeInfo; without quantities its capacity is left out."""
        info = NodeInfo(
            nodeID=name,
            action=action,
            attributes=attributes or {},
            existingAllocations=existing,  # type: ignore[arg-type]
        )
        if quantities:
            info.schedulableResource.CopyFrom(resource(quantities))
        if occupied is not None:
            info.occupiedResource.CopyFrom(resource(occupied))
        return self.send(NodeRequest(rmID=self.rm_id, nodes=[info]))

    def app(
        self,
        app_id: str,
        queue: str = "root.default",
        *,
        user: str = "user",
        groups: Iterable[str] = (),
        gang: Mapping[str, int] | None = None,
        style: str = "Soft",
        timeout_ms: int = 0,
        tags: Mapping[str, str] | None = None,
        partition: str = "",
    ) -> list[str]:
        """One AddApplicationRequest; ``gang`` is its placeholderAsk."""
        request = AddApplicationRequest(
            applicationID=app_id,
            queueName=queue,
            partitionName=partition,
            ugi=UserGroupInformation(user=user, groups=groups),
            tags=tags or {},
            executionTimeoutMilliSeconds=timeout_ms,
            gangSchedulingStyle=style,
        )
        if gang:
            request.placeholderAsk.CopyFrom(resource(gang))
        return self.send(ApplicationRequest(rmID=self.rm_id, new=[request]))

    def remove_app(self, app_id: str) -> list[str]:
        """One RemoveApplicationRequest."""
        removal = RemoveApplicationRequest(applicationID=app_id)
        return self.send(ApplicationRequest(rmID=self.rm_id, remove=[removal]))

    def ask(
        self,
        app_id: str,
        *keys: str,
        group: str = "",
        placeholder: bool = False,
        repeat: int = 1,
        priority: int = 0,
        timeout_ms: int = 0,
        tags: Mapping[str, str] | None = None,
        originator: bool = False,
        preempt: tuple[bool, bool] | None = None,
        partition: str = "",
        by_key: bool = False,
        **quantities: int,
    ) -> list[str]:
        """One AllocationRequest with an ask for each key; the asks differ only in their keys.

        ``preempt`` is the PreemptionPolicy: whether the ask may be preempted, and may preempt
        others. ``by_key`` sends Allocations without a node, which have neither ``repeat`` nor
        ``timeout_ms`` (X45).
        """
        policy = None
        if preempt is not None:
            policy = PreemptionPolicy(allowPreemptSelf=preempt[0], allowPreemptOther=preempt[1])
        if by_key:
            allocations = [
                Allocation(
                    allocationKey=key,
                    applicationID=app_id,
                    partitionName=partition,
                    resourcePerAlloc=resource(quantities),
                    priority=priority,
                    allocationTags=tags or {},
                    taskGroupName=group,
                    placeholder=placeholder,
                    originator=originator,
                    preemptionPolicy=policy,
                )
                for key in keys
            ]
            return self.send(AllocationRequest(rmID=self.rm_id, allocations=allocations))
        asks = [
            AllocationAsk(
                allocationKey=key,
                applicationID=app_id,
                partitionName=partition,
                resourceAsk=resource(quantities),
                maxAllocations=repeat,
                priority=priority,
                executionTimeoutMilliSeconds=timeout_ms,
                tags=tags or {},
                taskGroupName=group,
                placeholder=placeholder,
                Originator=originator,
                preemptionPolicy=policy,
            )
            for key in keys
        ]
        return self.send(AllocationRequest(rmID=self.rm_id, asks=asks))

    def release(
        self,
        app_id: str,
        uuid: str = "",
        kind: TerminationType = TerminationType.STOPPED_BY_RM,
        *,
        key: str = "",
        partition: str = "default",
    ) -> list[str]:
        """One AllocationRelease: by UUID, by allocation key, or (neither) of all (R6)."""
        return self._release(
            AllocationRelease(
                partitionName=partition,
                applicationID=app_id,
                UUID=uuid,
                allocationKey=key,
                terminationType=kind,
            )
        )

    def release_ask(
        self,
        app_id: str,
        key: str = "",
        kind: TerminationType = TerminationType.STOPPED_BY_RM,
        *,
        partition: str = "default",
    ) -> list[str]:
        """One AllocationAskRelease (R7)."""
        release = AllocationAskRelease(
            partitionName=partition, applicationID=app_id, allocationKey=key, terminationType=kind
        )
        releases = AllocationReleasesRequest(allocationAsksToRelease=[release])
        return self.send(AllocationRequest(rmID=self.rm_id, releases=releases))

    def confirm(self, *kinds: TerminationType, most: int | None = None) -> list[str]:
        """Confirm outstanding releases of these kinds (default: all), with one request each
        (R3)."""
        wanted = [r for r in self.outstanding if r.terminationType in (kinds or _BY_CORE)][:most]
        heard: list[str] = []
        for release in wanted:
            self.outstanding.remove(release)
            heard.extend(self._release(release))
        return heard

    def _release(self, release: AllocationRelease) -> list[str]:
        releases = AllocationReleasesRequest(allocationsToRelease=[release])
        return self.send(AllocationRequest(rmID=self.rm_id, releases=releases))

    def _heard(self, outputs: list[Output]) -> list[str]:
        heard = []
        for output in outputs:
            message = output.message
            if isinstance(message, EventRecord):
                self.events.append(message)
                continue
            self.messages.append(output)
            heard.extend(lines(message))
            if isinstance(message, AllocationResponse):
                self.outstanding.extend(
                    r for r in message.released if r.terminationType in _BY_CORE
                )
        self.log.extend(heard)
        if self.check:
            assert not (wrong := self.scheduler.check()), "\n".join(wrong)
        return heard
