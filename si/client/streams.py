"""The streams of a resource manager, as a table: their RPCs, messages and callback methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from google.protobuf.message import Message

from quadriga.si import (
    AllocationRequest,
    AllocationResponse,
    ApplicationRequest,
    ApplicationResponse,
    NodeRequest,
    NodeResponse,
)
from quadriga.si.extension.extension_pb2 import ALLOCATION, APPLICATION, CALLBACK, NODE, Channel


class Stream(NamedTuple):
    """One stream of the scheduler interface. `method` is its path in gRPC; `callback` is the method
    of `ResourceManagerCallback` that receives its messages."""

    method: str
    request: type[Any]
    read: Callable[[bytes], Message]
    callback: str


# fmt: off
STREAMS: Final[Mapping[Channel, Stream]] = {
    APPLICATION: Stream("/si.v1.Scheduler/UpdateApplication",
                        ApplicationRequest, ApplicationResponse.FromString, "update_application"),
    ALLOCATION:  Stream("/si.v1.Scheduler/UpdateAllocation",
                        AllocationRequest, AllocationResponse.FromString, "update_allocation"),
    NODE:        Stream("/si.v1.Scheduler/UpdateNode",
                        NodeRequest, NodeResponse.FromString, "update_node"),
}
# fmt: on

STREAM_OF: Final[Mapping[type[Any], Channel]] = {
    stream.request: channel for channel, stream in STREAMS.items()
}

#: the streams and Callbacks
CHANNELS: Final[tuple[Channel, ...]] = (*STREAMS, CALLBACK)
