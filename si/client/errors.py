"""The errors of a client, and their translation from gRPC statuses."""

from __future__ import annotations

import re

import grpc

from quadriga.si import RequestError
from quadriga.si.wire import REGISTER_AGAIN


class ClientError(RuntimeError):
    """The scheduler, or the server at its address, did not do what was requested."""


class RegisterAgain(ClientError):
    """The scheduler does not know the resource manager, or no longer: it must register and then
    report all its state (I7, I43)."""


class Unreachable(ClientError, ConnectionError):
    """The scheduler cannot be reached, or does not answer in time."""


_REFUSAL = re.compile(
    r"(?:[A-Z0-9.]+: )?(?P<request>[A-Za-z]+)\.(?P<field>[^: ]*): (?P<reason>.*)", re.DOTALL
)

_LARGER = re.compile(r"larger than max \(\d+ vs\. (\d+)\)")

_UNREACHABLE = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
_DENIED = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)

_REFUSED = (
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.NOT_FOUND,
)

#: statuses that another attempt would only repeat; registering again tells the reason
_PERMANENT = (*_DENIED, *_REFUSED, grpc.StatusCode.UNIMPLEMENTED)


def is_permanent(error: grpc.RpcError | None) -> bool:
    """Whether another connection would end with the same error."""
    return error is not None and (_code(error) in _PERMANENT or _wants_registration(error))


def max_message_bytes(error: grpc.RpcError) -> int | None:
    """The message size that the peer allows, if the error is that a message was larger. gRPC gives
    it only in the text of the status."""
    found = _LARGER.search(details_of(error))
    return int(found[1]) if found and _code(error) is grpc.StatusCode.RESOURCE_EXHAUSTED else None


def to_exception(error: grpc.RpcError, request: str, address: str) -> Exception:
    """The exception to raise for a status. `request` is the name of the message that was sent.

    `RequestError` for a refused request, `PermissionError` for missing rights, `RegisterAgain`,
    `Unreachable`, else `ClientError`.
    """
    code, details = _code(error), details_of(error)
    if _wants_registration(error):
        return RegisterAgain(details)
    if code in _REFUSED:
        return refusal(details, request)
    if code in _DENIED:
        return PermissionError(f"{address}: {details}")
    if code in _UNREACHABLE:
        return Unreachable(f"{address}: {details}")
    return ClientError(f"{address}: {code.name}: {details}")


def refusal(details: str, request: str) -> RequestError:
    """The scheduler's own `RequestError`, parsed from ``Request.field: reason``; a rule may stand
    before it. For any other text, `request` is the name of the message."""
    found = _REFUSAL.fullmatch(details)
    if found is None:
        return RequestError(request, "", details)
    return RequestError(found["request"], found["field"], found["reason"])


def _code(error: grpc.RpcError) -> grpc.StatusCode:
    code = error.code() if isinstance(error, grpc.Call | grpc.aio.AioRpcError) else None
    return code or grpc.StatusCode.UNKNOWN


def _wants_registration(error: grpc.RpcError) -> bool:
    trailing = error.trailing_metadata() if isinstance(error, grpc.aio.AioRpcError) else None
    return any(key == REGISTER_AGAIN for key, _ in trailing or ())


def details_of(error: grpc.RpcError) -> str:
    """The text of a status."""
    details = error.details() if isinstance(error, grpc.Call | grpc.aio.AioRpcError) else None
    return details or str(error)
