"""What a trigger of a ``FastHierarchicalMachine`` calls, and what does not get in its way."""

from __future__ import annotations

import copy
import pickle
import sys
from typing import Any, ClassVar

import pytest
from transitions.extensions.nesting import HierarchicalMachine
from transitions.extensions.states import Tags, add_state_features

from quadriga.fsm import FastHierarchicalMachine

STATES: list[Any] = [
    {
        "name": "idle",
        "initial": "cold",
        "children": ["cold", {"name": "warm", "children": ["up"], "initial": "up"}],
    },
    "busy",
]
ROWS = [["work", "idle", "busy"], ["rest", "busy", "idle_warm"], ["cool", "idle_warm", "idle_cold"]]


class Heater:
    def note(self) -> None:
        pass


def made(
    cls: type[HierarchicalMachine] = FastHierarchicalMachine, **options: Any
) -> tuple[Any, Any]:
    heater: Any = Heater()
    return heater, cls(
        heater, states=STATES, transitions=ROWS, initial="idle", auto_transitions=False, **options
    )


def calls(trigger: Any) -> int:
    """How many functions of Python a call of this one calls."""
    count = 0

    def see(frame: Any, what: str, arg: Any) -> None:
        nonlocal count
        count += what == "call"

    sys.setprofile(see)
    try:
        trigger()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.skipif(
    not hasattr(HierarchicalMachine, "on_final"), reason="transitions 0.9.0 is not made faster"
)
@pytest.mark.parametrize(
    ("options", "most"), [({}, 4), ({"after_state_change": "note"}, 40), ({"queued": True}, 40)]
)
def test_a_trigger_calls_little(options: dict[str, Any], most: int) -> None:
    heater, _ = made(**options)
    other, _ = made(HierarchicalMachine, **options)
    for each in (heater, other) * 2:
        each.work()
        each.rest()
        each.cool()
    for name in ("work", "rest", "cool"):
        got, stock = calls(getattr(heater, name)), calls(getattr(other, name))
        assert heater.state == other.state
        assert got <= most < 110 < stock, name


def test_copies_and_pickles_go_on_by_themselves() -> None:
    heater, machine = made()
    heater.work(), heater.rest()
    heater.work(), heater.rest()
    for other in (copy.deepcopy(machine), pickle.loads(pickle.dumps(machine))):
        other.add_transition("work", "idle_warm", "idle_cold")
        assert other.model.work()
        assert other.model.state == "idle_cold"
        assert other.model.work()
        other.before_state_change = "missing"
        with pytest.raises(AttributeError, match="missing"):
            other.model.rest()
        assert other.model.state == "busy"
    assert heater.state == "idle_warm_up"
    assert heater.cool()


def test_a_shallow_copy_has_callbacks_of_its_own() -> None:
    heater, machine = made()
    heater.work(), heater.rest(), heater.work(), heater.rest()
    other = copy.copy(machine)
    other.before_state_change = "missing"
    assert machine.trigger_event(heater, "cool")
    with pytest.raises(AttributeError, match="missing"):
        other.trigger_event(heater, "work")


def test_states_and_machines_with_features_are_called_themselves() -> None:
    entered = []

    class Loud(Tags):
        def enter(self, event_data: Any) -> None:
            entered.append(self.name)
            super().enter(event_data)

    @add_state_features(Loud)
    class Machine(FastHierarchicalMachine):
        pass

    heater, _ = made(Machine)
    heater.work(), heater.rest(), heater.work(), heater.rest()
    assert entered == ["busy", "idle", "idle_warm", "idle_warm_up"] * 2
    set_to = []

    class Machine(FastHierarchicalMachine):
        def set_state(self, state: Any, model: Any = None) -> None:
            set_to.append(state)
            super().set_state(state, model)

    heater, _ = made(Machine)
    del set_to[:]
    heater.work(), heater.rest(), heater.work()
    assert set_to == ["busy", "idle_warm_up", "busy"]


def test_a_model_that_looks_at_its_state_is_told() -> None:
    class Looking(Heater):
        seen: ClassVar[list[Any]] = []

        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, value)
            if name == "state":
                self.seen.append(value)
                if value == "busy" and len(self.seen) > 6:
                    self.machine.after_state_change = "missing"

    looking: Any = Looking()
    looking.machine = FastHierarchicalMachine(
        looking, states=STATES, transitions=ROWS, initial="idle", auto_transitions=False
    )
    for _ in range(2):
        looking.work(), looking.rest()
    assert looking.seen[-4:] == ["busy", "idle_warm_up"] * 2
    with pytest.raises(AttributeError, match="missing"):
        looking.work()
