"""Reflection: what a client asks that has no .proto of ours (``grpcurl`` and the like).

The library serves the service under the name of v1alpha only. v1 is the same, byte for byte, and is what
newer clients ask for first; so the same servicer answers under both names.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2

__all__ = ["add_reflection"]

_V1: Final = "grpc.reflection.v1.ServerReflection"


def add_reflection(server: grpc.aio.Server, services: Iterable[str]) -> None:
    """Tell of these services, and of reflection itself."""
    names = (*services, _V1, reflection.SERVICE_NAME)
    reflection.enable_server_reflection(names, server)
    handler = grpc.stream_stream_rpc_method_handler(
        reflection.aio.ReflectionServicer(names).ServerReflectionInfo,
        reflection_pb2.ServerReflectionRequest.FromString,
        reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    methods = {"ServerReflectionInfo": handler}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_V1, methods),))
