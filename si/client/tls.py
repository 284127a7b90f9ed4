"""TLS of the client: the authorities that it trusts, and its own certificate."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import grpc


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
