"""gRPC channels to the scheduler: creating them, with credentials, and unary calls on them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import grpc

from quadriga.si.client.errors import Unreachable, to_exception
from quadriga.si.extension.extension_pb2_grpc import ExtensionStub
from quadriga.si.wire import is_loopback

Metadata = tuple[tuple[str, str], ...]

_OPTIONS: Final = (
    # Each connection needs a channel of its own, and only the client decides on retries.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
    # Notice a peer that has vanished without closing the connection. Our servers allow these pings.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    # The scheduler is trusted, so its messages may have any length.
    ("grpc.max_receive_message_length", -1),
)


class ChannelFactory:
    """`dial` creates a new channel; calls on it need `metadata`. Raises `ValueError` for a token
    that would leave this machine unencrypted, unless ``insecure`` allows that."""

    def __init__(self, address: str, tls: Tls | None, token: str | None, *, insecure: bool) -> None:
        if token is not None and tls is None and not insecure and not is_loopback(address):
            raise ValueError(f"a token on its way to {address} can be read by others: use TLS")
        self.address = address
        self.metadata: Metadata = ()
        if token is not None:
            self.metadata = (("authorization", f"Bearer {token}"),)
        self._tls = tls

    def dial(self) -> grpc.aio.Channel:
        """A channel; it connects when it is first used."""
        if self._tls is None:
            return grpc.aio.insecure_channel(self.address, options=_OPTIONS)
        options: tuple[tuple[str, Any], ...] = _OPTIONS
        if self._tls.server_name is not None:
            options = (*_OPTIONS, ("grpc.ssl_target_name_override", self._tls.server_name))
        return grpc.aio.secure_channel(self.address, self._tls.credentials(), options=options)

    async def call(
        self, channel: grpc.aio.Channel, method: Callable[[Any], Any], request: Any
    ) -> Any:
        """Make a unary call of the extension. Raises the result of `to_exception`."""
        try:
            call = method(ExtensionStub(channel))(request, metadata=self.metadata)
            return await self.answer_of(call)
        except grpc.RpcError as error:
            raise to_exception(error, type(request).__name__, self.address) from None

    async def answer_of(self, call: Awaitable[Any]) -> Any:
        """The answer to a call. Raises `Unreachable` if the channel is closed meanwhile, which
        grpc.aio reports as a cancellation of the caller."""
        try:
            return await call
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise Unreachable(f"{self.address}: the connection was lost") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """PEM text. `authorities` sign the scheduler's certificate (None: the authorities of the
    system). `certificate` and `key` identify the client (mutual TLS). `server_name` is the name in
    the scheduler's certificate, if it differs from the address."""

    authorities: bytes | None = None
    certificate: bytes | None = None
    key: bytes | None = field(default=None, repr=False)
    server_name: str | None = None

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise ValueError("a certificate needs its key, and a key its certificate")

    @classmethod
    def from_files(
        cls,
        authorities: Path | str | None = None,
        certificate: Path | str | None = None,
        key: Path | str | None = None,
        server_name: str | None = None,
    ) -> Tls:
        """Read PEM files. Raises `OSError` and `ValueError`."""

        def read(path: Path | str | None) -> bytes | None:
            return None if path is None else Path(path).read_bytes()

        return cls(
            authorities=read(authorities),
            certificate=read(certificate),
            key=read(key),
            server_name=server_name,
        )

    def credentials(self) -> grpc.ChannelCredentials:
        """The credentials for gRPC."""
        return grpc.ssl_channel_credentials(self.authorities, self.key, self.certificate)
