"""Server reflection, for clients without the .proto files, such as ``grpcurl``.

The library serves v1alpha only. v1 has the same messages, byte for byte, and newer clients ask for
it first, so the same servicer answers for both names.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2

_V1: Final = "grpc.reflection.v1.ServerReflection"


def add_reflection(server: grpc.aio.Server, services: Iterable[str]) -> None:
    """Serve reflection for these services and for itself."""
    names = (*services, _V1, reflection.SERVICE_NAME)
    reflection.enable_server_reflection(names, server)
    handler = grpc.stream_stream_rpc_method_handler(
        reflection.aio.ReflectionServicer(names).ServerReflectionInfo,
        reflection_pb2.ServerReflectionRequest.FromString,
        reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    methods = {"ServerReflectionInfo": handler}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_V1, methods),))
