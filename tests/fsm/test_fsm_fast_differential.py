"""A stock machine and a fast one side by side: the same calls, and whatever happens has to be the same.

The calls change the machines while they run: states, transitions, callbacks in lists, models, the name of
the models' attribute. Callbacks write down what they were called with; some raise, some change the machine
or trigger something themselves.
"""

from __future__ import annotations

import copy
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transitions import Machine, State

from quadriga.fsm import FastMachine

LOGGER = logging.getLogger("transitions.core")

STATES = ("A", "B", "C", "D")
TRIGGERS = ("go", "stop", "turn")
CALLBACKS = ("note", "fail", "again", "grow", "shrink", "toggle", "missing", "constant")
CONDITIONS = ("yes", "no", "asked", "fail", "grow", "constant")
LISTS = (
    "prepare_event",
    "before_state_change",
    "after_state_change",
    "finalize_event",
    "on_exception",
)
ATTRIBUTES = ("state", "mode")


class Model:
    """Writes down what its callbacks are called with."""

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
        self.world.calls += 1
        if self.world.calls < 12:
            self.trigger("turn", "from within")  # type: ignore[attr-defined]

    def grow(self, *args: Any, **kwargs: Any) -> bool:
        """Adds callbacks to lists that may just be gone through."""
        self.world.write(self, "grow", args, kwargs)
        self.world.calls += 1
        if self.world.calls < 12:
            machine = self.world.machine
            machine.after_state_change.append("note")
            for event in list(machine.events.values()):
                for found in list(event.transitions.values())[:2]:
                    found[0].after.append("note") if found else None
            for state in machine.states.values():
                state.on_enter.append("note")
        return True

    def shrink(self, *args: Any, **kwargs: Any) -> None:
        self.world.write(self, "shrink", args, kwargs)
        machine = self.world.machine
        del machine.before_state_change[:1]
        for state in machine.states.values():
            state.on_exit.clear()

    def toggle(self, *args: Any, **kwargs: Any) -> None:
        self.world.write(self, "toggle", args, kwargs)
        self.world.machine.send_event = not self.world.machine.send_event

    def on_enter_B(self, *args: Any, **kwargs: Any) -> None:
        self.world.write(self, "on_enter_B", args, kwargs)

    def on_exit_D(self, *args: Any, **kwargs: Any) -> None:
        self.world.write(self, "on_exit_D", args, kwargs)


class World:
    """One machine and what has happened in it."""

    def __init__(self, machine_cls: type[Machine], options: dict[str, Any]) -> None:
        self.story: list[Any] = []
        self.calls = 0
        self.lists: list[list[str]] = [[], []]
        self.models = [Model(f"model {n}", self) for n in range(4)]
        self.options = options
        self.machine = machine_cls(
            None, states=list(STATES), initial="A", before_state_change=self.lists[0], **options
        )
        self.machine.add_model(self.models[0])
        self.machine.add_model(self.models[1:3])

    def write(self, model: Model, what: str, args: Any, kwargs: Any) -> None:
        said: list[Any] = []
        for arg in args:
            if hasattr(arg, "event"):
                transition = arg.transition
                path = transition and (transition.source, transition.dest)
                said.append(
                    (arg.event and arg.event.name, arg.state.name, path, arg.args, arg.kwargs)
                )
                said.append(
                    (arg.model.name, repr(arg.error), arg.result, arg.machine is self.machine)
                )
            else:
                said.append(arg)
        self.story.append((model.name, what, self.states(model), said, kwargs))

    def states(self, model: Any) -> Any:
        return [getattr(model, attribute, None) for attribute in ATTRIBUTES]

    def do(self, act: tuple[Any, ...]) -> Any:
        name, *arguments = act
        try:
            result = getattr(self, name)(*arguments)
        except Exception as error:
            result = (type(error), str(error))
        return result, [self.states(model) for model in self.models]

    # -- acts ---------------------------------------------------------------------------------

    def fire(self, which: int, trigger: str) -> Any:
        return getattr(self.models[which], trigger)("an argument", named=1)

    def fire_by_name(self, which: int, trigger: str) -> Any:
        return self.models[which].trigger(trigger)  # type: ignore[attr-defined]

    def may(self, which: int, trigger: str) -> Any:
        return getattr(self.models[which], f"may_{trigger}")(named=2)

    def ask(self, which: int, state: str) -> Any:
        model = self.models[which]
        names = (f"is_{state}", f"is_mode_{state}", f"to_{state}", f"may_to_{state}")
        return [hasattr(model, name) for name in names], getattr(model, f"is_{state}")()

    def dispatch(self, trigger: str) -> Any:
        return self.machine.dispatch(trigger)

    def transition(
        self, trigger: str, source: str, dest: str | None, conditions: Any, before: Any, after: Any
    ) -> None:
        self.machine.add_transition(
            trigger, source, dest, conditions=conditions, before=before, after=after
        )

    def shared_list(self, trigger: str, source: str, dest: str) -> None:
        """A list of the caller's own, which changes later without the machine."""
        self.machine.add_transition(trigger, source, dest, before=self.lists[1])

    def own_list(self, which: int, callback: str) -> None:
        self.lists[which].append(callback)

    def remove_transition(self, trigger: str, source: str, dest: str) -> None:
        self.machine.remove_transition(trigger, source, dest)

    def ordered(self) -> None:
        self.machine.add_ordered_transitions(list(STATES), trigger="turn")

    def add_state(self, state: str, ready_made: bool, callbacks: Any) -> None:
        if ready_made:
            self.machine.add_state(State(state, on_enter=callbacks))
        else:
            self.machine.add_state(state, on_exit=callbacks)

    def drop_state(self, state: str) -> None:
        del self.machine.states[state]

    def callback(self, name: str, callback: str) -> None:
        getattr(self.machine, name).append(callback)

    def callbacks(self, name: str, callbacks: Any) -> None:
        setattr(self.machine, name, callbacks)

    def state_callback(self, state: str, name: str, callback: str) -> None:
        getattr(self.machine.states[state], name).append(callback)

    def state_by_name(self, name: str, state: str, callback: str) -> None:
        getattr(self.machine, f"{name}_{state}")(callback)

    def transition_callback(self, trigger: str, kind: str, callback: str) -> None:
        for found in self.machine.events[trigger].transitions.values():
            for transition in found:
                getattr(transition, kind).append(callback)

    def conditions(self, trigger: str, source: str, conditions: Any) -> None:
        event = self.machine.events[trigger]
        for transition in event.transitions[source]:
            made = [type(transition).condition_cls(each) for each in conditions]
            transition.conditions[:1] = made

    def shuffle(self, trigger: str, source: str) -> None:
        self.machine.events[trigger].transitions[source].reverse()

    def drop_source(self, trigger: str, source: str) -> None:
        del self.machine.events[trigger].transitions[source]

    def move_source(self, trigger: str, source: str, other: str) -> None:
        transitions = self.machine.events[trigger].transitions
        transitions[source] = list(transitions[other])

    def retarget(self, trigger: str, source: str, dest: str) -> None:
        for transition in self.machine.events[trigger].transitions[source]:
            transition.dest = dest

    def final(self, state: str, callback: str) -> None:
        self.machine.states[state].final = True
        self.machine.on_final = callback

    def option(self, name: str, value: Any) -> None:
        setattr(self.machine, name, value)

    def ignore(self, state: str, value: Any) -> None:
        self.machine.states[state].ignore_invalid_triggers = value

    def add_model(self, which: int, initial: Any) -> None:
        self.machine.add_model(self.models[which], initial)

    def add_models(self) -> None:
        self.machine.add_model(list(self.models))

    def remove_model(self, which: int) -> None:
        self.machine.remove_model(self.models[which])

    def set_state(self, which: int, state: str) -> None:
        self.machine.set_state(state, self.models[which])

    def put_state(self, which: int, state: str) -> None:
        setattr(self.models[which], self.machine.model_attribute, state)

    def override(self, which: int, name: str) -> Any:
        setattr(self.models[which], name, lambda *args, **kwargs: "overridden")
        return getattr(self.models[which], name)()

    def take_away(self, which: int, name: str) -> Any:
        delattr(self.models[which], name)
        return hasattr(self.models[which], name)

    def replace_step(self, state: str) -> None:
        self.machine.states[state].enter = lambda event_data: self.story.append("replaced")  # type: ignore[method-assign]

    def replace_method(self, name: str) -> None:
        instead = getattr(self.machine, name)
        setattr(self.machine, name, lambda *args: self.story.append(name) or instead(*args))

    def print_steps(self, on: bool) -> None:
        LOGGER.setLevel(logging.DEBUG if on else logging.NOTSET)


# fmt: off
which, state, trigger = st.integers(0, 3), st.sampled_from(STATES), st.sampled_from(TRIGGERS)
new_state = st.sampled_from((*STATES, "E"))
dest = st.sampled_from((*STATES, "E", "=", None))
callback, condition = st.sampled_from(CALLBACKS), st.sampled_from(CONDITIONS)
callbacks = st.one_of(st.none(), callback, st.lists(callback, max_size=2))
conditions = st.one_of(st.none(), condition, st.lists(condition, max_size=2))
method = st.sampled_from((*TRIGGERS, "may_go", "is_A", "to_B", "trigger"))


def acts() -> st.SearchStrategy[tuple[Any, ...]]:
    just = st.just
    fire = st.tuples(just("fire"), which, trigger)
    return st.one_of(
        fire, fire, fire, fire, fire, fire,
        st.tuples(just("fire_by_name"), which, st.sampled_from((*TRIGGERS, "to_A", "to_C", "no such"))),
        st.tuples(just("may"), which, trigger),
        st.tuples(just("ask"), which, new_state),
        st.tuples(just("dispatch"), trigger),
        st.tuples(just("transition"), trigger, st.sampled_from((*STATES, "*")), dest, conditions, callbacks, callbacks),
        st.tuples(just("shared_list"), trigger, state, state),
        st.tuples(just("own_list"), st.integers(0, 1), callback),
        st.tuples(just("remove_transition"), trigger, st.sampled_from((*STATES, "*")), st.sampled_from((*STATES, "*"))),
        st.tuples(just("ordered")),
        st.tuples(just("add_state"), new_state, st.booleans(), callbacks),
        st.tuples(just("drop_state"), state),
        st.tuples(just("callback"), st.sampled_from(LISTS), callback),
        st.tuples(just("callbacks"), st.sampled_from(LISTS), callbacks),
        st.tuples(just("state_callback"), state, st.sampled_from(("on_enter", "on_exit")), callback),
        st.tuples(just("state_by_name"), st.sampled_from(("on_enter", "on_exit")), new_state, callback),
        st.tuples(just("transition_callback"), trigger, st.sampled_from(("prepare", "before", "after")), callback),
        st.tuples(just("conditions"), trigger, state, st.lists(condition, max_size=2)),
        st.tuples(just("shuffle"), trigger, state),
        st.tuples(just("drop_source"), trigger, state),
        st.tuples(just("move_source"), trigger, state, state),
        st.tuples(just("retarget"), trigger, state, new_state),
        st.tuples(just("final"), state, callback),
        st.tuples(just("option"), just("send_event"), st.booleans()),
        st.tuples(just("option"), just("ignore_invalid_triggers"), st.sampled_from((True, False, None))),
        st.tuples(just("option"), just("model_attribute"), st.sampled_from(ATTRIBUTES)),
        st.tuples(just("option"), just("auto_transitions"), st.booleans()),
        st.tuples(just("option"), just("_queued"), st.booleans()),
        st.tuples(just("ignore"), state, st.sampled_from((True, False, None))),
        st.tuples(just("add_model"), which, st.one_of(st.none(), new_state)),
        st.tuples(just("add_models")),
        st.tuples(just("remove_model"), which),
        st.tuples(just("set_state"), which, new_state),
        st.tuples(just("put_state"), which, new_state),
        st.tuples(just("override"), which, method),
        st.tuples(just("take_away"), which, method),
        st.tuples(just("replace_step"), state),
        st.tuples(just("replace_method"), st.sampled_from(("callbacks", "set_state", "get_state"))),
        st.tuples(just("print_steps"), st.booleans()),
    )


OPTIONS = st.fixed_dictionaries({
    "send_event": st.booleans(),
    "queued": st.booleans(),
    "auto_transitions": st.booleans(),
    "ignore_invalid_triggers": st.sampled_from((None, True)),
})
START = [("transition", "go", "*", "B", None, None, None), ("transition", "turn", "*", "C", "asked", None, None)]
# fmt: on


@given(OPTIONS, st.lists(acts(), max_size=40))
def test_a_fast_machine_does_what_the_librarys_does(
    options: dict[str, Any], sequence: list[tuple[Any, ...]]
) -> None:
    stock, fast = World(Machine, options), World(FastMachine, options)
    try:
        for number, act in enumerate([*START, *sequence]):
            expected, got = stock.do(copy.deepcopy(act)), fast.do(copy.deepcopy(act))  # own lists
            assert got == expected, (number, act)
            assert fast.story == stock.story, (number, act)
            if len(stock.story) > 400:  # callbacks that grow have grown enough
                break
    finally:
        LOGGER.setLevel(logging.NOTSET)


# fmt: off
CHANGES: list[tuple[Any, ...]] = [
    ("transition", "go", "A", "D", None, None, None),
    ("transition", "go", "A", None, "no", "note", "fail"),
    ("shared_list", "go", "B", "C"),
    ("own_list", 0, "note"),
    ("remove_transition", "go", "A", "*"),
    ("remove_transition", "go", "*", "*"),
    ("ordered",),
    ("add_state", "E", False, "note"),
    ("add_state", "B", True, "note"),
    ("add_state", "B", False, "note"),
    ("drop_state", "B"),
    *(("callback", name, "note") for name in LISTS),
    *(("callbacks", name, ["note", "grow"]) for name in LISTS),
    *(("callback", name, "fail") for name in LISTS),
    ("state_callback", "B", "on_enter", "note"),
    ("state_callback", "A", "on_exit", "grow"),
    ("state_by_name", "on_enter", "B", "toggle"),
    *(("transition_callback", "go", kind, "grow") for kind in ("prepare", "before", "after")),
    ("conditions", "go", "A", ["no"]),
    ("conditions", "go", "A", ["grow", "fail"]),
    ("drop_source", "go", "A"),
    ("move_source", "go", "A", "B"),
    ("retarget", "go", "A", "C"),
    ("retarget", "go", "A", "nowhere"),
    ("final", "B", "note"),
    ("option", "send_event", True),
    ("option", "model_attribute", "mode"),
    ("option", "_queued", True),
    ("option", "ignore_invalid_triggers", True),
    ("put_state", 0, "nowhere"),
    ("override", 0, "go"),
    ("take_away", 0, "go"),
    ("take_away", 1, "go"),
    ("remove_model", 1),
    ("replace_step", "B"),
    ("replace_method", "callbacks"),
    ("replace_method", "set_state"),
    ("print_steps", True),
]
# fmt: on


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: "-".join(map(str, change)))
def test_a_plan_follows_every_change(change: tuple[Any, ...]) -> None:
    stock, fast = World(Machine, {}), World(FastMachine, {})
    there_and_back = [
        ("fire", n, trigger) for n in (0, 1) for trigger in ("go", "to_A", "turn", "to_A")
    ]
    warm = [
        ("transition", "go", "A", "B", None, None, None),
        *START,
        *there_and_back,
        *there_and_back,
    ]
    try:
        for number, act in enumerate(
            [*warm, change, *there_and_back, ("own_list", 1, "note"), *there_and_back]
        ):
            expected, got = stock.do(copy.deepcopy(act)), fast.do(copy.deepcopy(act))
            assert got == expected, (number, act)
            assert fast.story == stock.story, (number, act)
    finally:
        LOGGER.setLevel(logging.NOTSET)
