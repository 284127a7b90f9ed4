"""Machines of every kind, for the tests of ``quadriga-fsm stubs``."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from transitions import EventData, Machine
from transitions.extensions import HierarchicalMachine, LockedMachine
from transitions.extensions.asyncio import AsyncMachine, HierarchicalAsyncMachine
from transitions.extensions.nesting import NestedState

from quadriga.fsm import FastHierarchicalMachine, FastMachine

if TYPE_CHECKING:
    from decimal import Decimal


class Colour(Enum):
    RED = 1
    GREEN = 2


class Order:
    paid = True

    def is_dear(self, amount: int, note: str = "") -> bool:
        return amount > 100

    def charge(self, amount: int, note: str = "") -> None: ...

    def log(self, *args: Any, **kwargs: Any) -> None: ...

    def weigh(self, weight: Decimal) -> None: ...


class Parcel:
    def stamp(self, event: EventData) -> None: ...


class Door(Machine):
    def __init__(self) -> None:
        super().__init__(states=["open", "shut"], initial="open")


class DottedState(NestedState):
    separator = "."


class Dotted(HierarchicalMachine):
    state_cls = DottedState


TREE: Any = [
    "off",
    {"name": "on", "initial": "low", "children": ["low", {"name": "3", "children": ["x"]}]},
]
ODD: Any = ["in transit", "class", 'quoted"\\']
GO: Any = [
    ["go", "off", "on"],
    ["go", "on", "off"],
    {"trigger": "stop", "source": "*", "dest": "off"},
]

order = FastMachine(
    Order(),
    states=["new", "paid"],
    initial="new",
    transitions=[
        {"trigger": "pay", "source": "new", "dest": "paid", "conditions": ["is_dear", "paid"], "before": "charge"},
        {"trigger": "weigh_it", "source": "new", "dest": "=", "before": ["weigh", "log"]},
        ["wrap", "new", None],
    ],
    after_state_change="log",
    auto_transitions=False,
)  # fmt: skip
colours = Machine(
    Parcel(), states=Colour, initial=Colour.RED, send_event=True, model_attribute="colour",
    transitions=[{"trigger": "go", "source": Colour.RED, "dest": Colour.GREEN, "before": "stamp"}],
)  # fmt: skip
door = Door()
locked = LockedMachine(Order(), states=ODD, initial="class")
nested = FastHierarchicalMachine(Order(), states=TREE, initial="off", transitions=GO)
dotted = Dotted(Order(), states=TREE, initial="off", transitions=GO)
parallel = HierarchicalMachine(
    Order(),
    states=[{"name": "p", "parallel": ["a", {"name": "b", "children": Colour, "initial": Colour.RED}]}],
    initial="p",
)  # fmt: skip
live = AsyncMachine(
    Order(), states=["new", "paid"], initial="new", transitions=[["pay", "new", "paid"]]
)
live_nested = HierarchicalAsyncMachine(Order(), states=TREE, initial="off", transitions=GO)
empty = FastMachine(None, states=[], initial=None, auto_transitions=False)
