"""FastLockedMachine: the contexts of machines and models, around fast triggers."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest
from transitions import MachineError
from transitions.extensions import LockedMachine

from quadriga.fsm.fast_locked import FastLockedEvent, FastLockedMachine

TRANSITIONS = [["go", "A", "B"], ["go", "B", "A"], ["stay", "*", None]]


class Model:
    state: str
    go: Callable[..., bool]

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def note(self, data: Any) -> None:
        self.seen.append((data.event.name, self.state))


def make(model: Any, **options: Any) -> FastLockedMachine:
    return FastLockedMachine(
        model, states=["A", "B"], initial="A", transitions=TRANSITIONS, **options
    )


def test_it_is_the_librarys_machine_takes_the_fast_way_and_can_be_pickled() -> None:
    model = Model()
    machine = make(model)
    assert isinstance(machine, LockedMachine)
    assert model.go()
    event: Any = machine.events["go"]
    assert isinstance(event, FastLockedEvent)
    step = event._plans["A"][2]
    assert step is None  # nothing but to set the next name
    assert model.go()
    assert model.state == "A"
    model: Any = Model()
    machine = make(model)
    model.go()
    other: Any = pickle.loads(pickle.dumps(machine))
    assert type(other) is FastLockedMachine
    (loaded,) = other.models
    assert loaded.state == "B"
    assert loaded.go()
    assert (loaded.state, model.state) == ("A", "B")


def test_what_is_added_to_a_machine_that_has_run_takes_effect() -> None:
    model: Any = Model()
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

    model: Any = Model()
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


def test_an_error_leaves_the_lock_open() -> None:
    model: Any = Model()
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

    model: Any = Model()
    machine = make(model, after_state_change=[look])
    assert model.go()
    assert held == [(True, True)]
    look()
    assert held[1] == (False, False)
