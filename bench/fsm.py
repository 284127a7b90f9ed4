"""The cost of a trigger: our engine, the machine of the library, and a bare dictionary; then ``FastMachine``
beside the library's.

Each case is a few triggers that lead back to the first state. The contenders take turns, and the best
of several rounds counts, so that other programs on the machine disturb none of them.
"""

import gc
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from time import perf_counter_ns
from typing import Any

from bench import Figure
from bench._support import machines
from quadriga.fsm import APPLICATION, ASK, NODE, QUEUE, Lifecycle

ROUNDS = 9
TURNS = 2_000
ENTITIES = 20_000
MODELS = 200


@dataclass(slots=True, eq=False)
class Life:
    """An entity with the attributes that the guards and emitters below read."""

    key: str
    state: str
    pending: int = 2
    run_limit: int = 0
    started: bool = True
    has_asks: bool = False
    has_allocations: bool = False
    has_placeholders: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    lifecycle: Lifecycle
    start: str
    triggers: tuple[str, ...]


CASES = (
    Case("plain row", QUEUE, "Active", ("stop", "start")),
    Case("row that stays", QUEUE, "Active", ("start", "start")),
    Case("guarded row", ASK, "Pending", ("allocate", "allocate")),
    Case("row with an effect", NODE, "Schedulable", ("drain", "schedule")),
    Case("row with several effects", APPLICATION, "Running", ("wait", "ask")),
)
Step = Callable[[Any, str], object]


def measure() -> list[Figure]:
    return lifecycles() + machines.measure()


def lifecycles() -> list[Figure]:
    """Time for one trigger of each case (ns), the ratio to the library, and the bytes of an entity."""
    figures: list[Figure] = []
    lean_total = stock_total = 0.0
    for case in CASES:
        lean, stock = _again(case.lifecycle), _again(case.lifecycle, stock=True)
        ours, theirs, bare = _race(case, lean.fire, stock.fire, _bare(case))
        lean_total += ours
        stock_total += theirs
        figures += (
            Figure(f"{case.name}: fire", ours, "ns"),
            Figure(f"{case.name}: stock machine", theirs, "ns"),
            Figure(f"{case.name}: bare dictionary", bare, "ns"),
            Figure(f"{case.name}: times as fast as stock", theirs / ours, "x"),
            Figure(f"{case.name}: times a bare dictionary", ours / bare, "x"),
        )
    figures += (
        Figure("all: times as fast as stock", stock_total / lean_total, "x"),
        Figure("entity: its own state", _entity_bytes(), "bytes"),
        Figure("model of the library", _model_bytes(), "bytes"),
    )
    return figures


def _again(lifecycle: Lifecycle, *, stock: bool = False) -> Lifecycle:
    """A copy of the lifecycle, so that observers of the shared one are not measured."""
    return Lifecycle(
        lifecycle.name,
        initial=lifecycle.initial,
        final=lifecycle.final,
        lasts=lifecycle.lasts,
        rows=[tuple(line) for _, line in groupby(lifecycle.rows, key=lambda row: row.line)],
        stock=stock,
    )


def _bare(case: Case) -> Step:
    """The least that a state machine can do: two look-ups and an assignment, without any check."""
    table: dict[str, dict[str, str]] = {}
    for row in case.lifecycle.rows:
        table.setdefault(row.trigger, {}).setdefault(row.source, row.target or row.source)

    def step(life: Any, trigger: str) -> None:
        life.state = table[trigger][life.state]

    return step


def _race(case: Case, *steps: Step) -> list[float]:
    best = [float("inf")] * len(steps)
    gc.disable()
    try:
        for _ in range(ROUNDS):
            for lane, step in enumerate(steps):
                life = Life("it-1", case.start)
                started = perf_counter_ns()
                for _ in range(TURNS):
                    for trigger in case.triggers:
                        step(life, trigger)
                spent = (perf_counter_ns() - started) / (TURNS * len(case.triggers))
                best[lane] = min(best[lane], spent)
    finally:
        gc.enable()
    return best


class _Alive:
    """The smallest entity that can have a lifecycle."""

    __slots__ = ("key", "state")

    def __init__(self, key: str, state: str) -> None:
        self.key = key
        self.state = state


class _Model:
    pass


def _entity_bytes() -> float:
    keys = [f"it-{n}" for n in range(ENTITIES)]

    def make() -> list[Any]:
        lives = [_Alive(key, NODE.initial) for key in keys]
        for life in lives:
            NODE.fire(life, "accept")  # type: ignore[arg-type]  # its state is any text
        return lives

    return _bytes_each(make, ENTITIES)


def _model_bytes() -> float:
    machine = _again(NODE, stock=True).machine

    def make() -> list[Any]:
        models = [_Model() for _ in range(MODELS)]
        for model in models:
            machine.add_model(model)
        return models

    return _bytes_each(make, MODELS)


def _bytes_each(make: Callable[[], list[Any]], number: int) -> float:
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        kept = make()
        gc.collect()
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(kept) == number
    return (after - before) / number
