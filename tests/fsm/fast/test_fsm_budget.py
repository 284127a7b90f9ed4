"""What a trigger and an entity may cost. Calls are counted, so no other program on the machine matters."""

import copy
import pickle
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from transitions.extensions.nesting import HierarchicalMachine
from transitions.extensions.states import Tags, add_state_features

from quadriga.fsm import ASK, QUEUE, FastHierarchicalMachine, FastMachine, Lifecycle


def calls(work: Callable[[], object]) -> Counter[str]:
    """How many functions of Python ("call") and of C ("c_call") are called."""
    count = Counter[str]()
    before = sys.getprofile()
    sys.setprofile(lambda frame, what, arg: count.update([what]))
    try:
        work()
    finally:
        sys.setprofile(before)
    count["c_call"] -= 1  # the last one is setprofile
    return count


@pytest.mark.parametrize(
    ("table", "state", "triggers"),
    [(QUEUE, "Active", "stop start"), (ASK, "Pending", "allocate allocate")],
    ids=["plain row", "guarded row"],
)
def test_fire_calls_a_small_part_of_what_the_stock_machine_does(
    twin: Any, table: Lifecycle, state: str, triggers: str
) -> None:
    costs = []
    for stock in (False, True):
        life = twin(table, stock=stock)
        entity = SimpleNamespace(key="it", state=state, pending=2)
        for trigger in (*triggers.split(), *triggers.split()):  # once for what is made only once
            spent = calls(lambda life=life, it=entity, trigger=trigger: life.fire(it, trigger))
        costs.append(spent["call"] + spent["c_call"])
    fire, stock = costs
    assert fire <= 5, costs
    assert stock >= 12 * fire, costs


def test_an_entity_needs_less_than_a_hundred_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = pytest.importorskip("bench.fsm", reason="bench/ is part of a checkout only")
    monkeypatch.setattr(measured, "ROUNDS", 1)
    monkeypatch.setattr(measured, "TURNS", 20)
    figures = {figure.name: figure.value for figure in measured.lifecycles()}
    assert figures["entity: its own state"] < 100
    assert figures["model of the library"] > 10 * figures["entity: its own state"]


def test_the_table_is_readable_and_unknown_names_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = pytest.importorskip("bench.__main__", reason="bench/ is part of a checkout only")
    monkeypatch.setattr(sys, "argv", ["bench", "config"])
    program.main()
    assert capsys.readouterr().out.startswith("config\n  ")
    monkeypatch.setattr(sys, "argv", ["bench", "nothing"])
    with pytest.raises(SystemExit, match="2"):
        program.main()
    assert "no measurement is named 'nothing'" in capsys.readouterr().err


# -- a FastHierarchicalMachine: what a trigger calls, and what does not get in its way ---------------


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
        got, stock = (calls(getattr(each, name))["call"] for each in (heater, other))
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


# -- a FastMachine: its plans ---------------------------------------------------------------------


class Order:
    def is_paid(self) -> bool:
        return True

    def pack(self) -> None:
        raise OSError("no box")


def shop() -> tuple[Any, Any]:
    order: Any = Order()
    machine = FastMachine(order, states=["new", "sent"], initial="new", auto_transitions=False)
    machine.add_transition("send", "new", "sent", conditions="is_paid")
    machine.add_transition("back", "sent", "new")
    return order, machine


def test_a_plan_can_be_read_and_changes_with_the_machine() -> None:
    order, machine = shop()
    assert "model.is_paid" in machine.plan("send", "new") and "pack" not in machine.plan(
        "send", "new"
    )
    assert "is_paid" not in machine.plan("back", "sent")
    for _ in range(3):
        assert order.send() and order.back()
    machine.before_state_change.append("pack")
    assert "model.pack" in machine.plan("send", "new")
    with pytest.raises(ValueError, match="back in new: the library's own steps run"):
        machine.plan("back", "new")
    with pytest.raises(ValueError, match="'lost' is not a registered state"):
        machine.plan("send", "lost")


def test_a_traceback_shows_the_lines_of_a_plan() -> None:
    order, machine = shop()
    machine.get_transitions("send")[0].before.append("pack")
    for _ in range(3):
        with pytest.raises(OSError, match="no box") as raised:
            order.send()
    assert raised.value.__context__ is None
    lines = [(at.name, at.line) for at in traceback.extract_tb(raised.tb)]
    assert lines[-2:] == [("plan", "model.pack()"), ("pack", 'raise OSError("no box")')]


def test_a_change_of_one_machine_costs_another_one_nothing() -> None:
    (order, machine), (_, other) = shop(), shop()
    shared = other.states["sent"]
    machine.states["sent"] = shared
    for _ in range(3):
        assert order.send() and order.back()
    other.add_transition("lose", "new", "sent")
    other.after_state_change = "pack"
    assert calls(order.send)["call"] <= 4
    assert order.back()
    shared.on_enter.append("pack")  # of both
    with pytest.raises(OSError, match="no box"):
        order.send()
