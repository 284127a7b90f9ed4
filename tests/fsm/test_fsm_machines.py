"""The tables on the library's own machines, and what the shared one allows."""

from typing import Any

import pytest
from transitions import Machine, MachineError
from transitions.extensions import (
    GraphMachine,
    HierarchicalMachine,
    LockedMachine,
)
from transitions.extensions.markup import MarkupMachine

from quadriga.fsm import (
    NODE,
    InvalidTransition,
    Lifecycle,
)
from quadriga.fsm.effects import CloseNode, EmptyNode, OpenNode


class Server:
    """A model: the library gives it ``accept()``, ``drain()`` and so on."""

    state: str

    def __init__(self, key: str = "n-1") -> None:
        self.key = key
        self.heard: list[Any] = []

    def on_effects(self, effects: Any) -> None:
        self.heard.append((self.state, effects))


@pytest.mark.parametrize(
    "machine_cls", [Machine, LockedMachine, HierarchicalMachine, MarkupMachine]
)
def test_a_machine_of_ones_own(machine_cls: type[Machine]) -> None:
    server: Any = Server()
    machine = NODE.make_machine(server, machine_cls)
    assert isinstance(machine, machine_cls)
    assert server.state == "New"
    assert server.accept(draining=True)
    assert server.schedule()
    assert server.update()
    assert server.decommission()
    # told after the change, only where there is something to tell
    assert server.heard == [
        ("Draining", (CloseNode(),)),
        ("Schedulable", (OpenNode(),)),
        ("Removed", (CloseNode(), EmptyNode())),
    ]
    with pytest.raises(MachineError):
        server.drain()
    assert server.state == "Removed"


def test_a_graph_machine() -> None:
    pytest.importorskip("graphviz")
    server: Any = Server()
    NODE.make_machine(server, GraphMachine, show_conditions=True)
    server.accept()
    source = server.get_graph().source
    assert all(state in source for state in NODE.states)
    assert "created_draining" in source


def test_effects_go_where_deliver_says_and_the_library_has_its_options() -> None:
    told: list[Any] = []

    def tell(model: Any, effects: Any) -> None:
        told.append((model.key, model.state, effects))

    server: Any = Server()
    NODE.make_machine(server, deliver=tell)
    server.accept()
    assert told == [("n-1", "Schedulable", (OpenNode(),))]
    assert server.heard == []
    machine = NODE.make_machine(model_attribute="phase", queued=True)
    servers: list[Any] = [Server("n-1"), Server("n-2")]
    for server in servers:
        server.state = "the model's own"
        machine.add_model(server)
    servers[0].accept()
    assert [server.phase for server in servers] == ["Schedulable", "New"]
    assert servers[0].is_phase_Schedulable()


# -- the shared machine --------------------------------------------------------------------------


def test_the_shared_machine_takes_models(twin: Any) -> None:
    node = twin(NODE)
    server: Any = Server()
    node.machine.add_model(server)
    assert server.state == "New"
    assert server.may_accept()
    assert not server.may_drain()
    assert server.accept(draining=True)
    assert server.is_Draining()
    assert server.trigger("schedule")
    assert server.heard == [("Draining", (CloseNode(),)), ("Schedulable", (OpenNode(),))]
    with pytest.raises(InvalidTransition, match="node 'n-1' cannot 'accept' in state Schedulable"):
        server.accept()
    node.machine.remove_model(server)


def test_the_shared_machine_is_one_for_all_entities(twin: Any, born: Any) -> None:
    node = twin(NODE)
    for _ in range(3):
        node.fire(born("New"), "accept")
    assert node.machine.models == []


def test_the_shared_machine_knows_its_states_and_triggers(lifecycle: Lifecycle) -> None:
    machine = lifecycle.machine
    assert tuple(machine.states) == lifecycle.states
    # only newer versions of the library know of it for states that are not final
    final = (s.name for s in machine.states.values() if getattr(s, "final", False))
    assert tuple(final) == lifecycle.final
    assert machine.initial == lifecycle.initial
    for state in lifecycle.states:
        assert set(machine.get_triggers(state)) == set(lifecycle.triggers(state))


# -- markup ----------------------------------------------------------------------------------------


def test_a_table_can_be_exported_as_markup(lifecycle: Lifecycle) -> None:
    markup: Any = lifecycle.make_machine(None, MarkupMachine).markup  # type: ignore[attr-defined]
    assert markup["name"] == lifecycle.name
    assert markup["initial"] == lifecycle.initial
    assert [state["name"] for state in markup["states"]] == list(lifecycle.states)
    exported = {
        (t["source"], t["trigger"], t.get("dest"), tuple(t.get("conditions", ())))
        for t in markup["transitions"]
    }
    built = {
        (r.source, r.trigger, r.target, (r.guard.__name__,) if r.guard else ())
        for r in lifecycle.rows
    }
    assert exported == built
