"""A client that has nothing of ours: what it knows it has from the reflection service, as grpcurl."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from google.protobuf import descriptor_pb2, json_format, message_factory
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from tests.si.wire import QUEUES, house, until

pytestmark = pytest.mark.asyncio


class Generic:
    """Calls methods by name, with messages as JSON would have them."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._channel = channel
        self._reflection = reflection_pb2_grpc.ServerReflectionStub(channel)
        self.pool = DescriptorPool()
        self._files: dict[str, descriptor_pb2.FileDescriptorProto] = {}

    async def _ask(self, **question: str) -> Any:
        call = self._reflection.ServerReflectionInfo()
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
        return request, response

    async def unary(self, path: str, **fields: Any) -> dict[str, Any]:
        request, response = self._method(path)
        call = self._channel.unary_unary(
            f"/{path}",
            request_serializer=request.SerializeToString,
            response_deserializer=response.FromString,
        )
        said: dict[str, Any] = json_format.MessageToDict(
            await call(json_format.ParseDict(fields, request()))
        )
        return said

    def stream(self, path: str) -> Conversation:
        request, response = self._method(path)
        call = self._channel.stream_stream(
            f"/{path}",
            request_serializer=request.SerializeToString,
            response_deserializer=response.FromString,
        )
        return Conversation(call(), request)


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


async def test_a_generic_client_runs_a_gang() -> None:
    async with house() as place:
        client = Generic(place.channel())
        services = await client.services()
        assert {"si.v1.Scheduler", "quadriga.v1.Extension", "grpc.health.v1.Health"} <= {*services}
        await client.learn("si.v1.Scheduler")
        await client.learn("quadriga.v1.Extension")

        said = await client.unary(
            "si.v1.Scheduler/RegisterResourceManager", rmID="shim", version="1.4", config=QUEUES
        )
        assert said == {}
        nodes = client.stream("si.v1.Scheduler/UpdateNode")
        apps = client.stream("si.v1.Scheduler/UpdateApplication")
        pods = client.stream("si.v1.Scheduler/UpdateAllocation")
        capacity = {"resources": {"vcore": {"value": 4000}}}
        for name in ("n1", "n2"):
            await nodes.say(
                rmID="shim",
                nodes=[{"nodeID": name, "action": "CREATE", "schedulableResource": capacity}],
            )
        await until(lambda: len(nodes.items("accepted")) == 2)

        one = {"resources": {"vcore": {"value": 1000}}}
        await apps.say(
            rmID="shim",
            new=[
                {
                    "applicationID": "gang-1",
                    "queueName": "root.default",
                    "partitionName": "default",
                    "ugi": {"user": "u", "groups": ["g"]},
                    "placeholderAsk": {"resources": {"vcore": {"value": 3000}}},
                    "gangSchedulingStyle": "Hard",
                }
            ],
        )
        await until(lambda: apps.items("accepted"))
        of_app = {
            "applicationID": "gang-1",
            "partitionName": "default",
            "taskGroupName": "workers",
            "resourceAsk": one,
            "maxAllocations": 1,
        }
        for number in range(3):
            await pods.say(
                rmID="shim",
                asks=[{**of_app, "allocationKey": f"hold-{number}", "placeholder": True}],
            )
        await until(lambda: len(pods.items("new")) == 3)
        await until(lambda: "Running" in [each["state"] for each in apps.items("updated")])
        for number in range(3):
            await pods.say(rmID="shim", asks=[{**of_app, "allocationKey": f"pod-{number}"}])
        await until(lambda: len(pods.items("released")) == 3)
        for release in pods.items("released"):
            assert release["terminationType"] == "PLACEHOLDER_REPLACED"
            await pods.say(rmID="shim", releases={"allocationsToRelease": [release]})
        await until(lambda: len(pods.items("new")) == 6)
        running = [
            each["allocationKey"] for each in pods.items("new") if not each.get("placeholder")
        ]
        assert sorted(running) == ["pod-0", "pod-1", "pod-2"]

        for each in (nodes, apps, pods):
            await each.call.done_writing()
        for each in (nodes, apps, pods):
            await asyncio.wait_for(each.task, 20)
            assert await each.call.code() is grpc.StatusCode.OK


async def test_health_is_that_of_the_server() -> None:
    async with house() as place:
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


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
async def test_i2_reflection_answers_under_the_name_of_either_version(version: str) -> None:
    """The bytes are the same, only the service has another name."""
    async with house() as home:
        call = home.channel().stream_stream(
            f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
            request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
            response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
        )()
        await call.write(reflection_pb2.ServerReflectionRequest(list_services=""))
        listed = (await call.read()).list_services_response.service
        assert sorted(each.name for each in listed) == [
            "grpc.health.v1.Health",
            "grpc.reflection.v1.ServerReflection",
            "grpc.reflection.v1alpha.ServerReflection",
            "quadriga.v1.Extension",
            "si.v1.Scheduler",
        ]
        symbol = "si.v1.Scheduler"
        await call.write(reflection_pb2.ServerReflectionRequest(file_containing_symbol=symbol))
        assert (await call.read()).file_descriptor_response.file_descriptor_proto
        await call.done_writing()
        assert await call.read() is grpc.aio.EOF
