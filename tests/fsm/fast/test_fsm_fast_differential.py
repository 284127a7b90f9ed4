"""A stock machine and a fast one side by side: the same calls, and whatever happens has to be the same."""

import copy
from typing import Any

import fsm_worlds
import pytest
from fsm_worlds import CALLBACKS, CONDITIONS, LISTS, OPTIONS, TRIGGERS, act, common, some, which
from hypothesis import given
from hypothesis import strategies as st
from transitions import Machine, State
from transitions.extensions.locking import LockedMachine

from quadriga.fsm import FastMachine
from quadriga.fsm.fast.locked import FastLockedMachine

STATES = ("A", "B", "C", "D")


class Model(fsm_worlds.Model):
    def on_enter_B(self, *args: Any, **kwargs: Any) -> None:
        self.world.write(self, "on_enter_B", args, kwargs)

    def on_exit_D(self, *args: Any, **kwargs: Any) -> None:
        self.world.write(self, "on_exit_D", args, kwargs)


class World(fsm_worlds.World):
    ordered_states = STATES
    state_cls = State

    def __init__(self, machine_cls: type[Machine], options: dict[str, Any]) -> None:
        super().__init__()
        self.models = [Model(f"model {n}", self) for n in range(4)]
        self.machine = machine_cls(
            None, states=list(STATES), initial="A", before_state_change=self.lists[0], **options
        )
        self.machine.add_model(self.models[0])
        self.machine.add_model(self.models[1:3])

    def ask(self, which: int, state: str) -> Any:
        model = self.models[which]
        names = (f"is_{state}", f"is_mode_{state}", f"to_{state}", f"may_to_{state}")
        return [hasattr(model, name) for name in names], getattr(model, f"is_{state}")()

    def add_models(self) -> None:
        self.machine.add_model(list(self.models))

    def override(self, which: int, name: str) -> Any:
        setattr(self.models[which], name, lambda *args, **kwargs: "overridden")
        return getattr(self.models[which], name)()

    def take_away(self, which: int, name: str) -> Any:
        delattr(self.models[which], name)
        return hasattr(self.models[which], name)


NEW = (*STATES, "E")
METHODS = (*TRIGGERS, "may_go", "is_A", "to_B", "trigger")
FIRE = act("fire", which, TRIGGERS)
ACTS = st.one_of(
    *[FIRE] * 6,
    act("fire_by_name", which, (*TRIGGERS, "to_A", "to_C", "no such")),
    act("may", which, TRIGGERS),
    act("ask", which, NEW),
    act("dispatch", TRIGGERS),
    *common(STATES, NEW, CALLBACKS, CONDITIONS),
    act("state_callback", STATES, ("on_enter", "on_exit"), CALLBACKS),
    act("add_models"),
    act("set_state", which, NEW),
    act("override", which, METHODS),
    act("take_away", which, METHODS),
    act("replace_step", STATES, "enter"),
    act("replace_method", ("callbacks", "set_state", "get_state")),
)
START = [
    ("transition", "go", "*", "B", None, None, None),
    ("transition", "turn", "*", "C", "asked", None, None),
]


def compare(options: dict[str, Any], sequence: list[tuple[Any, ...]]) -> None:
    fsm_worlds.compare(World(Machine, options), World(FastMachine, options), sequence)


@given(st.fixed_dictionaries(OPTIONS), st.lists(ACTS, max_size=40))
def test_a_fast_machine_does_what_the_librarys_does(
    options: dict[str, Any], sequence: list[tuple[Any, ...]]
) -> None:
    compare(options, [*START, *sequence])


class Context:
    """Writes down when it is entered and left, and by which kind of error."""

    def __init__(self, world: fsm_worlds.World, name: str) -> None:
        self.world, self.name = world, name

    def __enter__(self) -> None:
        self.world.story.append(("enter", self.name))

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        self.world.story.append(("exit", self.name, kind))


class LockedWorld(World):
    """Its machine has a context, and its second model one more."""

    def __init__(self, machine_cls: type[Machine], options: dict[str, Any]) -> None:
        super().__init__(machine_cls, options | {"machine_context": [Context(self, "machine")]})
        self.machine.remove_model(self.models[1])
        self.machine.add_model(self.models[1], model_context=[Context(self, "model")])


# The library's own waits for itself for ever when a model is added that is there.
@given(
    st.fixed_dictionaries(OPTIONS),
    st.lists(ACTS.filter(lambda each: not each[0].endswith(("_model", "_models"))), max_size=40),
)
def test_a_fast_locked_machine_does_what_the_librarys_does(
    options: dict[str, Any], sequence: list[tuple[Any, ...]]
) -> None:
    ours, theirs = LockedWorld(FastLockedMachine, options), LockedWorld(LockedMachine, options)
    fsm_worlds.compare(theirs, ours, [*START, *sequence])


class EachWorld(World):
    """A machine for each model, or each its own model. The first two leave a template for the others (D361)."""

    def __init__(self, machine_cls: type[Machine], options: dict[str, Any]) -> None:
        fsm_worlds.World.__init__(self)
        self.models, self.machines, self.at = [], [], 0
        self.machine_cls, self.options = machine_cls, dict(options)
        if self.options.pop("itself"):
            methods = vars(fsm_worlds.Model) | vars(Model)
            own = {name: each for name, each in methods.items() if not name.startswith("__")}
            self.machine_cls = type("Itself", (machine_cls,), own)
        for _ in range(4):
            self.another()

    @property
    def machine(self) -> Any:  # type: ignore[override]
        return self.machines[self.at]

    def switch(self, which: int) -> None:
        """The acts that follow are about this machine."""
        self.at = which

    def another(self) -> None:
        model: Any
        options, name = copy.deepcopy(self.options), f"model {len(self.models)}"
        if hasattr(self.machine_cls, "note"):  # its own model
            machine = model = self.machine_cls(**options)
            model.name, model.world = name, self
        else:
            model = Model(name, self)
            machine = self.machine_cls(model, **options)
        self.models.append(model)
        self.machines.append(machine)

    def renew(self) -> None:
        """Goes on with copies of all."""
        self.machines, self.models, self.lists = copy.deepcopy(
            (self.machines, self.models, self.lists), {id(self): self}
        )


def state(name: str) -> st.SearchStrategy[Any]:
    described = {"name": st.just(name), "ignore_invalid_triggers": st.sampled_from((None, True))}
    lists = {"on_enter": some(CALLBACKS), "on_exit": some(CALLBACKS)}
    return st.just(name) | st.fixed_dictionaries(described, optional=lists)


ENDS = {"source": st.sampled_from((*STATES, "*")), "dest": st.sampled_from((*STATES, "=", None))}
ROW = st.fixed_dictionaries(
    {"trigger": st.sampled_from(TRIGGERS), **ENDS},
    optional=dict.fromkeys(("conditions", "unless"), some(CONDITIONS))
    | dict.fromkeys(("prepare", "before", "after"), some(CALLBACKS)),
)
EACH = st.fixed_dictionaries(
    OPTIONS
    | {
        "itself": st.booleans(),
        "initial": st.sampled_from(STATES),
        "states": st.tuples(*map(state, STATES)).map(list),
        "transitions": st.lists(ROW, max_size=6).map(lambda rows: [*ROWS, *rows]),
        "model_attribute": st.sampled_from(fsm_worlds.ATTRIBUTES),
    },
    optional={name: some(CALLBACKS) for name in LISTS},
)
ROWS = [["go", "*", "B"], ["turn", "*", "C"], ["stop", "A", "D"]]
AMONG = st.one_of(
    *[FIRE] * 6, *[act("switch", which)] * 3, act("another"), act("renew"), *[ACTS] * 6
).filter(lambda each: each[0] != "add_models")


@given(EACH, st.lists(AMONG, max_size=40))
def test_a_machine_for_each_model_does_what_the_librarys_does(
    options: dict[str, Any], sequence: list[tuple[Any, ...]]
) -> None:
    fsm_worlds.compare(EachWorld(Machine, options), EachWorld(FastMachine, options), sequence)


# fmt: off
CHANGES: list[tuple[Any, ...]] = [
    ("transition", "go", "A", "D", None, None, None), ("transition", "go", "A", None, "no", "note", "fail"),
    ("shared_list", "go", "B", "C"), ("own_list", 0, "note"), ("ordered",),
    ("remove_transition", "go", "A", "*"), ("remove_transition", "go", "*", "*"),
    ("add_state", "E", False, "note"), ("add_state", "B", True, "note"), ("add_state", "B", False, "note"),
    ("drop_state", "B"),
    *(("callback", name, "note") for name in LISTS),
    *(("callbacks", name, ["note", "grow"]) for name in LISTS),
    *(("callback", name, "fail") for name in LISTS),
    ("state_callback", "B", "on_enter", "note"), ("state_callback", "A", "on_exit", "grow"),
    ("by_name", "on_enter", "B", "toggle"), ("final", "B", "note"),
    *(("transition_callback", "go", kind, "grow") for kind in ("prepare", "before", "after")),
    ("conditions", "go", ["no"]), ("conditions", "go", ["grow", "fail"]),
    ("drop_source", "go", "A"), ("move_source", "go", "A", "B"),
    ("retarget", "go", "C"), ("retarget", "go", "nowhere"),
    ("option", "send_event", True), ("option", "model_attribute", "mode"), ("option", "_queued", True),
    ("option", "ignore_invalid_triggers", True), ("put_state", 0, "nowhere"),
    ("override", 0, "go"), ("take_away", 0, "go"), ("take_away", 1, "go"),
    ("remove_model", 1), ("remove_model", 3),  # the last one is not there
    ("replace_step", "B", "enter"), ("replace_method", "callbacks"), ("replace_method", "set_state"),
    ("print_steps", True),
]
# fmt: on


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: "-".join(map(str, change)))
def test_a_plan_follows_every_change(change: tuple[Any, ...]) -> None:
    ways = ("go", "to_A", "turn", "to_A")
    round_ = [("fire", n, trigger) for n in (0, 1) for trigger in ways]
    warm = [("transition", "go", "A", "B", None, None, None), *START, *round_, *round_]
    compare({}, [*warm, change, *round_, ("own_list", 1, "note"), *round_])
