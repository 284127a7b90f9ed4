"""Refusals as gRPC statuses that name the rule: ``I39: UpdateConfigurationRequest.rmID: ...``."""

from __future__ import annotations

import re

import grpc

from quadriga.si.api import RequestError
from quadriga.si.wire import AGAIN

__all__ = ["Ending", "of_request"]

_RULE = re.compile(r"\(([A-Z]{1,2}\d+|\d+(?:\.\d+)+)\)")
#: the rule for what a message says that names none itself
_OF_MESSAGE = {
    "RegisterResourceManagerRequest": "I10",
    "UpdateConfigurationRequest": "I39",
    "AllocationRequest": "I17",
    "ApplicationRequest": "I20",
    "NodeRequest": "I33",
}

#: gRPC puts the text in a header, which is limited as a whole
_LONGEST = 2000


class Ending(Exception):
    """How a call ends before its time: its status, and a text that begins with the rule."""

    def __init__(self, code: grpc.StatusCode, rule: str, text: str, *, again: bool = False) -> None:
        self.code = code
        self.details = f"{rule}: {text}"[:_LONGEST]
        #: the RM has to register again
        self.again = again
        super().__init__(self.details)

    @property
    def trailing(self) -> tuple[tuple[str, str], ...]:
        """The trailing metadata."""
        return ((AGAIN, "again"),) if self.again else ()


def of_request(error: RequestError) -> Ending:
    """The scheduler has refused a request as a whole. Not to be registered is the RM's state, all
    else is what it said."""
    found = _RULE.search(error.reason)
    rule = found[1] if found else _OF_MESSAGE.get(error.request, "I11")
    away = error.field == "rmID" and rule != "I10"
    code = grpc.StatusCode.FAILED_PRECONDITION if away else grpc.StatusCode.INVALID_ARGUMENT
    return Ending(code, rule, str(error), again=away)
