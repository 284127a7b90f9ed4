"""The states of a hierarchical machine, and models whose callbacks write down what they are called with."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nested_world import World


class Inner(Enum):
    x = 1
    y = 2


class Outer(Enum):
    A = 1
    B = Inner
    C = 3


def tree(separator: str, enum: bool) -> list[Any]:
    """The states as a machine is given them; names go by the separator."""
    if enum:
        return [
            {
                "name": Outer.A,
                "initial": "1",
                "children": [{"name": "1", "children": ["a", "b"], "initial": "a"}, "2"],
            },
            Outer.B,
            Outer.C,
            {"name": "P", "parallel": [{"name": "u", "children": ["m", "n"], "initial": "m"}, "v"]},
            {"name": "D", "children": ["D"], "initial": "D"},
        ]
    return [
        {
            "name": "A",
            "initial": "1",
            "children": [{"name": "1", "children": ["a", "b"], "initial": "a"}, "2"],
            "transitions": [["stop", "1", "2"], ["turn", f"1{separator}a", f"1{separator}b"]],
        },
        {
            "name": "B",
            "children": ["x", {"name": "y", "final": True, "on_final": "note"}],
            "on_final": "note",
        },
        {"name": "C", "final": True},
        {"name": "P", "parallel": [{"name": "u", "children": ["m", "n"], "initial": "m"}, "v"]},
        {"name": "D", "children": ["D"], "initial": "D", "transitions": [["turn", "D", "D"]]},
    ]


class Model:
    """Writes down what its callbacks are called with."""

    constant = 1

    def __init__(self, name: str, world: World) -> None:
        self.name = name
        self.world = world

    def __getattr__(self, name: str) -> Any:
        if name.startswith("called_"):
            return lambda *args, **kwargs: self.world.write(self, name, args, kwargs)
        raise AttributeError(name)

    def note(self, *args: Any, **kwargs: Any) -> None:
        self.world.write(self, "note", args, kwargs)

    def yes(self, *args: Any, **kwargs: Any) -> bool:
        self.world.write(self, "yes", args, kwargs)
        return True

    def no(self, *args: Any, **kwargs: Any) -> bool:
        self.world.write(self, "no", args, kwargs)
        return False

    def asked(self, *args: Any, **kwargs: Any) -> Any:
        self.world.write(self, "asked", args, kwargs)
        self.world.calls += 1
        return self.world.calls % 3 == 0

    def fail(self, *args: Any, **kwargs: Any) -> None:
        self.world.write(self, "fail", args, kwargs)
        raise RuntimeError(f"{self.name} fails")

    def again(self, *args: Any, **kwargs: Any) -> None:
        self.world.write(self, "again", args, kwargs)
        if self.world.may_go_on():
            self.trigger("turn", "from within")

    def back(self, *args: Any, **kwargs: Any) -> None:
        self.world.write(self, "back", args, kwargs)
        if self.world.may_go_on() and self.world.calls % 3 == 0:
            self.trigger(self.world.name("to_A"))

    def grow(self, *args: Any, **kwargs: Any) -> bool:
        """Adds callbacks to lists that may just be gone through."""
        self.world.write(self, "grow", args, kwargs)
        if self.world.may_go_on():
            machine = self.world.machine
            machine.after_state_change.append("note")
            for transition in self.world.transitions("go")[:3]:
                transition.after.append("note")
            for state in self.world.all_states():
                state.on_enter.append("note")
        return True

    def shrink(self, *args: Any, **kwargs: Any) -> None:
        self.world.write(self, "shrink", args, kwargs)
        del self.world.machine.before_state_change[:1]
        for state in self.world.all_states():
            state.on_exit.clear()

    def toggle(self, *args: Any, **kwargs: Any) -> None:
        self.world.write(self, "toggle", args, kwargs)
        self.world.machine.send_event = not self.world.machine.send_event

    def jump(self, *args: Any, **kwargs: Any) -> bool:
        """Sets the state past all triggers."""
        self.world.write(self, "jump", args, kwargs)
        self.world.calls += 1
        names = ("C", "A/2", "A/1/b", "B/y")
        self.world.machine.set_state(self.world.name(names[self.world.calls % 4]), self)
        return True

    def extend(self, *args: Any, **kwargs: Any) -> bool:
        """Adds states and transitions in the scope in which the machine just is."""
        self.world.write(self, "extend", args, kwargs)
        if self.world.may_go_on():
            machine = self.world.machine
            machine.add_state(f"new{self.world.calls}")
            machine.add_transition(
                "go", list(machine.states), f"new{self.world.calls}", after="note"
            )
        return True

    def on_enter_B_y(self, *args: Any, **kwargs: Any) -> None:
        self.world.write(self, "on_enter_B_y", args, kwargs)

    def on_exit_A(self, *args: Any, **kwargs: Any) -> None:
        self.world.write(self, "on_exit_A", args, kwargs)


class Guarded(Model):
    """Writes down each assignment to its state."""

    @property
    def state(self) -> Any:
        return self.__dict__.get("kept")

    @state.setter
    def state(self, value: Any) -> None:
        self.__dict__["kept"] = value
        self.world.story.append((self.name, "is set to", repr(value), self.world.scope()))
