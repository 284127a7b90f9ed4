"""A machine with models that write down what happens to them, to be compared with another machine."""

from __future__ import annotations

import copy
import logging
import re
import sys
from collections.abc import Iterator
from typing import Any, ClassVar

from hypothesis import strategies as st
from transitions.core import listify

LOGGERS = ("transitions.core", "transitions.extensions.nesting")
TRIGGERS = ("go", "stop", "turn")
ATTRIBUTES = ("state", "mode")
LISTS = "prepare_event before_state_change after_state_change finalize_event on_exception".split()
CALLBACKS = ("note", "fail", "again", "grow", "shrink", "toggle", "missing", "constant")
CONDITIONS = ("yes", "no", "asked", "fail", "grow", "constant")


class Model:
    constant = 1

    def __init__(self, name: str, world: World) -> None:
        self.name = name
        self.world = world

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
            self.trigger("turn", "from within")  # type: ignore[attr-defined]

    def grow(self, *args: Any, **kwargs: Any) -> bool:
        """Adds callbacks to lists that may just be gone through."""
        self.world.write(self, "grow", args, kwargs)
        if self.world.may_go_on():
            self.world.machine.after_state_change.append("note")
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


class World:
    """One machine and what has happened in it. Its methods are the acts that ``do`` takes by name."""

    machine: Any
    models: list[Any]
    ordered_states: ClassVar[tuple[str, ...]]
    state_cls: ClassVar[type]

    def __init__(self) -> None:
        self.story: list[Any] = []
        self.calls = 0
        self.lists: list[list[str]] = [[], []]

    def name(self, path: Any) -> Any:
        return path

    def scope(self) -> Any:
        """The scope in which the machine just is."""

    def may_go_on(self) -> bool:
        self.calls += 1
        return self.calls < 12

    def all_states(self) -> list[Any]:
        def below(states: Any) -> Iterator[Any]:
            for state in states.values():
                yield state
                yield from below(getattr(state, "states", {}))

        return list(below(self.machine.states))

    def state(self, path: str) -> Any:
        return self.machine.get_state(self.name(path))

    def events(self, trigger: str) -> list[Any]:
        held = [self.machine, *(each for each in self.all_states() if hasattr(each, "events"))]
        return [each.events[trigger] for each in held if trigger in each.events]

    def transitions(self, trigger: str) -> list[Any]:
        lists = [found for e in self.events(trigger) for found in e.transitions.values()]
        return [each for found in lists for each in found]

    def write(self, model: Model, what: str, args: Any, kwargs: Any) -> None:
        said: list[Any] = []
        for arg in args:
            if not hasattr(arg, "event"):
                said.append(arg)
                continue
            path = arg.transition and (arg.transition.source, arg.transition.dest)
            states = [state and state.name for state in listify(arg.state)]
            scoped = ("source_name", "source_path", "scope")
            about = {name: value for name, value in vars(arg).items() if name in scoped}
            event = arg.event and arg.event.name
            said.append((event, states, path, arg.args, arg.kwargs, copy.deepcopy(about)))
            said.append((arg.model.name, repr(arg.error), arg.result, arg.machine is self.machine))
        error = type(sys.exception())
        self.story.append((model.name, what, self.states(model), self.scope(), said, kwargs, error))

    def states(self, model: Any) -> Any:
        return [repr(getattr(model, attribute, None)) for attribute in ATTRIBUTES]

    def do(self, act: tuple[Any, ...]) -> Any:
        name, *arguments = act
        try:
            result = getattr(self, name)(*arguments)
        except Exception as error:
            result = [
                (type(each), re.sub(r"Hierarchical|\d{9,}", "", str(each)))
                for each in chain_of(error)
            ]
        return result, [self.states(model) for model in self.models], self.scope()

    # -- acts ---------------------------------------------------------------------------------

    def fire(self, which: int, trigger: str) -> Any:
        return getattr(self.models[which], trigger)("an argument", named=1)

    def fire_by_name(self, which: int, trigger: str) -> Any:
        return self.models[which].trigger(self.name(trigger))

    def may(self, which: int, trigger: str) -> Any:
        return getattr(self.models[which], f"may_{trigger}")(named=2)

    def dispatch(self, trigger: str) -> Any:
        return self.machine.dispatch(trigger)

    def transition(
        self, trigger: str, source: str, dest: Any, conditions: Any, before: Any, after: Any
    ) -> None:
        more = {"conditions": conditions, "before": before, "after": after}
        self.machine.add_transition(trigger, self.name(source), dest and self.name(dest), **more)

    def shared_list(self, trigger: str, source: str, dest: str) -> None:
        """A list of the caller's own, which changes later without the machine."""
        ends = self.name(source), self.name(dest)
        self.machine.add_transition(trigger, *ends, before=self.lists[1])

    def own_list(self, which: int, callback: str) -> None:
        self.lists[which].append(callback)

    def remove_transition(self, trigger: str, source: str, dest: str) -> None:
        self.machine.remove_transition(trigger, self.name(source), self.name(dest))

    def ordered(self) -> None:
        self.machine.add_ordered_transitions([self.name(s) for s in self.ordered_states], "turn")

    def add_state(self, path: str, ready_made: bool, callbacks: Any) -> None:
        if ready_made:
            made = self.state_cls(path.rpartition("/")[2], on_enter=callbacks)
            self.machine.add_state(made)
        else:
            self.machine.add_state(self.name(path), on_exit=callbacks)

    def drop_state(self, path: str) -> None:
        del self.machine.states[path]

    def callback(self, name: str, callback: str) -> None:
        getattr(self.machine, name).append(callback)

    def callbacks(self, name: str, callbacks: Any) -> None:
        setattr(self.machine, name, callbacks)

    def state_callback(self, path: str, name: str, callback: str) -> None:
        getattr(self.state(path), name).append(callback)

    def by_name(self, name: str, path: str, callback: str) -> None:
        getattr(self.machine, f"{name}_{path}")(callback)

    def final(self, path: str, callback: str) -> None:
        self.machine.states[path].final = True
        self.machine.on_final = callback

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

    def move_source(self, trigger: str, source: str, other: str) -> None:
        transitions = self.machine.events[trigger].transitions
        transitions[self.name(source)] = list(transitions[self.name(other)])

    def retarget(self, trigger: str, dest: str) -> None:
        for transition in self.transitions(trigger):
            transition.dest = self.name(dest)

    def option(self, name: str, value: Any) -> None:
        setattr(self.machine, name, value)

    def ignore(self, path: str, value: Any) -> None:
        self.state(path).ignore_invalid_triggers = value

    def add_model(self, which: int, initial: Any) -> None:
        self.machine.add_model(self.models[which], initial and self.name(initial))

    def remove_model(self, which: int) -> None:
        self.machine.remove_model(self.models[which])

    def set_state(self, which: int, path: Any) -> None:
        names = self.name(path) if isinstance(path, str) else [self.name(each) for each in path]
        self.machine.set_state(names, self.models[which])

    def put_state(self, which: int, path: str) -> None:
        setattr(self.models[which], self.machine.model_attribute, self.name(path))

    def replace_step(self, path: str, name: str) -> None:
        setattr(self.state(path), name, lambda *args: self.story.append("replaced"))

    def replace_method(self, name: str) -> None:
        instead = getattr(self.machine, name)
        setattr(self.machine, name, lambda *args: self.story.append(name) or instead(*args))

    def print_steps(self, on: bool) -> None:
        for name in LOGGERS:
            logging.getLogger(name).setLevel(logging.DEBUG if on else logging.NOTSET)


def chain_of(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error and those that were being handled when it was raised."""
    while error is not None:
        yield error
        error = error.__context__


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())

    def taken(self) -> list[str]:
        lines, self.lines = self.lines, []
        return lines


def compare(stock: World, fast: World, sequence: list[tuple[Any, ...]]) -> None:
    """The same acts in both, after which the same has happened."""
    handler = Lines()
    for name in LOGGERS:
        logging.getLogger(name).addHandler(handler)
    try:
        for number, act in enumerate(sequence):
            expected, printed = stock.do(copy.deepcopy(act)), handler.taken()  # lists of its own
            assert fast.do(copy.deepcopy(act)) == expected, (number, act)
            assert handler.taken() == printed, (number, act)
            assert fast.story == stock.story, (number, act)
            if len(stock.story) > 400:  # callbacks that grow have grown enough
                break
    finally:
        for name in LOGGERS:
            logging.getLogger(name).setLevel(logging.NOTSET)
            logging.getLogger(name).removeHandler(handler)


which, trigger = st.integers(0, 3), st.sampled_from(TRIGGERS)


def act(name: str, *arguments: Any) -> st.SearchStrategy[tuple[Any, ...]]:
    """An act whose arguments are strategies, tuples to choose from, or values."""
    given = [
        each if isinstance(each, st.SearchStrategy)
        else st.sampled_from(each) if isinstance(each, tuple) else st.just(each)
        for each in arguments
    ]  # fmt: skip
    return st.tuples(st.just(name), *given)


def some(names: Any) -> st.SearchStrategy[Any]:
    """None, one of these, or a few."""
    one = st.sampled_from(names)
    return st.one_of(st.none(), one, st.lists(one, max_size=2))


def common(states: Any, new: Any, calls: Any, asks: Any) -> list[st.SearchStrategy[Any]]:
    """The changes of any machine: with its states, more of them, callbacks and conditions."""
    state, source, either = tuple(states), (*states, "*"), (True, False, None)
    dest = (*states, "E", "=", None)
    few = st.lists(st.sampled_from(asks), max_size=2)
    return [
        act("transition", trigger, source, dest, some(asks), some(calls), some(calls)),
        act("shared_list", trigger, state, state),
        act("own_list", (0, 1), calls),
        act("remove_transition", trigger, source, source),
        act("ordered"),
        act("add_state", new, st.booleans(), some(calls)),
        act("drop_state", state),
        act("callback", tuple(LISTS), calls),
        act("callbacks", tuple(LISTS), some(calls)),
        act("by_name", ("on_enter", "on_exit"), new, calls),
        act("transition_callback", trigger, ("prepare", "before", "after"), calls),
        act("conditions", trigger, few),
        act("shuffle", trigger),
        act("drop_source", trigger, state),
        act("move_source", trigger, state, state),
        act("retarget", trigger, new),
        act("final", state, calls),
        act("option", "send_event", st.booleans()),
        act("option", "ignore_invalid_triggers", either),
        act("option", "model_attribute", ATTRIBUTES),
        act("option", "auto_transitions", st.booleans()),
        act("option", "_queued", st.booleans()),
        act("ignore", state, either),
        act("add_model", which, (None, *new)),
        act("remove_model", which),
        act("put_state", which, new),
        act("print_steps", st.booleans()),
    ]


OPTIONS = {
    "send_event": st.booleans(),
    "queued": st.booleans(),
    "auto_transitions": st.booleans(),
    "ignore_invalid_triggers": st.sampled_from((None, True)),
}
