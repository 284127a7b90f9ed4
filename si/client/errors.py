"""What can go wrong with a remote scheduler."""

from __future__ import annotations

import re

import grpc

from quadriga.si import RequestError
from quadriga.si.wire import AGAIN

__all__ = [
    "ClientError",
    "RegisterAgain",
    "Unreachable",
    "is_for_good",
    "most_bytes",
    "refusal",
    "said_by",
    "translated",
]


class ClientError(RuntimeError):
    """The scheduler, or what answers in its place, did not do what was asked."""


class RegisterAgain(ClientError):
    """The scheduler does not know the resource manager (any more): it has to register, and then
    report all its state (I7, I43)."""


class Unreachable(ClientError, ConnectionError):
    """The scheduler cannot be reached, or does not answer in time."""


_REFUSAL = re.compile(
    r"(?:[A-Z0-9.]+: )?(?P<request>[A-Za-z]+)\.(?P<field>[^: ]*): (?P<reason>.*)", re.DOTALL
)

_LARGER = re.compile(r"larger than max \(\d+ vs\. (\d+)\)")

_NOT_THERE = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
_NOT_ALLOWED = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)

_NOT_SO = (
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.NOT_FOUND,
)

#: what another try will not mend: the resource manager has to register, and then hears why not
_FOR_GOOD = (*_NOT_ALLOWED, *_NOT_SO, grpc.StatusCode.UNIMPLEMENTED)


def is_for_good(error: grpc.RpcError | None) -> bool:
    """Whether another connection would end the same way."""
    return error is not None and (_code(error) in _FOR_GOOD or _wants_registration(error))


def most_bytes(error: grpc.RpcError) -> int | None:
    """Where a message was larger than the other side lets in: how large it may be. gRPC itself says
    that, in words only."""
    found = _LARGER.search(said_by(error))
    return int(found[1]) if found and _code(error) is grpc.StatusCode.RESOURCE_EXHAUSTED else None


def translated(error: grpc.RpcError, request: str, address: str) -> Exception:
    """The exception to raise for a status: of `request`, the name of its message.

    `RequestError` for one that was refused, `PermissionError` where credentials do not suffice,
    `RegisterAgain`, `Unreachable`, else `ClientError`.
    """
    code, said = _code(error), said_by(error)
    if _wants_registration(error):
        return RegisterAgain(said)
    if code in _NOT_SO:
        return refusal(said, request)
    if code in _NOT_ALLOWED:
        return PermissionError(f"{address}: {said}")
    if code in _NOT_THERE:
        return Unreachable(f"{address}: {said}")
    return ClientError(f"{address}: {code.name}: {said}")


def refusal(said: str, request: str) -> RequestError:
    """``Request.field: reason`` as the error that it was in the scheduler; a rule may stand before
    it. For what is said in other words `request` is the name of the message."""
    found = _REFUSAL.fullmatch(said)
    if found is None:
        return RequestError(request, "", said)
    return RequestError(found["request"], found["field"], found["reason"])


def _code(error: grpc.RpcError) -> grpc.StatusCode:
    code = error.code() if isinstance(error, grpc.Call | grpc.aio.AioRpcError) else None
    return code or grpc.StatusCode.UNKNOWN


def _wants_registration(error: grpc.RpcError) -> bool:
    trailing = error.trailing_metadata() if isinstance(error, grpc.aio.AioRpcError) else None
    return any(key == AGAIN for key, _ in trailing or ())


def said_by(error: grpc.RpcError) -> str:
    """The text of a status."""
    said = error.details() if isinstance(error, grpc.Call | grpc.aio.AioRpcError) else None
    return said or str(error)
