"""What the machines of the lifecycles cost the scheduler: FastMachine beside the plain class of the library.

The same workloads run on both in turns (``Options.engine``), so that other programs on the machine disturb
none of them more. The output is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from bench import Figure, gang, scheduling
from bench.scheduling import Case
from quadriga.core import Options

#: the time for one pod, in floors
Run = Callable[[Options], float]

ROUNDS = 5


def measure() -> list[Figure]:
    """The time of each workload on the stock engine as a multiple of that on the fast one."""
    runs: dict[str, Run] = {
        "repeat": lambda options: _floors(Case("repeat", 1_000, 4_000), options),
        "u50": lambda options: _floors(Case("u50", 1_000, 4_000), options),
        "a placeholder placed": lambda options: _gang(options)[0],
        "replaced and confirmed": lambda options: _gang(options)[1],
    }
    figures: list[Figure] = []
    for name, run in runs.items():
        times: dict[str, list[float]] = {"fast": [], "stock": []}
        for _ in range(ROUNDS):
            for engine, seen in times.items():
                seen.append(run(Options(engine=engine)))
        fast, stock = median(times["fast"]), median(times["stock"])
        figures += (
            Figure(f"{name}: fast", fast, "floors"),
            Figure(f"{name}: stock", stock, "floors"),
            Figure(f"{name}: stock in terms of fast", stock / fast, "x"),
        )
    return figures


def _floors(case: Case, options: Options) -> float:
    return scheduling.run(case, options).floors


def _gang(options: Options) -> tuple[float, float]:
    cost = gang.run(500, 20, 100, options)
    return cost.placed / cost.floor, cost.replaced / cost.floor
