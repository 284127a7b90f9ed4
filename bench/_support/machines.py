"""``FastMachine``, its locked, hierarchical and asynchronous variants beside the library's: triggers,
questions, models.

Each case is a machine with two states and one trigger that leads from one to the other. Both machines take
turns, and the best of many short rounds counts.
"""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Callable
from enum import Enum
from time import perf_counter_ns
from typing import Any

from transitions import Machine
from transitions.extensions import LockedMachine
from transitions.extensions.asyncio import AsyncMachine, HierarchicalAsyncMachine
from transitions.extensions.nesting import HierarchicalMachine

from bench import Figure
from quadriga.fsm import FastHierarchicalMachine, FastMachine
from quadriga.fsm.fast.asynchronous import FastAsyncMachine, FastHierarchicalAsyncMachine
from quadriga.fsm.fast.locked import FastLockedMachine

ROUNDS = 150
TURNS = 200
MODELS = 100_000


class Order:
    """A model with callbacks, by name."""

    def yes(self, *args: object) -> bool:
        return True

    def note(self, *args: object) -> None:
        pass

    async def yes_later(self, *args: object) -> bool:
        return True

    async def note_later(self, *args: object) -> None:
        pass


class Slotted:
    __slots__ = ("state",)


class Light(Enum):
    RED = 1
    GREEN = 2


def _yes(*args: object) -> bool:
    return True


Options = dict[str, Any]
_NOTED: Options = {"before": "note", "after": "note"}
_SENT: Options = {"send_event": True}
#: two states that have initial ones inside, which have initial ones inside; two of them at once
_DEEP = [
    {"name": name, "children": [{"name": "x", "children": ["y"], "initial": "y"}], "initial": "x"}
    for name in ("A", "B")
]
_PARALLEL = [{"name": "A", "parallel": ["x", "y"]}, {"name": "B", "parallel": ["x", "y"]}]
# fmt: off
#: name, transition, machine, what is measured, how many times as fast it has to be
CASES: tuple[tuple[str, Options, Options, str, int], ...] = (
    ("no callbacks",                     {},                       {},                            "go",      12),
    ("no callbacks, of many models",     {},                       {"many": True},                "go",      12),
    ("no callbacks, machine as model",   {},                       {"model": "self"},             "go",      12),
    ("no callbacks, enum",               {},                       {"states": list(Light)},       "go",      12),
    ("no callbacks, by trigger()",       {},                       {},                            "trigger", 8),
    ("internal",                         {"dest": None},           {},                            "go",      12),
    ("reflexive",                        {"dest": "="},            {},                            "go",      12),
    ("a condition",                      {"conditions": "yes"},    {},                            "go",      8),
    ("a condition, of many models",      {"conditions": "yes"},    {"many": True},                "go",      8),
    ("a condition, a function",          {"conditions": _yes},     {},                            "go",      8),
    ("a condition, send_event",          {"conditions": "yes"},    _SENT,                         "go",      8),
    ("two callbacks",                    _NOTED,                   {},                            "go",      4),
    ("two callbacks, of many models",    _NOTED,                   {"many": True},                "go",      4),
    ("two callbacks, send_event",        _NOTED,                   _SENT,                         "go",      4),
    ("a callback of the machine",        {},                       {"after_state_change": "note"},        "go",      4),
    ("finalize_event",                   {},                       {"finalize_event": "note"},    "go",      4),
    ("queued, no callbacks",             {},                       {"queued": True},              "go",      1),
    ("queued, two callbacks",            _NOTED,                   {"queued": True},              "go",      1),
    ("may_go()",                         {},                       {},                            "may_go",  1),
    ("may_go(), a condition",            {"conditions": "yes"},    {},                            "may_go",  1),
)
#: an object with a machine of its own: name, transitions, and how many triggers it fires
_ROUND: list[list[str]] = [["go", "A", "B"], ["on", "B", "C"], ["on", "C", "D"], ["go", "D", "A"]]
_ASKED = [dict(zip(("trigger", "source", "dest"), row, strict=True), conditions="yes") for row in _ROUND]
OWN: tuple[tuple[str, list[Any], tuple[int, ...]], ...] = (
    ("no callbacks", _ROUND, (0, 1, 4, 8, 16, 40, 48, 80)),
    ("a condition",  _ASKED, (0, 1, 4, 8, 16, 40, 48, 80)),
)
#: the same for locked machines
LOCKED: tuple[tuple[str, Options, int], ...] = (
    ("no callbacks",  {},                       8),
    ("a condition",   {"conditions": "yes"},    8),
    ("two callbacks", _NOTED,                   4),
)
#: the same of hierarchical machines
NESTED: tuple[tuple[str, Options, Options, str, float], ...] = (
    ("nested, no callbacks",             {},                       {},                            "go",      12),
    ("nested, states of the top only",   {},                       {"states": ["A", "B"]},        "go",      12),
    ("nested, of many models",           {},                       {"many": True},                "go",      12),
    ("nested, a condition",              {"conditions": "yes"},    {},                            "go",      3),
    ("nested, two callbacks",            _NOTED,                   {},                            "go",      3),
    ("nested, two callbacks, top only",  _NOTED,                   {"states": ["A", "B"]},        "go",      3),
    ("nested, two callbacks, send_event", _NOTED,                  _SENT,                         "go",      3),
    ("nested, a callback of the machine", {},                      {"after_state_change": "note"},        "go",      3),
    ("nested, queued",                   {},                       {"queued": True},              "go",      3),
    ("nested, parallel states",          {},                       {"states": _PARALLEL},         "go",      1.5),
    ("nested, may_go()",                 {},                       {},                            "may_go",  0.9),
)
#: the same of asynchronous machines, with the number of triggers at once, each of its own model
ASYNC: tuple[tuple[str, Options, Options, str, int, float], ...] = (
    ("no callbacks",                     {},                          {},                   "go",      1, 5),
    ("a condition",                      {"conditions": "yes"},       {},                   "go",      1, 5),
    ("a condition, a coroutine",         {"conditions": "yes_later"}, {},                   "go",      1, 5),
    ("two callbacks",                    _NOTED,                      {},                   "go",      1, 5),
    ("two callbacks, send_event",        _NOTED,                      _SENT,                "go",      1, 5),
    ("two callbacks, coroutines",        {"before": "note_later", "after": "note_later"}, {}, "go",   1, 5),
    ("two callbacks, 20 at once",        _NOTED,                      {},                   "go",      20, 2),
    ("queued, no callbacks",             {},                          {"queued": True},     "go",      1, 5),
    ("queued, two callbacks",            _NOTED,                      {"queued": "model"},  "go",      1, 5),
    ("may_go()",                         {},                          {},                   "may_go",  1, 5),
    ("may_go(), a condition",            {"conditions": "yes"},       {},                   "may_go",  1, 2),
)
# fmt: on


def measure() -> list[Figure]:
    """For each case both times (ns) and the share of the fast one; then what models cost."""
    figures: list[Figure] = []
    flat, nested = (Machine, FastMachine), (HierarchicalMachine, FastHierarchicalMachine)
    for classes, (name, transition, options, what, times) in (
        *((flat, case) for case in CASES),
        *((nested, case) for case in NESTED),
    ):
        stock, fast = _race(*(_call(cls, transition, options, what) for cls in classes))
        figures += (
            Figure(f"machines, {name}: stock", stock, "ns"),
            Figure(f"machines, {name}: fast", fast, "ns"),
            Figure(f"machines, {name}: share of the time", 100 * fast / stock, "%", 100 / times),
        )
    for name, transition, times in LOCKED:
        locked, fast = _race(
            *(_call(cls, transition, {}, "go") for cls in (LockedMachine, FastLockedMachine))
        )
        figures += (
            Figure(f"locked machines, {name}: stock", locked, "ns"),
            Figure(f"locked machines, {name}: fast", fast, "ns"),
            Figure(
                f"locked machines, {name}: share of the time", 100 * fast / locked, "%", 100 / times
            ),
        )
    flat_async = (AsyncMachine, FastAsyncMachine)
    nested_async = (HierarchicalAsyncMachine, FastHierarchicalAsyncMachine)
    for kinds, (name, transition, options, what, together, times) in (
        *((flat_async, case) for case in ASYNC),
        (nested_async, ("nested, no callbacks", {}, {}, "go", 1, 1)),
        (nested_async, ("nested, two callbacks", _NOTED, {}, "go", 1, 1)),
    ):
        lanes = (_awaited(cls, transition, options, what, together) for cls in kinds)
        stock, fast = (
            each / (TURNS * together) for each in _race(*lanes, turns=1, rounds=15, collect=True)
        )
        figures += (
            Figure(f"asynchronous machines, {name}: stock", stock, "ns"),
            Figure(f"asynchronous machines, {name}: fast", fast, "ns"),
            Figure(
                f"asynchronous machines, {name}: share of the time",
                100 * fast / stock,
                "%",
                100 / times,
            ),
        )
    for name, rows, numbers in OWN:
        for number in numbers:
            stock, fast = _race(*(_own(cls, rows, number) for cls in flat), turns=10)
            about = f"a machine for each object, {name}, {number} triggers"
            figures += (
                Figure(f"{about}: stock", stock, "ns"),
                Figure(f"{about}: fast", fast, "ns"),
                Figure(f"{about}: share of the time", 100 * fast / stock, "%", 60),
            )
    stock, fast = _race(*map(_after_a_change, flat))
    figures += (
        Figure("machines, after another machine was changed: stock", stock, "ns"),
        Figure("machines, after another machine was changed: fast", fast, "ns"),
    )
    for name, cls, most in (("with a dictionary", Order, 100), ("with slots", Slotted, 8)):
        figures.append(Figure(f"machines, a model {name}", _bytes(cls), "bytes", most))
    figures.append(Figure("machines, 100,000 models in one call", _add(together=True), "s", 1))
    figures.append(Figure("machines, 100,000 models one by one", _add(together=False), "s", 1))
    return figures


def _call(
    cls: type[Machine], transition: Options, options: Options, what: str
) -> Callable[[], object]:
    options = dict(options)
    nested = issubclass(cls, HierarchicalMachine)
    states = options.pop("states", _DEEP if nested else ["A", "B"])
    names = [each["name"] if isinstance(each, dict) else each for each in states]
    many = options.pop("many", False)
    model = options.pop("model", None)
    machine: Any = cls(model, states=states, initial=names[0], auto_transitions=False, **options)
    for source, dest in (names, names[::-1]):
        machine.add_transition("go", source, **{"dest": dest, **transition})
    if model is None:
        model = Order()
        machine.add_model([model, Order()] if many else model)
    else:
        model = machine
    if what == "trigger":
        return lambda: model.trigger("go")
    if what == "may_go":
        return lambda: model.may_go()
    return lambda: model.go()


def _awaited(
    cls: type[Machine], transition: Options, options: Options, what: str, together: int
) -> Callable[[], object]:
    """Turns of an event loop's own; in each one trigger after the other, or some at once."""
    calls: list[Any] = [_call(cls, transition, options, what) for _ in range(together)]

    async def turns() -> None:
        for _ in range(TURNS):
            if together == 1:
                await calls[0]()
            else:
                await asyncio.gather(*(call() for call in calls))

    return lambda: asyncio.run(turns())


def _own(cls: type[Machine], rows: list[Any], number: int) -> Callable[[], object]:
    """An order that makes its own machine, and fires."""

    class Own(Order):
        def __init__(self) -> None:
            states = ["A", "B", "C", "D"]
            self.machine = cls(model=self, states=states, initial="A", transitions=rows)

    triggers = [("go", "on", "on", "go")[at % 4] for at in range(number)]

    def live() -> None:
        order = Own()
        for trigger in triggers:
            getattr(order, trigger)()

    return live


def _after_a_change(cls: type[Machine]) -> Callable[[], object]:
    """A trigger after another machine of the process has changed; the change is part of the time."""
    go = _call(cls, {}, {}, "go")
    changed = cls(None, states=["A", "B"], initial="A").states["A"]

    def change() -> None:
        changed.on_enter = []
        go()

    return change


def _race(
    *calls: Callable[[], object], turns: int = TURNS, rounds: int = ROUNDS, collect: bool = False
) -> list[float]:
    best = [float("inf")] * len(calls)
    if not collect:  # asyncio makes circles of references
        gc.disable()
    try:
        for _ in range(rounds):
            for lane, call in enumerate(calls):
                started = perf_counter_ns()
                for _ in range(turns):
                    call()
                best[lane] = min(best[lane], (perf_counter_ns() - started) / turns)
    finally:
        gc.enable()
    return best


def _machine() -> FastMachine:
    states = ["New", "Paid", "Sent", "Closed"]
    return FastMachine(None, states=states, initial="New", ordered_transitions=True)


def _bytes(cls: type) -> float:
    """What a machine adds to a model: its attributes and where the machine keeps it."""
    machine = _machine()
    machine.add_model([cls(), cls()])
    models = [cls() for _ in range(MODELS)]
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        machine.add_model(models)
        return round((tracemalloc.get_traced_memory()[0] - before) / MODELS, 1)
    finally:
        tracemalloc.stop()


def _add(*, together: bool) -> float:
    machine = _machine()
    models = [Order() for _ in range(MODELS)]
    started = perf_counter_ns()
    if together:
        machine.add_model(models)
    else:
        for model in models:
            machine.add_model(model)
    return (perf_counter_ns() - started) / 1e9
