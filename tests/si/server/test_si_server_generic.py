"""A client that has nothing of ours: what it knows it has from the reflection service, as grpcurl."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from google.protobuf import descriptor_pb2, json_format, message_factory
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2

from tests.si.wire import PATIENCE, QUEUES, House, until


class Generic:
    """Calls methods by name, with messages as JSON would have them."""

    def __init__(self, channel: grpc.aio.Channel, version: str = "v1alpha") -> None:
        """``version`` of the reflection: the bytes are the same, only the service has another name."""
        self._channel = channel
        self._reflection = channel.stream_stream(
            f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
            request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
            response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
        )
        self.pool = DescriptorPool()
        self._files: dict[str, descriptor_pb2.FileDescriptorProto] = {}

    async def _ask(self, **question: str) -> Any:
        call = self._reflection()
        await call.write(reflection_pb2.ServerReflectionRequest(**question))
        await call.done_writing()
        answer = await call.read()
        assert await call.read() is grpc.aio.EOF
        return answer

    async def services(self) -> list[str]:
        answer = await self._ask(list_services="")
        return [each.name for each in answer.list_services_response.service]

    async def learn(self, symbol: str) -> None:
        answer = await self._ask(file_containing_symbol=symbol)
        await self._add(answer.file_descriptor_response.file_descriptor_proto)

    async def _add(self, files: Any) -> None:
        for data in files:
            file = descriptor_pb2.FileDescriptorProto.FromString(data)
            if file.name in self._files:
                continue
            self._files[file.name] = file
            for name in file.dependency:
                if name not in self._files:
                    answer = await self._ask(file_by_filename=name)
                    await self._add(answer.file_descriptor_response.file_descriptor_proto)
            self.pool.Add(file) if hasattr(self.pool, "Add") else self.pool.AddSerializedFile(data)

    def _method(self, path: str) -> tuple[Any, Any]:
        service, _, name = path.partition("/")
        method = self.pool.FindServiceByName(service).methods_by_name[name]
        types = (method.input_type, method.output_type)
        request, response = (message_factory.GetMessageClass(each) for each in types)
        how = {
            "request_serializer": request.SerializeToString,
            "response_deserializer": response.FromString,
        }
        return request, how

    async def unary(self, path: str, **fields: Any) -> dict[str, Any]:
        request, how = self._method(path)
        call = self._channel.unary_unary(f"/{path}", **how)
        answer = await call(json_format.ParseDict(fields, request()))
        said: dict[str, Any] = json_format.MessageToDict(answer)
        return said

    def stream(self, path: str) -> Conversation:
        request, how = self._method(path)
        return Conversation(self._channel.stream_stream(f"/{path}", **how)(), request)


class Conversation:
    def __init__(self, call: Any, request: Any) -> None:
        self.call = call
        self._request = request
        self.got: list[dict[str, Any]] = []
        self.task = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        while (message := await self.call.read()) is not grpc.aio.EOF:
            self.got.append(json_format.MessageToDict(message))

    async def say(self, **fields: Any) -> None:
        await self.call.write(json_format.ParseDict(fields, self._request()))

    def items(self, what: str) -> list[Any]:
        return [item for message in self.got for item in message.get(what, [])]


class Stranger:
    """A resource manager with one gang."""

    def __init__(self, client: Generic) -> None:
        self._client = client

    async def begin(self, config: str = QUEUES) -> None:
        """Find out what there is, and register."""
        client = self._client
        reflection = [f"grpc.reflection.{each}.ServerReflection" for each in ("v1", "v1alpha")]
        ours = ["quadriga.v1.Extension", "si.v1.Scheduler"]
        assert sorted(await client.services()) == ["grpc.health.v1.Health", *reflection, *ours]
        await client.learn("si.v1.Scheduler")
        await client.learn("quadriga.v1.Extension")
        path = "si.v1.Scheduler/RegisterResourceManager"
        assert await client.unary(path, rmID="stranger", version="1.4", config=config) == {}
        self.streams = self.nodes, self.apps, self.pods = tuple(
            client.stream(f"si.v1.Scheduler/Update{kind}")
            for kind in ("Node", "Application", "Allocation")
        )

    def members(self) -> list[Any]:
        return [each for each in self.pods.items("new") if not each.get("placeholder")]

    def states(self) -> set[str]:
        return {each["state"] for each in self.apps.items("updated")}

    async def ask(self, name: str, **more: Any) -> None:
        ask = {
            "applicationID": "gang",
            "taskGroupName": "workers",
            "maxAllocations": 1,
            "resourceAsk": {"resources": {"vcore": {"value": 1000}}},
            "tags": {"kubernetes.io/meta/namespace": "a", "kubernetes.io/meta/podName": "pod"},
            **more,
        }
        asks = [{**ask, "allocationKey": f"{name}-{at}"} for at in range(3)]
        await self.pods.say(rmID="stranger", asks=asks)

    async def run_a_gang(self) -> None:
        """Placeholders, and members in their place."""
        capacity = {"resources": {"vcore": {"value": 4000}}}
        node = {"nodeID": "n1", "action": "CREATE", "schedulableResource": capacity}
        await self.nodes.say(rmID="stranger", nodes=[node])
        await until(lambda: self.nodes.items("accepted"))
        app = {
            "applicationID": "gang",
            "queueName": "root.default",
            "ugi": {"user": "u", "groups": ["g"]},
            "placeholderAsk": {"resources": {"vcore": {"value": 3000}}},
            "gangSchedulingStyle": "Hard",
        }
        await self.apps.say(rmID="stranger", new=[app])
        await until(lambda: self.apps.items("accepted"))
        await self.ask("hold", placeholder=True)
        await until(lambda: len(self.pods.items("new")) == 3)
        await until(lambda: "Running" in self.states())
        await self.ask("pod")
        await until(lambda: len(self.pods.items("released")) == 3)
        for release in self.pods.items("released"):
            assert release["terminationType"] == "PLACEHOLDER_REPLACED"
            await self.pods.say(rmID="stranger", releases={"allocationsToRelease": [release]})
        await until(lambda: len(self.pods.items("new")) == 6)
        keys = [each["allocationKey"] for each in self.members()]
        assert sorted(keys) == ["pod-0", "pod-1", "pod-2"]


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
async def test_i2_a_generic_client_runs_a_gang(version: str, place: House) -> None:
    stranger = Stranger(Generic(place.channel(), version))
    await stranger.begin()
    await stranger.run_a_gang()
    for each in stranger.streams:
        await each.call.done_writing()
    for each in stranger.streams:
        await asyncio.wait_for(each.task, PATIENCE)
        assert await each.call.code() is grpc.StatusCode.OK


async def test_health_is_that_of_the_server(place: House) -> None:
    stub = health_pb2_grpc.HealthStub(place.channel())
    for service in ("", "si.v1.Scheduler", "quadriga.v1.Extension"):
        found = await stub.Check(health_pb2.HealthCheckRequest(service=service))
        assert found.status == health_pb2.HealthCheckResponse.SERVING
    watch = stub.Watch(health_pb2.HealthCheckRequest(service="si.v1.Scheduler"))
    assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
    stopping = asyncio.create_task(place.server.stop(2))
    assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
    watch.cancel()
    await stopping
