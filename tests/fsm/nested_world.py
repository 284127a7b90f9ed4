"""A hierarchical machine with models that write down what happens to them, to be compared with another one."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator
from typing import Any

from nested_models import Guarded, Model, tree
from transitions.core import listify
from transitions.extensions.nesting import HierarchicalMachine, NestedState

from quadriga.fsm import FastHierarchicalMachine

LOGGERS = ("transitions.core", "transitions.extensions.nesting")
TRIGGERS = ("go", "stop", "turn")
CALLBACKS = (
    "note",
    "fail",
    "again",
    "back",
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
