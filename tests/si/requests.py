"""Requests in short, for the tests of the remote side. Of resource manager ``rm`` if not said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quadriga.si import (
    AddApplicationRequest,
    AllocationAsk,
    AllocationRelease,
    AllocationReleasesRequest,
    AllocationRequest,
    ApplicationRequest,
    NodeInfo,
    NodeRequest,
    TerminationType,
    UserGroupInformation,
)
from quadriga.sim.script import resource


def nodes(*names: str, vcore: int = 4000, rm_id: str = "rm") -> NodeRequest:
    return NodeRequest(
        rmID=rm_id,
        nodes=[
            NodeInfo(
                nodeID=name,
                action=NodeInfo.CREATE,
                schedulableResource=resource({"vcore": vcore}),
            )
            for name in names
        ],
    )


def apps(
    *names: str, gang: Mapping[str, int] | None = None, rm_id: str = "rm", **more: Any
) -> ApplicationRequest:
    return ApplicationRequest(
        rmID=rm_id,
        new=[
            AddApplicationRequest(
                applicationID=name,
                queueName="root.default",
                ugi=UserGroupInformation(user="user", groups=["all"]),
                placeholderAsk=resource(gang) if gang else None,
                **more,
            )
            for name in names
        ],
    )


def asks(
    app_id: str,
    *keys: str,
    vcore: int = 100,
    group: str = "",
    placeholder: bool = False,
    rm_id: str = "rm",
) -> AllocationRequest:
    return AllocationRequest(
        rmID=rm_id,
        asks=[
            AllocationAsk(
                allocationKey=key,
                applicationID=app_id,
                resourceAsk=resource({"vcore": vcore}),
                maxAllocations=1,
                taskGroupName=group,
                placeholder=placeholder,
            )
            for key in keys
        ],
    )


def releases(
    app_id: str,
    *uuids: str,
    kind: TerminationType = TerminationType.STOPPED_BY_RM,
    rm_id: str = "rm",
) -> AllocationRequest:
    return AllocationRequest(
        rmID=rm_id,
        releases=AllocationReleasesRequest(
            allocationsToRelease=[
                AllocationRelease(
                    partitionName="default", applicationID=app_id, UUID=uuid, terminationType=kind
                )
                for uuid in uuids
            ]
        ),
    )
