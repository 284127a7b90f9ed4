"""A stock hierarchical machine and a fast one side by side: the same calls, and whatever happens has to be the same.

The calls change the machines while they run: nested states, transitions of machines and of states, callbacks in
lists, models, the separator of names. Callbacks write down what they were called with and in which scope; some
raise, some change the machine, set the state or trigger something themselves.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator
from enum import Enum
from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transitions.core import listify
from transitions.extensions.nesting import HierarchicalMachine, NestedState

from quadriga.fsm import FastHierarchicalMachine

LOGGERS = ("transitions.core", "transitions.extensions.nesting")
TRIGGERS = ("go", "stop", "turn")
CALLBACKS = (
    "note",
    "fail",
    "again",
    "grow",
    "shrink",
    "toggle",
    "jump",
    "extend",
    "missing",
    "constant",
)
CONDITIONS = ("yes", "no", "asked", "fail", "grow", "jump", "extend", "constant")
LISTS = (
    "prepare_event",
    "before_state_change",
    "after_state_change",
    "finalize_event",
    "on_exception",
)
ATTRIBUTES = ("state", "mode")

#: as paths: nested ones with an initial state, without one, parallel ones, and one whose name is met again within
PATHS = (
    "A",
    "A/1",
    "A/1/a",
    "A/1/b",
    "A/2",
    "B",
    "B/x",
    "B/y",
    "C",
    "P",
    "P/u",
    "P/u/m",
    "P/v",
    "D",
    "D/D",
)


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


class World:
    """One machine and what has happened in it."""

    def __init__(self, machine_cls: type[HierarchicalMachine], options: dict[str, Any]) -> None:
        self.story: list[Any] = []
        self.calls = 0
        self.lists: list[list[str]] = [[], []]
        options = dict(options)
        self.separator = separator = options.pop("separator")
        self.enum, listed = options.pop("enum"), options.pop("listed")
        fast = issubclass(machine_cls, FastHierarchicalMachine)
        state_cls = (
            type("State", (machine_cls.state_cls,), {"separator": separator})
            if separator != "_"
            else None
        )
        cls = type("Own", (machine_cls,), {"state_cls": state_cls}) if state_cls else machine_cls
        assert not fast or issubclass(cls, FastHierarchicalMachine)
        self.machine: Any = cls(
            None,
            states=tree(separator, self.enum),
            initial="A",
            before_state_change=self.lists[0] if listed else None,
            **options,
        )
        self.models: list[Any] = [Model(f"model {n}", self) for n in range(3)]
        self.models.append(Guarded("model 3", self))
        self.machine.add_model(self.models[0])
        self.machine.add_model(self.models[1:])

    def name(self, path: str) -> str:
        return path.replace("/", self.separator)

    def may_go_on(self) -> bool:
        self.calls += 1
        return self.calls < 12

    def all_states(self) -> list[Any]:
        def below(states: Any) -> Iterator[Any]:
            for state in states.values():
                yield state
                yield from below(state.states)

        return list(below(self.machine.states))

    def events(self, trigger: str) -> list[Any]:
        held = [self.machine, *self.all_states()]
        return [each.events[trigger] for each in held if trigger in each.events]

    def transitions(self, trigger: str) -> list[Any]:
        return [
            each
            for event in self.events(trigger)
            for found in event.transitions.values()
            for each in found
        ]

    def scope(self) -> Any:
        machine = self.machine
        scoped = "machine" if machine.scoped is machine else machine.scoped._name
        return (
            repr(scoped),
            list(machine.prefix_path),
            list(machine.states),
            list(machine.events),
            len(machine._stack),
        )

    def write(self, model: Model, what: str, args: Any, kwargs: Any) -> None:
        said: list[Any] = []
        for arg in args:
            if hasattr(arg, "event"):
                transition = arg.transition
                path = transition and (transition.source, transition.dest)
                about = {
                    name: value
                    for name, value in vars(arg).items()
                    if name in ("source_name", "source_path", "scope")
                }
                states = [state and state.name for state in listify(arg.state)]
                said.append(
                    (
                        arg.event and arg.event.name,
                        states,
                        path,
                        arg.args,
                        arg.kwargs,
                        copy.deepcopy(about),
                    )
                )
                said.append(
                    (arg.model.name, repr(arg.error), arg.result, arg.machine is self.machine)
                )
            else:
                said.append(arg)
        self.story.append((model.name, what, self.states(model), self.scope(), said, kwargs))

    def states(self, model: Any) -> Any:
        return [repr(getattr(model, attribute, None)) for attribute in ATTRIBUTES]

    def do(self, act: tuple[Any, ...]) -> Any:
        name, *arguments = act
        try:
            result = getattr(self, name)(*arguments)
        except Exception as error:
            result = (type(error), str(error).replace("Hierarchical", ""))
        return result, [self.states(model) for model in self.models], self.scope()

    # -- acts ---------------------------------------------------------------------------------

    def fire(self, which: int, trigger: str) -> Any:
        return getattr(self.models[which], trigger)("an argument", named=1)

    def fire_by_name(self, which: int, trigger: str) -> Any:
        return self.models[which].trigger(self.name(trigger))

    def to(self, which: int, path: str) -> Any:
        return self.models[which].to(self.name(path))

    def may(self, which: int, trigger: str) -> Any:
        return getattr(self.models[which], f"may_{trigger}")(named=2)

    def ask(self, which: int, path: str) -> Any:
        model = self.models[which]
        return self.machine.is_state(self.name(path), model), self.machine.is_state(
            self.name(path), model, True
        )

    def dispatch(self, trigger: str) -> Any:
        return self.machine.dispatch(trigger)

    def transition(
        self, trigger: str, source: str, dest: Any, conditions: Any, before: Any, after: Any
    ) -> None:
        dest = dest and self.name(dest)
        source = self.name(source)
        self.machine.add_transition(
            trigger, source, dest, conditions=conditions, before=before, after=after
        )

    def inner_transition(
        self, scope: str, trigger: str, source: str, dest: str, conditions: Any, after: Any
    ) -> None:
        """A transition of a state; its names are those within it, or any."""
        with self.machine(scope):
            self.machine.add_transition(
                trigger, self.name(source), self.name(dest), conditions=conditions, after=after
            )

    def shared_list(self, trigger: str, source: str, dest: str) -> None:
        """A list of the caller's own, which changes later without the machine."""
        self.machine.add_transition(
            trigger, self.name(source), self.name(dest), before=self.lists[1]
        )

    def own_list(self, which: int, callback: str) -> None:
        self.lists[which].append(callback)

    def remove_transition(self, trigger: str, source: str, dest: str) -> None:
        self.machine.remove_transition(trigger, self.name(source), self.name(dest))

    def ordered(self) -> None:
        self.machine.add_ordered_transitions(
            [self.name(path) for path in ("A/1/a", "A/2", "B/x", "C")], "turn"
        )

    def add_state(self, path: str, ready_made: bool, callbacks: Any) -> None:
        if ready_made:
            self.machine.add_state(NestedState(path.rpartition("/")[2], on_enter=callbacks))
        else:
            self.machine.add_state(self.name(path), on_exit=callbacks)

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
        self.machine.get_state(self.name(path)).initial = value

    def more_initial(self, path: str, value: str) -> None:
        """Another initial state in the list of a parallel one."""
        self.machine.get_state(self.name(path)).initial.append(value)

    def callback(self, name: str, callback: str) -> None:
        getattr(self.machine, name).append(callback)

    def callbacks(self, name: str, callbacks: Any) -> None:
        setattr(self.machine, name, callbacks)

    def state_callback(self, path: str, name: str, callback: str) -> None:
        getattr(self.machine.get_state(self.name(path)), name).append(callback)

    def by_name(self, name: str, path: str, callback: str) -> None:
        getattr(self.machine, name)(self.name(path), callback)

    def transition_callback(self, trigger: str, kind: str, callback: str) -> None:
        for transition in self.transitions(trigger):
            getattr(transition, kind).append(callback)

    def conditions(self, trigger: str, conditions: Any) -> None:
        for transition in self.transitions(trigger):
            made = [type(transition).condition_cls(each) for each in conditions]
            transition.conditions[:1] = made

    def shuffle(self, trigger: str) -> None:
        for event in self.events(trigger):
            for found in event.transitions.values():
                found.reverse()

    def drop_source(self, trigger: str, source: str) -> None:
        for event in self.events(trigger):
            event.transitions.pop(self.name(source), None)

    def drop_event(self, scope: str, trigger: str) -> None:
        del self.machine.states[scope].events[trigger]

    def move_source(self, trigger: str, source: str, other: str) -> None:
        transitions = self.machine.events[trigger].transitions
        transitions[self.name(source)] = list(transitions[self.name(other)])

    def retarget(self, trigger: str, dest: str) -> None:
        for transition in self.transitions(trigger):
            transition.dest = self.name(dest)

    def final(self, path: str, callback: str) -> None:
        state = self.machine.get_state(self.name(path))
        state.final = True
        state.on_final.append(callback)
        self.machine.on_final = callback

    def option(self, name: str, value: Any) -> None:
        setattr(self.machine, name, value)

    def ignore(self, path: str, value: Any) -> None:
        self.machine.get_state(self.name(path)).ignore_invalid_triggers = value

    def add_model(self, which: int, initial: Any) -> None:
        self.machine.add_model(self.models[which], initial and self.name(initial))

    def remove_model(self, which: int) -> None:
        self.machine.remove_model(self.models[which])

    def set_state(self, which: int, path: Any) -> None:
        names = self.name(path) if isinstance(path, str) else [self.name(each) for each in path]
        self.machine.set_state(names, self.models[which])

    def put_state(self, which: int, path: str) -> None:
        setattr(self.models[which], self.machine.model_attribute, self.name(path))

    def within(self, scope: str, which: int, trigger: str) -> Any:
        """A trigger while the machine is in a scope."""
        with self.machine(scope):
            return getattr(self.models[which], trigger)("in a scope")

    def swap_states(self) -> None:
        self.machine.states = type(self.machine.states)(reversed(self.machine.states.items()))

    def replace_step(self, path: str, name: str) -> None:
        setattr(
            self.machine.get_state(self.name(path)),
            name,
            lambda *args: self.story.append("replaced"),
        )

    def replace_method(self, name: str) -> None:
        instead = getattr(self.machine, name)
        setattr(self.machine, name, lambda *args: self.story.append(name) or instead(*args))

    def separate(self, separator: str) -> None:
        """Another separator for all names, which old names of states do not follow."""
        if self.separator != "_":
            self.machine.state_cls.separator = separator

    def nest(self, name: str) -> None:
        """A machine as the children of a state."""
        other = type(self.machine)(
            None, states=["i", "j"], initial="i", transitions=[["go", "i", "j"]]
        )
        self.machine.add_state({"name": name, "children": other, "remap": {"j": "C"}})

    def renew(self) -> None:
        """Goes on with a copy of the machine, which has copies of its models too."""
        self.machine, self.models, self.lists = copy.deepcopy(
            (self.machine, self.models, self.lists), {id(self): self}
        )

    def print_steps(self, on: bool) -> None:
        for name in LOGGERS:
            logging.getLogger(name).setLevel(logging.DEBUG if on else logging.NOTSET)


# fmt: off
which, path, trigger = st.integers(0, 3), st.sampled_from(PATHS), st.sampled_from(TRIGGERS)
inner = st.sampled_from(("1", "1/a", "2", "x", "y", "D", "A", "A/2", "C", "nowhere"))
scope = st.sampled_from(("A", "B", "C", "D"))
new_path = st.sampled_from((*PATHS, "E", "A/E", "C/c", "E/e"))
dest = st.sampled_from((*PATHS, "E", "=", None))
callback, condition = st.sampled_from(CALLBACKS), st.sampled_from(CONDITIONS)
callbacks = st.one_of(st.none(), callback, st.lists(callback, max_size=2))
conditions = st.one_of(st.none(), condition, st.lists(condition, max_size=2))


def changes() -> st.SearchStrategy[tuple[Any, ...]]:
    just = st.just
    source = st.sampled_from((*PATHS, "*"))
    transition = st.tuples(just("transition"), trigger, source, dest, conditions, callbacks, callbacks)
    return st.one_of(
        transition,
        st.tuples(just("inner_transition"), scope, trigger, inner, inner, conditions, callbacks),
        st.tuples(just("shared_list"), trigger, path, path),
        st.tuples(just("own_list"), st.integers(0, 1), callback),
        st.tuples(just("remove_transition"), trigger, st.sampled_from((*PATHS, "*")), st.sampled_from((*PATHS, "*"))),
        st.tuples(just("ordered")),
        st.tuples(just("add_state"), new_path, st.booleans(), callbacks),
        st.tuples(just("inner_state"), scope, st.sampled_from(("1", "new")), callbacks),
        st.tuples(just("drop_state"), path),
        st.tuples(just("initial"), path, st.sampled_from(("1", "2", "a", "b", "x", "u", None))),
        st.tuples(just("initial"), path, st.lists(st.sampled_from(("1", "2", "x", "y")), max_size=2)),
        st.tuples(just("more_initial"), path, st.sampled_from(("1", "2", "x", "y"))),
        st.tuples(just("callback"), st.sampled_from(LISTS), callback),
        st.tuples(just("callbacks"), st.sampled_from(LISTS), callbacks),
        st.tuples(just("state_callback"), path, st.sampled_from(("on_enter", "on_exit", "on_final")), callback),
        st.tuples(just("by_name"), st.sampled_from(("on_enter", "on_exit")), new_path, callback),
        st.tuples(just("transition_callback"), trigger, st.sampled_from(("prepare", "before", "after")), callback),
        st.tuples(just("conditions"), trigger, st.lists(condition, max_size=2)),
        st.tuples(just("shuffle"), trigger),
        st.tuples(just("drop_source"), trigger, path),
        st.tuples(just("drop_event"), scope, trigger),
        st.tuples(just("move_source"), trigger, path, path),
        st.tuples(just("retarget"), trigger, new_path),
        st.tuples(just("final"), path, callback),
        st.tuples(just("option"), just("send_event"), st.booleans()),
        st.tuples(just("option"), just("ignore_invalid_triggers"), st.sampled_from((True, False, None))),
        st.tuples(just("option"), just("model_attribute"), st.sampled_from(ATTRIBUTES)),
        st.tuples(just("option"), just("auto_transitions"), st.booleans()),
        st.tuples(just("option"), just("_queued"), st.booleans()),
        st.tuples(just("ignore"), path, st.sampled_from((True, False, None))),
        st.tuples(just("add_model"), which, st.one_of(st.none(), new_path)),
        st.tuples(just("remove_model"), which),
        st.tuples(just("set_state"), which, st.one_of(new_path, just(("P/u/m", "P/v")))),
        st.tuples(just("put_state"), which, new_path),
        st.tuples(just("swap_states")),
        st.tuples(just("replace_step"), path, st.sampled_from(("enter", "exit", "scoped_enter", "scoped_exit"))),
        st.tuples(just("replace_method"), st.sampled_from(("callbacks", "set_state", "get_state", "build_state_tree"))),
        st.tuples(just("separate"), st.sampled_from((".", "/", "->"))),
        st.tuples(just("nest"), st.sampled_from(("N", "M"))),
        st.tuples(just("renew")),
        st.tuples(just("print_steps"), st.booleans()),
    )


def uses() -> st.SearchStrategy[tuple[Any, ...]]:
    just = st.just
    fire = st.tuples(just("fire"), which, trigger)
    named = st.sampled_from((*TRIGGERS, "to_A", "to_B/x", "to_P", "to_A/1/b", "no such"))
    others = st.one_of(
        st.tuples(just("to"), which, path),
        st.tuples(just("may"), which, trigger),
        st.tuples(just("ask"), which, new_path),
        st.tuples(just("dispatch"), trigger),
        st.tuples(just("within"), scope, which, trigger),
    )
    return st.integers(0, 9).flatmap(
        lambda n: fire if n < 6 else st.tuples(just("fire_by_name"), which, named) if n < 8 else others
    )


#: a change, and then uses of the machine
STEPS = st.lists(
    st.builds(lambda change, following: [change, *following], changes(), st.lists(uses(), min_size=3, max_size=6)),
    min_size=4, max_size=20,
)
OPTIONS = st.fixed_dictionaries({
    "send_event": st.booleans(),
    "queued": st.booleans(),
    "auto_transitions": st.booleans(),
    "ignore_invalid_triggers": st.sampled_from((None, True)),
    "separator": st.sampled_from(("_", "_", ".")),
    "enum": st.booleans(),
    "listed": st.booleans(),
})
START = [
    ("transition", "go", "*", "B/x", None, None, None),
    ("transition", "turn", "*", "A", "asked", None, None),
    ("transition", "stop", "A", "C", None, None, None),
]
# fmt: on


class Lines(logging.Handler):
    """What the library's loggers print."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())

    def taken(self) -> list[str]:
        lines, self.lines = self.lines, []
        return lines


def compare(options: dict[str, Any], sequence: list[tuple[Any, ...]]) -> World:
    stock, fast = World(HierarchicalMachine, options), World(FastHierarchicalMachine, options)
    handler = Lines()
    for name in LOGGERS:
        logging.getLogger(name).addHandler(handler)
    try:
        for number, act in enumerate(sequence):
            expected, printed = stock.do(copy.deepcopy(act)), handler.taken()  # lists of its own
            got = fast.do(copy.deepcopy(act))
            assert got == expected, (number, act)
            assert handler.taken() == printed, (number, act)
            assert fast.story == stock.story, (number, act)
            if len(stock.story) > 400:  # callbacks that grow have grown enough
                break
    finally:
        for name in LOGGERS:
            logging.getLogger(name).setLevel(logging.NOTSET)
            logging.getLogger(name).removeHandler(handler)
    return fast


@given(OPTIONS, STEPS)
def test_a_fast_machine_does_what_the_librarys_does(
    options: dict[str, Any], steps: list[Any]
) -> None:
    compare(options, [*START, *chain.from_iterable(steps)])


# fmt: off
CHANGES: list[tuple[Any, ...]] = [
    ("transition", "go", "A/1/a", "D", None, None, None),
    ("transition", "go", "A", None, "no", "note", "fail"),
    ("transition", "turn", "A/1/a", "P", None, None, None),
    ("inner_transition", "A", "go", "1/a", "2", None, None),
    ("inner_transition", "A", "stop", "1", "2", "jump", "note"),
    ("inner_transition", "D", "turn", "D", "D", None, "note"),
    ("inner_transition", "B", "turn", "x", "A", None, "note"),
    ("shared_list", "go", "B/x", "C"),
    ("own_list", 0, "note"),
    ("remove_transition", "go", "A", "*"),
    ("remove_transition", "turn", "*", "*"),
    ("ordered",),
    ("add_state", "A/E", False, "note"),
    ("add_state", "E", True, "note"),
    ("inner_state", "A", "new", "note"),
    ("drop_state", "B/x"),
    ("drop_state", "A/1/a"),
    ("drop_state", "B"),
    ("initial", "A", "2"),
    ("initial", "A/1", "b"),
    ("initial", "A", None),
    ("initial", "B", "y"),
    ("initial", "C", ["nowhere"]),
    ("more_initial", "P", "u"),
    *(("callback", name, "note") for name in LISTS),
    *(("callbacks", name, ["note", "grow"]) for name in LISTS),
    *(("callback", name, "fail") for name in LISTS),
    *(("callback", name, "jump") for name in LISTS),
    *(("callback", name, "extend") for name in LISTS),
    *(("callback", name, "again") for name in LISTS),
    ("state_callback", "B/x", "on_enter", "note"),
    ("state_callback", "B/x", "on_enter", "again"),
    ("state_callback", "A/1", "on_exit", "grow"),
    ("state_callback", "A/1/a", "on_enter", "again"),
    ("state_callback", "A/1", "on_enter", "jump"),
    ("by_name", "on_enter", "B/x", "toggle"),
    *(("transition_callback", "go", kind, "grow") for kind in ("prepare", "before", "after")),
    *(("transition_callback", "turn", kind, "extend") for kind in ("prepare", "before", "after")),
    *(("transition_callback", "turn", kind, "jump") for kind in ("prepare", "before", "after")),
    ("conditions", "go", ["no"]),
    ("conditions", "turn", ["yes"]),
    ("conditions", "go", ["grow", "fail"]),
    ("conditions", "turn", ["jump", "no"]),
    ("shuffle", "turn"),
    ("drop_source", "go", "A"),
    ("drop_event", "A", "stop"),
    ("move_source", "go", "A/1/a", "B"),
    ("retarget", "go", "A/2"),
    ("retarget", "turn", "nowhere"),
    ("final", "B/x", "note"),
    ("final", "B/x", "jump"),
    ("option", "send_event", True),
    ("option", "model_attribute", "mode"),
    ("option", "_queued", True),
    ("option", "ignore_invalid_triggers", True),
    ("put_state", 0, "nowhere"),
    ("put_state", 0, "A/nowhere"),
    ("set_state", 0, ("P/u/m", "P/v")),
    ("remove_model", 1),
    ("within", "A", 0, "go"),
    ("swap_states",),
    *(("replace_step", path, name) for path in ("A", "A/1", "B/x") for name in ("enter", "exit", "scoped_enter")),
    *(("replace_method", name) for name in ("callbacks", "callback", "set_state", "get_state", "build_state_tree")),
    ("nest", "N"),
    ("renew",),
    ("separate", "/"),
    ("print_steps", True),
]
WORLDS = (
    {"separator": "_", "enum": False, "listed": False},
    {"separator": ".", "enum": False, "listed": True, "send_event": True},
    {"separator": "_", "enum": True, "listed": False, "send_event": True},
)
# fmt: on


CASES = [(change, WORLDS[0]) for change in CHANGES]
CASES += [(change, WORLDS[1 + number % 2]) for number, change in enumerate(CHANGES)]
ROUND = (
    "go",
    "to_A",
    "stop",
    "stop",
    "to_A",
    "turn",
    "turn",
    "go",
    "go",
    "to_A/1/b",
    "go",
    "to_D",
    "turn",
    "to_A",
)


@pytest.mark.parametrize(("change", "options"), CASES, ids=lambda each: "-".join(map(str, each)))
def test_what_is_known_follows_every_change(
    change: tuple[Any, ...], options: dict[str, Any]
) -> None:
    first, other = ([("fire_by_name", n, trigger) for trigger in ROUND] for n in (0, 3))
    warm = [("transition", "go", "*", "B/x", None, None, None), *START[1:], *first, *first, *other]
    compare(options, [*warm, change, *first, *other, ("own_list", 1, "note"), *first])
