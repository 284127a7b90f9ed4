"""TLS of the gRPC server: its certificate, and the authority that signs certificates of clients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import grpc


@dataclass(frozen=True, slots=True)
class Tls:
    """Paths of PEM files. With ``client_ca`` clients need a certificate signed by that authority
    (mutual TLS)."""

    certificate: Path
    key: Path
    client_ca: Path | None = None

    def configuration(self) -> grpc.ServerCertificateConfiguration:
        """Read the files. Raises ``ValueError`` naming a file that cannot be used."""
        trusted = _read(self.client_ca) if self.client_ca is not None else None
        return grpc.ssl_server_certificate_configuration(
            [(_read(self.key), _read(self.certificate))], trusted
        )

    def credentials(
        self, renewed: Callable[[], grpc.ServerCertificateConfiguration | None] = lambda: None
    ) -> grpc.ServerCredentials:
        """Credentials with the files as they are now. For each new connection ``renewed`` may
        return a newer configuration. Raises ``ValueError``."""
        return grpc.dynamic_ssl_server_credentials(
            self.configuration(),
            renewed,  # type: ignore[arg-type]  # its stub forgets that it may say nothing
            require_client_authentication=self.client_ca is not None,
        )


def _read(path: Path) -> bytes:
    try:
        found = Path(path).read_bytes()
    except OSError as error:
        raise ValueError(f"TLS file {path}: {error.strerror}") from None
    if b"-----BEGIN " not in found:
        raise ValueError(f"TLS file {path}: is not PEM")
    return found
