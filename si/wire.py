"""The agreement of gRPC client and server beyond the messages: metadata, message counts, and safe
addresses.

docs/grpc.md has the rules. This module does not need gRPC.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any, Final

from quadriga.si.extension.extension_pb2 import ALLOCATION, APPLICATION, CALLBACK, NODE, Counts
from quadriga.si.v1.si_pb2 import AllocationRequest, ApplicationRequest, NodeRequest

#: the requests on the three streams of the interface
Request = AllocationRequest | ApplicationRequest | NodeRequest

#: Metadata of a stream: the resource manager (RM), the number of its registration, and the number
#: of messages of this channel that have been received since then.
RM_ID: Final = "quadriga-rm-id"
EPOCH: Final = "quadriga-epoch"
RECEIVED: Final = "quadriga-received"
#: metadata of a registration: the RM wants one order of all messages across its streams
IN_ORDER: Final = "quadriga-in-order"
#: metadata of a status: the RM must register again (I43)
REGISTER_AGAIN: Final = "quadriga-register"


def to_counts(of: Mapping[Any, int]) -> Counts:
    """Encode numbers of messages by channel."""
    return Counts(
        allocation=of.get(ALLOCATION, 0),
        application=of.get(APPLICATION, 0),
        node=of.get(NODE, 0),
        callback=of.get(CALLBACK, 0),
    )


def from_counts(said: Counts) -> dict[Any, int]:
    """Decode numbers of messages by channel."""
    return {
        ALLOCATION: said.allocation,
        APPLICATION: said.application,
        NODE: said.node,
        CALLBACK: said.callback,
    }


def is_loopback(address: str) -> bool:
    """Whether traffic to ``host:port`` or ``unix:path`` stays on this machine."""
    if address.startswith("unix:"):
        return True
    host = address.rpartition(":")[0].strip("[]")
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
