"""Lifecycles as tables on the library ``transitions``: write your own with ``Lifecycle`` and ``row``.

``fast`` has the machine that they run on, for programs that use the library. ``lifecycles`` has the seven of the
scheduler; it comes with the distribution `quadriga`, and its tables (``APPLICATION``, ``ASK``, ...) are names of
this package too. Nothing here knows the protocol, the scheduler or a clock.
"""

from importlib import import_module
from pkgutil import extend_path
from typing import TYPE_CHECKING, Any

from quadriga.fsm.errors import DefinitionError, InvalidTransition
from quadriga.fsm.explore import path_to, reachable, tour
from quadriga.fsm.fast.machine import FastMachine
from quadriga.fsm.firing import Outcome
from quadriga.fsm.history import history
from quadriga.fsm.lifecycle import Lifecycle
from quadriga.fsm.loading import UnknownState
from quadriga.fsm.nesting import Composite
from quadriga.fsm.table import (
    EVERY,
    STAYS,
    Effect,
    Entity,
    Fired,
    Row,
    Unbounded,
    Within,
    all_of,
    any_of,
    ignored,
    not_,
    row,
    unbounded,
    within,
)
from quadriga.fsm.timers import Due, Timers

if TYPE_CHECKING:
    from quadriga.fsm.fast.nested import FastHierarchicalMachine
    from quadriga.fsm.lifecycles import (
        ALLOCATION,
        APPLICATION,
        ASK,
        GANG,
        LIFECYCLES,
        NODE,
        QUEUE,
        RESOURCE_MANAGER,
    )

# The engine and the lifecycles may be installed in different folders.
__path__ = extend_path(__path__, __name__)

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
    "all_of",
    "any_of",
    "history",
    "ignored",
    "not_",
    "path_to",
    "reachable",
    "row",
    "tour",
    "unbounded",
    "within",
]


# Imported on first use: the lifecycles are not installed with the engine alone, and the library's extensions,
# which nested machines need, take a while to import.
_LATE = {"FastHierarchicalMachine": "quadriga.fsm.fast.nested"} | dict.fromkeys(
    "ALLOCATION APPLICATION ASK GANG LIFECYCLES NODE QUEUE RESOURCE_MANAGER".split(),
    "quadriga.fsm.lifecycles",
)


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = import_module(_LATE[name])
    except ModuleNotFoundError as error:
        if error.name != _LATE[name]:
            raise
        raise ImportError(
            f"{name} is a lifecycle of the scheduler: install the distribution quadriga"
        ) from None
    found = globals()[name] = getattr(module, name)
    return found
