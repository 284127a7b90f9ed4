"""The shim's own lifecycles, as tables of ``quadriga.fsm``; their effects are data (``effects``).

``APPLICATION`` and ``TASK`` are the applications and pods with our scheduler name, ``PLACEHOLDER`` the creation
of one placeholder, ``NODE`` a node, ``REFLECTOR`` a list and watch, ``CONNECTION`` a connection to the
API server, ``SHIM`` the shim itself with its recovery.
"""

from quadriga.fsm import Lifecycle
from quadriga.k8s.lifecycles.application import APPLICATION
from quadriga.k8s.lifecycles.connection import CONNECTION
from quadriga.k8s.lifecycles.node import NODE
from quadriga.k8s.lifecycles.placeholder import PLACEHOLDER
from quadriga.k8s.lifecycles.reflector import REFLECTOR
from quadriga.k8s.lifecycles.shim import RECOVERY, SHIM
from quadriga.k8s.lifecycles.task import TASK

#: The shim's lifecycles by name.
LIFECYCLES: dict[str, Lifecycle] = {
    lifecycle.name: lifecycle
    for lifecycle in (APPLICATION, TASK, NODE, PLACEHOLDER, REFLECTOR, CONNECTION, SHIM, RECOVERY)
}

__all__ = [
    "APPLICATION",
    "CONNECTION",
    "LIFECYCLES",
    "NODE",
    "PLACEHOLDER",
    "RECOVERY",
    "REFLECTOR",
    "SHIM",
    "TASK",
]
