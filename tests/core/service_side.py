"""For the in-process service: a resource manager that writes down what it hears, and a story."""

import threading
from collections.abc import Callable
from typing import Any

from quadriga import si
from quadriga.core import Scheduler
from quadriga.sim.scripted.script import ONE_QUEUE, resource

#: nothing here takes this long (s), on however slow a machine; it only ends a test that would hang
PATIENCE = 600.0


class Heard(si.NullCallback):
    """Writes down every call, in order, and lets a test wait for what it expects."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, bytes]] = []
        self.messages: list[Any] = []
        self._changed = threading.Condition()

    def _note(self, method: str, message: Any) -> None:
        with self._changed:
            self.calls.append((method, message.SerializeToString(deterministic=True)))
            self.messages.append(message)
            self._changed.notify_all()

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self._note("allocation", response)

    def update_application(self, response: si.ApplicationResponse) -> None:
        self._note("application", response)

    def update_node(self, response: si.NodeResponse) -> None:
        self._note("node", response)

    def update_container_scheduling_state(
        self, request: si.UpdateContainerSchedulingStateRequest
    ) -> None:
        self._note("container", request)

    def wait_for(self, what: Callable[[list[Any]], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: what(self.messages), PATIENCE)


def register(rm_id: str = "rm", **fields: Any) -> si.RegisterResourceManagerRequest:
    fields.setdefault("config", ONE_QUEUE)
    return si.RegisterResourceManagerRequest(rmID=rm_id, **fields)


def of(rm_id: str, message: Any) -> Any:
    """The message of this resource manager."""
    message.rmID = rm_id
    return message


def nodes(*names: str, vcore: int = 4000, action: int = si.NodeInfo.CREATE) -> si.NodeRequest:
    infos = [
        si.NodeInfo(nodeID=n, action=action, schedulableResource=resource({"vcore": vcore}))  # type: ignore[arg-type]
        for n in names
    ]
    return si.NodeRequest(rmID="rm", nodes=infos)


def apps(*names: str, gang: int = 0, style: str = "", timeout_ms: int = 0) -> si.ApplicationRequest:
    new = [
        si.AddApplicationRequest(
            applicationID=name,
            queueName="root.default",
            ugi=si.UserGroupInformation(user="ann"),
            placeholderAsk=resource({"vcore": gang}) if gang else None,
            gangSchedulingStyle=style,
            executionTimeoutMilliSeconds=timeout_ms,
        )
        for name in names
    ]
    return si.ApplicationRequest(rmID="rm", new=new)


def asks(app: str, *keys: str, vcore: int = 1000, **fields: Any) -> si.AllocationRequest:
    made = [
        si.AllocationAsk(
            allocationKey=key,
            applicationID=app,
            resourceAsk=resource({"vcore": vcore}),
            maxAllocations=fields.get("repeat", 1),
            taskGroupName=fields.get("group", ""),
            placeholder=fields.get("placeholder", False),
        )
        for key in keys
    ]
    return si.AllocationRequest(rmID="rm", asks=made)


def release(
    app: str, uuid: str, kind: si.TerminationType = si.TerminationType.STOPPED_BY_RM
) -> si.AllocationRequest:
    one = si.AllocationRelease(
        partitionName="default", applicationID=app, UUID=uuid, terminationType=kind
    )
    releases = si.AllocationReleasesRequest(allocationsToRelease=[one])
    return si.AllocationRequest(rmID="rm", releases=releases)


SECOND = 10**9
REPLACED = si.TerminationType.PLACEHOLDER_REPLACED

#: what a resource manager does, and when (s): a gang with two members, an ordinary application,
#: mistakes, a node that goes, the end of both
STORY: list[tuple[int, Any]] = [
    (1, nodes("n1", "n2")),
    (1, nodes("n1")),
    (2, apps("gang", gang=4000, style="Hard")),
    (2, apps("plain", "plain")),
    (3, asks("gang", "p0", "p1", vcore=2000, group="g", placeholder=True)),
    (3, asks("plain", "a", vcore=1000, repeat=3)),
    (4, asks("gang", "r0", "r1", vcore=2000, group="g")),
    (5, release("gang", "p0-0", REPLACED)),
    (5, release("gang", "p1-0", REPLACED)),
    (6, asks("nobody", "x")),
    (6, si.UpdateConfigurationRequest(rmID="rm", config=ONE_QUEUE + "      # the same\n")),
    (7, release("plain", "a-1")),
    (8, nodes("n2", action=si.NodeInfo.DRAIN_NODE)),
    (9, nodes("n2", action=si.NodeInfo.DECOMISSION)),
    (10, release("gang", "")),
    (10, release("plain", "")),
    (11, apps("late")),
    (60, asks("late", "z", vcore=9000)),
    (62, apps("end")),
]

SEND: dict[type[Any], str] = {
    si.AllocationRequest: "update_allocation",
    si.ApplicationRequest: "update_application",
    si.NodeRequest: "update_node",
    si.UpdateConfigurationRequest: "update_configuration",
}
METHOD: dict[type[Any], str] = {
    si.AllocationResponse: "allocation",
    si.ApplicationResponse: "application",
    si.NodeResponse: "node",
    si.UpdateContainerSchedulingStateRequest: "container",
}


def send(api: si.SchedulerAPI, *messages: Any) -> None:
    for message in messages:
        getattr(api, SEND[type(message)])(message)


def begin(api: si.SchedulerAPI, callback: Any, *messages: Any) -> None:
    """Register, and send these."""
    api.register_resource_manager(register(), callback)
    send(api, *messages)


def bare_core() -> list[tuple[str, bytes]]:
    """What the core says to the story when nothing is between."""
    core = Scheduler()
    outputs = list(core.apply(register(), 0))
    for at, message in STORY:
        outputs += core.advance(at * SECOND)
        outputs += core.apply(message, at * SECOND)
        outputs += core.schedule(at * SECOND)
    assert core.check() == []
    return [
        (METHOD[type(m)], m.SerializeToString(deterministic=True))
        for _, m in outputs
        if type(m) in METHOD  # event records are told apart from the story
    ]


def placed(heard: Heard) -> list[tuple[str, str]]:
    found = [n for m in heard.messages if isinstance(m, si.AllocationResponse) for n in m.new]
    return [(n.UUID, n.nodeID) for n in found]
