"""The four channels of a resource manager (RM): one kind of stream each, with its RPC and its message."""

from __future__ import annotations

from typing import Any, Final

from quadriga.si.extension.extension_pb2 import CallbackAnswer, Channel
from quadriga.si.v1.si_pb2 import AllocationRequest, ApplicationRequest, NodeRequest

ALLOCATION: Final = Channel.ALLOCATION
APPLICATION: Final = Channel.APPLICATION
NODE: Final = Channel.NODE
CALLBACK: Final = Channel.CALLBACK

#: the three streams of ``service Scheduler``; Callbacks belongs to the extension
SI_CHANNELS: Final = (ALLOCATION, APPLICATION, NODE)

#: channel -> name of the RPC
RPC_OF: Final[dict[int, str]] = {
    ALLOCATION: "UpdateAllocation",
    APPLICATION: "UpdateApplication",
    NODE: "UpdateNode",
    CALLBACK: "Callbacks",
}

#: channel -> type of the messages that the RM sends on it
MESSAGE_OF: Final[dict[int, type[Any]]] = {
    ALLOCATION: AllocationRequest,
    APPLICATION: ApplicationRequest,
    NODE: NodeRequest,
    CALLBACK: CallbackAnswer,
}
