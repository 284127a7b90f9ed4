from typing import Any, overload

import grpc
import grpc.aio

import quadriga.si.v1.si_pb2

class SchedulerStub:
    @overload
    def __new__(cls, channel: grpc.aio.Channel) -> SchedulerAsyncStub: ...
    @overload
    def __new__(cls, channel: grpc.Channel) -> SchedulerStub: ...
    RegisterResourceManager: grpc.UnaryUnaryMultiCallable[quadriga.si.v1.si_pb2.RegisterResourceManagerRequest, quadriga.si.v1.si_pb2.RegisterResourceManagerResponse]
    UpdateAllocation: grpc.StreamStreamMultiCallable[quadriga.si.v1.si_pb2.AllocationRequest, quadriga.si.v1.si_pb2.AllocationResponse]
    UpdateApplication: grpc.StreamStreamMultiCallable[quadriga.si.v1.si_pb2.ApplicationRequest, quadriga.si.v1.si_pb2.ApplicationResponse]
    UpdateNode: grpc.StreamStreamMultiCallable[quadriga.si.v1.si_pb2.NodeRequest, quadriga.si.v1.si_pb2.NodeResponse]

class SchedulerAsyncStub(SchedulerStub):  # exists for types only
    RegisterResourceManager: grpc.aio.UnaryUnaryMultiCallable[quadriga.si.v1.si_pb2.RegisterResourceManagerRequest, quadriga.si.v1.si_pb2.RegisterResourceManagerResponse]  # type: ignore[assignment]
    UpdateAllocation: grpc.aio.StreamStreamMultiCallable[quadriga.si.v1.si_pb2.AllocationRequest, quadriga.si.v1.si_pb2.AllocationResponse]  # type: ignore[assignment]
    UpdateApplication: grpc.aio.StreamStreamMultiCallable[quadriga.si.v1.si_pb2.ApplicationRequest, quadriga.si.v1.si_pb2.ApplicationResponse]  # type: ignore[assignment]
    UpdateNode: grpc.aio.StreamStreamMultiCallable[quadriga.si.v1.si_pb2.NodeRequest, quadriga.si.v1.si_pb2.NodeResponse]  # type: ignore[assignment]

class SchedulerServicer:
    def RegisterResourceManager(self, request: Any, context: Any) -> Any: ...
    def UpdateAllocation(self, request: Any, context: Any) -> Any: ...
    def UpdateApplication(self, request: Any, context: Any) -> Any: ...
    def UpdateNode(self, request: Any, context: Any) -> Any: ...

def add_SchedulerServicer_to_server(
    servicer: SchedulerServicer, server: grpc.Server | grpc.aio.Server
) -> None: ...
