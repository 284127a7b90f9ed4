"""What client and server agree on beside the messages: metadata, counts, and what is a safe address.

The rules are in docs/grpc.md. Nothing here needs gRPC.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any, Final

from quadriga.si.extension.extension_pb2 import (
    ALLOCATION,
    APPLICATION,
    CALLBACK,
    NODE,
    Counts,
)
from quadriga.si.v1.si_pb2 import AllocationRequest, ApplicationRequest, NodeRequest

__all__ = [
    "AGAIN",
    "EPOCH",
    "IN_ORDER",
    "RECEIVED",
    "RM_ID",
    "Request",
    "counted",
    "counts",
    "is_loopback",
]

#: what goes in on the three streams of the interface
Request = AllocationRequest | ApplicationRequest | NodeRequest

#: metadata of a stream: which resource manager (RM), in which of its registrations, and how many
#: messages of this kind of stream have been read since then
RM_ID: Final = "quadriga-rm-id"
EPOCH: Final = "quadriga-epoch"
RECEIVED: Final = "quadriga-received"
#: of a registration: all messages in one order, across the streams
IN_ORDER: Final = "quadriga-in-order"
#: of a status: the RM has to register again (I43)
AGAIN: Final = "quadriga-register"


def counts(of: Mapping[Any, int]) -> Counts:
    """Numbers of messages, by kind of stream, as they are said."""
    return Counts(
        allocation=of.get(ALLOCATION, 0),
        application=of.get(APPLICATION, 0),
        node=of.get(NODE, 0),
        callback=of.get(CALLBACK, 0),
    )


def counted(said: Counts) -> dict[Any, int]:
    """Numbers of messages as they were said."""
    return {
        ALLOCATION: said.allocation,
        APPLICATION: said.application,
        NODE: said.node,
        CALLBACK: said.callback,
    }


def is_loopback(address: str) -> bool:
    """Whether nobody on another machine can read what goes to ``host:port`` or ``unix:path``."""
    if address.startswith("unix:"):
        return True
    host = address.rpartition(":")[0].strip("[]")
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
