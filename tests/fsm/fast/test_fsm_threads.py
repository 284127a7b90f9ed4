"""Several threads fire at entities of their own, and share the lifecycle."""

import pickle
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from transitions import Machine, MachineError
from transitions.extensions import LockedMachine

from quadriga.fsm import FastMachine, Fired, InvalidTransition, Lifecycle, row, unbounded
from quadriga.fsm.fast.locked import FastLockedEvent, FastLockedMachine
from quadriga.fsm.table import Effect, Info


@dataclass(frozen=True, slots=True)
class Did(Effect):
    key: str
    number: int
    target: str


@dataclass(slots=True, eq=False)
class Lamp:
    key: str
    state: str = "Off"


class Model:
    state: str

    def __init__(self, key: str) -> None:
        self.key = key
        self.heard: tuple[Effect, ...] = ()

    def on_effects(self, effects: tuple[Effect, ...]) -> None:
        self.heard = effects


class Stop:
    """Lets the lamp ``first`` wait in one place of a trigger until it may go on."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.reached = threading.Event()
        self.go_on = threading.Event()

    def at(self, place: str, lamp: Any) -> None:
        if lamp.key == "first" and place == self.place:
            self.reached.set()
            assert self.go_on.wait(600)


def table(stop: Stop, *, stock: bool = False) -> Lifecycle:
    def is_red(lamp: Any, info: Info) -> bool:
        stop.at("guard", lamp)
        return bool(info["red"])

    def tell(lamp: Any, fired: Fired) -> Iterator[Effect]:
        stop.at("emitter", lamp)
        yield Did(lamp.key, fired.info["number"], fired.target)

    # fmt: off
    return Lifecycle(
        "lamp",
        initial="Off",
        final=("Broken",),
        lasts={state: unbounded("drop") for state in ("Off", "Red", "Green")},
        rows=(
            row("press", "Off",                   "Red",    when=is_red, emit=tell),
            row("press", "Off",                   "Green",               emit=tell),
            row("press", ("Red", "Green"),        "Off"),
            row("drop",  ("Off", "Red", "Green"), "Broken"),
        ),
        stock=stock,
    )
    # fmt: on


Press = Callable[[str, int, bool], tuple[str, tuple[Effect, ...]]]


def by_fire(lifecycle: Lifecycle) -> Press:
    def press(key: str, number: int, red: bool) -> tuple[str, tuple[Effect, ...]]:
        lamp = Lamp(key)
        effects = lifecycle.fire(lamp, "press", number=number, red=red)
        return lamp.state, effects

    return press


def by_model(machine: Machine) -> Press:
    def press(key: str, number: int, red: bool) -> tuple[str, tuple[Effect, ...]]:
        model: Any = models[key]
        model.press(number=number, red=red)
        return model.state, model.heard

    models = {key: Model(key) for key in ("first", "second")}
    machine.add_model(list(models.values()))
    return press


def with_callbacks(lifecycle: Lifecycle, stop: Stop) -> Lifecycle:
    """On the slower way of ``fire``, which calls what the library calls."""
    copy = lifecycle.copy()
    copy.machine.before_state_change.append(lambda data: stop.at("callback", data.model))
    return copy


KINDS: dict[str, Callable[[Stop], Press]] = {
    "fire": lambda stop: by_fire(table(stop)),
    "fire with callbacks": lambda stop: by_fire(with_callbacks(table(stop), stop)),
    "fire on the stock machine": lambda stop: by_fire(table(stop, stock=True)),
    "the shared machine": lambda stop: by_model(table(stop).machine),
    "a machine": lambda stop: by_model(table(stop).make_machine()),
    "a fast machine": lambda stop: by_model(table(stop).make_machine(machine_cls=FastMachine)),
}


PLACES = [(kind, place) for kind in KINDS for place in ("guard", "emitter")]


@pytest.mark.parametrize(("kind", "place"), [*PLACES, ("fire with callbacks", "callback")])
def test_another_thread_fires_in_the_middle_of_a_trigger(kind: str, place: str) -> None:
    stop = Stop(place)
    press = KINDS[kind](stop)
    results: list[Any] = []
    first = threading.Thread(target=lambda: results.append(press("first", 1, True)))
    first.start()
    assert stop.reached.wait(600)
    second = press("second", 2, False)
    stop.go_on.set()
    first.join(600)
    assert second == ("Green", (Did("second", 2, "Green"),))
    assert results == [("Red", (Did("first", 1, "Red"),))]


def test_threads_that_meet_a_changed_machine_all_see_the_change() -> None:
    threads = 4
    for _ in range(25):
        lifecycle = table(Stop("")).copy()
        lamps = [Lamp(f"{n}") for n in range(threads)]
        lifecycle.fire(lamps[0], "press", number=0, red=True)
        lamps[0].state = "Off"
        lifecycle.machine.remove_transition("press", "Off", "Red")
        lifecycle.machine.add_transition("kick", "Off", "Red")
        together, refused = threading.Barrier(threads), []

        def live(lamp: Lamp, lifecycle: Any = lifecycle, together: Any = together) -> None:
            together.wait(600)
            lifecycle.fire(lamp, "press", number=0, red=True)  # the row for red is gone
            lifecycle.fire(lamp, "press")
            lifecycle.fire(lamp, "kick")
            try:
                lifecycle.fire(lamp, "kick")
            except InvalidTransition as error:
                refused.append(error.key)  # noqa: B023

        running = [threading.Thread(target=live, args=(lamp,)) for lamp in lamps]
        for each in running:
            each.start()
        for each in running:
            each.join(600)
        assert [lamp.state for lamp in lamps] == ["Red"] * threads
        assert sorted(refused) == [lamp.key for lamp in lamps]


# -- FastLockedMachine: the contexts of machines and models, around fast triggers --------------------


TRANSITIONS = [["go", "A", "B"], ["go", "B", "A"], ["stay", "*", None]]


class Noting:
    state: str
    go: Callable[..., bool]

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def note(self, data: Any) -> None:
        self.seen.append((data.event.name, self.state))


def make(model: Any, **options: Any) -> FastLockedMachine:
    return FastLockedMachine(model, states=[*"AB"], initial="A", transitions=TRANSITIONS, **options)


def test_it_is_the_librarys_machine_takes_the_fast_way_and_can_be_pickled() -> None:
    model = Noting()
    machine = make(model)
    assert isinstance(machine, LockedMachine)
    assert model.go()
    event: Any = machine.events["go"]
    assert isinstance(event, FastLockedEvent)
    assert model.go() and model.go() and model.go()
    assert event._plans["A"].__doc__ == machine.plan("go", "A")  # a plan is followed
    assert model.state == "A"
    model: Any = Noting()
    machine = make(model)
    model.go()
    other: Any = pickle.loads(pickle.dumps(machine))
    assert type(other) is FastLockedMachine
    (loaded,) = other.models
    assert loaded.state == "B"
    assert loaded.go()
    assert (loaded.state, model.state) == ("A", "B")


def test_what_is_added_to_a_machine_that_has_run_takes_effect() -> None:
    model: Any = Noting()
    machine = make(model, send_event=True)
    assert model.go()
    machine.events["go"].transitions["B"][0].before.append("note")
    machine.get_state("A").on_enter.append("note")
    machine.add_transition("hop", "A", "B", conditions=lambda data: False)
    assert model.go()
    assert model.seen == [("go", "B"), ("go", "A")]
    assert not model.hop()
    machine.remove_transition("go", "A")
    with pytest.raises(MachineError):
        model.go()


@pytest.mark.parametrize("around", [["model"], ["machine", "model"], ["machine"]])
def test_a_trigger_enters_the_contexts_and_a_trigger_within_does_not(around: list[str]) -> None:
    entered: list[str] = []

    class Context:
        def __init__(self, name: str) -> None:
            self.name = name

        def __enter__(self) -> None:
            entered.append(self.name)

        def __exit__(self, *error: object) -> None:
            entered.append(f"/{self.name}")

    model: Any = Noting()
    machine = FastLockedMachine(
        None,
        states=["A", "B"],
        initial="A",
        transitions=TRANSITIONS,
        machine_context=[Context("machine")] if "machine" in around else None,
    )
    machine.add_model(model, model_context=[Context("model")] if "model" in around else None)
    entered.clear()
    back = [f"/{name}" for name in reversed(around)]
    assert model.go()
    assert entered == [*around, *back]
    entered.clear()
    machine.on_enter_A(lambda: model.stay())
    entered.clear()
    assert model.go()
    assert entered == [*around, *back]
    entered.clear()
    assert model.may_go()  # each method of the machine by itself
    first = entered[:]
    assert model.may_go()  # there might be a plan now
    assert entered == first * 2
    assert set(first) == {"machine", "/machine"} & {*around, *back}


def test_an_error_leaves_the_lock_open() -> None:
    model: Any = Noting()
    make(model, before_state_change=[lambda: 1 / 0])
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            model.go()
    other = threading.Thread(target=lambda: model.seen.append(model.stay))
    other.start()
    other.join(600)
    assert not other.is_alive()
    assert model.state == "A"


def test_the_lock_of_the_machine_is_held_during_a_trigger() -> None:
    held: list[tuple[bool, bool]] = []

    def look() -> None:
        lock, ident = machine.machine_context
        held.append((lock.lock.locked(), ident.current == threading.get_ident()))

    model: Any = Noting()
    machine = make(model, after_state_change=[look])
    assert model.go()
    assert held == [(True, True)]
    look()
    assert held[1] == (False, False)
