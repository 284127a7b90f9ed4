"""Automat, with its newer interface, ``TypeMachineBuilder``."""

from __future__ import annotations

import asyncio
import pickle
from enum import Enum
from typing import Protocol

import automat
from automat import NoTransition, TypeMachineBuilder

from bench._comparison import measured

NAME, PACKAGE, DISTRIBUTION = "automat", "automat", "Automat"


class Service(Protocol):
    def pay(self, paid: int = 20, broken: bool = False) -> object: ...
    def deliver(self) -> object: ...
    def cancel(self) -> object: ...


class Core:
    """What the inputs of one order share."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.paid = 0


def build():
    builder = TypeMachineBuilder(Service, Core)
    open_, paid = builder.state("Open"), builder.state("Paid")
    delivered, cancelled = builder.state("Delivered"), builder.state("Cancelled")

    @open_.upon(Service.pay).to(paid)
    def pay(service, core, paid=20, broken=False):
        if broken:
            raise RuntimeError("broken")
        core.told.append("paid")
        return "told"

    paid.upon(Service.deliver).to(delivered).returns(None)
    for each in (open_, paid):
        each.upon(Service.cancel).to(cancelled).returns(None)
    return builder.build()


ORDER = build()


def state_of(order):
    return order.__automat_transitioner__._state.name


def refusal(function):
    try:
        function()
    except NoTransition as error:
        return f"`{type(error).__name__}: {error}`"


def guard():
    import inspect

    builder = TypeMachineBuilder(Service, Core)
    parameters = inspect.signature(builder.state("Open").upon).parameters
    found = [name for name in parameters if name in ("when", "cond", "guard", "conditions")]
    return (
        "yes"
        if found
        else f"no (`upon` takes {', '.join(parameters)}): an output sends another input"
    )


def refused_guard():
    return "no guards"


def illegal():
    return refusal(ORDER(Core()).deliver)


def misspelled():
    try:
        ORDER(Core()).cancl()
    except AttributeError as error:
        return f"`{error}`"


def effects():
    return f"the result of the output: `{ORDER(Core()).pay()!r}`"


def failure():
    order = ORDER(Core())
    try:
        order.pay(broken=True)
    except RuntimeError:
        said = state_of(order)
        return f"{'unchanged' if said == 'Open' else 'changed'} ({said})"


def possible():
    names = [
        n
        for n in dir(ORDER(Core())) + dir(ORDER)
        if "possible" in n or "allowed" in n or "inputs" in n
    ]
    return f"`{names}`" if names else "no"


def stays():
    builder = TypeMachineBuilder(Service, Core)
    paid = builder.state("Paid")
    paid.upon(Service.pay).loop().returns(None)
    order = builder.build()(Core())
    order.pay()
    return f"`loop()`: {state_of(order)}"


def star():
    names = [name for name in dir(TypeMachineBuilder) if "any" in name or "all" in name.split("_")]
    return "yes" if names else "no: a loop over the states"


def stored():
    builder = TypeMachineBuilder(Service, Core)
    states = {name: builder.state(name) for name in ("Open", "Paid", "Delivered")}
    states["Open"].upon(Service.pay).to(states["Paid"]).returns(None)
    states["Paid"].upon(Service.deliver).to(states["Delivered"]).returns(None)
    order = builder.build()(Core(), states["Paid"])
    before = state_of(order)
    order.deliver()
    return f"`machine(core, state)`, the state as an object: {before}; {state_of(order)} next"


def unknown_stored():
    builder = TypeMachineBuilder(Service, Core)
    builder.state("Open").upon(Service.pay).loop().returns(None)
    try:
        order = builder.build()(Core(), "Payed")
        said = "accepted"
        order.pay()
    except Exception as error:
        return f"{said}; when it is used: `{type(error).__name__}: {error}`"


def pickled():
    try:
        order = pickle.loads(pickle.dumps(ORDER(Core())))
        return state_of(order)
    except Exception as error:
        return f"`{type(error).__name__}: {str(error)[:90]}`"


def timeout():
    import pkgutil

    modules = [m.name for m in pkgutil.walk_packages(automat.__path__, "automat.")]
    return (
        "yes"
        if [name for name in modules if "time" in name.rpartition(".")[2].split("_")]
        else "no"
    )


def async_guard():
    builder = TypeMachineBuilder(Service, Core)
    open_, paid = builder.state("Open"), builder.state("Paid")

    @open_.upon(Service.pay).to(paid)
    async def pay(service, core, paid=20, broken=False):
        return "told"

    order = builder.build()(Core())
    coroutine = order.pay()
    before = state_of(order)
    asyncio.run(coroutine)
    return (
        f"no guards; an output may be a coroutine, which the caller awaits ({before} before that)"
    )


def nested():
    names = [name for name in dir(TypeMachineBuilder) if "nest" in name or "child" in name]
    return "yes" if names else "no"


def history():
    return "no" if nested() == "no" else "yes"


def parallel():
    names = [name for name in dir(TypeMachineBuilder) if "parallel" in name or "region" in name]
    return "yes" if names else "no"


def enums():
    class State(Enum):
        OPEN = 1

    builder = TypeMachineBuilder(Service, Core)
    try:
        builder.state(State.OPEN).upon(Service.pay).loop().returns(None)
        order = builder.build()(Core())
        order.pay()
    except Exception as error:
        return f"no: `{type(error).__name__}: {error}`"
    return f"as names, which cannot be asked for: `{state_of(order)!r}`"


TYPED = """
from typing import Protocol
from automat import TypeMachineBuilder
class Service(Protocol):
    def pay(self) -> None: ...
class Core: ...
builder = TypeMachineBuilder(Service, Core)
opened, paid = builder.state("Open"), builder.state("Paid")
opened.upon(Service.pay).to(paid).returns(None)
order = builder.build()(Core())
order.pya()
"""


def typed():
    return measured.mypy(TYPED, 'has no attribute "pya"')


def _definition(make):
    builder = TypeMachineBuilder(Service, Core)
    try:
        make(builder)
        builder.build()(Core())
    except Exception as error:
        return f"refused: `{type(error).__name__}: {error}`"
    return "accepted"


def bad_target():
    def make(builder):
        open_, _paid = builder.state("Open"), builder.state("Paid")
        open_.upon(Service.pay).to(piad).returns(None)  # noqa: F821

    return f"states are variables: {_definition(make)}"


def unreachable():
    def make(builder):
        open_, paid, lost = builder.state("Open"), builder.state("Paid"), builder.state("Lost")
        open_.upon(Service.pay).to(paid).returns(None)
        lost.upon(Service.cancel).to(open_).returns(None)

    return _definition(make)


def dead_end():
    def make(builder):
        open_, lost = builder.state("Open"), builder.state("Lost")
        open_.upon(Service.cancel).to(lost).returns(None)

    return _definition(make)


def shadowed():
    def make(builder):
        open_, paid = builder.state("Open"), builder.state("Paid")
        open_.upon(Service.pay).to(paid).returns(None)
        open_.upon(Service.pay).to(open_).returns(None)

    return _definition(make)


def extended():
    names = [name for name in dir(ORDER) if name in ("copy", "extend", "derive")]
    return "yes" if names else "no: a function that builds is called again"


def diagrams():
    try:
        return f"dot: {len(str(ORDER.asDigraph())) > 0 and 'yes'}"
    except ImportError as error:
        return f"dot needs {error.name}"


def coverage():
    import pkgutil

    modules = [m.name for m in pkgutil.walk_packages(automat.__path__, "automat.")]
    return "yes" if [name for name in modules if "coverage" in name] else "no"


def shortest():
    return "yes" if [name for name in dir(ORDER) if "path" in name] else "no"


def observed():
    seen = []
    order = ORDER(Core())
    transitioner = order.__automat_transitioner__
    transitioner.setTrace(lambda *step: seen.append(step))
    order.cancel()
    return f"`setTrace`, for each object: {bool(seen) and 'yes'}"


# -- figures ---------------------------------------------------------------------------------------


class Flip(Protocol):
    def flip(self) -> None: ...


def _toggle():
    builder = TypeMachineBuilder(Flip, Core)
    a, b = builder.state("A"), builder.state("B")
    a.upon(Flip.flip).to(b).returns(None)
    b.upon(Flip.flip).to(a).returns(None)
    return builder.build()


TOGGLE = _toggle()


def memory():
    return measured.memory(lambda: TOGGLE(Core()))


def speed_plain():
    machine = TOGGLE(Core())
    return measured.time(lambda: machine.flip())


def speed_guard():
    return None


def creation():
    return measured.time(lambda: TOGGLE(Core()), turns=300)


def importing():
    return measured.import_time("automat")
