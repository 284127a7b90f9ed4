"""transitions."""

from __future__ import annotations

import asyncio
import copy
import pickle
from enum import Enum

import transitions
from transitions import Machine, MachineError
from transitions.experimental.utils import generate_base_model
from transitions.extensions import GraphMachine, HierarchicalMachine
from transitions.extensions.asyncio import AsyncMachine
from transitions.extensions.states import Timeout, add_state_features

from bench._comparison import measured

NAME, PACKAGE, DISTRIBUTION = "transitions", "transitions", "transitions"

STATES = ["Open", "Paid", "Delivered", "Cancelled"]


class Order:
    def __init__(self) -> None:
        self.told: list[str] = []

    def enough(self, paid: int = 20, **_: object) -> bool:
        return paid >= 20

    def tell(self, broken: bool = False, **_: object) -> str:
        if broken:
            raise RuntimeError("broken")
        self.told.append(self.state)
        return "told"


def made(**options):
    order = Order()
    order.machine = Machine(order, states=STATES, initial="Open", auto_transitions=False, **options)
    order.machine.add_transition("pay", "Open", "Paid", conditions="enough", after="tell")
    order.machine.add_transition("deliver", "Paid", "Delivered")
    order.machine.add_transition("cancel", ["Open", "Paid"], "Cancelled")
    return order


def guard():
    order = made()
    order.pay(paid=5)
    before = order.state
    order.pay(paid=20)
    return f"5 of 20: {before}, 20 of 20: {order.state}"


def refused_guard():
    return f"returns `{made().pay(paid=5)}`"


def illegal():
    try:
        made().deliver()
    except MachineError as error:
        return f"`{error.value}`"


def misspelled():
    try:
        made().cancl()
    except AttributeError as error:
        return f"`{error}`"


def effects():
    return f"`{made().pay(paid=20)}`; callbacks are executed"


def failure():
    order = made()
    try:
        order.pay(paid=20, broken=True)
    except RuntimeError:
        return (
            f"`after`: changed ({order.state}); `before` and `conditions`: unchanged ({_before()})"
        )


def _before():
    order = made()
    order.machine.remove_transition("pay")
    order.machine.add_transition("pay", "Open", "Paid", before="tell")
    try:
        order.pay(broken=True)
    except RuntimeError:
        return order.state


def possible():
    order = made()
    return f"`{order.machine.get_triggers(order.state)}`; with guards: `may_pay(paid=5)` is {order.may_pay(paid=5)}"


def stays():
    order = made()
    order.machine.add_transition("pay", "Paid", None)
    order.pay()
    return f"a destination of None: {order.pay()}, {order.state}"


def star():
    order = made()
    order.machine.add_transition("lose", "*", "Cancelled")
    sources = [t.source for t in order.machine.get_transitions("lose")]
    return f"`*`: {', '.join(sources)}"


def stored():
    order = Order()
    machine = Machine(states=STATES, initial=None, auto_transitions=False, model=None)
    machine.add_transition("deliver", "Paid", "Delivered")
    machine.add_model(order, initial="Paid")
    before = order.state
    order.deliver()
    return f"`add_model(order, initial=...)`: {before}; {order.state} next"


def unknown_stored():
    machine = Machine(model=None, states=STATES, initial=None)
    try:
        machine.add_model(Order(), initial="Payed")
    except ValueError as error:
        return f"`ValueError: {error}`"


def pickled():
    order = made()
    order.pay()
    copied = pickle.loads(pickle.dumps(order))
    copied.deliver()
    return f"{copied.state}, {len(pickle.dumps(order))} bytes with its machine"


def timeout():
    @add_state_features(Timeout)
    class Timed(Machine):
        pass

    order = Order()
    order.cancel = lambda: None
    machine = Timed(
        order,
        states=[{"name": "Open", "timeout": 60, "on_timeout": "cancel"}, "Paid"],
        initial="Paid",
        auto_transitions=False,
    )
    machine.add_transition("reopen", "Paid", "Open")
    machine.add_transition("pay", "Open", "Paid")
    order.reopen()
    runner = machine.states["Open"].runner[id(order)]
    order.pay()
    return f"a `{type(runner).__module__}.{type(runner).__name__}` for each object (seconds)"


def async_guard():
    class Slow(Order):
        async def enough(self, **_: object) -> bool:
            return True

    order = Slow()
    AsyncMachine(order, states=STATES, initial="Open").add_transition(
        "pay", "Open", "Paid", conditions="enough"
    )
    asyncio.run(order.pay())
    plain = Slow()
    Machine(plain, states=STATES, initial="Open").add_transition(
        "pay", "Open", "Paid", conditions="enough"
    )
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        silent = plain.pay()
    return f"awaited on `AsyncMachine`: {order.state}; on a plain machine: {silent}, {plain.state}"


FAN = [{"name": "On", "children": ["Slow", "Fast"], "initial": "Slow"}, "Off"]


def nested():
    fan = Order()
    machine = HierarchicalMachine(fan, states=FAN, initial="Off", auto_transitions=False)
    machine.add_transition("start", "Off", "On")
    machine.add_transition("stop", "On", "Off")
    fan.start()
    inside = fan.state
    fan.stop()
    return f"yes: {inside}, and a transition from the outer state leads to {fan.state}"


def history():
    names = [name for name in dir(HierarchicalMachine) if "history" in name.lower()]
    return "yes" if names else "no"


def parallel():
    machine = HierarchicalMachine(
        states=[{"name": "P", "parallel": ["a", "b"]}], initial="P", auto_transitions=False
    )
    return f"yes: `{machine.state}`"


def enums():
    class State(Enum):
        OPEN = 1
        PAID = 2

    order = Order()
    machine = Machine(order, states=State, initial=State.OPEN, auto_transitions=False)
    machine.add_transition("pay", State.OPEN, State.PAID)
    order.pay()
    return f"yes: `{order.state!r}`"


TYPED = """
from transitions import Machine
class Order{base}:
    pass
order = Order()
machine = Machine(order, states=["Open", "Paid"], initial="Open", model_override={override})
machine.add_transition("pay", "Open", "Paid")
order.pya()
"""


def typed():
    program = TYPED.format(base="", override=False)
    right = measured.mypy(program.replace("pya", "pay"), 'has no attribute "pay"')
    config = {
        "states": ["Open", "Paid"],
        "initial": "Open",
        "transitions": [["pay", "Open", "Paid"]],
    }
    written = generate_base_model({**config, "auto_transitions": False})
    stubs = measured.mypy(f"{written}\n{TYPED.format(base='(BaseModel)', override=True)}", '"pya"')
    plain = "the correct name is an error too" if right.startswith("yes") else "no"
    return f"{plain}; with a class that `generate_base_model` (experimental) writes: {stubs}"


def _definition(states, *transitions_):
    try:
        machine = Machine(
            model=Order(), states=states, initial="Open", transitions=list(transitions_),
            auto_transitions=False,
        )  # fmt: skip
    except (ValueError, MachineError) as error:
        return f"refused: `{error}`"
    return "accepted" if machine else ""


def bad_target():
    said = _definition(["Open", "Paid"], ["pay", "Open", "Piad"])
    if said != "accepted":
        return said
    order = Order()
    machine = Machine(order, states=["Open", "Paid"], initial="Open", auto_transitions=False)
    machine.add_transition("pay", "Open", "Piad")
    try:
        order.pay()
    except ValueError as error:
        return f"accepted; when it is taken: `{error}`"


def unreachable():
    return _definition(["Open", "Paid", "Lost"], ["pay", "Open", "Paid"], ["find", "Lost", "Open"])


def dead_end():
    return _definition(["Open", "Paid", "Lost"], ["pay", "Open", "Paid"], ["lose", "Open", "Lost"])


def shadowed():
    return _definition(["Open", "Paid"], ["pay", "Open", "Paid"], ["pay", "Open", "Open"])


def extended():
    first = Machine(model=None, states=STATES, initial="Open", auto_transitions=False)
    more = copy.deepcopy(first)
    more.add_transition("lose", "Open", "Cancelled")
    return (
        f"`copy.deepcopy(machine)`, then changed: {list(more.events)} beside {list(first.events)}"
    )


def diagrams():
    found = []
    for engine in ("mermaid", "graphviz"):
        order = Order()
        machine = GraphMachine(order, states=STATES, initial="Open", graph_engine=engine)
        source = getattr(machine.get_combined_graph(), "source", None)
        if source:
            found.append({"mermaid": "mermaid", "graphviz": "dot"}[engine])
    from transitions.extensions.markup import MarkupMachine

    if MarkupMachine(Order(), states=STATES, initial="Open").markup:
        found.append("markup (a dictionary)")
    return ", ".join(sorted(found))


def coverage():
    return measured_no("coverage")


def measured_no(word):
    import pkgutil

    names = [m.name for m in pkgutil.walk_packages(transitions.__path__, "transitions.")]
    found = [name for name in names if word in name]
    return f"`{found[0]}`" if found else "no"


def shortest():
    names = [name for name in dir(Machine) if "path" in name]
    return "yes" if names else "no"


def observed():
    order = Order()
    seen = []
    machine = Machine(
        order, states=STATES, initial="Open", send_event=True,
        after_state_change=lambda event: seen.append(str(event.transition.dest)),
    )  # fmt: skip
    machine.add_transition("pay", "Open", "Paid")
    order.pay()
    return f"`after_state_change`, chosen by the machine's maker: {seen[0]}"


# -- figures ---------------------------------------------------------------------------------------


class Small:
    def always(self) -> bool:
        return True


_TOGGLE = Machine(model=None, states=["A", "B"], initial="A", auto_transitions=False)
_TOGGLE.add_transition("flip", "A", "B")
_TOGGLE.add_transition("flip", "B", "A")
_GUARDED = Machine(model=None, states=["A", "B"], initial="A", auto_transitions=False)
_GUARDED.add_transition("flip", "A", "B", conditions="always")
_GUARDED.add_transition("flip", "B", "A", conditions="always")


def _model(machine):
    model = Small()
    machine.add_model(model)
    return model


def memory():
    machine = Machine(model=None, states=["A", "B"], initial="A", auto_transitions=False)
    machine.add_transition("flip", "A", "B")
    machine.add_transition("flip", "B", "A")
    return measured.memory(lambda: _model(machine))


def speed_plain():
    model = _model(_TOGGLE)
    return measured.time(lambda: model.flip())


def speed_guard():
    model = _model(_GUARDED)
    return measured.time(lambda: model.flip())


def creation():
    machine = Machine(model=None, states=["A", "B"], initial="A", auto_transitions=False)
    machine.add_transition("flip", "A", "B")

    return measured.time(lambda: _model(machine), turns=100)


def importing():
    return measured.import_time("transitions")
