"""Health and reflection are libraries, and anybody may call them: what they cannot parse they log with a
traceback for each message, and their streams are not counted. Here it is, as everywhere else, the
sender's mistake, and there are only so many streams."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
from google.protobuf.message import DecodeError

__all__ = ["Strict"]


class Strict(grpc.aio.ServerInterceptor):
    """Refuses with INVALID_ARGUMENT what a handler of theirs cannot parse, and with RESOURCE_EXHAUSTED
    more than so many ``streams`` at a time. Ours take bytes, and count themselves."""

    def __init__(self, streams: int) -> None:
        self._most = streams
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
            if self._open >= self._most:
                text = f"I2: {self._most} streams of this kind are open already"
                await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, text)
            self._open += 1

        if handler.request_streaming:

            async def each(requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[Any]:
                async for data in requests:
                    yield await parsed(data, context)

            async def stream(requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[Any]:
                await enter(context)
                try:
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
                    await handler.unary_stream(request, context)
                finally:
                    self._open -= 1

            return grpc.unary_stream_rpc_method_handler(watch, None, write)

        async def call(data: bytes, context: Any) -> Any:
            return await handler.unary_unary(await parsed(data, context), context)

        return grpc.unary_unary_rpc_method_handler(call, None, write)
