"""TLS for the web application: its certificate, and those of clients."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

__all__ = ["names_of", "server_context"]


def server_context(
    certificate: Path, key: Path, client_authority: Path | None = None, *, required: bool = True
) -> ssl.SSLContext:
    """From PEM files, the certificate with its chain. With ``client_authority`` clients need a
    certificate of that authority, or may have one if it is not ``required``.

    A certificate that is loaded into the same context later is used for connections from then on.
    Raises ``ValueError`` for files that do not hold what they should.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # Otherwise the terminal would be asked for the key's password.
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


def names_of(certificate: dict[str, Any] | None) -> tuple[str, ...]:
    """The common name and the alternative names of a client's certificate that was verified."""
    if not certificate:
        return ()
    common = (pair for part in certificate.get("subject", ()) for pair in part)
    found = [value for kind, value in common if kind == "commonName"]
    found += [value for _, value in certificate.get("subjectAltName", ())]
    return tuple(dict.fromkeys(found))


def _reason(error: OSError) -> str:
    return getattr(error, "reason", None) or error.strerror or str(error)
