"""Refused requests as gRPC statuses. The text of a status begins with the rule: ``I39:
UpdateConfigurationRequest.rmID: ...``."""

from __future__ import annotations

import re

import grpc

from quadriga.si.api import RequestError
from quadriga.si.wire import REGISTER_AGAIN

_RULE = re.compile(r"\(([A-Z]{1,2}\d+|\d+(?:\.\d+)+)\)")
#: name of a message -> its rule, for errors that name none
_OF_MESSAGE = {
    "RegisterResourceManagerRequest": "I10",
    "UpdateConfigurationRequest": "I39",
    "AllocationRequest": "I17",
    "ApplicationRequest": "I20",
    "NodeRequest": "I33",
}

#: bytes of a status text; gRPC sends it in a header of limited size
_LONGEST = 2000


class StatusError(Exception):
    """Ends a call with a status. The text begins with the rule."""

    def __init__(
        self, code: grpc.StatusCode, rule: str, text: str, *, register_again: bool = False
    ) -> None:
        self.code = code
        self.details = f"{rule}: {text}"[:_LONGEST]
        #: whether the resource manager must register again
        self.register_again = register_again
        super().__init__(self.details)

    @property
    def trailing(self) -> tuple[tuple[str, str], ...]:
        """The trailing metadata of the call."""
        return ((REGISTER_AGAIN, "again"),) if self.register_again else ()


def status_of(error: RequestError) -> StatusError:
    """The status for a request that the scheduler has refused as a whole: FAILED_PRECONDITION if
    the resource manager is not registered, else INVALID_ARGUMENT."""
    found = _RULE.search(error.reason)
    rule = found[1] if found else _OF_MESSAGE.get(error.request, "I11")
    away = error.field == "rmID" and rule != "I10"
    code = grpc.StatusCode.FAILED_PRECONDITION if away else grpc.StatusCode.INVALID_ARGUMENT
    return StatusError(code, rule, str(error), register_again=away)
