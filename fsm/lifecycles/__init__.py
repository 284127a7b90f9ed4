"""The scheduler's seven lifecycles, one file each; ``effects`` has what their rows emit."""

from quadriga.fsm.lifecycle import Lifecycle
from quadriga.fsm.lifecycles.allocation import ALLOCATION
from quadriga.fsm.lifecycles.application import APPLICATION
from quadriga.fsm.lifecycles.ask import ASK
from quadriga.fsm.lifecycles.gang import GANG
from quadriga.fsm.lifecycles.node import NODE
from quadriga.fsm.lifecycles.queue import QUEUE
from quadriga.fsm.lifecycles.resource_manager import RESOURCE_MANAGER

__all__ = [
    "ALLOCATION",
    "APPLICATION",
    "ASK",
    "GANG",
    "LIFECYCLES",
    "NODE",
    "QUEUE",
    "RESOURCE_MANAGER",
]

#: by name
LIFECYCLES: dict[str, Lifecycle] = {
    lifecycle.name: lifecycle
    for lifecycle in (APPLICATION, GANG, ASK, ALLOCATION, NODE, RESOURCE_MANAGER, QUEUE)
}
