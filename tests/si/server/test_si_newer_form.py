"""A resource manager of SI 1.7, made of field numbers: it knows no AllocationAsk and no UUID (X45)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import message_factory
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from quadriga.sim.scripted.script import Script
from tests.si.wire import RM, House, Wire, until

STOPPED, TIMEOUT, REPLACED = 1, 2, 4

_KINDS = {
    "text": FieldDescriptorProto.TYPE_STRING,
    "whole": FieldDescriptorProto.TYPE_INT32,
    "large": FieldDescriptorProto.TYPE_INT64,
    "yes": FieldDescriptorProto.TYPE_BOOL,
}

#: message: fields as ``name=number kind``; a kind with a * is repeated
NEWER = {
    "Quantity": "value=1 large",
    "Resource": "resources=1 Resource.Entry*",
    "Resource.Entry": "key=1 text, value=2 Quantity",
    "Policy": "allowPreemptSelf=1 yes, allowPreemptOther=2 yes",
    "Allocation": (
        "allocationKey=1 text, allocationTags=2 Allocation.Entry*, resourcePerAlloc=5 Resource, "
        "priority=6 whole, nodeID=8 text, applicationID=9 text, partitionName=10 text, "
        "taskGroupName=11 text, placeholder=12 yes, originator=14 yes, preemptionPolicy=15 Policy"
    ),
    "Allocation.Entry": "key=1 text, value=2 text",
    "Release": (
        "partitionName=1 text, applicationID=2 text, terminationType=4 whole, message=5 text, "
        "allocationKey=6 text"
    ),
    "Releases": "allocationsToRelease=1 Release*",
    "Rejected": "allocationKey=1 text, applicationID=2 text, reason=3 text",
    "Request": "releases=2 Releases, rmID=3 text, allocations=4 Allocation*",
    "Response": "new=1 Allocation*, released=2 Release*, rejectedAllocations=5 Rejected*",
}


def _messages() -> dict[str, Any]:
    file = FileDescriptorProto(name="newer.proto", package="newer", syntax="proto3")
    made: dict[str, Any] = {}
    for name, fields in NEWER.items():
        outer, _, inner = name.partition(".")
        message = (
            made[outer].nested_type.add(name=inner) if inner else file.message_type.add(name=name)
        )
        made[name] = message
        message.options.map_entry = bool(inner)
        for text in fields.split(", "):
            called, _, rest = text.partition("=")
            number, kind = rest.split()
            field = message.field.add(name=called, number=int(number))
            several = kind.endswith("*")
            kind = kind.rstrip("*")
            field.label = field.LABEL_REPEATED if several else field.LABEL_OPTIONAL
            field.type = _KINDS.get(kind, field.TYPE_MESSAGE)
            if kind not in _KINDS:
                field.type_name = f".newer.{kind}"
    pool = DescriptorPool()
    pool.Add(file) if hasattr(pool, "Add") else pool.AddSerializedFile(file.SerializeToString())
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"newer.{name}"))
        for name in NEWER
        if "." not in name
    }


SI = _messages()
Allocation, Release, Request = SI["Allocation"], SI["Release"], SI["Request"]


class Newer(RM):
    """Speaks the newer form on its stream of allocations."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        super().__init__(channel)
        self._call = channel.stream_stream(
            "/si.v1.Scheduler/UpdateAllocation",
            request_serializer=Request.SerializeToString,
            response_deserializer=SI["Response"].FromString,
        )

    async def start(self) -> Newer:
        await self.register()
        for name in ("UpdateApplication", "UpdateNode"):
            await self.open(name).call.initial_metadata()
        metadata = [("quadriga-rm-id", self.rm_id)]
        self.pods = self.wires["UpdateAllocation"] = Wire(self._call(metadata=metadata)).listen()
        await self.pods.call.initial_metadata()
        await self.has_node(vcore=4000)
        return self

    async def ask(self, *allocations: Any) -> None:
        await self.pods.say(Request(rmID=self.rm_id, allocations=allocations))

    async def release(self, app: str, *keys: str, kind: int = STOPPED) -> None:
        request = Request(rmID=self.rm_id)
        for key in keys:
            request.releases.allocationsToRelease.add(
                partitionName="default", applicationID=app, allocationKey=key, terminationType=kind
            )
        await self.pods.say(request)

    def told(self) -> list[str]:
        """What it has heard of its pods, as far as it can read it."""
        found = []
        for message in self.pods.got:
            found += [f"new {each.allocationKey} on {each.nodeID}" for each in message.new]
            found += [
                f"released {each.allocationKey} {each.terminationType}" for each in message.released
            ]
            found += [f"rejected {each.allocationKey}" for each in message.rejectedAllocations]
        return found

    async def hears(self, *lines: str) -> None:
        await until(lambda: len(self.told()) >= len(lines), f"{lines}, and not {self.told()}")
        assert self.told() == list(lines)


def pod(app: str, key: str, vcore: int = 1000, **more: Any) -> Any:
    allocation = Allocation(allocationKey=key, applicationID=app, partitionName="default", **more)
    allocation.resourcePerAlloc.resources["vcore"].value = vcore
    return allocation


@pytest.mark.asyncio
async def test_x45_the_life_of_a_pod_by_a_client_of_si_1_7(place: House) -> None:
    rm = await Newer(place.channel()).start()
    await rm.submits("app")
    tags = {"kubernetes.io/label/app": "x"}
    await rm.ask(
        pod("app", "pod-1", allocationTags=tags, priority=5),
        pod("app", "pod-2", originator=True, preemptionPolicy={"allowPreemptOther": True}),
        pod("app", "large", 9000),
        pod("nobody", "lost"),
    )
    await rm.hears("rejected lost", "new pod-1 on n1", "new pod-2 on n1")
    first, second = rm.allocations
    assert (dict(first.allocationTags), first.priority) == (tags, 5)
    assert first.applicationID == "app"
    assert second.originator
    assert second.preemptionPolicy.allowPreemptOther

    await rm.release("app", "large", "pod-1")
    await rm.hears(*rm.told()[:3], "released large 1", "released pod-1 1")
    await rm.ask(pod("app", "pod-2", 2000))  # it is larger now, and is not asked for once more
    await rm.ask(pod("app", "pod-3", 2000))
    await rm.hears(*rm.told()[:5], "new pod-3 on n1")
    await rm.release("app", "pod-2", "pod-3")
    await rm.hears(*rm.told()[:6], "released pod-2 1", "released pod-3 1")
    # as after a restart: it reports what runs, and asks for the rest
    await rm.ask(pod("app", "ran", 3000, nodeID="n1"), pod("app", "waits", 2000))
    await rm.hears(*rm.told()[:8], "new ran on n1")
    await rm.release("app", "ran")
    await rm.hears(*rm.told()[:9], "released ran 1", "new waits on n1")


def test_x1_x8_x45_docs_say_which_versions_are_spoken_and_what_a_shim_sets() -> None:
    """The settings of the page are those that give the shim the states and the order that it knows."""
    repository = Path(__file__).parents[3]
    page = (repository / "docs" / "grpc.md").read_text()
    (section,) = re.findall(r"## Versions of the interface\n(.*?)\n## ", page, re.DOTALL)
    assert "up to 1.8" in section and "has no gRPC client" in section
    settings = dict(re.findall(r"`(si\.\w+): (\w+)`", section))
    assert settings == {"si.stateNames": "yunikorn", "si.messageOrder": "k8shim"}
    script = Script(extra=settings)
    script.node("n1", vcore=1000)
    script.app("app")
    script.ask("app", "pod", vcore=1000, by_key=True)
    script.schedule()
    heard = script.release("app", key="pod")
    assert heard == ["app Completing (completeApplication)", "released app/pod-0 STOPPED_BY_RM"]
    readme = (repository / "README.md").read_text()
    for said in ("up to 1.8", "no gRPC client", "`si.stateNames: yunikorn`", "docs/grpc.md"):
        assert said in readme
