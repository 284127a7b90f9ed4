"""Only mypy reads this. Each line with a ``wrong`` is an error of that code, every other line is right."""

from collections.abc import Iterator
from datetime import timedelta
from enum import Enum, StrEnum
from typing import Any, Final, Literal, Protocol

from quadriga.core.model.application import Application
from quadriga.core.model.ask import Ask
from quadriga.core.runtime.kernel import Kernel
from quadriga.fsm import (
    APPLICATION,
    ASK,
    EVERY,
    LIFECYCLES,
    NODE,
    STAYS,
    Effect,
    Entity,
    Fired,
    Lifecycle,
    path_to,
    row,
    unbounded,
    within,
)
from quadriga.fsm.aio import AsyncTimers
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.fsm.table import Info
from quadriga.fsm.timers import Timers

State = Literal["Open", "Paid"]
Step = Literal["pay", "refund"]


class OrderFacts(Protocol):
    state: State

    @property
    def key(self) -> str: ...
    @property
    def price(self) -> int: ...


class Cat:
    purrs = True


def is_dear(order: OrderFacts, info: Info) -> bool:
    return order.price > 100


def purrs(cat: Cat, info: Info) -> bool:
    return cat.purrs


def knows(entity: Entity, info: Info) -> bool:
    return bool(entity.key)


def thank(order: OrderFacts, fired: Fired) -> Iterator[Effect]:
    yield Effect()


def purr(cat: Cat, fired: Fired) -> tuple[Effect, ...]:
    return ()


# -- guards and emitters read the facts ----------------------------------------------------------------

ORDER: Final[Lifecycle[State, Step, OrderFacts]] = Lifecycle(
    "order",
    initial="Open",
    final=(),
    lasts={"Open": within(timedelta(days=1), then="pay"), "Paid": unbounded("refund")},
    rows=(
        row("pay", "Open", STAYS, when=is_dear, why="it is dear"),
        row("pay", "Open", STAYS, when=knows, why="it has a key"),
        row("pay", EVERY, "Paid", emit=(thank, thank)),
        row("refund", frozenset({"Paid"}), "Open", emit=thank),
        row("refund", ("Paid", ("Open", "Paid")), "Open"),
        row("refund", "*", "Open"),  # wrong: arg-type
        row("refund", ("Paid", ("Open", "Piad")), "Open"),  # wrong: arg-type
        row("pay", "Open", "Paid", when=purrs),  # wrong: arg-type
        row("pay", "Open", "Paid", emit=purr),  # wrong: arg-type
        row("pay", "Open", "Paid", is_dear),  # wrong: arg-type
    ),
    on_enter={"Paid": thank},
    on_exit={"Paid": (thank, thank)},
)
PLAIN: Final[Lifecycle[State, Step]] = Lifecycle(
    "plain",
    initial="Open",
    final=(),
    lasts={"Open": within(1.5), "Paid": unbounded("refund")},  # wrong: arg-type
    rows=(
        row("pay", "Open", "Paid", when=knows),
        row("pay", "Open", "Paid", when=is_dear),  # wrong: arg-type
        row("kick", "Open", "Paid"),  # wrong: arg-type
        row("pay", "Opne", "Paid"),  # wrong: arg-type
        row("pay", "Open", "Broken"),  # wrong: arg-type
    ),
    on_enter={"Paid": purr},  # wrong: dict-item
)
ODD: Final[Lifecycle[State, Step]] = Lifecycle(
    "odd",
    initial="Ajar",  # wrong: arg-type
    final=("Gone",),  # wrong: arg-type
    lasts={"Aslant": unbounded("pay")},  # wrong: dict-item
    rows=(),
)
PLAIN.total("heights", {"Open": 2, "Paid": 1})
PLAIN.total("heights", {"Open": 2, "Closed": 1})  # wrong: dict-item


class Order:
    key = "A-1"
    price = 20

    def __init__(self) -> None:
        self.state: State = "Open"


class Parcel:
    """It has a key and a state, but no price."""

    key = "P-1"

    def __init__(self) -> None:
        self.state: State = "Open"


class Gate:
    """Its states are others."""

    key = "garden"
    price = 20

    def __init__(self) -> None:
        self.state: Literal["Locked"] = "Locked"


ORDER.fire(Order(), "pay", by="card")
ORDER.fire(Order(), "lift")  # wrong: arg-type
ORDER.fire(Gate(), "pay")  # wrong: arg-type
ORDER.take(Order(), "pay", {"by": "card"})
ORDER.fire(Parcel(), "pay")  # wrong: arg-type
ORDER.take(Parcel(), "pay")  # wrong: arg-type
ORDER.step(Parcel(), "pay")  # wrong: arg-type
taken = ORDER.step(Order(), "pay")
reached: State = taken.target
assert taken.target != "Piad"  # wrong: comparison-overlap
ORDER.watch(lambda outcome: outcome.trigger == "kick")  # wrong: comparison-overlap
ORDER.choose(Parcel(), "pay", {})  # wrong: arg-type
PLAIN.fire(Parcel(), "pay")
PLAIN.fire(Cat(), "pay")  # wrong: arg-type


async def fires_by_time(timers: Timers, drive: AsyncTimers, order: Order, gate: Gate) -> None:
    timers.fire(ORDER, order, "pay", 0, by="card")
    timers.fire(ORDER, order, "lift", 0)  # wrong: misc
    timers.fire(ORDER, gate, "pay", 0)  # wrong: misc
    timers.fire(PLAIN, order, "pay", 0)
    await drive.fire(ORDER, order, "pay", by="card")
    await drive.fire(ORDER, order, "lift")  # wrong: misc
    await drive.fire(ORDER, gate, "pay")  # wrong: misc


# -- those of the scheduler ----------------------------------------------------------------------------


def fires(kernel: Kernel, app: Application, ask: Ask, order: Order) -> None:
    kernel.fire(APPLICATION, app, application_fsm.RUN)
    kernel.fire(APPLICATION, app, "run", reason="because")
    kernel.fire(APPLICATION, app, "submit")  # wrong: misc
    kernel.fire(APPLICATION, app, "rnu")  # wrong: misc
    kernel.fire(APPLICATION, ask, application_fsm.RUN)  # wrong: misc
    kernel.fire_all(ASK, [ask], "submit")
    kernel.fire_all(ASK, [ask], "run")  # wrong: misc
    kernel.fire_later(APPLICATION, app, "kill")
    kernel.fire_later(APPLICATION, app, "kil")  # wrong: misc
    APPLICATION.fire(app, "run")
    APPLICATION.fire(app, "submit")  # wrong: arg-type
    ASK.fire(ask, "submit")
    ASK.fire(app, "submit")  # wrong: arg-type
    NODE.fire(order, "drain")  # wrong: arg-type


def reads(app: Application, ask: Ask) -> None:
    APPLICATION.allows(app.state, "run")
    APPLICATION.allows(ask.state, "run")  # wrong: arg-type
    APPLICATION.idles("Runing", "run")  # wrong: arg-type
    APPLICATION.rows_from("Running", "run")
    APPLICATION.rows_from("Running", "rum")  # wrong: arg-type
    path_to(APPLICATION, "Running")
    app.state = "Completed"
    app.state = "Done"  # wrong: assignment
    print(ask.state == "Done")  # wrong: comparison-overlap


# -- any of them ---------------------------------------------------------------------------------------


def draws(lifecycle: Lifecycle) -> None:
    path_to(lifecycle, "Paid")


def fires_any(kernel: Kernel, lifecycle: Lifecycle, entity: Any, trigger: str) -> None:
    kernel.fire(lifecycle, entity, trigger)
    lifecycle.fire(entity, trigger)
    kernel.fire(LIFECYCLES["node"], entity, "drain")


draws(ORDER)
draws(APPLICATION)
KNOWN: dict[str, Lifecycle] = {"order": ORDER, "plain": PLAIN, "ask": ASK}
WITHOUT_TYPES = Lifecycle(
    "order",
    initial="Open",
    final=("Paid",),
    lasts={"Open": unbounded("pay")},
    rows=(row("pay", "*", "Paid", when=is_dear, emit=thank), row("look", "Open", STAYS, why="so")),
)
WITHOUT_TYPES.fire(Order(), "pay")


# -- members of an Enum --------------------------------------------------------------------------------


class Door(StrEnum):
    OPEN = "Open"
    SHUT = "Shut"


class Push(Enum):
    PUSH = 1
    PULL = 2


DOOR: Final[Lifecycle[Door, Push]] = Lifecycle(
    "door",
    initial=Door.SHUT,
    final=(),
    lasts={Door.OPEN: unbounded(Push.PUSH), Door.SHUT: unbounded(Push.PULL)},
    rows=(
        row(Push.PULL, Door.SHUT, Door.OPEN),
        row(Push.PUSH, EVERY, Door.SHUT),
        row("push", Door.OPEN, Door.SHUT),  # wrong: arg-type
        row(Push.PUSH, Door.OPEN, "Shut"),  # wrong: arg-type
    ),
)
DOOR.total("heights", {Door.OPEN: 2, Door.SHUT: 1})


def pushes(door: Entity[Door], other: Entity[State]) -> None:
    DOOR.fire(door, Push.PUSH)
    DOOR.fire(door, "push")  # wrong: arg-type
    DOOR.fire(other, Push.PUSH)  # wrong: arg-type
    door.state = Door.OPEN


# -- derived ones --------------------------------------------------------------------------------------

LongState = Literal["Open", "Paid", "Sent"]
LongStep = Literal["pay", "refund", "send"]
LONGER: Lifecycle[LongState, LongStep, Any] = ORDER.extend(
    final=("Sent",),
    rows=(
        row("send", "Paid", "Sent"),
        row("send", "Paid", "Snet"),  # wrong: arg-type
    ),
)
SHORTER: Lifecycle[State, Step, OrderFacts] = ORDER.without(triggers=["refund"])
ORDER.without(states=["Sent"])  # wrong: list-item
ORDER.replace(row("pay", "Open", "Paid"))
ORDER.replace(row("send", "Open", "Paid"))  # wrong: arg-type
