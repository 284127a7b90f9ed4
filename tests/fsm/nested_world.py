"""A hierarchical machine whose models write down what happens to them: its states, models and acts."""

from __future__ import annotations

import copy
from enum import Enum
from typing import Any

import fsm_worlds
from transitions.extensions.nesting import HierarchicalMachine, NestedState

from quadriga.fsm import FastHierarchicalMachine

CALLBACKS = (*fsm_worlds.CALLBACKS, "back", "jump", "extend")
CONDITIONS = (*fsm_worlds.CONDITIONS, "jump", "extend")
#: nested ones with an initial state, without one, parallel ones, and one whose name is met again within
PATHS = tuple("A A/1 A/1/a A/1/b A/2 B B/x B/y C P P/u P/u/m P/v D D/D".split())


class Inner(Enum):
    x = 1
    y = 2


class Outer(Enum):
    A = 1
    B = Inner
    C = 3


def tree(separator: str, enum: bool) -> list[Any]:
    first = [{"name": "1", "children": ["a", "b"], "initial": "a"}, "2"]
    u = {"name": "u", "children": ["m", "n"], "initial": "m"}
    p = {"name": "P", "parallel": [u, "v"]}
    d = {"name": "D", "children": ["D"], "initial": "D"}
    if enum:
        return [{"name": Outer.A, "initial": "1", "children": first}, Outer.B, Outer.C, p, d]
    turns = [["stop", "1", "2"], ["turn", f"1{separator}a", f"1{separator}b"]]
    y = {"name": "y", "final": True, "on_final": "note"}
    return [
        {"name": "A", "initial": "1", "children": first, "transitions": turns},
        {"name": "B", "children": ["x", y], "on_final": "note"},
        {"name": "C", "final": True},
        p,
        {**d, "transitions": [["turn", "D", "D"]]},
    ]


class Model(fsm_worlds.Model):
    world: World

    def back(self, *args: Any, **kwargs: Any) -> None:
        self.world.write(self, "back", args, kwargs)
        if self.world.may_go_on() and self.world.calls % 3 == 0:
            self.trigger(self.world.name("to_A"))

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


class World(fsm_worlds.World):
    ordered_states = ("A/1/a", "A/2", "B/x", "C")
    state_cls = NestedState

    def __init__(self, machine_cls: type[HierarchicalMachine], options: dict[str, Any]) -> None:
        super().__init__()
        options = dict(options)
        self.separator = separator = options.pop("separator")
        self.enum, listed = options.pop("enum"), options.pop("listed")
        if separator != "_":
            state_cls = type("State", (machine_cls.state_cls,), {"separator": separator})
            machine_cls = type("Own", (machine_cls,), {"state_cls": state_cls})
        self.machine = machine_cls(
            None,
            states=tree(separator, self.enum),
            initial="A",
            before_state_change=self.lists[0] if listed else None,
            **options,
        )
        self.models = [*(Model(f"model {n}", self) for n in range(3)), Guarded("model 3", self)]
        self.machine.add_model(self.models[0])
        self.machine.add_model(self.models[1:])

    def name(self, path: str) -> str:
        return path.replace("/", self.separator)

    def scope(self) -> Any:
        machine = self.machine
        scoped = "machine" if machine.scoped is machine else machine.scoped._name
        here = map(list, (machine.prefix_path, machine.states, machine.events))
        return repr(scoped), *here, len(machine._stack)

    # -- acts ---------------------------------------------------------------------------------

    def to(self, which: int, path: str) -> Any:
        return self.models[which].to(self.name(path))

    def ask(self, which: int, path: str) -> Any:
        asked = self.name(path), self.models[which]
        return self.machine.is_state(*asked), self.machine.is_state(*asked, True)

    def inner_transition(
        self, scope: str, trigger: str, source: str, dest: str, conditions: Any, after: Any
    ) -> None:
        """A transition of a state; its names are those within it, or any."""
        with self.machine(scope):
            self.machine.add_transition(
                trigger, self.name(source), self.name(dest), conditions=conditions, after=after
            )

    def inner_state(self, scope: str, name: str, callbacks: Any) -> None:
        with self.machine(scope):
            self.machine.add_state(
                {"name": name, "on_enter": callbacks, "children": ["p", "q"], "initial": "q"}
            )

    def drop_state(self, path: str) -> None:
        *above, name = path.split("/")
        state = self.machine
        for each in above:
            state = state.states[each]
        del state.states[name]

    def initial(self, path: str, value: Any) -> None:
        self.state(path).initial = value

    def more_initial(self, path: str, value: str) -> None:
        self.state(path).initial.append(value)

    def by_name(self, name: str, path: str, callback: str) -> None:
        getattr(self.machine, name)(self.name(path), callback)

    def drop_event(self, scope: str, trigger: str) -> None:
        del self.machine.states[scope].events[trigger]

    def final(self, path: str, callback: str) -> None:
        state = self.state(path)
        state.final = True
        state.on_final.append(callback)
        self.machine.on_final = callback

    def within(self, scope: str, which: int, trigger: str) -> Any:
        with self.machine(scope):
            return getattr(self.models[which], trigger)("in a scope")

    def swap_states(self) -> None:
        self.machine.states = type(self.machine.states)(reversed(self.machine.states.items()))

    def separate(self, separator: str) -> None:
        """Another separator for all names, which old names of states do not follow."""
        if self.separator != "_":
            self.machine.state_cls.separator = separator

    def nest(self, name: str) -> None:
        made = type(self.machine)(None, states=[*"ij"], initial="i", transitions=[["go", "i", "j"]])
        self.machine.add_state({"name": name, "children": made, "remap": {"j": "C"}})

    def renew(self) -> None:
        """Goes on with a copy of the machine, which has copies of its models too."""
        self.machine, self.models, self.lists = copy.deepcopy(
            (self.machine, self.models, self.lists), {id(self): self}
        )


def compare(options: dict[str, Any], sequence: list[tuple[Any, ...]]) -> None:
    stock, fast = World(HierarchicalMachine, options), World(FastHierarchicalMachine, options)
    fsm_worlds.compare(stock, fast, sequence)
