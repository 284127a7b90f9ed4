"""The way to the scheduler: channels, credentials, and calls with one answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import grpc

from quadriga.si.client.errors import Unreachable, translated
from quadriga.si.client.tls import Tls
from quadriga.si.extension.extension_pb2_grpc import ExtensionStub
from quadriga.si.wire import is_loopback

__all__ = ["Line", "Metadata"]

Metadata = tuple[tuple[str, str], ...]

_OPTIONS: Final = (
    # every connection is a new one, and waits are ours alone
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
    # a peer that has vanished without a word is noticed; servers of ours allow for it
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    # whoever answers is the scheduler: its messages are as long as they are
    ("grpc.max_receive_message_length", -1),
)


class Line:
    """`dial` gives a new channel; what it is used for needs `metadata`. Raises `ValueError` for a
    token that would leave this machine in the clear, unless that is meant (``insecure``)."""

    def __init__(self, address: str, tls: Tls | None, token: str | None, *, insecure: bool) -> None:
        if token is not None and tls is None and not insecure and not is_loopback(address):
            raise ValueError(f"a token on its way to {address} can be read by others: use TLS")
        self.address = address
        self.metadata: Metadata = ()
        if token is not None:
            self.metadata = (("authorization", f"Bearer {token}"),)
        self._tls = tls

    def dial(self) -> grpc.aio.Channel:
        """A channel, which connects when it is first used."""
        if self._tls is None:
            return grpc.aio.insecure_channel(self.address, options=_OPTIONS)
        options: tuple[tuple[str, Any], ...] = _OPTIONS
        if self._tls.server_name is not None:
            options = (*_OPTIONS, ("grpc.ssl_target_name_override", self._tls.server_name))
        return grpc.aio.secure_channel(self.address, self._tls.credentials(), options=options)

    async def call(
        self, channel: grpc.aio.Channel, method: Callable[[Any], Any], request: Any
    ) -> Any:
        """Call a method of the extension. Raises what `translated` gives."""
        try:
            call = method(ExtensionStub(channel))(request, metadata=self.metadata)
            return await self.answer_of(call)
        except grpc.RpcError as error:
            raise translated(error, type(request).__name__, self.address) from None

    async def answer_of(self, call: Awaitable[Any]) -> Any:
        """The answer to a call. Raises `Unreachable` where its channel is closed meanwhile, which
        grpc.aio says as if the caller had been cancelled."""
        try:
            return await call
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise Unreachable(f"{self.address}: the connection was lost") from None
