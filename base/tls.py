"""TLS contexts of servers and clients, TLS 1.2 or later."""

from __future__ import annotations

import ssl
from pathlib import Path


def bare_server_context() -> ssl.SSLContext:
    """Create a context for a server that has no certificate yet."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def server_context(
    certificate: Path, key: Path, client_authority: Path | None = None, *, required: bool = True
) -> ssl.SSLContext:
    """Create a context from PEM files; the certificate file includes the chain. With
    ``client_authority`` clients need a certificate of that authority; if not ``required``, they may
    connect without one.

    A certificate loaded into the same context later is used for new connections. Raises
    ``ValueError`` for invalid files.
    """
    context = bare_server_context()
    try:
        # Without this, OpenSSL would ask for the key's password on the terminal.
        context.load_cert_chain(certificate, key, password=lambda: "")
    except OSError as error:
        raise ValueError(
            f"{certificate} and {key} are not a certificate and its key (PEM, no password):"
            f" {_reason(error)}"
        ) from None
    if client_authority is not None:
        try:
            context.load_verify_locations(client_authority)
        except OSError as error:
            raise ValueError(
                f"{client_authority} is not a certificate (PEM): {_reason(error)}"
            ) from None
        context.verify_mode = ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL
    return context


def _reason(error: OSError) -> str:
    return getattr(error, "reason", None) or error.strerror or str(error)
