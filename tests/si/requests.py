"""Requests in short, for the tests of the remote side. Of resource manager ``rm`` if not said."""

from collections.abc import Mapping
from typing import Any

from quadriga import si

#: one queue, for everybody
QUEUES = """\
partitions:
  - name: default
    queues: [{name: root, submitacl: '*', queues: [{name: default}]}]
"""


def register(rm_id: str = "rm", **more: Any) -> si.RegisterResourceManagerRequest:
    return si.RegisterResourceManagerRequest(rmID=rm_id, config=QUEUES, **more)


def resource(amounts: Mapping[str, int]) -> si.Resource:
    return si.Resource(resources={name: si.Quantity(value=n) for name, n in amounts.items()})


def nodes(*names: str, vcore: int = 4000, rm_id: str = "rm") -> si.NodeRequest:
    return si.NodeRequest(
        rmID=rm_id,
        nodes=[
            si.NodeInfo(
                nodeID=name,
                action=si.NodeInfo.CREATE,
                schedulableResource=resource({"vcore": vcore}),
            )
            for name in names
        ],
    )


def apps(
    *names: str, gang: Mapping[str, int] | None = None, rm_id: str = "rm", **more: Any
) -> si.ApplicationRequest:
    return si.ApplicationRequest(
        rmID=rm_id,
        new=[
            si.AddApplicationRequest(
                applicationID=name,
                queueName="root.default",
                ugi=si.UserGroupInformation(user="user", groups=["all"]),
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
    repeat: int = 1,
    rm_id: str = "rm",
    **more: Any,
) -> si.AllocationRequest:
    return si.AllocationRequest(
        rmID=rm_id,
        asks=[
            si.AllocationAsk(
                allocationKey=key,
                applicationID=app_id,
                resourceAsk=resource({"vcore": vcore}),
                maxAllocations=repeat,
                taskGroupName=group,
                placeholder=placeholder,
                **more,
            )
            for key in keys
        ],
    )


def releases(
    app_id: str,
    *uuids: str,
    kind: si.TerminationType = si.TerminationType.STOPPED_BY_RM,
    rm_id: str = "rm",
) -> si.AllocationRequest:
    return si.AllocationRequest(
        rmID=rm_id,
        releases=si.AllocationReleasesRequest(
            allocationsToRelease=[
                si.AllocationRelease(
                    partitionName="default", applicationID=app_id, UUID=uuid, terminationType=kind
                )
                for uuid in uuids
            ]
        ),
    )


def work(rm: Any, *keys: str) -> None:
    """A node, an application ``a``, and an ask for each key."""
    rm.update_node(nodes("n1"))
    rm.update_application(apps("a"))
    rm.update_allocation(asks("a", *keys))
