"""Stricter handling of the health and reflection services, which come from libraries.

The libraries log a traceback for each message that they cannot parse, and do not limit streams. The
interceptor makes an unparsable message an error of the sender, as in the scheduler's own services,
and limits the streams.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from quadriga.si.server.connections import Connections


class StrictInterceptor(grpc.aio.ServerInterceptor):
    """Refuses unparsable requests to library services with INVALID_ARGUMENT, and more than
    ``streams`` streams at a time with RESOURCE_EXHAUSTED. The scheduler's own services receive
    bytes and count their streams themselves."""

    def __init__(self, streams: int, connections: Connections) -> None:
        self._limit = streams
        self._connections = connections
        self._open = 0

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        handler: Any = await continuation(handler_call_details)
        if handler is None or handler.request_deserializer is None:
            return handler
        read = handler.request_deserializer
        write = handler.response_serializer

        async def parsed(data: bytes, context: Any) -> Any:
            try:
                return read(data)
            except DecodeError:
                text = f"I1: {len(data)} bytes are not a request of {handler_call_details.method}"
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, text)

        async def enter(context: Any) -> None:
            if self._open >= self._limit:
                text = f"I2: {self._limit} streams of this kind are open already"
                await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, text)
            self._open += 1

        if handler.request_streaming:

            async def each(requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[Any]:
                async for data in requests:
                    yield await parsed(data, context)

            async def stream(requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[Any]:
                await enter(context)
                try:
                    with self._connections.call(context):
                        async for answer in handler.stream_stream(each(requests, context), context):
                            yield answer
                finally:
                    self._open -= 1

            return grpc.stream_stream_rpc_method_handler(stream, None, write)
        if handler.response_streaming:

            async def watch(data: bytes, context: Any) -> None:
                request = await parsed(data, context)
                await enter(context)
                try:
                    with self._connections.call(context):
                        await handler.unary_stream(request, context)
                finally:
                    self._open -= 1

            return grpc.unary_stream_rpc_method_handler(watch, None, write)

        async def call(data: bytes, context: Any) -> Any:
            return await handler.unary_unary(await parsed(data, context), context)

        return grpc.unary_unary_rpc_method_handler(call, None, write)
