"""Authentication and authorization of calls, and the values of their metadata. All raise
`StatusError`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from quadriga.si.access import Access, Principal, bearer_token
from quadriga.si.server.limits import LONGEST_ID
from quadriga.si.server.status import StatusError

Context = grpc.aio.ServicerContext[Any, Any]

Code = grpc.StatusCode


def authenticate(access: Access, context: Context) -> Principal:
    """The caller, known by its token or its certificate. Raises for an unknown caller."""
    proof = context.auth_context() or {}
    names = [
        name.decode("utf-8", "replace")
        for key in ("x509_common_name", "x509_subject_alternative_name")
        for name in proof.get(key, ())
    ]
    principal = access.principal(bearer_token(metadata(context, "authorization")), names)
    if principal is None:
        raise StatusError(
            Code.UNAUTHENTICATED, "access", "no known token, and no known certificate"
        )
    return principal


def authorize(principal: Principal, rm_id: str) -> None:
    """Raise unless the caller may act for this resource manager."""
    if not principal.may_act_for(rm_id):
        raise StatusError(
            Code.PERMISSION_DENIED,
            "access",
            f"{principal.name!r} may not act for resource manager {rm_id[:LONGEST_ID]!r}",
        )


def metadata(context: Context, key: str) -> str | None:
    """The first value of this key, or ``None``."""
    for name, value in context.invocation_metadata() or ():
        if name == key:
            return value if isinstance(value, str) else value.decode("utf-8", "replace")
    return None


def integer_metadata(context: Context, key: str) -> int | None:
    """The first value of this key as a number, or ``None``. Raises for any other text."""
    text = metadata(context, key)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise StatusError(
            Code.INVALID_ARGUMENT, "I7", f"metadata {key}: {text[:40]!r} is not a number"
        )
    return int(text)


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
