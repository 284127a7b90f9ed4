"""Who calls, whose stream it may be, and what the metadata of a call say. All raise `Ending`."""

from __future__ import annotations

from typing import Any

import grpc

from quadriga.si.access import Access, Principal, bearer_of
from quadriga.si.server.limits import LONGEST_ID
from quadriga.si.server.statuses import Ending

__all__ = ["Context", "check_may", "metadata", "number", "principal"]

Context = grpc.aio.ServicerContext[Any, Any]

Code = grpc.StatusCode


def principal(access: Access, context: Context) -> Principal:
    """Who it is, by token or certificate; nobody unknown."""
    proof = context.auth_context() or {}
    names = [
        name.decode("utf-8", "replace")
        for key in ("x509_common_name", "x509_subject_alternative_name")
        for name in proof.get(key, ())
    ]
    who = access.principal(bearer_of(metadata(context, "authorization")), names)
    if who is None:
        raise Ending(Code.UNAUTHENTICATED, "access", "no known token, and no known certificate")
    return who


def check_may(who: Principal, rm_id: str) -> None:
    """Whether he may act for this resource manager."""
    if not who.may_act_for(rm_id):
        raise Ending(
            Code.PERMISSION_DENIED,
            "access",
            f"{who.name!r} may not act for resource manager {rm_id[:LONGEST_ID]!r}",
        )


def metadata(context: Context, key: str) -> str | None:
    """The first value of this key."""
    for name, value in context.invocation_metadata() or ():
        if name == key:
            return value if isinstance(value, str) else value.decode("utf-8", "replace")
    return None


def number(context: Context, key: str) -> int | None:
    """The same where it has to be a number."""
    text = metadata(context, key)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise Ending(Code.INVALID_ARGUMENT, "I7", f"metadata {key}: {text[:40]!r} is no number")
    return int(text)
