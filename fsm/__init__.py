"""Lifecycles as tables on the library ``transitions``.

Seven of them describe a scheduler: ``APPLICATION``, ``GANG``, ``ASK``, ``ALLOCATION``, ``NODE``,
``RESOURCE_MANAGER`` and ``QUEUE``. With ``Lifecycle`` and ``row`` you can write your own. This package
knows neither the protocol nor the scheduler, and it has no clock.
"""

from typing import TYPE_CHECKING, Any

from quadriga.fsm.allocation import ALLOCATION
from quadriga.fsm.application import APPLICATION
from quadriga.fsm.ask import ASK
from quadriga.fsm.errors import DefinitionError, InvalidTransition
from quadriga.fsm.explore import path_to, reachable, tour
from quadriga.fsm.fast_machine import FastMachine
from quadriga.fsm.firing import Outcome
from quadriga.fsm.gang import GANG
from quadriga.fsm.history import history
from quadriga.fsm.lifecycle import Lifecycle
from quadriga.fsm.loading import UnknownState
from quadriga.fsm.nesting import Composite
from quadriga.fsm.node import NODE
from quadriga.fsm.queue import QUEUE
from quadriga.fsm.resource_manager import RESOURCE_MANAGER
from quadriga.fsm.table import (
    EVERY,
    STAYS,
    Effect,
    Entity,
    Fired,
    Row,
    Unbounded,
    Within,
    ignored,
    row,
    unbounded,
    within,
)
from quadriga.fsm.timers import Due, Timers

if TYPE_CHECKING:
    from quadriga.fsm.fast_nested import FastHierarchicalMachine

#: The scheduler's lifecycles by name.
LIFECYCLES: dict[str, Lifecycle] = {
    lifecycle.name: lifecycle
    for lifecycle in (APPLICATION, GANG, ASK, ALLOCATION, NODE, RESOURCE_MANAGER, QUEUE)
}

__all__ = [
    "ALLOCATION",
    "APPLICATION",
    "ASK",
    "EVERY",
    "GANG",
    "LIFECYCLES",
    "NODE",
    "QUEUE",
    "RESOURCE_MANAGER",
    "STAYS",
    "Composite",
    "DefinitionError",
    "Due",
    "Effect",
    "Entity",
    "FastHierarchicalMachine",
    "FastMachine",
    "Fired",
    "InvalidTransition",
    "Lifecycle",
    "Outcome",
    "Row",
    "Timers",
    "Unbounded",
    "UnknownState",
    "Within",
    "history",
    "ignored",
    "path_to",
    "reachable",
    "row",
    "tour",
    "unbounded",
    "within",
]


def __getattr__(name: str) -> Any:
    # Needs the library's extensions, which take a while to import.
    if name == "FastHierarchicalMachine":
        from quadriga.fsm.fast_nested import FastHierarchicalMachine

        return FastHierarchicalMachine
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
