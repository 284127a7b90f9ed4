"""quadriga.fsm."""

from __future__ import annotations

import asyncio
import pickle
from dataclasses import dataclass
from enum import Enum

from bench._comparison import measured
from quadriga.base.times import HOUR
from quadriga.fsm import (
    STAYS,
    DefinitionError,
    Effect,
    FastMachine,
    InvalidTransition,
    Lifecycle,
    Timers,
    ignored,
    path_to,
    row,
    unbounded,
    within,
)

NAME, PACKAGE, DISTRIBUTION = "quadriga.fsm", "quadriga.fsm", "quadriga"


@dataclass(frozen=True, slots=True)
class Send(Effect):
    text: str


def too_little(order, info):
    return info["paid"] < 20


def tell(order, fired):
    if fired.info.get("broken"):
        raise RuntimeError("broken")
    yield Send(f"{order.key} is {fired.target}")


LASTS = {"Open": within(48 * HOUR, then="cancel"), "Paid": unbounded("deliver")}
ROWS = (
    row("pay", "Open", STAYS, when=too_little, why="the rest is still due"),
    row("pay", "Open", "Paid", emit=tell),
    row("deliver", "Paid", "Delivered", emit=tell),
    row("cancel", ("Open", "Paid"), "Cancelled"),
    ignored("pay", "Paid", why="the bank sends notices twice"),
)
FINAL = ("Delivered", "Cancelled")
ORDER = Lifecycle("order", initial="Open", final=FINAL, lasts=LASTS, rows=ROWS)


@dataclass(slots=True, eq=False)
class Order:
    key: str = "A-17"
    state: str = "Open"


def guard():
    order = Order()
    ORDER.fire(order, "pay", paid=5)
    before = order.state
    ORDER.fire(order, "pay", paid=20)
    return f"5 of 20: {before}, 20 of 20: {order.state}"


def refused_guard():
    try:
        Lifecycle(
            "order", initial="Open", final=("Paid",), lasts={"Open": unbounded("pay")},
            rows=(row("pay", "Open", "Paid", when=too_little),),
        )  # fmt: skip
    except DefinitionError as error:
        return f"cannot be defined: `{error}`"
    return "can be defined"


def illegal():
    try:
        ORDER.fire(Order(), "deliver")
    except InvalidTransition as error:
        return f"`{error}`"


def misspelled():
    try:
        ORDER.fire(Order(), "cancl")
    except InvalidTransition as error:
        return f"`{error}`"


def effects():
    return f"what is to be done, as data: `{ORDER.fire(Order(), 'pay', paid=20)!r}`"


def failure():
    order = Order()
    try:
        ORDER.fire(order, "pay", paid=20, broken=True)
    except RuntimeError:
        return f"unchanged ({order.state})"


def possible():
    return f"`{ORDER.triggers('Open')}`"


def stays():
    order = Order(state="Paid")
    ORDER.fire(order, "pay", paid=20)
    return f"a row with its reason: {ORDER.rows_from('Paid', 'pay')[0].why!r}"


def star():
    rows = (row("pay", "Open", "Paid"), row("cancel", "*", "Cancelled"))
    lasts = {"Open": unbounded("pay"), "Paid": unbounded("cancel")}
    table = Lifecycle("order", initial="Open", final=("Cancelled",), lasts=lasts, rows=rows)
    return f"`*`: {', '.join(r.source for r in table.rows if r.trigger == 'cancel')}"


def stored():
    order = Order(state="Paid")
    ORDER.check(order)
    return f"nothing to call: {order.state}; {ORDER.fire(order, 'deliver') and order.state} next"


def unknown_stored():
    try:
        ORDER.check(Order(state="Payed"))
    except Exception as error:
        return f"`{type(error).__name__}: {error}`"


def pickled():
    order = pickle.loads(pickle.dumps(Order(state="Paid")))
    ORDER.fire(order, "deliver")
    return f"{order.state}, {len(pickle.dumps(Order()))} bytes"


def timeout():
    timers, order = Timers(), Order()
    timers.fire(ORDER, Order(state="Paid"), "cancel", 0)
    timers.resume(ORDER, order, 0)
    (due,) = timers.due(48 * HOUR)
    return f"in the table, without a clock or a thread: `{due.trigger}` is due after 48 h"


def async_guard():
    async def patient(order, info):
        return False

    rows = (
        row("pay", "Open", STAYS, when=patient, why="not yet"),
        row("pay", "Open", "Paid"),
    )
    table = Lifecycle(
        "order", initial="Open", final=("Paid",), lasts={"Open": unbounded("pay")}, rows=rows
    )
    from transitions.extensions.asyncio import AsyncMachine

    order = Order()
    try:
        table.fire(order, "pay")
        said = f"`fire` takes it: {order.state}"
    except Exception as error:
        said = f"`fire` refuses it: `{type(error).__name__}`"
    model = measured.Plain()
    table.make_machine(model, machine_cls=AsyncMachine)
    asyncio.run(model.pay())
    return f"{said}; awaited on an asynchronous machine: {model.state}"


def _nested(back="On"):
    motor = Lifecycle(
        "motor", initial="Slow", final=(), lasts={"Slow": unbounded("faster"), "Fast": unbounded("slower")},
        rows=(row("faster", "Slow", "Fast"), row("slower", "Fast", "Slow")),
    )  # fmt: skip
    return Lifecycle(
        "fan", initial="Off", final=(), lasts={"Off": unbounded("start"), "On": within(HOUR, then="stop")},
        rows=(row("start", "Off", back), row("stop", "On", "Off")), inside={"On": motor},
    )  # fmt: skip


def nested():
    fan = Order(state="Off")
    table = _nested()
    table.fire(fan, "start")
    inside = fan.state
    table.fire(fan, "stop")
    return f"yes: {inside}, and a row from the outer state leads to {fan.state}"


def history():
    from quadriga.fsm import history as remembered

    fan = measured.Plain()
    fan.state, fan.key, fan.history = "Off", "fan", {}
    table = _nested(remembered("On"))
    for trigger in ("start", "faster", "stop", "start"):
        table.fire(fan, trigger)
    return f"yes: back in {fan.state}"


def parallel():
    try:
        from transitions.extensions import HierarchicalMachine
    except ImportError:
        return "no"
    # rows of a lifecycle are of one region; the machine of the library has several
    machine = HierarchicalMachine(
        states=[{"name": "P", "parallel": ["a", "b"]}], initial="P", auto_transitions=False
    )
    return f"no: use the library's machine, {machine.state}"


def enums():
    class State(Enum):
        OPEN = 1
        PAID = 2

    table = Lifecycle(
        "order", initial=State.OPEN, final=(State.PAID,), lasts={State.OPEN: unbounded("pay")},
        rows=(row("pay", State.OPEN, State.PAID),),
    )  # fmt: skip
    order = Order(state=table.initial)
    table.fire(order, "pay")
    return f"yes: `{order.state!r}`"


TYPED = """
from dataclasses import dataclass
from typing import Literal
from quadriga.fsm import Lifecycle, row, unbounded
State = Literal["Open", "Paid"]
Trigger = Literal["pay"]
ORDER: Lifecycle[State, Trigger] = Lifecycle(
    "order", initial="Open", final=("Paid",), lasts={"Open": unbounded("pay")},
    rows=(row("pay", "Open", "Paid"),),
)
@dataclass
class Order:
    key: str
    state: State = "Open"
ORDER.fire(Order("a"), "pya")
"""


def typed():
    return measured.mypy(TYPED, "incompatible type \"Literal['pya']\"")


def _definition(*rows, final=("Paid",), lasts=None):
    try:
        Lifecycle(
            "order",
            initial="Open",
            final=final,
            lasts=lasts or {"Open": unbounded("pay")},
            rows=rows,
        )
    except DefinitionError as error:
        return f"refused: `{error}`"
    return "accepted"


def bad_target():
    return _definition(row("pay", "Open", "Piad"))


def unreachable():
    return _definition(
        row("pay", "Open", "Paid"),
        row("find", "Lost", "Open"),
        lasts={"Open": unbounded("pay"), "Lost": unbounded("find")},
    )


def dead_end():
    return _definition(
        row("pay", "Open", "Paid"), row("lose", "Open", "Lost"),
        lasts={"Open": unbounded("pay"), "Lost": unbounded("pay")},
    )  # fmt: skip


def shadowed():
    return _definition(row("pay", "Open", "Paid"), row("pay", "Open", "Paid", when=too_little))


def extended():
    more = ORDER.extend(rows=(row("lose", "Paid", "Lost"),), final=("Lost",))
    return f"`extend`: {len(more.rows)} rows beside {len(ORDER.rows)}"


def diagrams():
    from quadriga.diagrams import FORMATS, IMAGES, render

    texts = [f for f in FORMATS if f not in IMAGES and render(ORDER, f)]
    return ", ".join(sorted(texts))


def coverage():
    return measured.pytest_coverage()


def shortest():
    return f"`{[r.trigger for r in path_to(ORDER, 'Delivered')]}`"


def observed():
    seen = []
    stop = ORDER.observe(lambda taken: seen.append(str(getattr(taken, "row", taken))))
    ORDER.fire(Order(), "cancel")
    stop()
    return f"yes: `{seen[0]}`"


# -- figures ---------------------------------------------------------------------------------------

_TOGGLE = Lifecycle(
    "toggle", initial="A", final=(), lasts={"A": unbounded("flip"), "B": unbounded("flip")},
    rows=(row("flip", "A", "B"), row("flip", "B", "A")),
)  # fmt: skip


def never(order, info):
    return False


_GUARDED = Lifecycle(
    "guarded", initial="A", final=(), lasts={"A": unbounded("flip"), "B": unbounded("flip")},
    rows=(
        row("flip", "A", STAYS, when=never, why="never"), row("flip", "A", "B"),
        row("flip", "B", STAYS, when=never, why="never"), row("flip", "B", "A"),
    ),
)  # fmt: skip


def memory():
    return measured.memory(lambda: Order("x", "Open"))


def speed_plain():
    order = Order(state="A")
    return measured.time(lambda: _TOGGLE.fire(order, "flip"))


def speed_guard():
    order = Order(state="A")
    return measured.time(lambda: _GUARDED.fire(order, "flip"))


def creation():
    return measured.time(lambda: Order("x", "Open"))


def importing():
    return measured.import_time("quadriga.fsm")


assert FastMachine
