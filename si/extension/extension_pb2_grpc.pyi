from typing import Any, overload

import grpc
import grpc.aio

import quadriga.si.extension.extension_pb2
import quadriga.si.v1.si_pb2

class ExtensionStub:
    @overload
    def __new__(cls, channel: grpc.aio.Channel) -> ExtensionAsyncStub: ...
    @overload
    def __new__(cls, channel: grpc.Channel) -> ExtensionStub: ...
    UpdateConfiguration: grpc.UnaryUnaryMultiCallable[quadriga.si.v1.si_pb2.UpdateConfigurationRequest, quadriga.si.extension.extension_pb2.UpdateConfigurationResponse]
    Callbacks: grpc.StreamStreamMultiCallable[quadriga.si.extension.extension_pb2.CallbackAnswer, quadriga.si.extension.extension_pb2.Callback]
    Shutdown: grpc.UnaryUnaryMultiCallable[quadriga.si.extension.extension_pb2.ShutdownRequest, quadriga.si.extension.extension_pb2.ShutdownResponse]
    Step: grpc.UnaryUnaryMultiCallable[quadriga.si.extension.extension_pb2.StepRequest, quadriga.si.extension.extension_pb2.StepResponse]
    Explain: grpc.UnaryUnaryMultiCallable[quadriga.si.extension.extension_pb2.ExplainRequest, quadriga.si.extension.extension_pb2.ExplainResponse]

class ExtensionAsyncStub(ExtensionStub):  # exists for types only
    UpdateConfiguration: grpc.aio.UnaryUnaryMultiCallable[quadriga.si.v1.si_pb2.UpdateConfigurationRequest, quadriga.si.extension.extension_pb2.UpdateConfigurationResponse]  # type: ignore[assignment]
    Callbacks: grpc.aio.StreamStreamMultiCallable[quadriga.si.extension.extension_pb2.CallbackAnswer, quadriga.si.extension.extension_pb2.Callback]  # type: ignore[assignment]
    Shutdown: grpc.aio.UnaryUnaryMultiCallable[quadriga.si.extension.extension_pb2.ShutdownRequest, quadriga.si.extension.extension_pb2.ShutdownResponse]  # type: ignore[assignment]
    Step: grpc.aio.UnaryUnaryMultiCallable[quadriga.si.extension.extension_pb2.StepRequest, quadriga.si.extension.extension_pb2.StepResponse]  # type: ignore[assignment]
    Explain: grpc.aio.UnaryUnaryMultiCallable[quadriga.si.extension.extension_pb2.ExplainRequest, quadriga.si.extension.extension_pb2.ExplainResponse]  # type: ignore[assignment]

class ExtensionServicer:
    def UpdateConfiguration(self, request: Any, context: Any) -> Any: ...
    def Callbacks(self, request: Any, context: Any) -> Any: ...
    def Shutdown(self, request: Any, context: Any) -> Any: ...
    def Step(self, request: Any, context: Any) -> Any: ...
    def Explain(self, request: Any, context: Any) -> Any: ...

def add_ExtensionServicer_to_server(
    servicer: ExtensionServicer, server: grpc.Server | grpc.aio.Server
) -> None: ...
