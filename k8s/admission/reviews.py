"""Reviews: the requests of the API server to a webhook, and the responses (``admission.k8s.io/v1``)."""

from __future__ import annotations

import base64
from typing import Any, Final

import msgspec

from quadriga.k8s.admission.rules import Decision

_VERSION: Final = "admission.k8s.io/v1"
#: a status that clients show as "forbidden"
_FORBIDDEN: Final = 403


class BadReview(ValueError):
    """The body is not a review."""


class _Resource(msgspec.Struct):
    group: str = ""
    resource: str = ""


class _User(msgspec.Struct):
    username: str = ""
    groups: tuple[str, ...] | None = None


class Review(msgspec.Struct, rename="camel"):
    """The request in a review. Objects are not decoded yet."""

    uid: str
    operation: str
    resource: _Resource
    user_info: _User
    namespace: str = ""
    name: str = ""
    sub_resource: str = ""
    object: msgspec.Raw = msgspec.Raw(b"null")
    old_object: msgspec.Raw = msgspec.Raw(b"null")


class _Envelope(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    request: Review | None = None


_decoder = msgspec.json.Decoder(_Envelope)


def read_review(body: bytes) -> Review:
    """Return the request of a review. Raises `BadReview`."""
    try:
        envelope = _decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadReview(f"it is no review: {error}") from None
    if (envelope.api_version, envelope.kind) != (_VERSION, "AdmissionReview"):
        raise BadReview(
            f"{envelope.kind or 'nothing'} of {envelope.api_version or 'no version'}"
            f" is no AdmissionReview of {_VERSION}"
        )
    if envelope.request is None:
        raise BadReview("the review has no request")
    return envelope.request


def read_object(raw: msgspec.Raw) -> dict[str, Any] | None:
    """Return an object of a request, if there is one. Raises `BadReview`."""
    try:
        return msgspec.json.decode(raw, type=dict[str, Any] | None)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadReview(f"the object cannot be read: {error}") from None


def answer(review: Review, decision: Decision) -> bytes:
    """Return the response to a review, as JSON."""
    response: dict[str, Any] = {"uid": review.uid, "allowed": not decision.denied}
    if decision.denied:
        response["status"] = {
            "code": _FORBIDDEN,
            "reason": "Forbidden",
            "message": decision.denied,
        }
    elif decision.patch:
        patch = msgspec.json.encode(decision.patch)
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(patch).decode()
    return msgspec.json.encode(
        {"apiVersion": _VERSION, "kind": "AdmissionReview", "response": response}
    )
