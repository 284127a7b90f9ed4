"""python-statemachine. ``StateMachine`` is strict about illegal events; ``StateChart``, the newer class,
is silent."""

from __future__ import annotations

import asyncio
import contextlib
import pickle
from enum import Enum

import statemachine
from statemachine import HistoryState, State, StateChart, StateMachine
from statemachine.contrib.timeout import timeout as time_limit
from statemachine.exceptions import InvalidDefinition, InvalidStateValue, TransitionNotAllowed
from statemachine.states import States

from bench._comparison import measured

NAME, PACKAGE, DISTRIBUTION = "python-statemachine", "statemachine", "python-statemachine"


class Order(StateMachine):
    open = State("Open", initial=True)
    paid = State("Paid")
    delivered = State("Delivered", final=True)
    cancelled = State("Cancelled", final=True)

    pay = open.to(paid, cond="enough", on="tell")
    deliver = paid.to(delivered)
    cancel = open.to(cancelled) | paid.to(cancelled)

    def enough(self, paid=20):
        return paid >= 20

    def tell(self, broken=False):
        if broken:
            raise RuntimeError("broken")
        return "told"


def state_of(machine):
    return ", ".join(machine.configuration_values)


def refusal(function):
    try:
        function()
    except TransitionNotAllowed as error:
        return f"`{type(error).__name__}: {error}`"
    return "nothing"


def guard():
    order = Order()
    refusal(lambda: order.pay(paid=5))
    before = state_of(order)
    order.pay(paid=20)
    return f"5 of 20: {before}, 20 of 20: {state_of(order)}"


def refused_guard():
    return f"{refusal(lambda: Order().pay(paid=5))}, as for an illegal trigger"


def illegal():
    class Chart(StateChart):
        open = State(initial=True)
        paid = State()
        delivered = State(final=True)
        pay = open.to(paid)
        deliver = paid.to(delivered)

    return f"{refusal(Order().deliver)}; a `StateChart` returns `{Chart().deliver()}`"


def misspelled():
    try:
        Order().cancl()
    except AttributeError as error:
        said = f"`{error}`"
    return f"{said}; `send`: {refusal(lambda: Order().send('cancl'))}"


def effects():
    return f"the result of the callbacks: `{Order().pay(paid=20)!r}`"


def failure():
    class Entering(Order):
        def on_enter_paid(self):
            raise RuntimeError("broken")

    order, entering = Order(), Entering()
    for each in (lambda: order.pay(broken=True), entering.pay):
        with contextlib.suppress(RuntimeError):
            each()
    return f"`on`: {changed(order)}; `on_enter`: {changed(entering)}"


def changed(order):
    return f"{'unchanged' if state_of(order) == 'open' else 'changed'} ({state_of(order)})"


def possible():
    order = Order()
    enabled = [event.id for event in order.enabled_events(paid=5)]
    return f"`{[event.id for event in order.allowed_events]}`; with guards: `{enabled}`"


def stays():
    class Noticed(StateMachine):
        open = State(initial=True)
        paid = State()
        done = State(final=True)
        pay = open.to(paid) | paid.to.itself(internal=True)
        end = paid.to(done)

    order = Noticed()
    order.pay()
    order.pay()
    return f"an internal transition: {state_of(order)}"


def star():
    class Starred(StateMachine):
        open = State(initial=True)
        paid = State()
        cancelled = State(final=True)
        pay = open.to(paid)
        cancel = cancelled.from_.any()

    sources = [s.id for s in Starred().states if any(t.event == "cancel" for t in s.transitions)]
    return f"`from_.any()`: {', '.join(sources)}"


def stored():
    order = Order(start_value="paid")
    before = state_of(order)
    order.deliver()
    return f"`Order(start_value=...)`: {before}; {state_of(order)} next"


def unknown_stored():
    try:
        return state_of(Order(start_value="payed"))
    except InvalidStateValue as error:
        return f"`{type(error).__name__}: {error}`"


def pickled():
    order = Order(start_value="paid")
    size = len(pickle.dumps(order))
    order = pickle.loads(pickle.dumps(order))
    order.deliver()
    return f"{state_of(order)}, {size} bytes"


def timeout():
    class Timed(StateChart):
        open = State(initial=True, invoke=time_limit(0.2, on="cancel"))
        cancelled = State(final=True)
        cancel = open.to(cancelled)

    import threading
    from time import sleep

    known = set(threading.enumerate())
    order = Timed()
    threads = [t.name for t in threading.enumerate() if t not in known]
    for _ in range(2000):
        if state_of(order) == "cancelled":
            break
        sleep(0.002)
    kind = "a thread for each object" if threads else "no thread"
    return f"`invoke=timeout(...)`, {kind}: {state_of(order)}"


def async_guard():
    class Slow(StateMachine):
        open = State(initial=True)
        paid = State(final=True)
        pay = open.to(paid, cond="enough")

        async def enough(self):
            return True

    async def life():
        order = Slow()
        await order.activate_initial_state()
        await order.pay()
        return state_of(order)

    plain = Slow()
    plain.pay()
    return (
        f"awaited: {asyncio.run(life())}; without a running loop it starts one: {state_of(plain)}"
    )


class Fan(StateChart):
    off = State(initial=True)

    class on(State.Compound):
        slow = State(initial=True)
        fast = State()
        faster = slow.to(fast)
        back = HistoryState()

    start = off.to(on)
    resume = off.to(on.back)
    stop = on.to(off)


def nested():
    fan = Fan()
    fan.start()
    inside = state_of(fan)
    fan.stop()
    return f"yes: {inside}, and a transition from the outer state leads to {state_of(fan)}"


def history():
    fan = Fan()
    for event in ("start", "faster", "stop", "resume"):
        fan.send(event)
    return f"yes: back in {state_of(fan)}"


def parallel():
    class Two(StateChart):
        class both(State.Parallel):
            class left(State.Compound):
                a = State(initial=True)

            class right(State.Compound):
                b = State(initial=True)

    return f"yes: {state_of(Two())}"


def enums():
    class Kind(Enum):
        OPEN = 1
        PAID = 2

    class Enumerated(StateMachine):
        states = States.from_enum(Kind, initial=Kind.OPEN, final=Kind.PAID, use_enum_instance=True)
        pay = states.OPEN.to(states.PAID)

    order = Enumerated()
    order.pay()
    return f"yes: `{next(iter(order.configuration_values))!r}`"


TYPED = """
from statemachine import State, StateMachine
class Order(StateMachine):
    open = State(initial=True)
    paid = State(final=True)
    pay = open.to(paid)
order = Order()
order.pya()
"""


def typed():
    return measured.mypy(TYPED, 'has no attribute "pya"')


def _definition(body):
    names = {"State": State, "StateMachine": StateMachine, "StateChart": StateChart}
    said = []
    for base in ("StateMachine", "StateChart"):
        try:
            exec(f"class Order({base}):\n{body}", dict(names))
        except (InvalidDefinition, NameError) as error:
            said.append(f"refused: `{error}`")
        else:
            said.append("accepted")
    return said[0] if said[0] == said[1] else f"{said[0]}; `StateChart`: {said[1]}"


def bad_target():
    return _definition(
        "    open = State(initial=True)\n    paid = State(final=True)\n    pay = open.to(piad)\n"
    )


def unreachable():
    return _definition(
        "    open = State(initial=True)\n    paid = State(final=True)\n    lost = State()\n"
        "    pay = open.to(paid)\n    find = lost.to(open)\n"
    )


def dead_end():
    return _definition(
        "    open = State(initial=True)\n    paid = State(final=True)\n    lost = State()\n"
        "    pay = open.to(paid)\n    lose = open.to(lost)\n"
    )


def shadowed():
    return _definition(
        "    open = State(initial=True)\n    paid = State(final=True)\n"
        "    pay = open.to(paid) | open.to(open)\n"
    )


def extended():
    class More(Order):
        lost = State(final=True)
        lose = Order.paid.to(lost)

    events = {event.id for event in Order.events}
    added = {event.id for event in More.events} - events
    kept = "lose" in {t.event for t in Order.paid.transitions}
    return f"a subclass adds {sorted(added)}" + (
        "; the first one gets the transition too" if kept else ""
    )


def diagrams():
    from statemachine.contrib.diagram import formatter

    order, found = Order(), []
    for name in ("dot", "mermaid", "md", "rst"):
        try:
            if formatter.render(order, name):
                found.append(name)
        except ImportError as error:
            found.append(f"{name} needs {error.name}")
    return ", ".join(found)


def coverage():
    import pkgutil

    modules = pkgutil.walk_packages(statemachine.__path__, "statemachine.")
    found = [module.name for module in modules if "coverage" in module.name]
    return f"`{found[0]}`" if found else "no"


def shortest():
    return "yes" if [name for name in dir(StateMachine) if "path" in name] else "no"


def observed():
    class Listener:
        def __init__(self):
            self.seen = []

        def after_transition(self, event, source, target):
            self.seen.append(f"{source.id} {event} {target.id}")

    listener = Listener()
    Order(listeners=[listener]).cancel()
    return f"a listener for each object: {listener.seen[0]}"


# -- figures ---------------------------------------------------------------------------------------


class Toggle(StateMachine):
    a = State(initial=True)
    b = State()
    flip = a.to(b) | b.to(a)


class Guarded(StateMachine):
    a = State(initial=True)
    b = State()
    flip = a.to(b, cond="always") | b.to(a, cond="always")

    def always(self):
        return True


def memory():
    return measured.memory(Toggle)


def speed_plain():
    machine = Toggle()
    return measured.time(lambda: machine.flip())


def speed_guard():
    machine = Guarded()
    return measured.time(lambda: machine.flip())


def creation():
    return measured.time(Toggle, turns=100)


def importing():
    return measured.import_time("statemachine")
