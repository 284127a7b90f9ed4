"""Authentication and authorization of calls, and the values of their metadata. All raise
`StatusError`."""

from __future__ import annotations

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
